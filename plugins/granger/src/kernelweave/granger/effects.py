"""What an edge does: the curve of its effect, the lag where it is strongest, its sign."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.kernels import FittedDictionary

from .series import Groups
from .target import TargetFit

Vector = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]
LEVELS = np.linspace(0.02, 0.98, 33)
_ONE_WAY = 0.5  # correlation of a curve with its argument from which it has a sign


@dataclass(frozen=True, eq=False)
class Effects:
    """How the prediction of each target moves with each lag of each source, all else at its mean.

    A model is a sum over sources, so that a curve holds wherever the other sources are; other lags
    of the same source stay at their means. The nodes of a source group move together.

    Attributes
    ----------
    values : ndarray of shape (n_groups, n_points)
        Where each source goes: quantiles of its node, in the units of the data; for a group of
        several nodes, levels of the quantiles.
    curves : ndarray of shape (n_groups, n_groups, lags, n_points)
        ``curves[i, j, k]``: what j adds to the prediction of i, k + 1 steps later, in units of the
        data; the mean over a target's nodes.
    """

    values: npt.NDArray[np.float64]
    curves: npt.NDArray[np.float64]

    def strength(self) -> npt.NDArray[np.float64]:
        """Return the standard deviation along each curve, shape (n_groups, n_groups, lags)."""
        deviation: npt.NDArray[np.float64] = self.curves.std(axis=3)
        return deviation

    def lag(self) -> Index:
        """Return the lag of the strongest curve of each edge, shape (n_groups, n_groups)."""
        strongest: Index = 1 + self.strength().argmax(axis=2)
        return strongest

    def strongest(self, target: int, source: int) -> Vector:
        """Return the strongest curve of an edge, shape (n_points,)."""
        curve: Vector = self.curves[target, source, self.lag()[target, source] - 1]
        return curve

    def sign(self, target: int, source: int) -> str:
        """Return "+" where the target rises with the source, "-" where it falls, else "±"."""
        curve = self.strongest(target, source)
        if curve.std() == 0.0:
            return ""
        slope = float(np.corrcoef(LEVELS, curve)[0, 1])
        return "±" if abs(slope) < _ONE_WAY else "+" if slope > 0.0 else "-"


def find_effects(
    scaled: npt.NDArray[np.float64],
    units: tuple[Vector, Vector],
    lags: int,
    groups: Groups,
    dictionary: FittedDictionary,
    owner: Index,
    fits: list[TargetFit],
) -> Effects:
    """Return the curves of all edges, lag by lag.

    Parameters
    ----------
    scaled : ndarray of shape (n_times, n_nodes)
        The series, standardised.
    units : tuple of ndarray
        Mean and scale of each node.
    lags : int
        Length of a history.
    groups : Groups
        Groups of nodes.
    dictionary : FittedDictionary
        Kernels of all histories.
    owner : ndarray of int of shape (n_kernels,)
        Group of each kernel.
    fits : list of TargetFit
        One per group.

    Returns
    -------
    Effects
        On 33 quantiles.
    """
    mean, scale = units
    quantiles = np.quantile(scaled, LEVELS, axis=0)
    n = len(groups)
    curves = np.zeros((n, n, lags, len(LEVELS)))
    for k in range(lags):
        points = np.zeros((len(LEVELS), scaled.shape[1], lags))
        points[:, :, k] = quantiles
        cross = dictionary.cross(points.reshape(len(LEVELS), -1))
        for i, (fit, nodes) in enumerate(zip(fits, groups.members, strict=True)):
            coef = (fit.coef * scale[nodes]).mean(axis=1)
            _add_curves(curves[i, :, k], fit.weights, owner, cross, coef)
    values = [
        quantiles[:, nodes[0]] * scale[nodes[0]] + mean[nodes[0]] if len(nodes) == 1 else LEVELS
        for nodes in groups.members
    ]
    return Effects(np.array(values), curves)


def _add_curves(
    curves: npt.NDArray[np.float64],
    weights: Vector,
    owner: Index,
    cross: npt.NDArray[Any],
    coef: Vector,
) -> None:
    """Add what each kernel says to the curve of its owner, shape (n_groups, n_points)."""
    for s in np.flatnonzero(weights):
        curves[owner[s]] += weights[s] * (cross[s] @ coef)
