"""The sets that weights and output kernels may come from, and what the algorithms find there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import Matrix, RealArray
from kernelweave.kernels_core.checks import FLAG, STRENGTH, check_weights
from kernelweave.kernels_core.parameters import Value, parameter
from numpy.typing import ArrayLike, DTypeLike

from .penalties import Penalty, SquaredLpNorm, is_penalty


@dataclass(frozen=True, eq=False)
class SeparableKernel:
    """k(x, z) L with k = Σ ηⱼ kⱼ.

    As an array it is η · tr L/n, which is what a dictionary understands: the scalar kernel itself
    for one output, the mean over the outputs otherwise.

    Attributes
    ----------
    weights : ndarray of shape (n_kernels,)
        η.
    output_kernel : ndarray of shape (n_outputs, n_outputs)
        L.
    """

    weights: npt.NDArray[np.float64]
    output_kernel: Matrix

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> RealArray:
        return np.array(self.weights * self.scale, dtype=dtype, copy=True)

    @property
    def scale(self) -> float:
        """tr L/n."""
        return float(np.trace(self.output_kernel) / len(self.output_kernel))


@dataclass(frozen=True, eq=False)
class VectorSolution:
    """f(x) = Σᵢ k(x, xᵢ) L cᵢ, the minimiser of the regularised squared error.

    Attributes
    ----------
    C : ndarray of shape (n_samples, n_outputs)
        Rows cᵢ; for sample weights, of the problem as the user states it.
    dual_coef : ndarray of shape (n_outputs, n_samples)
        (C L)ᵀ / (tr L/n): predictions are (tr L/n) k(x, X) · dual_coefᵀ, the kernel being scaled
        as `SeparableKernel` is as an array.
    intercept : ndarray of shape (n_outputs,)
        Zeros: the model has none.
    lower_bound, upper_bound : float
        The optimum over C at this kernel, J/(2λ), lies between them.
    """

    C: Matrix
    dual_coef: Matrix
    intercept: npt.NDArray[np.float64]
    lower_bound: float
    upper_bound: float


def given_weights(weights: ArrayLike, n_kernels: int) -> npt.NDArray[np.float64]:
    """Return fixed weights as an array, 1/m each by default.

    Raises ValueError if their number is wrong or one is negative or not finite.
    """
    if weights is None:
        return np.full(n_kernels, 1.0 / n_kernels)
    return check_weights(weights, n_kernels)


def given_output_kernel(L: object, n_outputs: int, tau: float) -> npt.NDArray[np.float64]:
    """Return a fixed output kernel as an array, (τ/n)I by default.

    Raises ValueError if it is not symmetric positive semidefinite of the right size.
    """
    if L is None:
        return tau / n_outputs * np.eye(n_outputs)
    matrix = np.asarray(L, dtype=np.float64)
    if matrix.shape != (n_outputs, n_outputs) or not np.isfinite(matrix).all():
        raise ValueError(f"output_kernel must have shape {(n_outputs,) * 2}, got {matrix.shape}")
    scale = float(np.abs(matrix).max())
    if np.abs(matrix - matrix.T).max() > 1e-10 * scale:
        raise ValueError("output_kernel must be symmetric, use (L + L.T) / 2")
    matrix = 0.5 * (matrix + matrix.T)
    smallest = float(np.linalg.eigvalsh(matrix)[0])
    if smallest < -1e-10 * scale:
        raise ValueError(
            "output_kernel must be positive semidefinite, its smallest eigenvalue is "
            f"{smallest:.3g}"
        )
    return matrix


@dataclass(frozen=True)
class SeparableKernels:
    """{k_η L}: weights η with a regulariser ω, L ⪰ 0 with tr L ≤ τ (V, (6) and (8)).

    Parameters
    ----------
    regulariser : Penalty, default=SquaredLpNorm(1.0)
        What ω is; J holds λω(η), and so the objective of a problem, J/(2λ), holds ½ω(η).
    tau : float, optional
        Bound on the trace of L; the number of outputs by default. Only λ/τ
        matters, except to the elastic net, whose λω(η) knows no τ.
    learn_input, learn_output : bool, default=True
        Whether η and L are learned. With one of them fixed the problem is convex, and certified.
    weights : array-like of shape (n_kernels,), optional
        η where it is not learned; 1/m each by default.
    output_kernel : array-like of shape (n_outputs, n_outputs), optional
        L where it is not learned; (τ/n) I by default.

    Examples
    --------
    >>> from kernelweave.vv_rkhs import SeparableKernels
    >>> SeparableKernels(learn_output=False).regulariser
    SquaredLpNorm(p=1.0, groups=None)
    """

    name: ClassVar[str] = "separable-kernels"
    regulariser: Penalty = field(default_factory=SquaredLpNorm)
    tau: float | None = None
    learn_input: bool = True
    learn_output: bool = True
    weights: npt.ArrayLike | None = None
    output_kernel: npt.ArrayLike | None = None

    def validate(self) -> None:
        """Raise unless τ is positive, ω is a regulariser and what is given is not to be learned.

        Raises
        ------
        ValueError
            Naming the parameter and the value seen.
        """
        STRENGTH.or_none().check("tau", self.tau)
        if not is_penalty(self.regulariser):
            raise ValueError(
                "regulariser must be an object with start, value, update and conjugate, such as "
                f"SquaredLpNorm(1.0), got {self.regulariser!r}"
            )
        for switch, given in (("learn_input", "weights"), ("learn_output", "output_kernel")):
            FLAG.check(switch, getattr(self, switch))
            if getattr(self, switch) and getattr(self, given) is not None:
                raise ValueError(f"{given} is what {switch}=True learns: give one of the two")

    def trace_bound(self, n_outputs: int) -> float:
        """Return τ."""
        return float(n_outputs) if self.tau is None else float(self.tau)

    def penalty(self, parameters: SeparableKernel) -> float:
        """Return ½ω(η), what the objective charges for a kernel; nothing for fixed weights."""
        if not self.learn_input:
            return 0.0
        return 0.5 * float(self.regulariser.value(np.asarray(parameters.weights)))


class FrobeniusOutputKernels(Value):
    """{k L : L ⪰ 0} with ρ‖L‖_F² in the objective, k a fixed combination (V, section 2).

    The objective of a problem is J/(2λ); beside J itself stands 2λρ‖L‖_F².

    Examples
    --------
    >>> from kernelweave.vv_rkhs import FrobeniusOutputKernels
    >>> FrobeniusOutputKernels(rho=0.1).rho
    0.1
    """

    name: ClassVar[str] = "frobenius-output-kernels"
    rho: float = parameter("ρ > 0.", default=1.0, rule=STRENGTH)
    weights: npt.ArrayLike | None = parameter(
        "Weights of the fixed combination; 1/m each by default.",
        kind="array-like of shape (n_kernels,)",
        default=None,
    )

    def penalty(self, parameters: SeparableKernel) -> float:
        """Return ρ‖L‖², what the objective charges for a kernel."""
        return self.rho * float(np.vdot(parameters.output_kernel, parameters.output_kernel))
