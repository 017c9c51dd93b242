// node-redis in its Sentinel mode: holds a lock and says at which broker. usage: node find-node-redis.js NAME PORT PORT
'use strict';
const { createSentinel } = require('redis');

const [name, ...ports] = process.argv.slice(2);

(async () => {
  const client = createSentinel({
    name: 'holdfast',
    sentinelRootNodes: ports.map((port) => ({ host: '127.0.0.1', port: Number(port) })),
    // no pingInterval: a ping that is sent counts as life
    nodeClientOptions: { socket: { socketTimeout: 1000 } },
    scanInterval: 500,
  });
  client.on('error', () => {});
  await client.connect();
  const call = (...words) => client.sendCommand(false, words);
  await call('LOCK', name, 'OWNER', 'app', 'LEASE', '30000');
  for (;;) {
    try {
      await call('RENEW', name, 'OWNER', 'app', 'LEASE', '30000');
      console.log((await call('CONFIG', 'GET', 'announce'))[1]);
    } catch (error) {
      // no reply, or none that is good, yet
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
})();
