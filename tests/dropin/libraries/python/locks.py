#!/usr/bin/python3
"""Lock libraries for Python, as their users write: what they say, on whatever server they are pointed at.

usage: locks.py LIBRARY PORT
"""

import asyncio
import importlib
import sys
import threading
import time

PORT = int(sys.argv[2])


def say(what, outcome):
    if isinstance(outcome, BaseException):
        outcome = "raises %s" % type(outcome).__name__
    print("%s: %s" % (what, outcome), flush=True)


def tried(function, *args, **kwargs):
    try:
        return function(*args, **kwargs)
    except Exception as err:  # pylint: disable=broad-except
        return err


def until(what, probe, deadline_s=20):
    """Waits for an event, and says whether it came."""
    end = time.monotonic() + deadline_s
    while not probe():
        if time.monotonic() > end:
            say(what, "never")
            return
        time.sleep(0.02)
    say(what, "yes")


def contenders(enter, rounds=5, count=3):
    """Several threads behind one lock: the counter is exact, and nobody is inside with another one."""
    state = {"count": 0, "inside": 0, "together": 0}

    def work(number):
        for _ in range(rounds):
            with enter(number):
                state["inside"] += 1
                state["together"] = max(state["together"], state["inside"])
                seen = state["count"]
                time.sleep(0.002)
                state["count"] = seen + 1
                state["inside"] -= 1
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    say("contenders", "%(count)d rounds, %(together)d at once" % state)


# redis-py and valkey-py

def redis_py(name="redis", client_class="Redis"):
    module = importlib.import_module(name)
    client_of = getattr(module, client_class)
    a, b = client_of(port=PORT), client_of(port=PORT)
    first, second = a.lock("lib", timeout=30), b.lock("lib", timeout=30, blocking=False)
    say("take", first.acquire())
    say("locked", (first.locked(), first.owned(), second.locked(), second.owned()))
    say("refused", second.acquire())
    say("refused after a wait", b.lock("lib", timeout=30, blocking_timeout=0.2, sleep=0.05).acquire())
    say("release of another one's", tried(second.release))
    say("extend", first.extend(10))
    say("extend to", tried(first.extend, 25, replace_ttl=True))
    say("reacquire", first.reacquire())
    say("its time", 20000 < a.pttl("lib") <= 30000)
    say("release", first.release())
    say("release again", tried(first.release))
    say("the other one", second.acquire())
    second.release()
    free = a.lock("lib:free", thread_local=False)
    say("without a time", (free.acquire(), a.ttl("lib:free")))
    say("extend of it", tried(free.extend, 10))
    free.release()
    short = a.lock("lib:short", timeout=0.3)
    say("short", short.acquire())
    say("after its end", b.lock("lib:short", timeout=30, sleep=0.05).acquire())
    say("release of what has ended", tried(short.release))
    say("extend of what has ended", tried(short.extend, 10))
    a.delete("lib:short")
    contenders(lambda number: client_of(port=PORT).lock("lib:many", timeout=30, sleep=0.01))
    with client_of(port=PORT, decode_responses=True).lock("lib:text", timeout=5) as held:
        say("decoded", held.owned())


def valkey_py():
    redis_py("valkey", "Valkey")


async def _redis_py_async(name, client_class):
    module = importlib.import_module(name + ".asyncio")
    client = getattr(module, client_class)(port=PORT)
    first, second = client.lock("alib", timeout=30), client.lock("alib", timeout=30)
    say("async take", await first.acquire())
    say("async refused", await second.acquire(blocking=False))
    say("async extend", await first.extend(10))
    say("async reacquire", await first.reacquire())
    say("async release", await first.release())
    say("async the other one", await second.acquire())
    await second.release()
    state = {"count": 0}

    async def work():
        for _ in range(5):
            async with client.lock("alib:many", timeout=30, sleep=0.01):
                seen = state["count"]
                await asyncio.sleep(0.002)
                state["count"] = seen + 1
    await asyncio.gather(*[work() for _ in range(3)])
    say("async contenders", state["count"])
    await (client.aclose() if hasattr(client, "aclose") else client.close())


def redis_py_async():
    asyncio.run(_redis_py_async("redis", "Redis"))


def valkey_py_async():
    asyncio.run(_redis_py_async("valkey", "Valkey"))


# redlock-py

def redlock_py():
    import redlock
    manager = redlock.Redlock([{"host": "127.0.0.1", "port": PORT}], retry_count=1)
    rival = redlock.Redlock([{"host": "127.0.0.1", "port": PORT}], retry_count=2, retry_delay=0.05)
    held = manager.lock("redlock", 30000)
    say("take", bool(held) and held.resource)
    say("refused", rival.lock("redlock", 30000))
    say("release", manager.unlock(held))
    taken = rival.lock("redlock", 300)
    say("the other one", bool(taken))
    until("after its end", lambda: manager.lock("redlock", 30000))
    say("release of what has ended", rival.unlock(taken))
    say("still held", rival.lock("redlock", 30000))


# pottery

def pottery():
    import redis
    from pottery import Redlock
    masters = {redis.Redis(port=PORT)}

    def lock(key="pottery", seconds=30, **more):
        return Redlock(key=key, masters=masters, auto_release_time=seconds, **more)
    first, second = lock(), lock()
    say("take", first.acquire())
    say("locked", (first.locked() > 0, second.locked() > 0))
    say("refused", second.acquire(blocking=False))
    say("refused after a wait", second.acquire(timeout=0.3))
    say("extend", first.extend())
    say("release of another one's", tried(second.release))
    say("release", first.release())
    say("release again", tried(first.release))
    say("the other one", second.acquire())
    second.release()
    short = lock("short", 0.4)
    say("short", short.acquire())
    say("after its end", lock("short").acquire())
    say("release of what has ended", tried(short.release))
    contenders(lambda number: lock("many"))


# aioredlock

async def _aioredlock():
    from aioredlock import Aioredlock
    first, second = (Aioredlock([("127.0.0.1", PORT)], retry_count=2, internal_lock_timeout=30) for _ in range(2))

    async def outcome(awaitable):
        try:
            return await awaitable and "granted"
        except Exception as err:  # pylint: disable=broad-except
            return err
    lock = await first.lock("aio")
    say("take", lock.valid)
    say("refused", await outcome(second.lock("aio")))
    say("is locked", await second.is_locked("aio"))
    say("extend", await outcome(first.extend(lock)))
    say("release", await outcome(first.unlock(lock)))
    say("release again", await outcome(first.unlock(lock)))
    other = await second.lock("aio")
    say("the other one", other.valid)
    await second.unlock(other)
    await first.destroy()
    await second.destroy()


def aioredlock():
    asyncio.run(_aioredlock())


# python-redis-lock

def python_redis_lock():
    import redis
    import redis_lock
    client = redis.StrictRedis(port=PORT)
    first, second = redis_lock.Lock(client, "prl", expire=30), redis_lock.Lock(client, "prl", expire=30)
    say("take", first.acquire())
    say("refused", second.acquire(blocking=False))
    say("extend", tried(first.extend, 60))
    say("release of another one's", tried(second.release))
    say("release", tried(first.release))
    say("the other one", tried(second.acquire, blocking=False))
    say("waits", tried(redis_lock.Lock(client, "prl", expire=30).acquire, timeout=1))
    say("release", tried(second.release))
    contenders(lambda number: redis_lock.Lock(client, "prl:many", expire=30))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    print("done")
