"""Fits by chance: the weights that histories get which have nothing to do with the target."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import memory
from kernelweave.kernels_core.arrays import Index, Matrix, RealArray, Vector
from kernelweave.vv_rkhs import PrecomputedFamily

from .roles import pair_features
from .shared_grams import LOST, SharedKernels, combined, images, leading, moved
from .significance import moved_orders
from .target import TargetSettings, fit_target, of_kernels
from .together import fit_together, is_fitted_jointly, precision

# kernels by place, with the two histories that they multiply
Mixed = dict[int, tuple[Matrix, Matrix]]
# Draws, and the order that they are compared with, are fitted to this gap even where `tol` is
# looser: a fit that stops early stays near its start, and chance looks narrower than it is.
_TOL, _MAX_ITER = 1e-8, 500
# draws: all but the first few start at what these found in the mean
_FIRST, _AT_ONCE = 4, 32

_WORTH = 0.7  # of the samples: with more coordinates matrices as they are cost no more


@dataclass(frozen=True, eq=False)
class Reduction:
    """Kernels of a target in few coordinates, as long as nothing moves.

    Problems that see K only through (K_η + λl)⁻¹ and products with y are the same in orthonormal
    coordinates of all columns of K and y. Smooth kernels of one history have few functions to
    offer: four Gaussians of one number need some twenty, however many samples there are.

    - `rest`, `still`, `mixed`: kernels that are never reordered, that are, and that each draw
      computes anew
    - `basis` of shape (n_samples, n_shared), `grams` of shape (n_rest, n_shared, n_shared): of what
      does not move, see `leading`
    - `moving` of shape (n_samples, n_own), `inner` of shape (n_still, n_own, n_own): of what does
    """

    rest: Index
    still: Index
    mixed: Index
    basis: Matrix
    grams: RealArray
    moving: Matrix
    inner: RealArray

    def of_draws(
        self, back: Index, features: list[list[Matrix]], Y: Matrix, dtype: np.dtype[np.floating]
    ) -> tuple[SharedKernels, Matrix]:
        """Return kernels and targets of draws, in the coordinates of each.

        `back` of shape (n_draws, n_samples): sample of the matrices at each place; `features`: for
        each draw Z of each kernel that changes otherwise; `Y` of shape (n_draws, n_samples).
        """
        columns = [
            np.column_stack([self.moving[order], *Z, y])
            for order, Z, y in zip(back, features, Y, strict=True)
        ]
        B = np.stack(columns)
        inside = np.matmul(self.basis.T, B)
        # B = U P + E T, whatever orthonormal E; columns may be dependent, as those of impulses are
        outside = np.linalg.qr(B - np.matmul(self.basis, inside), mode="r")
        placed = np.concatenate([inside, outside], axis=1)
        ends = np.cumsum([self.moving.shape[1], *(Z.shape[1] for Z in features[0])])
        moving, *rest = np.split(placed, ends, axis=2)
        kernels = self._kernels(
            np.ascontiguousarray(moving, dtype=dtype),
            [np.ascontiguousarray(Z, dtype=dtype) for Z in rest[:-1]],
        )
        return kernels, np.ascontiguousarray(rest[-1][:, :, 0])

    def _kernels(self, moving: RealArray, features: list[RealArray]) -> SharedKernels:
        """Return the kernels of draws: W M Wᵀ for each W in ``moving``, Z Zᵀ for ``features``."""
        grams, inner = (each.astype(moving.dtype) for each in (self.grams, self.inner))
        n, n_kernels = grams.shape[1], len(self.rest) + len(self.still) + len(self.mixed)

        def combine(weights: Matrix, problems: Index) -> RealArray:
            W = moving[problems]
            K: RealArray = np.matmul(np.matmul(W, combined(inner, weights[:, self.still])), _t(W))
            K[:, :n, :n] += combined(grams, weights[:, self.rest])
            for j, Z in zip(self.mixed, features, strict=True):
                each = Z[problems] * np.sqrt(weights[:, j]).astype(K.dtype)[:, None, None]
                K += np.matmul(each, _t(each))
            return K

        def images_of(C: RealArray, problems: Index) -> RealArray:
            W = moving[problems]
            products = np.zeros((len(C), n_kernels, moving.shape[1]), dtype=C.dtype)
            products[:, self.rest, :n] = images(grams, np.ascontiguousarray(C[:, :n]))
            inside = np.matmul(_t(W), C[:, :, None])[:, :, 0]
            products[:, self.still] = np.matmul(images(inner, inside), _t(W))
            for j, Z in zip(self.mixed, features, strict=True):
                each = Z[problems]
                products[:, j] = np.matmul(each, np.matmul(_t(each), C[:, :, None]))[:, :, 0]
            return products

        sizes = n_kernels, moving.shape[1], moving.dtype, grams.nbytes
        return SharedKernels(*sizes, combine, images_of)


def reduction(
    grams: RealArray, still: Index, mixed: Index, n_features: int, error: float
) -> Reduction | None:
    """Return kernels in coordinates that lose at most an error of each matrix, if these are few.

    `still`, `mixed`: kernels that move, and that change otherwise, with `n_features` columns in
    all.
    """
    rest = np.setdiff1d(np.arange(len(grams)), np.concatenate([still, mixed]))
    most = int(_WORTH * grams.shape[1]) - n_features - 1
    moving = leading(grams, still, error, most)
    if moving is None:
        return None
    shared = leading(grams, rest, error, most - moving[0].shape[1])
    return None if shared is None else Reduction(rest, still, mixed, *shared, *moving)


def _t(matrices: RealArray) -> RealArray:
    """Return the transpose of each matrix in a stack."""
    return matrices.transpose(0, 2, 1)


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
) -> tuple[Vector, Matrix]:
    """Return the weights of histories, and those that they get by chance, from refits, one a seed.

    Per draw the histories of all other groups move together, see `rearranged`: they keep their
    autocorrelation and their dependence on one another and lose that on the target, whose own
    history stays, and so do exogenous ones: the kernels that ``stays`` marks. Single samples drawn
    anew would compare slow series with white noise, which earns less weight. To save work the many
    other histories stay in place, and the target, its own history and the exogenous ones move by
    the inverse order, which is the same problem; `mixed` are pairs of its own history with another.

    The order of the series is solved among the others, as they are, to the same accuracy, which
    ``task.tol`` has no part in: what stays of an error would tell it from them.

    Returns shapes (n_units,) and (n_draws, n_units), or fewer rows, see `most_draws`: NaN for units
    that the model does not see or that stay.
    """
    mixed = {} if mixed is None else mixed
    task = replace(task, tol=_TOL, max_iter=_MAX_ITER)
    places = {int(j): place for place, j in enumerate(seen)}
    mixed = {places[j]: both for j, both in mixed.items() if j in places}
    grams, share, stays = of_kernels(grams, seen), share[seen], stays[seen]
    still, tested = np.flatnonzero(stays), (share[~stays] == 1.0).any(axis=0)
    refits = _together if is_fitted_jointly(task.penalty, Y.shape[1]) else _one_by_one
    # a few replicates have so few orders that draws at random repeat them, and that of the series
    drawn = [*moved_orders(replicate, seeds), np.arange(len(replicate))]
    orders, which = np.unique(drawn, axis=0, return_inverse=True)
    # that of the series, the least, comes last: others say where to start
    weights = refits(_Refit(grams, Y, still, mixed, lam, task), orders[::-1])[::-1][which.ravel()]
    out = np.full((len(weights), share.shape[1]), np.nan)
    out[:, tested] = (weights @ share)[:, tested]
    return out[-1], out[:-1]


class _Refit(NamedTuple):
    """What is fitted again: kernels that are seen, those that move, targets, λ and the problem."""

    grams: RealArray
    Y: Matrix
    still: Index
    mixed: Mixed
    lam: float
    task: TargetSettings


def _together(refit: _Refit, orders: npt.NDArray[np.intp]) -> Matrix:
    """Return the weights of the fits in these orders, shape (n_orders, n_kernels)."""
    problems, task = _Problems(refit), refit.task
    weights = np.zeros((len(orders), len(refit.grams)))
    start = None
    for first in (0, *range(_FIRST, len(orders), _AT_ONCE)):
        some = slice(first, first + _AT_ONCE if first else _FIRST)
        kernels, targets, ridge = problems.of_draws(np.argsort(orders[some], axis=1))
        fits = fit_together(
            *(kernels, targets, np.full(len(targets), ridge), task.penalty),
            start if start is None else np.tile(start, (len(targets), 1)),
            tol=task.tol,
            max_iter=task.max_iter,
        )
        weights[some] = fits.weights
        if start is None:
            # by chance most weights are small, the same ones large
            start = fits.weights.mean(axis=0)
    return weights


class _Problems:
    """The problems of some draws, in fewer coordinates than samples where possible."""

    def __init__(self, refit: _Refit) -> None:
        grams, Y, still, mixed, lam, task = refit
        self.dtype = precision(np.array([lam]), task)
        widths = sum(own.shape[1] * other.shape[1] for own, other in mixed.values())
        memory.require(
            (grams.size + _AT_ONCE * len(Y) * widths) * grams.itemsize,
            f"a copy of {len(grams)} Gram matrices of {len(Y)} samples, and pairs of {_AT_ONCE} "
            "draws",
            alternative="give fewer kernels or lags, or raise {memory_limit}",
        )
        self.values, self.lam = (Y - Y.mean(axis=0))[:, 0], lam
        self.mixed, self.places = mixed, np.array(list(mixed), dtype=np.intp)
        error = LOST * task.tol * lam * len(Y)
        self.reduced = reduction(grams, still, self.places, widths, error) if error > 0.0 else None
        self.still, self.grams = still, grams
        if self.reduced is not None:
            shared = self.reduced.basis.shape[1]
            n_moving = self.reduced.moving.shape[1] + widths + 1
            memory.require(
                8 * _AT_ONCE * n_moving * (2 * len(Y) + shared + 2 * (shared + n_moving)),
                f"{_AT_ONCE} draws in {shared + n_moving} coordinates of {len(Y)} samples",
                alternative="give fewer kernels or lags, or raise {memory_limit}",
            )
        else:
            self.grams = np.ascontiguousarray(grams, dtype=self.dtype)

    def of_draws(self, back: Index) -> tuple[SharedKernels, Matrix, float]:
        """Return kernels, targets and the λ that goes with their number of coordinates."""
        features = [
            [pair_features(own[order], other) for own, other in self.mixed.values()]
            for order in back
        ]
        targets = self.values[back]
        if self.reduced is not None:
            kernels, targets = self.reduced.of_draws(back, features, targets, self.dtype)
            return kernels, targets, self.lam * len(self.values) / kernels.n_samples
        as_used = [[Z.astype(self.dtype) for Z in each] for each in features]
        whole = moved(self.grams, self.still, back, self.places, as_used)
        return whole, targets, self.lam


def _one_by_one(refit: _Refit, orders: npt.NDArray[np.intp]) -> Matrix:
    """Return weights of fits one after the other, of targets that `_together` does not take.

    All but the first start at its weights: where L is learned, a fit depends on its start.
    """
    grams, Y, still, mixed, lam, task = refit
    memory.require(
        grams.nbytes,
        f"a copy of {len(grams)} Gram matrices of {len(Y)} samples, whose histories move",
        alternative="give fewer kernels or lags, or raise {memory_limit}",
    )
    now, start = np.array(grams), None
    family = PrecomputedFamily(now, check=False)  # other orders have the same norms
    weights = np.zeros((len(orders), len(grams)))
    for draw, order in enumerate(orders):
        back = np.argsort(order)
        now[still] = grams[still][:, back[:, None], back]
        for j, (own, other) in mixed.items():
            Z = pair_features(own[back], other)
            now[j] = Z @ Z.T
        fit = fit_target(family, np.ascontiguousarray(Y[back]), lam, task, start=start)
        weights[draw] = fit.weights
        start = fit.weights if start is None else start
    return weights
