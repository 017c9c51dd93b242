"""The end-to-end tests of what brokers do, over masters of another make: Valkey, as Debian's backports have it."""

import os
import pathlib
import subprocess

import pytest

from fetched import fetch

TESTS = pathlib.Path(__file__).resolve().parents[1]
LIST = TESTS / "dropin" / "servers" / "backports.list"
VALKEY = "8.0.1+dfsg1-1~bpo12+1"
APT = ["apt-get", "-qq", "-o", "Dir::Etc::sourcelist={where}/backports.list", "-o", "Dir::Etc::sourceparts=-",
       "-o", "Dir::State::lists={where}/lists", "-o", "Dir::Cache={where}/cache", "-o", "Acquire::Languages=none",
       "-o", "APT::Sandbox::User=root"]


@pytest.fixture(scope="module")
def valkey():
    """Its server is the program that checks its files, too: which of the two it is, it knows by its name."""
    return fetch("valkey", [LIST, pathlib.Path(__file__)],
                 ["mkdir", "-p", "{where}/lists/partial", "{where}/cache/archives/partial"],
                 APT + ["update"], APT + ["download", "valkey-tools=" + VALKEY],
                 ["sh", "-c", "dpkg-deb -x valkey-tools_*.deb files && cp files/usr/bin/valkey-check-rdb valkey-server"],
                 ["./valkey-server", "--version"]) / "valkey-server"


@pytest.mark.parametrize("name", ["locks", "kinds", "dropin", "mirror", "deployments"])
def test_over_valkey(valkey, name):
    done = subprocess.run(["/usr/bin/python3", "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider",
                           str(TESTS / "e2e" / ("test_%s.py" % name))], capture_output=True, text=True, check=False,
                          env=dict(os.environ, HOLDFAST_TEST_MASTERS=str(valkey)))
    assert done.returncode == 0, done.stdout[-20000:]
