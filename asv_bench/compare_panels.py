"""Panels: effects of groups beside mixed models, boosted trees and boosted mixed models.

Twelve panels are made, of 120 to 240 rows: levels of one grouping, of two that are crossed or
nested, and a slope that differs by group, each with a linear function, a smooth one and one with
steps of the other columns. Three are real, as packages ship them: Grunfeld's investments of 11
firms, wages of 60 men (Vella and Verbeek 1998) and scrap rates of firms (Holzer et al. 1993). Three
rows of ten are held out, of groups that the others know.

- ours: the evidence kernel with ``groups`` and ``slopes``
- mixed: statsmodels' MixedLM, linear in the other columns, with the groupings as variance
  components, restricted maximum likelihood
- CatBoost: groups as categories; intervals by quantiles
- GPBoost: trees and the same random effects

RMSE and the share of rows inside intervals that should hold 90 %. CatBoost and GPBoost are left out
where they are not installed.

    python asv_bench/compare_panels.py [--part K N] [--seed 0]
"""

from __future__ import annotations

import argparse
import time
import warnings
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from kernelweave.evidence import EvidenceKernelRegressor
from threadpoolctl import threadpool_limits

say = partial(print, flush=True)
# of a normal distribution, the middle 90 %
_WIDE = 1.645


class Panel(NamedTuple):
    """Rows with the columns of groups, and what the groups are known to do."""

    name: str
    X: pd.DataFrame
    y: np.ndarray
    groups: list[str]
    slopes: str | None = None


def made(kind: str, shape: str, n: int, seed: int) -> Panel:
    """Return a panel whose effects are normal; the noise has a deviation of .5."""
    state = np.random.RandomState(seed)
    pupil = state.permutation(np.arange(n) % (n // 5))
    school = pupil % 8 if kind == "nested" else state.randint(0, 8, n)
    x = state.randn(n, 3)
    f = {
        "linear": x[:, 0] - 0.5 * x[:, 1],
        "smooth": np.sin(1.5 * x[:, 0]) + 0.5 * x[:, 1] * x[:, 2],
        "stepped": 1.0 * (x[:, 0] > 0.3) - 1.0 * (x[:, 1] > 0.0) * (x[:, 2] > 0.0),
    }[shape]
    y = f + state.randn(n // 5)[pupil] + 0.5 * state.randn(n)
    groups = ["pupil"]
    if kind in ("crossed", "nested"):
        y, groups = y + 0.7 * state.randn(8)[school], ["pupil", "school"]
    if kind == "slopes":
        y = y + 0.8 * state.randn(n // 5)[pupil] * x[:, 2]
    X = pd.DataFrame(x, columns=["a", "b", "dose"])
    X["pupil"] = [f"p{k}" for k in pupil]
    if len(groups) > 1:
        X["school"] = [f"s{k}" for k in school]
    return Panel(f"{kind}, {shape}, {n} rows", X, y, groups, "dose" if kind == "slopes" else None)


def real() -> list[Panel]:
    """Return panels that statsmodels and linearmodels ship."""
    from linearmodels.datasets import jobtraining, wage_panel
    from statsmodels.datasets import grunfeld

    firms = grunfeld.load_pandas().data
    X = firms[["value", "capital", "year", "firm"]].astype({"firm": str})
    panels = [Panel("Grunfeld", X, np.log(firms.invest.to_numpy()), ["firm"], "capital")]
    wages = wage_panel.load()
    wages = wages[wages.nr.isin(wages.nr.unique()[:60])]
    X = wages[["year", "exper", "hours", "married", "union", "educ", "black", "nr"]].astype(float)
    X["nr"] = wages.nr.map("m{}".format)
    panels.append(Panel("wages", X.reset_index(drop=True), wages.lwage.to_numpy(), ["nr"]))
    jobs = jobtraining.load()
    jobs = jobs.dropna(subset=["lscrap", "employ", "sales"])
    X = jobs[["year", "employ", "sales", "grant", "fcode"]].astype(float)
    X["fcode"] = jobs.fcode.map("f{:.0f}".format)
    panels.append(Panel("scrap", X.reset_index(drop=True), jobs.lscrap.to_numpy(), ["fcode"]))
    return panels


def ours(panel: Panel, X: pd.DataFrame, y: np.ndarray, new: pd.DataFrame) -> Any:
    """Return predictions and intervals of the evidence kernel."""
    model = EvidenceKernelRegressor().fit(X, y, groups=panel.groups, slopes=panel.slopes)
    return model.predict(new), *model.predict_interval(new, 0.9)


def mixed(panel: Panel, X: pd.DataFrame, y: np.ndarray, new: pd.DataFrame) -> Any:
    """Return those of a linear mixed model, the variances of the effects of groups included."""
    from statsmodels.regression.mixed_linear_model import MixedLM, VCSpec

    fixed = [name for name in X if name not in panel.groups]
    mean, spread = X[fixed].mean(), X[fixed].std() + 1e-12

    def designs(rows: pd.DataFrame) -> tuple[np.ndarray, list[np.ndarray]]:
        exog = np.column_stack([np.ones(len(rows)), (rows[fixed] - mean) / spread])
        random = []
        for name in panel.groups:
            levels = np.unique(X[name].to_numpy(dtype=object))
            random.append((rows[name].to_numpy(dtype=object)[:, None] == levels).astype(float))
        if panel.slopes is not None:
            z = ((rows[panel.slopes] - mean[panel.slopes]) / spread[panel.slopes]).to_numpy()
            random.append(random[0] * z[:, None])
        return exog, random

    exog, random = designs(X)
    names = [[f"{k}[{j}]" for j in range(each.shape[1])] for k, each in enumerate(random)]
    spec = VCSpec([str(k) for k in range(len(random))], [[n] for n in names], [[Z] for Z in random])
    fit = MixedLM(y, exog, np.ones(len(X)), exog_vc=spec).fit(reml=True)
    variances = [v * np.eye(Z.shape[1]) for v, Z in zip(fit.vcomp, random, strict=True)]
    Z, D = np.hstack(random), _block_diagonal(variances)
    S = Z @ D @ Z.T + fit.scale * np.eye(len(X))
    rest = np.linalg.solve(S, y - exog @ fit.fe_params)
    exog_new, random_new = designs(new)
    K = np.hstack(random_new) @ D @ Z.T
    told = exog_new @ fit.fe_params + K @ rest
    prior = np.einsum("ij,jk,ik->i", np.hstack(random_new), D, np.hstack(random_new))
    left = prior - np.einsum("ij,ji->i", K, np.linalg.solve(S, K.T))
    # of the fixed effects, too
    open_ = exog_new - K @ np.linalg.solve(S, exog)
    left += np.einsum(
        "ij,jk,ik->i", open_, np.linalg.pinv(exog.T @ np.linalg.solve(S, exog)), open_
    )
    width = _WIDE * np.sqrt(np.maximum(left, 0.0) + fit.scale)
    return told, told - width, told + width


def _block_diagonal(blocks: list[np.ndarray]) -> np.ndarray:
    from scipy.linalg import block_diag

    return np.asarray(block_diag(*blocks))


def catboost(panel: Panel, X: pd.DataFrame, y: np.ndarray, new: pd.DataFrame) -> Any:
    """Return those of CatBoost with its defaults, and of its quantiles."""
    from catboost import CatBoostRegressor

    told: dict[str, Any] = {"cat_features": panel.groups, "random_seed": 0, "thread_count": 1}
    told |= {"verbose": 0, "allow_writing_files": False}
    mean = CatBoostRegressor(**told).fit(X, y).predict(new)
    loss = "MultiQuantile:alpha=0.05,0.95"
    ends = CatBoostRegressor(loss_function=loss, iterations=300, **told)
    low, high = ends.fit(X, y).predict(new).T
    return mean, low, high


def gpboost(panel: Panel, X: pd.DataFrame, y: np.ndarray, new: pd.DataFrame) -> Any:
    """Return those of GPBoost: 100 trees and random effects, which it learns together."""
    import gpboost as gpb

    fixed = [name for name in X if name not in panel.groups]
    more: dict[str, Any] = {}
    at: dict[str, Any] = {}
    if panel.slopes is not None:
        more = {"group_rand_coef_data": X[[panel.slopes]].to_numpy(float)}
        more["ind_effect_group_rand_coef"] = [1]
        at = {"group_rand_coef_data_pred": new[[panel.slopes]].to_numpy(float)}
    names, new_names = (each[panel.groups].to_numpy(dtype=object) for each in (X, new))
    effects = gpb.GPModel(group_data=names, likelihood="gaussian", **more)
    settings = {"learning_rate": 0.05, "max_depth": 3, "verbose": -1, "num_threads": 1, "seed": 0}
    data = gpb.Dataset(X[fixed].to_numpy(float), y)
    trees = gpb.train(settings, data, gp_model=effects, num_boost_round=100)
    told = trees.predict(
        new[fixed].to_numpy(float), group_data_pred=new_names, predict_var=True, pred_latent=False,
        **at,
    )  # fmt: skip
    mean, width = told["response_mean"], _WIDE * np.sqrt(told["response_var"])
    return mean, mean - width, mean + width


def judged(panel: Panel, seed: int) -> list[str]:
    """Return what a row of the table has: RMSE and coverage of each."""
    held = np.random.RandomState(seed).rand(len(panel.y)) < 0.3
    # groups that no other row knows are not held out
    for name in panel.groups:
        held &= panel.X[name].isin(panel.X[name][~held]).to_numpy()
    X, new = (panel.X[which].reset_index(drop=True) for which in (~held, held))
    y, truth = panel.y[~held], panel.y[held]
    cells = [panel.name]
    for fit in (ours, mixed, catboost, gpboost):
        began = time.process_time()
        try:
            mean, low, high = fit(panel, X, y, new)
        except (ImportError, OSError):
            cells.append("–")
            continue
        seconds = time.process_time() - began
        error = float(np.sqrt(np.mean((mean - truth) ** 2)))
        inside = float(np.mean((low <= truth) & (truth <= high)))
        cells.append(f"{error:.3f} ({inside:.0%}, {seconds:.1f} s)")
    return cells


def main() -> None:
    """Print a row for each panel."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--part", type=int, nargs=2, default=(0, 1), help="of how many, from 0")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    kinds, shapes = ("levels", "crossed", "nested", "slopes"), ("linear", "smooth", "stepped")
    pairs = [(kind, shape) for shape in shapes for kind in kinds]
    panels = [made(*pair, 120 + 10 * k, asked.seed + k) for k, pair in enumerate(pairs)]
    warnings.simplefilter("ignore")
    say("| panel | ours | MixedLM | CatBoost | GPBoost |\n|---|---|---|---|---|")
    first, n_parts = asked.part
    with threadpool_limits(1):
        for panel in [*panels, *real()][first::n_parts]:
            say("| " + " | ".join(judged(panel, asked.seed)) + " |")


if __name__ == "__main__":
    main()
