"""Settings of the algorithms over positive matrices, and where they may start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from kernelweave.kernels_core.arrays import Matrix
from kernelweave.kernels_core.checks import (
    COUNT,
    DTYPE,
    FLAG,
    POSITIVE,
    Rule,
    integer,
    number,
    one_of,
)
from kernelweave.kernels_core.parameters import Value, parameter
from kernelweave.kernels_core.settings import Settings

from .gram_memory import GRAM

# Columns that a neighbour's P may start with, and the least eigenvalue of one beside the largest:
# each column costs in every step, and one that is missed is found again as the top eigenvector of
# D.
_MOST_COLUMNS = 8
_LEAST_SHARE = 1e-5


@dataclass(frozen=True)
class Start:
    """Where to begin instead of at the balanced direction.

    Parameters
    ----------
    P : ndarray of shape (n_P, n_P)
        Positive semidefinite, of any trace.
    dual_coef : ndarray of shape (n_tasks, n_samples)
        Signed dual coefficients; clipped to the box and balanced where they are not feasible.
    """

    P: Matrix
    dual_coef: Matrix

    def factor(self, min_eig: float) -> Matrix:
        """Return U of norm one with U Uᵀ near P − ηI, of at most eight columns."""
        values, vectors = np.linalg.eigh(self.P)
        values = np.maximum(values - min_eig, 0.0)
        kept = values > _LEAST_SHARE * max(float(values[-1]), np.finfo(np.float64).tiny)
        kept[:-_MOST_COLUMNS] = False
        if not kept.any():
            kept[-1], values[-1] = True, 1.0
        U: Matrix = vectors[:, kept] * np.sqrt(values[kept])
        return U / np.linalg.norm(U)


def dual_coef_at_new_penalty(dual_coef: Matrix, old: float, new: float) -> Matrix:
    """Return dual coefficients to start from when C changes from ``old`` to ``new``.

    Coefficients at the bound ±old move to ±new; the others are clipped to [−new, new].
    """
    size = np.abs(dual_coef)
    moved = np.where(size >= (1.0 - 1e-6) * old, new, np.minimum(size, new))
    result: Matrix = np.sign(dual_coef) * moved
    return result


_START = Rule("a Start", lambda value: isinstance(value, Start))


class LowRank(Settings):
    """Settings of ``tkl-low-rank``, a saddle-free Newton method on a factor of P.

    Examples
    --------
    >>> from kernelweave.spectahedron import LowRank, TessellatedKernelClassifier
    >>> TessellatedKernelClassifier(algorithm=LowRank(rank=8)).algorithm.rank
    8
    """

    algorithm: ClassVar[str] = "tkl-low-rank"
    dtype: str = parameter("Precision of the Gram matrices.", default="float64", rule=DTYPE)
    rank: int = parameter(
        "Columns of the first factor, 2 at least: a single column can stop at a point that is not "
        "optimal.",
        default=5,
        rule=integer(2),
    )
    inner_fraction: float = parameter(
        "The learner is solved to this fraction of the decrease that a step promises.",
        default=0.3,
        rule=POSITIVE,
    )
    rescue: bool = parameter(
        "Whether the interior point may take over where this method is slow.",
        default=True,
        rule=FLAG,
    )
    coarse: bool = parameter(
        "Whether 1000 samples or more begin at the kernel of a problem over a fifth of them, 500 "
        "at least, solved roughly, instead of at the balanced direction.",
        default=True,
        rule=FLAG,
    )
    gram: str = parameter(
        "Whether Gram matrices are stored; without, the learner is solved in blocks of samples "
        "whose part of the Gram matrix is as large as the memory limit allows, and everything else "
        "comes from products that store nothing: both bounds stay those of the problem itself. "
        '"auto" stores them where they fit, else it warns and uses blocks.',
        default="auto",
        rule=GRAM,
    )
    start: Start | None = parameter(
        "P and α of the solution of a similar problem, to start there.",
        kind="Start",
        default=None,
        rule=_START,
    )


class InteriorPoint(Settings):
    """Settings of ``tkl-interior-point``, robust where factors and Frank-Wolfe crawl."""

    algorithm: ClassVar[str] = "tkl-interior-point"
    dtype: str = parameter("Precision of the Gram matrices.", default="float64", rule=DTYPE)


class FrankWolfe(Settings):
    """Settings of ``tkl-frank-wolfe``, rank-one atoms with an exact line search."""

    algorithm: ClassVar[str] = "tkl-frank-wolfe"
    dtype: str = parameter("Precision of the Gram matrices.", default="float64", rule=DTYPE)
    inner_fraction: float = parameter(
        "The learner is solved to this fraction of the outer gap.", default=0.1, rule=POSITIVE
    )


class AcceleratedPrimalDual(Settings):
    """Settings of ``tkl-apd``, proximal steps in P and α."""

    algorithm: ClassVar[str] = "tkl-apd"
    dtype: str = parameter("Precision of the Gram matrices.", default="float64", rule=DTYPE)
    certify_every: int = parameter(
        "Iterations between certificates, each of which costs a learner solve.",
        default=10,
        rule=COUNT,
    )


class Hybrid(Settings):
    """Settings of ``tkl-hybrid``, Frank-Wolfe first and then the primal-dual method."""

    algorithm: ClassVar[str] = "tkl-hybrid"
    dtype: str = parameter("Precision of the Gram matrices.", default="float64", rule=DTYPE)
    switch: str = parameter(
        "What is compared with ``threshold``: the relative gap, or the step length.",
        default="step",
        rule=one_of("gap", "step"),
    )
    threshold: float = parameter(
        "The second stage begins at or below this value.", default=0.01, rule=POSITIVE
    )
    certify_every: int = parameter("As in `AcceleratedPrimalDual`.", default=10, rule=COUNT)


class Spectahedron(Value):
    """{P : P ⪰ η I, tr P = n_P}, n_P the size of P.

    Examples
    --------
    >>> from kernelweave.spectahedron import Spectahedron
    >>> Spectahedron().min_eig
    0.0
    """

    name: ClassVar[str] = "spectahedron"
    min_eig: float = parameter(
        "η, keeps P ⪰ η I, so that a positive value keeps the learned kernel universal.",
        default=0.0,
        rule=number(least=0.0, below=1.0),
    )
