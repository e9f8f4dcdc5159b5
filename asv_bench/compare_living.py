"""Models that live: what an update costs beside a fit, and what a night without a fit loses.

Streams of days. A model is fitted to the rows before the first day; each day is predicted, and then
learned. Means over all days after the first of the error of these predictions, with the CPU
seconds of all nights:

- once: the model of the first rows, never changed
- update: `update` each night, with the kernel of the first rows
- on advice: `update`, and a fit to all rows on the nights on which `update` says it is worth it
- refit: a fit to all rows each night
- SGD: scikit-learn's SGDRegressor by `partial_fit`, columns scaled as in the first rows
- river: its adaptive random forest of ten trees, where river is installed

The streams:

- steady: ten numbers, two of them with products (Friedman 1), noise 1; nothing changes
- drift: the same, where the second half of the days turns the roles of the first five columns and
  the next five round, a little more each day
- turbine: NOx of a gas turbine by its hours (shared data, UCI 551), 24 rows a day

And what single steps take, in CPU seconds: 100 rows into 2,000, as they are learned and as they
settle; 100 rows forgotten; 100 rows into a landmark model; two models merged.

    python asv_bench/compare_living.py [--days 30] [--turbine FOLDER] [--steps]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from kernelweave.evidence import EvidenceKernelRegressor, merge
from sklearn.linear_model import SGDRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

try:
    from kernelweave.evidence import RelearnWarning
except ImportError:
    RelearnWarning = UserWarning

say = partial(print, flush=True)
Days = list[tuple[np.ndarray, np.ndarray]]


class Told(NamedTuple):
    """Mean squared errors of each day, CPU seconds of all nights, and nights of a fit."""

    errors: list[float]
    seconds: float
    fits: tuple[int, ...]


def friedman(X: np.ndarray, share: float = 0.0) -> np.ndarray:
    """Return Friedman's first function, for a share of the next five columns."""

    def of(Z: np.ndarray) -> np.ndarray:
        wave = 10 * np.sin(np.pi * Z[:, 0] * Z[:, 1])
        return wave + 20 * (Z[:, 2] - 0.5) ** 2 + 10 * Z[:, 3] + 5 * Z[:, 4]

    return (1 - share) * of(X[:, :5]) + share * of(X[:, 5:])


def made(days: int, *, drifts: bool, first: int = 500, each: int = 50) -> Days:
    """Return the rows before the first day, and those of each day."""
    rng = np.random.default_rng(3)
    parts = []
    for day in range(days + 1):
        X = rng.uniform(size=(first if day == 0 else each, 10))
        share = max(0.0, (day - days / 2) / (days / 2)) if drifts else 0.0
        parts.append((X, friedman(X, share) + rng.normal(size=len(X))))
    return parts


def turbine(days: int, folder: Path) -> Days:
    """Return NOx by the other measurements: 480 hours, then 24 a day."""
    table = pd.read_csv(folder / "gas_turbine.csv.gz").drop(columns="year")
    rows = table.iloc[: 480 + 24 * days]
    X, y = rows.drop(columns="nox").to_numpy(), rows["nox"].to_numpy()
    cuts = [480 + 24 * day for day in range(days)]
    return list(zip(np.split(X, cuts), np.split(y, cuts), strict=True))


def evidence(how: str) -> Callable[[Days], Iterator[Any]]:
    """Return what yields a model for each day, and None where a night of the fit is over."""

    def run(days: Days) -> Iterator[Any]:
        X, y = days[0]
        model, fits = EvidenceKernelRegressor().fit(X, y), []
        for night, (new, targets) in enumerate(days[1:], 1):
            yield model.predict, fits
            X, y = np.concatenate([X, new]), np.concatenate([y, targets])
            spoke = False
            if how in ("update", "on advice"):
                with warnings.catch_warnings(record=True) as said:
                    warnings.simplefilter("always")
                    model.update(new, targets)
                spoke = any(issubclass(each.category, RelearnWarning) for each in said)
            if how == "refit" or spoke:
                fits.append(night)
            if how == "refit" or (spoke and how == "on advice"):
                model = EvidenceKernelRegressor().fit(X, y)

    return run


def by_gradient(days: Days) -> Iterator[Any]:
    """Yield a linear model that learns each day by gradient steps."""
    scaler = StandardScaler().fit(days[0][0])
    model = SGDRegressor(random_state=0).fit(scaler.transform(days[0][0]), days[0][1])
    chain = make_pipeline(scaler, model)
    for new, targets in days[1:]:
        yield chain.predict, []
        model.partial_fit(scaler.transform(new), targets)


def by_river(days: Days) -> Iterator[Any]:
    """Yield a forest that learns row by row."""
    from river.forest import ARFRegressor

    model = ARFRegressor(n_models=10, seed=0)

    def learn(X: np.ndarray, y: np.ndarray) -> None:
        for row, target in zip(X.tolist(), y.tolist(), strict=True):
            model.learn_one(dict(enumerate(row)), target)

    def predict(X: np.ndarray) -> np.ndarray:
        return np.array([model.predict_one(dict(enumerate(row))) for row in X.tolist()])

    learn(*days[0])
    for new, targets in days[1:]:
        yield predict, []
        learn(new, targets)


WAYS = {
    "once": evidence("once"),
    "update": evidence("update"),
    "on advice": evidence("on advice"),
    "refit": evidence("refit"),
    "SGD": by_gradient,
    "river": by_river,
}


def told(way: Callable[[Days], Iterator[Any]], days: Days) -> Told:
    """Predict each day by what was learned before it; count what nights cost."""
    models, errors, spent, fits = way(days), [], 0.0, []
    next_model = iter(models)
    predict, fits = next(next_model)
    for X, y in days[1:]:
        errors.append(float(np.mean((predict(X) - y) ** 2)))
        began = time.process_time()
        predict, fits = next(next_model, (predict, fits))
        spent += time.process_time() - began
    return Told(errors, spent, tuple(fits))


def streams(n_days: int, folder: Path | None) -> None:
    """Print a line for each way of each stream."""
    named = {"steady": made(n_days, drifts=False), "drift": made(n_days, drifts=True)}
    if folder is not None:
        named["turbine"] = turbine(n_days, folder)
    for name, days in named.items():
        for way, run in WAYS.items():
            try:
                found = told(run, days)
            except ImportError:
                say(f"{name:8} {way:10} is not installed")
                continue
            whole, late = (np.sqrt(np.mean(part)) for part in (found.errors, found.errors[-5:]))
            say(
                f"{name:8} {way:10} RMSE {whole:7.3f}, of the last five days {late:7.3f}, "
                f"{found.seconds:8.2f} CPU s, fits or advice on nights {list(found.fits)[:12]}"
            )


def clocked(what: str, do: Callable[[], Any], times: int = 5) -> None:
    """Print the median CPU seconds of a step."""
    seconds = []
    for _ in range(times):
        began = time.process_time()
        do()
        seconds.append(time.process_time() - began)
    say(f"{what:60} {np.median(seconds):8.3f} CPU s ({min(seconds):.3f} to {max(seconds):.3f})")


def steps(n_rows: int) -> None:
    """Print what single steps take; `n_rows` of them have landmarks."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n_rows + 10_000, 10))
    y = friedman(X) + rng.normal(size=len(X))
    began = time.process_time()
    model = EvidenceKernelRegressor().fit(X[:2000], y[:2000])
    say(f"{'fit of 2,000 rows':60} {time.process_time() - began:8.3f} CPU s")
    new = iter(np.split(np.arange(2000, 12_000), 100))
    for what in ("100 rows into 2,000 and a prediction, first", "the same, later nights"):
        times = 1 if "first" in what else 5

        def update() -> None:
            rows = next(new)
            model.update(X[rows], y[rows]).predict(X[-50:])

        clocked(what, update, times)
    clocked("their scores and intervals settle", lambda: model.held_out_score_, 1)
    clocked("100 rows of 2,600 forgotten", lambda: model.forget(np.arange(100)), 1)
    halves = [model, EvidenceKernelRegressor().fit(X[:2000], y[:2000])]
    halves[1].refit(X[12_000:13_000], y[12_000:13_000])
    clocked("models of 2,500 and 1,000 rows merged", lambda: merge(halves), 1)
    large = EvidenceKernelRegressor(n_landmarks=2000)
    began = time.process_time()
    large.fit(X[:n_rows], y[:n_rows])
    said = f"fit of {n_rows:,} rows, {len(large._predictor.dual)} landmarks"
    say(f"{said:60} {time.process_time() - began:8.3f} CPU s")
    more = iter(np.split(np.arange(n_rows, n_rows + 10_000), 100))

    def into_landmarks() -> None:
        rows = next(more)
        large.update(X[rows], y[rows]).predict(X[-50:])

    clocked("100 rows into these landmarks and a prediction", into_landmarks)
    clocked("their scores and intervals settle", lambda: large.held_out_score_, 1)
    clocked("100 of these rows forgotten", lambda: large.forget(X=X[:100], y=y[:100]), 1)


def main() -> None:
    """Read the command line, and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--turbine", type=Path, default=None, help="folder of gas_turbine.csv.gz")
    parser.add_argument("--steps", action="store_true", help="single steps alone")
    parser.add_argument("--rows", type=int, default=20_000, help="of the model by landmarks")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        if not asked.steps:
            streams(asked.days, asked.turbine)
        steps(asked.rows)


if __name__ == "__main__":
    main()
