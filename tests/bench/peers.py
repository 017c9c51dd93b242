"""Who is measured against whom: a holdfastd, the same redis-server asked directly, and one behind
twemproxy. Each has a redis-server of its own, so that what one leaves behind does not cost another."""

import glob
import json
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))

# pylint: disable=wrong-import-position
import procs  # noqa: E402
from holdfastproc import HoldfastProc  # noqa: E402
from redisproc import RedisProc  # noqa: E402
from respclient import Closed, NoReply, RespClient, RespError  # noqa: E402,F401

LEASE_MS = 1000  # so short that a run sees as many leases end as begin
NAME = "bench:__rand_int__:__rand_int__"   # so many that none comes twice: redis-benchmark ends at an error
TOKEN = "6f5902ac237024bdd0c176cb93063dc4"
COMPARE_AND_DELETE = """if redis.call("get",KEYS[1]) == ARGV[1] then
    return redis.call("del",KEYS[1])
else
    return 0
end"""
COMPARE_AND_EXTEND = """if redis.call("get",KEYS[1]) == ARGV[1] then
    return redis.call("pexpire",KEYS[1],ARGV[2])
else
    return 0
end"""
OPTIONS = {"lease": "30s", "max_lease": "60s", "min_validity": "50ms", "request_timeout": "2s",
           "quarantine": "off"}
SECTIONS = "\n[limits]\nmax_clients = 100000\nmax_clients_per_address = 100000\nmax_locks = 2000000\n" \
    "max_locks_per_client = 1000000\n"


def cpu_us(pid):
    """Time that a process has run, all threads."""
    total = 0
    for path in glob.glob("/proc/%d/task/*/schedstat" % pid):
        with open(path, encoding="ascii") as stat:
            total += int(stat.read().split()[0])
    return total / 1000


def rss_bytes(pid):
    return procs.rss_kb(pid) * 1024


def descriptors(wanted):
    """Raises the limit of this process and its children; how many there may be."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(wanted, hard), max(wanted, hard)))
    except (ValueError, OSError):   # only root may go above the hard limit
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


class Bench:
    """What all rows share: the programs, the load generators, a directory."""

    def __init__(self, load):
        self.load_program = load
        self.dir = tempfile.mkdtemp(prefix="hfb-")

    def close(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    def redis_benchmark(self, port, command, conns, pipeline, count):
        """Runs it; requests a second."""
        argv = ["redis-benchmark", "-p", str(port), "-c", str(conns), "-P", str(pipeline), "-n", str(count),
                "-r", "1000000000", "--csv"] + list(command)
        run = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=True,
                             universal_newlines=True)
        rows = [row for row in run.stdout.splitlines() if row.startswith('"')]
        return float(rows[-1].split('","')[1])

    def load_argv(self, address, commands, conns=1, seconds=1.0, rate=0, rounds=0, keep_s=0, counted=False):
        where = ["-p", str(address)] if isinstance(address, int) else ["-a", address]
        argv = [self.load_program] + where + ["-c", str(conns), "-s", str(seconds), "-r", str(rate),
                                              "-n", str(rounds), "-k", str(keep_s)]
        argv += ["-u"] if counted else []
        words = []
        for command in commands:
            words += ([","] if words else []) + list(command)
        return argv + ["--"] + words

    def load(self, address, commands, **how):
        """Runs our own generator; what it prints."""
        run = subprocess.run(self.load_argv(address, commands, **how), stdout=subprocess.PIPE, timeout=120,
                             check=True, universal_newlines=True)
        result = json.loads(run.stdout)
        if result["errors"]:
            raise AssertionError("%s: %s" % (commands, result["first_error"]))
        return result


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def set_nx(name=NAME, lease_ms=LEASE_MS):
    """What most programs take a lock by, of whichever peer."""
    return ["SET", name, TOKEN, "NX", "PX", str(lease_ms)]


class Direct:
    """The plain re-entrant script, asked of Redis itself."""

    name = "direct"

    def __init__(self):
        self.redis = RedisProc("direct", tcp=True).start()
        self.port = self.redis.port
        self.script = {}
        self.load_scripts()

    def load_scripts(self):
        for name in ("acquire", "release"):
            with open(os.path.join(HERE, name + ".lua"), encoding="utf-8") as text:
                self.script[name] = self.redis.cli("SCRIPT", "LOAD", text.read())

    def lock(self, name=NAME, lease_ms=LEASE_MS):
        return ["EVALSHA", self.script["acquire"], "1", name, "owner:1", str(lease_ms)]

    def unlock(self, name):
        return ["EVALSHA", self.script["release"], "1", name, "owner:1"]

    def close(self):
        self.redis.close()


class Twemproxy(Direct):
    """The same through twemproxy (nutcracker)."""

    name = "twemproxy"
    CONF = "bench:\n  listen: 127.0.0.1:%d\n  hash: fnv1a_64\n  distribution: ketama\n  redis: true\n" \
        "  auto_eject_hosts: false\n  backlog: 1024\n  servers:\n    - 127.0.0.1:%d:1\n"

    @staticmethod
    def program():
        return shutil.which("nutcracker") or shutil.which("nutcracker", path="/usr/sbin")

    def __init__(self, directory):
        super().__init__()
        self.port = free_port()
        conf = os.path.join(directory, "nutcracker.yml")
        with open(conf, "w", encoding="ascii") as out:
            out.write(self.CONF % (self.port, self.redis.port))
        self.proc = procs.spawn([self.program(), "-c", conf, "-s", str(free_port()),
                                 "-o", os.path.join(directory, "nutcracker.log")],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        procs.wait_for("nutcracker", self.is_up, 10)

    def is_up(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False

    def close(self):
        self.proc.kill()
        self.proc.wait()
        super().close()


class Holdfast:
    """A broker over n redis-servers, which it reaches over Unix sockets, as one beside its Redis would. Its
    clients come over TCP, as those of its peers do."""

    name = "holdfast"

    def __init__(self, directory, masters=1, name="broker", shared=None, unix=False, **options):
        self.redis = [] if shared else [RedisProc(chr(ord("a") + i)).start() for i in range(masters)]
        self.path = os.path.join(directory, name + ".sock")
        listen = "127.0.0.1:0" + (" unix:" + self.path if unix else "")
        urls = shared or {r.name: r.url for r in self.redis}
        self.proc = BenchProc(directory, urls, {**OPTIONS, **options}, listen=listen, name=name)
        self.proc.start()
        self.proc.wait_masters()
        self.port = self.proc.port
        self.pid = self.proc.proc.pid

    @property
    def urls(self):
        return self.proc.masters

    def lock(self, name=NAME, lease_ms=LEASE_MS):
        return ["LOCK", name, "LEASE", str(lease_ms)]

    def unlock(self, name):
        return ["UNLOCK", name]

    def info(self):
        return self.proc.info()

    def close(self):
        self.proc.kill()
        for redis in self.redis:
            redis.close()


class BenchProc(HoldfastProc):
    def configure(self, **options):
        super().configure(**options)
        with open(self.conf, encoding="utf-8") as conf:
            text = conf.read()
        with open(self.conf, "w", encoding="utf-8") as out:
            out.write(text.replace("\n[http]\n", SECTIONS + "\n[http]\n"))


def machine():
    """CPU type, cores and versions, in words; no names of hosts."""
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as info:
        models = re.findall(r"^model name\s*: (.*)$", info.read(), re.M)
    cores = len(os.sched_getaffinity(0))
    redis = subprocess.run(["redis-server", "--version"], stdout=subprocess.PIPE, universal_newlines=True,
                           check=True).stdout
    version = re.search(r"v=(\S+)", redis)
    return "%s, %d cores; Linux %s; redis-server %s" % (models[0] if models else os.uname().machine, cores,
                                                       os.uname().release.split("-")[0], version.group(1))
