"""Several classes by their own likelihood: logistic regression of all at once on a kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from kernelweave.kernels_core import clock
from kernelweave.kernels_core.arrays import FloatArray
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from .terms import Stopped

# Added to a Gram matrix of unit spread, so that rows that repeat leave a Cholesky factor.
_JITTER = 1e-6
# A Gram matrix varies by this share of its diagonal at least: equal rows, or a single one, leave it
# constant.
_LEVEL = 1e-6
# Precision of the prior on offsets: they are free but for a class without rows, whose own would go
# to −∞.
_FREE = 0.01


@dataclass(frozen=True)
class Softmax:
    """Class k has the logit Σᵢ k(x, xᵢ) dual[i, k] + offset[k].

    `dual` of shape (n, n_classes); `offset` of shape (n_classes,); `variance`: what the kernel is
    multiplied by in the prior of the logits.
    """

    dual: FloatArray
    offset: FloatArray
    variance: float

    def values(self, cross: FloatArray) -> FloatArray:
        """Return logits from the kernel between points and the training rows."""
        return np.asarray(cross @ self.dual + self.offset)


def fit_softmax(
    gram: FloatArray,
    codes: NDArray[np.intp],
    n_classes: int,
    mass: FloatArray,
    strengths: Sequence[float],
) -> Iterator[Softmax]:
    """Yield the posterior mode for functions of several variances, the smallest first.

    −Σᵢ mᵢ log softmax(fᵢ)[codeᵢ] + ½ Σₖ ‖fₖ‖²/strength + 0.005 ‖offset‖², ‖·‖ the norm of the
    kernel scaled so that its functions vary by 1; convex, by L-BFGS in coordinates where the norm
    is that of a vector.

    - `gram` of shape (n, n)
    - `codes` of shape (n,): the class of each row
    - `n_classes`: a class may have no row
    - `mass` of shape (n,): weights

    Raises Stopped where time is up.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.evidence.softmax import fit_softmax
    >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> (fit,) = fit_softmax(np.outer(x, x), np.array([0, 0, 1, 1]), 2, np.ones(4), [10.0])
    >>> fit.values(np.outer([3.0], x)).argmax()
    np.int64(1)
    """
    n = len(gram)
    largest = float(np.diagonal(gram).mean())
    size = max(largest - float(gram.mean()), _LEVEL * largest) or 1.0
    root = cholesky(gram / size + _JITTER * np.eye(n), lower=True, check_finite=False)
    hit = np.zeros((n, n_classes))
    hit[np.arange(n), codes] = 1.0
    at = np.zeros((n + 1) * n_classes)
    for strength in strengths:
        scaled = np.sqrt(strength) * root
        at = _minimise(scaled, hit, mass[:, None], at)
        own, offset = np.split(at.reshape(n + 1, n_classes), [n])
        dual = solve_triangular(scaled, own, lower=True, trans="T", check_finite=False)
        yield Softmax(dual * (strength / size), offset[0], strength / size)


def _minimise(root: FloatArray, hit: FloatArray, mass: FloatArray, start: FloatArray) -> FloatArray:
    """Return B and the offsets, stacked, of f = root B + offset."""
    n, n_classes = hit.shape

    def objective(theta: FloatArray) -> tuple[float, FloatArray]:
        if clock.expired():
            raise Stopped
        both = theta.reshape(n + 1, n_classes)
        own, offset = both[:n], both[n]
        logits = root @ own + offset
        excess = mass * (softmax(logits, axis=1) - hit)
        value = -float(np.sum(mass * hit * log_softmax(logits, axis=1)))
        value += 0.5 * float(np.sum(own**2) + _FREE * offset @ offset)
        slopes = np.vstack([root.T @ excess + own, excess.sum(axis=0) + _FREE * offset])
        return value, slopes.ravel()

    options: Any = {"maxiter": 300, "ftol": 1e-7, "gtol": 1e-5}
    done = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(done.x)
