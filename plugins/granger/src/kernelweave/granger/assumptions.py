"""What p-values by moving histories in time take for granted, and warnings where it fails."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import KernelWeaveWarning
from kernelweave.kernels_core.arrays import Index, Vector

_LONG = 50  # rows from which a series shows whether it returns, or a season
_TREND = 0.5  # share of the variance that a straight line explains
_WALK = 6.0  # n(1 − autocorrelation): its median is 4.4 for random walks, 20 for 0.9 and n = 150
_LINE = 1e-3  # chance that a node of noise has a peak somewhere; two have it in one place
_AROUND = 12  # frequencies on each side that a peak is compared with


def warn_of_series(scaled: npt.NDArray[np.float64], names: list[str], replicate: Index) -> bool:
    """Warn of random walks, trends and seasons that series share; return whether there are some.

    `scaled` of shape (n_times, n_nodes): the series; `names`: of the nodes; `replicate` of shape
    (n_times,): replicate of each row; the longest is looked at, if it has 50 rows. Warns
    KernelWeaveWarning once for wandering series, once for a shared season.
    """
    longest = scaled[replicate == np.bincount(replicate).argmax()]
    if len(longest) < _LONG:
        return False
    wander = [name for name, x in zip(names, longest.T, strict=True) if wanders(x)]
    if wander:
        warnings.warn(
            f"{_some(wander)} wander or follow a trend over the whole record: moved in time they "
            "still look like causes of one another, and p-values come out too small; take "
            "differences, or take the trend off",
            KernelWeaveWarning,
            stacklevel=4,
        )
    period, sharing = shared_season(longest)
    if len(sharing) > 1:
        warnings.warn(
            f"{_some([names[j] for j in sharing])} share a season of about {period:.3g} rows: "
            "p-values may take it for influence; take it off, or give it as a series of its own",
            KernelWeaveWarning,
            stacklevel=4,
        )
    return bool(wander) or len(sharing) > 1


def warn_of_draws(
    n_draws: int, p_smallest: float, n_edges: int, level: float, adjust: str, most: float = np.inf
) -> None:
    """Warn where a single edge could not pass, however strong.

    - `n_draws`: draws per target
    - `p_smallest`: the smallest p-value that an edge can have
    - `n_edges`: tested edges
    - `level`: what an adjusted p-value must reach
    - `adjust` in {"bh", "max-t"}: how they are adjusted
    - `most`: draws that there are
    """
    least = 1.0 / (1.0 + n_draws) if adjust == "max-t" else min(1.0, n_edges * p_smallest)
    if least > level:
        needed = int(np.ceil(n_draws * least / level))
        what_can = f"{needed} draws can"
        if needed > most:
            what_can = (
                f"{needed} draws could, but one replicate has {most:g} that differ: give a longer "
                "series or replicates, or forbid links"
            )
        warnings.warn(
            f"{n_draws} draws per series cannot bring a single edge of {n_edges} to an adjusted "
            f"p-value below {least:.3g}, and a level of {level:g} was asked: {what_can}",
            KernelWeaveWarning,
            stacklevel=4,
        )


def wanders(x: Vector) -> bool:
    """Tell whether a series looks like a random walk or follows a straight line.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.granger.assumptions import wanders
    >>> noise = np.random.default_rng(0).standard_normal(200)
    >>> wanders(noise), wanders(noise.cumsum()), wanders(noise + np.arange(200) / 20)
    (False, True, True)
    """
    time = np.arange(len(x), dtype=np.float64)
    if np.corrcoef(time, x)[0, 1] ** 2 > _TREND:
        return True
    centred = x - x.mean()
    repeats = float(centred[1:] @ centred[:-1] / (centred[:-1] @ centred[:-1]))
    return len(x) * (1.0 - repeats) < _WALK


def shared_season(X: npt.NDArray[np.float64]) -> tuple[float, Index]:
    """Return the period that most series have as a sharp peak, and which series.

    A peak is a power of the first differences far above the median around it, which slow series
    and broad resonances are not.

    `X` of shape (n_times, n_nodes): one replicate. Returns `period`: rows per turn; `sharing`: the
    nodes with this peak, two at least; none where no season is shared.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.granger.assumptions import shared_season
    >>> X = np.random.default_rng(0).standard_normal((240, 3))
    >>> X[:, :2] += np.sin(np.arange(240) * np.pi / 6)[:, None]
    >>> period, sharing = shared_season(X)
    >>> round(period), sharing
    (12, array([0, 1]))
    """
    steps = np.diff(X, axis=0) * np.hanning(len(X) - 1)[:, None]
    power = np.abs(np.fft.rfft(steps, axis=0)) ** 2
    n = len(power)
    usual = np.empty_like(power)
    for k in range(n):
        usual[k] = np.median(power[max(1, k - _AROUND) : k + _AROUND + 1], axis=0)
    # powers of noise are exponential: their median is log 2 times their mean
    peak = power * np.log(2.0) > usual * np.log(n / _LINE)
    peak[: min(n, 4)] = False  # fewer than four turns are no season
    common = peak.sum(axis=1)
    at = int(common.argmax())
    if common[at] < 2:
        return np.inf, np.array([], dtype=np.intp)
    # among the frequencies that share it, the one of most power
    tied = np.flatnonzero(common == common[at])
    at = int(tied[power[tied].sum(axis=1).argmax()])
    return len(steps) / at, np.flatnonzero(peak[at])


def _some(names: list[str]) -> str:
    if len(names) == 1:
        return f"series {names[0]} seems to"
    listed = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return f"series {listed} seem to"
