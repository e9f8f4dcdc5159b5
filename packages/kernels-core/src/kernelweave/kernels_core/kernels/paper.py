"""The dictionaries of the sparse multiple kernel learning paper."""

from __future__ import annotations

from .base import Kernel
from .dictionary import KernelDictionary
from .standard import RBF, Laplacian, Linear, Polynomial, Sigmoid


def _ten() -> list[Kernel]:
    return [
        Linear(),
        *(Polynomial(d, 0.01, 1.0) for d in (2, 3, 5)),
        *(RBF(g) for g in (0.5, 0.3, 0.1)),
        *(Sigmoid(g, 1.0) for g in (0.5, 0.7)),
        Laplacian(0.3),
    ]


def _fifty() -> list[Kernel]:
    return [
        Linear(),
        *(Polynomial(d, 0.01, c) for d in range(2, 11) for c in (0.0, 1.0)),
        *(RBF(2.0**e) for e in range(-6, 6)),
        *(Sigmoid(g, c) for g in (0.01, 0.03, 0.1, 0.3) for c in (-1.0, 0.0, 1.0)),
        *(Laplacian(2.0**e) for e in range(-5, 2)),
    ]


def default_kernels() -> KernelDictionary:
    """Return what ``kernels=None`` means: the paper's ten kernels without the two sigmoids.

    Examples
    --------
    >>> from kernelweave.kernels_core.kernels import default_kernels
    >>> len(default_kernels())
    8
    """
    return KernelDictionary([k for k in _ten() if not isinstance(k, Sigmoid)])


PAPER_TEN = KernelDictionary(_ten())
"""The paper's ten kernels for standardised data, its section 5.1, in the order of its results.

Two of them are sigmoids, so that fitting raises NotPSDError on most data; say what to do with
``KernelDictionary(PAPER_TEN, psd="clip")``, or leave them out: `default_kernels`.
"""

PAPER_FIFTY = KernelDictionary(_fifty(), psd="clip")
"""Fifty kernels: 1 linear, 18 polynomial, 12 Gaussian, 12 sigmoid (clipped), 7 Laplacian."""
