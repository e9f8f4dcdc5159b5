"""Several fits at once, forks, and compiled code that is gone or spoilt."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sound_cases import sound
from subjects import Subject, estimators

LIGHT = ("SimpleMKLClassifier", "SparseMKLClassifier", "TessellatedKernelClassifier")
FIT = """
import sys, warnings
import numpy as np
warnings.simplefilter("ignore")
from kernelweave.spectahedron import TessellatedKernelClassifier
X = np.random.default_rng(0).random((20, 2))
y = np.where(X[:, 0] > 0.5, 1, -1)
print(TessellatedKernelClassifier(tol=0.1).fit(X, y).decision_function(X).tobytes().hex())
"""


EVERY = """
import json, sys, warnings
import numpy as np
warnings.simplefilter("ignore")
sys.path[:0] = {folders}
from subjects import estimators
rng = np.random.default_rng(0)
X = rng.standard_normal((160, 3))
value = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * rng.standard_normal(160)
classes = np.where(value > np.median(value), 1, -1)
found = {{}}
for each in estimators():
    model = each.make({{}}).fit(X, classes if each.task == "classification" else value)
    judge = getattr(model, "decision_function", None) or getattr(model, "predict", None)
    judge = judge or model.forecast
    found[each.name] = np.asarray(judge(X)).tolist()
print(json.dumps(found))
"""


def predicted(subject: Subject) -> Any:
    case = sound(subject.task)
    # no limit of time: the answer must not depend on who else is at work
    case.params = {"max_time": None} if "max_time" in subject.parameters else {}
    return subject.run(case)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "subject",
    [
        pytest.param(s, id=s.name, marks=() if s.name in LIGHT else pytest.mark.slow)
        for s in estimators()
    ],
)
def test_eight_threads_agree_with_one(subject: Subject) -> None:
    alone = predicted(subject)
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(predicted, [subject] * 8))
    for values in together:
        np.testing.assert_array_equal(values, alone)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_four_processes_agree_with_one() -> None:
    """Under joblib's own processes, as in a grid search."""
    from joblib import Parallel, delayed
    from kernelweave.mkl_sparse import SparseMKLClassifier

    case = sound("classification")

    def fit(C: float) -> Any:
        model = SparseMKLClassifier(C=C, random_state=0).fit(case.X, case.y)
        return model.decision_function(case.X_new)

    strengths = [0.1, 1.0, 10.0, 100.0]
    alone = [fit(C) for C in strengths]
    together = Parallel(n_jobs=4, backend="loky")(delayed(fit)(C) for C in strengths)
    np.testing.assert_array_equal(together, alone)


def run(program: str, **settings: str) -> str:
    """Return what a program printed."""
    environment = {**os.environ, **settings}
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.slow
def test_one_thread_of_linear_algebra_and_two_agree() -> None:
    """For every estimator; `tests/test_same_threads.py` has some at a larger size."""
    here = Path(__file__).resolve()
    program = EVERY.format(folders=[str(here.parent), str(here.parents[2] / ".ci")])
    said = []
    for threads in ("1", "2"):
        settings = {f"{library}_NUM_THREADS": threads for library in ("OMP", "OPENBLAS", "MKL")}
        said.append(json.loads(run(program, **settings).splitlines()[-1]))
    one, two = said
    assert one.keys() == {each.name for each in estimators()}
    for name, values in one.items():
        # the bits, but for a graph, whose dictionaries of pairs may use every core
        slack = 1e-12 * np.ptp(values) if name == "GrangerGraph" else 0.0
        np.testing.assert_allclose(two[name], values, rtol=0.0, atol=slack, err_msg=name)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_after_a_fit_does_not_hang() -> None:
    program = FIT + textwrap.dedent(
        """
        import os, signal
        child = os.fork()
        if child == 0:
            signal.alarm(120)
            TessellatedKernelClassifier(tol=0.1).fit(X, y)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        """
    )
    run(program)


def spoil(cache: Path, how: str) -> None:
    """Damage every file of a folder of compiled code."""
    files = [path for path in cache.rglob("*") if path.is_file()]
    assert files
    for path in files:
        content = path.read_bytes()
        if how == "truncated":
            path.write_bytes(content[: len(content) // 2])
        elif how == "emptied":
            path.write_bytes(b"")
        elif (how, path.suffix) in (("no code", ".nbc"), ("no index", ".nbi")):
            path.unlink()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["no code", "no index", "truncated", "emptied"])
def test_spoilt_compiled_code(how: str, tmp_path: Path) -> None:
    """What is gone or damaged in numba's cache is compiled again, to the same answer."""
    wanted = run(FIT, NUMBA_CACHE_DIR=str(tmp_path))
    sound = {path.name: path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()}
    spoil(tmp_path, how)
    assert run(FIT, NUMBA_CACHE_DIR=str(tmp_path)) == wanted
    # replaced, so that the next process does not compile once more
    after = {path.name: path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()}
    assert after.keys() == sound.keys()
    assert all(after[name] > sound[name] // 2 for name in sound)


@pytest.mark.slow
def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """Whoever asks, root included: a file stands in its place."""
    (tmp_path / "file").touch()
    run(FIT, NUMBA_CACHE_DIR=str(tmp_path / "file" / "cache"))


@pytest.mark.slow
def test_no_home(tmp_path: Path) -> None:
    """Neither a home folder nor a cache folder that exists."""
    gone = str(tmp_path / "gone")
    run(FIT, HOME=gone, XDG_CACHE_HOME=gone, NUMBA_CACHE_DIR=str(tmp_path / "new"))
