"""One target group: weights of all histories, what each does, and how its nodes go together.

Throughout this package `grams` of shape (n_kernels, n_samples, n_samples) are the kernels of all
histories, `Y` of shape (n_samples, n_outputs) the values that follow, `seen` the kernels that a
model may use, `unit` of shape (n_kernels,) whose history each kernel sees, `share` of shape
(n_kernels, n_units) to whom the weight of each belongs, and `task` what one problem is made of.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import Problem, Result, Status, memory, solve
from kernelweave.kernels_core.arrays import Index, Matrix, RealArray, Vector
from kernelweave.kernels_core.exceptions import Message, convergence_warning, warn
from kernelweave.kernels_core.kernels import FittedDictionary
from kernelweave.vv_rkhs import PrecomputedFamily, SeparableKernels, VectorLeastSquares
from kernelweave.vv_rkhs.penalties import Penalty

from .series import Groups

# a search that starts from a similar fit gives each kernel at least this share of its usual start
_SHARE = 0.02

LEVELS = np.linspace(0.02, 0.98, 33)
_ONE_WAY = 0.5  # correlation of a curve with its argument from which it has a sign


@dataclass(frozen=True, eq=False)
class TargetSettings:
    """What one target's problem is made of, besides its data.

    - `penalty`: regulariser over kernels
    - `learn_output`: whether L is learned; without effect for one node
    - `tol`: relative gap; stationarity where both are learned
    - `max_iter`: steps at most
    """

    penalty: Any
    learn_output: bool
    tol: float
    max_iter: int


@dataclass(frozen=True, eq=False)
class TargetFit:
    """The fitted model of one target group.

    - `weights` of shape (n_kernels,): η
    - `output_kernel` of shape (n_outputs, n_outputs): L
    - `coef` of shape (n_samples, n_outputs): C L
    - `mean` of shape (n_outputs,): what was taken off the targets
    - `result`: bounds and status
    """

    weights: Vector
    output_kernel: Matrix
    coef: Matrix
    mean: Vector
    result: Result

    def predict(self, cross: RealArray) -> Matrix:
        """Return predictions from cross-Gram matrices of shape (n_kernels, n_new, n_samples)."""
        values = np.tile(self.mean, (cross.shape[1], 1))
        for weight, K in zip(self.weights, cross, strict=True):
            if weight != 0.0:
                values += weight * (K @ self.coef)
        return values


@dataclass(frozen=True, eq=False)
class _Near:
    """A penalty that has the search start at given weights, or at a share of its own start."""

    penalty: Penalty
    weights: Vector
    share: float

    def start(self, n_kernels: int) -> Vector:
        """Return the weights to start at, shape (n_kernels,)."""
        return np.maximum(self.weights, self.share * self.penalty.start(n_kernels))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.penalty, name)


def fit_target(
    grams: RealArray | PrecomputedFamily,
    Y: Matrix,
    lam: float,
    task: TargetSettings,
    seen: Index | None = None,
    start: Vector | None = None,
    *,
    exact: bool = False,
) -> TargetFit:
    """Fit x_t = f(histories) for the nodes of one group.

    min over f, η, L of (1/n) Σ ‖f(hᵢ) − yᵢ‖² + λ Σ ‖fⱼ‖²/ηⱼ + λω(η), fⱼ in the space of kⱼ L (V,
    section 4.1): convex and certified for one node, stationary for several with L learned.

    `grams` may be the family of the kernels that are seen, for a series of fits. `start`: weights
    of a fit like this one, which the search starts near; if `exact`, those of this very fit, which
    is left to be proved: what is 0 there stays 0 unless the proof needs more.
    """
    n_all = 0
    if isinstance(grams, PrecomputedFamily):
        family, seen = grams, None
    else:
        family, n_all = PrecomputedFamily(of_kernels(grams, seen), check=False), len(grams)
    mean = Y.mean(axis=0)
    problem = Problem(
        family,
        VectorLeastSquares(lam),
        SeparableKernels(
            task.penalty if start is None else _Near(task.penalty, start, 0.0 if exact else _SHARE),
            learn_output=task.learn_output,
        ),
        np.arange(float(len(Y)))[:, None],
        (Y - mean).T,
    )
    with warnings.catch_warnings():
        # one sentence of the graph says it of all targets
        warnings.filterwarnings("ignore", f".*{re.escape(Status.STATIONARY.value)}")
        result = solve(
            problem, "vv-spg", tol=task.tol, max_iter=task.max_iter, stationarity_tol=task.tol
        )
    L = result.parameters.output_kernel
    weights = result.parameters.weights
    if seen is not None:
        weights = np.zeros(n_all)
        weights[seen] = result.parameters.weights
    return TargetFit(weights, L, result.solution.C @ L, mean, result)


def of_kernels(grams: RealArray, seen: Index | None) -> RealArray:
    """Return the Gram matrices of some kernels; a copy, within the limit, if some are left out."""
    if seen is None or len(seen) == len(grams):
        return grams
    memory.require(
        grams.nbytes + len(seen) * grams[0].nbytes,
        f"{len(grams)} Gram matrices of {grams.shape[1]} samples and a copy of {len(seen)} of them",
        alternative="forbid no links, give fewer kernels or lags, or raise {memory_limit}",
    )
    return grams[seen]


def warn_of_rest(results: dict[str, Result], tol: float) -> None:
    """Warn once of all targets, by name, that came to rest with a gap above tol."""
    open_ = {name: r.gap for name, r in results.items() if r.status is Status.STATIONARY}
    if open_:
        warn(
            Message(
                "the fits of {targets} came to rest with relative gaps of up to {gap:.2e} "
                "({tol}={asked:g}): the bounds in results_ hold, but learning weights and output "
                "kernel together has no proof of the optimum; learn_output=False has one",
                targets=", ".join(open_),
                gap=max(open_.values()),
                asked=tol,
            ),
            convergence_warning(),
        )


@dataclass(frozen=True, eq=False)
class Effects:
    """The prediction of each target as each lag of each source varies, all others at their means.

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

    def signs(self) -> npt.NDArray[np.str_]:
        """Return "+" where the target rises with the source, "-" where it falls, else "±".

        Shape (n_groups, n_groups, n_lags); empty where a curve is flat. All at once: a notebook
        that shows a fitted graph asks for its table of edges.
        """
        deviation, rise = self.strength(), LEVELS - LEVELS.mean()
        centred = self.curves - self.curves.mean(axis=3, keepdims=True)
        size = len(LEVELS) * rise.std() * np.where(deviation > 0.0, deviation, 1.0)
        slope = centred @ rise / size
        one_way = np.where(slope > 0.0, "+", "-")
        signs = np.where(np.abs(slope) < _ONE_WAY, "±", one_way)
        return np.where(deviation > 0.0, signs, "")


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

    `units`: mean and scale of each column; `owner`: source of each kernel, nodes first; `fits`: by
    node, where it has a model.
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
