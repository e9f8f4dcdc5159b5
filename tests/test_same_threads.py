"""The same answer with one thread of linear algebra and with two, in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import numpy as np

PROGRAM = textwrap.dedent(
    """
    import json, warnings
    from sklearn.datasets import load_breast_cancer
    from kernelweave.baselines import AverageMKLClassifier, EasyMKLClassifier
    from kernelweave.mkl_sparse import SparseMKLClassifier
    from kernelweave.spectahedron import TessellatedKernelClassifier

    warnings.simplefilter("ignore")
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:, :8], y
    found = {}
    for model in (
        TessellatedKernelClassifier(C=0.1, tol=1e-4),
        SparseMKLClassifier(random_state=0),
        AverageMKLClassifier(),
        EasyMKLClassifier(),
    ):
        values = model.fit(X, y).decision_function(X)
        found[type(model).__name__] = values.tolist()
    print(json.dumps(found))
    """
)


def test_one_thread_and_two_give_the_same_answer() -> None:
    """Bits for tessellated kernels; where Grams are matrix products, what ``tol`` leaves open."""
    said = []
    for threads in ("1", "2"):
        settings = {f"{library}_NUM_THREADS": threads for library in ("OMP", "OPENBLAS", "MKL")}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, **settings},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        said.append(json.loads(done.stdout.splitlines()[-1]))
    one, two = said
    assert one["TessellatedKernelClassifier"] == two["TessellatedKernelClassifier"]
    for name, values in one.items():
        np.testing.assert_allclose(two[name], values, atol=1e-3 * np.ptp(values), err_msg=name)
