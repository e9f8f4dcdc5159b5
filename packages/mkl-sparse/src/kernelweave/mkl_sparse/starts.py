"""Where Algorithm 1 starts: random supports, given weights, or the weights of a relaxation."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.checks import one_of
from kernelweave.qp_smo.saddle import SaddleOracle, on_simplex
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
