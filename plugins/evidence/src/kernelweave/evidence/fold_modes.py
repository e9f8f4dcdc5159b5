"""Modes of a likelihood in every fold, and what they say of the rows that each held out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from numpy.typing import NDArray

from .classes import Calibration
from .cross import gram_of
from .exact import ExactPredictor
from .likelihood import PosteriorMode, landmarks_of
from .mixture import Mixture
from .terms import blocks

# larger strengths are not tried where the loss has risen by so much
_RISEN = 1.02


class JudgedModes(NamedTuple):
    """Fits, one a fold, what they lose on the rows held out and say of them, and a calibration."""

    fits: Sequence[PosteriorMode]
    loss: float
    held_out: FloatArray
    calibration: Calibration | None = None


@dataclass(frozen=True)
class FoldKernels:
    """The folds of a predictor, with the kernel between rows held out and training rows."""

    predictor: ExactPredictor
    parts: list[Mixture]
    crosses: list[FloatArray]

    @classmethod
    def of(cls, predictor: ExactPredictor) -> FoldKernels:
        """Work out the kernels; of many rows no factor is kept."""
        parts, crosses = [], []
        for fold in predictor.folds:
            part, held_out = fold.mixture(predictor.weights), predictor.rows.take(fold.held_out)
            if landmarks_of(len(predictor.rows)) is not None:
                # of many rows it is large, and nothing asks for it again
                part.release(factor=True)
            parts.append(part)
            crosses.append(part.kernel(part.views.points(held_out.numeric, held_out.codes)))
        return cls(predictor, parts, crosses)

    def held_out(self, fits: Sequence[PosteriorMode]) -> FloatArray:
        """Return the values of rows by the fit of the fold that held them out."""
        values = np.full((len(self.predictor.rows), len(fits[0].offset)), np.nan)
        for fold, cross, fit in zip(self.predictor.folds, self.crosses, fits, strict=True):
            values[fold.held_out] = fit.values(cross)
        return values


def least(
    strengths: Sequence[float],
    paths: Sequence[Iterator[PosteriorMode]],
    judge: Callable[[Sequence[PosteriorMode]], JudgedModes],
) -> tuple[float, JudgedModes]:
    """Return the strength whose fits of the folds lose least, as far as losses do not rise.

    With few rows a small rise may be chance, with many the first one ends the search.
    """
    best: tuple[float, JudgedModes] | None = None
    for strength, *fits in zip(strengths, *paths, strict=True):
        judged = judge(fits)
        if best is None or judged.loss < best[1].loss:
            best = strength, judged
        elif judged.loss > best[1].loss * (1.0 if landmarks_of(len(judged.held_out)) else _RISEN):
            break
    assert best is not None
    return best


def last_of(modes: Iterator[PosteriorMode]) -> PosteriorMode:
    """Return the mode at the last strength; each search begins where the one before ended."""
    *_, last = modes
    return last


def kernel_of(mixture: Mixture) -> FloatArray:
    """Return the kernel between all training rows, shape (n, n)."""
    points = mixture.points
    return gram_of(points, mixture.scales, mixture.views.match_weight)


def linked_values(
    mixture: Mixture, fit: PosteriorMode, numeric: FloatArray, codes: NDArray[np.int64]
) -> FloatArray:
    """Return linked values of any rows by a mode on the training rows, shape (n, n_outputs)."""
    points = mixture.views.points(numeric, codes)
    out = np.empty((points.n_points, len(fit.offset)))
    for rows in blocks(points.n_points, mixture.points.n_points):
        out[rows] = fit.values(mixture.kernel(points, rows))
    return out
