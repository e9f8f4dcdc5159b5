"""The predictor: one kernel, a weighted sum over the path, and one factorisation.

What explains it sees a predictor as a sum of kernel values, whatever it was fitted by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, lapack, solve_triangular

from .cross import CrossKernel, cross_kernel, gram_of, own_kernel
from .inverse import Inverse
from .rows import Rows, Standardised
from .terms import JITTER, Scales, blocks

if TYPE_CHECKING:
    from .large.levels import GroupLevels
    from .views import Points, Views

# A fit of less weight hardly moves a prediction, which costs as much for it as for any other.
_NEGLIGIBLE = 5e-3


def path_weights(errors: FloatArray, last: float = 0.0) -> FloatArray:
    """Return convex weights ∝ exp(−20 (MSE/min MSE − 1)); those below 0.005 are dropped.

    `errors` of shape (n_fits,): held-out mean squared errors; `last`: a share that goes to the last
    fit beforehand.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.evidence.mixture import path_weights
    >>> path_weights(np.array([1.0, 1.0, 2.0]))
    array([0.5, 0.5, 0. ])
    """
    least = max(float(errors.min()), np.finfo(np.float64).tiny)
    weights = np.exp(-20.0 * (errors / least - 1.0))
    weights /= weights.sum()
    weights[weights < _NEGLIGIBLE] = 0.0
    weights *= (1.0 - last) / weights.sum()
    weights[-1] += last
    return np.asarray(weights)


@dataclass(frozen=True)
class Mixture:
    """K = Σ c K(scales), σ² = Σ c σ², on the training points.

    - `points`: the training rows
    - `scales`: their ``weights`` and ``noise`` hold the path's weights already
    - `diagonal` of shape (n_points,): σ²/w, what S has beyond K
    - `outlier_variance` of shape (n_points,): how much of this outliers have beyond the others
    - `dual` of shape (n_points, n_outputs): S⁻¹ times the standardised targets
    - `target`: the way back to the units of the targets
    - `width`, of each output or of all: deviation of a target around its prediction, by leaving one
      row out: of a warped target it decides the mean
    """

    views: Views
    points: Points
    scales: tuple[Scales, ...]
    diagonal: FloatArray
    outlier_variance: FloatArray
    dual: FloatArray
    target: Standardised
    width: FloatArray | float

    @cached_property
    def factor(self) -> FloatArray:
        """Lower Cholesky factor of S = K + diag(σ²/w), shape (n_points, n_points).

        It is most of the memory of a model and follows from the rest: no copy or file has it.
        """
        return _factor(self.views, self.points, self.scales, self.diagonal)

    @cached_property
    def inverse(self) -> Inverse:
        """S⁻¹, of which what was asked for last is kept until it is released."""
        return Inverse(self.factor)

    @cached_property
    def slim(self) -> Mixture:
        """The same function of the numbers that have a scale: of a wide table, few of thousands."""
        views, scales, p = self.views, self.scales, len(self.views.knots)
        used = np.any([(each.ell > 0.0) | (each.strength > 0.0) for each in scales], axis=0)
        numbers = np.flatnonzero(used[:p])
        if not 0 < 2 * len(numbers) < p or views.fills or views.group_terms:
            return self
        kept = np.concatenate([numbers, np.arange(p, len(used))])
        some = tuple(
            replace(each, ell=each.ell[kept], strength=each.strength[kept]) for each in scales
        )
        slim = replace(
            self, views=views.among(numbers), points=self.points.among(kept), scales=some
        )
        if "factor" in vars(self):
            vars(slim)["factor"] = self.factor
        return slim

    def release(self, *, factor: bool = False) -> None:
        """Give up what is kept of the inverse, and of the factor: memory for time to come."""
        vars(self).pop("inverse", None)
        vars(self).pop("slim", None)
        if factor:
            vars(self).pop("factor", None)

    def __getstate__(self) -> dict[str, object]:
        derived = ("factor", "inverse", "slim", "_cross")
        return {k: value for k, value in vars(self).items() if k not in derived}

    @cached_property
    def _cross(self) -> CrossKernel:
        return CrossKernel(self.points, self.scales, self.views.match_weight)

    @property
    def noise(self) -> float:
        """σ², in units of the targets' variance."""
        return sum(each.noise for each in self.scales)

    @property
    def nugget(self) -> float:
        """What S has on its diagonal for a row of weight 1: rows left out have it too."""
        return self.noise + JITTER

    def kernel(self, left: Points, rows: slice = slice(None)) -> FloatArray:
        """Return the kernel between some rows of other points and the training rows."""
        return np.asarray(self._cross(left, rows), dtype=np.float64)

    def predict(self, points: Points) -> FloatArray:
        """Return predictions in the units of the targets, shape (n, n_outputs)."""
        return self.target.predict(self.latent(points), self.width)

    def latent(self, points: Points) -> FloatArray:
        """Return standardised predictions, shape (n, n_outputs)."""
        out = np.empty((points.n_points, self.dual.shape[1]))
        for rows in blocks(points.n_points, self.points.n_points):
            out[rows] = self.kernel(points, rows) @ self.dual
        return out

    def variance(self, points: Points) -> FloatArray:
        """Return the posterior variance of the function, standardised, shape (n,)."""
        prior = sum(own_kernel(points, each, self.views.match_weight) for each in self.scales)
        out = np.array(prior, dtype=np.float64)
        for rows in blocks(points.n_points, self.points.n_points):
            out[rows] -= explained_by(self.factor, self.kernel(points, rows))
        return np.maximum(out, 0.0)

    def posterior(self, points: Points) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the kernel with the training rows, `latent` and `variance`."""
        K = self.kernel(points)
        prior = sum(own_kernel(points, each, self.views.match_weight) for each in self.scales)
        return K, K @ self.dual, np.maximum(prior - explained_by(self.factor, K), 0.0)


def weighted(scales: Sequence[Scales], weights: FloatArray) -> tuple[Scales, ...]:
    """Return the scales of Σ c K with c inside their weights; those of c = 0 are left out."""
    return tuple(
        replace(each, weights=c * each.weights, noise=float(c * each.noise))
        for each, c in zip(scales, weights, strict=True)
        if c > 0
    )


def fit_mixture(
    views: Views,
    rows: Rows,
    scales: tuple[Scales, ...],
    targets: Standardised | None = None,
    points: Points | None = None,
    gram: FloatArray | None = None,
) -> Mixture:
    """Factor S once and solve for all outputs, standardised by the rows or as other rows are.

    `points`: the rows as the views see them, and `gram`: the lower triangle of their kernel, where
    these are known.
    """
    points = views.points(rows.numeric, rows.codes) if points is None else points
    targets = Standardised.of(rows) if targets is None else targets.of_rows(rows)
    noise = sum(each.noise for each in scales)
    outlier_variance = noise * (1.0 / rows.precision - 1.0 / rows.mass)
    diagonal = noise * (1.0 / rows.mass) + JITTER + outlier_variance
    factor = _factor(views, points, scales, diagonal, gram)
    dual = cho_solve((factor, True), targets.values.T, check_finite=False)
    width = left_out_width(factor, rows.mass, outlier_variance) if targets.warps else 0.0
    mixture = Mixture(views, points, scales, diagonal, outlier_variance, dual, targets, width)
    vars(mixture)["factor"] = factor
    return mixture


def _factor(
    views: Views,
    points: Points,
    scales: tuple[Scales, ...],
    diagonal: FloatArray,
    gram: FloatArray | None = None,
) -> FloatArray:
    """Return the lower Cholesky factor of the kernel of all points plus a diagonal."""
    S = gram_of(points, scales, views.match_weight, whole=False) if gram is None else gram.copy()
    S[np.diag_indices_from(S)] += diagonal
    return np.asarray(cho_factor(S, lower=True, overwrite_a=True, check_finite=False)[0])


def left_out_width(factor: FloatArray, mass: FloatArray, outlier_variance: FloatArray) -> float:
    """Return the root mean of 1/(S⁻¹)ᵢᵢ less `outlier_variance`: of rows given all others."""
    inverse, _ = lapack.dpotri(factor.copy(order="F"), lower=1, overwrite_c=1)
    variances = 1.0 / inverse.diagonal() - outlier_variance
    return float(np.sqrt(mass @ variances / mass.sum()))


def explained_by(factor: FloatArray, functionals: FloatArray) -> FloatArray:
    """Return what the variances of linear functionals lose by training rows, shape (n,).

    `factor`: the lower Cholesky factor of their S; `functionals` of shape (n, n_points).
    """
    half = solve_triangular(factor, functionals.T, lower=True, check_finite=False)
    return np.asarray(np.einsum("ij,ij->j", half, half))


@dataclass(frozen=True)
class Expansion:
    """f(x) = Σ a k(x, point), standardised, and what its posterior variance takes from the prior's.

    - `points`: training rows or landmarks
    - `scales`: of the kernel, a weighted sum
    - `dual` of shape (n_points, n_outputs): a, for standardised targets
    - `target`: the way to the units of the targets
    - `width`: deviation of a warped target around its prediction
    - `explained`: from values of a linear functional on the kernel functions of the points, shape
      (n, n_points), to what the variance of the functional loses by the training rows, (n,)
    - `inflation` of shape (n_outputs,): what the posterior variance is multiplied by
    - `levels`: what groups have beside f, ``None`` where that is nothing
    """

    views: Views
    points: Points
    scales: Sequence[Scales]
    dual: FloatArray
    target: Standardised
    width: FloatArray | float
    explained: Callable[[FloatArray], FloatArray]
    inflation: FloatArray
    levels: GroupLevels | None = None

    def points_of(self, numeric: FloatArray, codes: NDArray[np.int64]) -> Points:
        """Return rows as the kernel sees them."""
        return self.views.points(numeric, codes)

    def kernel(self, left: Points, right: Points | None = None) -> FloatArray:
        """Return the kernel between points, by default with those of the expansion."""
        right = self.points if right is None else right
        return cross_kernel(left, right, self.scales, self.views.match_weight)

    def level(self, left: Points) -> FloatArray:
        """Return what groups have beside f, standardised, shape (n, n_outputs)."""
        if self.levels is None:
            return np.zeros((left.n_points, self.dual.shape[1]))
        return self.levels.at(left.G[0])

    def level_variance(self, left: Points) -> FloatArray:
        """Return the variance of that, shape (n,)."""
        return np.zeros(left.n_points) if self.levels is None else self.levels.variance(left.G[0])

    def restore(self, latent: FloatArray) -> FloatArray:
        """Return predictions of the targets from standardised ones, shape (n, n_outputs)."""
        return self.target.predict(latent, self.width)
