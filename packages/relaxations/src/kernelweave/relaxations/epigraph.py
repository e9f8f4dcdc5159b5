"""The learner's part of a conic program: what its losses cost, and where its dual is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.qp_smo.problem import BoxProblem

from .conic import cvxpy

if TYPE_CHECKING:
    from cvxpy import Constraint, Expression, Variable

# θ and f of one task ↦ the constraints that tie them
Tie: TypeAlias = "Callable[[Variable, Variable], list[Constraint]]"


@dataclass
class Epigraph:
    """``Σₜ (Σ losses + ½θₜ)``, where θₜ ≥ fₜᵀ K⁻¹ fₜ is left to the ties.

    - `constraints`: all of them, the ties included
    - `thetas`, `functions`: θ and the function values f of each task; the maximum over uₜ is
      bounded below through ``½θₜ``
    - `above`, `below`: ``σ⁺ ≥ p − f − b − ε`` and ``σ⁻ ≥ f + b − p − ε``, whose multipliers make u
    - `coupling`: what ties θ, f and the kernel, per task
    """

    cost: Expression | float = 0.0
    constraints: list[Constraint] = field(default_factory=list)
    thetas: list[Variable] = field(default_factory=list)
    functions: list[Variable] = field(default_factory=list)
    above: list[Constraint] = field(default_factory=list)
    below: list[Constraint] = field(default_factory=list)
    coupling: list[list[Constraint]] = field(default_factory=list)

    def dual_points(self) -> list[FloatArray]:
        """Return u of each task, nearly feasible, shape (n,) each."""
        return [
            np.asarray(up.dual_value) - np.asarray(down.dual_value)
            for up, down in zip(self.above, self.below, strict=True)
        ]


def epigraph(boxes: Iterable[BoxProblem], couple: Tie) -> Epigraph:
    """State the losses of every task, with a free intercept each.

    `boxes`: p, lower, upper and ε of each task's dual; `couple`: ``couple(theta, f)`` returns the
    constraints of one task.
    """
    cp = cvxpy()
    whole = Epigraph()
    for box in boxes:
        n = len(box.p)
        theta, intercept, f = cp.Variable(), cp.Variable(), cp.Variable(n)
        up, down = cp.Variable(n, nonneg=True), cp.Variable(n, nonneg=True)
        above = up >= box.p - f - intercept - box.epsilon
        below = down >= f + intercept - box.p - box.epsilon
        tie = couple(theta, f)
        whole.constraints += [above, below, *tie]
        whole.cost = whole.cost + box.upper @ up - box.lower @ down + 0.5 * theta
        whole.thetas.append(theta)
        whole.functions.append(f)
        whole.above.append(above)
        whole.below.append(below)
        whole.coupling.append(tie)
    return whole


def schur(theta: Expression, f: Expression, K: Expression | FloatArray) -> Constraint:
    """Return ``[θ fᵀ; f K] ⪰ 0``, which says θ ≥ fᵀ K⁺ f and f in the range of K.

    `theta`, `f`, `K` of shape (), (n,) and (n, n).
    """
    cp = cvxpy()
    n = f.shape[0]
    column = cp.reshape(f, (n, 1), order="F")
    corner = cp.reshape(theta, (1, 1), order="F")
    return cp.bmat([[corner, column.T], [column, K]]) >> 0
