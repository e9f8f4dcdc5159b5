"""Record the kernel weights that MKLpy 0.6 finds, as golden values for plugins/baselines.

Run once, in an environment of its own (``pip install MKLpy==0.6 torch``), from anywhere::

    python tests/golden/make_mklpy.py

It reads the splits and the data sets beside the checkout and writes ``mklpy.json`` beside itself.
The kernels are the eight positive semidefinite ones of the sparse multiple kernel learning paper,
on the training part, features standardised by its mean and standard deviation (ddof = 1).
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from MKLpy.algorithms import CKA, AverageMKL, EasyMKL

HERE = Path(__file__).resolve().parent
SHARED = HERE.parents[2] / "shared"
SETS = ("iris", "wine", "parkinsons", "heart", "haberman")
LAMBDAS = (0.001, 0.1, 0.5, 0.9)


def training_part(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return standardised features and labels of the recorded training rows."""
    setting = json.loads((SHARED / "golden" / "smkl_settings.json").read_text())["sets"][name]
    table = np.loadtxt(SHARED / "data" / setting["file"], delimiter=",", skiprows=1)
    X, y = table[:, :-1], table[:, -1]
    if setting["columns"] is not None:
        X = X[:, setting["columns"]]
    X, y = X[setting["train"]], y[setting["train"]]
    spread = X.std(axis=0, ddof=1)
    spread[spread == 0.0] = 1e-8
    return (X - X.mean(axis=0)) / spread, y


def gram_matrices(X: np.ndarray) -> list[np.ndarray]:
    """Return the Gram matrices: linear, polynomial 2, 3, 5, Gaussian .5, .3, .1, Laplacian .3."""
    products = X @ X.T
    squares = ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)
    absolute = np.abs(X[:, None, :] - X[None, :, :]).sum(axis=2)
    grams = [products, *((0.01 * products + 1.0) ** d for d in (2, 3, 5))]
    grams += [np.exp(-g * squares) for g in (0.5, 0.3, 0.1)]
    return [*grams, np.exp(-0.3 * absolute)]


def weights_of(method: object, grams: list[np.ndarray], y: np.ndarray) -> list[float]:
    """Return the weights that a method of MKLpy finds."""
    stack = [torch.tensor(K) for K in grams]
    found = method.combine_kernels(stack, torch.tensor(y)).weights  # type: ignore[attr-defined]
    return [float(w) for w in found]


def main() -> None:
    """Write the file."""
    record: dict[str, object] = {
        "about": "Kernel weights of MKLpy, by make_mklpy.py. easymkl is keyed by its lam.",
        "versions": {name: version(name) for name in ("MKLpy", "torch", "numpy", "scikit-learn")},
    }
    sets = {}
    for name in SETS:
        X, y = training_part(name)
        grams = gram_matrices(X)
        sets[name] = {
            "n_train": len(y),
            "average": weights_of(AverageMKL(), grams, y),
            "cka": weights_of(CKA(), grams, y),
            "easymkl": {str(lam): weights_of(EasyMKL(lam=lam), grams, y) for lam in LAMBDAS},
        }
    record["sets"] = sets
    (HERE / "mklpy.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
