// Takes the lock `n` by node-redlock again and again on these servers, as long as it lives, and counts in another one who is inside.
// usage: node contend.js TALLY_PORT HOLD_MS PORT...     HOLD_MS above 1000: extended while it is held
'use strict';
const Redis = require('ioredis');

const [tallyPort, holdMs, ...ports] = process.argv.slice(2).map(Number);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

(async () => {
  const module_ = await import('redlock-5');
  let Redlock = module_.Redlock || module_.default;
  Redlock = Redlock.default || Redlock.Redlock || Redlock;
  const tally = new Redis({ port: tallyPort, host: '127.0.0.1' });
  const clients = ports.map((port) => new Redis({ port, host: '127.0.0.1' }));
  const redlock = new Redlock(clients, { retryCount: -1, retryDelay: 10, retryJitter: 10 });
  redlock.on('error', () => {});
  for (;;) {
    await redlock.using(['n'], 1000, { automaticExtensionThreshold: 600 }, async () => {
      if (await tally.incr('inside') !== 1) await tally.incr('together');
      await sleep(Math.random() * holdMs);
      if (holdMs > 1000) await sleep(holdMs);
      await tally.decr('inside');
      await tally.hincrby('rounds', 'redlock', 1);
    });
    await sleep(Math.random() * 20);
  }
})().catch((err) => {
  console.log(err);
  process.exit(1);
});
