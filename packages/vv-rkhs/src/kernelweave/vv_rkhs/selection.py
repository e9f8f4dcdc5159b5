"""λ and the weights of the kernels by errors at left-out samples or by scores of folds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core.arrays import Index, Matrix, Vector

from .cells import CellLeaveOneOut
from .family import InputKernels
from .leave_one_out import LeaveFoldsOut, LeaveOneOut

# ridges over the mean eigenvalue: at the first nothing but the mean is left
_AS_GOOD = 1e-3
_ALONE = 12  # kernels that are tried alone: those most aligned with the targets
RATIOS = np.logspace(4.0, -6.0, 31)


@dataclass(frozen=True, eq=False)
class KernelChoice:
    """Weights and λ of the least error at left-out samples.

    - `rule`: which weights: ``"kernel 3"`` alone, ``"even"``, or ``"learned"`` with an exponent
    - `weights` of shape (n_kernels,): η where the rule fixes it; learned weights change with the λ
      of the fit
    - `lam`: λ
    - `p`: exponent of the norm that learned weights come from; ``None`` where they are fixed
    - `errors`: of each rule, the least mean squared error at left-out samples over that of the
      mean, or minus the best mean score
    """

    rule: str
    weights: Vector
    lam: float
    p: float | None
    errors: dict[str, float]


@dataclass(frozen=True, eq=False)
class FoldLosses:
    """How folds judge a kernel.

    - `folds`: used samples to learn from, and to leave out
    - `shares` of shape (n_folds,): of the weight of all samples, to learn from
    - `score`: from the number of a fold, and left-out targets minus errors, both scaled, to its
      score; without one each sample counts by its squared error
    """

    folds: list[tuple[Index, Index]]
    shares: Vector
    score: Callable[[int, Matrix], float] | None = None

    def of(self, K: Matrix, Y: Matrix, ridges: Vector, scale: float) -> list[Vector]:
        """Return the losses at each ridge: of samples, over ``scale``, or of folds."""
        left_out = LeaveFoldsOut(K, self.folds, self.shares)
        losses = []
        for ridge in ridges:
            errors = enumerate(left_out.errors(Y, ridge))
            if self.score is None:
                losses.append(np.concatenate([(e**2).sum(axis=1) for _, e in errors]) / scale)
            else:
                tests = [test for _, test in self.folds]
                losses.append(np.array([-self.score(j, Y[tests[j]] - e) for j, e in errors]))
        return losses


@dataclass(frozen=True, eq=False)
class _Candidate:
    rule: str
    weights: Vector
    lam: float
    p: float | None
    losses: Vector  # per sample

    @property
    def error(self) -> float:
        return float(self.losses.mean())


def choose_kernel(
    grams: InputKernels,
    Y: Matrix,
    total_weight: float,
    *,
    rules: bool,
    learn: Callable[[float, float], Vector] | None,
    exponents: tuple[float, ...],
    cell_root: Matrix | None = None,
    folds: FoldLosses | None = None,
) -> KernelChoice:
    """Return the weights and the λ of the least error at left-out samples.

    Tried are kernels alone, even weights, and weights learned at the λ that is best for even
    ones. Learned weights have seen each sample that is left out: they must be better than the best
    of the others by more than a standard error.

    - `grams`: kernels, scaled by the sample weights
    - `Y` of shape (n_samples, n_outputs): targets without their mean, each output of unit variance,
      scaled likewise
    - `total_weight`: sum of the sample weights
    - `rules`: whether anything but even weights is tried
    - `learn`: from p and λ to learned weights
    - `exponents`: the p to try
    - `cell_root` of shape (n_samples, n_outputs): roots of weights per cell; Y is scaled by them
    - `folds`: in place of single samples
    """
    m = len(grams)
    fixed = [("even", np.full(m, 1.0 / m))]
    if rules and m > 1:
        fit = grams.inner(Y, np.eye(Y.shape[1])) / np.maximum(grams.norms, 1e-300)
        aligned = np.sort(np.argsort(-fit, kind="stable")[:_ALONE])
        fixed += [(f"kernel {j}", np.eye(m)[j]) for j in aligned]
    data = (grams, Y, total_weight, cell_root, folds)
    choices = [_best_lam(name, w, None, *data) for name, w in fixed]
    even, best = choices[0], min(choices, key=lambda each: each.error)
    if rules and m > 1 and learn is not None:
        for p in exponents:
            weights = learn(p, even.lam)
            if weights.sum() > 0.0:
                each = _best_lam(f"learned, p={p:g}", weights, p, *data)
                choices.append(each)
        for each in choices[len(fixed) :]:
            gain = best.losses - each.losses
            if gain.mean() > gain.std() / np.sqrt(len(gain)):
                best = each
    errors = {each.rule: each.error for each in choices}
    return KernelChoice(best.rule, best.weights, best.lam, best.p, errors)


def _best_lam(
    rule: str,
    weights: Vector,
    p: float | None,
    grams: InputKernels,
    Y: Matrix,
    total_weight: float,
    cell_root: Matrix | None,
    folds: FoldLosses | None,
) -> _Candidate:
    """Return a rule at its best λ."""
    K = grams.combine(weights)
    mean = float(np.trace(K)) / len(K) or 1.0
    scale = float((Y**2).sum()) / len(Y) or 1.0
    if folds is not None:
        losses = folds.of(K, Y, mean * RATIOS, scale)
    else:
        left_out: LeaveOneOut | CellLeaveOneOut = LeaveOneOut(K)
        if cell_root is not None:
            left_out, mean = CellLeaveOneOut(K, cell_root), mean * float((cell_root**2).mean())
        losses = [(left_out.errors(Y, mean * r) ** 2).sum(axis=1) / scale for r in RATIOS]
    errors = np.array([each.mean() for each in losses])
    # the largest λ that is as good
    at = int(np.flatnonzero(errors <= errors.min() + _AS_GOOD * abs(errors.min()))[0])
    return _Candidate(rule, weights, float(mean * RATIOS[at] / total_weight), p, losses[at])
