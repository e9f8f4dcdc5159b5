"""Checks of what a caller passes, before any work."""

from __future__ import annotations

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.checks import POSITIVE, check_sample_weight, check_vector
from numpy.typing import ArrayLike


def check_bounds(C: float, sample_weight: ArrayLike | None, n: int) -> FloatArray:
    """Return ``Cᵢ = C · sample_weightᵢ`` of shape (n,)."""
    bound = float(POSITIVE.check("C", C))
    weight = check_sample_weight(sample_weight, n)
    if weight is None:
        return np.full(n, bound)
    with np.errstate(over="ignore"):
        product = bound * weight
    if not np.all(np.isfinite(product)):
        raise ValueError(f"C * sample_weight overflows (C={C!r}): lower C or the weights")
    return product


def check_labels(y: ArrayLike, bound: FloatArray) -> FloatArray:
    """Return labels of ±1 after checking that both have a sample of positive weight."""
    labels = check_vector("y", y, bound.size)
    if not (np.abs(labels) == 1.0).all():
        odd = np.flatnonzero(np.abs(labels) != 1.0)[0]
        raise ValueError(
            f"y must hold -1 and +1 only, got {labels[odd]} at position {odd}: encode the two "
            "classes first"
        )
    signed = labels * bound
    if signed.min() < 0.0 < signed.max():
        return labels
    missing = -1 if signed.min() >= 0.0 else 1
    cause = "all its samples have weight 0" if missing in labels else "there is no such sample"
    raise ValueError(f"y must hold both classes, but class {missing:+d} is missing ({cause})")
