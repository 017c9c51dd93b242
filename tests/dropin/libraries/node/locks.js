// Lock libraries for Node.js, as their users write: what they say, on whatever server they are pointed at.
// usage: node locks.js LIBRARY PORT
'use strict';
const Redis = require('ioredis');

const port = Number(process.argv[3]);
const say = (what, outcome) => console.log(`${what}: ${outcome}`);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const open = [];

function ioredis() {
  const client = new Redis({ port, host: '127.0.0.1' });
  open.push(() => client.disconnect());
  return client;
}

async function nodeRedis() {
  const { createClient } = require('redis');
  const client = await createClient({ socket: { host: '127.0.0.1', port } }).on('error', () => {}).connect();
  open.push(() => client.close());
  return client;
}

async function tried(promise) {
  try {
    const value = await promise;
    return value === undefined ? 'fine' : value;
  } catch (err) {
    return `raises ${err.name}`;
  }
}

const granted = async (promise) => tried(promise.then(() => 'granted'));

// Several of them behind one lock: the counter is exact, and nobody is inside with another one.
async function contenders(enter, count = 3, rounds = 5) {
  const state = { count: 0, inside: 0, together: 0 };
  const work = async (number) => {
    for (let i = 0; i < rounds; i += 1) {
      const leave = await enter(number);
      state.inside += 1;
      state.together = Math.max(state.together, state.inside);
      const seen = state.count;
      await sleep(2);
      state.count = seen + 1;
      state.inside -= 1;
      await leave();
    }
  };
  await Promise.all(Array.from({ length: count }, (_, number) => work(number)));
  say('contenders', `${state.count} rounds, ${state.together} at once`);
}

async function redlock4() {
  const Redlock = require('redlock-4');
  const lib = new Redlock([ioredis()], { retryCount: 0 });
  const patient = new Redlock([ioredis()], { retryCount: 400, retryDelay: 20, retryJitter: 10 });
  let lock = await lib.lock('redlock4', 30000);
  say('take', lock.resource);
  say('refused', await granted(patient.lockWithOptions('redlock4', 30000, { retryCount: 1, retryDelay: 10 })));
  lock = await lock.extend(20000);
  say('extend', lock.expiration > Date.now());
  say('release', await granted(lock.unlock()));
  say('release again', await granted(lock.unlock()));
  say('extend of none', await granted(lib.extend(lock, 1000)));
  const several = await lib.lock(['redlock4:a', 'redlock4:b'], 30000);
  say('one of several', await granted(lib.lock('redlock4:b', 30000)));
  say('some of several', await granted(lib.lock(['redlock4:c', 'redlock4:a'], 30000)));
  say('none of them', await granted(lib.lock('redlock4:c', 30000)));
  say('extend of several', await granted(several.extend(20000)));
  say('release of several', await granted(several.unlock()));
  const short = await lib.lock('redlock4:short', 300);
  say('after its end', await granted(patient.lock('redlock4:short', 30000)));
  say('release of what has ended', await granted(short.unlock()));
  await contenders(async () => {
    const held = await patient.lock('redlock4:many', 30000);
    return () => held.unlock();
  });
  const { createClient } = require('redis-3');
  const old = createClient({ port, host: '127.0.0.1' });
  open.push(() => old.end(true));
  const third = new Redlock([old], { retryCount: 0 });
  const held = await third.lock('redlock4:old', 30000);
  say('node_redis 3', await granted(third.lock('redlock4:old', 30000)));
  say('node_redis 3 release', await granted(held.unlock()));
}

async function redlock5(package_ = 'redlock-5', name = 'redlock5') {
  const module_ = await import(package_);
  let Redlock = module_.Redlock || module_.default;
  Redlock = Redlock.default || Redlock.Redlock || Redlock;
  const lib = new Redlock([ioredis()], { retryCount: 0 });
  const patient = new Redlock([ioredis()], { retryCount: 400, retryDelay: 20, retryJitter: 10 });
  for (const one of [lib, patient]) one.on('error', () => {});
  let lock = await lib.acquire([name], 30000);
  say('take', lock.resources);
  say('refused', await granted(patient.acquire([name], 30000, { retryCount: 1, retryDelay: 10 })));
  lock = await lock.extend(20000);
  say('extend', lock.expiration > Date.now());
  say('release', await granted(lock.release()));
  say('release again', await granted(lock.release()));
  say('extend of none', await granted(lib.extend(lock, 1000)));
  const several = await lib.acquire([`{${name}}a`, `{${name}}b`], 30000);
  say('one of several', await granted(lib.acquire([`{${name}}b`], 30000)));
  say('some of several', await granted(lib.acquire([`{${name}}c`, `{${name}}a`], 30000)));
  say('none of them', await granted(lib.acquire([`{${name}}c`], 30000)));
  say('extend of several', await granted(several.extend(20000)));
  say('release of several', await granted(several.release()));
  const short = await lib.acquire([`${name}:short`], 300);
  say('after its end', await granted(patient.acquire([`${name}:short`], 30000)));
  say('release of what has ended', await granted(short.release()));
  await contenders(async () => {
    const held = await patient.acquire([`${name}:many`], 30000);
    return () => held.release();
  });
  let seen;
  await patient.using([`${name}:using`], 1000, { automaticExtensionThreshold: 500 }, async (signal) => {
    await sleep(1700);
    seen = `${signal.aborted} ${await granted(lib.acquire([`${name}:using`], 30000))}`;
  });
  say('using', seen);
}

const sesamecare = () => redlock5('@sesamecare-oss/redlock', 'sesamecare');

async function redisSemaphore() {
  const { Mutex, RedlockMutex, Semaphore } = require('redis-semaphore');
  const options = { lockTimeout: 30000, refreshInterval: 0, retryInterval: 10 };
  const lost = [];
  const mutex = (key, more = {}) => new Mutex(ioredis(), key, { ...options, onLockLost: () => lost.push(key), ...more });
  const first = mutex('rs');
  const second = mutex('rs', { acquireTimeout: 200 });
  await first.acquire();
  say('take', first.isAcquired);
  say('refused', await second.tryAcquire());
  say('refused after a wait', await granted(second.acquire()));
  await first.release();
  say('release', first.isAcquired);
  say('the other one', await second.tryAcquire());
  await second.release();
  const kept = mutex('rs:kept', { lockTimeout: 600, refreshInterval: 150 });
  await kept.acquire();
  await sleep(1200);
  say('refreshed', await mutex('rs:kept').tryAcquire());
  await kept.release();
  const short = mutex('rs:short', { lockTimeout: 300 });
  await short.acquire();
  say('after its end', await granted(mutex('rs:short').acquire()));
  say('release of what has ended', await granted(short.release()));
  const robbed = mutex('rs:robbed', { lockTimeout: 3000, refreshInterval: 50 });
  await robbed.acquire();
  await ioredis().del('mutex:rs:robbed');
  for (let i = 0; i < 400 && lost.length === 0; i += 1) await sleep(10);
  say('lost', lost);
  const red = new RedlockMutex([ioredis()], 'rs:red', options);
  await red.acquire();
  say('RedlockMutex', await new RedlockMutex([ioredis()], 'rs:red', { ...options, acquireTimeout: 100 }).tryAcquire());
  await red.release();
  await contenders(async () => {
    const held = mutex('rs:many');
    await held.acquire();
    return () => held.release();
  });
  if (process.env.ALSO_UNSERVED) {
    say('Semaphore', await granted(new Semaphore(ioredis(), 'rs:sem', 2, options).acquire()));
  }
}

async function ioredisLock() {
  const { createLock } = require('ioredis-lock');
  const lock = (more) => createLock(ioredis(), { timeout: 30000, retries: 0, ...more });
  const first = lock();
  const second = lock();
  say('take', await granted(first.acquire('il')));
  say('refused', await granted(second.acquire('il')));
  say('extend', await granted(first.extend(20000)));
  say('release', await granted(first.release()));
  say('release again', await granted(first.release()));
  say('the other one', await granted(second.acquire('il')));
  await second.release();
  const short = lock({ timeout: 300 });
  await short.acquire('il:short');
  say('after its end', await granted(lock({ retries: 400, delay: 20 }).acquire('il:short')));
  say('release of what has ended', await granted(short.release()));
  say('extend of what has ended', await granted(short.extend(1000)));
  await contenders(async () => {
    const held = lock({ retries: 1000, delay: 10 });
    await held.acquire('il:many');
    return () => held.release();
  });
}

async function simpleRedisMutex() {
  const { lock, tryLock } = await import('simple-redis-mutex');
  const a = await nodeRedis();
  const b = await nodeRedis();
  const [taken, release] = await tryLock(a, 'srm');
  say('take', taken);
  say('refused', (await tryLock(b, 'srm'))[0]);
  say('refused after a wait', await granted(lock(b, 'srm', { failAfter: 200 })));
  say('new time', await granted(release.refreshTimeout()));
  say('release', await granted(release()));
  const next = await lock(b, 'srm');
  say('the other one', typeof next);
  const waiting = lock(a, 'srm');
  await next();
  say('woken', typeof await waiting);
  await (await waiting)();
  await lock(a, 'srm:short', { timeout: 300 });
  say('after its end', typeof await lock(b, 'srm:short', { pollingInterval: 20 }));
  await contenders(async () => lock(await nodeRedis(), 'srm:many', { pollingInterval: 20 }));
}

async function redisLock() {
  const create = require('redis-lock');
  const client = await nodeRedis();
  client.v4 = client; // what it looks for
  const lock = create(client, 20);
  const done = await lock('rl', 30000);
  let second = 'waits';
  const waiting = lock('rl', 30000).then((leave) => { second = 'granted'; return leave; });
  await sleep(200);
  say('refused', second);
  say('release', await done());
  const leave = await waiting;
  say('the other one', second);
  await leave();
  await lock('rl:short', 300);
  say('after its end', typeof await lock('rl:short', 30000));
  await contenders(() => lock('rl:many', 30000));
}

const libraries = { redlock4, redlock5, sesamecare, redisSemaphore, ioredisLock, simpleRedisMutex, redisLock };

(async () => {
  await libraries[process.argv[2]]();
  for (const close of open) close();
  console.log('done');
  process.exit(0);
})().catch((err) => {
  console.log(err);
  process.exit(1);
});
