"""Tables with groups or in an order: made ones, and those that packages ship."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from kernelweave.kernels_core.arrays import Labels

from ..data import printed

Table = tuple[pd.DataFrame, Labels]
_N_NEW, _N_SERIES = 100, 360


def _panel(
    seed: int,
    *,
    level: float,
    slope: float = 0.0,
    size: float = 6.0,
    spread: float = 0.0,
    classes: float = 0.0,
) -> Table:
    """Return rows in groups with levels and slopes of their own, normal, of so large deviations.

    `size`: rows of a group, in the median where their logarithms have the deviation `spread`.
    """
    state = np.random.RandomState(seed)
    n_groups = 50 + _N_NEW
    sizes = np.maximum(2, np.round(size * np.exp(spread * state.standard_normal(n_groups))))
    group = np.repeat(np.arange(n_groups), sizes.astype(int))
    X = pd.DataFrame(state.uniform(-1.0, 1.0, size=(len(group), 3)), columns=["a", "b", "c"])
    X["age"] = state.standard_normal(n_groups)[group]
    signal = np.sin(3.0 * X["a"]) + X["b"] * X["c"] + 0.5 * X["age"]
    levels, slopes = (each * state.standard_normal(n_groups)[group] for each in (level, slope))
    y = signal + levels + slopes * X["b"] + 0.3 * state.standard_normal(len(group))
    X["group"] = [f"g{code}" for code in group]
    return X, np.where(y > 0.0, "yes", "no") if classes else y.to_numpy()


def _series(
    seed: int,
    *,
    walk: float = 0.0,
    memory: float = 0.0,
    trend: float = 0.0,
    season: float = 0.0,
    drift: float = 0.0,
    growth: float = 0.0,
) -> Table:
    """Return rows in an order, with what is added to a signal and its noise of deviation 0.3.

    `walk`: deviation of the steps of a random walk; `memory`: correlation of the noise with that
    before it; `drift`: radians by which the coefficient of a column turns; `growth`: logarithm of
    the noise's growth.
    """
    state = np.random.RandomState(seed)
    time = np.arange(_N_SERIES)
    share = time / _N_SERIES
    X = pd.DataFrame(state.standard_normal((_N_SERIES, 3)), columns=["a", "b", "c"])
    X["month"], X["time"] = time % 12, time
    noise = state.standard_normal(_N_SERIES) * np.exp(growth * (share - 0.5))
    for t in range(1, _N_SERIES):
        noise[t] = memory * noise[t - 1] + np.sqrt(1.0 - memory**2) * noise[t]
    y = np.cos(drift * share) * X["a"] + np.sin(2.0 * X["b"]) + trend * share + 0.3 * noise
    y += season * np.sin(np.pi * time / 6.0) + walk * state.standard_normal(_N_SERIES).cumsum()
    return X, y.to_numpy()


def _of(frame: pd.DataFrame, target: str) -> Table:
    frame = frame.dropna(subset=[target]).reset_index(drop=True)
    return frame.drop(columns=target), frame[target].to_numpy(dtype=np.float64)


def _airfoil() -> Table:
    """A section is an airfoil at one angle."""
    from kernelweave.tables.bundled import airfoil

    dataset: dict[str, Any] = airfoil()
    X, y = dataset["data"], dataset["target"].to_numpy()
    pairs = X["chord_length"].astype(str) + " at " + X["angle_of_attack"].astype(str)
    kept = np.random.RandomState(0).permutation(len(X))[:600]
    return X.assign(section=pairs).iloc[kept].reset_index(drop=True), y[kept]


def _shipped(name: str) -> pd.DataFrame:
    frame: pd.DataFrame = import_module(f"linearmodels.datasets.{name}").load()
    return frame


def _states() -> Table:
    frame = _shipped("munnell").drop(columns="ST_ABB")
    sums = ["P_CAP", "HWY", "WATER", "UTIL", "PC", "GSP", "EMP"]
    return _of(frame.assign(**{name: np.log(frame[name].astype(float)) for name in sums}), "GSP")


def _training() -> Table:
    kept = ["year", "fcode", "employ", "tothrs", "union", "grant", "totrain", "lsales", "lavgsal"]
    return _of(_shipped("jobtraining")[kept], "lavgsal")


def _lagged(y: pd.Series, **columns: Any) -> Table:
    frame = pd.DataFrame({**columns, "last": y.shift(1), "before": y.shift(2), "target": y})
    return _of(frame.iloc[2:], "target")


def _loaded(name: str) -> pd.DataFrame:
    from statsmodels import datasets

    frame: pd.DataFrame = getattr(datasets, name).load_pandas().data
    return frame


def _fertility() -> Table:
    frame = _loaded("fertility").set_index("Country Name").filter(regex=r"^\d{4}$")
    long = frame.iloc[:, ::4].rename_axis("country").reset_index()
    long = long.melt("country", var_name="year", value_name="rate")
    return _of(long.assign(year=long["year"].astype(int)), "rate")


def _co2() -> Table:
    monthly = _loaded("co2")["co2"].resample("MS").mean()
    return _of(pd.DataFrame({"date": monthly.index, "co2": monthly.to_numpy()}), "co2")


def _sunspots() -> Table:
    frame = _loaded("sunspots")
    return _lagged(frame["SUNACTIVITY"], year=frame["YEAR"])


def _inflation() -> Table:
    frame = _loaded("macrodata")
    dates = pd.to_datetime({"year": frame["year"], "month": 3 * frame["quarter"], "day": 1})
    return _lagged(
        frame["infl"],
        date=dates,
        unemployment=frame["unemp"].shift(1),
        bills=frame["tbilrate"].shift(1),
    )


def _el_nino() -> Table:
    wide = _loaded("elnino").set_index("YEAR")
    y = pd.Series(wide.to_numpy().ravel())
    return _lagged(y, date=pd.date_range("1950-01-01", periods=len(y), freq="MS"))


def _banks() -> Table:
    frame = _shipped("french").rename(columns={"dates": "date"})
    return _of(frame[["date", "MktRF", "SMB", "HML", "Mom", "RF", "Money"]], "Money")


_READERS: dict[str, Callable[[], Table]] = {
    "airfoil": _airfoil, "munnell": _states, "jobtraining": _training,
    "fertility": _fertility, "co2": _co2, "sunspots": _sunspots, "macrodata": _inflation,
    "elnino": _el_nino, "french": _banks,
    "nile": lambda: _of(_loaded("nile"), "volume"),
    "wage_panel": lambda: _of(_shipped("wage_panel").drop(columns="expersq"), "lwage"),
}  # fmt: skip


class NewRowsTask(NamedTuple):
    """A table with groups or in an order; `n_train`: groups, or rows, of training."""

    by: str
    column: str
    where: str
    n_train: int
    draws: int
    settings: Mapping[str, float]

    @property
    def classes(self) -> bool:
        """Whether its targets are classes."""
        return bool(self.settings.get("classes"))

    @property
    def kind(self) -> str:
        """Which figures it is reported with."""
        made = "real" if self.where in _READERS else "made"
        return f"new groups, {made}" if self.by == "groups" else f"later rows, {made}"

    def table(self, seed: int) -> Table:
        """Return the rows: drawn anew, or those that a package ships."""
        if self.where in _READERS:
            return _READERS[self.where]()
        return (_panel if self.by == "groups" else _series)(seed, **self.settings)


def _read(row: dict[str, Any]) -> NewRowsTask:
    pairs = (each.split("=") for each in str(row.get("settings", "")).split("|") if each)
    settings = {name: float(value) for name, value in pairs}
    counts = int(row["n_train"]), int(row["draws"])
    return NewRowsTask(row["by"], row["column"], row["where"], *counts, settings)


TASKS = {str(row["name"]): _read(row) for row in printed("study", "new_rows.csv")}
