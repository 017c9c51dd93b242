"""The Go package, with the race detector: the table of scenarios, and its own tests with any broker."""

import os
import shutil
import subprocess

import pytest

from fetched import cache, fetch
from table import CLIENTS, scenario_test

GO = CLIENTS / "go"


def built():
    """Where its agent and its own tests are."""
    if shutil.which("go") is None:
        pytest.skip("go is not installed")
    command = ["env", "GOPATH=%s" % (cache().absolute() / "go-client"), "GOCACHE=%s" % (cache().absolute() / "go-client" / "built"),
               "GOTOOLCHAIN=local", "GOFLAGS=-modcacherw", "CGO_ENABLED=1", "go"]
    sources = [GO / name for name in ("go.mod", "go.sum")] + sorted(GO.glob("*.go")) + [GO / "agent" / "main.go"]
    return fetch("go-client", sources,
                 command + ["build", "-C", str(GO), "-race", "-o", "{where}/agent", "./agent"],
                 command + ["test", "-C", str(GO), "-race", "-c", "-o", "{where}/own", "."])


if os.environ.get("HOLDFAST_LIBRARIES") == "all":
    test_scenario = scenario_test({"go": lambda: ([built() / "agent"], {"GORACE": "halt_on_error=1"})})

    def test_own(one):
        done = subprocess.run([built() / "own", "-test.v"], env=dict(os.environ, HOLDFAST_BROKER="127.0.0.1:%d" % one.broker.port),
                              capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "--- PASS: TestManyExcludeEachOther" in done.stdout
