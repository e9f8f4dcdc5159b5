"""Series, their lags, and groups of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import Index, Matrix, Rows
from kernelweave.kernels_core.checks import COUNT, Rule, check_magnitude

# how many, which ones, or "cv"
Lags: TypeAlias = "int | str | list[int] | tuple[int, ...] | range | Index"


def _are_lags(value: object) -> bool:
    if isinstance(value, list | tuple | np.ndarray | range):
        return len(value) > 0 and all(COUNT.holds(each) for each in value)
    return COUNT.holds(value)


LAGS = Rule("an integer >= 1 or a list of such", _are_lags)


def lag_list(lags: Lags) -> tuple[int, ...]:
    """Return the lags of a history, 1 to ``lags`` or those listed, in order; others are refused."""
    LAGS.check("lags", lags)
    if isinstance(lags, list | tuple | np.ndarray | range):
        return tuple(sorted({int(each) for each in lags}))
    return tuple(range(1, int(lags) + 1))


def describe_lags(lags: tuple[int, ...]) -> str:
    """Describe lags for a message.

    Examples
    --------
    >>> from kernelweave.granger.series import describe_lags
    >>> describe_lags((1,)), describe_lags((1, 2, 3)), describe_lags((1, 2, 12))
    ('lag 1', 'lags 1 to 3', 'lags 1, 2, 12')
    """
    if len(lags) == 1:
        return f"lag {lags[0]}"
    if lags == tuple(range(1, len(lags) + 1)):
        return f"lags 1 to {lags[-1]}"
    return f"lags {', '.join(map(str, lags))}"


@dataclass(frozen=True, eq=False)
class LaggedSamples:
    """Lagged values of all nodes and the value that follows them.

    Attributes
    ----------
    history : ndarray of shape (n_samples, n_nodes * n_lags)
        Column ``j * n_lags + k`` is node j at the k-th lag.
    targets : ndarray of shape (n_samples, n_nodes)
        The values that follow.
    replicate : ndarray of shape (n_samples,)
        Replicate that each sample belongs to, counted from 0.
    times : ndarray of shape (n_samples,)
        Row of the series that each target is.
    """

    history: Matrix
    targets: Matrix
    replicate: Index
    times: Index


def checked_series(X: Rows, *, allow_missing: bool = False) -> Matrix:
    """Return a series as float64 of shape (n_times, n_nodes); NaN may be allowed.

    Raises ValueError if it is not a table of finite real numbers whose squares are finite.
    """
    try:
        table = np.asarray(X)
        series = table.real.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"X must hold numbers in rows of equal length: {error}") from error
    if np.iscomplexobj(table):
        raise ValueError("X must hold real numbers, got complex ones")
    if series.ndim != 2:
        raise ValueError(
            f"X must have shape (n_times, n_nodes), got {series.shape}: a single series is a column"
        )
    if series.shape[1] == 0:
        raise ValueError(f"X must have at least one node, got shape {series.shape}")
    bad = np.argwhere(np.isinf(series) if allow_missing else ~np.isfinite(series))
    if len(bad):
        t, j = bad[0]
        raise ValueError(
            f"X must be finite, got {series[t, j]} in row {t}, column {j}: "
            "leave such rows out and mark where they were by replicates"
        )
    check_magnitude("X", np.nan_to_num(series, nan=0.0))
    return series


def lagged_samples(
    X: npt.ArrayLike,
    lags: Lags,
    replicates: object = None,
    *,
    allow_missing: bool = False,
    first: int = 0,
) -> LaggedSamples:
    """Return x_{t−1}, …, x_{t−lags} beside x_t for every t that has so many predecessors.

    V prints inputs from x_t, which is the target itself; here they end at t − 1.

    Parameters
    ----------
    X : array-like of shape (n_times, n_nodes)
        The series, equally spaced in time, one replicate after the other.
    lags : int or sequence of int
        Length of a history, at least 1, or the lags that it holds.
    replicates : array-like of shape (n_times,), optional
        Label of the replicate of each row; no history crosses from one to another. The rows of a
        replicate must be neighbours.
    allow_missing : bool, default=False
        Whether X may have NaN; samples with one are left out then.
    first : int, default=0
        Index of the first row of each replicate that may be a target.

    Returns
    -------
    LaggedSamples
        In order of time.

    Raises
    ------
    ValueError
        If X is not a table of finite numbers, ``lags`` are not integers of at least 1, no row
        has enough predecessors, or a replicate's rows are apart.

    Examples
    --------
    >>> from kernelweave.granger import lagged_samples
    >>> lagged_samples([[1.0], [2.0], [3.0], [8.0], [9.0]], 1, [0, 0, 0, 1, 1]).history.ravel()
    array([1., 2., 8.])
    """
    series, listed = checked_series(X, allow_missing=allow_missing), lag_list(lags)
    code, far = replicate_codes(replicates, len(series)), max(*listed, first)
    times = np.flatnonzero(code[far:] == code[: max(0, len(code) - far)]) + far
    if len(times) == 0:
        raise ValueError(
            f"no row has {far} predecessors in its replicate of X: the longest replicate has "
            f"{int(np.bincount(code).max()) if len(code) else 0} rows, give a longer series or "
            "fewer lags"
        )
    past = np.stack([series[times - k] for k in listed], axis=2).reshape(len(times), -1)
    whole = ~(np.isnan(past).any(axis=1) | np.isnan(series[times]).any(axis=1))
    if not whole.any():
        raise ValueError(
            f"every row of X has a missing value in it or in its lags {listed}: use fewer lags or "
            "drop the series with most missing values"
        )
    return LaggedSamples(past[whole], series[times][whole], code[times][whole], times[whole])


def replicate_codes(replicates: object, n_times: int) -> Index:
    """Return the number of each row's replicate, whose rows must be neighbours."""
    if replicates is None:
        return np.zeros(n_times, dtype=np.intp)
    labels = np.asarray(replicates)
    if labels.shape != (n_times,):
        raise ValueError(
            f"replicates must hold one label per row, {n_times}, got shape {labels.shape}"
        )
    new = np.ones(n_times, dtype=bool)
    new[1:] = labels[1:] != labels[:-1]
    if new.sum() != len(np.unique(labels)):
        raise ValueError("the rows of a replicate must be neighbours: sort by replicate and time")
    return np.cumsum(new) - 1


@dataclass(frozen=True, eq=False)
class Groups:
    """A partition of the nodes: a name per group, and the members of each."""

    names: list[str]
    members: list[Index]

    def __len__(self) -> int:
        return len(self.names)

    def columns(self, n_lags: int) -> list[list[int]]:
        """Return the columns of a history that each group's nodes have."""
        lags = range(n_lags)
        return [[int(j) * n_lags + k for j in nodes for k in lags] for nodes in self.members]


def make_groups(groups: Iterable[object] | None, names: Sequence[str]) -> Groups:
    """Return groups by label, in order of appearance; every node by itself without labels.

    Raises ValueError if there is not one label per node.
    """
    if groups is None:
        return Groups(list(names), [np.array([j]) for j in range(len(names))])
    labels = [str(each) for each in groups]
    if len(labels) != len(names):
        raise ValueError(
            f"groups must hold one label per node, {len(names)}, got {len(labels)} labels"
        )
    order = list(dict.fromkeys(labels))
    return Groups(order, [np.flatnonzero([each == name for each in labels]) for name in order])
