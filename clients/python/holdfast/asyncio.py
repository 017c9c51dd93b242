"""Locks of holdfast for asyncio."""

import asyncio
from types import TracebackType
from typing import Any, Optional, Tuple, Type

from ._core import BaseHold, Core, OnEvent, Options
from .errors import LockLost

__all__ = ["Client", "Hold", "Lock"]


class Hold(BaseHold):
    """A lock that is held. Ask `held`, or call `check()`, before what must not be done without it."""

    async def release(self) -> None:
        """Gives it back. Raises LockLost when it was not held any more."""
        if not self.lost and not self._over:
            await self._core.release(self)
        if self.lost:
            raise self._not_held()


class Lock:
    """What `async with` takes; made by Client.lock()."""

    def __init__(self, core: Core[Hold], names: Tuple[str, ...], reentrant: bool, options: Options):
        self._core, self._names, self._reentrant, self._options = core, names, reentrant, options

    async def acquire(self) -> Hold:
        """Takes it by hand, without regard to re-entry. Raises NotGranted, Refused or Disconnected."""
        return await self._core.acquire(self._names, self._options)

    async def __aenter__(self) -> Hold:
        task = asyncio.current_task()
        assert task
        hold = self._core.enter(task, self._names, self._reentrant)
        if hold is None:
            hold = await self.acquire()
            self._core.entered(task, hold)
            hold._body = task
            if hold.lost:
                task.cancel()
        return hold

    async def __aexit__(self, kind: Optional[Type[BaseException]], err: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        task = asyncio.current_task()
        assert task
        hold = self._core.leave(task, self._names)
        if hold is None:
            return
        hold._body = None
        cancelled = hold.lost is not None
        if cancelled and task.uncancel() > 0:
            return    # somebody else has cancelled it, too
        try:
            await hold.release()
        except LockLost:
            if kind is None or (cancelled and kind is asyncio.CancelledError):
                raise


class Client:
    """The locks of a process: one connection to one of the brokers, from which it moves to another when it has to.

    brokers: URLs of redis-py or host:port (port 5625), for several of them in the order of preference: they are asked, as
    Sentinels are, for the one to use as `service`. timeout: seconds of silence after which a broker is given up.
    """

    def __init__(self, *brokers: str, service: str = "holdfast", timeout: float = 3.0):
        self._core: Core[Hold] = Core(Hold, brokers, service, timeout)

    def lock(self, *names: str, wait: Optional[float] = None, lease: Optional[float] = None,
             max_hold: Optional[float] = None, shared: bool = False, limit: Optional[int] = None, fair: bool = False,
             reentrant: bool = False, on_event: Optional[OnEvent] = None) -> Lock:
        """The lock of this name, or all of several; options: see README.

        `async with` takes it and gives the Hold. When it is lost inside, the task is cancelled, and LockLost raised at the end.
        """
        return Lock(self._core, names, reentrant,
                    Options(wait, lease, max_hold, shared, limit, fair, on_event))

    async def connect(self) -> None:
        """Connects; raises Disconnected when no broker can be reached. Later it connects anew by itself."""
        await self._core.connect()

    async def close(self) -> None:
        """Ends the connection. What is held is released, but for locks with a lease, which end with that."""
        await self._core.close()

    async def __aenter__(self) -> "Client":
        await self.connect()
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self.close()
