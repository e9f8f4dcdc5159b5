"""Times up to an event: the evidence kernel beside Cox's model, forests, boosting and AFT models.

All models get the same rows: 70 % of a table, 500 at most, in so many draws; of the others, 1,000
at most are predicted. Concordance is Harrell's; the Brier score is integrated between the 10 % and
the 90 % quantile of the observed times, with censoring by Kaplan and Meier; D-calibration (Haider,
Hoehn, Davis and Greiner 2020) passes where a χ² test of ten bins has p > 0.05. Cox's penalty is
chosen by five folds, that of the AFT models by three, as their fits are slow. A model that fails
counts as a guess: concordance 0.5, Brier score 0.25, not calibrated. Kaplan and Meier's curve, the
same for all rows, says what the Brier score and D-calibration are without a column.
`survival_tables` says which tables these are.

    python asv_bench/compare_survival.py FILE             those that are reported
    python asv_bench/compare_survival.py FILE --choose    those that settings may be chosen on

FILE gets a line for each fit, and one that has it is not fitted again. Needs lifelines,
scikit-survival and SurvSet.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from kernelweave.evidence import EvidenceKernelRegressor
from lifelines import LogNormalAFTFitter, WeibullAFTFitter
from lifelines.exceptions import ConvergenceError
from scipy.stats import chisquare
from sklearn.model_selection import GridSearchCV, KFold
from sksurv.ensemble import GradientBoostingSurvivalAnalysis, RandomSurvivalForest
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.metrics import concordance_index_censored, integrated_brier_score
from sksurv.nonparametric import kaplan_meier_estimator
from sksurv.util import Surv
from survival_tables import Table, tables
from threadpoolctl import threadpool_limits

N_NEW, GRID = 1000, 15
MEASURES = ("concordance", "brier", "calibrated", "seconds")
GUESS = (0.5, 0.25, 0.0)
say = partial(print, flush=True)


class Found(NamedTuple):
    """What a model says of new rows: their risk, and survival at times and at their own time."""

    risk: np.ndarray
    survival: np.ndarray
    own: np.ndarray


def encoded(X: pd.DataFrame, own: np.ndarray) -> pd.DataFrame:
    """Return standardised columns, one for each category, as the peers need them."""
    Z = pd.get_dummies(X, dtype=float)
    Z = Z.fillna(Z.iloc[own].median()).fillna(0.0)
    spread = Z.iloc[own].std()
    Z = (Z - Z.iloc[own].mean()) / spread.where(spread > 0.0, 1.0)
    Z.columns = [f"x{k}" for k in range(Z.shape[1])]
    return Z.loc[:, (spread > 0.0).to_numpy()]


def ours(X: pd.DataFrame, y: Any, own: Any, new: Any, grid: Any) -> Found:
    """Fit the evidence kernel to the table as it is."""
    model = EvidenceKernelRegressor(random_state=0).fit(X.iloc[own], y[own])
    told = model.predict_distribution(X.iloc[new])
    survival = np.column_stack([told.sf(t) for t in grid])
    return Found(-model.predict(X.iloc[new]), survival, told.sf(y[new]["time"]))


def by_steps(make: Callable[[], Any]) -> Callable[..., Found]:
    """Return a fit of a model of scikit-survival."""

    def fit(X: pd.DataFrame, y: Any, own: Any, new: Any, grid: Any) -> Found:
        Z = encoded(X, own)
        model = make().fit(Z.iloc[own], y[own])
        curves = model.predict_survival_function(Z.iloc[new])
        last = y[own]["time"].max()
        at = [float(f(min(t, last))) for f, t in zip(curves, y[new]["time"], strict=True)]
        return Found(model.predict(Z.iloc[new]), np.array([f(grid) for f in curves]), np.array(at))

    return fit


def cox() -> Any:
    """Return Cox's model, its penalty by five folds."""
    folds = KFold(5, shuffle=True, random_state=0)
    penalties = {"alpha": [0.1, 1.0, 10.0, 100.0, 1000.0]}
    return _Searched(GridSearchCV(CoxPHSurvivalAnalysis(), penalties, cv=folds, error_score=0.5))


class _Searched:
    """A search that predicts survival functions too."""

    def __init__(self, search: GridSearchCV) -> None:
        self.search = search

    def fit(self, Z: pd.DataFrame, y: Any) -> Any:
        return self.search.fit(Z, y).best_estimator_


def without_columns(X: pd.DataFrame, y: Any, own: Any, new: Any, grid: Any) -> Found:
    """Return one curve for all rows: what D-calibration says of so many rows at best."""
    times, curve = kaplan_meier_estimator(y[own]["event"], y[own]["time"])
    steps = np.append(1.0, curve)
    at, own_time = (
        steps[np.searchsorted(times, when, side="right")] for when in (grid, y[new]["time"])
    )
    return Found(np.zeros(len(new)), np.tile(at, (len(new), 1)), own_time)


def aft(fitter: type) -> Callable[..., Found]:
    """Return a fit of lifelines' accelerated failure time models, their penalty by three folds."""

    def fit(X: pd.DataFrame, y: Any, own: Any, new: Any, grid: Any) -> Found:
        Z = encoded(X, own).assign(E=y["event"], T=y["time"])
        parts = np.arange(len(own)) % 3

        def loss(penalty: float) -> float:
            scores = []
            for k in range(3):
                try:
                    part = fitter(penalizer=penalty).fit(Z.iloc[own[parts != k]], "T", "E")
                except ConvergenceError:
                    return np.inf
                scores.append(part.score(Z.iloc[own[parts == k]], "concordance_index"))
            return -float(np.mean(scores))

        best = fitter(penalizer=min((0.01, 0.1, 1.0), key=loss)).fit(Z.iloc[own], "T", "E")
        rows, when = Z.iloc[new], y[new]["time"]
        times = np.unique(np.concatenate([grid, when]))
        survival = best.predict_survival_function(rows, times=times).to_numpy().T
        own_time = survival[np.arange(len(new)), np.searchsorted(times, when)]
        risk = -best.predict_median(rows).to_numpy()
        return Found(risk, survival[:, np.searchsorted(times, grid)], own_time)

    return fit


MODELS = {
    "evidence": ours,
    "Cox": by_steps(cox),
    "forest": by_steps(lambda: RandomSurvivalForest(300, min_samples_leaf=5, random_state=0)),
    "boosting": by_steps(lambda: GradientBoostingSurvivalAnalysis(random_state=0)),
    "log-normal AFT": aft(LogNormalAFTFitter),
    "Weibull AFT": aft(WeibullAFTFitter),
    "Kaplan-Meier": without_columns,
}


def calibration(survival: np.ndarray, event: np.ndarray) -> float:
    """Return the p value of D-calibration."""
    bins = np.zeros(10)
    for each, ended in zip(np.clip(survival, 1e-6, 1.0), event, strict=True):
        k = min(int(10 * each), 9)
        if ended:
            bins[k] += 1.0
        else:
            bins[k] += (each - 0.1 * k) / each
            bins[:k] += 0.1 / each
    return float(chisquare(bins).pvalue)


def measured(table: Table, draw: int, model: str) -> dict[str, Any]:
    """Return the measures of one fit, and the fault of one that failed."""
    order = np.random.default_rng(draw).permutation(len(table.X))
    n = table.n_training
    own, new = order[:n], order[n : n + N_NEW]
    # the censoring of later times is not known: new rows are watched as long as training rows were
    last = table.time[own].max()
    event, when = table.event & (table.time <= last), np.minimum(table.time, last)
    y = Surv.from_arrays(event, when)
    times = when[new][event[new]]
    grid = np.unique(np.quantile(times, np.linspace(0.1, 0.9, GRID)))
    grid = grid[grid < when[new].max()]
    start, fault = time.process_time(), None
    try:
        found = MODELS[model](table.X, y, own, new, grid)
        values: tuple[float, ...] = (
            concordance_index_censored(event[new], when[new], found.risk)[0],
            integrated_brier_score(y[own], y[new], found.survival, grid),
            float(calibration(found.own, event[new]) > 0.05),
        )
    except Exception as error:  # noqa: BLE001 (a model that fails is reported)
        values, fault = GUESS, f"{type(error).__name__}: {error}".split("\n")[0]
    seconds = time.process_time() - start
    return dict(zip(MEASURES, (*values, seconds), strict=True)) | {"fault": fault}


def warm(models: list[str]) -> None:
    """Fit each model to a made table, so that no fit that is measured compiles anything."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(150, 3)), columns=list("abc"))
    made = Table(X, rng.random(150) < 0.7, np.exp(X["a"].to_numpy() + rng.normal(size=150)))
    for model in models:
        measured(made, 0, model)


def show(results: pd.DataFrame, every: dict[str, Table]) -> None:
    """Print the means of each table, and what they say of all tables."""
    models = list(results["model"].unique())
    means = results.groupby(["table", "model"])[list(MEASURES)].mean().unstack()
    say("table | rows | columns | events | draws | " + " | ".join(models))
    for name in [each for each in every if each in means.index]:
        table, of_table = every[name], means.loc[name]
        shown = " | ".join(
            "{:.3f} {:.4f} {:.1f} {:.1f} s".format(
                *(of_table[measure, model] for measure in MEASURES)
            )
            for model in models
        )
        n_draws = results.loc[results["table"] == name, "draw"].nunique()
        size = f"{table.n_training} | {table.X.shape[1]} | {table.event.mean():.0%}"
        say(f"{name} | {size} | {n_draws} | {shown}")
    for measure in MEASURES:
        all_ = means[measure][models]
        say(f"{measure}: mean " + ", ".join(f"{m} {v:.4f}" for m, v in all_.mean().items()))
        say(f"{measure}: median " + ", ".join(f"{m} {v:.4f}" for m, v in all_.median().items()))
    for measure, sign in (("concordance", 1.0), ("brier", -1.0)):
        all_ = sign * means[measure][models]
        first = all_.idxmax(axis=1).value_counts()
        say(f"{measure}: first of {len(all_)} tables {first.to_dict()}")
        for peer in models[1:]:
            lead = all_[models[0]] - all_[peer]
            error = lead.std() / np.sqrt(len(lead))
            worst = ", ".join(f"{n} {v:+.3f}" for n, v in lead.nsmallest(3).items())
            ahead = int((lead > 0.0).sum())
            say(f"{measure}: {lead.mean():+.4f} ± {error:.4f} to {peer}, ahead on {ahead}; {worst}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    parser.add_argument("--tables", nargs="*", help="of these alone")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    every = tables(chosen=given.choose)
    if unknown := set(given.tables or ()) - set(every):
        parser.error(f"--tables: {', '.join(unknown)} is none of {', '.join(every)}")
    if given.tables:
        every = {name: every[name] for name in given.tables}
    lines = given.file.read_text().splitlines() if given.file.exists() else []
    results = [json.loads(line) for line in lines]
    had = {(each["table"], each["draw"], each["model"]) for each in results}
    warm(given.models)
    for draw in range(given.draws):
        for name, table in every.items():
            for model in given.models:
                if (name, draw, model) in had:
                    continue
                found = {"table": name, "draw": draw, "model": model} | measured(table, draw, model)
                if found["fault"]:
                    say(f"{name}, draw {draw}: {model} failed: {found['fault']}")
                results.append(found)
                with given.file.open("a") as file:
                    file.write(json.dumps(found) + "\n")
    told = pd.DataFrame(results)
    kept = told["table"].isin(list(every)) & told["model"].isin(given.models)
    show(told[kept & (told["draw"] < given.draws)], every)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
