// What is particular to the package: waits that are aborted at any moment, bodies, errors. usage: node own.js URL
import assert from 'node:assert';
import { once } from 'node:events';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
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

// a name is what it reads as
const numbered = await client.lock(42, { maxHold: 300 });
assert(numbered.held && numbered.names[0] === '42');
await once(numbered, 'lost');
assert.equal(numbered.lost, 'max-hold');
await client.use(7, {}, () => assert.rejects(client.use('7', {}, () => {}), AlreadyHeld));

// what can not be written in words fails alone: the replies to others are not those to it
await assert.rejects(client.lock('x', { limit: Symbol('two') }), TypeError);
const next = await client.lock('x');
await assert.rejects(client.lock('x', { lease: 1e9 }), /^Refused: LIMIT /);
await next.release();

// A broker that grants at once and says what it is told to: each connection is in `lines` while it lasts.
const lines = new Set();
const fake = net.createServer((line) => {
  lines.add(line.on('close', () => lines.delete(line)).on('error', () => {}));
  line.on('data', (data) => {
    for (const request of data.toString().split(/^\*\d+\r\n/m).slice(1)) {
      const words = request.split('\r\n').filter((_, i) => i % 2);
      line.write(words[0] === 'ping' ? '+PONG\r\n' : '+OK\r\n');
      if (words[0] === 'MLOCK') line.write(`>6\r\n+async\r\n+${words[words.indexOf('ASYNC') + 1]}\r\n+granted\r\n*2\r\n:1\r\n:2\r\n:9000\r\n:0\r\n`);
    }
  });
});
await once(fake.listen(0, '127.0.0.1'), 'listening');
const lonely = await Client.connect(`127.0.0.1:${fake.address().port}`, { timeout: 200 });

// each of several names is told of by itself: one that is safe does not speak for the other
const both = await lonely.lock(['one', 'two']);
const told = async (kind, name) => {
  const heard = once(both, kind);
  for (const line of lines) line.write(`>4\r\n+${kind}\r\n+${name}\r\n:${both.names.indexOf(name) + 1}\r\n:5000\r\n`);
  await heard;
  return both.inJeopardy;
};
assert(await told('jeopardy', 'one') && await told('jeopardy', 'two') && await told('safe', 'two'));
assert(!await told('safe', 'one'));
await both.release();

// nothing is kept of what was asked while no broker was there, and given up or aborted
fake.close();
for (const line of lines) line.destroy();
while (lines.size > 0) await sleep(1);
await sleep(0);
setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');
const unsent = async (make) => {
  const options = make();
  await assert.rejects(lonely.lock('unsent', options));
  return new WeakRef(options);
};
const kept = [await unsent(() => ({ signal: AbortSignal.timeout(20) })), await unsent(() => ({ wait: 0 }))];
for (let i = 0; i < 100 && kept.some((ref) => ref.deref()); i++) {
  await sleep(1);
  collect();
}
assert(kept.every((ref) => ref.deref() === undefined), 'what was never sent is kept');
await lonely.close();

const waits = client.lock('admin');
await (await waits).release();
await Promise.all([client.close(), admin.close()]);
await assert.rejects(client.lock('x'), Disconnected);
console.log('ok');
