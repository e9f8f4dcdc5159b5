"""Targets below limits of detection: the evidence kernel beside what people do with them.

Twelve made tables, so that targets below the limits are known to the judge: 150 to 1,000 rows of
six columns, one of them a laboratory of three, with 10 to 60 % of the targets below one limit or
below that of their laboratory. Truths are linear, smooth or have products; the noise is normal on
the scale of the truth, which is the logarithm of the targets or the targets themselves.

- evidence: targets as ranges without a lower end up to the limit
- half the limit: the same learner on numbers, half the limit where a target is below it
- left out: the same learner on the rows whose targets are known
- Tobit: lifelines' log-normal AFT model with left censoring of exp(target), which is the censored
  linear regression of Tobin (1958)

The two on numbers get logarithms where the truth is on that scale, as a user would give them. All
are judged on 1,000 new rows by their true targets on the scale of the truth: R², the median error
in deviations of the noise, and how many 90 % intervals hold the target.

    python asv_bench/compare_limits.py [--draws 5]

Needs lifelines.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from kernelweave.evidence import EvidenceKernelRegressor
from lifelines import LogNormalAFTFitter
from sklearn.metrics import r2_score
from threadpoolctl import threadpool_limits

N_NEW, CONFIDENCE = 1000, 0.9
LABORATORIES = ("A", "B", "C")
say = partial(print, flush=True)


class Made(NamedTuple):
    """What a table is made of: `below` is the share of targets below the limits."""

    rows: int
    truth: str
    below: float
    n_limits: int
    log: bool


TABLES = (
    Made(150, "linear", 0.1, 1, True),
    Made(150, "smooth", 0.3, 3, True),
    Made(150, "products", 0.5, 1, False),
    Made(300, "linear", 0.4, 3, True),
    Made(300, "smooth", 0.6, 1, True),
    Made(300, "products", 0.2, 3, True),
    Made(500, "linear", 0.6, 1, False),
    Made(500, "smooth", 0.2, 1, False),
    Made(500, "products", 0.4, 3, True),
    Made(1000, "linear", 0.3, 3, True),
    Made(1000, "smooth", 0.5, 3, True),
    Made(1000, "products", 0.3, 1, True),
)


class Data(NamedTuple):
    """Columns, targets on the scale of the truth, and the limit of each training row there."""

    X: pd.DataFrame
    target: np.ndarray
    limit: np.ndarray
    noise: float


class Told(NamedTuple):
    """Predictions and the ends of intervals for new rows, on the scale of the truth."""

    predicted: np.ndarray
    low: np.ndarray
    high: np.ndarray


def data(made: Made, seed: int) -> Data:
    """Return a table of training rows, which come first, and new rows."""
    rng = np.random.default_rng(seed)
    n = made.rows + N_NEW
    Z = rng.normal(size=(n, 5))
    laboratory = rng.integers(3, size=n)
    if made.truth == "linear":
        signal = Z @ [1.0, -0.7, 0.4, 0.0, 0.0]
    elif made.truth == "smooth":
        signal = np.sin(2.0 * Z[:, 0]) + 0.5 * Z[:, 1] ** 2 - np.abs(Z[:, 2])
    else:
        signal = Z[:, 0] * Z[:, 1] + 0.7 * Z[:, 2] - 0.5 * Z[:, 3] * (Z[:, 2] > 0.0)
    signal = signal / signal.std() + 0.3 * (laboratory == 1)
    noise = 0.5
    target = 3.0 * (not made.log) + signal + noise * rng.normal(size=n)
    level = np.quantile(target[: made.rows], made.below)
    shift = np.array([0.0, 0.4, -0.4]) if made.n_limits == 3 else np.zeros(3)
    X = pd.DataFrame(Z, columns=[f"x{k}" for k in range(5)])
    X["laboratory"] = np.array(LABORATORIES)[laboratory]
    return Data(X, target, (level + shift[laboratory])[: made.rows], noise)


def ours(made: Made, data: Data) -> Told:
    """Give ranges."""
    n = made.rows
    target = data.target[:n]
    below = target < data.limit
    known = np.maximum(target, data.limit)
    known = np.exp(known) if made.log else known
    y = pd.DataFrame({"low": np.where(below, -np.inf, known), "high": known})
    model = EvidenceKernelRegressor(random_state=0).fit(data.X[:n], y)
    new = data.X[n:]
    ends = (model.predict(new), *model.predict_interval(new, confidence=CONFIDENCE))
    with np.errstate(divide="ignore"):
        return Told(*(np.log(np.maximum(e, 0.0)) if made.log else e for e in ends))


def _of_numbers(made: Made, data: Data, kept: np.ndarray, target: np.ndarray) -> Told:
    model = EvidenceKernelRegressor(random_state=0).fit(data.X[: made.rows][kept], target[kept])
    new = data.X[made.rows :]
    return Told(model.predict(new), *model.predict_interval(new, confidence=CONFIDENCE))


def half(made: Made, data: Data) -> Told:
    """Give half the limit where a target is below it."""
    target = data.target[: made.rows]
    halved = data.limit - np.log(2.0) if made.log else 0.5 * data.limit
    every = np.ones(made.rows, dtype=bool)
    return _of_numbers(made, data, every, np.where(target < data.limit, halved, target))


def left_out(made: Made, data: Data) -> Told:
    """Give the rows whose targets are known."""
    target = data.target[: made.rows]
    return _of_numbers(made, data, target >= data.limit, target)


def tobit(made: Made, data: Data) -> Told:
    """Fit a censored linear regression."""
    n = made.rows
    Z = pd.get_dummies(data.X, dtype=float, drop_first=True)
    centre, spread = data.target[:n].mean(), data.target[:n].std()
    target = (np.maximum(data.target[:n], data.limit) - centre) / spread
    known = data.target[:n] >= data.limit
    train = Z[:n].assign(T=np.exp(target), E=known)
    best = LogNormalAFTFitter().fit_left_censoring(train, "T", "E")
    tail = 0.5 * (1.0 - CONFIDENCE)
    # percentiles of lifelines are those of the survival function
    ends = (best.predict_percentile(Z[n:], p=p) for p in (0.5, 1.0 - tail, tail))
    return Told(*(centre + spread * np.log(each.to_numpy()) for each in ends))


MODELS: dict[str, Callable[[Made, Data], Told]] = {
    "evidence": ours,
    "half the limit": half,
    "left out": left_out,
    "Tobit": tobit,
}


def measured(made: Made, data: Data, model: str) -> tuple[float, float, float, float]:
    """Return R², the median error in deviations of the noise, coverage, and CPU seconds."""
    start = time.process_time()
    told = MODELS[model](made, data)
    seconds = time.process_time() - start
    true = data.target[made.rows :]
    error = np.median(np.abs(told.predicted - true)) / data.noise
    held = np.mean((told.low <= true) & (true <= told.high))
    return r2_score(true, told.predicted), float(error), float(held), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=5)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    say("table | rows | below | limits | scale | " + " | ".join(MODELS))
    every: list[Any] = []
    warmed = data(TABLES[0], 0)
    for model in MODELS:
        measured(TABLES[0], warmed, model)
    for k, made in enumerate(TABLES):
        draws = [data(made, 100 * k + draw) for draw in range(given.draws)]
        each = np.array([[measured(made, one, model) for model in MODELS] for one in draws])
        every.append(each.mean(axis=0))
        told = " | ".join("{:.3f} {:.3f} {:.3f} {:.1f} s".format(*row) for row in every[-1])
        scale = "log" if made.log else "plain"
        say(f"{made.truth} | {made.rows} | {made.below:.0%} | {made.n_limits} | {scale} | {told}")
    for name, of in (("mean", np.mean), ("least", np.min), ("most", np.max)):
        rows = of(np.array(every), axis=0)
        say(
            f"{name} | | | | | "
            + " | ".join("{:.3f} {:.3f} {:.3f} {:.1f} s".format(*r) for r in rows)
        )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
