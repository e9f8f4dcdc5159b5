"""The data sets of the study: where they are, and which had a say in the model.

Some are problems that others published as formulas: Friedman, *Multivariate adaptive regression
splines*, 1991; Breiman, *Bias, variance, and arcing classifiers*, 1996; Breiman et al.,
*Classification and regression trees*, 1984; Gu and Wahba, *Minimizing GCV/GML scores with multiple
smoothing parameters*, 1991; Welch et al., *Screening, predicting, and computer experiments*, 1992;
Morris, Mitchell and Ylvisaker 1993 (borehole); Ben-Ari and Steinberg 2007 (circuit); Kenett and
Zacks 1998 (piston); Forrester, Sobester and Keane 2008 (wing weight); An and Owen 2001 (robot arm).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Labels

from ..data import Samples, load, printed
from ..plan import Request

N_ROWS = 3000
# standard deviation of the noise, in those of the function, where its authors add none
_NOISE = 0.2
_Bounds = tuple[tuple[float, float], ...]
_Make = Callable[[np.random.RandomState], Samples]


def make(name: str, seed: int = 0) -> Samples:
    """Return the features and targets of a problem, always the same rows.

    Examples
    --------
    >>> X, y = make("borehole")
    >>> X.shape, y.shape
    ((3000, 8), (3000,))
    """
    return PROBLEMS[name](np.random.RandomState(seed))


def _friedman(number: int, noise: float) -> _Make:
    def draw(state: np.random.RandomState) -> Samples:
        from sklearn import datasets

        maker = getattr(datasets, f"make_friedman{number}")
        X, y = maker(N_ROWS, noise=noise, random_state=state)
        return X, y

    return draw


def _function(
    bounds: _Bounds, of: Callable[[FloatArray], FloatArray], noise: float | None = None
) -> _Make:
    """Return a function's values at uniform points of a box, with noise."""

    def draw(state: np.random.RandomState) -> Samples:
        low, high = np.array(bounds).T
        X = low + (high - low) * state.uniform(size=(N_ROWS, len(bounds)))
        y = np.asarray(of(X.T))
        spread = _NOISE * y.std() if noise is None else noise
        return X, y + spread * state.standard_normal(N_ROWS)

    return draw


def _normals(of: Callable[[FloatArray, Labels, FloatArray], FloatArray]) -> _Make:
    """Return two classes of twenty columns, made of standard normal ones."""

    def draw(state: np.random.RandomState) -> Samples:
        first = state.uniform(size=N_ROWS) < 0.5
        side = np.where(state.uniform(size=N_ROWS) < 0.5, 1.0, -1.0)
        X = of(state.standard_normal((N_ROWS, 20)), first[:, None], side[:, None])
        return X, np.where(first, 1.0, -1.0)

    return draw


def _two(X: FloatArray, first: Labels, side: FloatArray) -> FloatArray:
    return np.asarray(X + np.where(first, 1.0, -1.0) * 2.0 / np.sqrt(20.0))


def _three(X: FloatArray, first: Labels, side: FloatArray) -> FloatArray:
    alternating = np.where(np.arange(20) % 2 == 0, 1.0, -1.0)
    return np.asarray(X + np.where(first, side, alternating) * 2.0 / np.sqrt(20.0))


def _ring(X: FloatArray, first: Labels, side: FloatArray) -> FloatArray:
    return np.where(first, 2.0 * X, X + 1.0 / np.sqrt(20.0))


def _waveform(state: np.random.RandomState) -> Samples:
    i = np.arange(1.0, 22.0)
    waves = np.array([np.maximum(6.0 - np.abs(i - centre), 0.0) for centre in (11, 15, 7)])
    pairs = np.array([(0, 1), (0, 2), (1, 2)])
    kind, share = state.randint(3, size=N_ROWS), state.uniform(size=(N_ROWS, 1))
    one, other = waves[pairs[kind, 0]], waves[pairs[kind, 1]]
    X = share * one + (1.0 - share) * other + state.standard_normal((N_ROWS, 21))
    return X, kind.astype(np.float64)


def _gu_wahba(x: FloatArray) -> FloatArray:
    a, b, c, _ = x
    bump = 0.2 * c**11 * (10.0 * (1.0 - c)) ** 6 + 10.0 * (10.0 * c) ** 3 * (1.0 - c) ** 10
    return np.asarray(2.0 * np.sin(np.pi * a) + np.exp(2.0 * b) + bump)


def _welch(x: FloatArray) -> FloatArray:
    slopes = {2: 0.05, 3: 0.08, 5: 1.0, 6: -0.03, 7: 0.03, 9: -0.09, 10: -0.01, 11: -0.07}
    slopes |= {14: -0.04, 15: 0.06, 17: -0.01, 18: -0.03, 19: -5.0}
    linear = sum(slope * x[i - 1] for i, slope in slopes.items())
    curved = 5.0 * (x[3] - x[19]) ** 2 + 40.0 * x[18] ** 3 + 0.25 * x[12] ** 2
    return np.asarray(linear + curved + 5.0 * x[11] / (1.0 + x[0]))


def _borehole(x: FloatArray) -> FloatArray:
    rw, r, Tu, Hu, Tl, Hl, L, Kw = x
    width = np.log(r / rw)
    return np.asarray(
        2 * np.pi * Tu * (Hu - Hl) / (width * (1 + Tu / Tl) + 2 * L * Tu / (rw**2 * Kw))
    )


def _circuit(x: FloatArray) -> FloatArray:
    Rb1, Rb2, Rf, Rc1, Rc2, beta = x
    gain, Vb1 = beta * (Rc2 + 9.0), 12.0 * Rb2 / (Rb1 + Rb2)
    return np.asarray(((Vb1 + 0.74) * gain + 11.35 * Rf + 0.74 * Rf * gain / Rc1) / (gain + Rf))


def _piston(x: FloatArray) -> FloatArray:
    M, S, V0, k, P0, Ta, T0 = x
    A, gas = P0 * S + 19.62 * M - k * V0 / S, P0 * V0 * Ta / T0
    V = S / (2.0 * k) * (np.sqrt(A**2 + 4.0 * k * gas) - A)
    return np.asarray(2.0 * np.pi * np.sqrt(M / (k + S**2 * gas / V**2)))


def _wing(x: FloatArray) -> FloatArray:
    Sw, Wfw, A, sweep, q, taper, tc, Nz, Wdg, Wp = x
    cosine = np.cos(np.radians(sweep))
    frame = 0.036 * Sw**0.758 * Wfw**0.0035 * (A / cosine**2) ** 0.6 * q**0.006 * taper**0.04
    return np.asarray(frame * (100.0 * tc / cosine) ** -0.3 * (Nz * Wdg) ** 0.49 + Sw * Wp)


def _arm(x: FloatArray) -> FloatArray:
    angles, lengths = np.cumsum(x[:4], axis=0), np.array(x[4:])
    return np.asarray(
        np.hypot((lengths * np.cos(angles)).sum(axis=0), (lengths * np.sin(angles)).sum(axis=0))
    )


def _in_its_box(name: str, of: Callable[[FloatArray], FloatArray]) -> _Make:
    """Return a problem whose box ``ranges.csv`` has, a row a column."""
    rows = [row for row in printed("study", "ranges.csv") if row["problem"] == name]
    return _function(tuple((row["low"], row["high"]) for row in rows), of)


PROBLEMS: dict[str, _Make] = {
    "Friedman 1": _friedman(1, 1.0),
    "Friedman 2": _friedman(2, 125.0),
    "Friedman 3": _friedman(3, 0.1),
    "Gu and Wahba": _function(((0.0, 1.0),) * 4, _gu_wahba, 2.0),
    "Welch": _function(((-0.5, 0.5),) * 20, _welch),
    "borehole": _in_its_box("borehole", _borehole),
    "circuit": _in_its_box("circuit", _circuit),
    "piston": _in_its_box("piston", _piston),
    "wing weight": _in_its_box("wing weight", _wing),
    "robot arm": _in_its_box("robot arm", _arm),
    "twonorm": _normals(_two),
    "threenorm": _normals(_three),
    "ringnorm": _normals(_ring),
    "waveform": _waveform,
}


class SetSource(NamedTuple):
    """Where a set is: a file of the data folder, scikit-learn's loader, or a formula.

    ``had_a_say`` is whether somebody looked at its results while the evidence model was made.
    """

    where: str
    task: str
    n_rows: int
    n_columns: int
    n_classes: int
    had_a_say: bool


def _read(row: dict[str, Any]) -> SetSource:
    counts = {name: int(row[name]) for name in ("n_rows", "n_columns", "n_classes")}
    return SetSource(row["where"], row["task"], **counts, had_a_say=bool(row["had_a_say"]))


# scikit-learn's breast cancer set is "WDBC"
SETS = {str(row["name"]): _read(row) for row in printed("study", "sets.csv")}


def address(source: SetSource, request: Request) -> str:
    """Return what `samples` takes: the path of a file, else the name as it is."""
    is_file = ".csv" in source.where
    return request.data_file(source.where) if is_file else source.where


def samples(where: str) -> Samples:
    """Return the features and targets of an address."""
    if where.startswith("make "):
        return make(where.removeprefix("make "))
    if not where.startswith("load_"):
        return load(where)
    from sklearn import datasets

    pair = getattr(datasets, where)(return_X_y=True)
    return pair[0], pair[1]
