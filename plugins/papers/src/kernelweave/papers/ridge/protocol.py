"""How the Ridge-MKL paper measures: kernels, methods, cross-validation and random halves.

The base kernels are not printed in the paper; ours are the linear kernel and Gaussian ones with
γ = 2^−6 … 2^3 on standardised features, or γ divided by their number, each of mean diagonal 1. The
matrices are small: on a busy
machine threads of the linear algebra library made the same work take 50 times as long, so the cells
use one.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from kernelweave.kernels_core import RBF, KernelDictionary, Linear, Problem, solve
from kernelweave.kernels_core.arrays import FloatArray, Index, RealArray
from kernelweave.kernels_core.grams import PrecomputedDictionary
from kernelweave.qp_smo import Ridge
from kernelweave.ridge_mkl import LqBall, Orthant
from kernelweave.ridge_mkl.families import power_of

from .. import data

GAMMAS = tuple(2.0**e for e in range(-6, 4))
LAMBDAS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
SIZES = (0.001, 0.1, 0.5, 1.0, 2.0, 10.0)
N_FOLDS, N_SPLITS = 10, 30
_BALL = {"PGD": ("krr-pgd", "krr-pgd2"), "IIA": ("krr-iia", "")}
_PENALTY = {"rPGD": ("krr-rpgd", "krr-rpgd2"), "rIIA": ("krr-riia", "")}
_TOL = 1e-3


class Part(NamedTuple):
    """Gram matrices (p, n, n) of a training part, (p, n_test, n) against it, and ±1 labels."""

    grams: RealArray
    cross: RealArray
    y: FloatArray
    y_test: FloatArray


def part(X: FloatArray, y: FloatArray, train: Index, test: Index, share: bool = False) -> Part:
    """Return the Gram matrices of a split, features standardised by their training part.

    ``share`` divides every γ by the number of features.
    """
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(X[train])
    unit = X.shape[1] if share else 1
    kernels = KernelDictionary([Linear(), *(RBF(g / unit) for g in GAMMAS)], normalize="trace")
    fitted = kernels.fit_grams(scaler.transform(X[train]))
    return Part(fitted.grams, fitted.cross(scaler.transform(X[test])), y[train], y[test])


def folds(X: FloatArray, y: FloatArray, n_folds: int, share: bool = False) -> Iterator[Part]:
    """Yield the parts of a cross-validation."""
    for train, test in data.folds(n_folds, 0, classes=True).split(X, y):
        yield part(X, y, train, test, share)


def halves(X: FloatArray, y: FloatArray, n_splits: int, share: bool = False) -> Iterator[Part]:
    """Yield random halves."""
    from sklearn.model_selection import StratifiedShuffleSplit

    splits = StratifiedShuffleSplit(n_splits, train_size=0.5, random_state=0)
    for train, test in splits.split(X, y):
        yield part(X, y, train, test, share)


def learn(
    data: Part, method: str, degree: int, lam: float, size: float, *, quick: bool = False
) -> FloatArray:
    """Return the kernel weights μ (p,) of a method, learned on the training part.

    PGD, IIA, rPGD, rIIA, BM (one kernel alone) or UNIF (equal weights); ``size`` is Λ of the ball,
    β of the penalty, or the number of the one kernel. A quick run takes 10 steps, the least of the
    paper, and not 50, the most.
    """
    from sklearn.exceptions import ConvergenceWarning

    p = len(data.grams)
    if method == "UNIF":
        return np.full(p, 1.0 / p)
    if method == "BM":
        return np.asarray(np.eye(p)[int(size)])
    ball = method in _BALL
    name = (_BALL if ball else _PENALTY)[method][min(degree, 2) - 1]
    # the paper's objective is twice that of a problem
    constraint: LqBall | Orthant = LqBall(2.0, size, 1.0) if ball else Orthant(0.5 * size)
    family = power_of(PrecomputedDictionary(data.grams), degree)
    X = np.arange(len(data.y), dtype=np.float64)[:, None]
    problem = Problem(family, Ridge(C=1.0 / lam), constraint, X, data.y)
    limits: dict[str, Any] = {"tol": _TOL, "stationary_tol": _TOL, "max_iter": 10 if quick else 50}
    with warnings.catch_warnings():
        # so many steps and no more is the paper's protocol
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = solve(problem, name, n_starts=1, random_state=0, **limits)
    return np.asarray(result.parameters)


def kernels_at(data: Part, mu: FloatArray, degree: int) -> tuple[FloatArray, FloatArray]:
    """Return (Σ μₖKₖ)^{∘d} of the training part, (n, n), and against the test part, (n_test, n)."""
    train, test = (np.tensordot(mu, K, axes=1) ** degree for K in (data.grams, data.cross))
    return train, test


def ridge_errors(data: Part, mu: FloatArray, degree: int, lam: float) -> tuple[float, float]:
    """Return the root mean squared error and the share of wrong signs of ridge on the test part.

    Fitted without an intercept, as in the paper.
    """
    train, test = kernels_at(data, mu, degree)
    f = test @ np.linalg.solve(train + lam * np.eye(len(train)), data.y)
    rmse = float(np.sqrt(np.mean((f - data.y_test) ** 2)))
    return rmse, float(np.mean(np.where(f > 0.0, 1.0, -1.0) != data.y_test))


def sizes_of(method: str, quick: bool) -> Sequence[float]:
    """Return what is searched beside λ: Λ or β, the kernels of BM, nothing for UNIF."""
    if method == "UNIF":
        return (0.0,)
    if method == "BM":
        return tuple(float(k) for k in range(1 + len(GAMMAS)))
    return SIZES[1:4:2] if quick else SIZES


def lambdas(quick: bool) -> Sequence[float]:
    """Return the λ that are searched, the least and the largest of the paper among them."""
    return (*LAMBDAS[::2], LAMBDAS[-1]) if quick else LAMBDAS
