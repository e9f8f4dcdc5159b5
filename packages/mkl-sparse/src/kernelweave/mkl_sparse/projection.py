"""The Euclidean projection onto the simplex with at most k₀ nonzero weights."""

from __future__ import annotations

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.checks import COUNT, check_array
from numpy.typing import ArrayLike


def project_sparse_simplex(w: ArrayLike, k0: int, *, cap: float | None = None) -> FloatArray:
    """Return ``argmin ‖β − w‖²`` over ``β ≥ 0``, ``Σβ = 1``, ``‖β‖₀ ≤ k₀``.

    The k₀ largest entries are kept, of equal ones those of lowest index, and projected onto the
    simplex: ``β = (w − τ)₊``. The largest entry is subtracted first, so that nothing cancels at
    any scale of w.

    Parameters
    ----------
    w : array-like of shape (q,)
        Finite.
    k0 : int
    cap : float, optional
        Replaces larger kept entries by this value before the projection. The program behind the
        published tables does so with 1e6, which makes weights equal that are not; for
        reproduction only.

    Returns
    -------
    ndarray of shape (q,)
        Sums to 1 up to rounding.

    Raises
    ------
    ValueError
        If w is empty or not finite, or k0 is not a positive integer.

    Notes
    -----
    Kyrillidis, Becker, Cevher, Koch, *Sparse projections onto the simplex*, ICML 2013.

    Examples
    --------
    >>> from kernelweave.mkl_sparse import project_sparse_simplex
    >>> project_sparse_simplex([0.9, 0.5, 0.1], 2)
    array([0.7, 0.3, 0. ])
    """
    values = check_array("w", w, 1)
    kept = np.argsort(-values, kind="stable")[: COUNT.check("k0", k0)]
    top = values[kept]
    if cap is not None:
        top = np.minimum(top, cap)
    depth = top[0] - top
    counts = np.arange(1, top.size + 1)
    sums = np.cumsum(depth)
    r = int(np.flatnonzero(counts * depth < 1.0 + sums)[-1])
    level = (1.0 + sums[r]) / counts[r]
    out = np.zeros_like(values)
    out[kept] = np.maximum(level - depth, 0.0)
    return out
