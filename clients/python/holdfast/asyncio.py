"""Locks of holdfast for asyncio."""

import asyncio
from types import TracebackType
from typing import Any, Optional, Type

from ._core import BaseHold, BaseLock, Core
from .errors import LockLost

__all__ = ["Client", "Hold", "Lock"]


class Hold(BaseHold):
    """A lock that is held. Ask `held`, or call `check()`, before what must not be done without it."""

    async def release(self) -> None:
        """Gives it back. Raises LockLost when it was not held any more."""
        await self._release()


class Lock(BaseLock):
    """What `async with` takes; made by Client.lock()."""

    async def acquire(self) -> Hold:
        """Takes it by hand, without regard to re-entry. Raises NotGranted, Refused or Disconnected."""
        hold = Hold(self)
        try:
            await self._client._ask(hold)
        except asyncio.CancelledError:
            self._client._abandon(hold)
            raise
        return hold

    async def __aenter__(self) -> Hold:
        task = asyncio.current_task()
        hold: Optional[Hold] = self._enter(task)
        if hold is None:
            hold = await self.acquire()
            self._entered(task, hold)
            hold._body = task
            if task and hold.lost:
                task.cancel()
        return hold

    async def __aexit__(self, kind: Optional[Type[BaseException]], err: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        task = asyncio.current_task()
        hold: Optional[Hold] = self._leave(task)
        if hold is None:
            return
        hold._body = None
        cancelled = hold.lost is not None
        if task and cancelled and task.uncancel() > 0:
            return    # somebody else has cancelled it, too
        try:
            await hold.release()
        except LockLost:
            if kind is None or (cancelled and kind is asyncio.CancelledError):
                raise


class Client(Core[Lock]):
    """The locks of a process: one connection to one of the brokers, from which it moves to another when it has to.

    brokers: URLs of redis-py or host:port (port 5625), for several of them in the order of preference: they are asked, as
    Sentinels are, for the one to use as `service`. timeout: seconds of silence after which a broker is given up.
    """

    _kind = Lock

    async def connect(self) -> None:
        """Connects; raises Disconnected when no broker can be reached. Later it connects anew by itself."""
        await self._open()

    async def close(self) -> None:
        """Ends the connection. What is held is released, but for locks with a lease, which end with that."""
        await self._shut()

    async def __aenter__(self) -> "Client":
        await self.connect()
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self.close()
