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

  // entered again by name only, and sent again
  await rival.sendCommand(['UNLOCK', name]);
  await holder.sendCommand(['LOCK', name]);
  await assert.rejects(Promise.all([holder.sendCommand(['LOCK', name]),
    holder.sendCommand(['LOCK', name, 'WAIT', '0'])]), /HELD '.*' is held by this connection already/);
  await holder.sendCommand(['UNLOCK', name]);
  const again = `${name}:again`;
  for (const id of ['1', '2', '2']) await holder.sendCommand(['LOCK', again, 'OWNER', 'app', 'ID', id]);
  assert.strictEqual(await rival.sendCommand(['HOLDS', again, 'OWNER', 'app']), 2);

  // lost: nothing comes that was not asked for
  const lost = `${name}:lost`;
  await holder.sendCommand(['LOCK', lost]);
  assert.strictEqual(await rival.sendCommand(['FORCEUNLOCK', lost]), 1);
  await rival.sendCommand(['LOCK', lost, 'WAIT', '5000']);
  assert.strictEqual(await holder.sendCommand(['LOCK', lost]), null);
  assert.strictEqual(await holder.echo('x'), 'x');

  // a transaction: nothing of it is run
  const multi = `${name}:multi`;
  await assert.rejects(holder.multi().addCommand(['LOCK', multi]).exec(), /NOMULTI 'lock' was not run|EXECABORT/);
  assert.strictEqual(await holder.echo('y'), 'y');
  assert((await rival.sendCommand(['LOCK', multi]))[0] > 0);
  await rival.sendCommand(['LOCK', name]);

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
