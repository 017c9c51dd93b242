"""A private redis-server: in a directory of its own, on a Unix socket or a free TCP port."""

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile

import procs
from respclient import Closed, RespClient, RespError


def find_server():
    return shutil.which("redis-server")


def broker_rights():
    """What the user of brokers is given, word for word from holdfast.ini(5)."""
    manual = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "man", "holdfast.ini.5")
    with open(manual, encoding="utf-8") as text:
        words = re.search(r"ACL SETUSER holdfast on \S+ \S+ \\e\n(.*?)\n\.Ed", text.read(), re.S).group(1)
    return [w.strip("'") for w in words.replace("\\(ti'", "'~").replace("\\e\n", " ").split()]


class RedisProc:
    """rights: of the user that brokers come as by its url, see broker_rights(); without them they are the default one.

    With them it is a master, which HOLDFAST_TEST_MASTERS names another program for (see dropin/test_servers.py).
    """

    def __init__(self, name="a", tcp=False, persist=False, args=(), password=None, wrapper=(), host="127.0.0.1",
                 port=None, rights=None):
        self.name = name
        self.persist = persist
        self.args = list(args)
        self.wrapper = list(wrapper)
        self.password = password
        self.rights = rights if not password else None
        self.proc = None
        # Socket paths are limited to some 100 bytes: pytest's directories are too deep.
        self.dir = tempfile.mkdtemp(prefix="hft-")
        self.log = os.path.join(self.dir, "redis.log")
        self.tcp = tcp
        self.path = os.path.join(self.dir, "s")
        self.host = host
        self.port = port
        self.stopped = False

    @property
    def address(self):
        """What a client connects to: (host, port) or a path."""
        return (self.host, self.port) if self.tcp else self.path

    @property
    def url(self):
        """As it stands in [masters]."""
        return url_of(self.address, "holdfast:rights" if self.rights else self.password and ":" + self.password)

    def _argv(self):
        program = self.rights and os.environ.get("HOLDFAST_TEST_MASTERS") or find_server() or "redis-server"
        argv = [program, "--dir", self.dir, "--logfile", self.log, "--save", "",
                "--loglevel", "notice", "--enable-debug-command", "yes"]
        if self.tcp:
            argv += ["--bind", self.host, "--port", str(self.port)]
        else:
            argv += ["--port", "0", "--unixsocket", self.path]
        if self.persist:
            argv += ["--appendonly", "yes", "--appendfsync", "always"]
        if self.password:
            argv += ["--requirepass", self.password]
        if self.rights:
            argv += ["--user", "holdfast", "on", ">rights"] + self.rights
        return self.wrapper + argv + self.args

    def start(self):
        """Starts it and returns when it answers."""
        for attempt in range(5):
            if self.tcp and (self.port is None or attempt > 0):
                with socket.socket() as probe:
                    probe.bind((self.host, 0))
                    self.port = probe.getsockname()[1]
            self.proc = procs.spawn(self._argv(), stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
            if procs.wait_for("redis-server %s" % self.name, self._up_or_dead, 15) == "up":
                self.stopped = False
                return self
        raise AssertionError("redis-server does not start:\n" + self.log_text())

    def _up_or_dead(self):
        if self.proc.poll() is not None:
            return "dead"
        try:
            with self.connect() as client:
                return "up" if client.cmd("PING") == "PONG" else None
        except (OSError, Closed, RespError):
            return None

    def connect(self, **kwargs):
        client = RespClient(self.address, **kwargs)
        if self.password:
            client.cmd("AUTH", self.password)
        return client

    def cli(self, *args):
        """One command on a connection of its own; an error reply is raised."""
        with self.connect() as client:
            return client.cmd(*args)

    def keys(self, part=""):
        """All keys whose name contains part."""
        return sorted(k for k in self.cli("KEYS", "*") if part in k)

    def hold(self, key):
        """The hold under this key as {field: text} (src/redis/lua/hold.lua), or None."""
        text = self.cli("GET", key) if self.cli("TYPE", key) == "string" else None
        if not text or not text.startswith("op="):
            return None
        words, _, owner = text.partition(" owner=")
        return dict([word.split("=", 1) for word in words.split(" ")], owner=owner)

    def holds(self, part=""):
        """{key: hold} of all whose key contains part."""
        found = {key: self.hold(key) for key in self.keys(part)}
        return {key: hold for key, hold in found.items() if hold}

    def run_id(self):
        for line in self.cli("INFO", "server").splitlines():
            if line.startswith("run_id:"):
                return line.partition(":")[2]
        raise AssertionError("no run_id")

    def log_text(self):
        try:
            with open(self.log, encoding="utf-8", errors="replace") as log:
                return log.read()
        except OSError:
            return ""

    def stop(self):
        """SIGSTOP: the kernel still accepts connections, nothing is answered. Returns when it stands."""
        self.proc.send_signal(signal.SIGSTOP)
        self.stopped = True
        procs.wait_for("the stop of redis-server", self._stands)

    def _stands(self):
        with open("/proc/%d/stat" % self.proc.pid, encoding="ascii", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[0] == "T"

    def cont(self):
        self.proc.send_signal(signal.SIGCONT)
        self.stopped = False

    def kill(self):
        """kill -9."""
        if self.proc is not None and self.proc.poll() is None:
            self.proc.kill()
        if self.proc is not None:
            self.proc.wait()

    def restart(self):
        """A new process at the same address: empty, or with its data when persist was given."""
        self.kill()
        return self.start()

    def lose_data(self):
        """While it is down: another disk."""
        shutil.rmtree(os.path.join(self.dir, "appendonlydir"))

    def denied(self):
        """What the user of brokers was refused, if that can be asked now."""
        if not self.rights or self.stopped or self.proc is None or self.proc.poll() is not None:
            return []
        return [entry for entry in self.cli("ACL", "LOG", 100) if entry[entry.index("username") + 1] == "holdfast"]

    def close(self):
        self.kill()
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self.start()

    def __exit__(self, *exc):
        self.close()


def url_of(address, who=None):
    """who: "user:password"."""
    who = who + "@" if who else ""
    if isinstance(address, str):
        return "unix://%s%s" % (who, address)
    return "redis://%s%s:%d" % (who, address[0], address[1])
