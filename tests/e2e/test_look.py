"""holdfastd -tt: what it says of masters that are good, bad, and gone, and that it leaves no trace there."""

import os
import pwd
import re
import shutil
import socket
import subprocess
import tempfile

import pytest

from holdfastproc import run, write_config
from procs import wait_for
from respclient import RespClient

OPTIONS = {"quarantine": "auto", "request_timeout": "250ms"}


@pytest.fixture
def look(tmp_path):
    """look(masters, ...): (status, lines that begin with error, warning or hint, the whole text)."""
    def do(masters, args=(), **options):
        if not isinstance(masters, dict):
            masters = {m.name: m.url for m in masters}
        conf = write_config(tmp_path / "look.ini", masters, dict(OPTIONS, **options))
        status, out, err = run("-tt", "-c", conf, *args, deadline_s=40)
        said = [line for line in out.splitlines() if re.match("(error|warning|hint) ", line)]
        return status, said, out + err
    return do


def finding(said, severity, *words):
    return [line for line in said if line.startswith(severity) and all(word in line for word in words)]


def is_info(request):
    return request.args[0].upper() == b"INFO"


def is_time(request):
    return request.args[0].upper() == b"TIME"


def with_info(make_redis, make_proxy, **changes):
    """A master whose INFO says something else."""
    server = make_redis("a")
    proxy = make_proxy(server.address)
    text = server.cli("INFO")
    for key, value in changes.items():
        text = re.sub(r"(?m)^%s:[^\r\n]*" % key, "%s:%s" % (key, value), text)
        assert "%s:%s" % (key, value) in text
    raw = text.encode()
    proxy.on("replace_reply", is_info, times=None, value=b"$%d\r\n%s\r\n" % (len(raw), raw))
    return {"a": proxy.url}


def test_all_is_well(look, make_redis, make_broker):
    masters = [make_redis(name, persist=True) for name in "abc"]
    status, said, out = look(masters)
    assert status == 0
    assert len(finding(said, "hint", "no broker has used it", "a quarantine of 1m1s")) == len(said) == 3, out
    broker = make_broker(masters, options={"max_lease": "60s", "quarantine": "auto"}, ready=False)
    with broker.connect() as client:
        for master in masters:
            wait_for("the end of a quarantine", lambda m=master: (client.send("MASTER", m.name, "TRUST"), client.recv())[1] == "OK")
    broker.wait_masters()
    status, said, out = look(masters)
    assert status == 0
    assert not said, out
    assert "3 of 3 masters can be used: 0 errors, 0 warnings, 0 hints" in out
    rows = [line.split() for line in out.splitlines() if line[:2] in ("a ", "b ", "c ")]
    assert [row[2] for row in rows] == ["good"] * 3
    assert all("each write" in line for line in out.splitlines() if line[:2] in ("a ", "b ", "c "))


def test_it_leaves_no_trace(look, masters1):
    look(masters1)
    assert masters1[0].cli("KEYS", "*") == []
    stats = masters1[0].cli("INFO", "commandstats")
    assert "cmdstat_script|load" not in stats and "cmdstat_evalsha" not in stats


def test_t_once_does_not_connect(tmp_path, masters1):
    conf = write_config(tmp_path / "look.ini", {"a": masters1[0].url})
    assert run("-t", "-c", conf)[0] == 0
    assert "cmdstat_time" not in masters1[0].cli("INFO", "commandstats")


def test_nothing_listens(look):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    status, said, out = look({"a": "redis://127.0.0.1:%d" % port})
    assert status == 1
    assert finding(said, "error", "a: cannot be reached: Connection refused")
    assert finding(said, "error", "0 of 1 masters can be used, and 1 is needed")
    assert "0 of 1 masters can be used: 2 errors, 0 warnings" in out
    assert re.search(r"(?m)^a +127.0.0.1:%d +down$" % port, out)


def test_a_name_without_address(look):
    status, said, _ = look({"a": "redis://no-such-host.invalid"})
    assert status == 1 and finding(said, "error", "a: cannot be reached")


def test_a_server_that_stands(look, make_redis):
    masters = [make_redis("a")]
    masters[0].stop()
    try:
        status, said, _ = look(masters)
    finally:
        masters[0].cont()
    assert status == 1 and finding(said, "error", "a: it does not answer")


def test_passwords(look, make_redis):
    server = make_redis("a", tcp=True, password="secret")
    status, said, _ = look({"a": "redis://127.0.0.1:%d" % server.port})
    assert status == 1 and finding(said, "error", "a: it asks for a password")
    status, said, out = look({"a": "redis://:wrong@127.0.0.1:%d" % server.port})
    assert status == 1 and finding(said, "error", "a: it does not accept the password")
    assert "wrong" not in out.replace("WRONGPASS", "")
    assert look([server])[0] == 0


def test_a_password_that_is_a_credential(look, make_redis, tmp_path):
    """As holdfastd(8) says to check it by hand: in a directory of files with the names of credentials."""
    server = make_redis("a", tcp=True, password="secret")
    (tmp_path / "redis-password").write_text("secret\n")
    conf = write_config(tmp_path / "look.ini", {"a": "redis://127.0.0.1:%d" % server.port}, OPTIONS)
    with open(conf, "a", encoding="utf-8") as out:
        out.write("a.password_credential = redis-password\n")
    status, out, _ = run("-tt", "-c", str(conf), CREDENTIALS_DIRECTORY=tmp_path)
    assert status == 0 and "1 of 1 masters can be used" in out
    assert "secret" not in out
    status, _, err = run("-tt", "-c", str(conf))
    assert status == 1 and "CREDENTIALS_DIRECTORY is not set" in err


@pytest.fixture
def open_directory():
    """Below it everybody may look for files, other than below pytest's."""
    path = tempfile.mkdtemp()
    os.chmod(path, 0o755)
    yield path
    shutil.rmtree(path)


def make_certificate(certificate, key):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", key, "-out", certificate, "-subj", "/CN=broker"],
                   check=True, stdin=subprocess.DEVNULL, capture_output=True)


@pytest.mark.parametrize("key, names", [("a.password_file", "a.password_file"), ("a.key", "a.key"),
                                        ("a.ca", "a.ca"), ("key", "tls.key")])
def test_what_the_service_may_not_read(open_directory, key, names):
    """Root reads everything: what the user of the service cannot read is found all the same."""
    certificate, secret = os.path.join(open_directory, "c.pem"), os.path.join(open_directory, "secret")
    key_file = secret if key.endswith("key") else os.path.join(open_directory, "key.pem")
    make_certificate(certificate, key_file)
    if key.endswith("ca"):
        shutil.copy(certificate, secret)
    if key.endswith("file"):
        with open(secret, "w", encoding="utf-8") as out:
            out.write("hidden\n")
    lines = {"a.password_file": "", "a.ca": "", "a.key": "a.certificate = %s\n" % certificate, "key": ""}[key]
    scheme = "redis" if key == "a.password_file" else "rediss"
    conf = os.path.join(open_directory, "look.ini")
    with open(conf, "w", encoding="utf-8") as out:
        if key == "key":
            out.write("[tls]\ncertificate = %s\nkey = %s\n[masters]\na = redis://127.0.0.1:1\n" % (certificate, secret))
        else:
            out.write("[masters]\na = %s://127.0.0.1:1\n%s%s = %s\n" % (scheme, lines, key, secret))
    for path in (conf, certificate):
        os.chmod(path, 0o644)
    os.chmod(secret, 0o600)
    assert run("-t", "-c", conf)[0] == 0, "who checks a file by hand checks it for himself"
    status, out, err = run("-t", "-c", conf, "--user=nobody")
    if os.geteuid() != 0:
        assert status == 1 and "only root" in err
        return
    assert status == 1 and "%s: %s: the user nobody cannot read it" % (names, secret) in err and "chgrp" in err, err
    assert "hidden" not in out + err
    os.chown(secret, 0, pwd.getpwnam("nobody").pw_gid)
    os.chmod(secret, 0o640)
    status, out, err = run("-t", "-c", conf, "--user=nobody")
    assert status == 0, err
    os.chmod(conf, 0o600)
    status, out, err = run("-t", "-c", conf, "--user=nobody")
    assert status == 1 and "%s: the user nobody cannot read it" % conf in err


def test_a_socket_that_the_service_may_not_use(open_directory, masters1):
    """As that of Debian's Redis, which is for its group."""
    conf = write_config(os.path.join(open_directory, "look.ini"), {"a": masters1[0].url})
    os.chmod(conf, 0o644)
    assert run("-tt", "-c", conf)[0] == 0
    if os.geteuid() == 0:
        status, _, err = run("-tt", "-c", conf, "--user=nobody")
        assert status == 1 and re.search(r"a: .*: the user nobody cannot connect to it", err), err


@pytest.mark.parametrize("args, word", [(("-t", "--user=no-such-user"), "no-such-user"), (("--user=nobody",), "-t")])
def test_a_user_that_makes_no_sense(tmp_path, args, word):
    conf = write_config(tmp_path / "look.ini", {"a": "redis://127.0.0.1:1"})
    status, _, err = run("-c", conf, *args)
    assert status == 1
    assert "--user" in err.splitlines()[-1] and word in err.splitlines()[-1], err


def test_what_a_user_may_not(look, make_redis):
    server = make_redis("a", tcp=True)
    for rules, severity, words in [
            (["~*", "&*", "+@all", "-evalsha", "-script", "-hset"], "error", "ACL SETUSER app +script|load +script|exists +evalsha +hset"),
            (["~other:*", "&*", "+@all"], "error", "may not use the keys of brokers: ACL SETUSER app ~holdfast:* (NOPERM"),
            (["~*", "resetchannels", "+@all"], "warning", "is woken late: ACL SETUSER app &holdfast:* (NOPERM"),
            (["~*", "&*", "+@all", "-client|kill"], "hint", "brokers do without, but it is better: ACL SETUSER app +client|kill"),
            (["~*", "&*", "+@all", "-multi"], "hint", "ACL SETUSER app +multi +discard")]:
        server.cli("ACL", "SETUSER", "app", "reset", "on", ">pw", *rules)
        status, said, out = look({"a": "redis://app:pw@127.0.0.1:%d" % server.port})
        assert finding(said, severity, words), out
        assert status == (1 if severity == "error" else 0)
        assert ("unusable" in out) == (severity == "error")


def test_a_broker_that_mirrors_needs_all_keys(look, make_redis):
    server = make_redis("a", tcp=True)
    masters = {"a": "redis://app:pw@127.0.0.1:%d" % server.port}
    server.cli("ACL", "SETUSER", "app", "reset", "on", ">pw", "~holdfast:*", "&*", "+@all")
    assert not finding(look(masters)[1], "error")
    status, said, out = look(masters, args=("-o", "drop_in.mirror=yes"))
    assert status == 1 and finding(said, "error", "may not use all keys (~*)", "NOPERM"), out
    server.cli("ACL", "SETUSER", "app", "~*")
    assert not finding(look(masters, args=("-o", "drop_in.mirror=yes"))[1], "error")


def test_eviction(look, make_redis):
    masters = [make_redis("a", args=["--maxmemory-policy", "allkeys-lru"])]
    status, said, _ = look(masters)
    assert status == 1 and finding(said, "error", "a: it may evict locks", "allkeys-lru", "noeviction")


def test_a_replica(look, make_redis):
    first = make_redis("a", tcp=True)
    second = make_redis("b", tcp=True, args=["--replicaof", "127.0.0.1", str(first.port)])
    status, said, _ = look([first, second])
    assert status == 1
    assert finding(said, "error", "b: it is a replica and no master")
    assert not finding(said, "error", "a: ")


def test_one_server_twice(look, make_redis):
    server = make_redis("a", tcp=True, persist=True)
    status, said, _ = look({"a": "redis://127.0.0.1:%d" % server.port, "b": "redis://localhost:%d" % server.port})
    assert status == 1
    assert len(finding(said, "error", "it is the same server as master ")) == 1
    assert finding(said, "hint", "2 masters can do without as many of them as 1 can")


def test_a_cluster(look, make_broker, make_redis):
    masters = [make_redis("a", tcp=True, args=["--cluster-enabled", "yes"])]
    status, said, _ = look(masters)
    assert status == 1 and finding(said, "error", "a: it is part of a Redis Cluster")
    make_broker(masters, ready=False).wait_log("refused: it is part of a Redis Cluster")


def test_an_old_server(look, make_redis, make_proxy):
    status, said, _ = look(with_info(make_redis, make_proxy, redis_version="6.2.14"))
    assert status == 1 and finding(said, "error", "a: its version 6.2.14 is too old: Redis 7.0 or newer is needed")


def test_one_that_loads(look, make_redis, make_proxy):
    status, said, _ = look(with_info(make_redis, make_proxy, loading="1"))
    assert status == 1 and finding(said, "error", "a: it is still loading its data")


@pytest.mark.parametrize("used,severity,words", [
    (50, None, ""), (85, "warning", "85 % of its maxmemory are used"), (100, "error", "its memory is full")])
def test_memory(look, make_redis, make_proxy, used, severity, words):
    status, said, out = look(with_info(make_redis, make_proxy, maxmemory="1000000",
                                       used_memory=str(used * 10000)))
    assert status == (1 if severity == "error" else 0)
    if severity:
        assert finding(said, severity, "a: ", words), out
    else:
        assert "memory" not in "".join(said)


@pytest.mark.parametrize("offset_s,words", [(60, "60.0 s ahead of"), (-60, "60.0 s behind"), (0, None)])
def test_clock(look, make_redis, make_proxy, offset_s, words):
    server = make_redis("a")
    proxy = make_proxy(server.address)
    if words:
        # As it is asked some milliseconds apart, the same time again and again is near enough.
        now = int(server.cli("TIME")[0]) + offset_s
        text = str(now).encode()
        proxy.on("replace_reply", is_time, times=None, value=b"*2\r\n$%d\r\n%s\r\n$6\r\n500000\r\n" % (len(text), text))
    status, said, out = look({"a": proxy.url})
    assert status == 0
    if words:
        match = re.search(r"its clock is ([\d.]+) s (ahead of|behind)", "\n".join(finding(said, "warning", "a: ")))
        assert match and match.group(2) in words and abs(float(match.group(1)) - 60) < 30, out
    else:
        assert "its clock" not in out


@pytest.mark.parametrize("delay_s,severity", [(0.2, "warning"), (0.3, "error")])
def test_latency(look, make_redis, make_proxy, delay_s, severity):
    server = make_redis("a")
    proxy = make_proxy(server.address)
    proxy.on("delay_reply", is_time, times=1 if severity == "warning" else None, value=delay_s)
    status, said, out = look({"a": proxy.url})
    assert finding(said, severity, "a: ", "request_timeout (250 ms)"), out
    assert status == (1 if severity == "error" else 0)


def test_persistence(look, make_redis):
    late = make_redis("late", args=["--appendonly", "yes", "--appendfsync", "everysec"])
    status, said, out = look([make_redis("none"), late, make_redis("each", persist=True)])
    assert status == 0, "a hint is no error"
    rows = {line.split()[0]: line for line in out.splitlines() if line and line[:1] != " "}
    assert " no " in rows["none"] and " late " in rows["late"] and " each write " in rows["each"], out
    status, said, out = look([make_redis("none2")], quarantine="off")
    assert status == 0 and finding(said, "warning", "none2: quarantine is off", "a second holder"), out
    status, said, out = look([make_redis("none3")])
    assert status == 0 and finding(said, "hint", "after each restart of the one master nobody gets a lock for 1m1s"), out


def test_what_brokers_have_left(look, make_redis, make_broker):
    """A quarantine that goes on, and other settings than ours."""
    masters = [make_redis("a")]
    broker = make_broker(masters, ready=False, options={"quarantine": "1m"})
    broker.wait_log("in quarantine")
    status, said, out = look(masters, quarantine="1m")
    assert status == 0
    assert re.search(r"a: in quarantine for (\d\d?s|1m) more; MASTER a TRUST", out), out
    assert re.search(r"(?m)^a +\S+ +quarantine ", out), out
    assert not finding(said, "hint", "no broker has used it")
    status, said, out = look(masters, quarantine="1m", max_lease="90s")
    assert status == 1
    assert finding(said, "error", "a: brokers disagree", "max_lease 90000 here, 60000 there", "MASTER a ADOPT"), out
    status, said, out = look(masters)
    assert finding(said, "error", "quarantine auto here, 60000 there"), out
    with RespClient(broker.address) as client:
        assert client.cmd("MASTER", "a", "TRUST") == "OK"


def test_tls_to_a_plain_port(look, make_redis):
    server = make_redis("a", tcp=True)
    status, said, _ = look({"a": "rediss://127.0.0.1:%d" % server.port})
    assert status == 1 and finding(said, "error", "a: cannot be reached", "does it speak TLS there?")


def test_dev_has_no_masters_yet():
    status, out, _ = run("-tt", "--dev=3")
    assert status == 0 and "3 private masters" in out


def test_a_bad_file_is_not_looked_at(tmp_path):
    path = tmp_path / "bad.ini"
    path.write_text("[holdfast]\nlaese = 3s\n")
    status, out, err = run("-tt", "-c", str(path))
    assert status == 1 and out == "" and "laese" in err
