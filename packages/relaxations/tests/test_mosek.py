"""MOSEK makes nothing but its own use different: installed without a licence it is not noticed."""

import json
import os
import shutil
import subprocess
import sys

import pytest

SCRIPT = """
import json, sys, warnings
import cvxpy as cp, numpy as np
from kernelweave.relaxations import lower_bound, solve_global

rng = np.random.default_rng(0)
X = rng.standard_normal((14, 2))
grams = np.stack([X @ X.T, np.exp(-((X[:, None] - X[None]) ** 2).sum(-1)), np.eye(14)])
y = np.where(X[:, 0] > 0, 1.0, -1.0)
s = {"C": 2.0, "lam": 0.5, "k0": 2}
names = ("saddle", "full-sdp", "sdp-3x3", "soc", "soc-random")
found = {name: lower_bound(grams, y, relaxation=name, **s).bound for name in names}
found["global"] = solve_global(grams, y, **s).lower_bound
with warnings.catch_warnings(record=True) as given:
    warnings.simplefilter("always")
    try:
        lower_bound(grams, y, relaxation="soc", solver="MOSEK", **s)
        said = str(given[0].message)
    except ValueError as error:
        said = str(error)
print(json.dumps([cp.installed_solvers(), found, said]))
"""


def run(path):
    environment = {**os.environ, "PYTHONPATH": str(path), "MOSEKLM_LICENSE_FILE": "/nowhere"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.mark.slow
def test_a_wheel_without_a_licence_changes_nothing(tmp_path):
    installer = shutil.which("uv", path=os.path.dirname(sys.executable)) or shutil.which("uv")
    command = [installer, "pip"] if installer else [sys.executable, "-m", "pip"]
    command += ["install", "--quiet", "--no-deps", "--target", str(tmp_path / "wheel"), "mosek"]
    got = subprocess.run(command, capture_output=True, text=True, check=False)
    if got.returncode != 0:
        pytest.skip(f"mosek could not be downloaded: {got.stderr.strip()[-200:]}")
    _, without, absent = run(tmp_path / "nothing")
    solvers, found, said = run(tmp_path / "wheel")
    assert "MOSEK" in solvers
    assert found == without
    assert "not installed" in absent
    assert "MOSEK: no licence" in said
    assert "CLARABEL: optimal" in said
