// ioredis against HOST PORT, at its defaults.
'use strict';

const assert = require('node:assert');
const Redis = require('ioredis');
const { run, end } = require('./report');
const [host, port] = process.argv.slice(2);

end(async () => {
  const connect = () => new Redis(Number(port), host);
  const [client, other] = [connect(), connect()];
  const passed = await run(`ioredis ${require('ioredis/package.json').version}`, {
    connect: async () => {
      assert.strictEqual(await client.set('features:connect', 'wörld\u0000\r\n'), 'OK');
      assert.strictEqual(await client.get('features:connect'), 'wörld\u0000\r\n');
    },
    pipeline: async () => {
      const batch = client.pipeline();
      for (let i = 0; i < 300; i++) batch.set(`features:p:${i}`, i).get(`features:p:${i}`);
      const wanted = Array.from({ length: 300 }, (_, i) => [[null, 'OK'], [null, String(i)]]).flat();
      assert.deepStrictEqual(await batch.exec(), wanted);
    },
    transaction: async () => {
      await client.watch('{features}:t');
      const done = await client.multi().set('{features}:t', 1).incr('{features}:t').get('{features}:t').exec();
      assert.deepStrictEqual(done, [[null, 'OK'], [null, 2], [null, '2']]);
      await client.watch('{features}:t');
      await other.set('{features}:t', 'changed');
      assert.strictEqual(await client.multi().get('{features}:t').exec(), null);
    },
    'blocking pop': async () => {
      await client.del('features:queue');
      assert.strictEqual(await other.blpop('features:queue', 1), null);
      setTimeout(() => client.rpush('features:queue', 'element'), 200);
      assert.deepStrictEqual(await other.blpop('features:queue', 10), ['features:queue', 'element']);
    },
    subscribe: async () => {
      const listener = connect();
      const messages = [];
      const two = new Promise((resolve) => {
        const note = (...message) => messages.push(message) === 2 && resolve();
        listener.on('message', note);
        listener.on('pmessage', note);
      });
      await listener.subscribe('features:channel');
      await listener.psubscribe('features:pattern:*');
      assert((await client.publish('features:channel', 'direct')) >= 1);
      await client.publish('features:pattern:x', 'matched');
      await two;
      messages.sort();
      assert.deepStrictEqual(messages, [
        ['features:channel', 'direct'],
        ['features:pattern:*', 'features:pattern:x', 'matched'],
      ]);
      listener.disconnect();
    },
    script: async () => {
      client.defineCommand('double', { numberOfKeys: 1, lua: "return redis.call('INCRBY', KEYS[1], ARGV[1] * 2)" });
      for (let i = 0; i < 20; i++) {
        await client.del(`features:script:${i}`);
        assert.strictEqual(await client.double(`features:script:${i}`, 21), 42);
      }
      assert.strictEqual(await client.eval('return ARGV[1]', 0, 'x'), 'x');
    },
    scan: async () => {
      const names = Array.from({ length: 500 }, (_, i) => `features:scan:${i}`).sort();
      await client.mset(...names.flatMap((name) => [name, 1]));
      const found = new Set();
      for await (const keys of client.scanStream({ match: 'features:scan:*', count: 50 })) keys.forEach((key) => found.add(key));
      assert.deepStrictEqual([...found].sort(), names);
    },
  });
  client.disconnect();
  other.disconnect();
  return passed;
});
