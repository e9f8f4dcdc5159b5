"""P of a tessellated kernel learned by the evidence, along a path of prior strengths.

K = w Σ PₐᵦGₐᵦ with tr P = n_P and S = K + σ²I. Minimised over w, σ² and P ≻ 0:

    ½ yᵀS⁻¹y + ½ log det S + ½λ (n_P log(tr P / n_P) − log det P) + .01 (log w)²

The prior is zero at multiples of the identity alone, so that λ → ∞ is P = I. The problem is not
convex and its end is a stationary point; nothing is proved about it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from kernelweave.kernels_core.families import TessellatedFamily
from scipy.linalg import cho_solve, cholesky
from scipy.optimize import minimize

STRENGTHS = (math.inf, 50.0, 5.0, 0.5, 0.05)
_STEPS = 40
_WEIGHTS, _NOISES = (-14.0, 7.0), (-11.0, 3.0)


class Units(NamedTuple):
    """The Gram matrices of the symmetric units of P and their places in it.

    `lower` of shape (units, m(m + 1)/2): rows of the lower triangles.
    """

    lower: FloatArray
    rows: Index
    columns: Index

    @property
    def side(self) -> int:
        """n_P."""
        return int(self.columns[-1]) + 1

    @property
    def n_samples(self) -> int:
        """M."""
        return math.isqrt(2 * self.lower.shape[1])

    @property
    def places(self) -> tuple[Index, Index]:
        """Where the entries of a triangle stand."""
        return np.tril_indices(self.n_samples)

    def of(self, samples: Index) -> Units:
        """Return the units on some of the samples, in ascending order."""
        inside = np.isin(np.arange(self.n_samples), samples)
        i, j = self.places
        return self._replace(lower=self.lower[:, inside[i] & inside[j]])

    def gram(self, P: FloatArray) -> FloatArray:
        """Return Σ PₐᵦGₐᵦ."""
        m = self.n_samples
        K = np.zeros((m, m))
        K[self.places] = P[self.rows, self.columns] @ self.lower
        return np.asarray(K + np.tril(K, -1).T)

    def moment(self, G: FloatArray) -> FloatArray:
        """Return the derivative of ⟨G, K(P)⟩ by P, for a symmetric G."""
        twice = 2.0 * np.tril(G)
        twice[np.diag_indices(len(G))] *= 0.5
        D = np.zeros((self.side, self.side))
        # a unit off the diagonal stands for two entries of P
        D[self.rows, self.columns] = 0.5 * (self.lower @ twice[self.places])
        return D + D.T


class PriorPoint(NamedTuple):
    """A point of the path: log w, log σ² and the logarithmic factor of P."""

    log_weight: float
    log_noise: float
    factor: FloatArray

    @property
    def P(self) -> FloatArray:
        """P, of trace n_P."""
        product = self.factor @ self.factor.T
        return np.asarray(product * (len(product) / np.trace(product)))


def units_of(family: TessellatedFamily, X: FloatArray) -> Units:
    """Return the Gram matrix of each symmetric unit of P: n_P(n_P + 1)/2 of them."""
    rows, columns = np.triu_indices(family.n_P)
    places = np.tril_indices(len(X))
    lower = np.empty((len(rows), len(places[0])))
    for gram, i, j in zip(lower, rows, columns, strict=True):
        unit = np.zeros((family.n_P, family.n_P))
        unit[i, j] = unit[j, i] = 1.0
        gram[:] = family.gram(X, unit)[places]
    return Units(lower, rows, columns)


def learn_path(units: Units, y: FloatArray) -> list[PriorPoint]:
    """Return the kernel of each strength, each started at the one before."""
    n = units.side
    mean_diagonal = float(np.trace(units.gram(np.eye(n)))) / len(y)
    found = [PriorPoint(-math.log(mean_diagonal), math.log(0.1), np.eye(n))]
    for strength in STRENGTHS:
        found.append(_descend(units, y, strength, found[-1]))
    return found[1:]


def _descend(units: Units, y: FloatArray, strength: float, start: PriorPoint) -> PriorPoint:
    lower, diagonal = np.tril_indices(units.side), np.diag_indices(units.side)
    free = math.isfinite(strength)

    def unpack(values: FloatArray) -> PriorPoint:
        factor = np.zeros((units.side, units.side)) if free else np.array(start.factor)
        if free:
            factor[lower] = values[2:]
            factor[diagonal] = np.exp(factor[diagonal])
        return PriorPoint(float(values[0]), float(values[1]), factor)

    def value(values: FloatArray) -> tuple[float, FloatArray]:
        kernel = unpack(values)
        found, (of_weight, of_noise, of_factor) = objective(kernel, units, y, strength)
        of_factor[diagonal] *= kernel.factor[diagonal]
        return found, np.array([of_weight, of_noise, *(of_factor[lower] if free else ())])

    logs = np.array(start.factor)
    logs[diagonal] = np.log(logs[diagonal])
    first = np.array([start.log_weight, start.log_noise, *(logs[lower] if free else ())])
    bounds = [_WEIGHTS, _NOISES, *[(None, None)] * (len(first) - 2)]
    found = minimize(
        value, first, method="L-BFGS-B", jac=True, bounds=bounds,
        options={"maxiter": _STEPS, "maxfun": 2 * _STEPS},
    )  # fmt: skip
    return unpack(found.x)


def objective(
    kernel: PriorPoint, units: Units, y: FloatArray, strength: float
) -> tuple[float, tuple[float, float, FloatArray]]:
    """Return the objective, and its derivatives by log w, log σ² and the lower factor of P."""
    n, P = units.side, kernel.P
    weight, noise = math.exp(kernel.log_weight), math.exp(kernel.log_noise)
    K = weight * units.gram(P)
    lower = cholesky(K + noise * np.eye(len(y)), lower=True)
    inverse = cho_solve((lower, True), np.eye(len(y)))
    a = inverse @ y
    G = 0.5 * (inverse - np.outer(a, a))
    value = 0.5 * float(y @ a) + float(np.log(np.diagonal(lower)).sum())
    value += 0.01 * kernel.log_weight**2
    D = weight * units.moment(G)
    L = kernel.factor
    scale = float(np.vdot(L, L)) / n
    of_product = (D - np.eye(n) * (np.vdot(D, P) / n)) / scale
    if math.isfinite(strength):
        diagonal = np.diagonal(L)
        value += 0.5 * strength * (n * math.log(scale) - 2.0 * float(np.log(diagonal).sum()))
        of_product += 0.5 * strength / scale * np.eye(n)
    of_factor = np.tril(2.0 * of_product @ L)
    if math.isfinite(strength):
        of_factor[np.diag_indices(n)] -= strength / diagonal
    of_weight = float(np.vdot(G, K)) + 0.02 * kernel.log_weight
    return value, (of_weight, noise * float(np.trace(G)), of_factor)


def weights_of(errors: FloatArray) -> FloatArray:
    """Return how much each strength counts, by its squared error on held-out rows."""
    counts = np.exp(-20.0 * (errors / errors.min() - 1.0))
    return np.asarray(counts / counts.sum())
