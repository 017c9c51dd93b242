// What is particular to the package: waits that are aborted at any moment, bodies, errors. usage: node own.js URL
import assert from 'node:assert';
import { setTimeout as sleep } from 'node:timers/promises';
import { AlreadyHeld, Client, Disconnected, LockLost, NotGranted, Refused } from 'holdfast';

const url = process.argv[2];
const client = await Client.connect(url);
const admin = await Client.connect(url);

// aborted at any moment: it is not held, or it was granted
for (let i = 0; i < 200; i++) {
  const abort = new AbortController();
  const request = client.lock('aborted', { signal: abort.signal }).then((hold) => hold.release(), (error) => assert.equal(error.name, 'AbortError'));
  if (i % 2) await sleep(i % 5);
  abort.abort();
  await request;
}
await (await client.lock('aborted', { wait: 5000 })).release();
await assert.rejects(client.lock('aborted', { signal: AbortSignal.abort() }), { name: 'AbortError' });

// an abort and a grant cross
for (let i = 0; i < 50; i++) {
  const holder = await admin.lock('crossing');
  const abort = new AbortController();
  const request = client.lock('crossing', { signal: abort.signal }).then((hold) => hold.release(), () => {});
  await sleep(1);
  const released = holder.release();
  if (i % 2) await sleep(0);
  abort.abort();
  await Promise.all([released, request]);
}
await (await client.lock('crossing', { wait: 5000 })).release();

// lost: the signal, the event, the error
const lost = await client.lock('lost', { maxHold: 300 });
const event = new Promise((resolve) => { lost.on('lost', resolve); });
await assert.rejects(sleep(30000, undefined, { signal: lost.signal }), { name: 'AbortError' });
assert.equal(await event, lost);
assert(!lost.held && lost.lost === 'max-hold' && lost.signal.reason instanceof LockLost);
await assert.rejects(lost.release(), LockLost);
await assert.rejects(client.use('lost', { lease: 100 }, () => sleep(200)), LockLost);
await assert.rejects(client.use('lost', { lease: 100 }, async () => { await sleep(200); throw new RangeError('mine'); }), /mine/);

// re-entry goes with the body, not with the client
await client.use('entered', {}, async () => {
  await assert.rejects(client.use('entered', {}, () => {}), AlreadyHeld);
  await assert.rejects(client.use(['entered', 'more'], { reentrant: true }, () => {}), AlreadyHeld);
  assert.equal(await client.use('entered', { reentrant: true }, (hold) => hold.names[0]), 'entered');
});
let alone = 0;
await Promise.all(Array.from({ length: 50 }, () => client.use('entered', { reentrant: true }, async () => {
  assert.equal(++alone, 1);
  await sleep(1);
  alone--;
})));

// errors
await assert.rejects(client.lock('x', { wiat: 1 }), TypeError);
await assert.rejects(client.lock([]), TypeError);
await assert.rejects(client.lock('x', { lease: 1e9 }), (error) => error instanceof Refused && error.message.startsWith('LIMIT '));
const held = await client.lock('x');
await assert.rejects(client.lock('x', { wait: 50 }), NotGranted);
await held.release();
await held.release();       // once is enough, twice does no harm
assert.throws(() => held.check(), /released/);
await assert.rejects(Client.connect('127.0.0.1:1', { timeout: 500 }), Disconnected);
const waits = client.lock('admin');
await (await waits).release();
await Promise.all([client.close(), admin.close()]);
await assert.rejects(client.lock('x'), Disconnected);
console.log('ok');
