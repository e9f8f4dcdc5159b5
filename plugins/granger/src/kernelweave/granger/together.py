"""The weights of several targets at a time, by proximal Newton steps.

Targets of one node that see the same histories have the same Gram matrices: a step of all of them
reads the matrices twice, where each by itself reads them twice per target. J of one output,

    J(η) = λ yᵀc,  (K_η + λl) c = y,  ∂J/∂ηⱼ = −λ cᵀKⱼc,  ∂²J/∂ηⱼ∂ηₖ = 2λ (Kⱼc)ᵀ(K_η + λl)⁻¹Kₖc,

is convex, and second derivatives cost as much as one factorisation. What ends a search is the gap
of the certificate, as computed; proofs, with their rounding, are those of `fit_target`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from kernelweave.kernels_core import memory
from kernelweave.kernels_core.arrays import Index, Matrix, RealArray, Vector
from kernelweave.kernels_core.exceptions import Message, convergence_warning, warn
from kernelweave.vv_rkhs.penalties import ElasticNet
from scipy.linalg import get_lapack_funcs

from ._njit_models import minimise_models
from .shared_grams import SharedKernels
from .target import TargetSettings

# Share of the promised fall that a step must keep: small, so that nearly every real fall is taken.
_ARMIJO = 1e-4
_SHORTER = 0.3  # of a step that did not lower the value enough
# A target whose step is shorter than this stops: rounding forbids it any.
_SHORTEST = 1e-6
_INNER_TOL = 1e-8  # of the weights that minimise a quadratic model
# single precision leaves a value five digits and more there
_LEAST_SINGLE, _MOST_SINGLE, _FINEST_SINGLE = 1e-3, 1e6, 1e-4
# of work matrices: what a cache holds, or what enough problems for a product need
_BYTES, _ENOUGH = 1 << 23, 64


@dataclass(frozen=True, eq=False)
class Together:
    """Weights η, coefficients c and relative gaps, as computed, of several problems, a row each."""

    weights: Matrix
    coef: Matrix
    gaps: Vector


def is_fitted_jointly(penalty: object, n_outputs: int) -> bool:
    """Tell whether a target of so many nodes is fitted together with others."""
    return isinstance(penalty, ElasticNet) and n_outputs == 1


def precision(lams: Vector, task: TargetSettings) -> np.dtype[np.floating]:
    """Return the precision that weights of fits at these λ need, where nothing is proved.

    Kernels of trace n have condition numbers of about 1/λ.
    """
    fits = float(lams.min()) >= _LEAST_SINGLE and float(lams.max()) <= _MOST_SINGLE
    single = fits and task.tol >= _FINEST_SINGLE
    return np.dtype(np.float32 if single else np.float64)


def fit_together(
    grams: SharedKernels,
    Y: Matrix,
    lam: Vector,
    penalty: ElasticNet,
    start: Matrix | None,
    *,
    tol: float,
    max_iter: int,
) -> Together:
    """Minimise J + λω for several targets, whose means are 0, by the rows of `Y`.

    `start`: weights to begin with, small even ones by default. Warns ConvergenceWarning of gaps
    that stay open.
    """
    size = at_once(grams)
    if start is None:
        start = np.tile(penalty.start(grams.n_kernels), (len(Y), 1))
    parts = []
    for first in range(0, len(Y), size):
        some = np.arange(first, min(first + size, len(Y)))
        search = _Search(grams, Y[some], lam[some], penalty, start[some], some, tol)
        parts.append(search.run(max_iter))
    fits = Together(
        np.concatenate([each.weights for each in parts]),
        np.concatenate([each.coef for each in parts]),
        np.concatenate([each.gaps for each in parts]),
    )
    open_ = fits.gaps > tol
    if open_.any():
        warn(
            Message(
                f"{int(open_.sum())} of {len(Y)} fits ended with relative gaps of up to "
                f"{fits.gaps.max():.2e} ({{tol}}={tol:g}) after at most {{max_iter}}={max_iter} "
                "steps: raise {max_iter} or {tol}"
            ),
            convergence_warning(),
        )
    return fits


def at_once(grams: SharedKernels) -> int:
    """Return how many problems share a reading of the matrices.

    Their work matrices take no more than a cache holds, or than the matrices themselves and a
    quarter of the memory limit.
    """
    per_problem = (
        int(grams.dtype.itemsize) * grams.n_samples * (grams.n_samples + 2 * grams.n_kernels)
    )
    room = min(_ENOUGH * per_problem, grams.n_bytes, memory.limit_bytes() // 4)
    return max(1, max(_BYTES, room) // per_problem)


class _Search:
    """Proximal Newton iterations of several problems: the iterate and gap of each."""

    def __init__(
        self,
        grams: SharedKernels,
        Y: Matrix,
        lam: Vector,
        penalty: ElasticNet,
        start: Matrix,
        names: Index,
        tol: float,
    ) -> None:
        self.grams, self.Y, self.lam, self.names, self.tol = grams, Y, lam, names, tol
        self.penalty = penalty
        n = len(Y)
        self.X, self.base, self.direction = start.copy(), start.copy(), np.zeros_like(start)
        self.step, self.slope = np.zeros(n), np.zeros(n)
        self.value, self.gaps = np.full(n, np.inf), np.full(n, np.inf)
        self.coef = np.zeros(Y.shape)
        self.noise = 100.0 * float(np.finfo(grams.dtype).eps)
        self.lapack: Any = get_lapack_funcs(("potrf", "potrs", "trtrs"), dtype=grams.dtype)
        self.model = (penalty.mu, _INNER_TOL)

    def run(self, max_iter: int) -> Together:
        """Step until every gap is closed, no step helps or steps are used up."""
        running = np.arange(len(self.Y))
        for _ in range(max_iter + 1):
            running = self._advance(running)
            if len(running) == 0:
                break
        return Together(self.base, self.coef, self.gaps)

    def _advance(self, running: Index) -> Index:
        """Judge the trial points of these problems, choose new ones; return who still runs."""
        factors, C, values = self._solve(running)
        bound = self.value + _ARMIJO * self.step * self.slope + self.noise * np.abs(self.value)
        better = values <= np.where(np.isfinite(bound), bound, np.finfo(np.float64).max)[running]
        worse = running[~better]
        self.step[worse] *= _SHORTER
        worse = worse[self.step[worse] > _SHORTEST]
        self.X[worse] = self.base[worse] + self.step[worse, None] * self.direction[worse]
        at, moved = np.flatnonzero(better), running[better]
        if len(moved) == 0:
            return worse
        self.value[moved], self.base[moved] = values[better], self.X[moved]
        self.coef[moved] = C[better]
        V = self.grams.images(C[better], self.names[moved])
        w = np.einsum("bml,bl->bm", V, C[better]).astype(np.float64)
        w = np.maximum(w, 0.0)
        gaps = self._gap(moved, w)
        self.gaps[moved] = gaps
        left = np.flatnonzero(gaps > self.tol)
        if len(left):
            self._aim(moved[left], w[left], V[left], [factors[k] for k in at[left]])
        return np.concatenate([worse, moved[left]])

    def _solve(self, running: Index) -> tuple[list[RealArray], RealArray, Vector]:
        """Return Cholesky factors, c and the value at the trial point of each problem."""
        potrf, potrs, _ = self.lapack
        K = self.grams.combine(self.X[running], self.names[running])
        l = self.grams.n_samples
        ridge = (self.lam[running] * l).astype(K.dtype)
        K[:, np.arange(l), np.arange(l)] += ridge[:, None]
        targets = self.Y[running].astype(K.dtype)
        C, factors = np.zeros_like(targets), []
        values = np.full(len(running), np.inf)
        for k, A in enumerate(K):
            factor, info = potrf(A.T, lower=1, overwrite_a=1, clean=0)
            factors.append(factor)
            if info == 0:
                C[k] = potrs(factor, targets[k], lower=1)[0]
                values[k] = float(self.Y[running[k]] @ C[k].astype(np.float64))
        values += self.penalty.values(self.X[running])
        return factors, C, self.lam[running] * values

    def _gap(self, moved: Index, w: Matrix) -> Vector:
        """Return ω(η) + ω*(w) − ηᵀw over the value."""
        x = self.base[moved]
        rest = self.penalty.values(x) + self.penalty.conjugates(w) - (x * w).sum(axis=1)
        size = np.where(self.value[moved] > 0.0, self.value[moved], 1.0)
        return np.where(
            self.value[moved] > 0.0, np.maximum(0.0, self.lam[moved] * rest / size), 0.0
        )

    def _aim(self, who: Index, w: Matrix, V: RealArray, factors: list[RealArray]) -> None:
        """Set direction, slope and trial point of these problems by a quadratic model."""
        x, lam = self.base[who], self.lam[who]
        places = self._candidates(x, w)
        width = max(len(each) for each in places)
        H = np.zeros((len(who), width, width))
        kept = np.zeros((len(who), width), dtype=np.intp)
        there = np.zeros((len(who), width), dtype=bool)
        for k, (place, factor) in enumerate(zip(places, factors, strict=True)):
            half, _ = self.lapack[2](factor, V[k, place].T, lower=1)
            n = len(place)
            H[k, :n, :n] = 2.0 * (half.T @ half)
            kept[k, :n], there[k, :n] = place, True
        x0 = np.where(there, np.take_along_axis(x, kept, axis=1), 0.0)
        g = np.where(there, -np.take_along_axis(w, kept, axis=1), 0.0)
        minimiser = np.zeros_like(x0)
        sizes = np.array([len(each) for each in places])
        minimise_models(H, g, x0, sizes, *self.model, minimiser)
        direction = np.zeros_like(x)
        rows = np.nonzero(there)[0]
        direction[rows, kept[there]] = (minimiser - x0)[there]
        self.direction[who], self.X[who], self.step[who] = direction, x + direction, 1.0
        shift = self.penalty.values(x + direction) - self.penalty.values(x)
        self.slope[who] = lam * ((g * (minimiser - x0)).sum(axis=1) + shift)

    def _candidates(self, x: Matrix, w: Matrix) -> list[Index]:
        """Return kernels that may get or have weight at a step; the others stay at 0."""
        may = (x > 0.0) | (self.penalty.prox(x + w, 1.0) > 0.0)
        may[~may.any(axis=1), 0] = True
        return [np.flatnonzero(each) for each in may]
