"""Elastic-net multiple kernel learning: sparse weights that share among kernels that are alike.

``min over f = Σ fⱼ and b of ½ρ (Σ ‖fⱼ‖)² + ½(1 − ρ) Σ ‖fⱼ‖² + loss(f + b)``, ρ being the l1 ratio.
As ``(Σ ‖fⱼ‖)² = min over d ≥ 0, Σd = 1 of Σ ‖fⱼ‖²/dⱼ``, it is the learner's problem at the kernel
``Σ βⱼKⱼ`` with ``1/βⱼ = ρ/dⱼ + 1 − ρ``, at the best shares d. They have a closed form where the
norms are known, ``dⱼ = ‖fⱼ‖/Σ ‖fₖ‖``.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import Problem, Status
from kernelweave.kernels_core.arrays import FloatArray, Index
from kernelweave.kernels_core.checks import SHARE, Rule, check_array
from kernelweave.kernels_core.formula import Solution, lower_bound
from kernelweave.kernels_core.parameters import Value, parameter
from kernelweave.kernels_core.rounding import UNIT, gamma
from kernelweave.qp_smo.saddle import (
    CutPool,
    KSupport,
    SaddleEvaluation,
    mixed_cut,
    solve_cut_master,
)

from .simplemkl import oracle_of

_NORMS = Rule(
    "finite numbers >= 0, one per kernel and not all 0",
    lambda norms: bool((norms >= 0.0).all() and norms.any()),
)


def elastic_net_weights(norms: npt.ArrayLike, l1_ratio: float = 0.5) -> FloatArray:
    """Return the best weights of kernels whose parts of the function have these norms.

    ``βⱼ = dⱼ/(ρ + (1 − ρ)dⱼ)`` with ``dⱼ = ‖fⱼ‖/Σ ‖fₖ‖`` and ρ = ``l1_ratio``: they minimise
    ``½ Σ ‖fⱼ‖²/βⱼ`` over the weights of `ElasticNetWeights`, and the minimum is
    ``½ρ (Σ ‖fⱼ‖)² + ½(1 − ρ) Σ ‖fⱼ‖²``.

    Parameters
    ----------
    norms : array-like of shape (q,)
        ``‖fⱼ‖`` ≥ 0, not all 0; of a function with dual coefficients u it is ``βⱼ √(uᵀKⱼu)``.
    l1_ratio : float, default=0.5
        ρ in [0, 1]; at 0 all weights are 1, at 1 they sum to 1.

    Returns
    -------
    ndarray of shape (q,)
        β, each in [0, 1].

    Raises
    ------
    ValueError
        If ρ is outside [0, 1], a norm is negative or not finite, or all are 0.

    References
    ----------
    Mourão-Miranda, Hussain, Tsirlis, Phillips and Shawe-Taylor, "Elastic-net multiple kernel
    learning", arXiv 2512.11547. Kloft, Brefeld, Sonnenburg and Zien, "ℓp-norm multiple kernel
    learning", JMLR 2011, have the weights of other norms in closed form.

    Examples
    --------
    >>> from kernelweave.baselines import elastic_net_weights
    >>> elastic_net_weights([3.0, 1.0, 0.0], l1_ratio=1.0)
    array([0.75, 0.25, 0.  ])
    >>> elastic_net_weights([3.0, 1.0, 0.0], l1_ratio=0.5).round(3)
    array([0.857, 0.4  , 0.   ])
    """
    SHARE.check("l1_ratio", l1_ratio)
    array = _NORMS.check("norms", check_array("norms", norms, 1))
    return ElasticNetWeights(l1_ratio).weights_at(array / array.sum())


class ElasticNetWeights(Value):
    """{β : 0 ≤ βⱼ ≤ dⱼ/(ρ + (1 − ρ)dⱼ) for shares d ≥ 0, Σd = 1}, ρ being the l1 ratio.

    Convex, as the bounds are concave in d. At ρ = 1 it is the simplex and what lies below, at ρ = 0
    every weight may be 1: the sum of the kernels.

    Examples
    --------
    >>> from kernelweave.baselines import ElasticNetWeights
    >>> ElasticNetWeights(l1_ratio=0.5).start(3)
    array([0.5, 0.5, 0.5])
    """

    name: ClassVar[str] = "elastic-net-weights"
    l1_ratio: float = parameter(
        "ρ in [0, 1], the share of the squared sum of the norms of the kernels' parts in the "
        "regulariser; the rest is the sum of their squares. 0 is the sum of the kernels, 1 is "
        "SimpleMKL, and in between similar kernels share their weight.",
        default=0.5,
        rule=SHARE,
        kw_only=False,
    )

    def validate(self, n_kernels: int | None = None) -> None:
        """Raise ValueError unless ρ is in [0, 1]; any number of kernels is allowed."""
        SHARE.check("l1_ratio", self.l1_ratio)

    def weights_at(self, shares: FloatArray) -> FloatArray:
        """Return the largest weights β of shares d, both of shape (q,)."""
        if self.l1_ratio == 0.0:
            return np.ones(len(shares))
        weights: FloatArray = shares / (self.l1_ratio + (1.0 - self.l1_ratio) * shares)
        return weights

    def slopes_at(self, shares: FloatArray) -> FloatArray:
        """Return ∂βⱼ/∂dⱼ of these weights, shape (q,)."""
        if self.l1_ratio == 0.0:
            return np.zeros(len(shares))
        slopes: FloatArray = self.l1_ratio / (self.l1_ratio + (1.0 - self.l1_ratio) * shares) ** 2
        return slopes

    def start(self, n_kernels: int) -> FloatArray:
        """Return the weights of equal shares, shape (q,), for q = ``n_kernels``."""
        return self.weights_at(np.full(n_kernels, 1.0 / n_kernels))

    def shares_of(self, weights: FloatArray) -> FloatArray:
        """Return the least shares d that weights β > 0 in [0, 1] take, both of shape (q,)."""
        shares: FloatArray = self.l1_ratio * weights / (1.0 - (1.0 - self.l1_ratio) * weights)
        return shares

    def project(self, weights: npt.ArrayLike) -> FloatArray:
        """Return the nearest weights of the set, shape (q,).

        They are where ``β + p ∂d/∂β`` is what is given, at the price p at which the shares sum
        to 1; both are found by bisection.
        """
        from scipy.optimize import brentq

        given, rho = np.maximum(check_array("weights", weights, 1), 0.0), self.l1_ratio
        capped = np.minimum(given, 1.0)
        if rho == 0.0:
            return capped

        def at(price: float) -> FloatArray:
            low, high = np.zeros(len(given)), capped
            for _ in range(60):
                middle = 0.5 * (low + high)
                over = middle + price * rho / (1.0 - (1.0 - rho) * middle) ** 2 > given
                low, high = np.where(over, low, middle), np.where(over, middle, high)
            return low

        def excess(price: float) -> float:
            return float(self.shares_of(at(price)).sum()) - 1.0

        most = float(given.max()) / rho
        return capped if excess(0.0) <= 0.0 else at(brentq(excess, 0.0, most, xtol=1e-15 * most))

    def penalty(self, weights: npt.ArrayLike) -> float:
        """Return 0: the set has no penalty."""
        return 0.0

    def worst(self, forms: FloatArray) -> float:
        """Return max formsᵀβ over the set, rounded up; forms ≥ 0, shape (q,).

        Any price t > 0 of a share bounds it by ``t² + Σ max over d of formsⱼβⱼ(d) − t²d``, which is
        ``t² + Σ (√(ρ formsⱼ) − ρt)₊²/(ρ(1 − ρ))``. At the best t the shares that are bought sum
        to 1.
        """
        rho, up = self.l1_ratio, 1.0 + gamma(3 * len(forms) + 32)
        if rho == 1.0:
            return float(np.max(forms))
        if rho == 0.0:
            return float(np.sum(forms)) * up
        roots, price = self._roots_and_price(forms)
        over = np.maximum(roots - rho * price, 0.0) + 8.0 * UNIT * roots
        return (price**2 + float(over @ over) / (rho * (1.0 - rho))) * up

    def best_shares(self, forms: FloatArray) -> FloatArray:
        """Return shares d, shape (q,), that maximise formsᵀβ; forms ≥ 0, shape (q,), not all 0."""
        roots, price = self._roots_and_price(forms)
        over = np.maximum(roots - self.l1_ratio * price, 0.0)
        if not over.any():
            over[np.argmax(roots)] = 1.0
        shares: FloatArray = over / over.sum()
        return shares

    def _roots_and_price(self, forms: FloatArray) -> tuple[FloatArray, float]:
        """Return √(ρ forms), shape (q,), and the square root of what a share costs."""
        rho, roots = self.l1_ratio, np.sqrt(self.l1_ratio * np.maximum(forms, 0.0))
        prices = np.cumsum(-np.sort(-roots)) / (1.0 - rho + rho * np.arange(1, len(roots) + 1))
        # of all numbers of kernels that buy, the right one makes the price largest
        return roots, float(prices.max())


# The relative gap that the learner's solves aim at; a larger `tol` stops the search earlier.
_TIGHTEST_GAP = 1e-9
# Rounds of tangents in a step, and the share of the gap that they may leave between the model of
# the cuts and its minimum: more would cost more than the next solve of the learner.
_ROUNDS, _CLOSE = 6, 0.1
# The share of the multipliers from which on a cut gets another tangent.
_ACTIVE = 1e-6
# How far to go towards the model's minimum unless the model was right at the last point; a share
# below `_FADED` of the largest that the minimum does not buy is 0.
_STEP_OUT, _TRUST, _FADED = 0.5, 0.25, 0.08
# The share of the gap that a step may leave if the next one is to choose its point the same way.
_WELL = 0.5
# Steps in a row that move neither bound: rounding lets nothing move them.
_MOST_IDLE = 6


class ElasticNetMKL:
    """``mkl-elastic-net``: cutting planes over the shares, one learner solve a step.

    Every dual point u of a solve bounds the objective by ``κ(u) − ½ Σ βⱼ(dⱼ) uᵀKⱼu``, which is
    convex in d. The tangents of these cuts are minimised over the simplex by the master problem of
    SimpleMKL, and added to until their minimum is near that of the cuts. Its multipliers mix the
    cuts, and the mixture less its `ElasticNetWeights.worst` is the proved lower bound. Where many
    weights are positive, cuts alone are slow, and the closed form takes turns with them.
    """

    def __init__(self, problem: Problem, random_state: np.random.RandomState) -> None:
        """Solve the learner at equal shares; nothing is drawn."""
        self.constraint: ElasticNetWeights = problem.constraint
        self.constraint.validate()
        self.oracle = oracle_of(problem)
        q = len(self.oracle.grams)
        self._simplex = KSupport(0.0).on(q)
        self._share, self._idle, self._by_norms = _STEP_OUT, 0, False
        self.lower, self.upper = -np.inf, np.inf
        self._shares = self._outer = np.full(q, 1.0 / q)
        self._tangents = _Tangents(self.oracle.pool, self.constraint)
        self._tangents.add(np.arange(len(self.oracle.pool)), self._shares)
        self._best = self._visit(self._shares)

    @property
    def parameters(self) -> FloatArray:
        """The best weights, shape (q,)."""
        return self._best.weights

    @property
    def solution(self) -> Solution:
        """The learner's solution at the best weights."""
        return self._best.solution

    @property
    def counts(self) -> dict[str, int]:
        """How many times the learner was solved."""
        return {"n_svm_solves": self.oracle.counts.n_svm_solves}

    @property
    def outcome(self) -> Status | None:
        """That the bounds are as near as the learner's solves can bring them, where that is so."""
        is_closed = self.upper - self.lower <= _TIGHTEST_GAP * abs(self.upper)
        return Status.STALLED if is_closed or self._idle >= _MOST_IDLE else None

    def step(self) -> None:
        """Solve the learner at the shares of the cuts or of the norms, whichever last did well."""
        before, gap = (self.lower, self.upper), self.upper - self.lower
        shares = self._shares_of_norms() if self._by_norms else self._shares_of_cuts()
        self._visit(shares / shares.sum())
        self._idle = self._idle + 1 if (self.lower, self.upper) == before else 0
        if self.upper - self.lower > _WELL * gap:
            self._by_norms = not self._by_norms

    def _shares_of_cuts(self) -> FloatArray:
        """Return shares between the best ones and those at which the cuts are lowest."""
        shares = self._share * self._outer + (1.0 - self._share) * self._shares
        fading = (self._outer == 0.0) & (shares < _FADED * shares.max())
        shares[fading | (shares < 1e-9 * shares.max())] = 0.0
        return shares

    def _shares_of_norms(self) -> FloatArray:
        """Return the closed form at the best function: the objective does not rise there.

        Shares of 0, which would stay so, are what the dual point of that function buys.
        """
        norms = self._best.weights * np.sqrt(np.maximum(self._best.forms, 0.0))
        if not norms.any():
            return self._shares
        bought = self.constraint.best_shares(self._best.forms)
        return np.where(self._shares > 0.0, norms / norms.sum(), bought)

    def _visit(self, shares: FloatArray) -> SaddleEvaluation:
        """Evaluate the objective at shares, keep them if they are best, and bound it anew."""
        pool, weights = self.oracle.pool, self.constraint.weights_at(shares)
        modelled, left = pool.model(weights), self.upper - max(self.lower, 0.0)
        want = max(0.1 * left, 0.2 * _TIGHTEST_GAP * self.upper)
        at = self.oracle.evaluate(weights, want)
        upper = self._upper_bound(at)
        trusted = upper - modelled <= _TRUST * left < np.inf
        self._share = 1.0 if trusted else _STEP_OUT
        if upper < self.upper:
            self.upper, self._shares, self._best = upper, shares, at
        self.lower = max(self.lower, lower_bound(at.solution, self.constraint, at.forms))
        if at.is_new:
            self._tangents.add(np.array([len(pool) - 1]), shares)
        self._bound()
        return at

    def _upper_bound(self, at: SaddleEvaluation) -> float:
        """Return the primal value, with margins for the rounding of K(β), of β and of the shares.

        Weights too large by a factor of 1 + e make the optimum too small by the same at most.
        """
        q = len(at.weights)
        spread = np.sqrt(1.01 * gamma(q + 4) * np.abs(self.oracle.grams.diagonals.T @ at.weights))
        upper = at.solution.upper_bound + at.solution.margin(spread)
        return float(upper + gamma(4 * q + 32) * abs(upper))

    def _bound(self) -> None:
        """Minimise the model, and raise the lower bound by its multipliers."""
        pool = self.oracle.pool
        tangents = self._tangents
        for _ in range(_ROUNDS):
            master = solve_cut_master(tangents.pool, self._simplex, self._outer)
            self.oracle.counts.n_master_solves += 1
            mixture = np.bincount(tangents.cut_of, master.multipliers, len(pool)).astype(np.float64)
            top, half = mixed_cut(pool.kappa, pool.half_forms, mixture)
            charge = self.constraint.worst(half)
            self.lower = max(self.lower, top - charge - 4.0 * UNIT * (abs(top) + charge))
            self._outer = master.weights
            model = pool.model(self.constraint.weights_at(self._outer))
            left = max(self.upper - self.lower, _TIGHTEST_GAP * abs(self.upper))
            if model - self.lower <= _CLOSE * left:
                break
            tangents.add(np.flatnonzero(mixture > _ACTIVE), self._outer)


class _Tangents:
    """Tangents of the cuts in a pool: affine in the shares, and below the cuts.

    `pool`: the tangents as cuts of the shares; `cut_of` (m,): the cut that each is a tangent of.
    """

    def __init__(self, cuts: CutPool, constraint: ElasticNetWeights) -> None:
        self._cuts, self._constraint = cuts, constraint
        self.pool, self.cut_of = CutPool(cuts.n_kernels), np.empty(0, dtype=np.intp)

    def add(self, cuts: Index, shares: FloatArray) -> None:
        """Add the tangents of some cuts at shares of shape (q,)."""
        slopes = self._constraint.slopes_at(shares)
        rest = self._constraint.weights_at(shares) - slopes * shares
        for i in cuts:
            half = self._cuts.half_forms[i]
            kappa = float(self._cuts.kappa[i] - half @ rest)
            self.pool.add(kappa, 2.0 * slopes * half, self._cuts.dual_coef[i])
        self.cut_of = np.append(self.cut_of, cuts)
