"""``evidence-step``: the convex step of a majorised evidence, by projected Newton steps.

min over w ≥ 0 of F(w) + ½ Σ pⱼwⱼ with F(w) = max over u of Σₜ yₜᵀuₜ − ½uₜᵀ(K(w) + R)uₜ. Its dual,
the largest Σₜ yₜᵀuₜ − ½uₜᵀRuₜ with Σₜ uₜᵀKⱼuₜ ≤ pⱼ for every kernel, gives the lower bound.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import Problem, Status
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.checks import Rule
from kernelweave.kernels_core.formula import Solution
from kernelweave.kernels_core.parameters import Value, parameter
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
_ARMIJO, _HALVINGS = 1e-4, 12
# Added to curvatures scaled to a diagonal of 1, so that nearly equal kernels leave a factor.
_RIDGE = 1e-12
_SMALL = float(np.finfo(np.float64).tiny)


def _is_price(value: object) -> bool:
    prices = np.asarray(value, dtype=np.float64)
    return prices.ndim < 2 and bool(np.isfinite(prices).all() and (prices >= 0.0).all())


class PricedOrthant(Value):
    """{w ≥ 0} with the penalty ½ Σ pⱼwⱼ, a weighted trace.

    With pⱼ = tr(S₀⁻¹Kⱼ) it is the tangent of ½ log det S at S₀, which lies above it everywhere:
    a step of the evidence becomes ridge kernel learning over this set.

    Examples
    --------
    >>> from kernelweave.evidence import PricedOrthant
    >>> PricedOrthant(prices=(2.0, 4.0)).penalty([1.0, 0.5])
    2.0
    """

    name: ClassVar[str] = "priced-orthant"
    prices: npt.ArrayLike = parameter(
        "pⱼ ≥ 0, one number for all kernels or one for each.",
        default=1.0,
        kind="float or tuple of float",
        rule=Rule("a finite number >= 0 or one per kernel", _is_price),
    )

    def of(self, n_kernels: int) -> FloatArray:
        """Return the prices as an array of shape (q,), for q = ``n_kernels``."""
        prices = np.asarray(self.prices, dtype=np.float64)
        if prices.ndim == 1 and len(prices) != n_kernels:
            raise ValueError(
                f"prices must be one number or one per kernel ({n_kernels}), got {len(prices)}"
            )
        return np.broadcast_to(prices, n_kernels).copy()

    def start(self, n_kernels: int) -> FloatArray:
        """Return weights that cost as much as each other, shape (q,), for q = ``n_kernels``."""
        prices = self.of(n_kernels)
        return np.asarray(1.0 / np.where(prices > 0.0, prices, 1.0) / n_kernels)

    def penalty(self, weights: npt.ArrayLike) -> float:
        """Return ½ Σ pⱼwⱼ, for w of shape (q,)."""
        w = np.asarray(weights, dtype=np.float64)
        return 0.5 * float(self.of(len(w)) @ w)

    def worst(self, forms: FloatArray) -> float:
        """Return max formsᵀw − ½pᵀw: 0 where no form passes half its price, else infinity."""
        return 0.0 if bool((forms <= 0.5 * self.of(len(forms))).all()) else math.inf

    def longest(self, forms: FloatArray) -> float:
        """Return how long a multiple of u keeps uᵀKⱼu ≤ pⱼ, for forms rounded up, shape (q,)."""
        some = forms > 0.0
        ratios = self.of(len(forms))[some] / forms[some]
        return float(np.sqrt(np.min(ratios, initial=np.inf))) * (1.0 - gamma(8))


class _Point(NamedTuple):
    """Weights w, the objective there in plain floating point, and proved bounds of its minimum.

    `forms` of shape (q,): Σₜ uₜᵀKⱼuₜ; `images` of shape (q, T, n): Kⱼuₜ.
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
        """Evaluate the first weights."""
        problem.learner.validate()
        problem.constraint.validate()
        self.learner, self.constraint = problem.learner, problem.constraint
        self.grams = problem.family.fit_grams(problem.X).grams
        self.targets = np.asarray(problem.targets, dtype=np.float64)
        q = len(self.grams)
        self.prices = self.constraint.of(q)
        self.noise = self.learner.noise(problem.n_samples, problem.sample_weight)
        reach, kappa = zip(*(entry_bound(K) for K in self.grams), strict=True)
        self.reach, self.kappa = np.array(reach), np.array(kappa)
        self.counts = {"n_evaluations": 0}
        self.outcome: Status | None = None
        start = self.constraint.start(q) if settings.start is None else settings.start
        w = np.asarray(start, dtype=np.float64)
        if w.shape != (q,) or not np.isfinite(w).all() or (w < 0.0).any():
            raise ValueError(f"start must be {q} finite numbers >= 0, got {settings.start!r}")
        self._go(self.evaluate(w))

    def _go(self, point: _Point) -> None:
        self.at, self.parameters = point, point.weights
        self.lower, self.upper = min(point.lower, point.upper), point.upper
        self.solution = replace(point.solution, details=None)

    def evaluate(self, weights: FloatArray) -> _Point:
        """Return the objective at weights of shape (q,), with both bounds."""
        self.counts["n_evaluations"] += 1
        q, n = len(weights), self.targets.shape[1]
        K = np.zeros((n, n))
        for w, each in zip(weights, self.grams, strict=True):
            if w != 0.0:
                K += w * each
        size = np.sqrt(weights @ (self.kappa[:, None] * self.reach**2)) * (1.0 + gamma(q + 64))
        solution = self.learner.solve_with_error(
            BoundedGram(K, size, 1.0, q + 4), self.targets, self.noise
        )
        u = solution.dual_coef
        columns = np.ascontiguousarray(u.T)
        images = np.array([blocked_product(each, columns).T for each in self.grams])
        terms = (images * u).reshape(q, -1)
        forms = row_sums(terms)
        rate = gamma(n_roundings(n) + 2) * self.kappa
        error = rate * np.sum((np.abs(u) @ self.reach.T) ** 2, axis=0)
        error = (error + 4.0 * UNIT * np.abs(terms).sum(axis=1)) * (1.0 + 1e-12)
        top = np.maximum(forms + error, 0.0) * (1.0 + 4.0 * UNIT)
        cost = self.constraint.penalty(weights)
        value = float(solution.details.objective) + cost
        lower = solution.scaled(0.0, longest=self.constraint.longest(top))
        upper = (solution.upper_bound + cost) * (1.0 + gamma(q + 8))
        return _Point(weights, value, lower, upper, forms, images, solution)

    def step(self) -> None:
        """Go to a better point, or find that there is none near."""
        here = self.at
        direction = self._newton(here)
        slope = 0.5 * float((self.prices - here.forms) @ direction)
        length = 1.0
        for _ in range(_HALVINGS if slope < 0.0 else 0):
            new = self.evaluate(np.maximum(here.weights + length * direction, 0.0))
            if new.value <= here.value + _ARMIJO * length * slope:
                return self._go(new)
            length *= 0.5
        # the minimiser of a bound that touches the objective at w
        some = (self.prices > 0.0) & (here.forms > 0.0)
        ratio = np.where(some, here.forms, 0.0) / np.where(some, self.prices, 1.0)
        new = self.evaluate(np.asarray(here.weights * np.sqrt(ratio)))
        # below the rounding of the objective only the bounds still tell which point is better
        if new.value < here.value or new.upper - new.lower < here.upper - here.lower:
            return self._go(new)
        self.outcome = Status.STALLED
        return None

    def _newton(self, at: _Point) -> FloatArray:
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
