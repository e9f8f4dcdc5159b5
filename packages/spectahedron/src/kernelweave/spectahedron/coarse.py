"""A start for many samples: the kernel of a problem over a part of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from kernelweave.kernels_core import Problem
from kernelweave.kernels_core.arrays import Matrix

from .settings import LowRank
from .start import Start, at_new_caps

_PART = 1500
_SHRINK = 5
_PATH = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)


def part_of(problem: Problem, size: int) -> Problem:
    """Return the problem over every so many samples in the order of their targets.

    C grows by what the weights of the samples left out would have added, so that loss and norm
    keep their balance and the best kernel hardly changes.
    """
    rows = np.lexsort(problem.targets[::-1])
    rows = np.sort(rows[np.linspace(0, len(rows) - 1, size).round().astype(np.intp)])
    weight = problem.sample_weight
    whole = np.ones(problem.n_samples) if weight is None else np.asarray(weight)
    C = float(problem.learner.C) * float(whole.sum() / whole[rows].sum())
    return replace(
        problem,
        learner=replace(problem.learner, C=C),
        X=np.asarray(problem.X)[rows],
        y=problem.targets[:, rows],
        sample_weight=None if weight is None else whole[rows],
    )


def coarse_factor(
    solve: Callable[[Problem, LowRank], Start], problem: Problem, settings: LowRank
) -> Matrix:
    """Return a factor of the P of a part of the samples.

    The part is a fifth of the samples, which begins at a part of its own where it is large too.
    The smallest is solved along a path of growing C, since a large C makes a cold start slow and
    its solution at a tenth of C is near.

    `solve`: of a part, roughly; `problem`: of more than 1500 samples; `settings`: of the whole
    problem: the precision, and the columns of the first factor.
    """
    part = part_of(problem, max(_PART, problem.n_samples // _SHRINK))
    top = float(part.learner.C)
    fractions = _PATH if part.n_samples == _PART else (1.0,)
    start, last = None, 0.0
    for fraction in fractions:
        C = fraction * top
        near = None if start is None else Start(start.P, at_new_caps(start.dual_coef, last, C))
        at = replace(part, learner=replace(part.learner, C=C))
        start, last = solve(at, replace(settings, rescue=False, start=near)), C
    assert start is not None
    return start.factor(float(problem.constraint.min_eig))
