"""A holdfastd process under test: its configuration, its log, its end.

close() judges the end: the exit status must be 0 and a sanitizer must have said nothing.
"""

import os
import re
import signal
import subprocess
import sys
import time

import procs
from respclient import RespClient, RespError

# Leases are short, so that tests which wait for their end are; nothing depends on their being exact.
LEASE_MS = 800
DEFAULTS = {
    "lease": "%dms" % LEASE_MS,
    "max_lease": "60s",
    "min_validity": "20ms",
    "request_timeout": "250ms",
    "quarantine": "off",
}
READY_RE = r"listening on 127\.0\.0\.1:(\d+)"
SANITIZER_RE = r"(AddressSanitizer|LeakSanitizer|UndefinedBehaviorSanitizer|runtime error:|ERROR: .*Sanitizer)"
# Sanitized daemons on two busy cores are slow: a bound for "it never came", not a measure.
JOIN_S = 0.5
START_S = 20.0


def daemon_path():
    return os.path.abspath(os.environ.get("HOLDFASTD", "build/holdfastd"))


def daemon_env(**extra):
    env = dict(os.environ)
    for name in ("NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "JOURNAL_STREAM", "WATCHDOG_USEC"):
        env.pop(name, None)
    env.setdefault("ASAN_OPTIONS", "exitcode=99:abort_on_error=0:detect_leaks=1")
    env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1:halt_on_error=1:exitcode=99")
    env.update({k: str(v) for k, v in extra.items()})
    return env


def write_config(path, masters, options=None, listen="127.0.0.1:0"):
    """masters: {name: url}. An option set to None is left out."""
    settings = dict(DEFAULTS)
    settings["listen"] = listen
    settings.update(options or {})
    with open(path, "w", encoding="utf-8") as out:
        out.write("[holdfast]\n")
        for key, value in settings.items():
            for one in value if isinstance(value, list) else [value]:
                if one is not None:
                    out.write("%s = %s\n" % (key, one))
        # its default is a fixed port; who tests it says -o http.listen=127.0.0.1:0
        out.write("\n[http]\nlisten = off\n\n[masters]\n")
        for name, url in masters.items():
            out.write("%s = %s\n" % (name, url))
            # brokers of one test may reach the same master in different ways, e.g. through a proxy
            out.write("%s.id = %s\n" % (name, name))
    return path


class HoldfastProc:
    def __init__(self, directory, masters, options=None, args=(), env=None, listen="127.0.0.1:0",
                 name="broker", wrapper=(), pass_fds=()):
        self.name = name
        self.masters = dict(masters)
        self.options = dict(options or {})
        self.listen = listen
        self.conf = os.path.join(str(directory), name + ".ini")
        self.log = os.path.join(str(directory), name + ".log")
        self.args = list(args)
        self.env = dict(env or {})
        self.wrapper = list(wrapper)
        self.pass_fds = pass_fds
        self.proc = None
        self.port = None
        self.mark = 0
        self.expect_status = 0
        self.ended = False

    # Starting

    def configure(self, **options):
        """Writes the configuration anew; takes effect at the next start or SIGHUP."""
        self.options.update(options)
        write_config(self.conf, self.masters, self.options, self.listen)

    def spawn(self, argv=None):
        """Starts it without waiting for anything."""
        if argv is None:
            self.configure()
            argv = [daemon_path(), "-c", self.conf] + self.args
        with open(self.log, "ab") as log:
            self.proc = procs.spawn(self.wrapper + argv, stdout=log, stderr=subprocess.STDOUT,
                                    env=daemon_env(**self.env), pass_fds=self.pass_fds)
        self.ended = False
        return self

    def start(self, ready=True, argv=None):
        """Starts it; returns when it listens and, with ready, when its masters give a quorum and those that
        can be reached at once have joined: a lock is then on all of them."""
        self.mark = self.log_size()
        self.spawn(argv)
        match = self.wait_log(READY_RE, START_S)
        self.port = int(match.group(1))
        if ready:
            self.wait_quorum()
            try:
                self.wait_masters(deadline_s=JOIN_S)
            except (AssertionError, RespError):
                pass   # some masters are not there on purpose, or INFO is not for everybody
        return self

    def wait_quorum(self, deadline_s=START_S):
        """Until a lock can be had: asked with a name of its own and given back."""
        name = "ready-%d" % time.monotonic_ns()
        with self.connect() as client:
            def granted():
                client.send("LOCK", name, "LEASE", 1000)
                return isinstance(client.recv(), list)
            procs.wait_for("a quorum of masters", granted, deadline_s, 0.02)
            client.cmd("UNLOCK", name)

    def wait_masters(self, count=None, deadline_s=START_S):
        """Until that many of its masters vote (all of them)."""
        count = len(self.masters) if count is None else count
        procs.wait_for("all masters", lambda: int(self.info()["quorum_available"]) == count, deadline_s, 0.02)
        return self

    # Its log

    def log_size(self):
        try:
            return os.path.getsize(self.log)
        except OSError:
            return 0

    def log_text(self, since=0):
        try:
            with open(self.log, "rb") as log:
                log.seek(since)
                return log.read().decode("utf-8", "replace")
        except OSError:
            return ""

    def wait_log(self, regex, deadline_s=10.0, since=None):
        """The first match after the last start, or after a place that log_size() gave."""
        start = self.mark if since is None else since

        def probe():
            match = re.search(regex, self.log_text(start), re.M)
            if match is None and self.proc.poll() is not None:
                match = re.search(regex, self.log_text(start), re.M)
                if match is None:
                    raise AssertionError("%s ended with status %d instead of logging %r:\n%s"
                                         % (self.name, self.proc.returncode, regex, self.log_text(start)))
            return match
        try:
            return procs.wait_for("log line %r" % regex, probe, deadline_s, 0.01)
        except AssertionError as err:
            if "not within" in str(err):
                raise AssertionError("%s\n%s" % (err, self.log_text(start))) from None
            raise

    # Talking to it

    @property
    def address(self):
        return ("127.0.0.1", self.port)

    def connect(self, **kwargs):
        return RespClient(self.address, **kwargs)

    def info(self):
        """INFO as {field: text}."""
        with self.connect() as client:
            reply = client.cmd("INFO")
        return dict(line.split(":", 1) for line in reply.splitlines() if ":" in line and line[0] != "#")

    # Signals and ends

    def signal(self, number):
        self.proc.send_signal(number)

    def hup(self):
        self.signal(signal.SIGHUP)

    def stop(self):
        self.signal(signal.SIGSTOP)

    def cont(self):
        self.signal(signal.SIGCONT)

    def kill(self):
        """kill -9: nothing of its end is judged but what the sanitizer said before."""
        self.proc.kill()
        self.proc.wait()
        self.expect_status = -signal.SIGKILL

    def harm(self, how, proxies=()):
        """kill, stop, drain, pause; anything else cuts it from its masters, which it reaches by these proxies."""
        if how == "kill":
            self.kill()
        elif how == "stop":
            self.stop()
        elif how == "drain":
            self.signal(signal.SIGTERM)
        elif how == "pause":
            with self.connect() as admin:
                admin.cmd("PAUSE")
        else:
            for proxy in proxies:
                proxy.refuse()

    def wait(self, deadline_s=10.0):
        """Its exit status."""
        try:
            return self.proc.wait(deadline_s)
        except subprocess.TimeoutExpired:
            raise AssertionError("%s does not end\n%s" % (self.name, self.log_text(self.mark))) from None

    def terminate(self):
        """Ends it as an operator in a hurry does: TERM, and TERM again if it drains."""
        if self.proc is None or self.proc.poll() is not None:
            return
        if not self.is_at_its_end():
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGTERM)
        try:
            self.proc.wait(1)
        except subprocess.TimeoutExpired:
            if not self.is_at_its_end():
                self.signal(signal.SIGTERM)
            self.wait()

    def is_at_its_end(self):
        """It has ended by itself, and the sanitizer looks for leaks: a signal, CONT above all, can make that hang."""
        return self.log_text(self.mark).endswith(" stopped\n")

    def close(self):
        """Ends it and judges how it ended."""
        if self.proc is None or self.ended:
            return
        self.ended = True
        try:
            self.terminate()
        finally:
            if self.proc.poll() is None:
                self.proc.kill()
                self.proc.wait()
        self.check()

    def check(self):
        text = self.log_text()
        found = re.search(SANITIZER_RE, text)
        assert not found, "%s: the sanitizer said:\n%s" % (self.name, text[found.start():][:6000])
        assert self.proc.returncode == self.expect_status, (
            "%s ended with status %s\n%s" % (self.name, self.proc.returncode, text[-6000:]))

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, value, trace):
        if kind is not None:
            sys.stderr.write("--- log of %s\n%s\n" % (self.name, self.log_text()[-20000:]))
        self.close()


def run(*args, deadline_s=15.0, **env):
    """Runs the daemon to its end: (status, stdout, stderr)."""
    done = subprocess.run([daemon_path(), *args], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=deadline_s, env=daemon_env(**env), check=False)
    assert not re.search(SANITIZER_RE, done.stderr), done.stderr
    return done.returncode, done.stdout, done.stderr
