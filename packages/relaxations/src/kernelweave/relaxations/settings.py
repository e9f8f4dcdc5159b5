"""Settings of the global search and of the semidefinite program."""

from __future__ import annotations

from typing import ClassVar

from kernelweave.kernels_core.checks import DTYPE, POSITIVE
from kernelweave.kernels_core.parameters import parameter
from kernelweave.kernels_core.settings import Settings


class BranchAndBound(Settings):
    """Settings of ``smkl-global``, cutting planes and then branch and bound on supports.

    Examples
    --------
    >>> from kernelweave.mkl_sparse import SparseMKLClassifier
    >>> from kernelweave.relaxations import BranchAndBound
    >>> SparseMKLClassifier(algorithm=BranchAndBound(accuracy=1e-6)).algorithm
    BranchAndBound(accuracy=1e-06)
    """

    algorithm: ClassVar[str] = "smkl-global"
    accuracy: float | None = parameter(
        "Relative gap to which the relaxation and each support are solved: the ``tol`` of an "
        "estimator, else 1e-5.",
        default=None,
        rule=POSITIVE,
    )


class SemidefiniteProgram(Settings):
    """Settings of ``tkl-sdp``, the semidefinite program that the papers compare with.

    Examples
    --------
    >>> from kernelweave.relaxations import SemidefiniteProgram
    >>> from kernelweave.spectahedron import TessellatedKernelClassifier
    >>> TessellatedKernelClassifier(algorithm=SemidefiniteProgram(solver="SCS")).algorithm
    SemidefiniteProgram(solver='SCS')
    """

    algorithm: ClassVar[str] = "tkl-sdp"
    dtype: str = parameter(
        "Precision of the Gram matrices; the program is stated in float64.",
        default="float64",
        rule=DTYPE,
    )
    solver: str | None = parameter('A cvxpy solver, ``"CLARABEL"`` by default.', default=None)
