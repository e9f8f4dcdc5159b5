"""A start for many samples: the kernel of a problem over a part of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from kernelweave.kernels_core import Problem
from kernelweave.kernels_core.arrays import Matrix

from .settings import LowRank
from .start import Start

# The part is a fifth of the samples, and 500 at least: a small one says too little of the kernel, a
# large one costs what it saves. Measured: 500 at the C itself beat 1500 along five values of C.
_PART = 500
_SHRINK = 5


def part_of(problem: Problem, size: int) -> Problem:
    """Return the problem over every so many samples with weight, in the order of their targets.

    A class of fewer keeps one. C grows by what the weights of the samples left out would have
    added, so that loss and norm keep their balance and the best kernel hardly changes.
    """
    weight = problem.sample_weight
    whole = np.ones(problem.n_samples) if weight is None else np.asarray(weight)
    order = np.lexsort(problem.targets[::-1])
    order = order[whole[order] > 0.0]
    rows = order[np.linspace(0, len(order) - 1, min(size, len(order))).round().astype(np.intp)]
    if problem.learner.name == "svc":
        above = problem.targets[:, order] > 0.0
        firsts = [*above.argmax(axis=1), *(~above).argmax(axis=1)]
        rows = np.append(rows, order[firsts])
    rows = np.unique(rows)
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

    The part is a fifth of the samples, at least 500, which begins at a part of its own where it is
    large too.

    `solve`: of a part, roughly; `problem`: of more than 500 samples; `settings`: of the whole
    problem: the precision, and the columns of the first factor.
    """
    part = part_of(problem, max(_PART, problem.n_samples // _SHRINK))
    start = solve(part, replace(settings, rescue=False, start=None))
    return start.factor(float(problem.constraint.min_eig))
