"""What the clients for threads and for asyncio share: one connection, all requests and holds of a process, in one loop."""

import asyncio
import itertools
import logging
import math
import secrets
from dataclasses import dataclass
from functools import partial
from typing import Any, Callable, Dict, Generic, List, Optional, Set, Tuple, Type, TypeVar
from urllib.parse import urlsplit

import redis

from ._link import Link, clock
from .errors import AlreadyHeld, Disconnected, LockLost, NotGranted, Refused

log = logging.getLogger("holdfast")
OnEvent = Callable[[Any, str], None]
AnyLock = TypeVar("AnyLock", bound="BaseLock")
RETRY_S = 0.1


@dataclass(frozen=True, eq=False)
class BaseLock:
    """What is asked for, by Client.lock(); times in seconds."""

    _client: Any
    _names: Tuple[str, ...]
    _wait: Optional[float]          # None: for ever; 0: one try
    _lease: Optional[float]         # None: renewed by the broker for as long as this process lives
    _max_hold: Optional[float]
    _shared: bool
    _limit: Optional[int]
    _fair: bool
    _reentrant: bool
    _on_event: Optional[OnEvent]

    def words(self, wait: Optional[float]) -> List[Any]:
        times = (("WAIT", wait), ("LEASE", self._lease), ("MAXHOLD", self._max_hold))
        words = [word for key, value in times if value is not None for word in (key, math.ceil(value * 1000))]
        words += ["SHARED"] * self._shared + ["FAIR"] * self._fair
        return words + (["LIMIT", self._limit] if self._limit is not None else [])

    def _enter(self, who: Any) -> Any:
        """The hold that this task or thread is inside of, entered once more; None: it is not."""
        inside = self._client._inside
        holds = [inside[who, name] for name in self._names if (who, name) in inside]
        if not holds:
            return None
        if not self._reentrant or holds[0].names != self._names:
            raise AlreadyHeld("%s is held here already; say reentrant=True if it may be entered again" % quoted(self._names))
        holds[0].check()
        holds[0]._entered += 1
        return holds[0]

    def _entered(self, who: Any, hold: "BaseHold") -> None:
        self._client._inside.update(dict.fromkeys(((who, name) for name in self._names), hold))

    def _leave(self, who: Any) -> Any:
        """What is to be released now."""
        hold = self._client._inside[who, self._names[0]]
        hold._entered -= 1
        if hold._entered:
            return None
        for name in self._names:
            del self._client._inside[who, name]
        return hold


def quoted(names: Tuple[str, ...]) -> str:
    return "'%s'" % "', '".join(names)


class BaseHold:
    """A lock, or several, from when they were granted until they are released or lost; before, the request for them."""

    def __init__(self, lock: BaseLock):
        self.names = lock._names
        self.lost: Optional[str] = None     #: why it is held no more (holdfast-protocol(7), Pushes), or None
        self._lock, self._core = lock, lock._client
        self._owner = ""
        self._sent: Optional[float] = None  # when it was asked for
        self._tokens: Dict[str, int] = {}   # once it is granted
        self._ends: Dict[str, float] = {}
        self._jeopardy: Set[str] = set()    # each name is told of by itself
        self._entered = 1
        self._over = False                  # given back
        self._unsure = False                # a broker may have been told so already
        self._until = math.inf if lock._wait is None else clock() + lock._wait
        self._answer: "asyncio.Future[None]"    # that it is granted; later, that it is given back
        self._body: Optional["asyncio.Task[Any]"] = None
        self._timer: Optional[asyncio.TimerHandle] = None

    @property
    def tokens(self) -> Tuple[int, ...]:
        """The fencing tokens, in the order of the names. A lock that was taken back has a larger one: read it anew."""
        return tuple(self._tokens[name] for name in self.names)

    @property
    def token(self) -> int:
        """The fencing token of the (first) name."""
        return self._tokens[self.names[0]]

    @property
    def in_jeopardy(self) -> bool:
        """Whether a renewal has failed, of one of the names; the broker goes on trying."""
        return bool(self._jeopardy)

    @property
    def remaining(self) -> float:
        """For how many seconds it may be relied on without hearing more; counted from before the request was sent."""
        return 0.0 if self.lost or self._over else max(0.0, min(self._ends.values()) - clock())

    @property
    def held(self) -> bool:
        """Whether it is held, by this process's own clock."""
        return self.remaining > 0

    def check(self) -> None:
        """Raises LockLost unless it is held."""
        if not self.held:
            raise LockLost("%s is not held any more: %s" % (quoted(self.names), self.lost or (
                "it has been released" if self._over else "expired")))

    async def _release(self) -> None:
        if not self.lost and not self._over:
            await self._core._give_back(self)
        if self.lost:
            self.check()

    def _tell(self, event: str) -> None:
        if self._lock._on_event:
            try:
                self._lock._on_event(self, event)
            except Exception:   # pylint: disable=broad-except
                log.exception("on_event of '%s' has failed", self.names[0])

    def _lose(self, reason: str) -> None:
        self.lost = reason
        self._core._forget(self)
        if self._body:
            self._body.cancel()
        self._tell("lost")

    def _watch(self) -> None:
        """Until its deadline, which renewals put off."""
        left = min(self._ends.values()) - clock()
        if left > 0:
            self._timer = asyncio.get_running_loop().call_later(left + 0.001, self._watch)
        elif self._over:
            self._done()                       # nobody could be told, and it has lapsed
        elif not self.lost:
            self._lose("expired")
            self._core._give_back(self)        # a broker may renew it still

    def _done(self) -> None:
        if self._timer:
            self._timer.cancel()
        if not self._answer.done():
            self._answer.set_result(None)


class Core(Generic[AnyLock]):
    """Lives in one event loop.

    Nothing is sent twice blindly: a request whose connection has ended is given back, as it may have been granted, and
    asked anew by another owner. Each acquisition has an owner of its own, which is the tag of its request too.
    """

    _kind: Type[AnyLock]

    def __init__(self, *brokers: str, service: str = "holdfast", timeout: float = 3.0):
        if not brokers:
            raise ValueError("no broker is named")
        self._service, self._timeout = service, timeout
        self._brokers = [broker if "://" in broker else "redis://" + broker for broker in brokers]
        self._numbers, self._prefix = itertools.count(), "py-" + secrets.token_hex(12)
        self._link: Optional[Link] = None
        self._named: List[str] = []
        self._why: object = "not yet connected"
        self._all: Dict[str, BaseHold] = {}     # by owner: asked for, held, or not yet given back
        self._holds: Dict[Tuple[str, int], BaseHold] = {}   # by name and token
        self._running: Optional["asyncio.Task[None]"] = None
        self._inside: Dict[Tuple[Any, str], BaseHold] = {}

    def lock(self, *names: str, wait: Optional[float] = None, lease: Optional[float] = None,
             max_hold: Optional[float] = None, shared: bool = False, limit: Optional[int] = None, fair: bool = False,
             reentrant: bool = False, on_event: Optional[OnEvent] = None) -> AnyLock:
        """The lock of this name, or all of several; options: see README.

        `with`, with asyncio `async with`, takes it and gives the Hold. With asyncio the task is cancelled when it is lost
        inside, and LockLost raised at the end.
        """
        if not names:
            raise ValueError("no lock is named")
        if not all(isinstance(name, str) for name in names):
            raise TypeError("the name of a lock is a str")
        return self._kind(self, names, wait, lease, max_hold, shared, limit, fair, reentrant, on_event)

    # ---- the connection

    async def _open(self) -> None:
        if self._running is None:
            link = await self._find()
            if link is None:
                raise Disconnected("no broker can be reached: %s" % self._why)
            self._running = asyncio.create_task(self._run(link))

    async def _shut(self) -> None:
        if self._running:
            self._running.cancel()
            await asyncio.wait([self._running])
        link, self._link, self._running = self._link, None, None
        for hold in list(self._all.values()):
            if hold._over:
                hold._done()
            elif hold._tokens:
                hold._lose("closed")
            elif not hold._answer.done():
                hold._answer.set_exception(Disconnected("the client has been closed"))
        if link:
            await link.quit()

    async def _run(self, link: Optional[Link]) -> None:
        while True:
            while link is None:
                self._give_up_late_ones()
                await asyncio.sleep(RETRY_S)
                link = await self._find()
            self._link = link
            for hold in list(self._all.values()):
                if hold._over:
                    self._unlock(hold)
                elif hold._tokens:
                    self._take_back(hold, *hold.names)
                else:
                    self._ask_anew(hold)
            self._why = await link.closed
            log.warning("the connection to the broker has ended: %s", self._why)
            self._link = link = None

    async def _find(self) -> Optional[Link]:
        for url in self._brokers:
            try:
                link = await self._connected(url)
                return link if len(self._brokers) == 1 else await self._follow(link, url)
            except (OSError, redis.RedisError, asyncio.TimeoutError, ValueError) as err:
                self._why = "%s: %s" % (urlsplit(url).hostname, err or "no answer")
        return None

    async def _connected(self, url: str) -> Link:
        return await Link(url, self._timeout, self._pushed).open()

    async def _follow(self, link: Link, url: str) -> Link:
        """To the broker that this one names, as a Sentinel does."""
        try:
            self._named = await link.ask("SENTINEL", "get-master-addr-by-name", self._service)
            if not self._named:
                raise redis.ConnectionError("it does not serve as '%s'" % self._service)
            host, port = self._named
            parts = urlsplit(url)
            if (parts.hostname, str(parts.port or 5625)) != (host, port):
                await link.quit()
                login, at, _ = parts.netloc.rpartition("@")
                place = "%s:%s" % ("[%s]" % host if ":" in host else host, port)
                link = await self._connected(parts._replace(netloc=login + at + place).geturl())
        except BaseException as err:
            link.reset(err)
            raise
        link.say("SUBSCRIBE", "+switch-master")
        return link

    def _leave(self, why: str) -> None:
        if self._link:
            self._link.reset(redis.ConnectionError(why))

    def _pushed(self, push: List[Any]) -> None:
        kind = push[0]
        if kind == "async":
            self._ended(*push[1:])
        elif kind == "message":
            if push[2].split(" ")[1:3] == self._named:
                self._leave("it names another broker")
        elif kind in ("renewed", "jeopardy", "safe", "lost"):
            self._told(kind, self._holds.get((push[1], push[2])), *push[1:])

    def _told(self, kind: str, hold: Optional[BaseHold], name: str, _: int, what: Any) -> None:
        if hold and kind == "lost":
            hold._lose(what)
        elif hold and self._link:
            hold._ends[name] = max(hold._ends[name], self._link.mark + what / 1000)
            (hold._jeopardy.add if kind == "jeopardy" else hold._jeopardy.discard)(name)
            if kind != "renewed":
                hold._tell(kind)

    # ---- taking

    async def _ask(self, hold: BaseHold) -> None:
        """Done when it is granted; who does not wait for that any more calls _abandon()."""
        if self._running is None:
            raise Disconnected("the client is not connected")
        hold._answer = asyncio.get_running_loop().create_future()
        self._send(hold)
        await hold._answer

    def _send(self, hold: BaseHold) -> None:
        hold._owner = "%s:%d" % (self._prefix, next(self._numbers))
        self._all[hold._owner] = hold
        if self._link:
            hold._sent = clock()
            left = hold._until - hold._sent
            wait = 0.0 if left == math.inf else left if left > 0 else None
            try:
                self._link.send(*self._on("LOCK", hold), *hold._lock.words(wait), "ASYNC", hold._owner,
                                then=partial(self._queued, hold._owner))
            except Exception as err:    # pylint: disable=broad-except # it cannot be written in words
                del self._all[hold._owner]
                hold._answer.set_exception(err)

    @staticmethod
    def _on(command: str, hold: BaseHold) -> List[Any]:
        names = hold.names
        return ([command, names[0]] if len(names) == 1 else ["M" + command, len(names), *names]) + ["OWNER", hold._owner]

    def _queued(self, owner: str, reply: Any) -> None:
        if isinstance(reply, redis.ResponseError):
            self._ended(owner, "error", str(reply))

    def _ended(self, owner: str, how: str, *what: Any) -> None:
        hold = self._all.get(owner)
        if hold is None:
            return
        if how == "granted":
            self._granted(hold, *what)
        elif how == "error" and not hold._answer.done() and self._may_move(hold, what[0]):
            self._leave(what[0])
        else:
            del self._all[owner]
            if not hold._answer.done():
                hold._answer.set_exception(Refused(what[0]) if how == "error" else
                                           NotGranted("%s was not to be had in time" % quoted(hold.names)))

    def _may_move(self, hold: BaseHold, error: str) -> bool:
        return (error.startswith(("DRAINING ", "PAUSED ")) and len(self._brokers) > 1
                and clock() < hold._until + self._timeout)

    def _granted(self, hold: BaseHold, tokens: Any, validity: int, waited: int) -> None:
        assert self._link and hold._sent is not None
        hold._tokens = dict(zip(hold.names, tokens if isinstance(tokens, list) else [tokens]))
        deadline = max(hold._sent + waited / 1000, self._link.mark) + validity / 1000
        hold._ends = dict.fromkeys(hold.names, deadline)
        self._holds.update(dict.fromkeys(hold._tokens.items(), hold))
        abandoned = hold._answer.done()
        if not abandoned:
            hold._answer.set_result(None)   # first: what is over already is given back by _watch(), with an answer of its own
        hold._watch()
        if abandoned and not hold._over:
            self._give_back(hold)

    def _abandon(self, hold: BaseHold) -> None:
        """Its task or thread was stopped: what is still to come is taken in by _ended."""
        if self._all.get(hold._owner) is not hold or hold._over:
            return
        if hold._tokens:
            self._give_back(hold)
        elif hold._sent is None:
            del self._all[hold._owner]
        elif self._link:
            self._link.send("CANCEL", hold._owner)

    def _ask_anew(self, hold: BaseHold) -> None:
        assert self._link
        del self._all[hold._owner]
        if hold._sent is not None:
            self._link.send(*self._on("UNLOCK", hold))
        if not hold._answer.done():
            self._send(hold)

    def _give_up_late_ones(self) -> None:
        for hold in list(self._all.values()):
            if not hold._tokens and clock() > hold._until + self._timeout and not hold._answer.done():
                hold._answer.set_exception(Disconnected("no broker can be reached: %s" % self._why))
                if hold._sent is None:
                    del self._all[hold._owner]

    # ---- keeping

    def _take_back(self, hold: BaseHold, *names: str) -> None:
        for name in names:
            lease = [] if hold._lock._lease is None else ["LEASE", max(4, int(hold.remaining * 1000))]
            if self._link and not hold._over and not hold.lost:
                then = partial(self._taken_back, hold, name, clock())
                self._link.send("RENEW", name, "OWNER", hold._owner, *lease, then=then)

    def _taken_back(self, hold: BaseHold, name: str, sent: float, reply: Any) -> None:
        if hold._over or hold.lost or isinstance(reply, redis.ConnectionError):
            return
        if isinstance(reply, list):
            del self._holds[name, hold._tokens[name]]
            hold._tokens[name], hold._ends[name] = reply[0], sent + reply[1] / 1000
            self._holds[name, reply[0]] = hold
        elif str(reply).startswith("NOTHELD"):
            hold._lose("gone")
        else:
            log.warning("'%s' is not yet taken back: %s", name, reply)
            asyncio.get_running_loop().call_later(RETRY_S, self._take_back, hold, name)

    # ---- giving back

    def _give_back(self, hold: BaseHold) -> "asyncio.Future[None]":
        """Done when a broker has confirmed it, or when it has lapsed."""
        self._forget(hold)
        hold._over, hold._answer = True, asyncio.get_running_loop().create_future()
        self._all[hold._owner] = hold
        self._unlock(hold)
        return hold._answer

    def _forget(self, hold: BaseHold) -> None:
        self._all.pop(hold._owner, None)
        for key in hold._tokens.items():
            self._holds.pop(key, None)

    def _unlock(self, hold: BaseHold) -> None:
        if self._link:
            self._link.send(*self._on("UNLOCK", hold), then=partial(self._unlocked, hold))

    def _unlocked(self, hold: BaseHold, reply: Any) -> None:
        if isinstance(reply, redis.ConnectionError):
            hold._unsure = True
            return
        self._forget(hold)
        if hold._answer.done():
            return
        if not hold._unsure and (str(reply).startswith("NOTHELD") or isinstance(reply, int) and reply < len(hold.names)):
            hold.lost = hold.lost or "gone"
        elif isinstance(reply, Exception):
            log.warning("%s lapses with its lease: %s", quoted(hold.names), reply)
        hold._done()
