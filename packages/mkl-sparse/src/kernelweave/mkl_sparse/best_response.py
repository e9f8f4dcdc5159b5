"""Alternating best response (Algorithm 1 of the sparse multiple kernel learning paper).

It starts at random supports, given weights, or the weights of a relaxation.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.checks import COUNT, check_array, one_of
from kernelweave.kernels_core.psd_cone import project_simplex
from kernelweave.qp_smo.saddle import (
    SaddleEvaluation,
    SaddleOracle,
    WeightPenalty,
    objective_upper,
    on_simplex,
)
from numpy.typing import ArrayLike

RELAXATIONS = ("sdp-3x3", "soc-random")
STARTS = ("random", "saddle", *RELAXATIONS)
_PACKAGE = "kernelweave.relaxations"


def random_support(n_kernels: int, k0: int, random_state: np.random.RandomState) -> FloatArray:
    """Return equal weights on k₀ kernels drawn without replacement, shape (q,)."""
    weights = np.zeros(n_kernels)
    weights[random_state.permutation(n_kernels)[:k0]] = 1.0 / k0
    return weights


def largest_kept(weights: FloatArray, k0: int) -> FloatArray:
    """Return the k₀ largest weights, rescaled to sum to 1; of equal ones those of lowest index."""
    kept = np.argsort(-weights, kind="stable")[:k0]
    sparse = np.zeros_like(weights)
    sparse[kept] = weights[kept]
    scaled: FloatArray = sparse / sparse.sum()
    return scaled


def relaxed_weights(oracle: SaddleOracle, name: str, lam: float, k0: int) -> FloatArray:
    """Return the dense weights of a conic relaxation, shape (q,).

    `name` in {"sdp-3x3", "soc-random"}: of kernelweave-relaxations.
    """
    matrices = oracle.grams.matrices
    bound = relaxations(f"init={name!r}").lower_bound(
        matrices,
        oracle.targets,
        learner=oracle.learner,
        lam=lam,
        k0=k0,
        relaxation=name,
        sample_weight=oracle.sample_weight,
        check=False,
    )
    weights: FloatArray = bound.weights
    return weights


def relaxations(why: str) -> ModuleType:
    """Import kernelweave.relaxations, which depends on this package and may be absent.

    `why`: what needs it, for the message.
    """
    try:
        return import_module(_PACKAGE)
    except ModuleNotFoundError as error:
        if error.name != _PACKAGE:
            raise
        raise ImportError(
            f"{why} needs kernelweave-relaxations, which is not installed: "
            "pip install kernelweave-relaxations"
        ) from error


def starting_weights(
    oracle: SaddleOracle,
    init: str | ArrayLike,
    *,
    lam: float,
    k0: int,
    n_init: int,
    warm: str,
    random_state: np.random.RandomState,
) -> list[FloatArray]:
    """Return the starts of Algorithm 1, but that of ``"saddle"``, which a search finds first.

    `init` of shape (q,); `k0`, `n_init`: ``n_init`` random supports; the first start is the one of
    ``init`` where that is another; `warm` in {"sparse", "dense"}: whether relaxed or given weights
    are cut to their k₀ largest (the paper's text) or used as they are for the first duals (its
    program, which rounds them to four decimals). Raises ValueError if an argument is not among
    these.
    """
    q = len(oracle.grams)
    one_of("sparse", "dense").check("warm", warm)
    if isinstance(init, str):
        if init not in STARTS:
            raise ValueError(f"init must be one of {STARTS} or weights, got {init!r}")
        starts = []
        if init in RELAXATIONS:
            starts = [start_from(relaxed_weights(oracle, init, lam, k0), k0, warm)]
    else:
        first = on_simplex(init, q)
        starts = [first if warm == "dense" else largest_kept(first, k0)]
    n_random = n_init - len(starts) - (isinstance(init, str) and init == "saddle")
    return starts + [random_support(q, k0, random_state) for _ in range(n_random)]


def start_from(relaxed: FloatArray, k0: int, warm: str) -> FloatArray:
    """Return the start from the weights of a relaxation, shape (q,); see `starting_weights`."""
    return relaxed.round(4) if warm == "dense" else largest_kept(relaxed, k0)


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
    out = np.zeros_like(values)
    out[kept] = project_simplex(top, 1.0)
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
        evaluation = self.oracle.evaluate(self.weights, want)
        value = objective_upper(evaluation, self.penalty)
        self.objectives.append(value)
        self._seen.append(self.weights)
        self._forms = evaluation.forms
        sparse = np.count_nonzero(self.weights) <= self.k0
        # the first one also where its bound overflows: there must be weights to return
        if sparse and (self.best is None or value < self.upper):
            self.upper, self.best = float(np.fmin(value, np.inf)), evaluation
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
