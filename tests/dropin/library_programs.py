"""Lock libraries and the programs that use them: libraries/. What is not Debian's is fetched from its registry, pinned."""

import difflib
import pathlib
import re
import shutil
import subprocess

import pytest

import differential
from fetched import fetch

HERE = pathlib.Path(__file__).resolve().parent / "libraries"
RUN_LIMIT_S = 90
RECORDED_PROGRAMS = 25
# what a script of a library that is not served calls, or one whose outcome hangs on the time of day
UNSERVED_RE = rb"(?i)'(time|z\w+|incr|[lrs](push|pop|rem|add|range|card|members|len|index)|blpop)'"
JAVA = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]


# How a program of each language is called; what it needs is fetched the first time.

def needs(*commands):
    for command in commands:
        if shutil.which(command) is None:
            pytest.skip("%s is not installed" % command)


def debian_python():
    return ["/usr/bin/python3", HERE / "python" / "locks.py"]


def pypi():
    where = fetch("pypi", [HERE / "python" / "requirements.txt"],
                  ["/usr/bin/python3", "-m", "venv", "venv"],
                  ["venv/bin/pip", "install", "-q", "--no-deps", "--disable-pip-version-check", "-r", "requirements.txt"])
    return [where / "venv" / "bin" / "python", HERE / "python" / "locks.py"]


def php():
    needs("php")
    return ["php", HERE / "php" / "locks.php"]


def npm():
    needs("node", "npm")
    node = HERE / "node"
    where = fetch("npm-locks", [node / "package.json", node / "package-lock.json"],
                  ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--legacy-peer-deps"])
    for program in ("locks.js", "contend.js"):
        shutil.copy(node / program, where)   # modules are looked for from where the program lies
    return ["node", where / "locks.js"]


def maven():
    needs("mvn", "javac")
    java = HERE / "java"
    where = fetch("maven-locks", [java / "pom.xml", java / "Locks.java"],
                  ["mvn", "-q", "-B", "-Dmaven.repo.local={where}/repository",
                   "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies",
                   "-DoutputDirectory={where}/jars"],
                  ["javac", "-cp", "{where}/jars/*", "Locks.java"])
    return JAVA + ["-cp", "%s:%s/jars/*" % (where, where), "Locks"]


def go():
    needs("go")
    source = HERE / "go"
    where = fetch("go-locks", [source / "go.mod", source / "go.sum", source / "main.go"],
                  ["env", "GOPATH={where}/path", "GOCACHE={where}/cache", "CGO_ENABLED=0", "GOTOOLCHAIN=local",
                   "GOFLAGS=-modcacherw", "go", "build", "-o", "locks", "."])
    return [where / "locks"]


def crates():
    needs("cargo")
    source = HERE / "rust"
    where = fetch("crates-locks", [source / "Cargo.toml", source / "Cargo.lock", source / "main.rs"],
                  ["env", "CARGO_HOME={where}/home", "CARGO_PROFILE_DEV_DEBUG=0", "cargo", "build", "-q", "--locked"])
    return [where / "target" / "debug" / "locks"]


def said_on(program, library, servers):
    """What the program prints on each of the servers, at the same time: (status, text)."""
    runs = [subprocess.Popen([str(word) for word in program] + [library, str(server.port)], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for server in servers]
    said = []
    try:
        for run in runs:
            out, err = run.communicate(timeout=RUN_LIMIT_S)
            said.append((run.returncode, out, err))
    except subprocess.TimeoutExpired:
        pass
    finally:
        for run in runs[len(said):]:
            run.kill()
            said.append((None, *run.communicate()))
    return said


def hold_to_the_model(program, library, why_not, model, subjects):
    """Says on the subjects what it says on the model; or, where there is a reason why not, does not."""
    (status, wanted, err), *said = said_on(program(), library, [model] + subjects)
    assert status == 0 and wanted.endswith("done\n"), "on a redis-server: %s%s" % (wanted, err)
    assert not re.search("never|: 15 rounds, [^1]", wanted), wanted
    for (status, got, err), subject in zip(said, subjects):
        if why_not:
            assert got != wanted, "it is served: holdfast-drop-in(7) says it is not"
        else:
            told = "".join(difflib.unified_diff(wanted.splitlines(True), got.splitlines(True), "redis-server", "holdfast"))
            assert (status, got) == (0, wanted), "%s\n%s\n%s" % (told, err[-3000:], subject.log()[-3000:])


def hold_scripts_to_the_model(bodies, model, subjects):
    """Runs recorded scripts by the differential test, with others than their own arguments."""
    served = [body for body in bodies if not re.search(UNSERVED_RE, body.text.replace(b'"', b"'"))]
    assert len(served) >= 5, "nothing was recorded"
    for subject in subjects:
        pair = differential.Pair(model, subject)
        found = differential.differences(pair, ["recorded"], 1, RECORDED_PROGRAMS, bodies=served)
        pair.hang_up()
        assert not found, found[0].text()
