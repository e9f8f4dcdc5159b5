"""Certificates: proved bounds where the problem is convex, stationarity where it is not.

J(η, L) is the minimum of the objective over f at kernel weights η and output kernel L
(`objective.py`); C are the dual coefficients, K_η = Σ ηⱼ Kⱼ and l is the number of samples. For any
C, exact or not, and all (η, L): J(η, L) ≥ λ(2⟨C, Y⟩ − λl‖C‖² − ⟨C, K_η C L⟩). The last term is
linear in η and in L, so its largest value over their sets is a conjugate or an eigenvalue, and the
bound holds before any iteration has converged.

Inside the package all values are those of J; results hold J/(2λ), the value of a `Problem`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from kernelweave.kernels_core import Problem
from kernelweave.kernels_core.arrays import Matrix, Vector
from kernelweave.kernels_core.psd_cone import largest_eigenvalue_bound

from .constraint import given_output_kernel, given_weights
from .family import as_input_kernels
from .objective import JointEvaluation, Objective
from .penalties import Penalty
from .rounding import in_problem_units

# A lower bound below this share of the upper one is not worth the cost of rescaling C.
_NEAR = 0.5
# A proved gap of more than so many times the computed one is due to the measured errors of the
# eigenvectors: the bounds are then evaluated without them.
_LOOSE = 1.5


def rescale_directions(C: Matrix, B: Matrix, Y: Matrix, ridge: float, tau: float) -> Matrix:
    """Return C V diag(w) Vᵀ with the best w for 2⟨C, Y⟩ − r‖C‖² − τ λ_max(Cᵀ K C).

    The bound subtracts τ λ_max(Cᵀ K C), so a single eigenvector of Cᵀ K C with a large eigenvalue
    spoils it. Shrinking C along such eigenvectors, until none stands out, gives a lower bound whose
    distance to the optimum is of second order in the error of C.

    With B = V diag(b) Vᵀ, pⱼ = ⟨C vⱼ, Y vⱼ⟩ and qⱼ = ‖C vⱼ‖² the bound is Σ 2wⱼpⱼ − r wⱼ²qⱼ − τs²,
    wⱼ = min(pⱼ/(r qⱼ), s/√bⱼ): concave in s, with its maximum in closed form between any two of the
    s at which a weight reaches its unconstrained best pⱼ/(r qⱼ).

    Costs 9 n³ + 6 l n² flops.
    """
    b, V = np.linalg.eigh(B)
    tiny = max(1e-14 * float(b[-1]), 1e-300)
    roots = np.sqrt(np.maximum(b, tiny))
    rotated = C @ V
    p = np.maximum(np.einsum("ij,ij->j", rotated, Y @ V), 0.0)
    q = np.maximum(np.einsum("ij,ij->j", rotated, rotated), 1e-300)
    unconstrained = p / (ridge * q)
    order = np.argsort(-unconstrained * roots)
    breakpoints = np.append((unconstrained * roots)[order][1:], 0.0)
    s = np.cumsum((p / roots)[order]) / (ridge * np.cumsum((q / roots**2)[order]) + tau)
    best = float(s[np.argmax(s >= breakpoints)])
    rescaled: Matrix = (rotated * np.minimum(unconstrained, best / roots)) @ V.T
    return rescaled


@dataclass(frozen=True)
class Bounds:
    """Upper and lower bounds of min J + λω over the sets, from one evaluation.

    - `objective`: J
    - `penalty`: ω, counted where the weights are learned
    - `tau`: bound on the trace of L
    - `learn_input`, `learn_output`: what is learned. With both the problem is not jointly convex:
      see `lower`
    """

    objective: Objective
    penalty: Penalty
    tau: float
    learn_input: bool
    learn_output: bool

    def omega(self, point: JointEvaluation) -> float:
        """Return λω(η), 0 for fixed weights."""
        if not self.learn_input:
            return 0.0
        return self.objective.lam * self.penalty.value(point.weights)

    def value(self, point: JointEvaluation) -> float:
        """Return the primal value with λω(η), as computed."""
        return point.value + self.omega(point)

    def upper(self, point: JointEvaluation) -> float:
        """Return a proved upper bound.

        J shrinks by no more than it is scaled up: J(η/s, L) ≤ s J(η, L) for s ≥ 1, which pays for
        a trace or a norm that rounding left a little above its limit.
        """
        excess = 1e-12
        if self.learn_output:
            excess += max(0.0, float(np.trace(point.L)) / self.tau - 1.0)
        omega = self.omega(point)
        return (point.upper + omega * (1.0 + 1e-12)) * (1.0 + excess)

    def lower(self, point: JointEvaluation) -> float:
        """Return a proved lower bound; for joint learning 0, since J ≥ 0 (see `relaxation`)."""
        if self.learn_input and self.learn_output:
            return 0.0
        worst = self._largest_term(point)
        return self._best_multiple(point, lambda s: worst(s * s))

    def _best_multiple(self, point: JointEvaluation, worst: Callable[[float], float]) -> float:
        """Return the largest λ(2sa − s²b − worst(s)) found over multiples sC, s near 1.

        a and b are those of `Objective.dual_parts`. `worst`: the largest value of the last term of
        the bound at sC. Where it is quadratic in s the best multiple is s = a/(b + worst(1)), which
        improves the bounds of early iterates.
        """
        a, b = self.objective.dual_parts(point)
        lam, s, best = self.objective.lam, 1.0, -math.inf
        for _ in range(3):
            cost = worst(s) + s * s * b
            best = max(best, lam * (2.0 * s * a - cost) - 1e-14 * lam * (2.0 * s * a + cost))
            if not (a > 0.0 and cost > 0.0 and math.isfinite(cost)):
                break
            s = a / (cost / (s * s))
        return best

    def relaxation(self, point: JointEvaluation) -> float:
        """Return a proved lower bound for joint learning.

        It is that of the relaxation in which each kernel has an output kernel of its own.

        max over η and L of Σ ηⱼ⟨Bⱼ, L⟩ − ω(η) ≤ ω*(τ λ_max(Bⱼ)), Bⱼ = Cᵀ Kⱼ C. Not tight; costs
        2 l²n flops per kernel, n times a gradient.
        """
        objective, sizes = self.objective, point.sizes
        tops = np.empty(len(objective.grams))
        unit = np.zeros_like(tops)
        for j in range(len(tops)):
            unit[:] = 0.0
            unit[j] = 1.0
            B = point.C.T @ (objective.grams.combine(unit) @ point.C)
            B = 0.5 * (B + B.T)
            error = 2.0 * sizes.gram_error_of(float(objective.grams.norms[j]))
            tops[j] = largest_eigenvalue_bound(B, error, float(np.linalg.eigvalsh(B)[-1]))
        tops = self.tau * np.maximum(tops, 0.0)
        bound = self._best_multiple(
            point, lambda s: self.penalty.conjugate(s * s * tops) * (1.0 + 1e-12)
        )
        return max(0.0, bound)

    def interval(
        self, point: JointEvaluation, stationarity_tol: float, *, rescale: bool = True
    ) -> tuple[float, float]:
        """Return proved bounds over 2λ.

        For joint learning the lower bound is 0 until the point is stationary, then `relaxation`.

        `rescale`: whether to try the C of `rescale_directions` too where only the output kernel is
        learned, which costs half a step.
        """
        if not (self.learn_input and self.learn_output):
            lower = self.lower(point)
        else:
            is_stationary = self.stationarity(point) <= stationarity_tol
            lower = self.relaxation(point) if is_stationary else 0.0
        upper = self.upper(point)
        if point.eigenbasis is not None and upper - lower > _LOOSE * self._unproved_gap(point):
            exact = self.objective.in_samples(point)
            lower, upper = max(lower, self.lower(exact)), min(upper, self.upper(exact))
            point = exact
        only_output = (
            self.learn_output and not self.learn_input and self.objective.cell_root is None
        )
        if rescale and only_output and lower >= _NEAR * upper:
            lower = max(lower, self.lower(self._with_rescaled(point)))
        return in_problem_units(lower, upper, self.objective.lam)

    def _with_rescaled(self, point: JointEvaluation) -> JointEvaluation:
        """Return the point with C rescaled by `rescale_directions`."""
        objective = self.objective
        C = rescale_directions(
            point.C, point.B, objective.targets(point), objective.ridge, self.tau
        )
        B = C.T @ objective.product(point, C)
        sizes = replace(point.sizes, C=float(np.linalg.norm(C)))
        return replace(point, C=C, B=0.5 * (B + B.T), sizes=sizes)

    def _largest_term(self, point: JointEvaluation) -> Callable[[float], float]:
        """Return what bounds factor · ⟨C, K_η C L⟩ − ω(η) over the learned parts, given factor."""
        sizes = point.sizes
        if self.learn_input:
            w = np.maximum(point.w + sizes.weight_error * self.objective.grams.norms, 0.0)
            return lambda factor: self.penalty.conjugate(factor * w) * (1.0 + 1e-12)
        if self.learn_output:
            top = largest_eigenvalue_bound(point.B, sizes.gram_error, point.top)
            return lambda factor: factor * self.tau * max(0.0, top)
        fit = point.dot
        error = sizes.C * (sizes.fit_error + sizes.dot_error * sizes.K * sizes.C * sizes.L)
        return lambda factor: factor * (fit + error)

    def stationarity(self, point: JointEvaluation) -> float:
        """Return the largest decrease of the linearised J over the sets, relative to the value.

        The sum of λ(ω(η) + ω*(w) − ηᵀw) where η is learned, of λ(τ λ_max(B) − ⟨B, L⟩) where L is,
        and of the residual of C. It is 0 exactly at stationary points; if only one of η and L is
        learned it is the certified gap, without rounding.
        """
        total, value = self._unproved_gap(point), self.value(point)
        if value == 0.0:
            return 0.0
        share = total / value
        return max(0.0, share) if value > 0.0 and math.isfinite(share) else math.inf

    def _unproved_gap(self, point: JointEvaluation) -> float:
        """Return the largest decrease of the linearised J over the sets, as computed."""
        lam = self.objective.lam
        total = point.residual**2 / self.objective.total_weight
        if self.learn_input:
            inner = float(point.weights @ point.w)
            total += self.omega(point) + lam * (self.penalty.conjugate(point.w) - inner)
        if self.learn_output:
            total += lam * (self.tau * max(0.0, point.top) - float(np.vdot(point.B, point.L)))
        return total


@dataclass(frozen=True, eq=False)
class PreparedProblem:
    """What an algorithm needs of a problem over `SeparableKernels`.

    - `objective`: J
    - `bounds`: certificates, with the regulariser, τ and which parts are learned
    - `weights`, `L` of shape (m,), (n, n): the starting point, equal weights and L = (τ/n) I
    """

    objective: Objective
    bounds: Bounds
    weights: Vector
    L: Matrix

    def start(self, tol: float = 1e-8) -> JointEvaluation:
        """Return J evaluated at the starting point."""
        return self.objective.evaluate(self.weights, self.L, tol=tol)


def objective_of(
    problem: Problem, *, dtype: str, method: str, fixed_input: bool = False
) -> Objective:
    """Return J of a problem with a dictionary and vector-valued least squares.

    ``fixed_input`` says that the weights never change; ``method`` is the C solver.
    """
    problem.learner.validate()
    cells = getattr(problem.learner, "cell_weight", None)
    if cells is not None and problem.sample_weight is not None:
        raise ValueError("sample_weight must be None where the learner has weights per cell")
    kernels = as_input_kernels(problem.family.fit_grams(problem.X, dtype=np.dtype(dtype)))
    Y: Matrix = np.ascontiguousarray(problem.targets.T, dtype=np.float64)
    root, cell_root = None, None
    if cells is not None:
        cell_root = np.ascontiguousarray(np.sqrt(cells).T)
        Y = np.where(cell_root > 0.0, Y, 0.0)
    elif problem.sample_weight is not None:
        weight = np.asarray(problem.sample_weight, dtype=np.float64)
        if not (weight > 0).all():
            raise ValueError("sample_weight must be > 0 here: leave samples of weight 0 out")
        root = np.sqrt(weight)
        Y = Y * root[:, None]
    lam = problem.learner.lam
    return Objective(kernels.weighted(root), Y, lam, root, method, fixed_input, cell_root)


def _start(regulariser: Penalty, n_kernels: int, leaves_zero: bool) -> Vector:
    """Return the starting weights of a regulariser.

    `leaves_zero`: whether the method can make a zero weight positive; others need positive weights.
    Raises ValueError if there is not one such weight for each kernel.
    """
    weights = np.asarray(regulariser.start(n_kernels), dtype=np.float64)
    fits = weights >= 0 if leaves_zero else weights > 0
    if weights.shape != (n_kernels,) or not (np.isfinite(weights) & fits).all():
        kind = "numbers >= 0" if leaves_zero else "positive numbers"
        raise ValueError(
            f"the start of {regulariser!r} must be {n_kernels} {kind}, got {weights!r}"
        )
    return weights


def prepare_problem(
    problem: Problem, *, dtype: str = "float64", method: str = "auto", leaves_zero: bool = False
) -> PreparedProblem:
    """Return the objective, the bounds and the starting point of a problem over `SeparableKernels`.

    With one output L is a number and J decreases in it, so L = τ is optimal. L is then fixed at τ,
    and the problem is convex. ``leaves_zero`` says that the method can make a zero weight positive.
    """
    constraint = problem.constraint
    constraint.validate()
    learn_input = constraint.learn_input
    objective = objective_of(problem, dtype=dtype, method=method, fixed_input=not learn_input)
    m, n = len(objective.grams), objective.n_outputs
    tau = constraint.trace_bound(n)
    learn_output = constraint.learn_output and n > 1
    weights = (
        _start(constraint.regulariser, m, leaves_zero)
        if learn_input
        else given_weights(constraint.weights, m)
    )
    fixed = None if constraint.learn_output else constraint.output_kernel
    bounds = Bounds(objective, constraint.regulariser, tau, learn_input, learn_output)
    return PreparedProblem(objective, bounds, weights, given_output_kernel(fixed, n, tau))
