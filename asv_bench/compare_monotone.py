"""Predictions that rise with a column: rearranged after the fit, beside free ones and trees.

Twenty tables whose signs are known. Twelve are made, 60 to 500 rows of six columns with a truth
that rises with the first and falls with the second, the noise from 1/30 of its spread to three
times it. Eight are public: what rises there is physics, medicine or what everybody would say.

- free: the evidence kernel without constraint
- monotone: the same fit, rearranged
- trees, monotone trees: scikit-learn's HistGradientBoosting without and with ``monotonic_cst``

Judged on up to 1,000 other rows: root mean square errors, from the truth where it is made, and of
probabilities where there are two classes. Violations: the share of pairs of rows, equal but for
more of one column, whose predictions go the wrong way.

The constants of the grids were chosen on Friedman's function and a table of this kind with other
seeds; all twenty are reported.

    python asv_bench/compare_monotone.py [--data FOLDER] [--seed 0]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from kernelweave.evidence import EvidenceKernelClassifier, EvidenceKernelRegressor
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

N_NEW, N_PAIRS = 1000, 2000
say = partial(print, flush=True)


class Data(NamedTuple):
    """Rows to learn and to judge by, and the signs of the columns."""

    name: str
    X: pd.DataFrame
    y: np.ndarray
    X_new: pd.DataFrame
    truth: np.ndarray
    signs: dict[str, int]
    classes: bool = False


def _rising(X: np.ndarray) -> np.ndarray:
    return np.asarray(2.0 * X[:, 0] - X[:, 1])


def _bent(X: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(1.5 * X[:, 0]) - 2.0 * np.sqrt(X[:, 1]) + np.sin(5.0 * X[:, 2]))


def _stepped(X: np.ndarray) -> np.ndarray:
    both = np.tanh(8.0 * (X[:, 0] - 0.5)) * (1.0 + X[:, 2]) - (X[:, 1] > 0.6)
    return np.asarray(both + X[:, 3] ** 2)


MADE: tuple[tuple[int, Callable[[np.ndarray], np.ndarray], float], ...] = (
    (60, _rising, 0.3), (60, _bent, 1.0), (60, _stepped, 3.0),
    (120, _rising, 1.0), (120, _bent, 3.0), (120, _stepped, 0.3),
    (250, _rising, 3.0), (250, _bent, 0.03), (250, _stepped, 1.0),
    (500, _rising, 0.1), (500, _bent, 0.3), (500, _stepped, 1.0),
)  # fmt: skip

PUBLIC: dict[str, tuple[str, int, dict[str, int]]] = {
    "boston": ("boston_housing.csv", 250, {"rm": 1, "lstat": -1}),
    "power plant": ("ccpp.csv", 300, {"temperature": -1, "vacuum": -1}),
    "abalone": ("abalone_rings.csv", 300, {"shell_weight": 1}),
    "california": ("california_housing.csv.gz", 300, {"median_income": 1}),
    "diabetes": ("", 200, {"bmi": 1, "bp": 1}),
    "pima": ("pima.csv", 300, {"glucose": 1, "bmi": 1}),
    "haberman": ("haberman.csv", 150, {"positive_axillary_nodes": -1}),
    "mammographic": ("mammographic.csv", 300, {"age": 1}),
}


def made(k: int, seed: int) -> Data:
    """Return one of the made tables."""
    n, function, noise = MADE[k]
    rng = np.random.default_rng([seed, k])
    X = rng.uniform(size=(n + N_NEW, 6))
    truth = function(X)
    y = truth + noise * truth.std() * rng.normal(size=len(X))
    frame = pd.DataFrame(X, columns=list("abcdef"))
    name = f"{function.__name__[1:]}, {n} rows, noise {noise:g}"
    return Data(name, frame[:n], y[:n], frame[n:], truth[n:], {"a": 1, "b": -1})


def public(name: str, folder: Path, seed: int) -> Data:
    """Return one of the public tables, divided at random."""
    file, n, signs = PUBLIC[name]
    if file:
        frame = pd.read_csv(folder / file)
        X, y = frame.drop(columns="target"), frame["target"].to_numpy()
    else:
        X, y = load_diabetes(return_X_y=True, as_frame=True)
        y = y.to_numpy()
    by = np.random.default_rng(seed).permutation(len(X))
    first, new = by[:n], by[n : n + N_NEW]
    classes = len(np.unique(y)) == 2
    truth = (y[new] > 0).astype(float) if classes else y[new]
    return Data(name, X.iloc[first], y[first], X.iloc[new], truth, signs, classes)


def wrong_pairs(predict: Callable[[pd.DataFrame], np.ndarray], data: Data) -> float:
    """Return the share of pairs that go the wrong way."""
    rng, wrong = np.random.default_rng(0), []
    for column, sign in data.signs.items():
        base = data.X_new.iloc[rng.integers(0, min(100, len(data.X_new)), N_PAIRS)]
        ends = np.quantile(data.X[column], [0.0, 1.0])
        low, high = np.sort(rng.uniform(*ends, (2, N_PAIRS)), axis=0)
        rows = pd.concat([base.assign(**{column: v}) for v in (low, high)], ignore_index=True)
        values = predict(rows)
        wrong.append(sign * (values[N_PAIRS:] - values[:N_PAIRS]) < 0.0)
    return float(np.mean(wrong))


def predictor(model: Any, data: Data) -> Callable[[pd.DataFrame], np.ndarray]:
    """Return predictions, or the probability of the second class."""
    if data.classes:
        return lambda X: np.asarray(model.predict_proba(X)[:, 1])
    return lambda X: np.asarray(model.predict(X))


def models(data: Data) -> dict[str, Any]:
    """Fit all; the free one is the monotone one as it was fitted."""
    evidence = EvidenceKernelClassifier if data.classes else EvidenceKernelRegressor
    trees = HistGradientBoostingClassifier if data.classes else HistGradientBoostingRegressor
    monotone = evidence(monotone=data.signs).fit(data.X, data.y)
    free = copy(monotone)
    free._monotone = None
    settings = {"random_state": 0, "min_samples_leaf": 10}
    return {
        "free": free,
        "monotone": monotone,
        "trees": trees(**settings).fit(data.X, data.y),
        "monotone trees": trees(**settings, monotonic_cst=data.signs).fit(data.X, data.y),
    }


def judged(data: Data) -> dict[str, float]:
    """Return errors, shares of wrong pairs, and milliseconds a row."""
    out: dict[str, float] = {}
    for name, model in models(data).items():
        predict = predictor(model, data)
        predict(data.X_new[:2])
        began = time.process_time()
        values = predict(data.X_new)
        out[f"{name} ms"] = 1e3 * (time.process_time() - began) / len(values)
        out[name] = float(np.sqrt(np.mean((values - data.truth) ** 2)))
        out[f"{name} wrong"] = wrong_pairs(predict, data)
    return out


def main() -> None:
    """Print a line for each table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("shared/data"))
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    everything = [partial(made, k, args.seed) for k in range(len(MADE))]
    everything += [partial(public, name, args.data, args.seed) for name in PUBLIC]
    ratios = []
    for read in everything:
        data = read()
        told = judged(data)
        ratios.append(told["monotone"] / told["free"])
        say(
            f"{data.name:32s} {told['free']:9.4g} {ratios[-1]:7.4f} "
            f"{told['trees'] / told['free']:6.3f} {told['monotone trees'] / told['free']:6.3f}  "
            f"{told['free wrong']:6.1%} {told['monotone wrong']:4.1%} {told['trees wrong']:6.1%} "
            f"{told['monotone trees wrong']:4.1%}  {told['free ms']:.2f} {told['monotone ms']:.2f}"
        )
    mean = np.exp(np.mean(np.log(ratios)))
    say(f"monotone / free: geometric mean {mean:.4f}, largest {max(ratios):.4f}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
