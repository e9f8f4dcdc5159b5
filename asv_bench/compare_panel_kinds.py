"""Panels with an order: what a fit says of each kind of new rows, and what comes.

Panels are made: firms with normal levels, some of which enter late, a smooth function of four
columns, one of three in turn, and a trend with shocks of days. The first three quarters of the days
are learned from, without a fifth of the firms and a tenth of the other rows; these, the later days
and the firms left out are the rows of the four kinds. For each kind: the printed score with its
error, the one that came with its error over firms, and the share of rows inside 90 % intervals, of
all and of the bottom and top quarter of the predictions.

    python asv_bench/compare_panel_kinds.py [--firms 700] [--days 16] [--seeds 0 6]
"""

from __future__ import annotations

import argparse
import time
import warnings
from functools import partial

import numpy as np
import pandas as pd
from kernelweave.evidence import EvidenceKernelRegressor
from threadpoolctl import threadpool_limits

say = partial(print, flush=True)
_LEARNED, _NEW, _APART, _CONFIDENCE = 0.75, 0.2, 0.1, 0.9


def made(seed: int, n_firms: int, n_days: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Return the columns, the targets and the number of each row's firm."""
    rng = np.random.RandomState(seed)
    firm, day = np.repeat(np.arange(n_firms), n_days), np.tile(np.arange(n_days), n_firms)
    x = rng.normal(size=(len(firm), 4))
    smooth = (
        np.sin(2.0 * x[:, 0]) + x[:, 1] * x[:, 2],
        x[:, 0] - 0.5 * x[:, 1],
        1.0 * (x[:, 0] > 0.3) - 1.0 * (x[:, 1] > 0.0) * (x[:, 2] > 0.0),
    )[seed % 3]
    shocks = 0.03 * np.arange(n_days) + 0.1 * rng.normal(size=n_days)
    y = smooth + rng.normal(size=n_firms)[firm] + shocks[day] + 0.5 * rng.normal(size=len(firm))
    X = pd.DataFrame(x, columns=["a", "b", "c", "d"])
    X["firm"], X["day"] = [f"f{each}" for each in firm], day.astype(float)
    there = day >= rng.randint(-n_days // 2, n_days - n_days // 8, n_firms)[firm]
    return X[there].reset_index(drop=True), y[there], firm[there]


def observed(y: np.ndarray, told: np.ndarray, firm: np.ndarray) -> tuple[float, float]:
    """Return R² of some rows and its standard error over firms."""
    rest, whole = (y - told) ** 2, (y - y.mean()) ** 2
    score = 1.0 - rest.sum() / whole.sum()
    numbers = np.unique(firm, return_inverse=True)[1]
    parts = np.bincount(numbers, rest - (1.0 - score) * whole)
    return float(score), float(
        np.sqrt(len(parts) / (len(parts) - 1) * np.sum(parts**2)) / whole.sum()
    )


def main() -> None:
    """Print a line for each kind of each panel, and their counts."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--firms", type=int, default=700)
    parser.add_argument("--days", type=int, default=16)
    parser.add_argument("--seeds", type=int, nargs=2, default=(0, 6))
    asked = parser.parse_args()
    lines: list[dict[str, object]] = []
    for seed in range(*asked.seeds):
        X, y, firm = made(seed, asked.firms, asked.days)
        new = firm >= (1.0 - _NEW) * asked.firms
        learned = (X["day"] < _LEARNED * asked.days).to_numpy() & ~new
        learned &= np.random.RandomState(seed).rand(len(X)) > _APART
        begin = time.process_time()
        model = EvidenceKernelRegressor(random_state=0)
        model.fit(X[learned], y[learned], groups="firm", order="day")
        seconds = time.process_time() - begin
        say(f"panel {seed}: {np.sum(learned)} rows, {seconds:.1f} CPU s")
        kinds, told = model.kinds_of_rows(X), model.predict(X)
        low, high = model.predict_interval(X, confidence=_CONFIDENCE)
        held = (low <= y) & (y <= high)
        for kind in model.held_out_.index[1:5]:
            rows = np.flatnonzero((kinds == kind) & ~learned)
            printed, error = model.held_out_.loc[kind, ["score", "error"]]
            came, own = observed(y[rows], told[rows], firm[rows])
            by = rows[np.argsort(told[rows])]
            quarter = len(by) // 4
            line = {
                "kind": kind, "within": abs(printed - came) <= 2.0 * np.hypot(error, own),
                "held": held[rows].mean(), "bottom": held[by[:quarter]].mean(),
                "top": held[by[-quarter:]].mean(), "seconds": seconds,
            }  # fmt: skip
            lines.append(line)
            say(
                f"  {kind:26} printed {printed:5.2f} ± {error:.2f}, came {came:5.2f} ± {own:.2f}; "
                f"held {line['held']:.0%}, {line['bottom']:.0%}, {line['top']:.0%}"
            )
    table = pd.DataFrame(lines).groupby("kind", sort=False).mean()
    say(table.round(3).to_string())


if __name__ == "__main__":
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
