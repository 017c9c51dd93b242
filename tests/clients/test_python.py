"""The Python package: the table of scenarios with Debian's redis-py and with the newest one; and what is particular to it:
tasks cancelled anywhere, bodies that end with the lock, Ctrl-C, fork()."""

import asyncio
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest

from fetched import fetch
from holdfastproc import HoldfastProc
from procs import wait_for
from respclient import as_map
from table import CLIENTS, scenario_test

sys.path.insert(0, str(CLIENTS / "python"))

redis = pytest.importorskip("redis")
# pylint: disable=wrong-import-position
import holdfast  # noqa: E402
import holdfast.asyncio  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
ENV = {"PYTHONDONTWRITEBYTECODE": "1"}


def agent(python, kind):
    return [python, CLIENTS / "python" / "agent.py", kind], ENV


def newest():
    """With the newest redis-py that the package is for."""
    where = fetch("pypi-client", [HERE / "requirements.txt"], ["/usr/bin/python3", "-m", "venv", "venv"],
                  ["venv/bin/pip", "install", "-q", "--no-deps", "--disable-pip-version-check", "-r", "requirements.txt"])
    return agent(where / "venv" / "bin" / "python", "asyncio")


test_scenario = scenario_test({"python": lambda: agent(sys.executable, "asyncio")})
if os.environ.get("HOLDFAST_LIBRARIES") == "all":
    test_scenario_newest = scenario_test({"python-newest": newest}, short=True)
    # a thread of Python that waits can not be cancelled by another one
    test_scenario_threads = scenario_test({"python-threads": lambda: agent(sys.executable, "threads")}, short=True, unable=["cancel"])


def is_free(broker, name):
    with broker.connect() as client:
        return as_map(client.cmd("LOCKINFO", name))["kind"] is None and int(broker.info()["waiters"]) == 0


@pytest.fixture
def url(one):
    return "redis://127.0.0.1:%d" % one.broker.port


def test_cancelled_after_any_number_of_steps(one, url):
    """A task that takes a lock is cancelled after n turns of the loop: nothing is left, however far it was."""
    async def main():
        async with holdfast.asyncio.Client(url) as client:
            async def use(name):
                async with client.lock(name):
                    await asyncio.sleep(0)

            ends = set()
            for n in range(100):
                name = "steps-%d" % n
                task = asyncio.create_task(use(name))
                for _ in range(n // 2):
                    await asyncio.sleep(0.00002 * (n % 7))
                task.cancel()
                ends.add((await asyncio.gather(task, return_exceptions=True))[0].__class__)
            async with client.lock(*["steps-%d" % n for n in range(50)], wait=5):
                pass
            async with client.lock(*["steps-%d" % n for n in range(50, 100)], wait=5):
                pass
            assert ends == {asyncio.CancelledError, type(None)}
    asyncio.run(main())


def test_cancelled_as_the_grant_comes(one, url):
    """The answer is there, and the task is cancelled before it runs."""
    async def main():
        async with holdfast.asyncio.Client(url) as client:
            for _ in range(50):
                holder = await client.lock("crossing").acquire()
                task = asyncio.create_task(client.lock("crossing").acquire())
                await asyncio.sleep(0.002)
                await holder.release()
                task.cancel()
                hold = (await asyncio.gather(task, return_exceptions=True))[0]
                if isinstance(hold, holdfast.asyncio.Hold):
                    await hold.release()
            async with client.lock("crossing", wait=5):
                pass
    asyncio.run(main())


def test_the_body_ends_with_the_lock(one, url):
    told = []

    async def main():
        async with holdfast.asyncio.Client(url) as client:
            with pytest.raises(holdfast.LockLost, match="forced"):
                async with client.lock("body", on_event=lambda hold, event: told.append((event, hold.lost))):
                    with one.broker.connect() as admin:
                        admin.cmd("FORCEUNLOCK", "body")
                    await asyncio.sleep(30)
            assert asyncio.current_task().cancelling() == 0
            with pytest.raises(holdfast.LockLost, match="max-hold"):
                async with client.lock("body", max_hold=0.3):
                    await asyncio.sleep(30)
            with pytest.raises(TimeoutError):     # the caller's own end of the body is his
                async with asyncio.timeout(0.1):
                    async with client.lock("body"):
                        await asyncio.sleep(30)
            async with client.lock("body", wait=0) as hold:
                hold.check()
    asyncio.run(main())
    assert told == [("lost", "forced")]


def test_lost_in_a_thread(one, url):
    lost = threading.Event()
    with holdfast.Client(url) as client:
        with pytest.raises(holdfast.LockLost, match="forced"):
            with client.lock("thread", on_event=lambda hold, event: lost.set()) as hold:
                with one.broker.connect() as admin:
                    admin.cmd("FORCEUNLOCK", "thread")
                assert lost.wait(10) and not hold.held
        with pytest.raises(ZeroDivisionError):    # what the body raised is not hidden
            with client.lock("thread", lease=0.1):
                time.sleep(0.2)
                print(1 / 0)


def test_threads_share_a_lock(one, url):
    """Each is let in alone, and the tokens grow in the order in which they were inside."""
    tokens, inside = [], []
    with holdfast.Client(url) as client:
        lock = client.lock("shared", fair=True)

        def work():
            for _ in range(20):
                with lock as hold:
                    inside.append(1)
                    assert len(inside) == 1
                    tokens.append(hold.token)
                    inside.pop()
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(tokens) == 160 and tokens == sorted(set(tokens))


def test_errors(one, url):
    with holdfast.Client(url) as client:
        with pytest.raises(ValueError):
            client.lock().acquire()
        with pytest.raises(TypeError):
            client.lock("x", wiat=1)    # pylint: disable=unexpected-keyword-arg
        with pytest.raises(holdfast.Refused, match="^LIMIT "):
            client.lock("x", lease=10 ** 6).acquire()
        with client.lock("x"), pytest.raises(TimeoutError, match="'x'"):
            client.lock("x", wait=0.05).acquire()
        hold = client.lock("x").acquire()
        hold.release()
        hold.release()    # once is enough, twice does no harm
        with pytest.raises(holdfast.LockLost, match="released"):
            hold.check()
    with pytest.raises(holdfast.Disconnected):
        client.lock("x").acquire()
    with pytest.raises(holdfast.Disconnected, match="127.0.0.1"):
        holdfast.Client("127.0.0.1:1", timeout=0.5)
    assert [thread for thread in threading.enumerate() if thread.name == "holdfast"] == []


def stand_still_past_a_grant(one, name):
    """This thread does nothing else until the next one behind who waits here is given the lock: his own has come and gone."""
    with one.broker.connect() as admin, one.broker.connect() as behind:
        behind.send("LOCK", name, "WAIT", 20000)
        wait_for("both to wait", lambda: int(one.broker.info()["waiters"]) == 2)
        admin.cmd("FORCEUNLOCK", name)
        behind.recv()
        behind.cmd("UNLOCK", name)


def test_over_before_the_grant_is_read(one, url):
    """The process stands still for longer than the lock is valid: who has asked for it learns that it was lost."""
    async def main():
        told = []
        async with holdfast.asyncio.Client(url) as client, holdfast.asyncio.Client(url) as other:
            async def inside():
                async with client.lock("late", lease=0.1):
                    await asyncio.sleep(30)

            def ask(work):
                return asyncio.create_task(asyncio.wait_for(work, 20))

            async def over(task):
                await asyncio.sleep(0)
                await asyncio.to_thread(wait_for, "it to wait", lambda: int(one.broker.info()["waiters"]) == 1)
                stand_still_past_a_grant(one, "late")
                return (await asyncio.gather(task, return_exceptions=True))[0]

            await other.lock("late").acquire()
            hold = await over(ask(client.lock("late", lease=0.1, on_event=lambda hold, event: told.append(event)).acquire()))
            assert isinstance(hold, holdfast.asyncio.Hold) and not hold.held and told == ["lost"]
            with pytest.raises(holdfast.LockLost):
                await hold.release()
            await other.lock("late").acquire()
            assert isinstance(await over(ask(inside())), holdfast.LockLost)
            await other.lock("late").acquire()
            task = ask(client.lock("late", lease=0.1).acquire())
            await asyncio.sleep(0)
            await asyncio.to_thread(wait_for, "it to wait", lambda: int(one.broker.info()["waiters"]) == 1)
            stand_still_past_a_grant(one, "late")
            task.cancel()       # nobody hears the answer, and nothing is left of it
            await asyncio.gather(task, return_exceptions=True)
            async with client.lock("late", wait=5):
                assert len(client._all) == 1
    asyncio.run(main())


def test_names_that_are_no_strings(one, url):
    with holdfast.Client(url) as client:
        for name in (42, None, b"bytes", ["list"]):
            with pytest.raises(TypeError, match="str"):
                client.lock("x", name)


def test_words_that_cannot_be_sent(one, url):
    """They fail alone: no other request takes the reply to another one, and nothing is kept."""
    async def main():
        async with holdfast.asyncio.Client(url) as client:
            hold = await client.lock("sent").acquire()
            for lock in (client.lock("\ud800"), client.lock("x", limit=object()), client.lock("x", lease=float("inf"))):
                with pytest.raises((ValueError, OverflowError, redis.DataError)):
                    await asyncio.wait_for(lock.acquire(), 20)
            assert list(client._all.values()) == [hold] and len(client._link._due) <= 1     # its PING
            with pytest.raises(holdfast.NotGranted):
                await client.lock("sent", wait=0).acquire()
            await hold.release()
            with pytest.raises(holdfast.Refused, match="^LIMIT "):
                await asyncio.wait_for(client.lock("sent", lease=10 ** 6).acquire(), 20)
            assert not client._all
    asyncio.run(main())


def test_in_jeopardy_by_name(one, url):
    """Of several names each is told of by itself: one that is safe does not speak for the other."""
    async def main():
        async with holdfast.asyncio.Client(url) as client:
            async with client.lock("one", "two") as hold:
                def told(kind, name):
                    client._pushed([kind, name, hold.tokens[hold.names.index(name)], 5000])
                    return hold.in_jeopardy
                assert told("jeopardy", "one") and told("renewed", "two") and told("jeopardy", "two") and told("safe", "one")
                assert not told("safe", "two")
    asyncio.run(main())


def test_nothing_is_kept_of_what_was_never_sent(one, tmp_path):
    """Asked while no broker is there, and given up or cancelled: nothing stays until one is back."""
    async def main():
        with HoldfastProc(tmp_path, {"a": one.master.url}) as broker:
            client = holdfast.asyncio.Client("127.0.0.1:%d" % broker.port, timeout=0.5)
            await client.connect()
            await (await client.lock("sent").acquire()).release()
            port = broker.port
        while client._link:
            await asyncio.sleep(0.01)
        task = asyncio.create_task(client.lock("unsent").acquire())
        await asyncio.sleep(0)
        assert len(client._all) == 1
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert not client._all
        with pytest.raises(holdfast.Disconnected, match="no broker"):
            await client.lock("unsent", wait=0).acquire()
        assert not client._all
        # asked while none is there, it fails when one is back, and takes nothing else with it
        task = asyncio.create_task(client.lock("\ud800").acquire())
        await asyncio.sleep(0)
        with HoldfastProc(tmp_path, {"a": one.master.url}, listen="127.0.0.1:%d" % port):
            with pytest.raises(ValueError):
                await asyncio.wait_for(task, 20)
            async with client.lock("sent", wait=20):
                pass
            await client.close()
    asyncio.run(main())


def test_not_after_fork(one, url):
    with holdfast.Client(url) as client:
        pid = os.fork()
        if pid == 0:
            try:
                client.lock("forked").acquire()
            except holdfast.Disconnected:
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


# with a lease that outlasts the test: on a busy machine the program may hear too late that the broker has renewed one
PROGRAM = """
import sys, holdfast
client = holdfast.Client(sys.argv[1])
try:
    with client.lock("interrupted", lease=60) as hold:
        print("inside", flush=True)
        sys.stdin.read()
except KeyboardInterrupt:
    client.lock("after").acquire()
    print("interrupted", flush=True)
    sys.stdin.read()
"""


def start(url):
    # pylint: disable=consider-using-with
    return subprocess.Popen([sys.executable, "-c", PROGRAM, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                            env=dict(os.environ, PYTHONPATH=str(CLIENTS / "python")))


def test_ctrl_c_while_it_waits(one, url):
    with one.broker.connect() as client, start(url) as other:
        client.cmd("LOCK", "interrupted")
        with start(url) as program:
            wait_for("both to wait", lambda: int(one.broker.info()["waiters"]) == 2)
            program.send_signal(signal.SIGINT)
            assert program.stdout.readline() == "interrupted\n"
            wait_for("one to wait", lambda: int(one.broker.info()["waiters"]) == 1)
            client.cmd("UNLOCK", "interrupted")
            assert other.stdout.readline() == "inside\n"
            program.stdin.close()
            assert program.wait(10) == 0
        other.stdin.close()
        assert other.wait(10) == 0
    wait_for("all to be free", lambda: is_free(one.broker, "interrupted") and is_free(one.broker, "after"))
