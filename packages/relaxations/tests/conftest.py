import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))


def small_problem(n=24, q=5, seed=0):
    """Return Grams of different shape and scale, and noisy labels."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.standard_normal(n) > 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    square = ((X[:, None] - X[None]) ** 2).sum(-1)
    grams = [X @ X.T, (0.1 * X @ X.T + 1.0) ** 2]
    grams += [np.exp(-(2.0**e) * square) for e in range(-2, q - 4)]
    return np.stack(grams[:q]), y, X


@pytest.fixture
def problem():
    return small_problem()


@pytest.fixture(scope="session")
def published(shared):
    """Return a reader of a published setting: Grams, eight by default, labels, the setting."""
    from kernelweave.kernels_core.kernels import default_kernels

    settings = json.loads((shared / "golden" / "smkl_settings.json").read_text())["sets"]

    def read(name, *, kernels=None):
        setting = settings[name]
        table = np.genfromtxt(shared / "data" / setting["file"], delimiter=",", skip_header=1)
        rows = np.array(setting["train"])
        X, y = table[rows, :-1], table[rows, -1]
        if setting["columns"] is not None:
            X = X[:, setting["columns"]]
        spread = X.std(axis=0, ddof=1)
        X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1e-8)
        dictionary = default_kernels() if kernels is None else kernels
        return dictionary.fit_grams(X).grams, y, setting

    return read
