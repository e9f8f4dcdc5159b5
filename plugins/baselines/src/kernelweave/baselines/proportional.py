"""Equal weights (AverageMKL), and weights by what each kernel achieves alone (PWMK)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index, RealArray
from kernelweave.kernels_core.checks import SHARE, integer
from kernelweave.kernels_core.formula import Learner
from kernelweave.kernels_core.grams import LowRankStack
from kernelweave.kernels_core.parameters import Value, parameter

FOLDS = integer(2)

# a decision value near 0 must not change sides with the order of the samples
_TOL = 1e-6


class AverageWeights(Value):
    """The one point {β : βⱼ = 1/q}.

    The baseline of Bertsimas, Iglesias and Johnson 2025, section 2.2; Lewis, Jebara and Noble,
    "Support vector machine learning from heterogeneous data", Bioinformatics 2006, show how hard
    it is to beat.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.baselines import AverageWeights
    >>> AverageWeights().weights(np.ones((2, 3, 3)), np.ones((1, 3)))
    array([0.5, 0.5])
    """

    name: ClassVar[str] = "average-weights"
    is_point: ClassVar[bool] = True

    def weights(
        self,
        grams: RealArray | LowRankStack,
        targets: FloatArray,
        sample_weight: FloatArray | None = None,
        learner: Learner | None = None,
    ) -> FloatArray:
        """Return equal weights, one per Gram matrix; nothing else is used."""
        return np.full(len(grams), 1.0 / len(grams))


def proportional_weights(pi: FloatArray, threshold: float = 0.0) -> FloatArray:
    """Return ``βⱼ = (πⱼ − δ)/Σᵢ (πᵢ − δ)`` with ``δ = threshold · min π``.

    Equal weights where all πⱼ = δ. Tanabe, Ho, Nguyen and Kawasaki, "Simple but effective methods
    for combining kernels in computational biology", RIVF 2008, equation (3).
    """
    shifted = pi - threshold * pi.min()
    total = shifted.sum()
    return shifted / total if total > 0.0 else np.full(pi.size, 1.0 / pi.size)


def folds(targets: FloatArray, n_folds: int, order: FloatArray) -> Index:
    """Return the fold of each sample: the members of a class, alike in every target, take turns.

    They do so in ascending `order`, so that the folds do not depend on how the samples are listed.
    """
    _, codes = np.unique(targets, axis=1, return_inverse=True)
    fold = np.empty(targets.shape[1], dtype=np.intp)
    for code in np.unique(codes):
        at = np.flatnonzero(codes.ravel() == code)
        fold[at[np.argsort(order[at], kind="stable")]] = np.arange(len(at)) % n_folds
    return fold


def centrality(grams: RealArray, sample_weight: FloatArray | None) -> FloatArray:
    """Return how similar each sample is to all: row sums of Σ Kⱼ/tr Kⱼ, shape (n,)."""
    n = grams.shape[1]
    weight = np.ones(n) if sample_weight is None else sample_weight
    total = np.zeros(n)
    for K in grams:
        scale = float(np.diagonal(K) @ weight)
        total += K @ weight / (scale if scale > 0.0 else 1.0)
    return total


def single_kernel_accuracies(
    stack: RealArray,
    y: FloatArray,
    learner: Learner,
    *,
    n_folds: int = 3,
    weight: FloatArray | None = None,
) -> FloatArray:
    """Return the cross-validated accuracy of the learner on each kernel alone.

    Ones where no fold can be used. Of several targets the row of the largest decision value is
    predicted. The members of a class take turns in the folds, by their mean similarity to all; a
    fold whose training part lacks a class is left out.
    """
    fold = folds(y, n_folds, centrality(stack, weight))
    scores, masses = [], []
    for k in range(n_folds):
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        lacks = (np.ptp(y[:, train], axis=1) == 0.0).any() if len(train) else True
        if lacks or len(test) == 0:
            continue
        test_weight = np.ones(len(test)) if weight is None else weight[test]
        scores.append([test_weight @ _hits(K, y, train, test, learner, weight) for K in stack])
        masses.append(test_weight.sum())
    if not masses:
        return np.ones(len(stack))
    return np.asarray(np.sum(scores, axis=0) / np.sum(masses))


def _hits(
    K: FloatArray,
    y: FloatArray,
    train: Index,
    test: Index,
    learner: Learner,
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
        hits = np.where(values[0] > 0.0, 1.0, -1.0) == y[0, test]
    else:
        hits = y[values.argmax(axis=0), test] > 0.0
    return np.asarray(hits, dtype=np.float64)


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
        "Number of folds, at least 2; the rows of a class are assigned to them in turn.",
        default=3,
        rule=FOLDS,
    )

    def weights(
        self,
        grams: RealArray,
        targets: FloatArray,
        sample_weight: FloatArray | None = None,
        *,
        learner: Learner,
    ) -> FloatArray:
        """Return β for rows of ±1: equal weights where all kernels do alike with the learner."""
        accuracy = single_kernel_accuracies(
            grams, targets, learner, n_folds=self.n_folds, weight=sample_weight
        )
        return proportional_weights(accuracy, self.threshold)
