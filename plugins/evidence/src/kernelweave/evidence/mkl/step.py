"""``evidence-step``: the convex step of a majorised evidence, by projected Newton steps.

min over w ≥ 0 of F(w) + ½ Σ pⱼwⱼ with F(w) = max over u of Σₜ yₜᵀuₜ − ½uₜᵀ(K(w) + R)uₜ. Its dual,
the largest Σₜ yₜᵀuₜ − ½uₜᵀRuₜ with Σₜ uₜᵀKⱼuₜ ≤ pⱼ for every kernel, gives the lower bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import Problem, Status
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.formula import Solution
from kernelweave.kernels_core.parameters import parameter
from kernelweave.kernels_core.rounding import (
    UNIT,
    blocked_product,
    entry_bound,
    gamma,
    n_roundings,
    row_sums,
)
from kernelweave.kernels_core.settings import Settings
from kernelweave.qp_smo.squares import BoundedGram
from scipy.optimize import nnls

# Share of the promised fall that a step must keep: small, so that nearly every real fall is taken.
# After so many halvings another kind of step is tried.
_ARMIJO = 1e-4
_HALVINGS = 12
# Added to curvatures scaled to a diagonal of 1, so that nearly equal kernels leave a factor.
_RIDGE = 1e-12
_SMALL = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Point:
    """The objective at some weights.

    - `weights` of shape (q,): w
    - `value`, `lower`, `upper`: the objective in plain floating point; proved bounds of its minimum
    - `forms` of shape (q,): Σₜ uₜᵀKⱼuₜ
    - `images` of shape (q, T, n): Kⱼuₜ
    - `solution`: of the learner
    """

    weights: FloatArray
    value: float
    lower: float
    upper: float
    forms: FloatArray
    images: FloatArray
    solution: Solution


class EvidenceStep(Settings):
    """Settings of ``evidence-step``, projected Newton steps."""

    algorithm: ClassVar[str] = "evidence-step"
    start: npt.ArrayLike | None = parameter(
        "First weights; by default those of equal cost.",
        kind="array-like of shape (q,)",
        default=None,
    )


class EvidenceStepSearch:
    """``evidence-step``: one factorisation and qn² products per point, a Hessian per step.

    A step that Newton's model gets wrong is made by wⱼ ← wⱼ √(uᵀKⱼu / pⱼ), which never raises the
    objective.
    """

    settings: EvidenceStep = EvidenceStep()

    def __init__(
        self,
        problem: Problem,
        random_state: np.random.RandomState,
        settings: EvidenceStep = settings,
    ) -> None:
        """Evaluate the first weights.

        `problem`: a dictionary, ridge regression and a `PricedOrthant`; `random_state`: not used.
        Raises ValueError if a part has a parameter out of range, or the start is not a set of
        weights.
        """
        problem.learner.validate()
        problem.constraint.validate()
        self.learner, self.constraint = problem.learner, problem.constraint
        self.grams = problem.family.fit_grams(problem.X).grams
        self.targets = np.asarray(problem.targets, dtype=np.float64)
        self.prices = self.constraint.of(len(self.grams))
        weight = problem.sample_weight
        self.noise = self.learner.noise(problem.n_samples, weight)
        bounds = [entry_bound(K) for K in self.grams]
        self.reach = np.array([s for s, _ in bounds])
        self.kappa = np.array([kappa for _, kappa in bounds])
        self.n_evaluations = 0
        self.stalled = False
        self.at = self.evaluate(self._first(settings.start))

    def _first(self, start: npt.ArrayLike | None) -> FloatArray:
        q = len(self.grams)
        if start is None:
            return np.asarray(self.constraint.start(q))
        w = np.asarray(start, dtype=np.float64)
        if w.shape != (q,) or not np.isfinite(w).all() or (w < 0.0).any():
            raise ValueError(f"start must be {q} finite numbers >= 0, got {start!r}")
        return w

    def evaluate(self, weights: FloatArray) -> Point:
        """Return the objective at weights of shape (q,), with both bounds."""
        self.n_evaluations += 1
        found = self.learner.at(self._kernel(weights), self.targets, self.noise)
        u = found.dual_coef
        images = self._images(u)
        forms, top = self._forms(images, u)
        cost = self.constraint.penalty(weights)
        return Point(
            weights=weights,
            value=float(found.details.objective) + cost,
            lower=found.scaled(0.0, longest=self.constraint.longest(top)),
            upper=(found.upper_bound + cost) * (1.0 + gamma(len(weights) + 8)),
            forms=forms,
            images=images,
            solution=found,
        )

    def _kernel(self, weights: FloatArray) -> BoundedGram:
        """Return Σ wⱼKⱼ with the rounding behind its entries."""
        n = self.targets.shape[1]
        K = np.zeros((n, n))
        for w, each in zip(weights, self.grams, strict=True):
            if w != 0.0:
                K += w * each
        square = weights @ (self.kappa[:, None] * self.reach**2)
        size = np.sqrt(square) * (1.0 + gamma(len(weights) + 64))
        return BoundedGram(K, size, 1.0, len(weights) + 4)

    def _images(self, u: FloatArray) -> FloatArray:
        columns = np.ascontiguousarray(u.T)
        return np.array([blocked_product(K, columns).T for K in self.grams])

    def _forms(self, images: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Σₜ uₜᵀKⱼuₜ, and the same rounded up, shapes (q,)."""
        terms = (images * u).reshape(len(images), -1)
        forms = row_sums(terms)
        rate = gamma(n_roundings(u.shape[1]) + 2) * self.kappa
        error = rate * np.sum((np.abs(u) @ self.reach.T) ** 2, axis=0)
        error = (error + 4.0 * UNIT * np.abs(terms).sum(axis=1)) * (1.0 + 1e-12)
        return forms, np.maximum(forms + error, 0.0) * (1.0 + 4.0 * UNIT)

    def step(self) -> None:
        """Go to a better point, or find that there is none near."""
        here = self.at
        direction = self._newton(here)
        slope = 0.5 * float((self.prices - here.forms) @ direction)
        length = 1.0
        for _ in range(_HALVINGS if slope < 0.0 else 0):
            new = self.evaluate(np.maximum(here.weights + length * direction, 0.0))
            if new.value <= here.value + _ARMIJO * length * slope:
                self.at = new
                return
            length *= 0.5
        new = self.evaluate(self._scaled(here))
        # below the rounding of the objective only the bounds still tell which point is better
        if new.value < here.value or new.upper - new.lower < here.upper - here.lower:
            self.at = new
        else:
            self.stalled = True

    def _newton(self, at: Point) -> FloatArray:
        """Return the step to the minimiser over w ≥ 0 of the quadratic model, shape (q,)."""
        H = at.solution.details.curvature(at.images)
        # prices and value give the unit of H; what is below its rounding is no curvature
        least = (UNIT * self.prices) ** 2 / max(at.value, _SMALL)
        size = np.sqrt(np.maximum(H.diagonal(), np.maximum(least, _SMALL)))
        scaled = H / size / size[:, None]
        scaled[np.diag_indices_from(scaled)] += _RIDGE
        slope = 0.5 * (self.prices - at.forms)
        try:
            root = np.linalg.cholesky(scaled)
            right = root.T @ (size * at.weights) - np.linalg.solve(root, slope / size)
            best, _ = nnls(root.T, right)
        except (np.linalg.LinAlgError, RuntimeError, ValueError):
            return np.zeros(len(H))
        return np.asarray(best / size - at.weights)

    def _scaled(self, at: Point) -> FloatArray:
        """Return wⱼ √(uᵀKⱼu / pⱼ), the minimiser of a bound that touches the objective at w."""
        some = (self.prices > 0.0) & (at.forms > 0.0)
        ratio = np.where(some, at.forms, 0.0) / np.where(some, self.prices, 1.0)
        return np.asarray(at.weights * np.sqrt(ratio))

    @property
    def lower(self) -> float:
        """The proved lower bound."""
        return min(self.at.lower, self.at.upper)

    @property
    def upper(self) -> float:
        """The proved upper bound."""
        return self.at.upper

    @property
    def parameters(self) -> FloatArray:
        """The weights, shape (q,)."""
        return self.at.weights.copy()

    @property
    def solution(self) -> Solution:
        """The learner's solution, without its factor."""
        return replace(self.at.solution, details=None)

    @property
    def counts(self) -> dict[str, int]:
        """The cumulative counts."""
        return {"n_evaluations": self.n_evaluations}

    @property
    def outcome(self) -> Status | None:
        """Stop where nothing near is better."""
        return Status.STALLED if self.stalled else None
