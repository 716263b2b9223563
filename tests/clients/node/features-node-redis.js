// node-redis against HOST PORT in PROTOCOL 2 or 3, otherwise at its defaults.
'use strict';

const assert = require('node:assert');
const { createClient, defineScript, NumberReply } = require('redis');
const { run, end } = require('./report');
const [host, port, protocol] = process.argv.slice(2);

const double = {
  NUMBER_OF_KEYS: 1,
  SCRIPT: "return redis.call('INCRBY', KEYS[1], ARGV[1] * 2)",
  FIRST_KEY_INDEX: 0,
  parseCommand(parser, key, by) {
    parser.pushKey(key);
    parser.push(String(by));
  },
  transformReply: undefined,
};

end(async () => {
  const connect = async () => {
    const scripts = { double: defineScript(double) };
    const client = createClient({ url: `redis://${host}:${port}`, RESP: Number(protocol), scripts });
    client.on('error', (error) => console.error(error));
    return client.connect();
  };
  const [client, other] = [await connect(), await connect()];
  const passed = await run(`node-redis ${require('redis/package.json').version}`, {
    connect: async () => {
      assert.strictEqual(await client.set('features:connect', 'wörld\u0000\r\n'), 'OK');
      assert.strictEqual(await client.get('features:connect'), 'wörld\u0000\r\n');
    },
    pipeline: async () => {
      const batch = client.multi();
      for (let i = 0; i < 300; i++) batch.set(`features:p:${i}`, i).get(`features:p:${i}`);
      const wanted = Array.from({ length: 300 }, (_, i) => ['OK', String(i)]).flat();
      assert.deepStrictEqual(await batch.execAsPipeline(), wanted);
    },
    transaction: async () => {
      await client.watch('{features}:t');
      const done = await client.multi().set('{features}:t', 1).incr('{features}:t').get('{features}:t').exec();
      assert.deepStrictEqual(done, ['OK', 2, '2']);
      await client.watch('{features}:t');
      await other.set('{features}:t', 'changed');
      await assert.rejects(client.multi().get('{features}:t').exec(), { name: 'Error', constructor: require('redis').WatchError });
    },
    'blocking pop': async () => {
      await client.del('features:queue');
      assert.strictEqual(await other.blPop('features:queue', 1), null);
      setTimeout(() => client.rPush('features:queue', 'element'), 200);
      const { key, element } = await other.blPop('features:queue', 10);
      assert.deepStrictEqual([key, element], ['features:queue', 'element']);
    },
    subscribe: async () => {
      const listener = await connect();
      const messages = [];
      let note;
      const two = new Promise((resolve) => {
        note = (message, channel) => messages.push([channel, message]) === 2 && resolve();
      });
      await listener.subscribe('features:channel', note);
      await listener.pSubscribe('features:pattern:*', note);
      assert((await client.publish('features:channel', 'direct')) >= 1);
      await client.publish('features:pattern:x', 'matched');
      await two;
      assert.deepStrictEqual(messages.sort(), [['features:channel', 'direct'], ['features:pattern:x', 'matched']]);
      listener.destroy();
    },
    script: async () => {
      for (let i = 0; i < 20; i++) {
        await client.del(`features:script:${i}`);
        assert.strictEqual(await client.double(`features:script:${i}`, 21), 42);
      }
      assert.strictEqual(await client.eval('return ARGV[1]', { arguments: ['x'] }), 'x');
    },
    scan: async () => {
      const names = Array.from({ length: 500 }, (_, i) => `features:scan:${i}`).sort();
      await client.mSet(names.map((name) => [name, '1']));
      const found = new Set();
      for await (const keys of client.scanIterator({ MATCH: 'features:scan:*', COUNT: 50 })) keys.forEach((key) => found.add(key));
      assert.deepStrictEqual([...found].sort(), names);
    },
  });
  client.destroy();
  other.destroy();
  return passed;
});
