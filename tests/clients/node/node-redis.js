// node-redis against HOST PORT, with its defaults.
'use strict';

const { createClient } = require('redis');
const { run, soon } = require('./checks');
const name = `node-redis ${require('redis/package.json').version}`;
const [host, port] = process.argv.slice(2);

async function main() {
  const client = createClient({ socket: { host, port: Number(port), reconnectStrategy: false } });
  client.on('error', (error) => console.log(`note   ${name}: ${error.message}`));
  await soon('connect', client.connect());
  console.log(`ok     ${name}: connects with its defaults`);
  const send = (...command) => soon(command[0], client.sendCommand(command));
  // Commands issued in one turn leave in one write.
  const pipeline = async (commands) =>
    (await soon('pipeline', Promise.allSettled(commands.map((command) => client.sendCommand(command))))).map(
      ({ status, value, reason }) => (status === 'fulfilled' ? value : reason),
    );
  const passed = await run(name, { send, pipeline });
  client.destroy();
  return passed;
}

main().then(
  (passed) => process.exit(passed ? 0 : 1),
  (fault) => {
    console.log(`FAILED ${name}: ${fault.stack}`);
    process.exit(1);
  },
);
