"""The tests of locks that libraries bring with them, unmodified: they end on holdfast as they end on a redis-server."""

import os
import re
import shutil
import subprocess

import pytest

import library_programs
from fetched import fetch

RUN_LIMIT_S = 150
# Tests in which a lock is stolen by a SET without NX, which holdfast refuses: it would take it from its holder.
STEALING_RE = "Release_not_own|no_longer_owned|when_locked_not_acquired|correct_lock_name"


def of_pypi(package, version):
    """The source distribution, unpacked; and the interpreter that runs its tests."""
    python = library_programs.pypi()[0]
    pins = library_programs.HERE / "python" / "requirements.txt"
    where = fetch("%s-%s" % (package, version), [pins],
                  [str(python), "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "--no-binary", ":all:",
                   "--no-build-isolation", "%s==%s" % (package, version)],
                  ["tar", "-xzf", "%s-%s.tar.gz" % (package, version)])
    return python, where / ("%s-%s" % (package, version))


def ended(command, **kwargs):
    """How each test ended, by its name."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=RUN_LIMIT_S, check=False, **kwargs)
    ends = dict(re.findall(r"^(\S+::\S+) ([A-Z]+)", done.stdout, re.M))
    ends.update((name, end) for end, name in re.findall(r"^\s*--- ([A-Z]+): (\S+)", done.stdout, re.M))
    return ends, done.stdout[-6000:] + done.stderr[-2000:]


def ends_alike(wanted, got, text):
    for name in [name for name in got if re.search(STEALING_RE, name)]:
        assert got[name].startswith("FAIL"), text
        got[name] = wanted[name]
    assert got == wanted, text


@pytest.mark.parametrize("package,version", (("redis", "8.1.0"), ("valkey", "6.2.0")))
def test_of_pypi(package, version, model, one, three):
    python, where = of_pypi(package, version)
    env = dict(os.environ, PYTHONPATH=str(library_programs.HERE / "python"))

    def on(server):
        url = "%s://127.0.0.1:%d/0" % (package, server.port)
        return ended([python, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-p", "unflushed", "-o", "filterwarnings=default", "--%s-url" % package, url,
                      "tests/test_lock.py", "tests/test_asyncio/test_lock.py"], cwd=where, env=env)
    on_the_model, text = on(model)
    assert len([end for end in on_the_model.values() if end == "PASSED"]) > 40, text
    for server in (one, three):
        ends_alike(on_the_model, *on(server))


def test_of_redislock(model, one, three, tmp_path):
    locks = library_programs.go()[0]
    module = next((locks.parent / "path" / "pkg" / "mod" / "github.com" / "bsm").glob("redislock@*"))
    env = dict(os.environ, GOPATH=str(locks.parent / "path"), GOCACHE=str(locks.parent / "cache"), CGO_ENABLED="0",
               GOTOOLCHAIN="local", GOFLAGS="-modcacherw")

    def on(server):
        """Its tests have the address in their text."""
        where = tmp_path / str(server.port)
        shutil.copytree(module, where)
        test = where / "redislock_test.go"
        test.write_text(test.read_text().replace("127.0.0.1:6379", "127.0.0.1:%d" % server.port))
        return ended(["go", "test", "-v", "-run", "Test", "."], cwd=where, env=env)
    on_the_model, text = on(model)
    assert set(on_the_model.values()) == {"PASS"}, text
    for server in (one, three):
        ends_alike(on_the_model, *on(server))
