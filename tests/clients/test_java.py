"""The Java package: the table of scenarios, and its own tests with any broker."""

import os
import shutil
import subprocess

import pytest

from fetched import cache, fetch
from table import CLIENTS, scenario_test

JAVA = CLIENTS / "java"


def maven():
    return ["mvn", "-q", "-B", "-Dmaven.repo.local=%s" % (cache().absolute() / "maven-client")]


def built():
    """A copy of the package with what it is built to, and the jars that it needs."""
    for tool in ("mvn", "javac"):
        if shutil.which(tool) is None:
            pytest.skip("%s is not installed" % tool)
    where = fetch("java-client", [JAVA / "pom.xml"] + sorted(JAVA.glob("src/*/java/holdfast/*.java")),
                  ["rm", "-rf", "package"], ["cp", "-R", str(JAVA), "package"],
                  maven() + ["-f", "package/pom.xml", "package", "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies",
                             "-DoutputDirectory={where}/jars"])
    return where / "package"


def agent():
    target = built() / "target"
    return ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp",
            "%s:%s:%s/*" % (target / "classes", target / "test-classes", target.parent.parent / "jars"), "holdfast.Agent"], {}


if os.environ.get("HOLDFAST_LIBRARIES") == "all":
    test_scenario = scenario_test({"java": agent})

    def test_own(one):
        where = built()
        done = subprocess.run(maven() + ["-o", "surefire:test"], cwd=where, capture_output=True, text=True, timeout=100, check=False,
                              env=dict(os.environ, HOLDFAST_BROKER="redis://127.0.0.1:%d" % one.broker.port))
        assert done.returncode == 0, done.stdout + done.stderr
        report = (where / "target" / "surefire-reports" / "holdfast.HoldfastClientTest.txt").read_text(encoding="utf-8")
        assert "Skipped: 0" in report, report
