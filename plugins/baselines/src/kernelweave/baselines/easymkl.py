"""EasyMKL: weights from the margin of the sum of all kernels."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, RealArray
from kernelweave.kernels_core.checks import SHARE, check_sample_weight, check_targets
from kernelweave.kernels_core.formula import Learner
from kernelweave.kernels_core.grams import GramStack, LowRankStack, as_grams
from kernelweave.kernels_core.parameters import Value, parameter
from kernelweave.qp_smo import SquaredHingeSVC
from numpy.typing import ArrayLike

# stands for λ = 0, where the hard margin may not exist: a ridge of this share of the diagonal
_NO_RIDGE = 1e-9


def margin_distribution(
    K: RealArray, labels: FloatArray, *, lam: float, sample_weight: ArrayLike | None = None
) -> FloatArray:
    """Return γ of ``min (1 − λ) γᵀYKYγ + λ‖γ‖²`` over distributions on each of the two classes.

    λ in [0, 1]: 0 is the hard margin, 1 spreads γ evenly over each class. `K` is positive
    semidefinite, both labels ±1 are present, and a sample counts `sample_weight` times: ‖γ‖²
    becomes Σ γᵢ²/wᵢ.

    Aiolli, Da San Martino and Sperduti, "A kernel method for the optimization of the margin
    distribution", ICANN 2008. Up to its scale, γ is the dual of the squared-hinge support vector
    machine with ridge ``λ/(1 − λ)``: over ``α = sγ`` its value ``2s − ½s²·γᵀQγ`` is largest at
    ``2/γᵀQγ``, so the largest of all belongs to the smallest γᵀQγ.
    """
    machine = _machine(lam, float(np.diagonal(K).max()))
    if machine is None:
        return _distribution(np.ones(labels.size), labels, sample_weight)
    solution = machine.solve(K, labels, sample_weight=sample_weight, check=False)
    return _distribution(solution.dual_coef[0], labels)


def _machine(lam: float, largest: float) -> SquaredHingeSVC | None:
    """Return the machine whose dual γ is, up to its scale; ``None`` at λ = 1, where K is idle.

    Raises ValueError if λ is outside [0, 1].
    """
    SHARE.check("lam", lam)
    if lam == 1.0:
        return None
    return SquaredHingeSVC(C=0.5 / max(lam / (1.0 - lam), _NO_RIDGE * largest))


def _distribution(u: FloatArray, labels: FloatArray, weight: ArrayLike | None = None) -> FloatArray:
    """Return |u|, times the weights if any, scaled to sum to 1 over either class."""
    gamma = np.abs(u) if weight is None else np.abs(u) * np.asarray(weight, dtype=np.float64)
    for sign in (-1.0, 1.0):
        at = labels == sign
        gamma[at] /= gamma[at].sum()
    return gamma


def _distribution_of_factors(
    stack: LowRankStack, y: FloatArray, *, lam: float, sample_weight: ArrayLike | None
) -> FloatArray:
    """Return the margin distribution of Σⱼ ZⱼZⱼᵀ, which is not formed."""
    machine = _machine(lam, float(stack.diagonals.sum(axis=0).max()))
    if machine is None:
        return _distribution(np.ones(y.size), y, sample_weight)
    return _distribution(machine.dual_of_factors(stack.factors, y, sample_weight), y)


def easymkl_weights(
    grams: ArrayLike | LowRankStack,
    targets: ArrayLike,
    *,
    lam: float = 0.1,
    sample_weight: ArrayLike | None = None,
    check: bool = True,
) -> FloatArray:
    """Return ``βⱼ ∝ Σₜ γₜᵀYₜKⱼYₜγₜ`` with Σβ = 1, γₜ the margin distribution of ``Σⱼ Kⱼ``.

    Parameters
    ----------
    grams : array-like of shape (q, n, n), or LowRankStack, which is not checked
        Symmetric, positive semidefinite.
    targets : array-like of shape (n,) or (t, n)
        Rows of ±1; several tasks share the weights.
    lam : float, default=0.1
        λ in [0, 1]: 0 is the hard margin, 1 spreads γ evenly over each class.
    sample_weight : array-like of shape (n,), optional
        How many times each sample counts.
    check : bool, default=True
        Whether to check the matrices, which costs n³/3 operations each, targets and weights.

    Returns
    -------
    ndarray of shape (q,)
        β ≥ 0. Where every kernel has margin 0, equal weights.

    Raises
    ------
    ValueError
        If λ is outside [0, 1], a task has one class, or an argument is not as stated.
    NotPSDError
        If a matrix has a negative eigenvalue.

    Notes
    -----
    Aiolli and Donini, "EasyMKL: a scalable multiple kernel learning algorithm", Neurocomputing
    2015. Equation (6) of the sparse multiple kernel learning paper with ‖d(γ)‖₁ in the place of
    ‖d(γ)‖₂: the sum of all kernels.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.baselines import easymkl_weights
    >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> easymkl_weights(np.stack([np.outer(x, x), np.eye(4)]), np.sign(x), lam=0.1).round(3)
    array([0.667, 0.333])
    """
    if check and not isinstance(grams, LowRankStack):
        grams = as_grams(grams, "grams", square=True, psd=True)
        targets = check_targets("targets", targets, grams.shape[1], labels=True)
        sample_weight = check_sample_weight(sample_weight, grams.shape[1])
    stack: GramStack | LowRankStack
    if isinstance(grams, LowRankStack):
        stack = grams
        margins = partial(_distribution_of_factors, stack)
    else:
        stack = GramStack(grams, check=False)
        margins = partial(margin_distribution, stack.combine(np.ones(len(stack))))
    d = np.zeros(len(stack))
    for y in np.atleast_2d(np.asarray(targets, dtype=np.float64)):
        gamma = margins(y, lam=lam, sample_weight=sample_weight)
        d += np.maximum(stack.quadratic_forms(y * gamma), 0.0)
    if not d.sum() > 0.0:
        return np.full(len(stack), 1.0 / len(stack))
    return np.asarray(d / d.sum())


class EasyMKLWeights(Value):
    """The one point {β : β of EasyMKL}.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.baselines import EasyMKLWeights
    >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> grams = np.stack([np.outer(x, x), np.eye(4)])
    >>> EasyMKLWeights(lam=1.0).weights(grams, np.sign(x)[None]).round(3)
    array([0.9, 0.1])
    """

    name: ClassVar[str] = "easymkl-weights"
    is_point: ClassVar[bool] = True
    lam: float = parameter(
        "λ in [0, 1]: 0 is the hard margin, 1 the distance of the class means.",
        default=0.1,
        rule=SHARE,
    )

    def weights(
        self,
        grams: RealArray | LowRankStack,
        targets: FloatArray,
        sample_weight: FloatArray | None = None,
        learner: Learner | None = None,
    ) -> FloatArray:
        """Return β for rows of ±1; the learner is not used."""
        return easymkl_weights(
            grams, targets, lam=self.lam, sample_weight=sample_weight, check=False
        )
