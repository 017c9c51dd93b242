"""The agent of this package: see clients/scenarios/README.md. usage: agent.py asyncio|threads"""

import asyncio
import json
import sys
import threading

import holdfast
import holdfast.asyncio

TIMES = ("wait", "lease", "max_hold")


def say(event, hold=None, **more):
    if hold is not None:
        more["hold"] = hold
    sys.stdout.write(json.dumps({"event": event, **more}) + "\n")     # in one piece: threads write, too
    sys.stdout.flush()


def options(request):
    """Those of Client.lock()."""
    chosen = {key: request[key] / 1000 for key in TIMES if key in request}
    chosen.update((key, request[key]) for key in ("shared", "limit", "fair") if key in request)
    return dict(chosen, on_event=lambda hold, event: tell(request["hold"], hold, event))


def tell(name, hold, event):
    say(event, name, **({"text": hold.lost} if event == "lost" else {}))


def granted(request, hold):
    say("granted", request["hold"], tokens=hold.tokens)


def state(name, hold):
    if hold is None:
        say("state", name, held=False, tokens=[], remaining=0)
    else:
        say("state", name, held=hold.held, tokens=hold.tokens, remaining=hold.remaining * 1000)


def ended(request, err):
    """How a request that was not granted has ended."""
    if isinstance(err, holdfast.NotGranted):
        say("timeout", request["hold"])
    elif isinstance(err, asyncio.CancelledError):
        say("cancelled", request["hold"])
    else:
        say("error", request["hold"], text=str(err))


class Tasks:
    """With holdfast.asyncio."""

    def __init__(self):
        self.client = None
        self.tasks, self.holds = {}, {}

    async def run(self):
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            request = json.loads(line)
            task = asyncio.create_task(getattr(self, request["do"])(request))
            self.tasks[request["do"], request.get("hold")] = task

    async def connect(self, request):
        self.client = await holdfast.asyncio.Client(*request["brokers"], timeout=request["timeout"] / 1000).__aenter__()
        say("connected")

    async def lock(self, request):
        try:
            hold = await self.client.lock(*request["names"], **options(request)).acquire()
        except (holdfast.LockError, asyncio.CancelledError) as err:
            ended(request, err)
        else:
            self.holds[request["hold"]] = hold
            granted(request, hold)

    async def cancel(self, request):
        self.tasks["lock", request["hold"]].cancel()

    async def unlock(self, request):
        try:
            await self.holds[request["hold"]].release()
            say("released", request["hold"])
        except holdfast.LockLost:
            say("notheld", request["hold"])

    async def state(self, request):
        state(request["hold"], self.holds.get(request["hold"]))

    async def nested(self, request):
        lock = self.client.lock(request["name"], reentrant=request["reentrant"])
        try:
            async with lock as outer:
                async with lock:
                    pass
                outer.check()
            say("entered", request["hold"])
        except holdfast.AlreadyHeld:
            say("refused", request["hold"])

    async def close(self, _):
        await self.client.close()
        say("closed")


class Threads:
    """With the client for threads: one for each request. Python cannot cancel one that waits, as Ctrl-C does: close() ends it."""

    def __init__(self):
        self.client = None
        self.holds = {}

    def run(self):
        for line in sys.stdin:
            request = json.loads(line)
            if request["do"] in ("connect", "state"):
                getattr(self, request["do"])(request)
            else:
                threading.Thread(target=getattr(self, request["do"]), args=(request,), daemon=True).start()

    def connect(self, request):
        self.client = holdfast.Client(*request["brokers"], timeout=request["timeout"] / 1000)
        say("connected")

    def lock(self, request):
        try:
            hold = self.client.lock(*request["names"], **options(request)).acquire()
        except holdfast.LockError as err:
            ended(request, err)
        else:
            self.holds[request["hold"]] = hold
            granted(request, hold)

    def unlock(self, request):
        try:
            self.holds[request["hold"]].release()
            say("released", request["hold"])
        except holdfast.LockLost:
            say("notheld", request["hold"])

    def state(self, request):
        state(request["hold"], self.holds.get(request["hold"]))

    def nested(self, request):
        lock = self.client.lock(request["name"], reentrant=request["reentrant"])
        try:
            with lock as outer:
                with lock:
                    pass
                outer.check()
            say("entered", request["hold"])
        except holdfast.AlreadyHeld:
            say("refused", request["hold"])

    def close(self, _):
        self.client.close()
        say("closed")


if sys.argv[1] == "asyncio":
    asyncio.run(Tasks().run())
else:
    Threads().run()
