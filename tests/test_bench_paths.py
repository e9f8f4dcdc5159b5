"""What the benchmark of Gram matrices times is what fits run: one compiled pass for all of them."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernelweave.kernels_core import Problem, TessellatedFamily, algorithms, solve
from kernelweave.kernels_core.families import _general, _njit_affine_sum
from kernelweave.kernels_core.testing import make_classification
from kernelweave.qp_smo import SVC
from kernelweave.spectahedron import Spectahedron

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "asv_bench"))

from benchmarks.kernels_core import Parts

FITS = sorted(name for name in algorithms() if name.startswith("tkl-"))
# these meet a P of full rank, whose factors would cost more
OF_FULL_RANK = {"tkl-interior-point", "tkl-sdp"}


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Return how often each pass over the pairs of samples has run."""
    counts: Counter[str] = Counter()

    def count(module: Any, name: str) -> None:
        run = getattr(module, name)

        def counting(*args: Any, **options: Any) -> Any:
            counts[name] += 1
            return run(*args, **options)

        monkeypatch.setattr(module, name, counting)

    for module, name in (
        (_njit_affine_sum, "sum_rows"),
        (_general, "gram_quadratic"),
        (_general, "gram_general"),
    ):
        count(module, name)
    return counts


def test_the_benchmark_times_the_pass_of_the_fits(counted: Counter[str]) -> None:
    Parts(30, 4).rank_one()
    assert counted == {"sum_rows": 1}


@pytest.mark.parametrize("name", FITS)
def test_fits_run_the_pass_that_is_timed(name: str, counted: Counter[str]) -> None:
    X, y = make_classification(60)
    corner = np.ones(X.shape[1])
    low, high = X.min(axis=0) - corner, X.max(axis=0) + corner
    family = TessellatedFamily(1, lower=low, upper=high)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solve(Problem(family, SVC(C=10.0), Spectahedron(), X, y), name, tol=1e-3, max_iter=6)
    assert counted["sum_rows"] > 0
    assert counted["gram_quadratic"] == 0
    assert (counted["gram_general"] > 0) == (name in OF_FULL_RANK)
