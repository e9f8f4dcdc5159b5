"""R² and CPU seconds for a list of kernels under the squared loss, beside himalaya's searches.

All get the same Gram matrices, in one process, one after the other, on one thread: of standardised
columns a Gaussian each, Gaussians of all of them in four widths, and a linear kernel. himalaya
0.4.11 draws 20 or 100 weights at random (100 is its default) with nine ridges, or takes its ten
steps along their hyper-gradient; its folds are five. Rows are drawn three times; up to 500 others
are predicted.

    python asv_bench/compare_himalaya.py FOLDER              the tables of docs/benchmarks
    python asv_bench/compare_himalaya.py FOLDER --choose     those that settings were chosen on
    python asv_bench/compare_himalaya.py FOLDER --outputs    digits with hundreds of outputs

FOLDER holds the public data sets as CSV files with the target last. Needs himalaya.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from himalaya.kernel_ridge import MultipleKernelRidgeCV
from kernelweave.evidence import EvidenceMKLRegressor
from kernelweave.ridge_mkl import RidgeMKLRegressorCV
from sklearn.datasets import load_diabetes, load_digits
from sklearn.metrics import r2_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

# training rows of each table
CHOSEN = {"boston_housing": 300, "airfoil": 500, "space_ga": 800}
REPORTED = {
    "abalone_rings": 600,
    "ccpp": 600,
    "california_housing": 700,
    "gas_turbine": 500,
    "grand_canyon_750": 400,
    "diabetes": 300,
}
N_NEW, DRAWS = 500, 3
WIDTHS = (0.03, 0.1, 0.3, 1.0)
say = partial(print, flush=True)
# name, training rows, columns as numbers, targets
Table: TypeAlias = tuple[str, int, np.ndarray, np.ndarray]


class Case(NamedTuple):
    """Gram matrices of training rows, of new rows with these, and the targets of both."""

    grams: np.ndarray
    cross: np.ndarray
    y: np.ndarray
    y_new: np.ndarray


def kernels(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Return one Gram matrix for each kernel, shape (n_kernels, n_X, n_Z)."""
    each = [rbf_kernel(X[:, [j]], Z[:, [j]], 1.0) for j in range(X.shape[1])]
    return np.stack([*each, *(rbf_kernel(X, Z, g) for g in WIDTHS), X @ Z.T / X.shape[1]])


def case(X: np.ndarray, y: np.ndarray, n: int, draw: int) -> Case:
    """Draw n training rows and others; targets are standardised by the first."""
    order = np.random.default_rng(draw).permutation(len(X))
    own, new = order[:n], order[n : n + N_NEW]
    scaler = StandardScaler().fit(X[own])
    A, B = scaler.transform(X[own]), scaler.transform(X[new])
    spread = np.where(y[own].std(axis=0) > 0.0, y[own].std(axis=0), 1.0)
    y = (y - y[own].mean(axis=0)) / spread
    return Case(kernels(A, A), kernels(B, A), y[own], y[new])


def tables(folder: Path, names: dict[str, int]) -> Iterator[Table]:
    """Yield name, training rows, columns as numbers and target of the tables that are there."""
    for name, n in names.items():
        path = next(folder.glob(f"{name}.csv*"), None)
        if name == "diabetes":
            table = load_diabetes(as_frame=True).frame
        elif path is not None:
            table = pd.read_csv(path).dropna()
        else:
            say(f"{name}: not in {folder}")
            continue
        y = table.pop(table.columns[-1]).to_numpy(float)
        yield name, n, pd.get_dummies(table).to_numpy(float), y


def outputs() -> Iterator[Table]:
    """Yield digits: 300 random sines of 48 of their pixels, from 12 others."""
    pixels = load_digits().data / 16.0
    state = np.random.default_rng(0)
    mixed = np.sin(pixels[:, 16:] @ state.normal(size=(48, 300)) / 3.0)
    yield "digits, 300 outputs", 500, pixels[:, 4:16], mixed


def himalaya(case: Case, solver: str, **settings: object) -> np.ndarray:
    """Return predictions of himalaya's search for one set of weights for each output."""
    intercept = solver == "random_search"
    model = MultipleKernelRidgeCV(
        kernels="precomputed", solver=solver, fit_intercept=intercept, cv=5, random_state=0,
        solver_params={"progress_bar": False, **settings},
    )  # fmt: skip
    return np.asarray(model.fit(case.grams, case.y).predict(case.cross))


def evidence(case: Case, algorithm: str = "path") -> np.ndarray:
    """Return predictions of weights by the evidence."""
    model = EvidenceMKLRegressor("precomputed", algorithm=algorithm)
    return np.asarray(model.fit(case.grams, case.y).predict(case.cross))


def ridge(case: Case) -> np.ndarray:
    """Return predictions of weights that minimise the training objective, or of their mean."""
    model = RidgeMKLRegressorCV("precomputed", q=[1.0, 2.0, np.inf]).fit(case.grams, case.y)
    return np.asarray(model.predict(case.cross))


RIDGES = np.logspace(-4, 4, 9)
METHODS: dict[str, Callable[[Case], np.ndarray]] = {
    "evidence": evidence,
    "evidence, proved": partial(evidence, algorithm="lbfgs"),
    "ridge": ridge,
    "himalaya 20": partial(himalaya, solver="random_search", n_iter=20, alphas=RIDGES),
    "himalaya 100": partial(himalaya, solver="random_search", n_iter=100, alphas=RIDGES),
    "himalaya gradient": partial(himalaya, solver="hyper_gradient"),
}


def line(methods: list[str], told: np.ndarray) -> str:
    """Return R² and seconds of each method in words."""
    pairs = zip(methods, told.tolist(), strict=True)
    return "  ".join(f"{method} {score:.3f} {seconds:.1f} s" for method, (score, seconds) in pairs)


def main() -> None:
    """Print a line for each draw, and the means of each table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--outputs", action="store_true")
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    found = tables(given.folder, CHOSEN if given.choose else REPORTED)
    for name, n, X, y in outputs() if given.outputs else found:
        told = np.zeros((DRAWS, len(given.methods), 2))
        for draw in range(DRAWS):
            drawn = case(X, y, n, draw)
            for k, method in enumerate(given.methods):
                started = time.process_time()
                said = METHODS[method](drawn)
                seconds = time.process_time() - started
                told[draw, k] = r2_score(drawn.y_new, said), seconds
            say(f"{name:20} {draw}     {line(given.methods, told[draw])}")
        say(f"{name:20} mean  {line(given.methods, told.mean(axis=0))}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
