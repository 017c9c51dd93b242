"""Three Sentinels and the servers that they watch, on loopback: a master and two replicas."""

import os
import shutil
import subprocess
import tempfile

import procs
from redisproc import RedisProc, find_server
from respclient import Closed, RespClient, RespError

NAME = "mymaster"
DOWN_AFTER_MS = 600


class SentinelProc:
    """redis-server --sentinel. `lines`: more lines of its configuration. `login`: words for AUTH. `context`: of
    ssl, when it speaks TLS."""

    def __init__(self, port, lines=(), login=None, context=None):
        self.port = port
        self.lines = list(lines)
        self.login = login
        self.context = context
        self.dir = tempfile.mkdtemp(prefix="hfs-")
        self.proc = None

    @property
    def address(self):
        return "127.0.0.1:%d" % self.port

    def start(self, master):
        self.conf = os.path.join(self.dir, "sentinel.conf")
        with open(self.conf, "w", encoding="utf-8") as out:
            out.write("bind 127.0.0.1\ndir %s\nlogfile %s/log\n" % (self.dir, self.dir))
            out.write("port 0\ntls-port %d\n" % self.port if self.context else "port %d\n" % self.port)
            out.write("sentinel monitor %s 127.0.0.1 %d 2\n" % (NAME, master.port))
            out.write("sentinel down-after-milliseconds %s %d\n" % (NAME, DOWN_AFTER_MS))
            out.write("sentinel failover-timeout %s 4000\n" % NAME)
            out.write("".join(line + "\n" for line in self.lines))
        return self.again()

    def again(self):
        """Starts it with the configuration that it has left."""
        self.proc = procs.spawn([find_server(), self.conf, "--sentinel"], stdout=subprocess.DEVNULL,
                                stderr=subprocess.STDOUT)
        procs.wait_for("a Sentinel", self._is_up, 15)
        return self

    def _is_up(self):
        try:
            return self.cmd("PING") == "PONG"
        except (OSError, Closed, RespError):
            return False

    def cmd(self, *words):
        with RespClient(("127.0.0.1", self.port)) as client:
            if self.context:
                client.sock = self.context.wrap_socket(client.sock, server_hostname="127.0.0.1")
            if self.login:
                client.cmd("AUTH", *self.login)
            return client.cmd(*words)

    def named(self):
        """The port of the master that it names."""
        return int(self.cmd("SENTINEL", "get-master-addr-by-name", NAME)[1])

    def log_text(self):
        with open(os.path.join(self.dir, "log"), encoding="utf-8", errors="replace") as log:
            return log.read()

    def kill(self):
        if self.proc is not None and self.proc.poll() is None:
            self.proc.kill()
            self.proc.wait()

    def close(self):
        self.kill()
        shutil.rmtree(self.dir, ignore_errors=True)


class TlsServer(RedisProc):
    """A redis-server that speaks TLS alone."""

    def __init__(self, name, context, **kwargs):
        super().__init__(name, tcp=True, **kwargs)
        self.context = context

    def _argv(self):
        argv = super()._argv()
        argv[argv.index("--port")] = "--tls-port"
        return argv + ["--port", "0"]

    def connect(self, **kwargs):
        client = RespClient(self.address, **kwargs)
        client.sock = self.context.wrap_socket(client.sock, server_hostname="127.0.0.1")
        if self.password:
            client.cmd("AUTH", self.password)
        return client


def url_of(addresses, login=""):
    return "%s%s/%s" % (login or "sentinel://", ",".join(addresses), NAME)


class Watched:
    """A master, two replicas and three Sentinels. Servers are told apart by their ports."""

    def __init__(self, redis_args=(), sentinel_lines=(), password=None, login=None, context=None, stubborn=False):
        """stubborn: the first server cannot be made a replica, so that it comes back as a master."""
        self.servers = []
        self.stubborn = stubborn
        self.redis_args, self.password, self.context = list(redis_args), password, context
        self.sentinels = [SentinelProc(port, sentinel_lines, login, context) for port in procs.free_ports(3)]

    def start(self):
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def _start(self):
        for name in "mrs":
            args = list(self.redis_args) + ["--repl-diskless-sync-delay", "0"]
            if self.password:
                args += ["--masterauth", self.password]
            if not self.servers and self.stubborn:
                args += ["--rename-command", "SLAVEOF", "", "--rename-command", "REPLICAOF", ""]
            if self.servers:
                args += ["--replicaof", "127.0.0.1 %d" % self.servers[0].port]
            kwargs = {"args": args, "password": self.password}
            server = TlsServer(name, self.context, **kwargs) if self.context else RedisProc(name, tcp=True, **kwargs)
            self.servers.append(server)
            server.start()
        procs.wait_for("the replicas", lambda: self._linked() == 2, 15)
        for s in self.sentinels:
            s.start(self.servers[0])
        procs.wait_for("the Sentinels to know all", self._is_complete, 20)

    def _linked(self):
        return self.servers[0].cli("INFO", "replication").count("state=online")

    def _is_complete(self):
        for s in self.sentinels:
            info = s.cmd("SENTINEL", "master", NAME)
            fields = dict(zip(info[::2], info[1::2]))
            if fields["num-slaves"] != "2" or fields["num-other-sentinels"] != "2":
                return False
        return True

    @property
    def url(self):
        return url_of([s.address for s in self.sentinels])

    def server(self, port):
        return next(s for s in self.servers if s.port == port)

    def majority(self):
        """The port that a majority of the Sentinels that answer names."""
        ports = []
        for s in self.sentinels:
            try:
                ports.append(s.named())
            except (OSError, Closed, RespError):
                pass
        return max(set(ports), key=ports.count) if ports else None

    def agreed(self):
        """The server that all Sentinels name; None while they do not agree."""
        ports = {s.named() for s in self.sentinels}
        return self.server(ports.pop()) if len(ports) == 1 else None

    def wait_moved(self, old, deadline_s=25):
        """Until all Sentinels name another server; returns it."""
        def moved():
            now = self.agreed()
            return now is not old and now
        return procs.wait_for("a failover", moved, deadline_s)

    def failover(self):
        """SENTINEL FAILOVER; returns the new master."""
        old = self.server(self.majority())

        def begun():
            try:
                return self.sentinels[0].cmd("SENTINEL", "FAILOVER", NAME) == "OK"
            except RespError as err:   # it has not yet seen a replica that would do
                assert "NOGOODSLAVE" in str(err) or "INPROG" in str(err), err
                return False
        procs.wait_for("a replica that can be promoted", begun, 20)
        return self.wait_moved(old)

    def close(self):
        for s in self.sentinels:
            s.close()
        for server in self.servers:
            server.close()
