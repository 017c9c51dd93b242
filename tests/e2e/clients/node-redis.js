// node-redis: one session of locking, RESP2 and RESP3. usage: node node-redis.js PORT
'use strict';
const assert = require('node:assert');
const { createClient } = require('redis');

async function session(port, protocol) {
  const connect = () => createClient({ RESP: protocol, socket: { host: '127.0.0.1', port } })
    .on('error', (err) => { throw err; }).connect();
  const holder = await connect();
  const rival = await connect();
  const name = `node-redis-${protocol}`;

  assert.strictEqual(await holder.ping(), 'PONG');
  const [token, validity] = await holder.sendCommand(['LOCK', name]);
  assert(token > 0 && validity > 0);
  assert.strictEqual(await rival.sendCommand(['LOCK', name]), null);

  const waiting = rival.sendCommand(['LOCK', name, 'WAIT', '5000']);
  assert.strictEqual(await holder.sendCommand(['UNLOCK', name]), 1);
  assert((await waiting)[0] > token);
  await assert.rejects(holder.sendCommand(['UNLOCK', name]), /^(Simple)?Error: NOTHELD|NOTHELD/);

  const subscriber = await holder.duplicate().connect();
  const heard = new Promise((resolve) => subscriber.subscribe(`lock:${name}`, resolve).then(async () => {
    await rival.sendCommand(['UNLOCK', name]);
  }));
  assert.match(await heard, /released/);
  await subscriber.close();
  await holder.close();
  await rival.close();
}

(async () => {
  const port = Number(process.argv[2]);
  await session(port, 2);
  await session(port, 3);
  console.log('ok');
})();
