"""Sets of kernel weights μ: an ℓq ball around μ₀, or the orthant with a penalty β‖μ‖²."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.checks import POSITIVE, Rule, check_array, number
from kernelweave.kernels_core.formula import Solution
from kernelweave.kernels_core.parameters import Value, parameter
from kernelweave.kernels_core.psd_cone import lq_norm, project_lq_ball
from kernelweave.kernels_core.rounding import UNIT, gamma

# Smallest entry, relative to the largest, of the vector whose power a tangent point is. Slopes of a
# kernel that adds nothing are 0 up to rounding, and at t = 0 the tangent would be vertical.
_LEAST = 1e-10

EXPONENT = number(least=1.0, finite=False)


def _is_center(value: object) -> bool:
    center = np.asarray(value, dtype=np.float64)
    return center.ndim < 2 and bool(np.isfinite(center).all() and (center >= 0).all())


_CENTER = Rule("a finite number >= 0 or one per kernel", _is_center)


class LqBall(Value):
    """The ball {μ ≥ 0, ‖μ − μ₀‖_q ≤ Λ}.

    The objectives of this package do not increase with any weight, so that there is an optimum with
    μ ≥ μ₀. All methods therefore work with μ = μ₀ + Λt, where t ≥ 0 and ‖t‖_q ≤ 1.

    Examples
    --------
    >>> from kernelweave.ridge_mkl import LqBall
    >>> LqBall(q=1, radius=2.0).maximizer([1.0, 3.0])
    array([0., 2.])
    """

    name: ClassVar[str] = "lq-ball"
    q: float = parameter(
        "At least 1; 1 gives sparse weights, ``inf`` a box.", default=2.0, rule=EXPONENT
    )
    radius: float = parameter("Λ > 0.", default=1.0, rule=POSITIVE)
    center: npt.ArrayLike = parameter(
        "μ₀ ≥ 0, the smallest weights, one number for all kernels or one for each. 0 is ℓq-norm "
        "multiple kernel learning; the paper has 1.",
        kind="float or tuple of float",
        default=0.0,
        rule=_CENTER,
    )

    def centers(self, n_kernels: int) -> FloatArray:
        """Return μ₀ as an array of shape (p,), one centre per kernel."""
        center = np.asarray(self.center, dtype=np.float64)
        if center.ndim == 1 and len(center) != n_kernels:
            raise ValueError(
                f"center must be one number or one per kernel ({n_kernels}), got {self.center!r}"
            )
        return np.broadcast_to(center, n_kernels).copy()

    @property
    def dual_exponent(self) -> float:
        """q′ with 1/q + 1/q′ = 1."""
        if self.q == 1.0:
            return math.inf
        return 1.0 if math.isinf(self.q) else self.q / (self.q - 1.0)

    def project(self, mu: npt.ArrayLike) -> FloatArray:
        """Return the nearest point, shape (p,), of the part of the ball with μ ≥ μ₀."""
        mu = check_array("mu", mu, 1)
        center = self.centers(len(mu))
        return center + self.radius * project_lq_ball((mu - center) / self.radius, self.q)

    def start(self, n_kernels: int) -> FloatArray:
        """Return the equal weights μ₀ + Λ p^{−1/q}, shape (p,), for p = ``n_kernels``."""
        share = 1.0 if math.isinf(self.q) else n_kernels ** (-1.0 / self.q)
        return self.centers(n_kernels) + self.radius * share

    def random_start(self, n_kernels: int, random_state: np.random.RandomState) -> FloatArray:
        """Return random weights with ‖μ − μ₀‖_q = Λ, shape (p,), for p = ``n_kernels``."""
        t = random_state.exponential(size=n_kernels)
        return self.centers(n_kernels) + self.radius * t / lq_norm(t, self.q)

    def maximizer(self, v: npt.ArrayLike) -> FloatArray:
        """Return argmax μᵀv over the ball, shape (p,), for v of shape (p,); v < 0 counts as 0.

        μ − μ₀ is proportional to v^{1/(q−1)}; at q = 1 only the entry of the largest vₖ is above
        μ₀. Where v = 0, every μ is a maximiser, and `start` is returned.
        """
        v = np.maximum(np.asarray(v, dtype=np.float64), 0.0)
        top = float(v.max())
        if top == 0.0:
            return self.start(len(v))
        if self.q == 1.0:
            t = np.zeros(len(v))
            t[int(np.argmax(v))] = 1.0
        elif math.isinf(self.q):
            t = np.ones(len(v))
        else:
            t = (v / top) ** (1.0 / (self.q - 1.0))
            t /= lq_norm(t, self.q)
        return self.centers(len(v)) + self.radius * t

    def worst(self, forms: FloatArray) -> float:
        """Return max formsᵀμ = μ₀ᵀforms + Λ‖forms‖_{q′}, rounded up; forms ≥ 0, shape (p,)."""
        value = float(self.centers(len(forms)) @ forms)
        value += self.radius * lq_norm(forms, self.dual_exponent)
        return value * (1.0 + gamma(2 * len(forms) + 64))

    def penalty(self, mu: FloatArray) -> float:
        """Return r(μ) = 0; μ has shape (p,)."""
        return 0.0

    def penalty_gradient(self, mu: FloatArray) -> FloatArray:
        """Return ∇r = 0, shape (p,), at μ of shape (p,)."""
        return np.zeros(len(mu))

    @property
    def curvature(self) -> float:
        """The Hessian of r is this number times the identity: 0."""
        return 0.0

    def proves(self, degree: int) -> bool:
        """Return whether products of d kernels are a convex problem in s = t^q: true if d ≤ q."""
        return degree <= self.q

    def _exponent(self, degree: int) -> float:
        """Return r = max(q, d): then r ≥ d, and ‖t‖_r ≤ ‖t‖_q ≤ 1 everywhere in the ball."""
        return max(self.q, float(degree))

    def tangent_point(self, w: npt.ArrayLike, degree: int) -> FloatArray:
        """Return where `product_bound` takes its tangent: t > 0, t ∝ w^{1/(r−1)}, ‖t‖_r = 1.

        With r = max(q, d) this is near the maximiser of uᵀK_μ^{∘d}u over the ball. `w` of shape
        (p,): the gradient of uᵀK_μ^{∘d}u in μ at weights nearby. Shape (p,), for μ = μ₀ + Λt.
        """
        r = self._exponent(degree)
        return np.ones(len(np.asarray(w))) if math.isinf(r) else _positive_root_of(w, r - 1.0, r)

    def weights(self, t: FloatArray) -> FloatArray:
        """Return μ₀ + Λt, shape (p,), for t of shape (p,)."""
        return np.asarray(self.centers(len(t)) + self.radius * t)

    def product_bound(self, solution: Solution, w: FloatArray, t: FloatArray, degree: int) -> float:
        """Return a proved lower bound of the optimum for products of d = ``degree`` kernels.

        It is the best of κ(su) − ½s²T over multiples su of the learner's u, where uᵀK_μ^{∘d}u ≤ T
        for all μ in the ball. With r = max(q, d), uᵀK_μ^{∘d}u is concave in s = t^r, so that it
        lies below its tangent at any t > 0, whose largest value over {s ≥ 0, Σs ≤ 1} is
        T = Σ wₖ(μₖ/d − Λtₖ/r) + (Λ/r) max wₖ tₖ^{1−r}.

        `w` of shape (p,): the gradient of uᵀK_μ^{∘d}u in μ at t, or more, as T grows with it; `t`
        of shape (p,): positive, from `tangent_point`.
        """
        r = self._exponent(degree)
        share = self.weights(t) * (1.0 / degree - 1.0 / r) + self.centers(len(t)) / r
        steepest = 0.0 if math.isinf(r) else self.radius / r * float(np.max(w * t ** (1.0 - r)))
        top = (float(w @ share) + steepest) * (1.0 + gamma(len(t) + 64))
        return solution.scaled(top)


class Orthant(Value):
    """All weights μ ≥ 0, with the penalty r(μ) = β‖μ‖².

    Equation 7 of the Ridge-MKL paper has twice this objective, so that its β is twice this one.

    Examples
    --------
    >>> from kernelweave.ridge_mkl import Orthant
    >>> Orthant(beta=0.5).penalty_gradient([1.0, 2.0])
    array([1., 2.])
    """

    name: ClassVar[str] = "orthant"
    beta: float = parameter("β > 0.", default=1.0, rule=POSITIVE)

    def project(self, mu: npt.ArrayLike) -> FloatArray:
        """Return max(μ, 0), shape (p,)."""
        return np.maximum(np.asarray(mu, dtype=np.float64), 0.0)

    def start(self, n_kernels: int) -> FloatArray:
        """Return μ = 1, shape (p,), for p = ``n_kernels``."""
        return np.ones(n_kernels)

    def random_start(self, n_kernels: int, random_state: np.random.RandomState) -> FloatArray:
        """Return a random positive point, shape (p,), for p = ``n_kernels``."""
        return random_state.exponential(size=n_kernels)

    def maximizer(self, v: npt.ArrayLike) -> FloatArray:
        """Return argmax μᵀv − β‖μ‖² over μ ≥ 0, which is max(v, 0)/(2β), shape (p,)."""
        return np.maximum(np.asarray(v, dtype=np.float64), 0.0) / (2.0 * self.beta)

    def penalty(self, mu: npt.ArrayLike) -> float:
        """Return β‖μ‖²; μ has shape (p,)."""
        mu = np.asarray(mu, dtype=np.float64)
        return self.beta * float(mu @ mu)

    def penalty_gradient(self, mu: npt.ArrayLike) -> FloatArray:
        """Return 2βμ, shape (p,)."""
        return 2.0 * self.beta * np.asarray(mu, dtype=np.float64)

    @property
    def curvature(self) -> float:
        """The Hessian of r is this number times the identity: 2β."""
        return 2.0 * self.beta

    def worst(self, forms: FloatArray) -> float:
        """Return max formsᵀμ − β‖μ‖² = ‖max(forms, 0)‖²/(4β), rounded up; forms of shape (p,)."""
        kept = np.maximum(forms, 0.0)
        return float(kept @ kept) / (4.0 * self.beta) * (1.0 + gamma(len(kept) + 16))

    def proves(self, degree: int) -> bool:
        """Return whether products of d kernels are a convex problem in s = μ²: true if d ≤ 2."""
        return degree <= 2

    def tangent_point(self, w: npt.ArrayLike, degree: int) -> FloatArray:
        """Return t > 0 proportional to w, shape (p,), as in `LqBall.tangent_point` with q = 2."""
        return _positive_root_of(w, 1.0, 2.0)

    def weights(self, t: FloatArray) -> FloatArray:
        """Return t as weights, shape (p,); the tangent of `product_bound` is the same at any ct."""
        return t

    def product_bound(self, solution: Solution, w: FloatArray, t: FloatArray, degree: int) -> float:
        """Return a proved lower bound of the optimum for products of two kernels, 0 above that.

        In s = μ², uᵀK_μ^{∘2}u is concave and homogeneous of degree 1: at most ‖μ‖² max wₖ/(2tₖ).
        For a multiple su with ½s² max wₖ/(2tₖ) ≤ β, the penalty is at least ½s² uᵀK_μ^{∘2}u at any
        μ, so that κ(su) is a bound. `w`, `t` of shape (p,): as in `LqBall.product_bound`.
        """
        if degree > 2:
            return 0.0
        steepest = 0.5 * float(np.max(w / t)) * (1.0 + 8.0 * UNIT)
        if steepest <= 0.0:
            return solution.scaled(0.0)
        most = math.sqrt(2.0 * self.beta / steepest) * (1.0 - 8.0 * UNIT)
        return solution.scaled(0.0, longest=most)


def _positive_root_of(w: npt.ArrayLike, power: float, r: float) -> FloatArray:
    """Return t ∝ w^{1/power} with ‖t‖_r = 1, entries of w at least `_LEAST` times the largest."""
    w = np.asarray(w, dtype=np.float64)
    top = float(w.max(initial=0.0))
    t = np.ones(len(w)) if top <= 0.0 else np.maximum(w / top, _LEAST) ** (1.0 / power)
    return np.asarray(t / lq_norm(t, r))
