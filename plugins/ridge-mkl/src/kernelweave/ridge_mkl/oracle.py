"""What every algorithm asks of a problem: value, gradient, Hessian and proved bounds, counted."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from kernelweave.kernels_core import Problem
from kernelweave.kernels_core.arrays import FloatArray, RealArray
from kernelweave.kernels_core.formula import Solution, lower_bound
from kernelweave.kernels_core.memory import require
from kernelweave.kernels_core.rounding import (
    UNIT,
    blocked_product,
    entry_bound,
    gamma,
    n_roundings,
    row_sums,
)
from kernelweave.qp_smo.squares import BoundedGram, Products

# Tolerance of a learner that is solved by iterations, in units of the targets: gradients and bounds
# come from its solution, and a looser one would hold small gaps open.
_TOL = 1e-9


def products(grams: RealArray, u: FloatArray, L: FloatArray, degree: int) -> FloatArray:
    """Return (L^{∘(d−1)} ∘ Kₖ)uₜ, shape (p, T, n), for u of shape (T, n); L = Σ μₖKₖ."""
    power = None if degree == 1 else L ** (degree - 1)
    out = np.empty((len(grams), *u.shape))
    for k, K in enumerate(grams):
        out[k] = u @ (K if power is None else power * K)
    return out


def gradient_at(grams: RealArray, u: FloatArray, L: FloatArray, degree: int) -> FloatArray:
    """Return −d Σₜ uₜᵀ(L^{∘(d−1)} ∘ Kₖ)uₜ, shape (p,); arguments as in `products`."""
    weights = u.T @ u
    if degree > 1:
        weights *= L ** (degree - 1)
    return np.array([-degree * float(np.vdot(weights, K)) for K in grams])


def second_products(grams: RealArray, u: FloatArray, L: FloatArray, degree: int) -> FloatArray:
    """Return d(d−1) Σₜ uₜᵀ(L^{∘(d−2)} ∘ Kⱼ ∘ Kₖ)uₜ, shape (p, p); arguments as in `products`.

    Cost: 2p²n² flops above degree 1, none at degree 1.
    """
    p = len(grams)
    if degree == 1:
        return np.zeros((p, p))
    weights = u.T @ u
    if degree > 2:
        weights *= L ** (degree - 2)
    out = np.empty((p, p))
    for j in range(p):
        weighted = weights * grams[j]
        for k in range(j + 1):
            out[j, k] = out[k, j] = float(np.vdot(weighted, grams[k]))
    return degree * (degree - 1) * out


@dataclass(frozen=True)
class Evaluation:
    """The objective at one μ.

    - `mu` of shape (p,): kernel weights
    - `value`: F(μ) + r(μ) in plain floating point
    - `gradient` of shape (p,): its gradient
    - `loss`: F(μ) alone
    - `v` of shape (p,): −∂F, at degree 1 vₖ = ½ Σₜ uₜᵀKₖuₜ ≥ 0
    - `lower`, `upper`: the optimum over the set lies between them
    - `solution`: the learner's
    - `products`: the kernels applied to u, at degree 1
    """

    mu: FloatArray
    value: float
    gradient: FloatArray
    loss: float
    v: FloatArray
    lower: float
    upper: float
    solution: Solution
    products: Products | None = field(default=None, repr=False)

    @property
    def noise(self) -> float:
        """What rounding and the learner's own gap can do to ``value``."""
        return self.upper - self.value


class Oracle:
    """F(μ) = max over u of Σₜ κ(uₜ) − ½uₜᵀK_μ^{∘d}uₜ over a problem's set.

    The objectives of the Ridge-MKL paper are twice these. `n_evaluations`, `n_hessians`,
    `n_systems`: objective evaluations, Hessians, and linear systems of the learner so far.
    """

    def __init__(self, problem: Problem) -> None:
        problem.learner.validate()
        self.grams: RealArray = np.asarray(problem.family.fit_grams(problem.X).grams)
        self.degree = int(getattr(problem.family, "degree", 1))
        self.n_kernels, n, _ = self.grams.shape
        problem.constraint.validate()
        self.targets = np.ascontiguousarray(problem.targets, dtype=np.float64)
        p, n_tasks = self.n_kernels, len(self.targets)
        require(
            8 * n * (6 * n + 3 * p * n_tasks),
            f"the working matrices of {n} samples and {p} kernels",
            alternative="use fewer samples or kernels, or raise {memory_limit}",
        )
        self.constraint = problem.constraint
        self.learner = problem.learner
        self.sample_weight = problem.sample_weight
        self.is_exact = hasattr(problem.learner, "solve_with_error")
        self._noise = problem.learner.noise(n, self.sample_weight) if self.is_exact else np.zeros(n)
        self._tol = _TOL * max(1.0, float(np.abs(self.targets).max()))
        bounds = [entry_bound(K) for K in self.grams]
        self._reach = np.array([s for s, _ in bounds])
        self._kappa = np.array([kappa for _, kappa in bounds])
        self._warm: FloatArray | None = None
        self.n_evaluations = self.n_hessians = self.n_systems = 0

    @property
    def convex(self) -> bool:
        """Whether the objective is convex, in μ or in powers of it, so that bounds can meet."""
        proves = getattr(self.constraint, "proves", None)
        return self.degree == 1 if proves is None else bool(proves(self.degree))

    def counts(self) -> dict[str, int]:
        """Return the cumulative counts, which no machine changes."""
        return {
            "n_evaluations": self.n_evaluations,
            "n_hessians": self.n_hessians,
            "n_systems": self.n_systems,
        }

    def combination(self, mu: FloatArray) -> FloatArray:
        """Return Σ μₖKₖ, shape (n, n), in float64; μ has shape (p,). Cost: 2pn² flops."""
        if self.grams.dtype == np.float64 and self.grams.flags.c_contiguous:
            flat = self.grams.reshape(self.n_kernels, -1)
            return np.asarray(mu @ flat).reshape(self.grams.shape[1:])
        L = np.zeros(self.grams.shape[1:])
        for weight, K in zip(mu, self.grams, strict=True):
            if weight != 0.0:
                L += weight * K
        return L

    def _kernel(self, mu: FloatArray, L: FloatArray) -> BoundedGram:
        """Return L^{∘d} with its rounding: (Σ μₖ κₖ s s)^d bounds an entry (Cauchy-Schwarz)."""
        roundings = self.degree * (self.n_kernels + 4)
        K = L if self.degree == 1 else L**self.degree
        return BoundedGram(K, self._size(mu) ** self.degree, 1.0, roundings)

    def _size(self, mu: FloatArray) -> FloatArray:
        """Return S, shape (n,), with |Σ μₖKₖ|ᵢⱼ ≤ Sᵢ Sⱼ."""
        square = mu @ (self._kappa[:, None] * self._reach**2)
        return np.asarray(np.sqrt(square) * (1.0 + gamma(self.n_kernels + 64)))

    def _solve(self, mu: FloatArray, L: FloatArray) -> tuple[Solution, float]:
        """Return the learner's solution, and its value in plain floating point.

        A learner that takes a kernel with its rounding gets that; the upper bound of another
        grows by what the rounding of K can add.
        """
        if self.is_exact:
            kernel = _Sum(L, oracle=self, mu=mu) if self.degree == 1 else self._kernel(mu, L)
            active = None if self._warm is None else self._warm != 0.0
            solution: Solution = self.learner.solve_with_error(
                kernel, self.targets, self._noise, active
            )
            return solution, float(solution.details.objective)
        kernel = self._kernel(mu, L)
        solution = self.learner.solve(
            kernel.K,
            self.targets,
            sample_weight=self.sample_weight,
            dual0=self._warm,
            tol=self._tol,
            check=False,
        )
        margin = solution.margin(kernel.s * np.sqrt(gamma(kernel.n_roundings + 2)))
        value = 0.5 * (solution.lower_bound + solution.upper_bound)
        return replace(solution, upper_bound=solution.upper_bound + margin), value

    def _apply(self, solution: Solution, mu: FloatArray) -> Products:
        if self.is_exact:
            stored: Products = solution.details.products
            return stored
        return self.apply(solution.dual_coef, mu)

    def evaluate(self, mu: FloatArray) -> Evaluation:
        """Return value, gradient and bounds at one μ, by one solve of the learner.

        Cost: n³/3 + 4pn² flops for ridge.
        """
        L = self.combination(mu)
        solution, value = self._solve(mu, L)
        self._warm = solution.dual_coef
        self.n_evaluations += 1
        self.n_systems += solution.n_iter
        applied = self._apply(solution, mu) if self.degree == 1 else None
        v, lower = self._slopes(solution, applied, L)
        penalty = self.constraint.penalty(mu)
        return Evaluation(
            mu=mu,
            value=value + penalty,
            gradient=self.constraint.penalty_gradient(mu) - v,
            loss=value,
            v=v,
            lower=lower,
            upper=(solution.upper_bound + penalty) * (1.0 + gamma(self.n_kernels + 8)),
            solution=solution,
            products=applied,
        )

    def _slopes(
        self, solution: Solution, applied: Products | None, L: FloatArray
    ) -> tuple[FloatArray, float]:
        """Return −∂F, shape (p,), and the lower bound of the set from the learner's dual point."""
        if applied is not None:
            lower = lower_bound(solution, self.constraint, np.asarray(applied.v_top))
            return 0.5 * np.asarray(applied.v), lower
        u = solution.dual_coef
        v = -gradient_at(self.grams, u, L, self.degree)
        if not hasattr(self.constraint, "product_bound"):
            # all that is known of products over this set: no penalty is below the least
            return 0.5 * v, -self.constraint.worst(np.zeros(self.n_kernels))
        t = self.constraint.tangent_point(np.maximum(v, 0.0), self.degree)
        w = self.steepness(u, self.constraint.weights(t))
        return 0.5 * v, float(self.constraint.product_bound(solution, w, t, self.degree))

    def steepness(self, u: FloatArray, mu: FloatArray) -> FloatArray:
        """Return d Σₜ uₜᵀ(L^{∘(d−1)} ∘ Kₖ)uₜ rounded up, L = Σ μₖKₖ: the slopes of uᵀL^{∘d}u.

        The margin also covers Gram matrices that are positive semidefinite only up to the
        rounding of their entries.

        Cost: p(2T + 1)n² flops.
        """
        d, mass = self.degree, np.abs(u)
        power, columns = self.combination(mu) ** (d - 1), np.ascontiguousarray(u.T)
        w = np.empty(self.n_kernels)
        for k, K in enumerate(self.grams):
            w[k] = row_sums((u * blocked_product(power * K, columns).T).reshape(1, -1))[0]
        size = self._size(mu) ** (d - 1)
        reach = ((mass * size) @ self._reach.T) ** 2
        entries = 64.0 + 0.5 * float(np.finfo(self.grams.dtype).eps) / UNIT
        rate = gamma(n_roundings(u.shape[1]) + d * (self.n_kernels + entries))
        error = rate * self._kappa * reach.sum(axis=0) * (1.0 + 1e-12)
        return np.asarray(d * np.maximum(w + error, 0.0) * (1.0 + 8.0 * UNIT))

    def apply(self, u: FloatArray, mu: FloatArray) -> Products:
        """Return Σ μₖKₖ applied to u kernel by kernel, so that it suffers no rounding of its own.

        Cost: 2pTn² flops.
        """
        p, (n_tasks, n) = self.n_kernels, u.shape
        images, mass = self._images(u), np.abs(u)
        reach = gamma(n_roundings(n) + 2) * self._kappa[:, None] * (self._reach @ mass.T)
        v = row_sums((images * u).reshape(p, n_tasks * n))
        cancelled = np.abs(images * u).sum(axis=(1, 2))
        v_error = np.einsum("kt,kn,tn->k", reach, self._reach, mass, optimize=True)
        v_error = (v_error + 4.0 * UNIT * cancelled) * (1.0 + 1e-12)
        f = np.tensordot(mu, images, axes=1)
        f_error = (mu[:, None] * reach).T @ self._reach
        f_error += gamma(p + 2) * np.tensordot(mu, np.abs(images), axes=1)
        q, q_error = float(mu @ v), float(mu @ v_error) + gamma(p + 4) * float(mu @ np.abs(v))
        v_top = np.maximum(v + v_error, 0.0) * (1.0 + 4.0 * UNIT)
        return Products(f, f_error, q, q_error * (1.0 + 1e-12), images, v, v_top)

    def _images(self, u: FloatArray) -> FloatArray:
        """Return Kₖuₜ, shape (p, T, n)."""
        columns = np.ascontiguousarray(u.T)
        shape = (self.n_kernels, u.shape[1], len(u))
        if self.grams.dtype == np.float64 and self.grams.flags.c_contiguous:
            flat = blocked_product(self.grams.reshape(-1, u.shape[1]), columns)
            return np.ascontiguousarray(flat.reshape(shape).transpose(0, 2, 1))
        parts = [blocked_product(K.astype(np.float64, copy=False), columns).T for K in self.grams]
        return np.array(parts)

    def forms(self, u: FloatArray) -> FloatArray:
        """Return vₖ = ½ Σₜ uₜᵀKₖuₜ, shape (p,), for u of shape (T, n)."""
        return 0.5 * np.asarray((self._images(u) * u).sum(axis=(1, 2)))

    def hessian(self, at: Evaluation) -> FloatArray:
        """Return the Hessian of F + r, shape (p, p).

        `at`: the last one made. Returns shape (p, p): d² Σₜ (Uₖuₜ)ᵀ M (Uⱼuₜ) less the curvature of
        the power, plus that of r. Cost: pn² for ridge at degree 1, 2p²n² more above.
        """
        self.n_hessians += 1
        u, d, details = at.solution.dual_coef, self.degree, at.solution.details
        if at.products is not None:
            H = details.curvature(np.asarray(at.products.images))
        else:
            L = self.combination(at.mu)
            H = d * d * details.curvature(products(self.grams, u, L, d))
            H -= 0.5 * second_products(self.grams, u, L, d)
        H[np.diag_indices_from(H)] += self.constraint.curvature
        symmetric: FloatArray = 0.5 * (H + H.T)
        return symmetric

    def scaled(self, at: Evaluation) -> tuple[float, FloatArray, float]:
        """Return the function that descent methods minimise, and how to turn Hessians into its.

        Over a ball ψ = −1/F instead of F: 1/F = min over u with uᵀy = 1 of uᵀ(K_μ + R)u is concave
        in μ, and of degree 1 in μ where R is small, so a quadratic model of ψ holds much further
        than one of F. With a penalty it is F + r itself.

        `at`: a point. Returns `value`: ψ(μ); `gradient` of shape (p,): ∇ψ = ∇F/F²; `factor`: F: ∇²ψ
        = ∇²F/F² − 2∇F∇Fᵀ/F³; infinite for F + r itself.
        """
        if self.constraint.curvature > 0.0 or at.loss <= 0.0:
            return at.value, at.gradient, math.inf
        return -1.0 / at.loss, at.gradient / at.loss**2, at.loss

    def scaled_hessian(self, at: Evaluation) -> FloatArray:
        """Return the Hessian of `scaled` at the last evaluation, shape (p, p)."""
        H = self.hessian(at)
        _, _, F = self.scaled(at)
        if math.isinf(F):
            return H
        g = at.gradient
        return H / F**2 - 2.0 * np.outer(g, g) / F**3


@dataclass(frozen=True)
class _Sum(BoundedGram):
    """Σ μₖKₖ: factorised as computed, applied kernel by kernel."""

    s: FloatArray = field(default_factory=lambda: np.zeros(0))
    kappa: float = 1.0
    oracle: Oracle = field(kw_only=True, repr=False)
    mu: FloatArray = field(kw_only=True)

    def products(self, u: FloatArray) -> Products:
        return self.oracle.apply(u, self.mu)
