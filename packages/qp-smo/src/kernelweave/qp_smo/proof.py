"""Proof files: the lines that all problems share, and the primal value as the checker has it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.formula import Solution
from kernelweave.kernels_core.result import relative_gap
from numpy.typing import ArrayLike

Line = dict[str, Any]

# Bits of an entry of a Gram matrix and of a Cholesky factor, with the sign.
_GRAM_BITS, _FACTOR_BITS = 48, 60
# How the lines with the data of a problem begin.
_DATA = ('{"task"', '{"kernel"', '{"sample"')
# What rounding may take from a bound between its computation here and the exact one.
SLACK = 1e-10


class UnprovedError(RuntimeError):
    """The proof cannot be closed to the gap that was asked for."""


@dataclass(frozen=True)
class Proof:
    """The lines of a proof file, and what they claim.

    Attributes
    ----------
    lower, upper : float
        The optimum of the problem in the file lies between them.
    n_cuts, n_leaves : int
        Dual points, and branches that they close.
    lines : tuple of str
        One JSON object each.
    """

    lower: float
    upper: float
    n_cuts: int
    n_leaves: int
    lines: tuple[str, ...] = field(repr=False)

    @property
    def sha256(self) -> str:
        """Checksum of the lines with the data: tasks, and Gram matrices or samples.

        ``kernelweave-check`` prints it, computed from the file.
        """
        data = (each for each in self.lines if each.startswith(_DATA))
        return hashlib.sha256("".join(f"{each}\n" for each in data).encode()).hexdigest()

    def save(self, path: str | Path) -> None:
        """Write the file that ``kernelweave-check`` reads."""
        Path(path).write_text("\n".join(self.lines) + "\n", encoding="ascii")


class BoxTask(NamedTuple):
    """One maximum ``pᵀu − ε‖u‖₁ − ½Σρᵢuᵢ² − ½uᵀKu`` over a box, arrays of shape (n,)."""

    p: FloatArray
    low: FloatArray
    high: FloatArray
    rho: FloatArray


@dataclass(frozen=True)
class BoxTasks:
    """A learner's tasks in the form of a proof file.

    `epsilon`: ε; `intercept`: whether Σu = 0.
    """

    each: tuple[BoxTask, ...]
    epsilon: float
    intercept: bool

    @classmethod
    def of(cls, learner: Any, targets: FloatArray, weight: ArrayLike | None) -> BoxTasks:
        """Return the tasks of a support vector machine or a squared loss."""
        n = targets.shape[1]
        if not hasattr(learner, "noise"):
            nothing = np.broadcast_to(np.float64(0.0), (n, n))
            boxes = [learner.problem(nothing, row, weight) for row in targets]
            each = tuple(BoxTask(b.p, b.lower, b.upper, np.zeros(n)) for b in boxes)
            return cls(each, getattr(learner, "epsilon", 0.0), True)
        noise, infinite = learner.noise(n, weight), np.full(n, np.inf)
        if learner.task == "regression":
            each = tuple(BoxTask(row, -infinite, infinite, noise) for row in targets)
            return cls(each, 0.0, learner.fit_intercept)
        low, high = np.where(targets < 0, -np.inf, 0.0), np.where(targets > 0, np.inf, 0.0)
        each = tuple(BoxTask(*parts, noise) for parts in zip(targets, low, high, strict=True))
        return cls(each, 0.0, True)

    def lines(self) -> list[Line]:
        """Return a line for each task."""
        names = ("linear", "low", "high", "curvature")
        return [
            {"task": {k: vector(part) for k, part in zip(names, task, strict=True)}}
            for task in self.each
        ]

    def kappa(self, u: FloatArray) -> float:
        """Return Σₜ κ(uₜ) for u of shape (T, n)."""
        return sum(
            float(task.p @ row - self.epsilon * np.abs(row).sum() - 0.5 * task.rho @ row**2)
            for task, row in zip(self.each, u, strict=True)
        )

    def primal(self, solution: Solution, values: FloatArray, delta: float) -> float:
        """Return a bound of the maxima for a kernel K with K + δI ⪰ 0, from Ku of shape (T, n).

        Infinite where δ is not below the curvature of an unbounded entry.
        """
        total, parts = 0.0, (self.each, solution.dual_coef, values, solution.intercept)
        for (p, low, high, rho), u, Ku, b in zip(*parts, strict=True):
            f = Ku + delta * u
            best, bend = np.zeros(len(u)), rho - delta
            for end, slope in ((low, f + b - p), (high, p - f - b)):
                gain = slope - self.epsilon
                with np.errstate(divide="ignore", invalid="ignore"):
                    inside = np.where(bend > 0.0, np.maximum(gain, 0.0) / bend, np.inf)
                    size = np.minimum(inside, np.abs(end))
                    best = np.maximum(best, size * gain - 0.5 * bend * size**2)
            total += 0.5 * float(u @ f) + float(best.sum())
        return total if math.isfinite(total) else math.inf

    def upper_line(self, solution: Solution, kernel: Line) -> Line:
        """Return the line that says which kernel reaches the upper bound, and by which points."""
        points = [vector(u) for u in solution.dual_coef]
        return {**kernel, "points": points, "offsets": [decimal(b) for b in solution.intercept]}


def problem_of(model: object) -> Any:
    """Return the problem that a fitted model solved; raise TypeError where there is not one."""
    problem = getattr(model, "problem_", None)
    if problem is None or hasattr(model, "estimators_"):
        raise TypeError(
            f"prove takes a fitted model of one problem, got {type(model).__name__}: fit it first, "
            "or prove each of its estimators_"
        )
    return problem


def proof_of(
    kind: str,
    sizes: tuple[int, int],
    tasks: BoxTasks,
    bounds: tuple[float, float],
    parameters: Line,
    lines: Iterable[Line],
    counts: tuple[int, int],
) -> Proof:
    """Return a proof of bounds, each moved outwards by what rounding may take.

    `sizes` are those of the rows and of the kernels or columns, `counts` those of cuts and leaves.
    """
    lower, upper = bounds[0] - SLACK * abs(bounds[0]), bounds[1] + SLACK * abs(bounds[1])
    head: Line = {"format": "kernelweave-proof 1", "set": kind, "degree": 1}
    head |= {"n_rows": sizes[0], "n_kernels": sizes[1], **parameters}
    head |= {"epsilon": decimal(tasks.epsilon), "intercept": int(tasks.intercept)}
    head |= {"lower": decimal(lower), "upper": decimal(upper)}
    rows = [head, *tasks.lines(), *lines]
    texts = tuple(json.dumps(row, separators=(",", ":")) for row in rows)
    return Proof(lower, upper, *counts, texts)


def require_gap(lower: float, upper: float, tol: float) -> None:
    """Raise UnprovedError unless the relative gap, with the slack of both ends, is within tol."""
    gap = relative_gap(lower, upper) + 2.0 * SLACK
    if not gap <= tol:
        raise UnprovedError(
            f"the dual point proves {lower:.10g} and the kernel reaches {upper:.10g}, a relative "
            f"gap of {gap:.1e} where tol={tol:g} was asked: fit with a smaller tol, or raise tol"
        )


def on_grid(K: FloatArray) -> tuple[FloatArray, int]:
    """Return a symmetric matrix as whole numbers times a power of two, rounded to 48 bits."""
    exponent = math.frexp(float(np.abs(K).max()))[1] - (_GRAM_BITS - 2)
    lower = np.tril(np.rint(np.ldexp(K, -exponent)))
    return lower + np.tril(lower, -1).T, exponent


def factor(K: FloatArray, most: float = np.inf) -> tuple[Line, float]:
    """Return the line of a lower triangular L, and δ for which K + δI ⪰ 0 by it.

    `most`: raise UnprovedError where δ is not below. L is the factor of K plus as little as it
    takes. The residual is in extended precision: it is of the size of a rounding in double.
    """
    jitter, n = 0.0, len(K)
    for power in range(-16, 0):
        try:
            L = np.linalg.cholesky(K + jitter * np.eye(n))
            break
        except np.linalg.LinAlgError:
            jitter = 10.0**power * max(float(np.trace(K)), 1e-300)
    else:
        raise UnprovedError("the kernel at the optimum is not positive semidefinite")
    exponent = math.frexp(float(np.abs(L).max()))[1] - (_FACTOR_BITS - 2)
    whole = np.rint(np.ldexp(L, -exponent))
    wide = whole.astype(np.longdouble)
    off = np.abs(K - np.ldexp(wide @ wide.T, 2 * exponent)).sum(axis=1).max()
    delta = float(off + 4.0 * n**2 * np.finfo(np.longdouble).eps * np.abs(K).max())
    if not delta < most:
        raise UnprovedError(
            f"rounding leaves {delta:.1e} of the kernel's eigenvalues unproved, more than the "
            f"{most:.1e} by which the loss curves: regularise more"
        )
    return {"factor": triangle(whole, exponent)}, delta


def vector(values: FloatArray) -> Line:
    """Return numbers as whole ones with a common exponent, not rounded; infinite ones as None."""
    parts = [float(each).as_integer_ratio() if np.isfinite(each) else None for each in values]
    exponent = max((each[1].bit_length() - 1 for each in parts if each), default=0)
    whole = [
        None if each is None else each[0] << (exponent - (each[1].bit_length() - 1))
        for each in parts
    ]
    return {"exponent": -exponent, "values": whole}


def triangle(whole: FloatArray, exponent: int) -> Line:
    """Return the lower triangle of a matrix of whole numbers."""
    rows = [[int(each) for each in row[: i + 1]] for i, row in enumerate(whole)]
    return {"exponent": exponent, "rows": rows}


def decimal(value: float) -> str:
    """Return a decimal that is the float without rounding."""
    return format(Decimal(float(value)), "f") if value else "0"
