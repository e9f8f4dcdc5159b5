"""From a `Problem` to the objective, the start and the bounds that every algorithm shares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core import Problem
from kernelweave.kernels_core.arrays import Matrix, Vector

from .bounds import Bounds
from .constraint import given_output_kernel, given_weights
from .family import grams_of
from .objective import JointEvaluation, Objective
from .penalties import Penalty


@dataclass(frozen=True, eq=False)
class Setting:
    """A problem over `SeparableKernels`, ready to be worked on.

    `objective`: J; `bounds`: certificates; hold the regulariser, τ and what is learned; `weights`,
    `L` of shape (m,), (n, n): the start: even weights, L = (τ/n) I.
    """

    objective: Objective
    bounds: Bounds
    weights: Vector
    L: Matrix

    def start(self, tol: float = 1e-8) -> JointEvaluation:
        """Return the evaluation of the start."""
        return self.objective.evaluate(self.weights, self.L, tol=tol)


def objective_of(
    problem: Problem, *, dtype: str, method: str, fixed_input: bool = False
) -> Objective:
    """Return J of a problem.

    - `problem`: with a dictionary and vector-valued least squares
    - `dtype` in {"float64", "float32"}: precision of the stack of Gram matrices
    - `method`: C solver, see `solve_sylvester`
    - `fixed_input`: whether the weights never change
    """
    problem.learner.validate()
    cells = getattr(problem.learner, "cell_weight", None)
    if cells is not None and problem.sample_weight is not None:
        raise ValueError("sample_weight must be None where the learner has weights per cell")
    fitted = problem.family.fit_grams(problem.X, dtype=np.dtype(dtype))
    Y = np.asarray(problem.targets.T, dtype=np.float64)
    if cells is not None:
        root = np.ascontiguousarray(np.sqrt(cells).T)
        known = np.where(root > 0.0, Y, 0.0)
        lam = problem.learner.lam
        return Objective(grams_of(fitted, None), known, lam, None, method, fixed_input, root)
    return Objective.of_arrays(
        lambda root: grams_of(fitted, root),
        Y,
        problem.learner.lam,
        problem.sample_weight,
        method,
        fixed_input,
    )


def _start(regulariser: Penalty, n_kernels: int, leaves_zero: bool) -> Vector:
    """Return the weights that a regulariser starts at.

    Raises ValueError if they are not as many positive numbers as there are kernels; numbers of at
    least 0 for a method that leaves zeros where it must.
    """
    weights = np.asarray(regulariser.start(n_kernels), dtype=np.float64)
    fits = weights >= 0 if leaves_zero else weights > 0
    if weights.shape != (n_kernels,) or not (np.isfinite(weights) & fits).all():
        kind = "numbers >= 0" if leaves_zero else "positive numbers"
        raise ValueError(
            f"the start of {regulariser!r} must be {n_kernels} {kind}, got {weights!r}"
        )
    return weights


def setting_of(
    problem: Problem, *, dtype: str = "float64", method: str = "auto", leaves_zero: bool = False
) -> Setting:
    """Return objective, bounds and start of a problem over `SeparableKernels`.

    With one output L is a number and L = τ is optimal, J being decreasing in it: it is fixed
    there, and the problem is convex.

    `problem`: with a dictionary, vector-valued least squares and `SeparableKernels`; `dtype` in
    {"float64", "float32"}: precision of the stack of Gram matrices; `method`: C solver, see
    `solve_sylvester`; `leaves_zero`: whether the method moves weights away from 0. What the
    algorithms work on.
    """
    constraint = problem.constraint
    constraint.validate()
    learn_input = constraint.learn_input
    objective = objective_of(problem, dtype=dtype, method=method, fixed_input=not learn_input)
    m, n = objective.grams.n_kernels, objective.n_outputs
    tau = constraint.trace_bound(n)
    learn_output = constraint.learn_output and n > 1
    weights = (
        _start(constraint.regulariser, m, leaves_zero)
        if learn_input
        else given_weights(constraint.weights, m)
    )
    fixed = None if constraint.learn_output else constraint.output_kernel
    bounds = Bounds(objective, constraint.regulariser, tau, learn_input, learn_output)
    return Setting(objective, bounds, weights, given_output_kernel(fixed, n, tau))
