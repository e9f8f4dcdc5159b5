"""The kernels of the sparse multiple kernel learning paper."""

from __future__ import annotations

from .base import Kernel
from .standard import RBF, Laplacian, Linear, Polynomial, Sigmoid


def ten() -> list[Kernel]:
    """Return the ten kernels for standardised data, section 5.1, in the order of its results."""
    return [
        Linear(),
        *(Polynomial(d, 0.01, 1.0) for d in (2, 3, 5)),
        *(RBF(g) for g in (0.5, 0.3, 0.1)),
        *(Sigmoid(g, 1.0) for g in (0.5, 0.7)),
        Laplacian(0.3),
    ]


def fifty() -> list[Kernel]:
    """Return 1 linear, 18 polynomial, 12 Gaussian, 12 sigmoid and 7 Laplacian kernels."""
    return [
        Linear(),
        *(Polynomial(d, 0.01, c) for d in range(2, 11) for c in (0.0, 1.0)),
        *(RBF(2.0**e) for e in range(-6, 6)),
        *(Sigmoid(g, c) for g in (0.01, 0.03, 0.1, 0.3) for c in (-1.0, 0.0, 1.0)),
        *(Laplacian(2.0**e) for e in range(-5, 2)),
    ]
