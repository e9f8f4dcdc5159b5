"""Proof files of tessellated kernels: a dual point with its moments, and the primal value at P."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from kernelweave.kernels_core import Problem, solve
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.families import TessellatedFamily
from kernelweave.qp_smo.proof import (
    BoxTasks,
    Line,
    Proof,
    UnprovedError,
    decimal,
    factor,
    problem_of,
    proof_of,
    require_gap,
    vector,
)

from .settings import LowRank, Start

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

# Bits of a sample beside the narrowest side of the box, and of an entry of U.
_SAMPLE_BITS, _FACTOR_BITS = 32, 32
# Room above the largest eigenvalue, so that a Cholesky factor exists, and below the trace of P.
_ROOM = 1e-9


def prove(model: BaseEstimator, *, tol: float = 1e-4, max_time: float | None = None) -> Proof:
    """Prove the optimal tessellated kernel of a fitted model's problem, for anybody to check.

    The samples are rounded to 32 bits of the narrowest side of the box, and the proof is about the
    rounded ones, which stand in the file; the problem is solved again for them, from the model's
    P. All integrals are recomputed by the checker, as fractions.

    Parameters
    ----------
    model : TessellatedKernelClassifier or TessellatedKernelRegressor
        Fitted; it kept the problem that it solved as ``problem_``.
    tol : float
        Relative gap to prove.
    max_time : float, optional
        Seconds at most.

    Returns
    -------
    Proof
        ``proof.save(path)`` writes what ``kernelweave-check`` reads.

    Raises
    ------
    TypeError
        If the model is not fitted, or has a problem per class or pair.
    UnprovedError
        If the gap is not closed within the time, or the kernels are no integrals over one box:
        another family, or sub-boxes of columns (``order``).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.spectahedron import TessellatedKernelClassifier, prove
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TessellatedKernelClassifier(degree=0).fit(X[:100, :2], y[:100])
    >>> proof = prove(model, tol=1e-2)
    >>> proof.lower <= model.result_.upper_bound * (1 + 1e-6)
    True
    """
    problem = problem_of(model)
    family = problem.family
    if not isinstance(family, TessellatedFamily) or family.order is not None:
        raise UnprovedError(
            "proof files are for tessellated kernels over one box: fit with kernel='tessellated' "
            f"and order={problem.X.shape[1]}"
        )
    grid = _Grid.of(family, np.asarray(problem.X, dtype=np.float64))
    exact = replace(problem, family=grid.family(family), X=grid.samples())
    start = Start(model.P_, np.atleast_2d(model.result_.solution.dual_coef))
    result = solve(exact, LowRank(start=start), tol=0.5 * tol, max_time=max_time)
    return _proof_at(exact, grid, np.asarray(result.parameters), result.solution, tol)


class _Grid(NamedTuple):
    """A box and samples in it as whole numbers times 2^exponent."""

    exponent: int
    lower: FloatArray
    upper: FloatArray
    rows: FloatArray

    @classmethod
    def of(cls, family: TessellatedFamily, X: FloatArray) -> _Grid:
        """Return the box, a little wider where its corners are between, and the nearest samples."""
        width = float((family.upper - family.lower).min())
        exponent = min(0, math.frexp(width)[1] - _SAMPLE_BITS)
        lower = np.floor(np.ldexp(family.lower, -exponent))
        upper = np.ceil(np.ldexp(family.upper, -exponent))
        return cls(exponent, lower, upper, np.rint(np.ldexp(X, -exponent)))

    def family(self, like: TessellatedFamily) -> TessellatedFamily:
        lower, upper = (np.ldexp(end, self.exponent) for end in (self.lower, self.upper))
        return TessellatedFamily(like.degree, lower=lower, upper=upper, z_degree=like.z_degree)

    def samples(self) -> FloatArray:
        return np.ldexp(self.rows, self.exponent)

    def lines(self) -> list[Line]:
        return [{"sample": [int(each) for each in row]} for row in self.rows]


def _proof_at(problem: Problem, grid: _Grid, P: FloatArray, solution: Any, tol: float) -> Proof:
    """Return the proof by a dual point and by P, both near the optimum."""
    family, eta, u = problem.family, float(problem.constraint.min_eig), solution.dual_coef
    tasks = BoxTasks.of(
        problem.learner, np.asarray(problem.targets, dtype=np.float64), problem.sample_weight
    )
    prepared = family.prepare(problem.X)

    D = np.asarray(prepared.moment(u))
    largest = float(np.linalg.eigvalsh(D)[-1]) * (1.0 + _ROOM)
    line, delta = factor(largest * np.eye(len(D)) - D)
    cost = eta * float(np.trace(D)) + (1.0 - eta) * family.n_P * (largest + delta)
    lower = tasks.kappa(u) - 0.5 * cost

    columns, U = _factor_of(P, eta)
    K = prepared.gram(eta * np.eye(family.n_P) + U.T @ U)
    upper = tasks.primal(solution, u @ K, 0.0)
    require_gap(lower, upper, tol)

    lines = [
        *grid.lines(),
        tasks.upper_line(solution, {"columns": columns}),
        {"cut": [vector(row) for row in u]},
        {"largest": decimal(largest), **line},
    ]
    parameters: Line = {
        "degree": family.degree,
        "z_degree": family.degree if family.z_degree is None else family.z_degree,
        "min_eig": decimal(eta),
        "exponent": grid.exponent,
        "box": [[int(each) for each in end] for end in (grid.lower, grid.upper)],
    }
    return proof_of("integrals", problem.X.shape, tasks, (lower, upper), parameters, lines, (1, 1))


def _factor_of(P: FloatArray, eta: float) -> tuple[list[Line], FloatArray]:
    """Return lines and rows of few bits for Uᵀ, with UUᵀ near P − ηI and no larger a trace."""
    values, vectors = np.linalg.eigh(P)
    values = np.maximum(values - eta, 0.0)
    kept = values > _ROOM * max(float(values[-1]), np.finfo(np.float64).tiny)
    U = (vectors[:, kept] * np.sqrt(values[kept])).T
    U *= math.sqrt((1.0 - eta) * len(P) / max(float(np.sum(U**2)), 1e-300)) * (1.0 - _ROOM)
    exponent = math.frexp(float(np.abs(U).max()))[1] - _FACTOR_BITS
    whole = np.trunc(np.ldexp(U, -exponent))
    lines = [{"exponent": exponent, "values": [int(each) for each in row]} for row in whole]
    return lines, np.ldexp(whole, exponent)
