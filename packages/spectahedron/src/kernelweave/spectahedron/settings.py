"""Settings of the algorithms over positive matrices, and where they may start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from kernelweave.kernels_core.arrays import Matrix
from kernelweave.kernels_core.checks import DTYPE, FLAG, POSITIVE, Rule, integer, number, one_of
from kernelweave.kernels_core.parameters import Value, parameter
from kernelweave.kernels_core.settings import Settings

from .gram_memory import GRAM

# A factor that starts at another solution keeps at most so many eigenvectors of its P, those with
# at least this share of the largest eigenvalue. Each column costs time in every step, and one that
# is left out is found again: it is the top eigenvector of the moment matrix D.
_MOST_COLUMNS = 8
_LEAST_SHARE = 1e-5


@dataclass(frozen=True)
class Start:
    """Where a search starts, instead of at its default P.

    Parameters
    ----------
    P : ndarray of shape (n_P, n_P)
        Positive semidefinite, of any trace.
    dual_coef : ndarray of shape (n_tasks, n_samples)
        Signed dual coefficients; clipped to the box and balanced where they are not feasible.

    Examples
    --------
    >>> from kernelweave.kernels_core.testing import make_classification
    >>> from kernelweave.spectahedron import LowRank, Start, TessellatedKernelClassifier
    >>> X, y = make_classification(60)
    >>> first = TessellatedKernelClassifier(degree=0).fit(X, y)
    >>> start = Start(first.P_, first.dual_coef_.reshape(1, -1))
    >>> second = TessellatedKernelClassifier(degree=0, C=1.1, algorithm=LowRank(start=start))
    >>> second.fit(X, y).certificate_.gap <= second.tol
    True
    """

    P: Matrix
    dual_coef: Matrix

    def factor(self, min_eig: float) -> Matrix:
        """Return U of norm one, at most eight columns, with U Uᵀ near P − ηI, scaled.

        `min_eig`: η.
        """
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
    return np.sign(dual_coef) * moved


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
        "Number of columns of the first factor, at least 2: with one, the search can stop at a "
        "point that is not optimal.",
        default=5,
        rule=integer(2),
    )
    rescue: bool = parameter(
        "Whether the interior point may take over where this method is slow.",
        default=True,
        rule=FLAG,
    )
    gram: str = parameter(
        'Whether Gram matrices are stored. "blocks" solves the learner in blocks of samples whose '
        "part of the Gram matrix fits into the memory limit, and computes all other entries where "
        "they are needed; both bounds are still those of the whole problem. "
        '"auto" stores the matrices if they fit, else it warns and uses blocks.',
        default="auto",
        rule=GRAM,
    )
    start: Start | None = parameter(
        "P and α of the solution of a similar problem, where the search starts.",
        kind="Start",
        default=None,
        rule=_START,
    )


class InteriorPoint(Settings):
    """Settings of ``tkl-interior-point``, for problems on which the other methods are slow.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.spectahedron import InteriorPoint, TessellatedKernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> rows = y > 0
    >>> model = TessellatedKernelClassifier(degree=0, algorithm=InteriorPoint(), tol=1e-2)
    >>> bool(model.fit(X[rows][::4, 2:], y[rows][::4]).certificate_.gap < 1e-2)
    True
    """

    algorithm: ClassVar[str] = "tkl-interior-point"
    dtype: str = parameter("Precision of the Gram matrices.", default="float64", rule=DTYPE)


class FrankWolfe(Settings):
    """Settings of ``tkl-frank-wolfe``, rank-one atoms with an exact line search.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.spectahedron import FrankWolfe, TessellatedKernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> rows = y > 0
    >>> model = TessellatedKernelClassifier(degree=0, algorithm=FrankWolfe(), tol=1e-2)
    >>> bool(model.fit(X[rows][::4, 2:], y[rows][::4]).certificate_.gap < 1e-2)
    True
    """

    algorithm: ClassVar[str] = "tkl-frank-wolfe"
    dtype: str = parameter("Precision of the Gram matrices.", default="float64", rule=DTYPE)


class AcceleratedPrimalDual(Settings):
    """Settings of ``tkl-apd``, proximal steps in P and α.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.spectahedron import AcceleratedPrimalDual, TessellatedKernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> rows = y > 0
    >>> model = TessellatedKernelClassifier(degree=0, algorithm=AcceleratedPrimalDual(), tol=1e-2)
    >>> bool(model.fit(X[rows][::4, 2:], y[rows][::4]).certificate_.gap < 1e-2)
    True
    """

    algorithm: ClassVar[str] = "tkl-apd"
    dtype: str = parameter("Precision of the Gram matrices.", default="float64", rule=DTYPE)


class Hybrid(Settings):
    """Settings of ``tkl-hybrid``, Frank-Wolfe first and then the primal-dual method.

    Examples
    --------
    >>> from kernelweave.spectahedron import Hybrid, TessellatedKernelClassifier
    >>> TessellatedKernelClassifier(algorithm=Hybrid(switch="gap")).algorithm
    Hybrid(switch='gap')
    """

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
        "Smallest eigenvalue η of P; if positive, the learned kernel is universal.",
        default=0.0,
        rule=number(least=0.0, below=1.0),
    )
