"""The clients that people use, unmodified and with their defaults: redis-cli, redis-py, node-redis, ioredis, redis-rb,
hiredis; go-redis where there is Go, Jedis where there are Maven and a Java compiler.

Each has one session: a lock that another one holds, one that it has already, one that is lost, one that is sent again,
and a transaction.
"""

import os
import pathlib
import shutil
import subprocess
import threading

import pytest

from fetched import fetch

HERE = pathlib.Path(__file__).resolve().parent / "clients"


def tool(name):
    found = shutil.which(name)
    if found is None:
        pytest.skip("%s is not installed" % name)
    return found


def sh(*argv, text_in=None, deadline_s=30, check=True, **kwargs):
    done = subprocess.run([str(a) for a in argv], input=text_in, capture_output=True, text=True,
                          timeout=deadline_s, check=False, **kwargs)
    if check:
        assert done.returncode == 0, "%s\n%s" % (done.stdout, done.stderr)
    return done.stdout


# redis-cli

@pytest.fixture
def cli(one):
    path = tool("redis-cli")

    def run(*args, **kwargs):
        return sh(path, "-h", "127.0.0.1", "-p", one.broker.port, *args, **kwargs)
    return run


@pytest.mark.parametrize("flag", [[], ["-3"]], ids=["RESP2", "RESP3"])
def test_redis_cli(cli, flag, name):
    token, validity = cli(*flag, "LOCK", name, "OWNER", "me", "LEASE", 5000).split()
    assert int(token) > 0 and int(validity) > 0
    assert cli(*flag, "LOCK", name, "OWNER", "you").strip() == ""
    assert cli(*flag, "--no-raw", "LOCK", name, "OWNER", "you").strip() == "(nil)"
    assert "me" in cli(*flag, "LOCKINFO", name)
    assert "NOTHELD" in cli(*flag, "UNLOCK", name, check=False)
    assert cli(*flag, "--no-raw", "UNLOCK", name, "OWNER", "me").strip() == "(integer) 1"


def test_redis_cli_a_session(cli):
    """Lines typed into one connection: the watched lock is its own until the end of input."""
    out = cli(text_in="LOCK s\nHOLDS s\nLOCK s\nUNLOCK s\nNOSUCH\nPING\n")
    lines = [line for line in out.splitlines() if line]
    assert lines[2] == "1"
    assert lines[3].startswith("HELD 's' is held by this connection already")
    assert lines[4] == "1"
    assert lines[5].startswith("ERR unknown command 'NOSUCH'")
    assert lines[-1] == "PONG"


def test_redis_cli_help_and_completion(cli):
    out = cli("COMMAND", "DOCS", "LOCK")
    assert "summary" in out and "since" in out


def test_redis_cli_stat(one):
    with subprocess.Popen([tool("redis-cli"), "-p", str(one.broker.port), "--stat", "-i", "0.1"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as stat:
        killer = threading.Timer(20, stat.kill)
        killer.start()
        lines = [stat.stdout.readline() for _ in range(5)]
        stat.kill()
        killer.cancel()
    assert "keys" in lines[1] and "clients" in lines[1]
    for line in lines[2:]:
        fields = line.split()
        assert fields[0].isdigit(), lines
        assert fields[2].isdigit() and int(fields[2]) >= 1, lines


def test_redis_cli_latency(cli):
    low, high, average, samples = cli("--latency", "-i", "0.2").split()
    assert float(low) <= float(average) <= float(high) < 1000
    assert int(samples) > 0


def test_redis_cli_info(cli):
    assert "role:master" in cli("INFO")


def test_redis_benchmark_ping(one):
    out = sh(tool("redis-benchmark"), "-p", one.broker.port, "-t", "ping_mbulk,ping_inline", "-n", 2000, "-q", "-P", 8)
    assert out.count("requests per second") == 2


# redis-py

@pytest.fixture
def redis_py(one):
    redis = pytest.importorskip("redis")
    made = []

    def connect(**kwargs):
        kwargs.setdefault("decode_responses", True)
        client = redis.Redis("127.0.0.1", one.broker.port, socket_timeout=15, **kwargs)
        made.append(client)
        return client
    yield connect
    for client in made:
        client.close()


def test_redis_py(redis_py, name):
    import redis
    holder, rival = redis_py(client_name="worker"), redis_py()
    assert holder.ping() and holder.client_getname() == "worker"
    token, validity = holder.execute_command("LOCK", name, "OWNER", "app")
    assert token > 0 and validity > 0
    assert rival.execute_command("LOCK", name, "OWNER", "other") is None
    with pytest.raises(redis.ResponseError, match="NOTHELD"):
        rival.execute_command("UNLOCK", name, "OWNER", "other")
    assert holder.execute_command("UNLOCK", name, "OWNER", "app") == 1
    assert rival.info()["loading"] == 0
    assert rival.config_get("*lease")
    assert isinstance(rival.client_list(), list)
    assert rival.client_id() > 0
    assert rival.echo("x") == "x"
    assert "lock" in rival.command()


def test_redis_py_pipeline(redis_py, name):
    pipe = redis_py(single_connection_client=True).pipeline(transaction=False)
    for command in ("LOCK", "HOLDS", "UNLOCK"):
        pipe.execute_command(command, name)
    grant, holds, released = pipe.execute()
    assert len(grant) == 2 and (holds, released) == (1, 1)


def test_redis_py_default_pipeline(redis_py, name):
    """It puts the commands between MULTI and EXEC: none is run, and the connection is as before."""
    import redis
    client, rival = redis_py(single_connection_client=True), redis_py()
    for _ in range(2):
        pipe = client.pipeline()
        pipe.execute_command("LOCK", name)
        pipe.execute_command("LOCK", name + ":2", "WAIT", 0)
        with pytest.raises(redis.ResponseError, match="NOMULTI 'lock' was not run.*without MULTI"):
            pipe.execute()
        assert rival.execute_command("HOLDS", name) == 0
        assert client.echo("x") == "x"
    assert client.execute_command("LOCK", name)[0] > 0


def test_redis_py_kinds(one, name):
    redis = pytest.importorskip("redis")
    a, b = (redis.Redis("127.0.0.1", one.broker.port, socket_timeout=15) for _ in range(2))
    for words in (("SHARED",), ("LIMIT", 2)):
        tokens = [c.execute_command("LOCK", name, "OWNER", o, "LEASE", 20000, *words)[0]
                  for c, o in ((a, "a"), (b, "b"))]
        assert tokens[0] < tokens[1]
        third = ("LIMIT", 2) if words[0] == "LIMIT" else ()
        assert a.execute_command("LOCK", name, "OWNER", "c", *third) is None
        with pytest.raises(redis.ResponseError, match="KIND"):
            b.execute_command("LOCK", name, "OWNER", "c", "LIMIT", 7)
        for c, o in ((a, "a"), (b, "b")):
            assert c.execute_command("UNLOCK", name, "OWNER", o) == 1
    names = [name + str(i) for i in range(3)]
    granted, validity = a.execute_command("MLOCK", 3, *names, "OWNER", "a", "LEASE", 20000)
    assert len(granted) == 3 and validity > 0
    assert b.execute_command("MLOCK", 2, names[2], name, "OWNER", "b") is None
    assert a.execute_command("MUNLOCK", 3, *names, "OWNER", "a") == 3


def test_redis_py_pubsub(redis_py, name):
    client = redis_py()
    pubsub = client.pubsub(ignore_subscribe_messages=True)
    pubsub.subscribe("lost")
    pubsub.psubscribe("lock:" + name)
    pubsub.get_message(timeout=5)
    pubsub.get_message(timeout=5)
    client.execute_command("LOCK", name, "LEASE", 1000)
    message = None
    for _ in range(20):
        message = message or pubsub.get_message(timeout=0.5)
    assert message["channel"] == "lock:" + name and "granted" in message["data"]
    pubsub.close()


def test_redis_py_pool_and_threads(redis_py, name):
    """Twenty threads share a pool; a counter behind one lock is exact."""
    client = redis_py(single_connection_client=False)
    state = {"count": 0}

    def work(number):
        owner = "t%d" % number
        for _ in range(5):
            assert client.execute_command("LOCK", name, "OWNER", owner, "WAIT", 20000, "LEASE", 20000)
            seen = state["count"]
            client.ping()
            state["count"] = seen + 1
            assert client.execute_command("UNLOCK", name, "OWNER", owner) == 1
    threads = [threading.Thread(target=work, args=(n,)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(40)
    assert state["count"] == 100


def test_redis_py_pool(redis_py, name):
    """A pool gives whom it likes the connection that holds: he is not let in, and the lock stays where it is."""
    import redis
    client, rival = redis_py(), redis_py()
    assert client.execute_command("LOCK", name)
    with pytest.raises(redis.ResponseError, match="HELD '.*' is held by this connection already"):
        client.execute_command("LOCK", name, "WAIT", 0)
    lost = name + ":lost"
    assert client.execute_command("LOCK", lost)
    assert rival.execute_command("FORCEUNLOCK", lost) == 1
    assert rival.execute_command("LOCK", lost, "WAIT", 5000)
    number = client.client_id()
    assert client.execute_command("LOCK", lost) is None
    assert client.echo("x") == "x" and client.client_id() == number
    assert client.execute_command("HOLDS", name) == 1
    for _ in range(2):
        assert client.execute_command("LOCK", name + ":again", "OWNER", "app", "ID", "1")
    assert rival.execute_command("HOLDS", name + ":again", "OWNER", "app") == 1


# Node.js

@pytest.fixture(scope="session")
def node_modules():
    tool("node")
    return fetch("npm", [HERE / "package.json", HERE / "package-lock.json"],
                 [tool("npm"), "ci", "--no-audit", "--no-fund", "--ignore-scripts"]) / "node_modules"


@pytest.mark.parametrize("script", ["node-redis.js", "ioredis.js"])
def test_node(one, node_modules, script):
    out = sh("node", HERE / script, one.broker.port, env=dict(os.environ, NODE_PATH=str(node_modules)))
    assert out.strip() == "ok"


# Ruby

def test_redis_rb(one):
    ruby = tool("ruby")
    if subprocess.run([ruby, "-e", "require 'redis'"], capture_output=True, check=False).returncode != 0:
        pytest.skip("ruby-redis is not installed")
    assert sh(ruby, HERE / "redis-rb.rb", one.broker.port).strip() == "ok"


# Clients that Debian does not have, of languages that a machine may have: no test where it has not

@pytest.fixture(scope="session")
def go_redis():
    go = HERE / "go-redis"
    return fetch("go", [go / file for file in ("go.mod", "go.sum", "main.go", "find.go")],
                 ["env", "GOPATH={where}/path", "GOCACHE={where}/cache", "CGO_ENABLED=0", "GOFLAGS=-modcacherw -mod=mod",
                  "go", "build", "-o", "client", "."]) / "client"


@pytest.fixture(scope="session")
def java():
    """The words with which Java programs begin that use Jedis or Lettuce."""
    jedis = HERE / "jedis"
    where = fetch("maven", [jedis / "pom.xml", jedis / "Session.java", jedis / "Find.java"],
                  ["mvn", "-q", "-B", "-Dmaven.repo.local={where}/repository",
                   "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies",
                   "-DoutputDirectory={where}/jars"],
                  ["javac", "-cp", "{where}/jars/*", "Session.java", "Find.java"])
    return ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", "%s:%s/jars/*" % (where, where)]


if shutil.which("go"):
    def test_go_redis(one, go_redis):
        assert sh(go_redis, one.broker.port).strip() == "ok"


if shutil.which("mvn") and shutil.which("javac"):
    def test_jedis(one, java):
        assert sh(*java, "Session", one.broker.port).strip() == "ok"


# hiredis

def test_hiredis(one, tmp_path):
    compiler = tool(os.environ.get("CC", "cc").split()[0])
    flags = sh(tool("pkg-config"), "--cflags", "--libs", "hiredis").split()
    program = tmp_path / "hiredis"
    sh(compiler, "-Wall", "-Werror", "-o", program, HERE / "hiredis.c", *flags)
    assert sh(program, one.broker.port).strip() == "ok"
