"""Public tables of times up to an event, and the rule that says which of them are compared on.

scikit-survival, lifelines and SurvSet (Drysdale 2022, arXiv 2203.03094) bring them with them, so
that nothing is downloaded. Rows without a time, or with one that is not above 0, are left out, as
models of the logarithm of times need. A table is compared on if it has one row a person, at least
100 rows, at most 100 columns and at least 30 events among its training rows, which are 70 % of the
rows and 500 at most. Of those of SurvSet in alphabetical order, the second, fourth and so on are
reported; on the others, and on six that earlier choices were made on, settings may be chosen.
"""

from __future__ import annotations

from typing import NamedTuple

import lifelines.datasets as of_lifelines
import numpy as np
import pandas as pd
import sksurv.datasets as of_sksurv
from SurvSet.data import SurvLoader

LEAST_ROWS, LEAST_EVENTS, MOST_COLUMNS = 100, 30, 100
MOST_TRAINING, TRAINING = 500, 0.7

# name: where it is, its event and its time, columns that give them away
_SKSURV = {
    "gbsg2": ("load_gbsg2", "cens", "time"),
    "whas500": ("load_whas500", "fstat", "lenfol"),
    "veterans": ("load_veterans_lung_cancer", "Status", "Survival_in_days"),
    "breast cancer": ("load_breast_cancer", "e.tdm", "t.tdm"),
    "AIDS": ("load_aids", "censor", "time"),
    "flchain": ("load_flchain", "death", "futime"),
}
_LIFELINES = {
    "lung": ("load_lung", "status", "time", []),
    "larynx": ("load_larynx", "death", "time", []),
    "kidney": ("load_kidney_transplant", "death", "time", []),
    "dictators": ("load_dd", "observed", "duration", ["ctryname", "ehead", "leaderspellreg"]),
}
_CHOSEN = ("veterans", "lung", "whas500", "larynx", "kidney", "AIDS")
# tables of SurvSet that are among those above: actg is AIDS, cancer is lung
_TWICE = ("GBSG2", "whas500", "veteran", "cancer", "actg", "flchain")


class Table(NamedTuple):
    """Columns, whether the event was observed, and the time of it or of the last observation."""

    X: pd.DataFrame
    event: np.ndarray
    time: np.ndarray

    @property
    def n_training(self) -> int:
        """How many rows are for training."""
        return min(MOST_TRAINING, int(TRAINING * len(self.X)))

    @property
    def is_large_enough(self) -> bool:
        """Whether the rule admits it."""
        return (
            len(self.X) >= LEAST_ROWS
            and self.X.shape[1] <= MOST_COLUMNS
            and self.event.mean() * self.n_training >= LEAST_EVENTS
        )


def tables(*, chosen: bool) -> dict[str, Table]:
    """Return the tables that are reported, or those that settings may be chosen on."""
    every = {name: _of_sksurv(*where) for name, where in _SKSURV.items()}
    every |= {name: _of_lifelines(*where) for name, where in _LIFELINES.items()}
    own = {
        name: table
        for name, table in every.items()
        if (name in _CHOSEN) == chosen and (chosen or table.is_large_enough)
    }
    of_survset = _of_survset()
    names = sorted(of_survset, key=str.lower)[0 if chosen else 1 :: 2]
    return own | {name: of_survset[name] for name in names}


def _of_sksurv(load: str, event: str, when: str) -> Table:
    X, y = getattr(of_sksurv, load)()
    return _of(X, np.asarray(y[event]), np.asarray(y[when]))


def _of_lifelines(load: str, event: str, when: str, away: list[str]) -> Table:
    table = getattr(of_lifelines, load)()
    return _of(table.drop(columns=[event, when, *away]), table[event], table[when])


def _of_survset() -> dict[str, Table]:
    """Return the tables that the rule admits."""
    loader, out = SurvLoader(), {}
    kinds = loader.df_ds.set_index("ds")
    small = (kinds["n_fac"] + kinds["n_num"] <= MOST_COLUMNS) & ~kinds["is_td"].astype(bool)
    for name in small.index[small & ~small.index.isin(_TWICE)]:
        table = loader.load_dataset(ds_name=name)["df"]
        columns = {c: "category" for c in table if c.startswith("fac_")}
        X = table.drop(columns=["pid", "event", "time"]).astype(columns)
        found = _of(X, table["event"], table["time"])
        if table["pid"].is_unique and found.is_large_enough:
            out[name] = found
    return out


def _of(X: pd.DataFrame, event: np.ndarray, when: np.ndarray) -> Table:
    """Return the rows whose times are above 0."""
    times, events = np.asarray(when, dtype=float), np.asarray(event, dtype=float)
    kept = (times > 0.0) & np.isfinite(events)
    return Table(X[kept].reset_index(drop=True), events[kept] > 0.0, times[kept])
