"""P-values of edges: the orders of samples that `draws` fits, and how weights compare."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import Index, Matrix
from kernelweave.kernels_core.checks import one_of
from kernelweave.kernels_core.exceptions import warn

SIGNIFICANCE = one_of("permutation")
ADJUST = one_of("bh", "max-t")
# Replicates that are enough to be exchanged as wholes: five have 120 orders.
_EXCHANGED = 5
# Replicates of fewer samples are too short to be shifted in a circle: the jump where the last
# sample meets the first made p-values too small in simulations.
_SHORT = 25


def change_places(replicate: Index) -> bool:
    """Tell whether there are enough replicates of equal length to exchange them as wholes."""
    sizes = np.unique(replicate, return_counts=True)[1]
    return len(sizes) >= _EXCHANGED and len(set(sizes.tolist())) == 1


def warn_if_short(replicate: Index) -> None:
    """Warn if p-values may be too small because a replicate has fewer than 25 samples."""
    shortest = int(np.unique(replicate, return_counts=True)[1].min())
    if shortest < _SHORT and not change_places(replicate):
        warn(
            f"a replicate has {shortest} samples, too few to shift it in a circle: p-values of "
            "slow or transient series may be too small; five or more replicates of equal length "
            "are exchanged as wholes instead"
        )


def rearranged(replicate: Index, rng: np.random.Generator) -> Index:
    """Return the samples in another order that is as likely as theirs without an effect.

    At least five replicates of equal length are exchanged as wholes, which is valid for any series
    whose replicates have the same distribution, transients too. Else the samples of each replicate
    are shifted in a circle, which is valid for stationary series that are long compared with their
    memory. The observed order is one of the draws.

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


def most_draws(replicate: Index) -> float:
    """Return how many draws there are that differ from the observed order and from each other.

    The shifts of a single replicate are few; of several, draws are chosen at random: infinity.
    """
    n = len(replicate)
    several = n < 2 or bool((replicate != replicate[0]).any())
    return np.inf if several else n - 1


def moved_orders(replicate: Index, seeds: npt.NDArray[np.integer]) -> Iterator[Index]:
    """Yield an order of the samples for each seed, as `rearranged` does.

    For a single replicate, all differ from each other and from the observed order, which p-values
    count anyway; seeds beyond `most_draws` are not used. p is then exact: a draw that counted twice
    would make it too small.
    """
    n = len(replicate)
    if most_draws(replicate) == np.inf:
        for seed in seeds:
            yield rearranged(replicate, np.random.default_rng(int(seed)))
        return
    shifts = np.random.default_rng(int(seeds[0])).permutation(np.arange(1, n))
    for shift in shifts[: len(seeds)]:
        yield np.roll(np.arange(n), shift)


def pooled_p_values(observed: Matrix, null: npt.NDArray[np.float64]) -> Matrix:
    """Return p-values of edges, each against the draws of its source into every target.

    p = (1 + #{draws with a weight as large})/(1 + draws), over all n_targets · n_draws weights that
    the history of this source got by chance. They are pooled because chance weights depend on the
    source more than on the target: a slow series gets larger ones than a fast one.

    `observed` of shape (n_targets, n_sources); `null` of shape (n_targets, n_draws, n_sources),
    NaN, as is p, for edges that are not tested.

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


def p_value_text(p: float, digits: int = 3) -> str:
    """Return a p-value as text, with a bound if it is too small for the digits.

    Examples
    --------
    >>> from kernelweave.granger.significance import p_value_text
    >>> p_value_text(0.0213), p_value_text(0.0002), p_value_text(0.0002, 4)
    ('= 0.021', '< 0.001', '= 0.0002')
    """
    least = 10.0**-digits
    return f"< {least:.{digits}f}" if p < least else f"= {p:.{digits}f}"


def adjusted_p_values(
    p: Matrix, observed: Matrix, null: npt.NDArray[np.float64], adjust: str
) -> Matrix:
    """Return p-values adjusted for the number of tested edges.

    `adjust`: "bh" controls the false discovery rate (Benjamini and Hochberg), "max-t" the
    probability of any false edge, by the largest weight of each draw (Westfall and Young); weights
    are first divided by the root mean square of their source's weights, drawn and observed alike:
    by that of the draws alone, a large weight would be cut where it was drawn, not where observed.

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
    draws, found = np.where(np.isnan(null), 0.0, null), np.where(tested, observed, 0.0)
    counted = np.maximum(1, (~np.isnan(null)).sum(axis=(0, 1)) + tested.sum(axis=0))
    scale = np.sqrt(((draws**2).sum(axis=(0, 1)) + (found**2).sum(axis=0)) / counted)
    scale = np.where(scale > 0.0, scale, np.finfo(np.float64).tiny ** 0.5)
    largest = np.sort((draws / scale).max(axis=(0, 2)))
    as_large = len(largest) - np.searchsorted(largest, found / scale, side="left")
    out[tested] = ((1.0 + as_large) / (1.0 + len(largest)))[tested]
    return out
