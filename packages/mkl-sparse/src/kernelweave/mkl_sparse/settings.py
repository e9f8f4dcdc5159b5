"""Settings of the paper's algorithm, and which algorithm and learner an estimator means."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from kernelweave.kernels_core import get_algorithm
from kernelweave.kernels_core.checks import COUNT, NONNEGATIVE, POSITIVE, one_of
from kernelweave.kernels_core.estimators.search import values_of
from kernelweave.kernels_core.exceptions import UnknownNameError
from kernelweave.kernels_core.parameters import parameter
from kernelweave.kernels_core.settings import Settings, name_of
from kernelweave.qp_smo import SVC, SVR
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from .estimators import _SparseWeights

GLOBAL = "smkl-global"
BEST_RESPONSE = "smkl-best-response"


class BestResponse(Settings):
    """Settings of ``smkl-best-response``, alternating best response from several starts.

    Examples
    --------
    >>> from kernelweave.mkl_sparse import BestResponse, SparseMKLClassifier
    >>> SparseMKLClassifier(algorithm=BestResponse(n_init=4)).algorithm.n_init
    4
    """

    algorithm: ClassVar[str] = "smkl-best-response"
    init: str | ArrayLike = parameter(
        "Where the first run starts.",
        kind='{"saddle", "random", "sdp-3x3", "soc-random"} or array-like of shape (q,)',
        default="saddle",
    )
    n_init: int = parameter(
        "Number of starts; all but the first are random supports.", default=1, rule=COUNT
    )
    epsilon: float = parameter(
        "The paper's ε: the smallest decrease of the objective that counts.",
        default=1e-2,
        rule=NONNEGATIVE,
    )
    patience: int = parameter(
        "A run ends after so many iterations without such a decrease.", default=3, rule=COUNT
    )
    run_limit: int = parameter("Maximum number of iterations of one run.", default=50, rule=COUNT)
    cap: float | None = parameter(
        "As in `project_sparse_simplex`; 1e6 reproduces the authors' program.",
        default=None,
        rule=POSITIVE,
    )
    warm: str = parameter(
        "Whether a run starts at the k₀ largest of the relaxed weights (sparse) or at all of them.",
        default="sparse",
        rule=one_of("sparse", "dense"),
    )


def has_global() -> bool:
    """Return whether the package that finds and proves the optimum is installed."""
    try:
        get_algorithm(GLOBAL)
    except UnknownNameError:
        return False
    return True


def method_of(estimator: _SparseWeights) -> str | Settings:
    """Return the algorithm that runs, Algorithm 1 with the settings that it was given."""
    if estimator.algorithm is None and has_global():
        return GLOBAL
    if estimator.algorithm not in (None, BEST_RESPONSE):
        return estimator.algorithm
    return BestResponse(
        init=estimator.init,
        n_init=estimator.n_init,
        epsilon=1e-2 if estimator.tol is None else estimator.tol,
        patience=estimator.patience,
        run_limit=min(BestResponse().run_limit, estimator.max_iter),
        cap=estimator.cap,
        warm=estimator.warm,
    )


def learner_of(estimator: _SparseWeights) -> SVC | SVR:
    """Return the learner, with the first C of several."""
    C = values_of(estimator, "C")[0]
    return SVR(C=C, epsilon=estimator.epsilon) if hasattr(estimator, "epsilon") else SVC(C=C)


def is_scaled(estimator: _SparseWeights) -> bool:
    """Return whether features are standardised first."""
    if isinstance(estimator.kernels, str):
        return False
    return estimator.kernels is None if estimator.scale is None else bool(estimator.scale)


def check_known(algorithm: str | Settings) -> None:
    """Raise UnknownNameError, or ImportError that says what to install, if it is not registered."""
    try:
        get_algorithm(name_of(algorithm))
    except UnknownNameError as error:
        if algorithm != GLOBAL:
            raise
        raise ImportError(
            f"algorithm={GLOBAL!r} is registered by kernelweave-relaxations, which is not "
            "installed: pip install kernelweave-relaxations"
        ) from error
