"""How likely is an edge's weight by chance?"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import KernelWeaveWarning, memory
from kernelweave.kernels_core.arrays import Index, Matrix, RealArray
from kernelweave.kernels_core.checks import one_of
from kernelweave.vv_rkhs import PrecomputedFamily

from .pairs import pair_features
from .shared_grams import MovedGrams
from .target import Task, fit_target, of_kernels
from .together import fit_together, goes_together, precision

# kernels by place, with the two histories that they multiply
Mixed = dict[int, tuple[Matrix, Matrix]]
SIGNIFICANCE = one_of("permutation", "stability")
ADJUST = one_of("bh", "max-t")
_SELECTED = 1e-3
_AT_ONCE = 32  # draws: the next ones start at what they found in the mean
_EXCHANGED = 5  # replicates: they have 120 orders
_SHORT = 25  # samples of a replicate: with fewer the seam of the circle counted in simulations


def change_places(replicate: Index) -> bool:
    """Tell whether replicates are enough, and alike in length, to be exchanged as wholes."""
    sizes = np.unique(replicate, return_counts=True)[1]
    return len(sizes) >= _EXCHANGED and len(set(sizes.tolist())) == 1


def warn_if_short(replicate: Index) -> None:
    """Warn where p-values of slow series come out too small.

    Warns KernelWeaveWarning if a replicate that moves round in a circle has fewer than 25 samples.
    """
    shortest = int(np.unique(replicate, return_counts=True)[1].min())
    if shortest < _SHORT and not change_places(replicate):
        warnings.warn(
            f"a replicate has {shortest} samples, too few to move it round in a circle: p-values "
            "of slow or transient series come out too small; five or more replicates of equal "
            "length would change places instead",
            KernelWeaveWarning,
            stacklevel=3,
        )


def rearranged(replicate: Index, rng: np.random.Generator) -> Index:
    """Return samples in an order as likely as theirs, for series that may be autocorrelated.

    Replicates of equal length change places where there are at least five, which suits any series,
    transients too, whose replicates are alike in law. Else each replicate's samples move round in
    a circle, which suits stationary series that are long beside their memory.

    `replicate` of shape (n_samples,): replicate of each sample; `rng`: draws uniformly; the
    observed order is one of its draws. Returns shape (n_samples,): a permutation.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.granger.significance import rearranged
    >>> rearranged(np.array([0, 0, 0, 0, 1, 1]), np.random.default_rng(0))
    array([1, 2, 3, 0, 5, 4])
    """
    blocks = [np.flatnonzero(replicate == each) for each in np.unique(replicate)]
    order = np.empty(len(replicate), dtype=np.intp)
    if change_places(replicate):
        order[np.concatenate(blocks)] = rng.permutation(np.array(blocks)).ravel()
        return order
    for block in blocks:
        order[block] = np.roll(block, rng.integers(len(block)))
    return order


def moved_orders(replicate: Index, seeds: npt.NDArray[np.integer]) -> Iterator[Index]:
    """Yield an order of the samples for each seed, as `rearranged` does.

    The shifts of a single replicate are few, and the observed order is one of them: it is left
    out, being the one that p-values count anyway, and none comes twice before all have come. With
    no more draws than shifts p is then exact.

    `replicate` of shape (n_samples,): replicate of each sample; `seeds` of shape (n_draws,): one
    per draw. Yields shape (n_samples,): a permutation.
    """
    n = len(replicate)
    if n < 2 or (replicate != replicate[0]).any():
        for seed in seeds:
            yield rearranged(replicate, np.random.default_rng(int(seed)))
        return
    shifts = np.random.default_rng(int(seeds[0])).permutation(np.arange(1, n))
    for draw in range(len(seeds)):
        yield np.roll(np.arange(n), shifts[draw % (n - 1)])


def null_weights(
    grams: RealArray,
    Y: Matrix,
    seen: Index,
    stays: npt.NDArray[np.bool_],
    share: Matrix,
    lam: float,
    task: Task,
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

    Returns shape (n_draws, n_units): NaN for units that the model does not see or that stay.
    """
    mixed = {} if mixed is None else mixed
    places = {int(j): place for place, j in enumerate(seen)}
    mixed = {places[j]: both for j, both in mixed.items() if j in places}
    grams, share, stays = of_kernels(grams, seen), share[seen], stays[seen]
    out = np.full((len(seeds), share.shape[1]), np.nan)
    still, tested = np.flatnonzero(stays), (share[~stays] == 1.0).any(axis=0)
    moved = _moved_together if goes_together(task.penalty, Y.shape[1]) else _moved_one_by_one
    orders = list(moved_orders(replicate, seeds))
    weights = moved(grams, Y, still, mixed, lam, task, orders)
    out[:, tested] = (weights @ share)[:, tested]
    return out


def _moved_together(
    grams: RealArray,
    Y: Matrix,
    still: Index,
    mixed: Mixed,
    lam: float,
    task: Task,
    orders: list[Index],
) -> Matrix:
    """Return the weights of the fits in these orders, shape (n_draws, n_kernels)."""
    dtype = precision(np.array([lam]), task)
    widths = sum(own.shape[1] * other.shape[1] for own, other in mixed.values())
    features_at_once = min(_AT_ONCE, len(orders)) * len(Y) * widths
    memory.require(
        (grams.size + features_at_once) * dtype.itemsize,
        f"a copy of {len(grams)} Gram matrices of {len(Y)} samples, and pairs of {_AT_ONCE} draws",
        alternative="give fewer kernels or lags, or raise memory_limit",
    )
    back = np.argsort(orders, axis=1)
    single = np.ascontiguousarray(grams, dtype=dtype)
    moved, start = (Y - Y.mean(axis=0))[back, 0], None
    weights = np.zeros((len(orders), len(grams)))
    for first in range(0, len(orders), _AT_ONCE):
        some = slice(first, first + _AT_ONCE)
        each = moved[some]
        features = [
            [pair_features(own[order], other).astype(dtype) for own, other in mixed.values()]
            for order in back[some]
        ]
        places = np.array(list(mixed), dtype=np.intp)
        found = fit_together(
            MovedGrams(single, still, back[some], places, features),
            *(each, np.full(len(each), lam)),
            *(task.penalty, start if start is None else start[: len(each)]),
            tol=task.tol,
            max_iter=task.max_iter,
        )
        weights[some] = found.weights
        # by chance most weights are small, the same ones large
        usual = weights[: first + len(each)].mean(axis=0)
        start = np.tile(usual, (_AT_ONCE, 1))
    return weights


def _moved_one_by_one(
    grams: RealArray,
    Y: Matrix,
    still: Index,
    mixed: Mixed,
    lam: float,
    task: Task,
    orders: list[Index],
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


def pooled_p_values(observed: Matrix, null: npt.NDArray[np.float64]) -> Matrix:
    """Return p-values of edges, each against the draws of its source into every target.

    p = (1 + #{draws with a weight as large})/(1 + draws), over all n_targets · n_draws weights that
    the history of this source got by chance. A slow series earns more by chance than a fast one
    whatever the target, so that a source's draws speak for all its edges: there are as many times
    more of them.

    `observed` of shape (n_targets, n_sources): weights of the fits; `null` of shape (n_targets,
    n_draws, n_sources): weights by chance; NaN for edges that are not tested. Returns shape
    (n_targets, n_sources): NaN for edges that are not tested.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.granger.significance import pooled_p_values
    >>> null = np.array([[[0.1, 0.3], [0.2, 0.1]], [[0.4, np.nan], [0.0, np.nan]]])
    >>> pooled_p_values(np.array([[0.3, 0.2], [0.5, 0.9]]), null)
    array([[0.4       , 0.66666667],
           [0.2       ,        nan]])
    """
    p = np.full(observed.shape, np.nan)
    for source in range(observed.shape[1]):
        pool = null[:, :, source]
        pool = np.sort(pool[~np.isnan(pool)])
        as_large = len(pool) - np.searchsorted(pool, observed[:, source], side="left")
        p[:, source] = (1.0 + as_large) / (1.0 + len(pool))
    p[np.isnan(null).all(axis=1)] = np.nan
    return p


def adjusted_p_values(
    p: Matrix, observed: Matrix, null: npt.NDArray[np.float64], adjust: str
) -> Matrix:
    """Return p-values that speak of all tested edges together.

    `p` of shape (n_targets, n_sources): of each edge by itself; NaN where it is not tested.
    `observed`, `null`: as for `pooled_p_values`. `adjust` in {"bh", "max-t"}: benjamini and
    Hochberg's, which keep the rate of false discoveries, or those of the largest weight per draw
    (Westfall and Young), which keep the chance of a single one. There weights are over the root
    mean square of their source by chance. Returns shape (n_targets, n_sources): NaN where p is.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.granger.significance import adjusted_p_values
    >>> p = np.array([[np.nan, 0.01], [0.04, np.nan]])
    >>> adjusted_p_values(p, p, p[:, None], "bh")
    array([[ nan, 0.02],
           [0.04,  nan]])
    """
    from scipy.stats import false_discovery_control

    out, tested = np.full(p.shape, np.nan), ~np.isnan(p)
    if not tested.any():
        return out
    if adjust == "bh":
        out[tested] = false_discovery_control(p[tested])
        return out
    draws = np.where(np.isnan(null), 0.0, null)
    counted = np.maximum(1, (~np.isnan(null)).sum(axis=(0, 1)))
    scale = np.sqrt((draws**2).sum(axis=(0, 1)) / counted)
    scale = np.where(scale > 0.0, scale, np.finfo(np.float64).tiny ** 0.5)
    largest = np.sort((draws / scale).max(axis=(0, 2)))
    as_large = len(largest) - np.searchsorted(largest, observed / scale, side="left")
    out[tested] = ((1.0 + as_large) / (1.0 + len(largest)))[tested]
    return out


def selection_frequencies(
    grams: RealArray,
    Y: Matrix,
    seen: Index,
    share: Matrix,
    lam: float,
    task: Task,
    seeds: npt.NDArray[np.integer],
) -> Matrix:
    """Return which histories get weight on random halves of the samples.

    - `grams` of shape (n_kernels, n_samples, n_samples): kernels of all histories
    - `Y` of shape (n_samples, n_outputs): targets
    - `seen`: kernels of the model
    - `share` of shape (n_kernels, n_groups): whose each kernel is
    - `lam`: λ
    - `task`: the problem
    - `seeds` of shape (n_draws,): one per half

    Returns shape (n_draws, n_groups): 1 where a history has more than a thousandth of all weight.
    """
    grams, share = of_kernels(grams, seen), share[seen]
    chosen = np.zeros((len(seeds), share.shape[1]))
    for draw, seed in enumerate(seeds):
        rng = np.random.default_rng(int(seed))
        half = np.sort(rng.choice(len(Y), len(Y) // 2, replace=False))
        inner = np.ascontiguousarray(grams[:, half[:, None], half])
        found = fit_target(inner, Y[half], lam, task).weights @ share
        chosen[draw] = found > _SELECTED * max(found.sum(), np.finfo(float).tiny)
    return chosen


def stability_p_values(chosen: Matrix, tested: npt.NDArray[np.bool_]) -> Matrix:
    """Return the error rate per edge that stability selection bounds, q²/((2π − 1) p²).

    π is an edge's selection frequency, q the mean number selected of the p edges between different
    groups (Meinshausen and Bühlmann 2010, Theorem 1, divided by p); 1 where π is not above ½. A
    group's own history is no candidate: counted among them, what always is selected would keep
    q/p, and with it every bound, large.

    `chosen` of shape (n_draws, n_targets, n_sources): which edges each draw selected; `tested` of
    shape (n_targets, n_sources): candidates. Returns shape (n_targets, n_sources): bounds, at most
    1; NaN for what is no candidate. They assume exchangeable candidates, as the theorem does.
    """
    frequency = chosen.mean(axis=0)
    edges = frequency[tested]
    share = float(edges.mean()) if len(edges) else 1.0
    margin = 2.0 * frequency - 1.0
    bound = np.ones_like(frequency)
    np.divide(share**2, margin, out=bound, where=margin > 0)
    rate: Matrix = np.where(tested, np.minimum(bound, 1.0), np.nan)
    return rate
