"""Golden fits of twelve made tables, one of each kind that the evidence estimators know.

``python fits.py`` fits them and prints what changed against ``fits.json``; ``--store`` writes what
it found there. ``--rows 150 700`` and ``--tables counts groups`` choose among them.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from kernelweave.evidence import EvidenceKernelClassifier, EvidenceKernelRegressor

STORED = Path(__file__).with_suffix(".json")
ROWS = (150, 700, 1900, 3000)
# rows that are predicted, and those of them whose predictions are stored
N_NEW, N_SHOWN = 1000, 12


@dataclass
class Made:
    """A table of training and new rows, its targets, and what `fit` is told of them."""

    X: pd.DataFrame
    y: Any
    fit: dict[str, Any] = field(default_factory=dict)
    classes: bool = False


def _columns(rng: np.random.Generator, n: int, p: int) -> pd.DataFrame:
    return pd.DataFrame(rng.uniform(size=(n, p)), columns=[f"x{j}" for j in range(p)])


def _friedman(X: pd.DataFrame) -> pd.Series:
    wave = 10.0 * np.sin(np.pi * X["x0"] * X["x1"])
    return wave + 20.0 * (X["x2"] - 0.5) ** 2 + 10.0 * X["x3"] + 5.0 * X["x4"]


def numbers(rng: np.random.Generator, n: int) -> Made:
    """Return Friedman 1 with ten columns and noise of deviation 1."""
    X = _columns(rng, n, 10)
    return Made(X, _friedman(X) + rng.normal(size=n))


def words(rng: np.random.Generator, n: int) -> Made:
    """Return two columns of categories, one of them with many, beside numbers."""
    X, level = _columns(rng, n, 4), rng.normal(size=40)
    town, colour = rng.integers(40, size=n), rng.integers(3, size=n)
    y = 3.0 * X["x0"] * (colour == 1) + X["x1"] + level[town] + 0.5 * rng.normal(size=n)
    X["town"] = np.char.add("town ", town.astype(str))
    X["colour"] = np.array(["red", "green", "blue"])[colour]
    return Made(X, y)


def texts(rng: np.random.Generator, n: int) -> Made:
    """Return sentences, some of whose words move the target."""
    nouns = np.array(
        ["engine", "wheel", "door", "lamp", "seat", "mirror", "brake", "clutch", "radio", "window"]
    )
    faults = np.array(["broken", "loose", "noisy", "worn", "fine", "new", "rusty", "stuck"])
    worth, cost = rng.normal(size=len(nouns)), rng.normal(size=len(faults))
    pick, fault, other = (rng.integers(len(w), size=n) for w in (nouns, faults, nouns))
    X = _columns(rng, n, 2)
    X["report"] = [
        f"the {nouns[a]} of car {k} is {faults[b]}, its {nouns[c]} was seen on the way"
        for k, (a, b, c) in enumerate(zip(pick, fault, other, strict=True))
    ]
    return Made(X, worth[pick] + cost[fault] + X["x0"] + 0.3 * rng.normal(size=n))


def dates(rng: np.random.Generator, n: int) -> Made:
    """Return days of three years, with a season and a slow trend."""
    day = rng.integers(1096, size=n)
    X = _columns(rng, n, 2)
    X["day"] = (pd.Timestamp("2021-01-01") + pd.to_timedelta(day, "D")).astype(str)
    season = 3.0 * np.sin(2.0 * np.pi * day / 365.25)
    return Made(X, season + 0.002 * day + 2.0 * X["x0"] + 0.7 * rng.normal(size=n))


def gaps(rng: np.random.Generator, n: int) -> Made:
    """Return columns with a fifth of their cells missing, one of them telling."""
    X = _columns(rng, n, 6)
    y = _friedman(X) + rng.normal(size=n)
    missing = rng.uniform(size=X.shape) < 0.2
    y = y + 3.0 * missing[:, 5]
    return Made(X.mask(missing), y)


def classes(rng: np.random.Generator, n: int) -> Made:
    """Return four classes that overlap."""
    X = pd.DataFrame(rng.normal(size=(n, 5)), columns=list("abcde"))
    values = np.column_stack([X["a"], X["b"] * X["c"], np.abs(X["a"]) - 0.5, X["d"] * 0.0])
    values += 0.5 * rng.gumbel(size=values.shape)
    return Made(X, np.array(["one", "two", "three", "four"])[values.argmax(axis=1)], classes=True)


def ordered(rng: np.random.Generator, n: int) -> Made:
    """Return three classes in an order."""
    X = _columns(rng, n, 5)
    value = _friedman(X) + 2.0 * rng.normal(size=n)
    names = ["low", "middle", "high"]
    y = pd.cut(pd.Series(value), [-np.inf, 11.0, 17.0, np.inf], labels=names, ordered=True)
    return Made(X, y, classes=True)


def counts(rng: np.random.Generator, n: int) -> Made:
    """Return counts with many zeros."""
    X = _columns(rng, n, 5)
    return Made(X, rng.poisson(np.exp(2.5 * X["x0"] + X["x1"] - 1.5)).astype(float))


def outputs(rng: np.random.Generator, n: int) -> Made:
    """Return three outputs with the columns in common."""
    X = _columns(rng, n, 6)
    f = _friedman(X)
    y = np.column_stack([f, f**2 / 20.0, np.sin(6.0 * X["x5"]) * 5.0])
    return Made(X, y + rng.normal(size=y.shape))


def weights(rng: np.random.Generator, n: int) -> Made:
    """Return rows whose noise is known up to a factor."""
    X, weight = _columns(rng, n, 6), rng.choice([0.25, 1.0, 4.0], size=n)
    y = _friedman(X) + 2.0 * rng.normal(size=n) / np.sqrt(weight)
    return Made(X, y, {"sample_weight": weight})


def groups(rng: np.random.Generator, n: int) -> Made:
    """Return patients of some ten rows each, with a level of their own."""
    X = _columns(rng, n, 4)
    patient = rng.integers(max(8, n // 10), size=n)
    level = 1.5 * rng.normal(size=patient.max() + 1)
    X["patient"] = np.char.add("p", patient.astype(str))
    y = 4.0 * X["x0"] + 3.0 * np.sin(5.0 * X["x1"]) + level[patient] + rng.normal(size=n)
    return Made(X, y, {"groups": "patient"})


def order(rng: np.random.Generator, n: int) -> Made:
    """Return rows in time, with a trend and a wave."""
    X = _columns(rng, n, 3)
    X["t"] = np.arange(n, dtype=float)
    y = 5.0 * X["x0"] + 8.0 * X["t"] / n + np.sin(X["t"] / 25.0) + rng.normal(size=n)
    return Made(X, y, {"order": "t"})


TABLES: tuple[Callable[[np.random.Generator, int], Made], ...] = (
    numbers, words, texts, dates, gaps, classes, ordered, counts, outputs, weights, groups, order,
)  # fmt: skip


def fit_one(make: Callable[[np.random.Generator, int], Made], n_rows: int) -> dict[str, Any]:
    """Fit the first rows of a made table, predict the others, and return what is to be stored."""
    made = make(np.random.default_rng(7), n_rows + N_NEW)
    train, new = slice(0, n_rows), slice(n_rows, None)
    y = made.y.iloc if isinstance(made.y, pd.Series) else made.y
    given = {k: v if isinstance(v, str) else v[train] for k, v in made.fit.items()}
    model = (EvidenceKernelClassifier if made.classes else EvidenceKernelRegressor)(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        watch = time.process_time()
        model.fit(made.X.iloc[train], y[train], **given)
        seconds = time.process_time() - watch
        truth, table = np.asarray(y[new]), made.X.iloc[new]
        out: dict[str, Any] = {
            "seconds": seconds,
            "score": float(model.score(table, truth)),
            "held_out": {
                str(name): [float(row["score"]), float(row["error"])]
                for name, row in model.held_out_.iterrows()
            },
        }
        if made.classes:
            proba = model.predict_proba(table)
            codes = np.searchsorted(np.sort(model.classes_), truth)
            own = np.take_along_axis(proba[:, np.argsort(model.classes_)], codes[:, None], axis=1)[
                :, 0
            ]
            out["log_loss"] = float(-np.log(np.maximum(own, 1e-15)).mean())
            out["predicted"] = proba[:N_SHOWN].ravel().tolist()
        else:
            low, high = model.predict_interval(table, confidence=0.9)
            out["coverage"] = float(np.mean((low <= truth) & (truth <= high)))
            out["width"] = float(np.mean(high - low))
            out["predicted"] = np.ravel(model.predict(table)[:N_SHOWN]).tolist()
            out["low"], out["high"] = (np.ravel(e[:N_SHOWN]).tolist() for e in (low, high))
    return out


def difference(name: str, old: dict[str, Any], new: dict[str, Any]) -> str:
    """Return in one line what changed."""
    same = all(old[key] == new[key] for key in ("predicted", "held_out", "score"))
    if same and all(old.get(key) == new.get(key) for key in ("low", "high", "log_loss")):
        return f"{name:14s} equal to the last bit"
    first, second = (next(iter(each["held_out"].values())) for each in (old, new))
    spread = float(np.std(old["predicted"])) or 1.0
    moved = float(np.max(np.abs(np.subtract(new["predicted"], old["predicted"])))) / spread
    last = "coverage" if "coverage" in old else "log_loss"
    return (
        f"{name:14s} score {old['score']:.4f} {new['score']:.4f}; "
        f"printed {first[0]:.4f} ± {first[1]:.4f} {second[0]:.4f} ± {second[1]:.4f}; "
        f"{last} {old[last]:.3f} {new[last]:.3f}; "
        f"predictions by {moved:.1e}; {old['seconds']:.1f} s {new['seconds']:.1f} s"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit, compare, and store where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", action="store_true")
    parser.add_argument("--rows", type=int, nargs="*", default=ROWS)
    parser.add_argument("--tables", nargs="*", default=[each.__name__ for each in TABLES])
    parser.add_argument("--out", type=Path, default=STORED)
    options = parser.parse_args(arguments)
    stored = json.loads(STORED.read_text()) if STORED.exists() else {}
    found = json.loads(options.out.read_text()) if options.out.exists() else {}
    for n_rows in options.rows:
        for make in TABLES:
            name = f"{make.__name__} {n_rows}"
            if make.__name__ not in options.tables:
                continue
            result = fit_one(make, n_rows)
            if name in stored:
                print(difference(name, stored[name], result), flush=True)  # noqa: T201
            else:
                print(f"{name:14s} {result['score']:.4f} in {result['seconds']:.1f} s", flush=True)  # noqa: T201
            if options.store:
                found[name] = result
                options.out.write_text(json.dumps(found, indent=0) + "\n")


if __name__ == "__main__":
    main()
