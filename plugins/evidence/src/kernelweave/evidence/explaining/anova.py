"""The product term in closed form: which columns and pairs its variance comes from.

Π (1 + sκ)/(1 + s) is a sum over sets of columns, and κ has mean zero: the parts of a sum of such
kernels are orthogonal where columns are independent, and their variances add up. These are the
Sobol shares of orthogonal additive kernels (Lu, Boukouvalas and Hensman 2022).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from numpy.typing import NDArray

from ..columns import Dimension
from ..mixture import blocks, mixed_kernel
from ..rows import Rows
from ..terms import N_TERMS
from ..views import Points, Views
from .expansion import Expansion

TERMS = ("Gaussian", "Laplacian", "linear", "product", "wide Gaussian")


@dataclass(frozen=True)
class AnovaShares:
    """What the product term of a learned kernel says in closed form, and how much that is.

    Attributes
    ----------
    terms : dict of str to float
        Share of the variance of the posterior mean over training rows that each term of the
        kernel brings, its covariance with the whole; they add up to 1. ``terms["product"]`` says
        how much of the prediction the other attributes speak of.
    columns : dict of str to float
        Of the product term, the share of the variance that each dimension has alone.
    pairs : dict of (str, str) to float
        The share that two dimensions have together, beyond each alone.
    rest : float
        The share of three and more.

    Examples
    --------
    >>> from kernelweave.evidence import AnovaShares
    >>> shares = AnovaShares({"product": 1.0}, {"size": 0.7}, {("size", "age"): 0.2}, 0.1)
    >>> print(shares)
    the product term brings 100 % of the prediction's variance: size 70 %, size × age 20 %
    """

    terms: dict[str, float]
    columns: dict[str, float]
    pairs: dict[tuple[str, str], float]
    rest: float

    def __str__(self) -> str:
        named = {**self.columns, **{" × ".join(pair): each for pair, each in self.pairs.items()}}
        largest = sorted(named, key=lambda name: -named[name])[:5]
        said = ", ".join(f"{name} {named[name]:.0%}".replace("%", " %") for name in largest)
        share = f"{self.terms['product']:.0%}".replace("%", " %")
        return f"the product term brings {share} of the prediction's variance: {said}"


def anova_shares(
    expansion: Expansion, rows: Rows, dimensions: Sequence[Dimension], output: int
) -> AnovaShares:
    """Return the closed-form shares of one output.

    `rows`: over which the terms' shares are taken.
    """
    dual = expansion.dual[:, output]
    # of Σ a k over the points: the product's weight and 1/(1 + s) of each part
    rest = np.array([np.prod(1.0 / (1.0 + each.strength)) for each in expansion.scales])
    weights = np.array([each.weights[3] for each in expansion.scales]) * rest
    strengths = np.array([each.strength for each in expansion.scales])
    alone, together, total = _moments(expansion, dual, weights, strengths)
    total -= float((weights.sum() * dual.sum()) ** 2)
    main = (weights @ strengths) ** 2 * alone
    names = [each.name for each in dimensions]
    pairs = {}
    for i, j in combinations(range(len(names)), 2):
        scale = weights @ (strengths[:, i] * strengths[:, j])
        pairs[names[i], names[j]] = float(scale**2 * together[i, j])
    unit = total if total > 0.0 else 1.0
    columns = {name: float(each) / unit for name, each in zip(names, main, strict=True)}
    pairs = {pair: each / unit for pair, each in pairs.items()}
    left = 1.0 - sum(columns.values()) - sum(pairs.values()) if total > 0.0 else 0.0
    return AnovaShares(_term_shares(expansion, rows, output), columns, pairs, max(left, 0.0))


def centred_products(views: Views, points: Points, rows: slice) -> FloatArray:
    """Return E κ(·, t) κ(·, t') of every dimension, shape (n_dimensions, n_rows, n_points).

    Ranks are uniform, which gives Bernoulli polynomials; levels have their shares of the training
    rows.

    `rows`: which t.
    """
    p = len(points.U)
    out = np.empty((len(points.H), len(points.H[0, rows]), points.n_points))
    for i, u in enumerate(points.U):
        t, centre, cubic = np.abs(u[rows, None] - u), u - 0.5, u * (u - 0.5) * (u - 1.0)
        quartic = t**2 * (1.0 - t) ** 2 - 1.0 / 30.0
        crossed = np.outer(centre[rows], cubic)
        crossed += np.outer(cubic[rows], centre)
        out[i] = -1.5 * quartic - 6.0 * crossed + 3.0 * np.outer(centre[rows], centre)
    for j, (share, jump) in enumerate(zip(views.shares, views.jump[p:], strict=True)):
        known = np.append(share, 0.0)
        kappa = np.eye(len(known)) - known - known[:, None] + np.sum(share**2)
        table = jump**2 * (kappa * known) @ kappa
        code = np.minimum(points.C[j], len(share))
        out[p + j] = table[np.ix_(code[rows], code)]
    return out


def _moments(
    expansion: Expansion, dual: FloatArray, weights: FloatArray, strengths: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """Return aᵀΛᵢa, aᵀ(ΛᵢΛⱼ)a and the second moment of the whole term."""
    n = strengths.shape[1]
    alone, together, total = np.zeros(n), np.zeros((n, n)), 0.0
    for rows in blocks(expansion.points.n_points, n * expansion.points.n_points):
        moments = centred_products(expansion.views, expansion.points, rows)
        mass = np.outer(dual[rows], dual).ravel()
        flat = moments.reshape(n, -1)
        alone += flat @ mass
        together += (flat * mass) @ flat.T
        for w, s in zip(weights, strengths, strict=True):
            for w2, s2 in zip(weights, strengths, strict=True):
                product = np.prod(1.0 + (s * s2)[:, None] * flat, axis=0)
                total += float(w * w2 * (product @ mass))
    return alone, together, total


def _term_shares(expansion: Expansion, rows: Rows, output: int) -> dict[str, float]:
    """Return the covariance of each term with the prediction, in units of its variance."""
    points = expansion.seen(rows.numeric, rows.codes)
    values = np.empty((N_TERMS, len(rows)))
    for k in range(N_TERMS):
        mask = np.eye(N_TERMS)[k]
        scales = [replace(each, weights=mask * each.weights) for each in expansion.scales]
        K = mixed_kernel(points, expansion.points, scales, expansion.views.jump)
        values[k] = K @ expansion.dual[:, output]
    values -= values.mean(axis=1, keepdims=True)
    whole = values.sum(axis=0)
    power = float(whole @ whole)
    shares: NDArray[np.float64] = values @ whole / (power if power > 0.0 else 1.0)
    return dict(zip(TERMS, shares.tolist(), strict=True))
