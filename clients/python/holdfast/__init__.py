"""Locks of the broker holdfastd, for threads; for asyncio see holdfast.asyncio.

    with holdfast.Client("broker-a:5625", "broker-b:5625") as client:
        with client.lock("invoice:42", wait=5) as hold:
            write(hold.token)
"""

import asyncio as _asyncio
import os
import threading
from types import TracebackType
from typing import Any, Coroutine, Optional, Type, TypeVar

from ._core import BaseHold, BaseLock, Core
from .errors import AlreadyHeld, Disconnected, LockError, LockLost, NotGranted, Refused

__all__ = ["AlreadyHeld", "Client", "Disconnected", "Hold", "Lock", "LockError", "LockLost", "NotGranted",
           "Refused"]
T = TypeVar("T")


class Hold(BaseHold):
    """A lock that is held. Ask `held`, or call `check()`, before what must not be done without it."""

    def release(self) -> None:
        """Gives it back. Raises LockLost when it was not held any more."""
        self._core._call(self._release())


class Lock(BaseLock):
    """What `with` takes; made by Client.lock(). Threads may share it."""

    def acquire(self) -> Hold:
        """Takes it by hand, without regard to re-entry. Raises NotGranted, Refused or Disconnected."""
        hold, client = Hold(self), self._client
        try:
            client._call(client._ask(hold))
        except BaseException:    # such as KeyboardInterrupt, also just after the grant
            if not client._loop.is_closed():
                client._loop.call_soon_threadsafe(client._abandon, hold)
            raise
        return hold

    def __enter__(self) -> Hold:
        who = threading.get_ident()
        hold: Optional[Hold] = self._enter(who)
        if hold is None:
            hold = self.acquire()
            self._entered(who, hold)
        return hold

    def __exit__(self, kind: Optional[Type[BaseException]], err: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        hold = self._leave(threading.get_ident())
        try:
            if hold is not None:
                hold.release()
        except LockLost:
            if kind is None:
                raise


class Client(Core[Lock]):
    """The locks of a process: one connection to one of the brokers, from which it moves to another when it has to.

    brokers: URLs of redis-py or host:port (port 5625), for several of them in the order of preference: they are asked, as
    Sentinels are, for the one to use as `service`. timeout: seconds of silence after which a broker is given up. Connects
    at once, and raises Disconnected when no broker can be reached; later it connects anew by itself, in a thread of its own,
    which on_event is called in, too. Make it after fork(), not before.
    """

    _kind = Lock

    def __init__(self, *brokers: str, service: str = "holdfast", timeout: float = 3.0):
        super().__init__(*brokers, service=service, timeout=timeout)
        self._pid, self._loop = os.getpid(), _asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="holdfast", daemon=True)
        self._thread.start()
        try:
            self._call(self._open())
        except BaseException:
            self.close()
            raise

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        if os.getpid() != self._pid or self._loop.is_closed() or threading.current_thread() is self._thread:
            work.close()
            raise Disconnected("the client is closed, or was made before fork(), or is called by on_event")
        future = _asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Ends the connection. What is held is released, but for locks with a lease, which end with that."""
        if not self._loop.is_closed():
            self._call(self._shut())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()
