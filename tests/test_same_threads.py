"""The same answer with one thread of linear algebra and with two, in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from typing import Any

PROGRAM = textwrap.dedent(
    """
    import json, warnings
    from concurrent.futures import ThreadPoolExecutor
    from sklearn.base import clone
    from sklearn.datasets import load_breast_cancer
    from kernelweave.baselines import AverageMKLClassifier, EasyMKLClassifier
    from kernelweave.mkl_sparse import SparseMKLClassifier
    from kernelweave.spectahedron import TessellatedKernelClassifier

    warnings.simplefilter("ignore")
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:, :8], y
    models = (
        TessellatedKernelClassifier(C=0.1, tol=1e-4),
        SparseMKLClassifier(random_state=0),
        AverageMKLClassifier(),
        EasyMKLClassifier(),
    )

    def judged(model):
        return clone(model).fit(X, y).decision_function(X).tolist()

    found = {type(model).__name__: judged(model) for model in models}
    """
)
ALONE = PROGRAM + "print(json.dumps(found))"
TOGETHER = PROGRAM + textwrap.dedent(
    """
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(judged, models * 2))
    print(json.dumps([found, [[type(m).__name__, v] for m, v in zip(models * 2, together)]]))
    """
)


def said(program: str, threads: str) -> Any:
    """Return what a process with so many threads of linear algebra prints."""
    settings = {f"{library}_NUM_THREADS": threads for library in ("OMP", "OPENBLAS", "MKL")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_one_thread_and_two_give_the_same_bits() -> None:
    assert said(ALONE, "1") == said(ALONE, "2")


def test_fits_at_once_in_threads_give_the_bits_of_one_alone() -> None:
    alone, together = said(TOGETHER, "2")
    assert len(together) == 8
    for name, values in together:
        assert values == alone[name], name
