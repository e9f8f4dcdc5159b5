"""Seconds that MKLpy 0.6 and kernelweave.baselines take to train, side by side in one process.

Needs MKLpy and torch, which nothing else here needs: ``nox -s compare-mklpy`` installs both. Every
figure is the smallest of some runs after one that warms up, in seconds of processor time on one
thread. ``weights`` is the choice of the kernel weights alone, ``fit`` that and the classifier, each
its own default, or the same for AverageMKL; both get the same Gram matrices. ``from X`` computes
those of seven kernels too, in MKLpy by its own functions.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from kernelweave.baselines import (
    AverageMKLClassifier,
    CKAClassifier,
    EasyMKLClassifier,
    alignment_weights,
    easymkl_weights,
)
from kernelweave.kernels_core import (
    RBF,
    KernelDictionary,
    Linear,
    Polynomial,
    config_context,
    default_kernels,
)
from MKLpy.algorithms import CKA, AverageMKL, EasyMKL
from MKLpy.metrics import pairwise
from sklearn.datasets import make_classification
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

SHARED = Path(__file__).resolve().parents[2] / "shared"
SIZES = (700, 1000, 1500)
SETS = ("mammographic", "banknote")
REPEATS = 3
OWN = KernelDictionary(
    [
        Linear(),
        *(Polynomial(degree=degree, gamma=0.01, coef0=1.0) for degree in (2, 3, 5)),
        *(RBF(gamma=gamma) for gamma in (0.5, 0.3, 0.1)),
    ]
)


def seconds(run: Callable[[], object]) -> float:
    """Return the smallest time of some runs after one that warms up."""
    run()
    best = np.inf
    for _ in range(REPEATS):
        started = time.process_time()
        run()
        best = min(best, time.process_time() - started)
    return float(best)


def samples() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield name, features and ±1 labels: made ones with 5 % of noise, then fetched ones."""
    for m in SIZES:
        X, y = make_classification(
            m, 10, n_informative=6, n_redundant=2, flip_y=0.05, random_state=0
        )
        yield f"made-{m}", X, 2.0 * y - 1.0
    if not SHARED.is_dir():
        return
    settings = json.loads((SHARED / "golden" / "smkl_settings.json").read_text())["sets"]
    for name in SETS:
        table = np.loadtxt(SHARED / "data" / settings[name]["file"], delimiter=",", skiprows=1)
        at = settings[name]["train"]
        yield name, table[at, :-1], table[at, -1]


def pairs() -> dict[str, tuple[Callable[[], BaseEstimator], Callable[..., BaseEstimator]]]:
    """Return MKLpy's estimator and ours by the name of the method."""
    return {
        "Average": (
            lambda: AverageMKL(learner=SVC(C=1.0)),
            lambda *kernels: AverageMKLClassifier(*kernels, C=1.0),
        ),
        "CKA": (CKA, CKAClassifier),
        "EasyMKL": (EasyMKL, EasyMKLClassifier),
    }


def by_mklpy(X: np.ndarray) -> list[torch.Tensor]:
    """Return the Gram matrices of `OWN`, by MKLpy's functions."""
    points = torch.tensor(X)
    plain = {"gamma": 0.01, "coef0": 1.0}
    return [
        pairwise.linear_kernel(points),
        *(pairwise.polynomial_kernel(points, degree=degree, **plain) for degree in (2, 3, 5)),
        *(pairwise.rbf_kernel(points, gamma=gamma) for gamma in (0.5, 0.3, 0.1)),
    ]


def rows(X: np.ndarray, y: np.ndarray) -> Iterator[tuple[str, str, float, float]]:
    """Yield method, what is timed, their seconds and ours."""
    X = StandardScaler().fit_transform(X)
    grams = default_kernels().fit_grams(X).grams
    stack, labels = [torch.tensor(K) for K in grams], torch.tensor(y)
    weights = {"CKA": alignment_weights, "EasyMKL": easymkl_weights}
    for name, (theirs, ours) in pairs().items():
        if name in weights:
            yield (
                name,
                "weights",
                seconds(lambda make=theirs: make().combine_kernels(stack, labels)),
                seconds(lambda find=weights[name]: find(grams, y)),
            )
        yield (
            name,
            "fit",
            seconds(lambda make=theirs: make().fit(stack, labels)),
            seconds(lambda make=ours: make("precomputed").fit(grams, y)),
        )
        yield (
            name,
            "from X",
            seconds(lambda make=theirs: make().fit(by_mklpy(X), labels)),
            seconds(lambda make=ours: make(OWN).fit(X, y)),
        )


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    say = partial(print, flush=True)
    say(f"{'data':13} {'m':>5} {'method':8} {'timed':8} {'MKLpy':>9} {'here':>9} {'ratio':>7}")
    with config_context(n_threads=1), threadpool_limits(1):
        for name, X, y in samples():
            for method, what, theirs, ours in rows(X, y):
                say(
                    f"{name:13} {len(y):5d} {method:8} {what:8} {theirs:9.4f} {ours:9.4f} "
                    f"{theirs / ours:7.1f}"
                )


if __name__ == "__main__":
    main()
