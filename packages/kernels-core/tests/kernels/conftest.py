"""Real samples, and the paper's ten kernels on them under every normalisation."""

from __future__ import annotations

import pytest
from kernelweave.kernels_core.exceptions import KernelWeaveWarning
from kernelweave.kernels_core.kernels import PAPER_TEN, KernelDictionary
from sklearn.datasets import load_wine

NORMALIZATIONS = [None, "trace", "unit-diagonal", "center", "center-trace"]


@pytest.fixture(scope="package")
def wine():
    X = load_wine().data
    X = (X - X.mean(0)) / X.std(0, ddof=1)
    return X[::2], X[1::2]


@pytest.fixture(scope="package")
def clipped(wine):
    out = {}
    for normalize in NORMALIZATIONS:
        with pytest.warns(KernelWeaveWarning):
            out[normalize] = KernelDictionary(PAPER_TEN, normalize=normalize, psd="clip").fit_grams(
                wine[0]
            )
    return out
