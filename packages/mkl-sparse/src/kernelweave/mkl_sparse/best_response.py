"""Alternating best response (Algorithm 1 of the sparse multiple kernel learning paper)."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.checks import COUNT, check_array
from kernelweave.qp_smo.saddle import SaddleEvaluation, SaddleOracle, WeightPenalty, objective_upper
from numpy.typing import ArrayLike

# An accuracy of the learner's own interval that no later digit of the iterates depends on.
LEARNER_GAP = 1e-9


def project_sparse_simplex(w: ArrayLike, k0: int, *, cap: float | None = None) -> FloatArray:
    """Return ``argmin ‖β − w‖²`` over ``β ≥ 0``, ``Σβ = 1``, ``‖β‖₀ ≤ k₀``.

    The k₀ largest entries are kept, of equal ones those of lowest index, and projected onto the
    simplex: ``β = (w − τ)₊``. The largest entry is subtracted first, so that nothing cancels at
    any scale of w.

    Parameters
    ----------
    w : array-like of shape (q,)
        Finite.
    k0 : int
    cap : float, optional
        Replaces larger kept entries by this value before the projection. The program behind the
        published tables does so with 1e6, which makes weights equal that are not; for
        reproduction only.

    Returns
    -------
    ndarray of shape (q,)
        Sums to 1 up to rounding.

    Raises
    ------
    ValueError
        If w is empty or not finite, or k0 is not a positive integer.

    Notes
    -----
    Kyrillidis, Becker, Cevher, Koch, *Sparse projections onto the simplex*, ICML 2013.

    Examples
    --------
    >>> from kernelweave.mkl_sparse import project_sparse_simplex
    >>> project_sparse_simplex([0.9, 0.5, 0.1], 2)
    array([0.7, 0.3, 0. ])
    """
    values = check_array("w", w, 1)
    kept = np.argsort(-values, kind="stable")[: COUNT.check("k0", k0)]
    top = values[kept]
    if cap is not None:
        top = np.minimum(top, cap)
    depth = top[0] - top
    counts = np.arange(1, top.size + 1)
    sums = np.cumsum(depth)
    r = int(np.flatnonzero(counts * depth < 1.0 + sums)[-1])
    level = (1.0 + sums[r]) / counts[r]
    out = np.zeros_like(values)
    out[kept] = np.maximum(level - depth, 0.0)
    return out


class Ending(enum.Enum):
    """How a run of Algorithm 1 ended; the value is a sentence."""

    RUNNING = "the run goes on"
    FIXED_POINT = "the weights are a best response to their own duals: a mutual best response"
    CYCLE = "the weights repeat with a period above one: the best of the cycle is kept"
    PATIENCE = "the objective did not fall by tol for as many iterations as patience allows"
    MAX_ITER = "the iteration limit was reached"


@dataclass
class BestResponseRun:
    """One run of Algorithm 1 from one start.

    The learner is solved at β, the penalised forms ``w = d/4λ`` are projected onto the sparse
    simplex, and so on. Every objective is that of the weights it stands beside, the first
    weights' included, and the best weights are kept with their own objective.

    Parameters
    ----------
    oracle : SaddleOracle
    penalty : WeightPenalty
        The ridge, for the objective.
    lam, tol : float
        ``tol`` is absolute, as in the paper.
    k0, patience : int
    cap : float or None
        See `project_sparse_simplex`.
    weights : ndarray of shape (q,)
        Where to start. Weights that are not sparse (a relaxation's) make the first duals only.

    Attributes
    ----------
    objectives : list of float
        ``F(β⁰), F(β¹), …`` as primal upper bounds.
    best : SaddleEvaluation or None
        At the sparse weights of the least objective so far.
    upper : float
        That objective.
    ending : Ending
        How the run ended.
    saved_value : float
        What the printed algorithm returns: that of the last weights whose objective fell by tol,
        the start not counted.
    period : int
        Of the cycle that ended the run, 1 for a fixed point, 0 else.
    """

    oracle: SaddleOracle
    penalty: WeightPenalty
    lam: float
    k0: int
    tol: float
    patience: int
    cap: float | None
    weights: FloatArray
    objectives: list[float] = field(default_factory=list)
    best: SaddleEvaluation | None = None
    upper: float = np.inf
    saved_value: float = np.inf
    ending: Ending = Ending.RUNNING
    period: int = 0
    _forms: FloatArray = field(default_factory=lambda: np.zeros(0))
    _seen: list[FloatArray] = field(default_factory=list)
    _idle: int = 0

    def evaluate(self) -> None:
        """Solve the learner at the weights and record their objective."""
        scale = abs(self.objectives[-1]) if self.objectives else 0.0
        want = LEARNER_GAP * scale if scale > 0.0 else 0.0
        found = self.oracle.evaluate(self.weights, want)
        value = objective_upper(found, self.penalty)
        self.objectives.append(value)
        self._seen.append(self.weights)
        self._forms = found.forms
        sparse = np.count_nonzero(self.weights) <= self.k0
        # the first one also where its bound overflows: there must be weights to return
        if sparse and (self.best is None or value < self.upper):
            self.upper, self.best = float(np.fmin(value, np.inf)), found
        if len(self.objectives) > 1:
            self._judge(value)

    def respond(self) -> None:
        """Replace the weights by the best response to the last duals."""
        self.weights = project_sparse_simplex(self._forms / (4.0 * self.lam), self.k0, cap=self.cap)

    def step(self) -> None:
        """Respond and evaluate, unless the response has been seen before."""
        self.respond()
        for back, old in enumerate(reversed(self._seen), start=1):
            if np.abs(self.weights - old).max() <= 1e-9:
                self.period = back
                self.ending = Ending.FIXED_POINT if back == 1 else Ending.CYCLE
                return
        self.evaluate()

    def _judge(self, value: float) -> None:
        if self.saved_value - value < self.tol:
            self._idle += 1
        else:
            self._idle = 0
            self.saved_value = value
        if self._idle >= self.patience:
            self.ending = Ending.PATIENCE
