"""The set of the kernel parameters: positive semidefinite matrices of fixed trace."""

from __future__ import annotations

from typing import ClassVar

from kernelweave.kernels_core.checks import number
from kernelweave.kernels_core.parameters import Value, parameter


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
