"""What is fetched from a registry, once for each version of the files that pin it; kept in HOLDFAST_TEST_CACHE."""

import fcntl
import hashlib
import os
import pathlib
import shutil
import signal
import subprocess

import pytest

FETCH_LIMIT_S = 480


def cache():
    return pathlib.Path(os.environ.get("HOLDFAST_TEST_CACHE")
                        or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"),
                                        "holdfast-tests"))


def fetch(kind, files, *commands):
    """A directory with these files in it where these commands have been run; that takes nothing of the test's own time."""
    pinned = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
    where = (cache() / ("%s-%s" % (kind, pinned))).absolute()
    if (where / ".complete").exists():
        return where
    where.mkdir(parents=True, exist_ok=True)
    left_s = signal.alarm(0)
    # test files that run at the same time want the same: the second waits for the first
    with open(where / ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (where / ".complete").exists():
            fill(where, files, commands)
    signal.alarm(left_s)
    return where


def fill(where, files, commands):
    for file in files:
        shutil.copy(file, where)
    for command in commands:
        signal.alarm(FETCH_LIMIT_S + 10)
        try:
            done = subprocess.run([word.format(where=where) for word in command], cwd=where, capture_output=True,
                                  text=True, timeout=FETCH_LIMIT_S, check=False)
        except subprocess.TimeoutExpired:
            pytest.skip("%s did not end in time: can this machine reach the registry?" % " ".join(command))
        if done.returncode != 0:
            pytest.skip("%s failed: %s" % (command[0], (done.stderr + done.stdout).strip()[-300:]))
    (where / ".complete").touch()
