// ioredis: one session of locking, with its ready check on (it reads INFO). usage: node ioredis.js PORT
'use strict';
const assert = require('node:assert');
const Redis = require('ioredis');

(async () => {
  const port = Number(process.argv[2]);
  const connect = () => new Redis({ port, host: '127.0.0.1', connectionName: 'worker', enableReadyCheck: true });
  const holder = connect();
  const rival = connect();
  await new Promise((resolve) => holder.once('ready', resolve));

  const [token, validity] = await holder.call('LOCK', 'ioredis');
  assert(token > 0 && validity > 0);
  assert.strictEqual(await rival.call('LOCK', 'ioredis'), null);
  const waiting = rival.call('LOCK', 'ioredis', 'WAIT', 5000);
  assert.strictEqual(await holder.call('UNLOCK', 'ioredis'), 1);
  assert((await waiting)[0] > token);
  await assert.rejects(holder.call('UNLOCK', 'ioredis'), /NOTHELD/);

  const results = await holder.pipeline([['call', 'LOCK', 'p'], ['call', 'HOLDS', 'p'], ['call', 'UNLOCK', 'p']])
    .exec();
  assert.deepStrictEqual(results.slice(1), [[null, 1], [null, 1]]);

  const subscriber = connect();
  await subscriber.subscribe('lost', 'lock:ioredis');
  const heard = new Promise((resolve) => subscriber.once('message', (channel, text) => resolve([channel, text])));
  await rival.call('UNLOCK', 'ioredis');
  const [channel, text] = await heard;
  assert.strictEqual(channel, 'lock:ioredis');
  assert.match(text, /released/);

  await Promise.all([holder.quit(), rival.quit(), subscriber.quit()]);
  console.log('ok');
})();
