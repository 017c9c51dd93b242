"""What a program is run against: the model, which is a redis-server, and its subjects. All have dial(client) and close()."""

import pathlib
import shutil
import tempfile

import typed  # sets the path of tests/lib
from holdfastproc import HoldfastProc
from redisproc import RedisProc

OPTIONS = {"lease": "10s", "max_lease": "60s", "request_timeout": "2s"}
# a large hash has no order in Redis
MODEL_ARGS = ("--hash-max-listpack-value", "1000000")


class Redis:
    """A redis-server of its own."""

    def __init__(self, tcp=False):
        self.server = RedisProc("model", tcp=tcp, args=MODEL_ARGS).start()

    def dial(self, _client):
        return typed.Typed(self.server.address)

    @property
    def port(self):
        return self.server.port

    def log(self):
        return self.server.log_text()

    def close(self):
        self.server.close()


class Holdfast:
    """So many brokers over so many masters; client n talks to broker n modulo their number."""

    def __init__(self, masters=1, brokers=1, options=None):
        self.dir = tempfile.mkdtemp(prefix="hfd-")
        self.masters, self.brokers = [], []
        try:
            for name in "abc"[:masters]:
                self.masters.append(RedisProc(name).start())
            for number in range(brokers):
                broker = HoldfastProc(pathlib.Path(self.dir), {m.name: m.url for m in self.masters},
                                      options=dict(OPTIONS, **(options or {})), name="broker%d" % number)
                self.brokers.append(broker)
                broker.start().wait_masters()
        except BaseException:
            self.kill()
            raise

    def dial(self, client):
        return typed.Typed(self.brokers[client % len(self.brokers)].address)

    @property
    def port(self):
        return self.brokers[0].port

    def log(self):
        return "\n".join(broker.log_text()[-6000:] for broker in self.brokers)

    def kill(self):
        for broker in self.brokers:
            if broker.proc is not None and broker.proc.poll() is None:
                broker.kill()
        for master in self.masters:
            master.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    def close(self):
        """Ends them and judges how the brokers ended."""
        try:
            for broker in self.brokers:
                broker.close()
        finally:
            self.kill()


# Subjects that are wrong on purpose: a redis-server whose answers are changed on the way. Each mistake is one that a
# server for locks can make; the comparison has to find all of them.

def _first_words(argv):
    return [(word.decode("utf-8", "replace") if isinstance(word, bytes) else str(word)).upper() for word in argv]


class _Mistaken:
    """A connection that makes one kind of mistake."""

    def __init__(self, conn, mistake):
        self.conn, self.mistake = conn, mistake
        self.words = []

    def send(self, argv):
        self.words = _first_words(argv)
        self.conn.send(self.mistake.asked(self.words, list(argv)))

    def recv(self):
        return self.mistake.answered(self.words, self.conn.recv())

    def ask(self, *argv):
        self.send(argv)
        return self.recv()

    def close(self):
        self.conn.close()


class Mistake:
    def asked(self, words, argv):
        return argv

    def answered(self, words, reply):
        return reply


class NullArray(Mistake):
    """A refusal that is *-1 instead of $-1."""
    def answered(self, words, reply):
        return (b"*", None) if reply == (b"$", None) else reply


class ReEntry(Mistake):
    """SET NX lets in whoever brings the value that is there."""
    def asked(self, words, argv):
        return argv[:3] + ["IFEQ"] if words[0] == "SET" and "IFEQ" in words else argv

    def answered(self, words, reply):
        return (b"+", b"OK") if words[0] == "SET" and words[2:3] == ["1"] and reply == (b"$", None) else reply


class NoNewTime(Mistake):
    """PEXPIRE that says 1 and does nothing."""
    def asked(self, words, argv):
        return ["EXISTS", argv[1]] if words[0] == "PEXPIRE" and len(words) == 3 and words[2].isdigit() else argv


class NotFreed(Mistake):
    """A script that deletes leaves the key for another second."""
    def asked(self, words, argv):
        if words[0] == "EVAL" and "'DEL'" in words[1]:
            argv[1] = str(argv[1]).replace("'del'", "'exists'")
        return argv


class OneMore(Mistake):
    """Counts that are returned one too high."""
    def answered(self, words, reply):
        return (b":", reply[1] + 1) if words[0].startswith("EVAL") and reply[0] == b":" and reply[1] == 2 else reply


class NoScriptName(Mistake):
    """Errors of scripts without `script: <sha>`."""
    def answered(self, words, reply):
        return (b"-", reply[1].partition(b" script: ")[0]) if reply[0] == b"-" else reply


class TextForStatus(Mistake):
    """$2 OK instead of +OK out of a script."""
    def answered(self, words, reply):
        return (b"$", b"OK") if words[0].startswith("EVAL") and reply == (b"+", b"OK") else reply


class ExecGoesOn(Mistake):
    """EXEC although a watched key has changed."""
    def asked(self, words, argv):
        return ["PING"] if words[0] == "WATCH" else argv

    def answered(self, words, reply):
        return (b"+", b"OK") if words[0] == "WATCH" else reply


MISTAKES = [NullArray, ReEntry, NoNewTime, NotFreed, OneMore, NoScriptName, TextForStatus, ExecGoesOn]


class Wrong(Redis):
    def __init__(self, mistake):
        super().__init__()
        self.mistake = mistake

    def dial(self, client):
        return _Mistaken(super().dial(client), self.mistake)
