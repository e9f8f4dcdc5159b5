"""Exact projection onto {P ⪰ 0, tr P = c} by sorting eigenvalues."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..checks import POSITIVE, check_array


def project_simplex(values: npt.NDArray[np.floating], total: float) -> npt.NDArray[np.float64]:
    """Return the nearest point of {x ≥ 0, Σx = total} to ``values``.

    x = max(values − τ, 0), τ fixed by the sum. Subtracting max(values) first leaves the
    projection as it is and keeps the sums exact at any scale.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Point to project.
    total : float
        Sum of the result, > 0.

    Returns
    -------
    ndarray of shape (n,), float64
        The projection.

    Raises
    ------
    ValueError
        If ``values`` is not a vector of finite numbers, or ``total`` is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core.psd_cone import project_simplex
    >>> project_simplex(np.array([3.0, 1.0, 0.0]), 2.0)
    array([2., 0., 0.])
    """
    POSITIVE.check("total", total)
    point = check_array("values", values, 1)
    shifted = point - point.max()
    ordered = np.sort(shifted)[::-1]
    excess = np.cumsum(ordered) - total
    counts = np.arange(1, len(ordered) + 1)
    last = np.flatnonzero(ordered * counts > excess)[-1]
    result: npt.NDArray[np.float64] = np.maximum(shifted - excess[last] / counts[last], 0.0)
    return result


def project_spectahedron(P: npt.NDArray[np.floating], trace: float) -> npt.NDArray[np.float64]:
    """Return the nearest matrix of {P ⪰ 0, tr P = trace} in the Frobenius norm.

    P = Q diag(λ) Qᵀ maps to Q diag(x) Qᵀ, x the projection of λ onto the simplex of sum
    ``trace``. The published bisection is replaced by the exact sort.

    Parameters
    ----------
    P : ndarray of shape (n, n)
        Matrix to project; its symmetric part is used.
    trace : float
        Trace of the result, > 0.

    Returns
    -------
    ndarray of shape (n, n), float64
        The projection.

    Raises
    ------
    ValueError
        If P is not square and finite, or ``trace`` is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core.psd_cone import project_spectahedron
    >>> project_spectahedron(np.diag([3.0, -1.0]), trace=2.0)
    array([[2., 0.],
           [0., 0.]])
    """
    matrix = check_array("P", P, 2, square=True)
    POSITIVE.check("trace", trace)
    eigenvalues, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    projected = project_simplex(eigenvalues, trace)
    result: npt.NDArray[np.float64] = (vectors * projected) @ vectors.T
    return result
