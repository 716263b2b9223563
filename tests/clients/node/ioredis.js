// ioredis against HOST PORT, with its defaults: its ready check asks INFO.
'use strict';

const Redis = require('ioredis');
const { run, soon } = require('./checks');
const name = `ioredis ${require('ioredis/package.json').version}`;
const [host, port] = process.argv.slice(2);

async function connect() {
  const options = { host, port: Number(port), lazyConnect: true, retryStrategy: null, maxRetriesPerRequest: 0 };
  const client = new Redis(options);
  client.on('error', (error) => console.log(`note   ${name}: ${error.message}`));
  await soon('connect', client.connect());
  console.log(`ok     ${name}: connects with its defaults`);
  return client;
}

async function main() {
  const client = await connect();
  const send = (command, ...args) => soon(command, client.call(command, ...args));
  const pipeline = async (commands) => {
    const batch = client.pipeline();
    for (const command of commands) batch.call(...command);
    return (await soon('pipeline', batch.exec())).map(([error, reply]) => error ?? reply);
  };
  const passed = await run(name, { send, pipeline });
  client.disconnect();
  return passed;
}

main().then(
  (passed) => process.exit(passed ? 0 : 1),
  (fault) => {
    console.log(`FAILED ${name}: ${fault.stack}`);
    process.exit(1);
  },
);
