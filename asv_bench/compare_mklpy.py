"""Seconds that MKLpy 0.6 and kernelweave.baselines take to train, side by side in one process.

Needs MKLpy and torch, which nothing else here needs: ``nox -s compare-mklpy`` installs both. Every
figure is the smallest of some runs after one that warms up, in seconds of processor time on one
thread; both get the same Gram matrices and have their own default classifier follow. ``weights``
is the choice of the kernel weights alone, ``fit`` that and the classifier.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import torch
from kernelweave.baselines import (
    CKAClassifier,
    EasyMKLClassifier,
    alignment_weights,
    easymkl_weights,
)
from kernelweave.kernels_core import config_context, default_kernels
from MKLpy.algorithms import CKA, EasyMKL
from sklearn.datasets import make_classification
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

SHARED = Path(__file__).resolve().parents[2] / "shared"
SIZES = (700, 1000, 1500)
SETS = ("mammographic", "banknote")
REPEATS = 3


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


def rows(X: np.ndarray, y: np.ndarray) -> Iterator[tuple[str, str, float, float]]:
    """Yield method, what is timed, their seconds and ours."""
    grams = default_kernels().fit_grams(StandardScaler().fit_transform(X)).grams
    stack, labels = [torch.tensor(K) for K in grams], torch.tensor(y)
    cases = {
        "CKA": (CKA, alignment_weights, partial(CKAClassifier, "precomputed")),
        "EasyMKL": (EasyMKL, easymkl_weights, partial(EasyMKLClassifier, "precomputed")),
    }
    for name, (theirs, weights, ours) in cases.items():
        yield (
            name,
            "weights",
            seconds(lambda make=theirs: make().combine_kernels(stack, labels)),
            seconds(lambda find=weights: find(grams, y)),
        )
        yield (
            name,
            "fit",
            seconds(lambda make=theirs: make().fit(stack, labels)),
            seconds(lambda make=ours: make().fit(grams, y)),
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
