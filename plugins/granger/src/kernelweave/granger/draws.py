"""Fits by chance: the weights that histories get which have nothing to do with the target."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import memory
from kernelweave.kernels_core.arrays import Index, Matrix, RealArray
from kernelweave.vv_rkhs import PrecomputedFamily

from .pairs import pair_features
from .reduced_grams import reduction
from .shared_grams import LOST, MovedGrams, SharedGrams
from .significance import moved_orders
from .target import TargetSettings, fit_target, of_kernels
from .together import fit_together, goes_together, precision

# kernels by place, with the two histories that they multiply
Mixed = dict[int, tuple[Matrix, Matrix]]
# draws: the next ones start at what they found in the mean, the first ones from afar
_FIRST, _AT_ONCE = 4, 32


def null_weights(
    grams: RealArray,
    Y: Matrix,
    seen: Index,
    stays: npt.NDArray[np.bool_],
    share: Matrix,
    lam: float,
    task: TargetSettings,
    replicate: Index,
    seeds: npt.NDArray[np.integer],
    mixed: Mixed | None = None,
) -> Matrix:
    """Return the weights that histories of other groups get by chance, from refits.

    Per draw the histories of all other groups move together, see `rearranged`: they keep their
    autocorrelation and their dependence on one another and lose that on the target, whose own
    history stays, and so do exogenous ones. Single samples drawn anew would compare slow series
    with white noise, which earns less weight. Moved is what is least: target, own history and
    exogenous ones, the other way.

    - `grams` of shape (n_kernels, n_samples, n_samples): kernels of all histories
    - `Y` of shape (n_samples, n_outputs): targets
    - `seen`: kernels of the model
    - `stays` of shape (n_kernels,): which kernels see the target's own history or an exogenous one
    - `share` of shape (n_kernels, n_units): whose each kernel is: a group's, or of one of its lags
    - `lam`: λ
    - `task`: the problem
    - `replicate` of shape (n_samples,): replicate of each sample
    - `seeds` of shape (n_draws,): one per draw
    - `mixed`: pairs of the target's own history with one that moves

    Returns shape (n_draws, n_units), or fewer rows, see `most_draws`: NaN for units that the model
    does not see or that stay.
    """
    mixed = {} if mixed is None else mixed
    places = {int(j): place for place, j in enumerate(seen)}
    mixed = {places[j]: both for j, both in mixed.items() if j in places}
    grams, share, stays = of_kernels(grams, seen), share[seen], stays[seen]
    still, tested = np.flatnonzero(stays), (share[~stays] == 1.0).any(axis=0)
    moved = _moved_together if goes_together(task.penalty, Y.shape[1]) else _moved_one_by_one
    # a few replicates have so few orders that draws at random repeat them
    orders, which = np.unique(list(moved_orders(replicate, seeds)), axis=0, return_inverse=True)
    weights = moved(grams, Y, still, mixed, lam, task, orders)[which.ravel()]
    out = np.full((len(weights), share.shape[1]), np.nan)
    out[:, tested] = (weights @ share)[:, tested]
    return out


def _moved_together(
    grams: RealArray,
    Y: Matrix,
    still: Index,
    mixed: Mixed,
    lam: float,
    task: TargetSettings,
    orders: npt.NDArray[np.intp],
) -> Matrix:
    """Return the weights of the fits in these orders, shape (n_draws, n_kernels)."""
    problems = _Problems(grams, Y, still, mixed, lam, task)
    weights = np.zeros((len(orders), len(grams)))
    start = None
    for first in (0, *range(_FIRST, len(orders), _AT_ONCE)):
        some = slice(first, first + _AT_ONCE if first else _FIRST)
        moved, targets, ridge = problems.of_draws(np.argsort(orders[some], axis=1))
        found = fit_together(
            *(moved, targets, np.full(len(targets), ridge), task.penalty),
            start if start is None else np.tile(start, (len(targets), 1)),
            tol=task.tol,
            max_iter=task.max_iter,
        )
        weights[some] = found.weights
        # by chance most weights are small, the same ones large
        start = weights[: first + len(targets)].mean(axis=0)
    return weights


class _Problems:
    """The problems of some draws, in few coordinates where there are few."""

    def __init__(
        self,
        grams: RealArray,
        Y: Matrix,
        still: Index,
        mixed: Mixed,
        lam: float,
        task: TargetSettings,
    ) -> None:
        self.dtype = precision(np.array([lam]), task)
        widths = sum(own.shape[1] * other.shape[1] for own, other in mixed.values())
        memory.require(
            (grams.size + _AT_ONCE * len(Y) * widths) * grams.itemsize,
            f"a copy of {len(grams)} Gram matrices of {len(Y)} samples, and pairs of {_AT_ONCE} "
            "draws",
            alternative="give fewer kernels or lags, or raise memory_limit",
        )
        self.values, self.lam = (Y - Y.mean(axis=0))[:, 0], lam
        self.mixed, self.places = mixed, np.array(list(mixed), dtype=np.intp)
        error = LOST * task.tol * lam * len(Y)
        self.reduced = reduction(grams, still, self.places, widths, error) if error > 0.0 else None
        self.still, self.grams = still, grams
        if self.reduced is not None:
            shared = self.reduced.basis.shape[1]
            own = self.reduced.moving.shape[1] + widths + 1
            memory.require(
                8 * _AT_ONCE * own * (2 * len(Y) + shared + 2 * (shared + own)),
                f"{_AT_ONCE} draws in {shared + own} coordinates of {len(Y)} samples",
                alternative="give fewer kernels or lags, or raise memory_limit",
            )
        else:
            self.grams = np.ascontiguousarray(grams, dtype=self.dtype)

    def of_draws(self, back: Index) -> tuple[SharedGrams, Matrix, float]:
        """Return Gram matrices, targets and the λ that goes with their number of coordinates.

        `back` of shape (n_draws, n_samples): sample of the matrices at each place.
        """
        features = [
            [pair_features(own[order], other) for own, other in self.mixed.values()]
            for order in back
        ]
        targets = self.values[back]
        if self.reduced is not None:
            moved, targets = self.reduced.of_draws(back, features, targets, self.dtype)
            return moved, targets, self.lam * len(self.values) / moved.n_samples
        as_used = [[Z.astype(self.dtype) for Z in each] for each in features]
        whole = MovedGrams(self.grams, self.still, back, self.places, as_used)
        return whole, targets, self.lam


def _moved_one_by_one(
    grams: RealArray,
    Y: Matrix,
    still: Index,
    mixed: Mixed,
    lam: float,
    task: TargetSettings,
    orders: npt.NDArray[np.intp],
) -> Matrix:
    """Return the same for the nodes of a group."""
    memory.require(
        grams.nbytes,
        f"a copy of {len(grams)} Gram matrices of {len(Y)} samples, whose histories move",
        alternative="give fewer kernels or lags, or raise memory_limit",
    )
    moved, start = np.array(grams), None
    family = PrecomputedFamily(moved, check=False)  # other orders have the same norms
    weights = np.zeros((len(orders), len(grams)))
    for draw, order in enumerate(orders):
        back = np.argsort(order)
        moved[still] = grams[still][:, back[:, None], back]
        for j, (own, other) in mixed.items():
            Z = pair_features(own[back], other)
            moved[j] = Z @ Z.T
        found = fit_target(family, np.ascontiguousarray(Y[back]), lam, task, start=start)
        weights[draw] = start = found.weights
    return weights
