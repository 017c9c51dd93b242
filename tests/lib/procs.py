"""Child processes that never outlive the test run, and waiting for events."""

import ctypes
import os
import signal
import socket
import subprocess
import time

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)
_parent = os.getpid()


def die_with_parent():
    """For preexec_fn: the child is killed when the process that started it ends, however it ends."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != _parent:
        os._exit(127)


def spawn(argv, **kwargs):
    kwargs.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.Popen(argv, preexec_fn=die_with_parent, **kwargs)


def free_ports(n):
    """For servers that have to know theirs, and of each other's, before they start."""
    probes = [socket.socket() for _ in range(n)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def wait_for(what, probe, deadline_s=10.0, every_s=0.005):
    """Waits until probe() is true and returns its value; fails naming what did not come."""
    until = time.monotonic() + deadline_s
    while True:
        value = probe()
        if value:
            return value
        if time.monotonic() > until:
            raise AssertionError("%s: not within %.1f s" % (what, deadline_s))
        time.sleep(every_s)


def state(pid):
    """The letter of proc(5) for what a process does; X: there is none."""
    try:
        with open("/proc/%d/stat" % pid, encoding="ascii", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def alive(pid):
    """Whether a process runs (a zombie does not)."""
    return state(pid) not in ("Z", "X")


def children(pid):
    """All living descendants of a process as {pid: command name}."""
    parents = {}
    names = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open("/proc/%s/stat" % entry, encoding="ascii", errors="replace") as stat:
                head, _, tail = stat.read().rpartition(")")
        except OSError:
            continue
        parents[int(entry)] = int(tail.split()[1])
        names[int(entry)] = head.partition("(")[2]
    found = {}
    queue = [pid]
    while queue:
        up = queue.pop()
        for child, parent in parents.items():
            if parent == up and child not in found:
                found[child] = names[child]
                queue.append(child)
    return found


def rss_kb(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as status:
        for line in status:
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
    raise AssertionError("no VmRSS")
