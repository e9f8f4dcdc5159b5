"""Targets by their own likelihood on a kernel: several classes at once, or counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from kernelweave.kernels_core import clock
from kernelweave.kernels_core.arrays import FloatArray
from numpy.typing import NDArray
from scipy.linalg import cholesky, eigh, solve_triangular
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax

from .terms import Stopped

# Added to a Gram matrix of unit spread, so that rows that repeat leave a Cholesky factor.
_JITTER = 1e-6
# A Gram matrix varies by this share of its diagonal at least: equal rows, or a single one, leave it
# constant.
_LEVEL = 1e-6
# Precision of the prior on offsets: they are free but for a class without rows, whose own would go
# to −∞.
_FREE = 0.01


# Values, and slopes of their negative log likelihood, from linked values of shape (n, n_outputs).
_Likelihood = Callable[[FloatArray], tuple[float, FloatArray]]
# logarithms of a mean beyond these, in units of all targets' mean, are a step of a search too far
_FAR = 30.0
# of more rows than these, functions are sums of kernel values with so many of them
_MOST_ROWS, _LANDMARKS = 2000, 600
# second derivative of the likelihood of a row, about
_BEND = 0.15
# slopes for each row where a search along its curvature ends
_FLAT = 1e-8
_ROOT = np.sqrt(2.0)


@dataclass(frozen=True)
class PosteriorMode:
    """Output k has the linked value Σᵢ k(x, xᵢ) dual[i, k] + offset[k]: a logit, a logarithm.

    `dual` of shape (n, n_outputs); `offset` of shape (n_outputs,); `variance`: what the kernel is
    multiplied by in the prior of the linked values.
    """

    dual: FloatArray
    offset: FloatArray
    variance: float

    def values(self, cross: FloatArray) -> FloatArray:
        """Return linked values from the kernel between points and the training rows."""
        return np.asarray(cross @ self.dual + self.offset)


def fit_softmax(
    gram: FloatArray,
    codes: NDArray[np.intp],
    n_classes: int,
    mass: FloatArray,
    strengths: Sequence[float],
    landmarks: int | None = None,
) -> Iterator[PosteriorMode]:
    """Yield the posterior mode for logits of several variances, the smallest first.

    −Σᵢ mᵢ log softmax(fᵢ)[codeᵢ] + ½ Σₖ ‖fₖ‖²/strength + 0.005 ‖offset‖², ‖·‖ the norm of the
    kernel scaled so that its functions vary by 1; convex, by L-BFGS in coordinates where the norm
    is that of a vector.

    - `gram` of shape (n, n)
    - `codes` of shape (n,): the class of each row
    - `n_classes`: a class may have no row
    - `mass` of shape (n,): weights
    - `landmarks`: how many of the rows have kernel functions that logits are sums of, all by
      default

    Raises Stopped where time is up.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.evidence.likelihood import fit_softmax
    >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> (fit,) = fit_softmax(np.outer(x, x), np.array([0, 0, 1, 1]), 2, np.ones(4), [10.0])
    >>> fit.values(np.outer([3.0], x)).argmax()
    np.int64(1)
    """
    if n_classes == 2:
        modes = _modes(
            gram, partial(_of_two, np.where(codes == 1, 1.0, -1.0), mass), 1, strengths, landmarks
        )
        return (_of_both(each) for each in modes)
    hit = np.zeros((len(gram), n_classes))
    hit[np.arange(len(gram)), codes] = 1.0

    def likelihood(logits: FloatArray) -> tuple[float, FloatArray]:
        value = -float(np.sum(mass[:, None] * hit * log_softmax(logits, axis=1)))
        return value, mass[:, None] * (softmax(logits, axis=1) - hit)

    return _modes(gram, likelihood, n_classes, strengths, landmarks)


def _of_two(sign: FloatArray, mass: FloatArray, values: FloatArray) -> tuple[float, FloatArray]:
    """Return the negative log likelihood of two classes, and its slopes.

    At the mode their logits are ± one function f, found alike whichever class is the second.
    `values` of shape (n, 1): √2 f, whose norm is that of both.
    """
    margin = sign * (_ROOT * values[:, 0])
    slopes = -_ROOT * sign * mass * expit(-margin)
    return float(mass @ np.logaddexp(0.0, -margin)), slopes[:, None]


def _of_both(mode: PosteriorMode) -> PosteriorMode:
    """Return the logits of both classes from √2 times those of the second."""
    turn = np.array([[-1.0, 1.0]]) / _ROOT
    return PosteriorMode(mode.dual @ turn, mode.offset @ turn, mode.variance)


def fit_poisson(
    gram: FloatArray,
    y: FloatArray,
    mass: FloatArray,
    strengths: Sequence[float],
    landmarks: int | None = None,
) -> Iterator[PosteriorMode]:
    """Yield the posterior mode for logarithms of means, of several variances, the smallest first.

    Σᵢ mᵢ (exp fᵢ − yᵢ fᵢ)/c + ½ ‖f‖²/strength, c the mean of y, as `fit_softmax`. A
    quasi-likelihood whose variance is φ times the mean has the same mode, at φ times the strength.

    - `y` of shape (n,): not negative, whole or not; where all are 0 so is the mean, nearly
    - `landmarks`: as `fit_softmax` has them

    Raises Stopped where time is up.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.evidence.likelihood import fit_poisson
    >>> x = np.array([-1.0, 0.0, 1.0])
    >>> (fit,) = fit_poisson(np.outer(x, x), np.array([1.0, 2.0, 4.0]), np.ones(3), [1e3])
    >>> np.exp(fit.values(np.outer([2.0], x))).round(1).tolist()
    [[8.0]]
    """
    unit = float(np.average(y, weights=mass))
    if unit == 0.0:
        none, least = np.zeros((len(gram), 1)), np.log(np.finfo(np.float64).tiny)
        return (PosteriorMode(none, np.array([least]), each) for each in strengths)
    share = mass * (y / unit)

    def likelihood(logs: FloatArray) -> tuple[float, FloatArray]:
        f = np.minimum(logs[:, 0], _FAR)
        mean = mass * np.exp(f)
        return float(mean.sum() - share @ f), (mean - share)[:, None]

    def curvature(logs: FloatArray) -> FloatArray:
        return np.asarray(mass[:, None] * np.exp(np.minimum(logs, _FAR)))

    modes = _modes(gram, likelihood, 1, strengths, landmarks, curvature)
    return (PosteriorMode(each.dual, each.offset + np.log(unit), each.variance) for each in modes)


def landmarks_of(n_rows: int) -> int | None:
    """Return how many kernel functions a likelihood of so many rows has, ``None`` for all."""
    return _LANDMARKS if n_rows > _MOST_ROWS else None


def _modes(
    gram: FloatArray,
    likelihood: _Likelihood,
    n_outputs: int,
    strengths: Sequence[float],
    landmarks: int | None,
    curvature: Callable[[FloatArray], FloatArray] | None = None,
) -> Iterator[PosteriorMode]:
    largest = float(np.diagonal(gram).mean())
    size = max(largest - float(gram.mean()), _LEVEL * largest) or 1.0
    # what follows does not keep the Gram matrix
    return _along(_space(gram, size, landmarks), size, likelihood, n_outputs, strengths, curvature)


def _along(
    space: _Space,
    size: float,
    likelihood: _Likelihood,
    n_outputs: int,
    strengths: Sequence[float],
    curvature: Callable[[FloatArray], FloatArray] | None,
) -> Iterator[PosteriorMode]:
    at = np.zeros((space.root.shape[1] + 1, n_outputs))
    for strength in strengths:
        at = _minimise(np.sqrt(strength) * space.root, likelihood, at, curvature, space.squares)
        dual = np.zeros((len(space.root), n_outputs))
        dual[space.chosen] = space.dual(at[:-1])
        yield PosteriorMode(dual * (np.sqrt(strength) / size), at[-1], strength / size)


class _Space(NamedTuple):
    """Functions with coordinates whose length is their norm.

    - `chosen` of shape (m,): rows whose kernel functions they are sums of
    - `root` of shape (n, m): their values from their coordinates
    - `dual`: from coordinates, (m, n_outputs), to the factors of these sums
    - `squares` of shape (m,): of the columns of the root where these are orthogonal, else 0
    """

    chosen: NDArray[np.intp]
    root: FloatArray
    dual: Callable[[FloatArray], FloatArray]
    squares: FloatArray


def _space(gram: FloatArray, size: float, landmarks: int | None) -> _Space:
    """Return the functions of all rows, or of some where they are many.

    Of some the columns of the root are made orthogonal, by which a search takes a tenth of the
    steps; of all rows this would cost as much as it saves.
    """
    n = len(gram)
    chosen = np.linspace(0, n - 1, n if landmarks is None else landmarks).astype(np.intp)
    inner = gram[np.ix_(chosen, chosen)] / size + _JITTER * np.eye(len(chosen))
    factor = cholesky(inner, lower=True, check_finite=False)
    back = partial(solve_triangular, factor, lower=True, trans="T", check_finite=False)
    if landmarks is None:
        return _Space(chosen, factor, back, np.zeros(n))
    root = solve_triangular(factor, gram[chosen] / size, lower=True, check_finite=False).T
    squares, turn = eigh(root.T @ root, check_finite=False)
    return _Space(
        chosen,
        np.ascontiguousarray(root @ turn),
        lambda B: back(turn @ B),
        np.maximum(squares, 0.0),
    )


def _minimise(
    root: FloatArray,
    likelihood: _Likelihood,
    start: FloatArray,
    curvature: Callable[[FloatArray], FloatArray] | None,
    squares: FloatArray,
) -> FloatArray:
    """Return B and the offsets, stacked, of f = root B + offset.

    `curvature`: the second derivatives of the negative log likelihood, where outputs have their
    own. Without, the end is as near as calibrated logits need. `squares`: of the columns of the
    root, in units of its strength, where they are orthogonal: steps are of one size where the
    likelihood bends as much for each row.
    """
    m = root.shape[1]
    strength = np.sum(root[:, -1] ** 2) / squares[-1] if squares[-1] > 0.0 else 0.0
    scale = np.append(1.0 / np.sqrt(1.0 + _BEND * strength * squares), 1.0)[:, None]

    def objective(theta: FloatArray) -> tuple[float, FloatArray]:
        if clock.expired():
            raise Stopped
        both = scale * theta.reshape(m + 1, -1)
        B, offset = both[:m], both[m]
        value, excess = likelihood(root @ B + offset)
        value += 0.5 * float(np.sum(B**2) + _FREE * offset @ offset)
        slopes = np.vstack([root.T @ excess + B, excess.sum(axis=0) + _FREE * offset])
        return value, (scale * slopes).ravel()

    begin = (start / scale).ravel()
    if curvature is None:
        many = bool(squares.any())
        options: Any = {"maxiter": 100 if many else 300, "ftol": 1e-6 if many else 1e-7}
        done = minimize(objective, begin, jac=True, method="L-BFGS-B", options=options)
        return np.asarray(scale * done.x.reshape(m + 1, -1))
    bends = curvature

    def product(theta: FloatArray, step: FloatArray) -> FloatArray:
        at, along = (scale * each.reshape(m + 1, -1) for each in (theta, step))
        slopes = bends(root @ at[:m] + at[m]) * (root @ along[:m] + along[m])
        top = root.T @ slopes + along[:m]
        both = np.vstack([top, slopes.sum(axis=0) + _FREE * along[m]])
        return np.asarray((scale * both).ravel())

    options = {"gtol": _FLAT * len(root)}
    done = minimize(objective, begin, jac=True, hessp=product, method="trust-ncg", options=options)
    return np.asarray(scale * done.x.reshape(m + 1, -1))
