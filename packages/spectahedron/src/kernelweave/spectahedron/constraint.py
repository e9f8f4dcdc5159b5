"""The set of the kernel parameters: positive semidefinite matrices of fixed trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Spectahedron:
    """{P : P ⪰ η I, tr P = n_P}, n_P the size of P.

    Parameters
    ----------
    min_eig : float, default=0.0
        η in [0, 1). A positive value keeps the learned kernel universal.

    Examples
    --------
    >>> from kernelweave.spectahedron import Spectahedron
    >>> Spectahedron().min_eig
    0.0
    """

    name: ClassVar[str] = "spectahedron"
    min_eig: float = 0.0

    def validate(self) -> None:
        """Raise unless η is in [0, 1).

        Raises
        ------
        ValueError
            Naming the value seen.
        """
        if not 0.0 <= self.min_eig < 1.0:
            raise ValueError(f"min_eig must be in [0, 1), got {self.min_eig!r}")
