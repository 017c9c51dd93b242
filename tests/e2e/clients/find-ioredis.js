// ioredis in its Sentinel mode: holds a lock and says at which broker. usage: node find-ioredis.js NAME PORT PORT
'use strict';
const Redis = require('ioredis');

const [name, ...ports] = process.argv.slice(2);
const client = new Redis({
  sentinels: ports.map((port) => ({ host: '127.0.0.1', port: Number(port) })),
  name: 'holdfast',
  commandTimeout: 1000,
  sentinelCommandTimeout: 1000,
});
client.on('error', () => {});

(async () => {
  await client.call('LOCK', name, 'OWNER', 'app', 'LEASE', 30000);
  for (;;) {
    try {
      await client.call('RENEW', name, 'OWNER', 'app', 'LEASE', 30000);
      console.log((await client.call('CONFIG', 'GET', 'announce'))[1]);
    } catch (error) {
      // no reply, or none that is good, yet
      if (/commandTimeout|timed out/i.test(error.message)) client.disconnect(true);
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
})();
