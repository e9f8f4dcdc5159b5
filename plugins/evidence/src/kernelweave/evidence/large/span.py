"""The posterior mode of targets known by half among functions of landmarks, over blocks of rows.

With features φ of landmarks and their kernel Kₘₘ it is the least of
½ (ρ/σ²) βᵀKₘₘβ − Σᵢ mᵢ log likelihood(φᵢβ; σ). A step of Newton's method solves the normal
equations of numbers, (ΦᵀWΦ + ρKₘₘ) step = ΦᵀW(z − Φβ) − ρKₘₘβ, with the targets z and weights W of
the likelihood at β.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, row_slices
from scipy.linalg import blas, lapack

from ..censored.likelihood import sites
from ..rows import Rows, Standardised
from ..terms import Stopped
from .features import Landmarks
from .landmark_search import blocks_of
from .source import BlockSource
from .sums import NormalEquations, Sums

# rows multiplied at once, as in the sums of numbers
_PIECE = 512
# steps, halvings of each, and the change of f that ends them, in deviations of the noise
_STEPS, _HALVINGS, _SMALL = 60, 20, 1e-4
# a step as long, or as long a share of the one before, asks for the curvature where it ends; else
# that of an earlier step is good enough, and a pass without it takes a small part of the time
_LONG, _SLOW = 0.1, 0.3
_ROUNDING = 1e-10


@dataclass
class LikelihoodSums:
    """What rows say near a function of landmarks.

    - `log_likelihood`: of all
    - `slope` of shape (n_landmarks, 1): ΦᵀW(z − f)
    - `gram` of shape (n_landmarks, n_landmarks): the lower triangle of ΦᵀWΦ; ``None`` where it was
      not asked for
    - `latent` of shape (n,): f
    """

    log_likelihood: float
    slope: FloatArray
    gram: FloatArray | None
    latent: FloatArray

    def add(self, other: LikelihoodSums) -> None:
        """Add what later rows tell."""
        self.log_likelihood += other.log_likelihood
        self.slope += other.slope
        if self.gram is not None and other.gram is not None:
            self.gram += other.gram
        self.latent = np.concatenate([self.latent, other.latent])


@dataclass(frozen=True)
class SpanProblem:
    """What a mode among functions of landmarks takes.

    - `root` of shape (n_landmarks, n_landmarks): lower Cholesky factor of Kₘₘ
    - `rows`: with the ends of their targets; `units`: of these
    - `noise`: variance σ² of the noise; `ridge`: ρ, that over the variance that multiplies Kₘₘ
    - `n_jobs`: threads
    - `is_limited`: whether Ctrl-C and the time limit end it, with Stopped
    """

    landmarks: Landmarks
    root: FloatArray
    rows: Rows
    units: Standardised
    noise: float
    ridge: float
    n_jobs: int | None = None
    is_limited: bool = True

    def sums(self, dual: FloatArray, *, curved: bool) -> LikelihoodSums:
        """Return what the rows say near a function; `curved`: whether with ΦᵀWΦ."""
        read = partial(_read, self, dual, curved)
        if self.is_limited:
            total = BlockSource(partial(blocks_of, self.rows), self.n_jobs).fold(read)[0]
            assert total is not None
            return total
        first, *others = (read(block, 0, lambda: False) for block in blocks_of(self.rows))
        for each in others:
            first.add(each)
        return first

    def loss(self, told: LikelihoodSums, dual: FloatArray) -> float:
        """Return what the mode makes least."""
        half = self.root.T @ dual
        return 0.5 * self.ridge / self.noise * float(half @ half) - told.log_likelihood

    def pull(self, told: LikelihoodSums, dual: FloatArray) -> FloatArray:
        """Return the right side of the equations of a step, shape (n_landmarks, 1)."""
        prior = self.root @ (self.root.T @ dual)
        return np.asarray(told.slope - self.ridge * prior[:, None])


def _read(
    problem: SpanProblem, dual: FloatArray, curved: bool, rows: Rows, _: int,
    stop: Callable[[], bool],
) -> LikelihoodSums:  # fmt: skip
    """Return what a block of rows says near a function; raise Stopped where ``stop`` says so."""
    assert rows.ends is not None
    landmarks, deviation = problem.landmarks, float(np.sqrt(problem.noise))
    ends = problem.units.standardise(rows.ends.reshape(-1, 1)).reshape(2, -1)
    size, mass, latent = len(landmarks), rows.mass, np.empty(len(rows))
    gram = np.zeros((size, size), order="F") if curved else None
    slope, total = np.zeros(size), 0.0
    for piece in row_slices(len(rows), _PIECE):
        if stop():
            raise Stopped
        features = landmarks.features(rows.numeric[piece], rows.codes[piece])
        phi = features.astype(np.float64)
        f = latent[piece] = phi @ dual
        found = sites(f, deviation, ends[:, piece])
        weight = mass[piece] * found.trust
        total += float(mass[piece] @ found.log_likelihood)
        slope += (weight * (found.targets - f)) @ phi
        if gram is not None:
            phi *= np.sqrt(weight)[:, None]
            gram = blas.dsyrk(1.0, phi.T, beta=1.0, c=gram, overwrite_c=1, lower=1)
    return LikelihoodSums(total, slope[:, None], gram, latent)


class SpanMode(NamedTuple):
    """A mode: `dual` of shape (n_landmarks,): β; `latent` of shape (n,): Φβ.

    `equations`: with ΦᵀWΦ as it was at the mode or near it; `factor`: that of their left side.
    """

    dual: FloatArray
    latent: FloatArray
    equations: NormalEquations
    factor: FloatArray


def mode_in_span(
    problem: SpanProblem, start: FloatArray, equations: NormalEquations | None = None
) -> SpanMode:
    """Return the mode, by Newton's method, whose steps are halved until the objective falls.

    The curvature is worked out anew after long steps and slow ones alone.

    `start` of shape (n_landmarks,); `equations`: with a curvature that was found near there,
    ``None`` if none was. Raises Stopped where time is up.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.evidence.large.span import SpanProblem, mode_in_span
    >>> from kernelweave.evidence.large.features import Landmarks
    >>> from kernelweave.evidence.path import start
    >>> from kernelweave.evidence.rows import Rows, Standardised
    >>> from kernelweave.evidence.terms import Scales
    >>> x, y = np.linspace(-1.0, 1.0, 9)[:, None], np.linspace(0.0, 2.0, 9)
    >>> ends = np.array([y, np.where(y > 1.0, np.inf, y)])
    >>> rows = Rows(x, np.empty((9, 0), dtype=np.int64), y[None], ends=ends)
    >>> views, scales = rows.views(), (Scales.from_vector(start(1)),)
    >>> landmarks = Landmarks(views, views.points(rows.numeric, rows.codes).first(3), scales)
    >>> root = np.linalg.cholesky(landmarks.gram())
    >>> problem = SpanProblem(landmarks, root, rows, Standardised.of(rows), 0.1, 0.1)
    >>> mode_in_span(problem, np.zeros(3)).latent.shape
    (9,)
    """
    dual, last = start, 0.0 if equations is not None else np.inf
    told = problem.sums(dual, curved=equations is None)
    value = problem.loss(told, dual)
    factor: FloatArray | None = None
    for _ in range(_STEPS):
        if told.gram is not None:
            equations, factor = _equations(problem, told.gram), None
        assert equations is not None
        pull = problem.pull(told, dual)
        if factor is None:
            factor = equations.factor(problem.ridge)
        step = _solved(equations.root, factor, pull)
        for _ in range(_HALVINGS):
            there = problem.sums(dual + step, curved=last > _LONG)
            loss = problem.loss(there, dual + step)
            if loss <= value + _ROUNDING * abs(value):
                break
            step = 0.5 * step
        else:
            # nothing is left but rounding
            break
        moved = float(np.abs(there.latent - told.latent).max() / np.sqrt(problem.noise))
        dual, told, value = dual + step, there, loss
        if moved < _SMALL:
            break
        if told.gram is None and (moved > _LONG or moved > _SLOW * last > 0.0):
            told = problem.sums(dual, curved=True)
        last = moved
    assert equations is not None
    assert factor is not None
    return SpanMode(dual, told.latent, equations, factor)


def with_curvature(problem: SpanProblem, mode: SpanMode) -> SpanMode:
    """Return a mode with the curvature there."""
    told = problem.sums(mode.dual, curved=True)
    assert told.gram is not None
    equations = _equations(problem, told.gram)
    return mode._replace(equations=equations, factor=equations.factor(problem.ridge))


def at_mode(problem: SpanProblem, latent: FloatArray) -> Rows:
    """Return the rows with the targets, and what these tell, of the likelihood at a mode."""
    rows = problem.rows
    assert rows.ends is not None
    ends = problem.units.standardise(rows.ends.reshape(-1, 1)).reshape(2, -1)
    found = sites(latent, float(np.sqrt(problem.noise)), ends)
    targets = problem.units.restore(found.targets[:, None]).T
    return replace(rows, targets=targets, information=found.trust)


def _equations(problem: SpanProblem, gram: FloatArray) -> NormalEquations:
    sums = Sums.zeros(len(problem.landmarks), 1)
    return NormalEquations.of(problem.root, replace(sums, gram=gram))


def _solved(root: FloatArray, factor: FloatArray, right: FloatArray) -> FloatArray:
    """Return the solution of (ΦᵀWΦ + ρKₘₘ) x = right, shape (n_landmarks,)."""
    half = blas.dtrsm(1.0, root, right, lower=1)
    gamma, _ = lapack.dpotrs(factor, half, lower=1)
    return np.asarray(blas.dtrsm(1.0, root, gamma, lower=1, trans_a=1)[:, 0])
