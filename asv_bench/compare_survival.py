"""Times up to an event: the evidence kernel beside Cox's model, forests, boosting and AFT models.

Tables are those that lifelines and scikit-survival bring with them, so that nothing is downloaded.
All models get the same rows: 70 % of a table, 500 at most, in so many draws; the others are
predicted. Concordance is Harrell's; the Brier score is integrated between the 10 % and the 90 %
quantile of the observed times, with censoring by Kaplan and Meier; D-calibration (Haider, Hoehn,
Davis and Greiner 2020) passes where a χ² test of ten bins has p > 0.05. Cox's penalty is chosen by
five folds, that of the AFT models too.

    python asv_bench/compare_survival.py             those that are reported
    python asv_bench/compare_survival.py --choose    those that settings were chosen on

Needs lifelines and scikit-survival.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import lifelines.datasets as of_lifelines
import numpy as np
import pandas as pd
import sksurv.datasets as of_sksurv
from kernelweave.evidence import EvidenceKernelRegressor
from lifelines import LogNormalAFTFitter, WeibullAFTFitter
from scipy.stats import chisquare
from sklearn.model_selection import GridSearchCV, KFold
from sksurv.ensemble import GradientBoostingSurvivalAnalysis, RandomSurvivalForest
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.metrics import concordance_index_censored, integrated_brier_score
from sksurv.util import Surv
from threadpoolctl import threadpool_limits

# name: where it is, its event and its time, columns that give them away
SKSURV = {
    "gbsg2": ("load_gbsg2", "cens", "time"),
    "whas500": ("load_whas500", "fstat", "lenfol"),
    "veterans": ("load_veterans_lung_cancer", "Status", "Survival_in_days"),
    "breast cancer": ("load_breast_cancer", "e.tdm", "t.tdm"),
    "AIDS": ("load_aids", "censor", "time"),
    "flchain": ("load_flchain", "death", "futime"),
    "bone marrow": ("load_bmt", "status", "ftime"),
}
LIFELINES = {
    "lung": ("load_lung", "status", "time", []),
    "larynx": ("load_larynx", "death", "time", []),
    "kidney": ("load_kidney_transplant", "death", "time", []),
    "leukemia": ("load_leukemia", "status", "t", []),
    "dictators": ("load_dd", "observed", "duration", ["ctryname", "ehead", "leaderspellreg"]),
    "lymphoma": ("load_lymphoma", "Censor", "Time", []),
    "heart": ("load_stanford_heart_transplants", "event", "stop", ["id", "start"]),
    "psychiatric": ("load_psychiatric_patients", "C", "T", []),
    "divorce": ("load_g3", "event", "time", []),
}
CHOSEN = ("veterans", "lung", "whas500", "larynx", "kidney", "AIDS")
MOST_ROWS, N_NEW, TRAINING = 500, 1000, 0.7
GRID = 15
say = partial(print, flush=True)


class Found(NamedTuple):
    """What a model says of new rows: their risk, and survival at times and at their own time."""

    risk: np.ndarray
    survival: np.ndarray
    own: np.ndarray


def tables(*, chosen: bool) -> dict[str, tuple[pd.DataFrame, np.ndarray, np.ndarray]]:
    """Return columns, events and times of each table that its library still has."""
    out = {}
    for name, (load, event, when) in SKSURV.items():
        if (name in CHOSEN) == chosen and hasattr(of_sksurv, load):
            X, y = getattr(of_sksurv, load)()
            y = np.asarray(y)
            if event in (y.dtype.names or ()):
                out[name] = X.reset_index(drop=True), y[event] > 0, y[when].astype(float)
    for name, (load, event, when, away) in LIFELINES.items():
        if (name in CHOSEN) == chosen:
            table = getattr(of_lifelines, load)()
            if not {event, when} <= set(table):
                continue
            table = table.drop(columns=away).dropna(subset=[event, when])
            table = table[table[when] > 0].reset_index(drop=True)
            events = table[event].astype(float).to_numpy() > 0
            out[name] = table.drop(columns=[event, when]), events, table[when].to_numpy(float)
    return out


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


def aft(fitter: type) -> Callable[..., Found]:
    """Return a fit of lifelines' accelerated failure time models, their penalty by five folds."""

    def fit(X: pd.DataFrame, y: Any, own: Any, new: Any, grid: Any) -> Found:
        Z = encoded(X, own).assign(E=y["event"], T=np.maximum(y["time"], 1e-3))
        parts = np.arange(len(own)) % 5

        def loss(penalty: float) -> float:
            scores = []
            for k in range(5):
                part = fitter(penalizer=penalty).fit(Z.iloc[own[parts != k]], "T", "E")
                scores.append(part.score(Z.iloc[own[parts == k]], "concordance_index"))
            return -float(np.mean(scores))

        best = fitter(penalizer=min((0.01, 0.1, 1.0), key=loss)).fit(Z.iloc[own], "T", "E")
        rows = Z.iloc[new]
        survival = best.predict_survival_function(rows, times=grid).to_numpy().T
        own_time = [
            float(best.predict_survival_function(rows.iloc[[i]], times=[t]).iloc[0, 0])
            for i, t in enumerate(y[new]["time"])
        ]
        return Found(-best.predict_median(rows).to_numpy(), survival, np.array(own_time))

    return fit


MODELS = {
    "evidence": ours,
    "Cox": by_steps(cox),
    "forest": by_steps(lambda: RandomSurvivalForest(300, min_samples_leaf=5, random_state=0)),
    "boosting": by_steps(lambda: GradientBoostingSurvivalAnalysis(random_state=0)),
    "log-normal AFT": aft(LogNormalAFTFitter),
    "Weibull AFT": aft(WeibullAFTFitter),
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    say("table | rows | columns | events | " + " | ".join(given.models))
    every = []
    for name, (X, event, when) in tables(chosen=given.choose).items():
        y, results = Surv.from_arrays(event, when), []
        for draw in range(given.draws):
            order = np.random.default_rng(draw).permutation(len(X))
            n = min(MOST_ROWS, int(TRAINING * len(X)))
            own, new = order[:n], order[n : n + N_NEW]
            # the censoring of later times is not known
            new = new[when[new] < when[own].max()]
            times = when[new][event[new]]
            grid = np.unique(np.quantile(times, np.linspace(0.1, 0.9, GRID)))
            row = []
            for model in given.models:
                start = time.process_time()
                try:
                    found = MODELS[model](X, y, own, new, grid)
                    row.append(
                        (
                            concordance_index_censored(event[new], when[new], found.risk)[0],
                            integrated_brier_score(y[own], y[new], found.survival, grid),
                            calibration(found.own, event[new]) > 0.05,
                            time.process_time() - start,
                        )
                    )
                except Exception as error:  # noqa: BLE001 (a peer that fails is reported)
                    say(f"  {name}, draw {draw}: {model} failed: {type(error).__name__}: {error}")
                    row.append((0.5, np.nan, False, np.nan))
            results.append(row)
        mean = np.nanmean(results, axis=0)
        every.append(mean)
        shown = " | ".join(f"{c:.3f} {b:.4f} {d:.1f} {s:.1f} s" for c, b, d, s in mean)
        say(f"{name} | {n} | {X.shape[1]} | {event.mean():.0%} | {shown}")
    shown = " | ".join(f"{c:.3f} {b:.4f} {d:.2f} {s:.1f} s" for c, b, d, s in np.mean(every, 0))
    say(f"mean of {len(every)} | | | | {shown}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
