"""What an edge does: the curve of its effect, the lag where it is strongest, its sign."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import Index, Vector
from kernelweave.kernels_core.kernels import FittedDictionary

from .series import Groups
from .target import TargetFit

LEVELS = np.linspace(0.02, 0.98, 33)
_ONE_WAY = 0.5  # correlation of a curve with its argument from which it has a sign


@dataclass(frozen=True, eq=False)
class Effects:
    """How the prediction of each target moves with each lag of each source, all else at its mean.

    But for pairs, a model is a sum over sources, so that a curve holds wherever the other sources
    are; what pairs add is left out. Other lags of the same source stay at their means. The nodes of
    a source group move together.

    Attributes
    ----------
    values : ndarray of shape (n_groups, n_points)
        Where each source goes: quantiles of its node, in the units of the data; for a group of
        several nodes, levels of the quantiles.
    curves : ndarray of shape (n_groups, n_groups, n_lags, n_points)
        ``curves[i, j, k]``: what j adds to the prediction of i, ``lags[k]`` steps later, in units
        of the data; the mean over a target's nodes.
    lags : tuple of int
        Of a history.
    """

    values: npt.NDArray[np.float64]
    curves: npt.NDArray[np.float64]
    lags: tuple[int, ...]

    def strength(self) -> npt.NDArray[np.float64]:
        """Return the standard deviation along each curve, shape (n_groups, n_groups, n_lags)."""
        deviation: npt.NDArray[np.float64] = self.curves.std(axis=3)
        return deviation

    def lag(self) -> Index:
        """Return the place of the strongest curve of each edge in ``lags``."""
        strongest: Index = self.strength().argmax(axis=2)
        return strongest

    def sign(self, target: int, source: int, lag: int) -> str:
        """Return "+" where the target rises with the source, "-" where it falls, else "±"."""
        curve = self.curves[target, source, lag]
        if curve.std() == 0.0:
            return ""
        slope = float(np.corrcoef(LEVELS, curve)[0, 1])
        return "±" if abs(slope) < _ONE_WAY else "+" if slope > 0.0 else "-"


def find_effects(
    scaled: npt.NDArray[np.float64],
    units: tuple[Vector, Vector],
    lags: tuple[int, ...],
    groups: Groups,
    dictionary: FittedDictionary,
    owner: Index,
    fits: dict[int, TargetFit],
) -> Effects:
    """Return the curves of all edges, lag by lag.

    - `scaled` of shape (n_times, n_columns): the series, standardised; NaN where there are gaps
    - `units`: mean and scale of each column
    - `lags`: of a history
    - `groups`: the nodes of the graph
    - `dictionary`: kernels of all histories
    - `owner` of shape (n_kernels,): source of each kernel, nodes first
    - `fits`: by node, where it has a model
    """
    mean, scale = units
    quantiles = np.nanquantile(scaled, LEVELS, axis=0)
    n = len(groups)
    curves = np.zeros((n, n, len(lags), len(LEVELS)))
    for k in range(len(lags)):
        points = np.zeros((len(LEVELS), scaled.shape[1], len(lags)))
        points[:, :, k] = quantiles
        cross = dictionary.cross(points.reshape(len(LEVELS), -1))
        for i, fit in fits.items():
            coef = (fit.coef * scale[groups.members[i]]).mean(axis=1)
            for s in np.flatnonzero((fit.weights != 0.0) & (owner < n)):
                curves[i, owner[s], k] += fit.weights[s] * (cross[s] @ coef)
    values = [
        quantiles[:, nodes[0]] * scale[nodes[0]] + mean[nodes[0]] if len(nodes) == 1 else LEVELS
        for nodes in groups.members
    ]
    return Effects(np.array(values), curves, lags)
