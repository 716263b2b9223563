// BullMQ on HOST PORT: a queue and a worker in one process.
'use strict';

const assert = require('node:assert');
const { Queue, QueueEvents, Worker, FlowProducer } = require('bullmq');
const { run, end, within } = require('./report');
const [host, port] = process.argv.slice(2);

end(async () => {
  const connection = { host, port: Number(port) };
  // The tag keeps all keys of a queue on one server, which its scripts need.
  const prefix = '{features}';
  const queue = new Queue('jobs', { connection, prefix });
  const events = new QueueEvents('jobs', { connection, prefix });
  const flows = new FlowProducer({ connection, prefix });
  let attempts = 0;
  const work = async (job) => {
    if (job.name === 'stubborn' && ++attempts < 3) throw new Error('not yet');
    if (job.name === 'sum') return Object.values(await job.getChildrenValues()).reduce((sum, one) => sum + one, 0);
    return job.name === 'stubborn' ? attempts : job.data.number * 2;
  };
  const worker = new Worker('jobs', work, { connection, prefix });
  for (const one of [queue, events, worker, flows]) one.on('error', (error) => console.error(error));
  const passed = await run(`BullMQ ${require('bullmq/package.json').version}`, {
    jobs: async () => {
      await events.waitUntilReady();
      const jobs = await queue.addBulk(Array.from({ length: 30 }, (_, number) => ({ name: 'double', data: { number } })));
      const results = await Promise.all(jobs.map((job) => job.waitUntilFinished(events, 20_000)));
      assert.deepStrictEqual(results, Array.from({ length: 30 }, (_, number) => 2 * number));
    },
    'delayed jobs': async () => {
      const job = await queue.add('double', { number: 21 }, { delay: 500 });
      assert.strictEqual(await job.waitUntilFinished(events, 20_000), 42);
    },
    retries: async () => {
      const job = await queue.add('stubborn', {}, { attempts: 5, backoff: 50 });
      assert.strictEqual(await job.waitUntilFinished(events, 20_000), 3);
    },
    flows: async () => {
      const children = [1, 2, 3].map((number) => ({ name: 'double', queueName: 'jobs', data: { number } }));
      const { job } = await flows.add({ name: 'sum', queueName: 'jobs', children });
      assert.strictEqual(await job.waitUntilFinished(events, 20_000), 12);
    },
  });
  await within(10_000, Promise.all([worker.close(), queue.close(), events.close(), flows.close()]), 'close');
  return passed;
});
