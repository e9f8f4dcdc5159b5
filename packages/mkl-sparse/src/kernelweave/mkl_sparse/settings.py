"""Settings of the paper's algorithm."""

from __future__ import annotations

from typing import ClassVar

from kernelweave.kernels_core.checks import COUNT, NONNEGATIVE, POSITIVE, one_of
from kernelweave.kernels_core.parameters import parameter
from kernelweave.kernels_core.settings import Settings
from numpy.typing import ArrayLike


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
        "Starts; those beyond the first are random supports.", default=1, rule=COUNT
    )
    epsilon: float = parameter(
        "The paper's ε: the absolute fall of the objective that counts.",
        default=1e-2,
        rule=NONNEGATIVE,
    )
    patience: int = parameter(
        "Iterations without such a fall that end a run.", default=3, rule=COUNT
    )
    run_limit: int = parameter("Iterations of one run at most.", default=50, rule=COUNT)
    cap: float | None = parameter(
        "Of `project_sparse_simplex`; 1e6 reproduces the program behind the published tables.",
        default=None,
        rule=POSITIVE,
    )
    warm: str = parameter(
        "Whether relaxed weights are cut to their k₀ largest or make the first duals as they are.",
        default="sparse",
        rule=one_of("sparse", "dense"),
    )
