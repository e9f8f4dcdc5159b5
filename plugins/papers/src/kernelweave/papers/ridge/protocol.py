"""How the Ridge-MKL paper measures: kernels, methods, cross-validation and random halves.

The base kernels are not printed in the paper; ours are the linear kernel and Gaussian ones with
γ = 2^−6 … 2^3 on standardised features, each of mean diagonal 1. The matrices are small: on a busy
machine threads of the linear algebra library made the same work take 50 times as long, so the cells
use one.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import RBF, KernelDictionary, Linear, Problem, solve
from kernelweave.kernels_core.estimators import PrecomputedStack
from kernelweave.ridge_mkl.families import FittedFamily
from kernelweave.ridge_mkl.learners import Ridge
from kernelweave.ridge_mkl.sets import LqBall, Orthant

FloatArray = npt.NDArray[np.float64]

KERNELS = (Linear(), *(RBF(2.0**e) for e in range(-6, 4)))
LAMBDAS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
SIZES = (0.001, 0.1, 0.5, 1.0, 2.0, 10.0)
_BALL = {"PGD": ("krr-pgd", "krr-pgd2"), "IIA": ("krr-iia", "")}
_PENALTY = {"rPGD": ("krr-rpgd", "krr-rpgd2"), "rIIA": ("krr-riia", "")}
_FIXED = ("BM", "UNIF")
_TOL = 1e-3


@dataclass(frozen=True)
class Part:
    """A training and a test part with their Gram matrices.

    Attributes
    ----------
    grams : ndarray of shape (p, n, n)
        Of the training samples.
    cross : ndarray of shape (p, n_test, n)
        Of the test samples against them.
    y, y_test : ndarray of shape (n,) and (n_test,)
        ±1.
    """

    grams: FloatArray
    cross: FloatArray
    y: FloatArray
    y_test: FloatArray


def load(path: str, most: int | None = None) -> tuple[FloatArray, FloatArray]:
    """Return features and ±1 labels of a CSV file, at most ``most`` rows drawn at random.

    Parameters
    ----------
    path : str
        With a header row and the label last.
    most : int, optional
        Rows to keep.

    Returns
    -------
    X : ndarray of shape (n, n_features)
        Features.
    y : ndarray of shape (n,)
        Labels.
    """
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    if most is not None and len(table) > most:
        table = table[np.random.RandomState(0).permutation(len(table))[:most]]
    return table[:, :-1], table[:, -1]


def part(X: FloatArray, y: FloatArray, train: Any, test: Any) -> Part:
    """Return the Gram matrices of a split.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
        Features, standardised here by their training part.
    y : ndarray of shape (n,)
        Labels.
    train, test : ndarray of int
        Rows.
    """
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(X[train])
    fitted = KernelDictionary(list(KERNELS), normalize="trace").fit_grams(
        scaler.transform(X[train])
    )
    return Part(fitted.grams, fitted.cross(scaler.transform(X[test])), y[train], y[test])


def folds(X: FloatArray, y: FloatArray, n_folds: int) -> Iterator[Part]:
    """Yield the parts of a cross-validation of X (n, n_features) and y (n,)."""
    from sklearn.model_selection import StratifiedKFold

    for train, test in StratifiedKFold(n_folds, shuffle=True, random_state=0).split(X, y):
        yield part(X, y, train, test)


def halves(X: FloatArray, y: FloatArray, n_splits: int) -> Iterator[Part]:
    """Yield random halves of X (n, n_features) and y (n,)."""
    from sklearn.model_selection import StratifiedShuffleSplit

    splits = StratifiedShuffleSplit(n_splits, train_size=0.5, random_state=0)
    for train, test in splits.split(X, y):
        yield part(X, y, train, test)


def learn(
    data: Part, method: str, degree: int, lam: float, size: float, *, quick: bool = False
) -> FloatArray:
    """Return the kernel weights of a method.

    Parameters
    ----------
    data : Part
        Only its training part is used.
    method : str
        PGD, IIA, rPGD, rIIA, BM (one kernel alone) or UNIF (equal weights).
    degree : int
        d of the combination.
    lam : float
        λ of the ridge.
    size : float
        Λ of the ball, β of the penalty, or the number of the one kernel.
    quick : bool
        Whether 10 steps have to do, the least of the paper, and not 50, the most.

    Returns
    -------
    ndarray of shape (p,)
        μ.
    """
    from sklearn.exceptions import ConvergenceWarning

    p = len(data.grams)
    if method == "UNIF":
        return np.full(p, 1.0 / p)
    if method == "BM":
        return np.asarray(np.eye(p)[int(size)])
    constraint: Any
    if method in _BALL:
        name, constraint = _BALL[method][min(degree, 2) - 1], LqBall(2.0, size, 1.0)
    else:
        name, constraint = _PENALTY[method][min(degree, 2) - 1], Orthant(size)
    family = FittedFamily(PrecomputedStack(data.grams), degree)
    X = np.arange(len(data.y), dtype=np.float64)[:, None]
    problem = Problem(family, Ridge(C=1.0 / lam), constraint, X, data.y)
    steps = 10 if quick else 50
    with warnings.catch_warnings():
        # so many steps and no more is the paper's protocol
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = solve(
            problem, name, tol=_TOL, max_iter=steps, n_starts=1, stationary_tol=_TOL, random_state=0
        )
    return np.asarray(result.parameters)


def kernels_at(data: Part, mu: FloatArray, degree: int) -> tuple[FloatArray, FloatArray]:
    """Return (Σ μₖKₖ)^{∘d} of the training part, (n, n), and against the test part, (n_test, n)."""
    both = (np.tensordot(mu, K, axes=1) ** degree for K in (data.grams, data.cross))
    train, test = both
    return train, test


def ridge_errors(data: Part, mu: FloatArray, degree: int, lam: float) -> tuple[float, float]:
    """Return the root mean squared error and the share of wrong signs on the test part.

    Parameters
    ----------
    data : Part
        Both parts.
    mu : ndarray of shape (p,)
        Weights.
    degree : int
        d.
    lam : float
        λ of the ridge, which is fitted without an intercept as in the paper.
    """
    train, test = kernels_at(data, mu, degree)
    alpha = np.linalg.solve(train + lam * np.eye(len(train)), data.y)
    f = test @ alpha
    rmse = float(np.sqrt(np.mean((f - data.y_test) ** 2)))
    return rmse, float(np.mean(np.where(f > 0.0, 1.0, -1.0) != data.y_test))


def sizes_of(method: str, quick: bool) -> Sequence[float]:
    """Return what is searched beside λ: Λ or β, the kernels of BM, nothing for UNIF."""
    if method == "UNIF":
        return (0.0,)
    if method == "BM":
        return tuple(float(k) for k in range(len(KERNELS)))
    return SIZES[1:4:2] if quick else SIZES


def lambdas(quick: bool) -> Sequence[float]:
    """Return the λ that are searched."""
    return LAMBDAS[::2] if quick else LAMBDAS


def validate(
    X: FloatArray, y: FloatArray, method: str, degree: int, *, n_folds: int, quick: bool
) -> FloatArray:
    """Return the cross-validated RMSE, shape (n_lambdas, n_sizes, n_folds).

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
        Features.
    y : ndarray of shape (n,)
        ±1.
    method : str
        As in `learn`.
    degree : int
        d.
    n_folds : int
        Parts.
    quick : bool
        Whether to search fewer values with fewer steps.
    """
    lams, sizes = lambdas(quick), sizes_of(method, quick)
    found = np.empty((len(lams), len(sizes), n_folds))
    for k, data in enumerate(folds(X, y, n_folds)):
        for i, lam in enumerate(lams):
            for j, size in enumerate(sizes):
                mu = learn(data, method, degree, lam, size, quick=quick)
                found[i, j, k] = ridge_errors(data, mu, degree, lam)[0]
    return found
