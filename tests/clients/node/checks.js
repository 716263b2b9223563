// What both of Node's clients are asked. `send(name, ...args)` runs one command and resolves to its raw reply;
// `pipeline(commands)` sends all at once and resolves to the replies in order, errors among them.
'use strict';

const assert = require('node:assert');
const { within } = require('./report');

exports.run = async function run(client, { send, pipeline }) {
  const key = (name) => `smoke:${client}:${name}`;
  const checks = {
    'set and get': async () => {
      for (const [name, value] of [['plain', 'value'], ['empty', ''], ['ünï\r\n', 'wörld\u0000']]) {
        assert.strictEqual(await send('SET', key(name), value), 'OK');
        assert.strictEqual(await send('GET', key(name)), value);
      }
      assert.strictEqual(await send('GET', key('missing')), null);
    },
    'a value of 1 MB': async () => {
      const value = 'abcdefgh'.repeat(1 << 17);
      assert.strictEqual(await send('SET', key('big'), value), 'OK');
      assert.strictEqual(await send('GET', key('big')), value);
    },
    'counters': async () => {
      await send('DEL', key('n'));
      assert.strictEqual(await send('INCR', key('n')), 1);
      assert.strictEqual(await send('INCRBY', key('n'), '41'), 42);
    },
    'mset and mget over all shards': async () => {
      const names = Array.from({ length: 200 }, (_, i) => key(`many:${i}`));
      assert.strictEqual(await send('MSET', ...names.flatMap((name) => [name, `of ${name}`])), 'OK');
      const found = await send('MGET', ...names, key('missing'), names[0]);
      assert.deepStrictEqual(found, [...names.map((name) => `of ${name}`), null, `of ${names[0]}`]);
    },
    'del and exists count over all shards': async () => {
      const names = Array.from({ length: 100 }, (_, i) => key(`gone:${i}`));
      await send('MSET', ...names.flatMap((name) => [name, 'v']));
      assert.strictEqual(await send('EXISTS', ...names, names[0]), 101);
      assert.strictEqual(await send('DEL', ...names, key('missing')), 100);
      assert.strictEqual(await send('EXISTS', ...names), 0);
    },
    'a pipeline of 300 in order': async () => {
      const commands = [];
      const wanted = [];
      for (let i = 0; i < 100; i++) {
        commands.push(['SET', key(`p:${i}`), `value ${i}`], ['GET', key(`p:${i}`)], ['STRLEN', key(`p:${i}`)]);
        wanted.push('OK', `value ${i}`, `value ${i}`.length);
      }
      assert.deepStrictEqual(await pipeline(commands), wanted);
    },
    'lists': async () => {
      await send('DEL', key('list'));
      const elements = Array.from({ length: 600 }, (_, i) => `e${i}`);
      assert.strictEqual(await send('RPUSH', key('list'), ...elements), 600);
      assert.deepStrictEqual(await send('LRANGE', key('list'), '0', '-1'), elements);
      assert.strictEqual(await send('LPOP', key('list')), 'e0');
      assert.deepStrictEqual(await send('LRANGE', key('missing'), '0', '-1'), []);
    },
    'hashes': async () => {
      await send('DEL', key('hash'));
      assert.strictEqual(await send('HSET', key('hash'), 'a', '1', 'b', '2'), 2);
      assert.deepStrictEqual(await send('HMGET', key('hash'), 'b', 'missing', 'a'), ['2', null, '1']);
      assert.strictEqual(await send('HLEN', key('hash')), 2);
    },
    'errors leave the connection usable': async () => {
      await send('DEL', key('list'));
      await send('RPUSH', key('list'), 'a');
      await assert.rejects(send('GET', key('list')), /^\w*Error: WRONGTYPE/);
      await assert.rejects(send('GET'), /wrong number of arguments for 'get' command/);
      await assert.rejects(send('NOSUCHCOMMAND', 'x'), /ERR unknown command/);
      assert.strictEqual(await send('LLEN', key('list')), 1);
    },
    'errors inside a pipeline stay in their place': async () => {
      await send('DEL', key('list'));
      const found = await pipeline([['RPUSH', key('list'), 'a'], ['GET', key('list')], ['LLEN', key('list')]]);
      assert.strictEqual(found[0], 1);
      assert.match(String(found[1]), /WRONGTYPE/);
      assert.strictEqual(found[2], 1);
    },
    'a thousand commands in flight': async () => {
      const numbers = Array.from({ length: 1000 }, (_, i) => i);
      await Promise.all(numbers.map((i) => send('SET', key(`f:${i}`), `value ${i}`)));
      const found = await Promise.all(numbers.map((i) => send('GET', key(`f:${i}`))));
      assert.deepStrictEqual(found, numbers.map((i) => `value ${i}`));
    },
  };
  let failed = 0;
  for (const [name, check] of Object.entries(checks)) {
    try {
      await check();
      console.log(`ok     ${client}: ${name}`);
    } catch (fault) {
      failed++;
      console.log(`FAILED ${client}: ${name}\n${fault.stack}`);
    }
  }
  console.log(`${Object.keys(checks).length - failed} passed, ${failed} failed`);
  return failed === 0;
};

/// Rejects when `promise` takes longer than ten seconds: a client that waits for ever is a failure too.
exports.soon = (what, promise) => within(10_000, promise, what);
