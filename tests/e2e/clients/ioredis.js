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

  // entered again by name only, and sent again
  await rival.call('UNLOCK', 'ioredis');
  await holder.call('LOCK', 'ioredis');
  await assert.rejects(Promise.all([holder.call('LOCK', 'ioredis'), holder.call('LOCK', 'ioredis', 'WAIT', 0)]),
    /HELD 'ioredis' is held by this connection already/);
  await holder.call('UNLOCK', 'ioredis');
  for (const id of ['1', '2', '2']) await holder.call('LOCK', 'again', 'OWNER', 'app', 'ID', id);
  assert.strictEqual(await rival.call('HOLDS', 'again', 'OWNER', 'app'), 2);

  // lost: nothing comes that was not asked for
  await holder.call('LOCK', 'lost');
  assert.strictEqual(await rival.call('FORCEUNLOCK', 'lost'), 1);
  await rival.call('LOCK', 'lost', 'WAIT', 5000);
  assert.strictEqual(await holder.call('LOCK', 'lost'), null);
  assert.strictEqual(await holder.echo('x'), 'x');

  // a transaction: nothing of it is run
  await assert.rejects(holder.multi().call('LOCK', 'multi').exec(), /EXECABORT nothing of this transaction was run/);
  assert.strictEqual(await holder.echo('y'), 'y');
  assert((await rival.call('LOCK', 'multi'))[0] > 0);
  await rival.call('LOCK', 'ioredis');

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
