"""Settings of the algorithms over separable kernels."""

from __future__ import annotations

from typing import ClassVar

from kernelweave.kernels_core.checks import COUNT, DTYPE, NONNEGATIVE, POSITIVE, one_of
from kernelweave.kernels_core.parameters import parameter
from kernelweave.kernels_core.settings import Settings

from .sylvester.auto import METHODS

_METHOD = one_of(*METHODS)


class SpectralGradient(Settings):
    """Settings of ``vv-spg``, spectral projected gradient over kernel weights and output kernel.

    Examples
    --------
    >>> from kernelweave.vv_rkhs import MatrixValuedKernelRegressor, SpectralGradient
    >>> MatrixValuedKernelRegressor(algorithm=SpectralGradient(memory=4)).algorithm.memory
    4
    """

    algorithm: ClassVar[str] = "vv-spg"
    method: str = parameter("C solver, see `solve_sylvester`.", default="auto", rule=_METHOD)
    dtype: str = parameter("Precision of the Gram matrices.", default="float64", rule=DTYPE)
    inner_tol: float | None = parameter(
        "Relative residual of iterative C solvers. By default a tenth of the least relative "
        "stationarity so far, between 1e-9 and 1e-2, and less where a line search had to shorten "
        "its step a lot: first steps need no exact C, and every bound counts the residual.",
        default=None,
        rule=POSITIVE,
    )
    memory: int = parameter(
        "A step must improve on the worst of this many last values.", default=8, rule=COUNT
    )
    stationarity_tol: float | None = parameter(
        "Where joint learning, which has no certificate, stops: the ``tol`` of an estimator, else "
        "1e-6. Below 3e-7 what a step can gain drowns in rounding, on some processors before "
        "others: where no step helps there, the point counts as stationary.",
        default=None,
        rule=NONNEGATIVE,
    )


class BlockDescent(Settings):
    """Settings of ``vv-block-descent``, the method of Sindhwani, Minh and Lozano (2013).

    Examples
    --------
    >>> from kernelweave.vv_rkhs import BlockDescent, MatrixValuedKernelRegressor
    >>> MatrixValuedKernelRegressor(algorithm=BlockDescent(sdp_iter=20)).algorithm
    BlockDescent(sdp_iter=20)
    """

    algorithm: ClassVar[str] = "vv-block-descent"
    cg_tol: float = parameter(
        "Relative residual of the C solves, cg_ε in the paper.", default=1e-6, rule=POSITIVE
    )
    sdp_iter: int = parameter("Hazan steps per update of L.", default=100, rule=COUNT)
    output_step: str = parameter(
        "Hazan's with exact line search or step 2/k, L = τ G½/tr G½, or the minimum over L at this "
        "C and η.",
        default="hazan",
        rule=one_of("hazan", "open-loop", "closed-form", "exact"),
    )
    method: str = parameter("C solver, see `solve_sylvester`.", default="cg", rule=_METHOD)
    dtype: str = parameter("Precision of the Gram matrices.", default="float64", rule=DTYPE)
    stationarity_tol: float | None = parameter(
        "Where joint learning, which has no certificate, stops: the ``tol`` of an estimator, else "
        "1e-5.",
        default=None,
        rule=NONNEGATIVE,
    )


class OutputKernelLearning(Settings):
    """Settings of ``vv-dinuzzo``, exact solves for C and L in turn.

    Examples
    --------
    >>> from kernelweave.vv_rkhs import MatrixValuedKernelRegressor, OutputKernelLearning
    >>> MatrixValuedKernelRegressor(algorithm=OutputKernelLearning()).algorithm.dtype
    'float64'
    """

    algorithm: ClassVar[str] = "vv-dinuzzo"
    dtype: str = parameter("Precision of the Gram matrices.", default="float64", rule=DTYPE)
