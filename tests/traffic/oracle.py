"""What of the replies to random traffic is possible.

Replies: one for each request, in order, of the shape that words.py says; a push only of a known shape. Grants:
tokens of a name rise, none is told to two owners, and no owner is told that it has what another one still has by
what it was told. An owner that certainly has a lock is not told that it has not.

Everything that is judged is certain: a hold counts from the arrival of its reply until its validity, counted
from the last moment at which the reply had not arrived yet, is over; and only until somebody says what may end
it (UNLOCK, RESET, the end of a connection that has acted for this owner, FORCEUNLOCK...). Where requests are
under way that may end it, nothing is concluded.
"""

import collections

import words as w
from respclient import Push, RespError

SLACK_S = 0.15     # between the look at the clock in the broker and the bytes at our socket
KEPT = 0.6         # of its validity a hold is not given up even when its renewals fail
KILLED_S = 10.0    # so long after a master was killed holds may be gone (never given to others, though)
SETTLE_S = 5.0     # so long something said on a connection that has ended may take effect


class Violation(AssertionError):
    """kind: one word for what it is; about: of which command, and what it said, if the kind alone does not tell.
    The shrinker looks for the same of both."""

    def __init__(self, kind, message, about=None):
        super().__init__("%s: %s" % (kind, message))
        self.kind, self.about = kind, about


def sort_of(value):
    """The code of an error, else the type of a reply."""
    return value.code if isinstance(value, RespError) else type(value).__name__


ABOUT_NAMES = ("LOCK", "MLOCK", "UNLOCK", "MUNLOCK", "RENEW", "HOLDS", "FORCEUNLOCK")


class Grant:
    def __init__(self, name, owner, conn, kind, token, sure_until, kept_until):
        self.name, self.owner, self.conn, self.kind, self.token = name, owner, conn, kind, token
        self.sure_until, self.kept_until = sure_until, kept_until
        self.over = False


class Expected:
    """A request that was sent, and what is known of it."""

    def __init__(self, sent, words, owner, at):
        self.words, self.owner, self.at = words, owner, at
        self.sent = sent            # serial number among all events
        self.name = w.full_name(words)
        self.had = None             # the grant that it asks about or gives back
        self.ends = []              # keys of what it may end, until it is answered
        self.shortens = []          # (name, owner) whose hold it may give a shorter lease, until it is answered
        self.left = None            # answers to (UN)SUBSCRIBE still to come


def names_in(words):
    verb = words[0].upper()
    if verb in ("MLOCK", "MUNLOCK"):
        return [str(n) for n in words[2:2 + int(words[1])]]
    return [str(words[1])]


def option(words, name):
    for i, word in enumerate(words[1:], 1):
        if str(word).upper() == name:
            return words[i + 1] if i + 1 < len(words) else True
    return None


def kind_of(words):
    limit = option(words, "LIMIT")
    return "shared" if option(words, "SHARED") else int(limit) if limit else "exclusive"


class Oracle:
    def __init__(self):
        self.serial = 0
        self.live = collections.defaultdict(list)    # name: grants that count
        self.ending = collections.Counter()          # (name, owner), (name,) or (owner,): requests that may end it
        self.shortening = collections.Counter()      # (name, owner): requests that may give it a shorter lease
        self.tainted = {}                            # the same: until when
        self.told = {}                               # (name, owner): tokens
        self.highest = collections.defaultdict(list)  # name: [(serial, highest token told until then)]
        self.owner_of = {}                           # (name, token): owner
        self.killed_at = -KILLED_S
        self.grants = 0
        self.answered_at = collections.Counter()     # keys of both: the last time that such a request was answered
        self.answers = collections.Counter()
        self.stories = collections.defaultdict(lambda: collections.deque(maxlen=40))  # name: what was said last

    def tell(self, now, conn, words, what):
        """For whoever reads of a violation."""
        verb = words[0].upper()
        if verb in ABOUT_NAMES and len(words) > 1:
            for name in names_in(words):
                self.stories[name].append("%.3f connection %d (%s): %s%s" %
                                          (now, conn.number, conn.owner, " ".join(map(str, words)), what))

    def story(self, name):
        return "\n  ".join(["", *self.stories[name]])

    # ---- requests

    def asked(self, conn, words, now):
        self.serial += 1
        self.tell(now, conn, words, " ...")
        verb = words[0].upper()
        owner = option(words, "OWNER") if verb != "OWNER" else None
        owner = str(owner) if owner else conn.owner
        e = Expected(self.serial, words, owner, now)
        if verb in ("LOCK", "MLOCK", "UNLOCK", "MUNLOCK", "RENEW"):
            conn.acted_for.add(owner)
        if verb in ("UNLOCK", "HOLDS"):
            e.had = self.certain(names_in(words)[0], owner, now)
        if verb in ("UNLOCK", "MUNLOCK"):
            self.may_end(e, [(name, owner) for name in names_in(words)])
        elif verb == "FORCEUNLOCK":
            self.may_end(e, [(str(words[1]),)])
        elif verb in ("RESET", "QUIT"):
            self.may_end(e, [(one,) for one in conn.acted_for], owners=True)
        elif option(words, "LEASE"):
            e.shortens = [(name, owner) for name in names_in(words)]
            self.shortening.update(e.shortens)
        conn.asked_for_pushes |= bool(option(words, "TELL"))    # of LOCK and MLOCK, or CLIENT TELL
        if verb == "OWNER" and len(words) > 1:
            conn.owner = str(words[1])
        if verb == "RESET":
            conn.generation += 1
            conn.owner = conn.own_owner()
        return e

    def may_end(self, e, keys, owners=False):
        for key in keys:
            self.cut(key, owners)
            self.ending[("owner",) + key if owners else key] += 1
            e.ends.append(("owner",) + key if owners else key)

    def cut(self, key, owners=False):
        for name in list(self.live) if owners else [key[0]]:
            for grant in self.live[name]:
                if (owners and grant.owner == key[0]) or (not owners and (len(key) == 1 or grant.owner == key[1])):
                    grant.over = True

    def certain(self, name, owner, now):
        """A hold of this owner that nobody has said anything to end."""
        if self.in_doubt(name, owner, now):
            return None
        grants = [g for g in self.live[name]
                  if g.owner == owner and not g.over and not self.shortening[name, owner] and g.kept_until > now]
        return max(grants, key=lambda g: g.kept_until) if grants else None

    def in_doubt(self, name, owner, now):
        keys = ((name, owner), (name,), ("owner", owner))
        return any(self.ending[key] > 0 or self.tainted.get(key, 0) > now for key in keys)

    def ended(self, conn, now):
        """Its connection has ended, by whomever; what it had said and was not answered may still happen."""
        for e in list(conn.expected) + list(conn.asyncs.values()):
            for key in e.ends:
                self.ending[key] -= 1
                self.tainted[key] = now + SETTLE_S
            for key in e.shortens:
                self.shortening[key] -= 1
                self.cut(key)
                self.tainted[key] = now + SETTLE_S
        for owner in conn.acted_for:
            self.cut((owner,), owners=True)
            self.tainted[("owner", owner)] = now + SETTLE_S

    def doomed(self, conn, now):
        """Somebody has said CLIENT KILL: from now on it may end at any time."""
        conn.doomed = True
        for owner in conn.acted_for:
            self.cut((owner,), owners=True)
            self.tainted[("owner", owner)] = now + SETTLE_S

    # ---- replies

    def answered(self, conn, value, now):
        """One value has come; raises Violation when it cannot be."""
        self.serial += 1
        if isinstance(value, Push) and value and value[0] in w.PUSHES:
            self.pushed(conn, value)
            if value[0] == "async":
                self.told_end(conn, value, now)
        elif isinstance(value, list) and value and value[0] in ("message", "pmessage") and conn.listens:
            self.pushed(conn, value)
        elif conn.monitors and isinstance(value, str) and w.MONITOR_RE.match(value):
            pass
        elif not conn.expected:
            raise Violation("unasked", "connection %d: nothing was asked, and came %r" % (conn.number, value),
                            sort_of(value))
        else:
            self.reply(conn, conn.expected[0], value, now)

    def pushed(self, conn, value):
        if not w.PUSHES[value[0]](value):
            raise Violation("push", "connection %d: %r" % (conn.number, value))
        if value[0] not in ("message", "pmessage", "async") and not conn.asked_for_pushes:
            raise Violation("push", "connection %d has not said TELL: %r" % (conn.number, value))
        if value[0] in ("message", "pmessage") and not w.MESSAGE_RE.match(value[-1]):
            raise Violation("message", "connection %d: %r" % (conn.number, value))

    def reply(self, conn, e, value, now):
        if e.name in w.CONFIRMATIONS and not isinstance(value, RespError):
            self.confirmation(conn, e, value)
            if e.left:
                return
        elif isinstance(value, Push):
            self.impossible(conn, e, value)
        elif isinstance(value, RespError) and self.is_refusal(conn, value):
            pass
        elif e.name in w.CONFIRMATIONS or not w.TABLE[e.name].fits(e.words, value):
            self.impossible(conn, e, value)
        else:
            self.judge(conn, e, value, now)
        conn.expected.popleft()
        if value == "QUEUED":
            self.queued(conn, e, now)
            return
        if e.name == "reset" and value == "RESET":
            for tag in list(conn.asyncs):
                self.settled(conn.asyncs.pop(tag), now)
        if e.name in ("lock", "mlock", "unlock", "munlock"):
            self.answers[e.name, sort_of(value)] += 1
        self.tell(now, conn, e.words, " -> %s" % (value,))
        self.settled(e, now)
        conn.replied(e, value)

    def settled(self, e, now):
        """What it may do has been done."""
        self.shortening.subtract(e.shortens)
        for key in e.ends + e.shortens:
            self.answered_at[key] = self.serial
        for key in e.ends:
            self.ending[key] -= 1
            if key[0] == "owner":  # RESET: what the connection had said before is over, other ones' too
                self.tainted[key] = now + SETTLE_S

    # ---- ends that are told by a tag

    def queued(self, conn, e, now):
        tag = option(e.words, "ASYNC")
        if tag in conn.asyncs and conn.proto == 3 and not conn.was_resp2:
            raise Violation("tag", "connection %d: QUEUED to %r, and %r has not ended" %
                            (conn.number, e.words, conn.asyncs[tag].words))
        if tag in conn.asyncs:  # its end was told on a channel
            self.settled(conn.asyncs[tag], now)
        conn.asyncs[tag] = e

    def told_end(self, conn, value, now):
        tag, what = value[1], value[2]
        if tag not in conn.asyncs:
            raise Violation("tag", "connection %d: nothing with this tag is open: %r" % (conn.number, value))
        e = conn.asyncs.pop(tag)
        self.tell(now, conn, e.words, " -> %s" % (value,))
        if what == "granted":
            self.judge(conn, e, [value[3], value[4]], now)
            conn.replied(e, value[3:5])
        elif what == "error":
            self.judge(conn, e, RespError(value[3]), now)
            if RespError(value[3]).code not in w.LOCKING + ("ERR", "NOPERM"):
                self.impossible(conn, e, value)
        self.settled(e, now)

    @staticmethod
    def is_refusal(conn, error):
        """For want of rights, because the connection listens, or after MULTI."""
        text = str(error)
        return ((error.code == "NOPERM" and conn.user not in (None, "ops")) or
                (error.code == "NOAUTH" and conn.may_be_nobody) or (error.code == "NOMULTI" and conn.in_multi) or
                (text.startswith("ERR Can't execute") and conn.listens))

    @staticmethod
    def impossible(conn, e, value):
        raise Violation("reply", "connection %d: %r is no reply to %r" % (conn.number, value, e.words),
                        (e.name, sort_of(value)))

    def confirmation(self, conn, e, value):
        is_pattern = e.name[0] == "p"
        mine = conn.patterns if is_pattern else conn.channels
        if e.left is None:
            e.left = [str(x) for x in e.words[1:]]
            if not e.left:
                e.left = sorted(mine) or [None]
        if not w.row(w.word(e.name), w.one_of(w.text, w.nothing), w.integer)(value) or value[1] not in e.left:
            self.impossible(conn, e, value)
        e.left.remove(value[1])
        if "un" in e.name:
            mine.discard(value[1])
        else:
            mine.add(value[1])
        if value[2] != len(conn.channels) + len(conn.patterns):
            raise Violation("subscriptions", "connection %d: %r, but it has %s" %
                            (conn.number, value, sorted(conn.channels | conn.patterns)))

    def judge(self, conn, e, value, now):
        verb = e.words[0].upper()
        if verb in ("LOCK", "RENEW") and isinstance(value, list):
            self.granted(conn, e, names_in(e.words), [value[0]], value[1], now)
        elif isinstance(value, RespError) and value.code == "HELD" and not e.owner.startswith("connection "):
            raise Violation("held", "connection %d: %r to %r of %s" % (conn.number, str(value), e.words, e.owner))
        elif verb == "MLOCK" and isinstance(value, list):
            self.granted(conn, e, names_in(e.words), value[0], value[1], now)
        elif verb in ("HOLDS", "UNLOCK"):
            self.not_forgotten(conn, e, value, now)

    def not_forgotten(self, conn, e, value, now):
        gone = value == 0 if e.name == "holds" else isinstance(value, RespError) and value.code == "NOTHELD"
        if not gone or not e.had or now >= e.had.kept_until or now - self.killed_at < KILLED_S:
            return
        # what ends it may have been said on another connection after this, and be answered before it
        doubts = [key for key in ((e.had.name, e.had.owner), (e.had.name,), ("owner", e.had.owner))
                  if self.ending[key] - e.ends.count(key) > 0 or self.tainted.get(key, 0) > e.at or
                  self.answered_at[key] > e.sent]
        if not doubts and (e.name == "unlock" or not e.had.over):
            raise Violation("forgotten", "connection %d: %r to %r, but token %d is valid for %.3f s more" %
                            (conn.number, value, e.words, e.had.token, e.had.sure_until - now) + self.story(e.had.name))

    # ---- grants

    def granted(self, conn, e, names, tokens, validity_ms, now):
        for name, token in zip(names, tokens):
            self.grants += 1
            self.check_token(conn, e, name, token)
            since = conn.quiet_at - SLACK_S
            grant = Grant(name, e.owner, conn, self.kind_told(e, name), token,
                          since + validity_ms / 1000, since + validity_ms / 1000 * KEPT)
            others = self.live[name] = [g for g in self.live[name] if g.sure_until > now and not g.over]
            if e.shortens:  # what was told before holds no longer, whatever else is under way
                others[:] = [g for g in others if g.owner != e.owner]
            # what was under way together with this request may have followed it
            met = any(self.answered_at[key] > e.sent for key in ((name, e.owner), (name,), ("owner", e.owner)))
            if met or self.in_doubt(name, e.owner, now) or conn.doomed or grant.sure_until <= now:
                continue
            self.check_alone(grant, others, now)
            others[:] = [g for g in others if g.owner != grant.owner] + [grant]     # what was told last counts

    def kind_told(self, e, name):
        """RENEW does not say what it has: as what it was got last."""
        if e.name != "renew":
            return kind_of(e.words)
        kinds = {g.kind for g in self.live[name] if g.owner == e.owner}
        return kinds.pop() if len(kinds) == 1 else None

    def check_token(self, conn, e, name, token):
        owner = self.owner_of.setdefault((name, token), e.owner)
        if owner != e.owner:
            raise Violation("token", "connection %d: token %d of %s told to %s and to %s" %
                            (conn.number, token, name, owner, e.owner))
        mine = self.told.setdefault((name, e.owner), set())
        highest = self.highest[name]
        if token in mine and e.name != "renew" and e.owner.startswith("connection ") and not option(e.words, "ID"):
            raise Violation("entered", "connection %d: %r entered token %d again, without a name for its owner" %
                            (conn.number, e.words, token))
        # a share of an owner with a name may have been told on another connection, or not at all
        is_sure = e.owner.startswith("connection ") or (e.name != "renew" and kind_of(e.words) == "exclusive")
        if token not in mine and is_sure:
            before = [t for serial, t in highest if serial < e.sent]
            if before and token <= before[-1]:
                raise Violation("token", "connection %d: %r was told token %d of %s, not above %d" %
                                (conn.number, e.words, token, name, before[-1]) + self.story(name))
        mine.add(token)
        if not highest or token > highest[-1][1]:
            highest.append((self.serial, token))
            del highest[:-200]

    def check_alone(self, grant, others, now):
        if grant.kind is None:
            return
        rivals = [g for g in others if g.owner != grant.owner and g.kind is not None and
                  not self.shortening[g.name, g.owner]]
        for rival in rivals:
            if "exclusive" in (grant.kind, rival.kind):
                raise Violation("two-owners", "%s: %s (token %d, %s) and %s (token %d, %s; valid for %.3f s more)" %
                                (grant.name, grant.owner, grant.token, grant.kind, rival.owner, rival.token, rival.kind,
                                 rival.sure_until - now) + self.story(grant.name))
        if isinstance(grant.kind, int):
            owners = {g.owner for g in rivals} | {grant.owner}
            if len(owners) > grant.kind:
                raise Violation("permits", "%s: %d owners of %d permits: %s" %
                                (grant.name, len(owners), grant.kind, sorted(owners)) + self.story(grant.name))
