"""One connection to a broker: replies in the order of requests, and pushes between them."""

import asyncio
import collections
import contextlib
import socket
import struct
import time
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

import redis
from redis.asyncio.connection import Connection, parse_url

# Over a Unix socket nothing can be reset: it is closed when whatever it held has been taken back, or has lapsed.
LINGER_S = 60.0
Then = Callable[[Any], None]


def clock() -> float:
    """Seconds, on a clock that also runs while the machine is suspended, where there is one."""
    return time.clock_gettime(_CLOCK)


_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Push(List[Any]):
    """What the broker says by itself."""


class Link:
    """redis-py connects and logs in; from then on the bytes are read here, as not all of its versions know pushes.

    `mark` is a time before which nothing that is read now has left the broker: replies come in order, so what stands
    behind the reply to a request has left after that was sent.
    """

    def __init__(self, url: str, timeout: float, on_push: Callable[[List[Any]], None]):
        options: Dict[str, Any] = {"port": 5625, **parse_url(url)}
        kind = options.pop("connection_class", Connection)
        if "path" in options:
            del options["port"]
        self._connection = kind(**options, socket_connect_timeout=timeout)
        self._timeout = timeout
        self._on_push = on_push
        self._due: Deque[Tuple[float, Then]] = collections.deque()
        self._tasks: List[asyncio.Task[None]] = []
        self._writer: Optional[asyncio.StreamWriter] = None
        self.mark = clock()
        self.closed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()

    async def open(self) -> "Link":
        try:
            await asyncio.wait_for(self._connection.connect(), self._timeout)
            self._reader, self._writer = self._connection._reader, self._connection._writer
            self._connection._reader = self._connection._writer = None     # it is not its to close any more
            self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._watch())]
            await self.ask("HELLO", 3)
            await self.ask("CLIENT", "TELL", "ON")
        except BaseException as err:
            self.reset(err)
            raise
        return self

    def send(self, *words: Any, then: Then = lambda reply: None) -> None:
        """then(reply) is called in the turn in which the reply is read; an error reply is an exception."""
        data = self._packed(words)      # may fail, and then no reply is due
        self._due.append((clock(), then))
        self._write(data)

    def say(self, *words: Any) -> None:
        """Sends what is answered by pushes alone."""
        self._write(self._packed(words))

    def _packed(self, words: Tuple[Any, ...]) -> bytes:
        return b"".join(self._connection.pack_command(*words))

    def _write(self, data: bytes) -> None:
        assert self._writer
        self._writer.write(data)

    async def ask(self, *words: Any) -> Any:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def answered(reply: Any) -> None:
            if not answer.done():
                answer.set_result(reply)
        self.send(*words, then=answered)
        reply = await answer
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def quit(self) -> None:
        """Ends it in order: what is held by it is free at once."""
        with contextlib.suppress(OSError, redis.RedisError, asyncio.TimeoutError):
            await asyncio.wait_for(self.ask("QUIT"), self._timeout)
        self.reset(redis.ConnectionError("closed"), orderly=True)
        await asyncio.wait(self._tasks)

    def reset(self, why: BaseException, orderly: bool = False) -> None:
        """Gives it up. A reset: after an orderly end the broker would release what another one is to take back."""
        if self.closed.done():
            return
        self.closed.set_result(why)
        for task in self._tasks:
            task.cancel()
        for _, then in self._due:
            then(redis.ConnectionError("the connection to the broker has ended: %s" % why))
        if not self._writer:
            return
        sock, transport = self._writer.get_extra_info("socket"), self._writer.transport
        if orderly:
            transport.close()
        elif sock.family == socket.AF_UNIX:
            asyncio.get_running_loop().call_later(LINGER_S, transport.abort)
        else:
            if sock.fileno() >= 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            transport.abort()

    async def _read(self) -> None:
        try:
            while not self.closed.done():
                value = await self._value()
                if isinstance(value, Push):
                    self._on_push(value)
                else:
                    self.mark, then = self._due.popleft()
                    then(value)
        except Exception as err:    # pylint: disable=broad-except
            self.reset(err)

    async def _value(self) -> Any:
        line = await self._reader.readuntil(b"\r\n")
        kind, text = line[:1], line[1:-2]
        if kind in b"*>%":
            count = int(text) * (2 if kind == b"%" else 1)
            values = [await self._value() for _ in range(count)]
            return Push(values) if kind == b">" else values
        if kind == b"$":
            text = (await self._reader.readexactly(int(text) + 2))[:-2]
        if kind in b"+$":
            return text.decode("utf-8", "surrogateescape")
        if kind == b":":
            return int(text)
        if kind == b"-":
            return redis.ResponseError(text.decode("utf-8", "replace"))
        if kind == b"_":
            return None
        raise redis.ConnectionError("the broker has sent something that is not RESP3: %r" % line)

    async def _watch(self) -> None:
        """Resets it when the broker is silent. By counting, as this process may have been stopped meanwhile."""
        missed = 0
        while missed < 4:
            mark = self.mark
            self.send("PING")
            await asyncio.sleep(self._timeout / 4)
            missed = missed + 1 if self.mark == mark else 0
        self.reset(redis.TimeoutError("the broker has been silent for %g s" % self._timeout))
