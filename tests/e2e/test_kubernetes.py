"""etc/kubernetes against the schemas of Kubernetes, which a package of PyPI has: tried with --libraries alone."""

import os
import pathlib
import subprocess

import pytest

from fetched import fetch

HERE = pathlib.Path(__file__).resolve().parent
MANIFESTS = HERE.parent.parent / "etc" / "kubernetes" / "holdfast.yaml"


def judged(file, version):
    where = fetch("kubernetes", [HERE / "kubernetes" / "requirements.txt"], ["/usr/bin/python3", "-m", "venv", "venv"],
                  ["venv/bin/pip", "install", "-q", "--no-deps", "--disable-pip-version-check", "-r", "requirements.txt"])
    done = subprocess.run([where / "venv" / "bin" / "kubernetes-validate", "--strict", "-k", version, str(file)],
                          capture_output=True, text=True, timeout=50, check=False)
    return done.returncode, done.stdout + done.stderr


if os.environ.get("HOLDFAST_LIBRARIES") == "all":
    @pytest.mark.no_daemon
    @pytest.mark.parametrize("version", ["1.27", "1.30", "1.37"])
    def test_the_manifests_fit_the_schemas(version):
        status, said = judged(MANIFESTS, version)
        assert status == 0, said
        assert said.count(" passed ") == MANIFESTS.read_text(encoding="utf-8").count("\nkind: ") >= 5, said

    @pytest.mark.no_daemon
    @pytest.mark.parametrize("right,wrong", [("replicas: ", "replicas: x"), ("containerPort: ", "containrPort: "),
                                             ("  selector:", "  selector_:")])
    def test_a_mistake_is_found(right, wrong, tmp_path):
        text = MANIFESTS.read_text(encoding="utf-8")
        assert right in text
        bad = tmp_path / "bad.yaml"
        bad.write_text(text.replace(right, wrong), encoding="utf-8")
        status, said = judged(bad, "1.37")
        assert status != 0 and "did not validate" in said, said
