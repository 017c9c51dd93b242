"""Configurations that the documentation shows: the broker takes them."""

import os
import re
import subprocess

import pytest

from holdfastproc import daemon_path

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
MASTERS = "[masters]\na = redis://192.0.2.1:6379\n"
USERS = "[users]\nops = none\nops.uid = 0\n"


def read(*path):
    with open(os.path.join(TOP, *path), encoding="utf-8") as file:
        return file.read()


def unindented(text):
    return re.sub(r"^    ", "", text, flags=re.M)


def check(tmp_path, text, *args):
    path = tmp_path / "holdfast.ini"
    path.write_text(text)
    done = subprocess.run([daemon_path(), "-t", "-c", path, *args], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and "is good" in done.stdout, done.stdout + done.stderr


def snippets():
    """The indented blocks of doc/deployments.md that are configurations."""
    found = re.findall(r"^    \[holdfast\]\n(?:    .*\n)+", read("doc", "deployments.md"), re.M)
    assert len(found) >= 3
    return [unindented(text) for text in found]


@pytest.mark.parametrize("text", snippets(), ids=lambda text: text.split("\n")[1])
def test_deployments(tmp_path, text):
    check(tmp_path, text + USERS + MASTERS)


def test_kubernetes(tmp_path):
    """The secret, with the options that the StatefulSet adds."""
    manifest = read("etc", "kubernetes", "holdfast.yaml")
    text = unindented(manifest.partition("holdfast.ini: |\n")[2].partition("---\n")[0])
    hashed = subprocess.run([daemon_path(), "--hash-password"], input="secret\n", capture_output=True, text=True,
                            timeout=60, check=True).stdout.strip()
    args = re.findall(r"- (-o|holdfast\.\S+=\S+)$", manifest, re.M)
    assert len(args) == 4
    check(tmp_path, text.replace("pbkdf2-sha256:10000:REPLACE", hashed),
          *[word.replace("$(POD_NAME)", "holdfast-0") for word in args])
