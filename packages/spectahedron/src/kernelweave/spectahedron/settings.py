"""Settings of the algorithms over positive matrices."""

from __future__ import annotations

from typing import ClassVar

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
from .start import Start

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
        "P and α of a solved neighbour, to begin there.",
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
        "At or below it the second stage begins.", default=0.01, rule=POSITIVE
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
