// Tells what a client could do: a line for the client, then one for each feature: its name, `ok` or `FAILED`, and why.
'use strict';

/** Runs the checks, by name, in order; resolves to whether all passed. */
exports.run = async function run(client, checks) {
  console.log(`client\t${client}`);
  let passed = true;
  for (const [name, check] of Object.entries(checks)) {
    try {
      await within(20_000, check(), name);
      console.log(`${name}\tok`);
    } catch (fault) {
      passed = false;
      console.log(`${name}\tFAILED\t${String(fault.message ?? fault).split(/\s+/).join(' ')}`);
      console.error(fault);
    }
  }
  return passed;
};

/** The promise's outcome, or a failure after so many milliseconds, which names what was awaited. */
const within = (exports.within = function within(limit, promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: nothing within ${limit} ms`)), limit);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
});

/** Ends the process with what `main` resolves to. */
exports.end = (main) =>
  main().then(
    (passed) => process.exit(passed ? 0 : 1),
    (fault) => {
      console.error(fault);
      process.exit(1);
    },
  );
