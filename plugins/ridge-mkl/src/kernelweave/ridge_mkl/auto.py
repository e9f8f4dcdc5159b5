"""The measured choice among the algorithms of this package."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
from kernelweave.kernels_core import Problem

from .descent import Descent
from .projected_gradient import SpectralProjectedGradientSearch
from .projected_newton import ProjectedNewtonSearch
from .settings import Automatic
from .trust_region import TrustRegionSearch

# Up to here a Newton step, p² n flops for the Hessian and p³ for the model, is worth its few
# evaluations; measured from 30 to 600 kernels.
_MANY_KERNELS = 1000
_DEFAULT = Automatic()


def choose(problem: Problem, n_kernels: int) -> type[Descent]:
    """Return the algorithm to run.

    Projected Newton at degree 1 with at most 1000 kernels (from 30 to 600 kernels it took 4 to 10
    evaluations; at q = 1 the spectral gradient took 100 and more). Above degree 1 the trust region
    where its sphere lies in the orthant. The spectral gradient otherwise.
    """
    if int(getattr(problem.family, "degree", 1)) == 1:
        few = n_kernels <= _MANY_KERNELS
        return ProjectedNewtonSearch if few else SpectralProjectedGradientSearch
    ball = problem.constraint
    on_sphere = ball.name == "lq-ball" and ball.q == 2.0
    if on_sphere and n_kernels <= _MANY_KERNELS and ball.radius <= np.min(ball.center):
        return TrustRegionSearch
    return SpectralProjectedGradientSearch


def automatic(
    problem: Problem, random_state: np.random.RandomState, settings: Automatic = _DEFAULT
) -> Descent:
    """Start, for ``krr-auto``, the search that `choose` returns."""
    size = len(problem.family) if hasattr(problem.family, "__len__") else 1
    chosen = choose(problem, size)
    changes = {each.name: getattr(settings, each.name) for each in fields(settings)}
    return chosen(problem, random_state, chosen.settings.changed(changes))
