"""The kernels that are weighted where the user names none."""

from __future__ import annotations

import numpy as np
from kernelweave.kernels_core import RBF, Kernel, Laplacian, Linear
from kernelweave.kernels_core.arrays import FloatArray

from ..kernel import EvidenceKernel
from ..terms import Scales
from ..views import Views

# Gaussians and Laplacians of the dictionary that was measured on 31 tables: γ = c/n for n columns,
# from nearly linear to local.
_GAUSSIANS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
_LAPLACIANS = (0.03, 0.1, 0.3)
# Of the product of ranks: from nearly a sum over the columns to their interactions.
_STRENGTHS = (0.5, 2.0, 8.0)
# So strong that the constant beside a column's own term is rounding: (1 + sκ)/(1 + s) is κ. Each
# such column is a Gram matrix more, so that wide tables get none.
_ALONE = 1e6
_MOST_ALONE = 20


def default_kernels(X: FloatArray, weight: FloatArray | None = None) -> dict[str, Kernel]:
    """Return Gaussians, Laplacians, a linear kernel and tessellated products of ranks.

    `X` of shape (n, n_features): training points, standardised; `weight` of shape (n,): how often
    each counts. The tessellated kernels of single features too, where these are at most twenty.
    """
    n = X.shape[1]
    varying = np.flatnonzero(np.ptp(X, axis=0) > 0.0)
    views = Views.of(np.ascontiguousarray(X), np.empty((len(X), 0), dtype=np.int64), weight)
    kernels: dict[str, Kernel] = {f"gaussian {c:g}": RBF(c / n) for c in _GAUSSIANS}
    kernels |= {f"laplacian {c:g}": Laplacian(c / n) for c in _LAPLACIANS}
    if len(varying):
        kernels["linear"] = Linear()
    if len(varying) > 1:
        even = np.isin(np.arange(n), varying) / len(varying)
        kernels |= {f"product {s:g}": _product(views, s * even) for s in _STRENGTHS}
    if n <= _MOST_ALONE:
        kernels |= {f"column {i}": _product(views, _ALONE * np.eye(n)[i]) for i in varying}
    return kernels


def _product(views: Views, strength: FloatArray) -> EvidenceKernel:
    """Return the tessellated product alone of the five terms."""
    weights = np.array([0.0, 0.0, 0.0, 1.0, 0.0])
    return EvidenceKernel(views, (Scales(np.zeros(len(strength)), strength, weights, 0.0),))
