"""What the clients for threads and for asyncio share: one connection, all requests and holds of a process, in one loop."""

import asyncio
import itertools
import logging
import math
import secrets
from dataclasses import dataclass
from functools import partial
from typing import Any, Callable, Dict, Generic, List, Optional, Tuple, Type, TypeVar
from urllib.parse import urlsplit

import redis

from ._link import Link, clock
from .errors import AlreadyHeld, Disconnected, LockLost, NotGranted, Refused

log = logging.getLogger("holdfast")
OnEvent = Callable[[Any, str], None]
RETRY_S = 0.1


@dataclass(frozen=True)
class Options:
    """Of a request; times in seconds."""

    wait: Optional[float] = None      # None: for ever; 0: one try
    lease: Optional[float] = None     # None: renewed by the broker for as long as this process lives
    max_hold: Optional[float] = None
    shared: bool = False
    limit: Optional[int] = None
    fair: bool = False
    on_event: Optional[OnEvent] = None

    def words(self, wait: Optional[float]) -> List[Any]:
        times = (("WAIT", wait), ("LEASE", self.lease), ("MAXHOLD", self.max_hold))
        words = [word for key, value in times if value is not None for word in (key, math.ceil(value * 1000))]
        words += ["SHARED"] * self.shared + ["FAIR"] * self.fair
        return words + (["LIMIT", self.limit] if self.limit is not None else [])


class BaseHold:
    """A lock, or several, from when they were granted until they are released or lost."""

    def __init__(self, core: "Core[Any]", names: Tuple[str, ...], owner: str, options: Options):
        self.names = names
        self.lost: Optional[str] = None     #: why it is held no more (holdfast-protocol(7), Pushes), or None
        self.in_jeopardy = False            #: a renewal has failed; the broker goes on trying
        self._core, self._owner, self._options = core, owner, options
        self._tokens: Dict[str, int] = {}
        self._ends: Dict[str, float] = {}
        self._over = False
        self._sent_before = False
        self._released: "asyncio.Future[None]" = asyncio.get_running_loop().create_future()
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
            raise self._not_held()

    def _tell(self, event: str) -> None:
        if self._options.on_event:
            try:
                self._options.on_event(self, event)
            except Exception:   # pylint: disable=broad-except
                log.exception("on_event of '%s' has failed", self.names[0])

    def _lose(self, reason: str) -> None:
        self.lost = reason
        self._core.forget(self)
        self._unwatch()
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
        else:
            self._lose("expired")
            self._core.release(self)           # a broker may renew it still

    def _unwatch(self) -> None:
        if self._timer:
            self._timer.cancel()

    def _done(self) -> None:
        self._unwatch()
        if not self._released.done():
            self._released.set_result(None)

    def _not_held(self) -> LockLost:
        return LockLost("'%s' is not held any more: %s" % ("', '".join(self.names), self.lost or (
            "it has been released" if self._over else "expired")))


AnyHold = TypeVar("AnyHold", bound=BaseHold)


@dataclass
class Request(Generic[AnyHold]):
    names: Tuple[str, ...]
    options: Options
    owner: str
    answer: "asyncio.Future[AnyHold]"
    until: float
    sent: Optional[float] = None


class Core(Generic[AnyHold]):
    """Lives in one event loop.

    Nothing is sent twice blindly: a request whose connection has ended is given back, as it may have been granted, and
    asked anew by another owner. Each acquisition has an owner of its own, which is the tag of its request too.
    """

    def __init__(self, kind: Type[AnyHold], brokers: Tuple[str, ...], service: str, timeout: float):
        if not brokers:
            raise ValueError("no broker is named")
        self._kind, self._service, self._timeout = kind, service, timeout
        self._brokers = [broker if "://" in broker else "redis://" + broker for broker in brokers]
        self._numbers, self._prefix = itertools.count(), "py-" + secrets.token_hex(12)
        self._link: Optional[Link] = None
        self._named: List[str] = []
        self._why: object = "not yet connected"
        self._requests: Dict[str, Request[AnyHold]] = {}
        self._holds: Dict[Tuple[str, int], AnyHold] = {}
        self._releasing: Dict[str, AnyHold] = {}
        self._running: Optional["asyncio.Task[None]"] = None
        self.inside: Dict[Tuple[Any, str], List[Any]] = {}

    # ---- the connection

    async def connect(self) -> None:
        if self._running is None:
            link = await self._find()
            if link is None:
                raise Disconnected("no broker can be reached: %s" % self._why)
            self._running = asyncio.create_task(self._run(link))

    async def close(self) -> None:
        if self._running:
            self._running.cancel()
            await asyncio.wait([self._running])
        link, self._link, self._running = self._link, None, None
        for request in self._requests.values():
            if not request.answer.done():
                request.answer.set_exception(Disconnected("the client has been closed"))
        for hold in list(self._holds.values()):
            hold._lose("closed")
        if link:
            await link.quit()

    async def _run(self, link: Optional[Link]) -> None:
        while True:
            while link is None:
                self._give_up_late_ones()
                await asyncio.sleep(RETRY_S)
                link = await self._find()
            self._link = link
            for released in list(self._releasing.values()):
                self._unlock(released)
            for hold in set(self._holds.values()):
                self._take_back(hold)
            for request in list(self._requests.values()):
                self._ask_anew(request)
            self._why = await link.closed
            log.warning("the connection to the broker has ended: %s", self._why)
            self._link = link = None

    async def _find(self) -> Optional[Link]:
        for url in self._brokers:
            try:
                link = await Link(url, self._timeout, self._pushed).open()
                if len(self._brokers) > 1:
                    link = await self._follow(link, url)
                return link
            except (OSError, redis.RedisError, asyncio.TimeoutError, ValueError) as err:
                self._why = "%s: %s" % (urlsplit(url).hostname, err or "no answer")
        return None

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
                link = await Link(parts._replace(netloc=login + at + place).geturl(), self._timeout, self._pushed).open()
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
        elif kind == "message" and push[2].split(" ")[1:3] == self._named:
            self._leave("it names another broker")
        elif kind in ("renewed", "jeopardy", "safe", "lost"):
            hold = self._holds.get((push[1], push[2]))
            if hold is None:
                return
            if kind == "lost":
                hold._lose(push[3])
                return
            assert self._link
            hold._ends[push[1]] = max(hold._ends[push[1]], self._link.mark + push[3] / 1000)
            hold.in_jeopardy = kind == "jeopardy"
            if kind != "renewed":
                hold._tell(kind)

    # ---- taking

    async def acquire(self, names: Tuple[str, ...], options: Options) -> AnyHold:
        if not names:
            raise ValueError("no lock is named")
        if self._running is None:
            raise Disconnected("the client is not connected")
        until = math.inf if options.wait is None else clock() + options.wait
        request = Request[AnyHold](names, options, self._owner(), asyncio.get_running_loop().create_future(), until)
        self._requests[request.owner] = request
        if self._link:
            self._send(self._link, request)
        try:
            return await request.answer
        except asyncio.CancelledError:
            self._abandon(request)
            raise

    def _owner(self) -> str:
        return "%s:%d" % (self._prefix, next(self._numbers))

    def _send(self, link: Link, request: Request[AnyHold]) -> None:
        request.sent = clock()
        left = request.until - request.sent
        wait = 0.0 if left == math.inf else left if left > 0 else None
        names = request.names
        words = ["LOCK", names[0]] if len(names) == 1 else ["MLOCK", len(names), *names]
        link.send(*words, "OWNER", request.owner, *request.options.words(wait), "ASYNC", request.owner,
                  then=partial(self._queued, request))

    def _queued(self, request: Request[AnyHold], reply: Any) -> None:
        if isinstance(reply, redis.ResponseError):
            self._ended(request.owner, "error", str(reply))

    def _ended(self, owner: str, how: str, *what: Any) -> None:
        request = self._requests.pop(owner, None)
        if request is None:
            return
        if how == "granted":
            self._granted(request, *what)
        elif request.answer.done():
            return
        elif how == "error" and self._may_move(request, what[0]):
            self._requests[owner] = request
            self._leave(what[0])
        elif how == "error":
            request.answer.set_exception(Refused(what[0]))
        else:
            request.answer.set_exception(NotGranted("'%s' was not to be had in time" % "', '".join(request.names)))

    def _may_move(self, request: Request[AnyHold], error: str) -> bool:
        return (error.startswith(("DRAINING ", "PAUSED ")) and len(self._brokers) > 1
                and clock() < request.until + self._timeout)

    def _granted(self, request: Request[AnyHold], tokens: Any, validity: int, waited: int) -> None:
        assert self._link and request.sent is not None
        hold = self._kind(self, request.names, request.owner, request.options)
        hold._tokens = dict(zip(request.names, tokens if isinstance(tokens, list) else [tokens]))
        deadline = max(request.sent + waited / 1000, self._link.mark) + validity / 1000
        hold._ends = dict.fromkeys(request.names, deadline)
        self._holds.update(dict.fromkeys(hold._tokens.items(), hold))
        hold._watch()
        if request.answer.done():
            self.release(hold)
        else:
            request.answer.set_result(hold)

    def _abandon(self, request: Request[AnyHold]) -> None:
        """Its task was cancelled: the end that is still to come is taken in by _ended."""
        if not request.answer.cancelled() and not request.answer.exception():
            self.release(request.answer.result())
        elif request.owner in self._requests and self._link and request.sent is not None:
            self._link.send("CANCEL", request.owner)

    def _ask_anew(self, request: Request[AnyHold]) -> None:
        assert self._link
        del self._requests[request.owner]
        if request.sent is not None:
            self._link.send(*self._unlock_words(request.names, request.owner))
        if not request.answer.done():
            request.owner = self._owner()
            self._requests[request.owner] = request
            self._send(self._link, request)

    def _give_up_late_ones(self) -> None:
        for request in self._requests.values():
            if clock() > request.until + self._timeout and not request.answer.done():
                request.answer.set_exception(Disconnected("no broker can be reached: %s" % self._why))

    # ---- keeping

    def _take_back(self, hold: AnyHold, name: Optional[str] = None) -> None:
        for one in [name] if name else hold.names:
            lease = [] if hold._options.lease is None else ["LEASE", max(4, int(hold.remaining * 1000))]
            if self._link and not hold._over and not hold.lost:
                then = partial(self._taken_back, hold, one, clock())
                self._link.send("RENEW", one, "OWNER", hold._owner, *lease, then=then)

    def _taken_back(self, hold: AnyHold, name: str, sent: float, reply: Any) -> None:
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

    def release(self, hold: AnyHold) -> "asyncio.Future[None]":
        """Done when a broker has confirmed it, or when it has lapsed."""
        self.forget(hold)
        hold._over = True
        self._releasing[hold._owner] = hold
        self._unlock(hold)
        return hold._released

    def forget(self, hold: AnyHold) -> None:
        for key in hold._tokens.items():
            self._holds.pop(key, None)

    @staticmethod
    def _unlock_words(names: Tuple[str, ...], owner: str) -> List[Any]:
        return (["UNLOCK", names[0]] if len(names) == 1 else ["MUNLOCK", len(names), *names]) + ["OWNER", owner]

    def _unlock(self, hold: AnyHold) -> None:
        if self._link:
            self._link.send(*self._unlock_words(hold.names, hold._owner), then=partial(self._unlocked, hold))

    def _unlocked(self, hold: AnyHold, reply: Any) -> None:
        if isinstance(reply, redis.ConnectionError):
            hold._sent_before = True
            return
        self._releasing.pop(hold._owner, None)
        if hold._released.done():
            return
        if not hold._sent_before and (str(reply).startswith("NOTHELD") or isinstance(reply, int) and reply < len(hold.names)):
            hold.lost = hold.lost or "gone"
        elif isinstance(reply, Exception):
            log.warning("'%s' lapses with its lease: %s", "', '".join(hold.names), reply)
        hold._done()

    # ---- re-entry

    def enter(self, who: Any, names: Tuple[str, ...], reentrant: bool) -> Optional[AnyHold]:
        """The hold that this task or thread is inside of, entered once more; None: it is not."""
        entries = [self.inside[who, name] for name in names if (who, name) in self.inside]
        if not entries:
            return None
        hold: AnyHold = entries[0][0]
        if not reentrant or hold.names != names:
            raise AlreadyHeld("'%s' is held here already; say reentrant=True if it may be entered again" % "', '".join(names))
        hold.check()
        entries[0][1] += 1
        return hold

    def entered(self, who: Any, hold: AnyHold) -> None:
        self.inside.update(dict.fromkeys(((who, name) for name in hold.names), [hold, 1]))

    def leave(self, who: Any, names: Tuple[str, ...]) -> Optional[AnyHold]:
        """What is to be released now."""
        entry = self.inside[who, names[0]]
        entry[1] -= 1
        if entry[1]:
            return None
        for name in names:
            del self.inside[who, name]
        hold: AnyHold = entry[0]
        return hold
