"""PWMK: weights proportional to what each kernel achieves alone."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import FloatArray, Index
from kernelweave.kernels_core.checks import (
    SHARE,
    check_array,
    check_sample_weight,
    check_targets,
    integer,
)
from kernelweave.kernels_core.kernels import as_grams
from kernelweave.kernels_core.parameters import Value, parameter

FOLDS = integer(2)

# a decision value near 0 must not change sides with the order of the samples
_TOL = 1e-6


def proportional_weights(accuracy: npt.ArrayLike, *, threshold: float = 0.0) -> FloatArray:
    """Return ``βⱼ = (πⱼ − δ)/Σᵢ (πᵢ − δ)`` with ``δ = threshold · min π``.

    Parameters
    ----------
    accuracy : array-like of shape (q,)
        π ≥ 0, what each kernel achieves alone.
    threshold : float, default=0.0
        In [0, 1]: at 1 the worst kernel gets no weight.

    Returns
    -------
    ndarray of shape (q,)
        β, which sums to 1; equal weights where all πⱼ = δ.

    Raises
    ------
    ValueError
        If an accuracy is negative or not finite, or the threshold outside [0, 1].

    Notes
    -----
    Tanabe, Ho, Nguyen and Kawasaki, "Simple but effective methods for combining kernels in
    computational biology", RIVF 2008, equation (3).

    Examples
    --------
    >>> from kernelweave.baselines import proportional_weights
    >>> proportional_weights([0.6, 0.9], threshold=1.0)
    array([0., 1.])
    """
    pi = check_array("accuracy", accuracy, 1)
    if not (pi >= 0.0).all():
        raise ValueError(f"accuracy must be a list of numbers at least 0, got {accuracy!r}")
    SHARE.check("threshold", threshold)
    shifted = pi - threshold * pi.min()
    total = shifted.sum()
    return shifted / total if total > 0.0 else np.full(pi.size, 1.0 / pi.size)


def folds(targets: FloatArray, n_folds: int, order: FloatArray) -> Index:
    """Return the fold of each sample, shape (n,): the members of a class take turns.

    `targets` of shape (t, n): samples with the same column are of one class; `n_folds`: at least 2;
    `order` of shape (n,): the members take turns in ascending order of these numbers, so that the
    folds do not depend on how the samples are listed.
    """
    _, codes = np.unique(targets, axis=1, return_inverse=True)
    fold = np.empty(targets.shape[1], dtype=np.intp)
    for code in np.unique(codes):
        at = np.flatnonzero(codes.ravel() == code)
        fold[at[np.argsort(order[at], kind="stable")]] = np.arange(len(at)) % n_folds
    return fold


def centrality(grams: npt.NDArray[Any], sample_weight: FloatArray | None) -> FloatArray:
    """Return how similar each sample is to all: row sums of Σ Kⱼ/tr Kⱼ, shape (n,)."""
    n = grams.shape[1]
    weight = np.ones(n) if sample_weight is None else sample_weight
    total = np.zeros(n)
    for K in grams:
        scale = float(np.diagonal(K) @ weight)
        total += K @ weight / (scale if scale > 0.0 else 1.0)
    return total


def single_kernel_accuracies(
    grams: npt.ArrayLike,
    targets: npt.ArrayLike,
    learner: Any,
    *,
    n_folds: int = 3,
    sample_weight: npt.ArrayLike | None = None,
    check: bool = True,
) -> FloatArray:
    """Return the cross-validated accuracy of the learner on each kernel alone.

    Parameters
    ----------
    grams : array-like of shape (q, n, n)
        Symmetric, positive semidefinite.
    targets : array-like of shape (n,) or (t, n)
        Rows of ±1; with several the row of the largest decision value is predicted.
    learner : object with ``solve``
        E.g. ``kernelweave.qp_smo.SVC(C=1.0)``.
    n_folds : int, default=3
        The members of a class take turns in them, by their mean similarity to all. A fold whose
        training part lacks a class is left out.
    sample_weight : array-like of shape (n,), optional
        How many times each sample counts.
    check : bool, default=True
        Whether to check the matrices, which costs n³/3 operations each, targets and weights.

    Returns
    -------
    ndarray of shape (q,)
        π; ones where no fold can be used.

    Raises
    ------
    ValueError
        If there are fewer than 2 folds, a task has one class, or an argument is not as stated.
    NotPSDError
        If a matrix has a negative eigenvalue.
    """
    FOLDS.check("n_folds", n_folds)
    if check:
        grams = as_grams(grams, "grams", square=True, psd=True)
        targets = check_targets("targets", targets, grams.shape[1], labels=True)
        sample_weight = check_sample_weight(sample_weight, grams.shape[1])
    stack = np.asarray(grams)
    y = np.atleast_2d(np.asarray(targets, dtype=np.float64))
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    fold = folds(y, n_folds, centrality(stack, weight))
    scores, masses = [], []
    for k in range(n_folds):
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        lacks = (np.ptp(y[:, train], axis=1) == 0.0).any() if len(train) else True
        if lacks or len(test) == 0:
            continue
        own = np.ones(len(test)) if weight is None else weight[test]
        scores.append([own @ _hits(K, y, train, test, learner, weight) for K in stack])
        masses.append(own.sum())
    if not masses:
        return np.ones(len(stack))
    return np.asarray(np.sum(scores, axis=0) / np.sum(masses))


def _hits(
    K: FloatArray,
    y: FloatArray,
    train: Index,
    test: Index,
    learner: Any,
    weight: FloatArray | None,
) -> FloatArray:
    """Return 1 for each test sample whose class is predicted and 0 for the others."""
    solution = learner.solve(
        np.ascontiguousarray(K[np.ix_(train, train)]),
        y[:, train],
        sample_weight=None if weight is None else weight[train],
        tol=_TOL,
        check=False,
    )
    values = solution.dual_coef @ K[np.ix_(train, test)] + solution.intercept[:, None]
    if len(y) == 1:
        found = np.where(values[0] > 0.0, 1.0, -1.0) == y[0, test]
    else:
        found = y[values.argmax(axis=0), test] > 0.0
    return np.asarray(found, dtype=np.float64)


class ProportionalWeights(Value):
    """The one point {β : β ∝ cross-validated accuracy of each kernel alone}.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.baselines import ProportionalWeights
    >>> from kernelweave.qp_smo import SVC
    >>> x = np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])
    >>> grams = np.stack([np.outer(x, x), np.outer(x**2, x**2)])
    >>> rule = ProportionalWeights(threshold=1.0)
    >>> rule.weights(grams, np.sign(x)[None], learner=SVC(C=10.0)).round(2)
    array([1., 0.])
    """

    name: ClassVar[str] = "proportional-weights"
    is_point: ClassVar[bool] = True
    threshold: float = parameter(
        "In [0, 1]; at 1 the worst kernel gets no weight.", default=0.0, rule=SHARE
    )
    n_folds: int = parameter(
        "At least 2; the members of a class take turns in the folds.", default=3, rule=FOLDS
    )

    def weights(
        self,
        grams: Any,
        targets: FloatArray,
        sample_weight: FloatArray | None = None,
        learner: Any = None,
    ) -> FloatArray:
        """Return β.

        Parameters
        ----------
        grams : ndarray of shape (q, n, n)
            Symmetric, positive semidefinite.
        targets : ndarray of shape (t, n)
            Rows of ±1.
        sample_weight : ndarray of shape (n,), optional
            How many times each sample counts.
        learner : object
            What is trained on each kernel.

        Returns
        -------
        ndarray of shape (q,)
            See `proportional_weights`.
        """
        accuracy = single_kernel_accuracies(
            grams, targets, learner, n_folds=self.n_folds, sample_weight=sample_weight, check=False
        )
        return proportional_weights(accuracy, threshold=self.threshold)
