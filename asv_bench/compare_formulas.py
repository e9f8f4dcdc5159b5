"""The evidence kernel beside scikit-learn's Gaussian process on formulas of engineering and tests.

The formulas, domains and sizes of "On the Uncertainty Quantification Ability of Tabular Foundation
Models" (Johnson et al. 2026, arXiv 2606.01427; github.com/kianswarehouse/GPvsPFN), which compares
TabPFN with Gaussian processes. Ten or twenty rows for each input are learned from, and 5,000 others
predicted, all points of one scrambled Sobol sequence; each run has a sequence of its own. Wing,
borehole and buckling have 10, 8 and 4 inputs of their own, three of buckling are names; what the
others have can be asked for.

Printed are means over runs, and the standard error of the first:

- the root mean squared error, over the standard deviation of the test rows' targets
- the share of test rows that intervals of 95 % hold
- their interval score (Gneiting and Raftery 2007), over the same standard deviation: the width,
  and 40 times what a target lies outside
- CPU seconds of the fit, and of all predictions, on one thread

of `EvidenceKernelRegressor` as it is, by the jackknife+, and of a Gaussian process with a length
scale for each input and noise, which gets inputs between 0 and 1 and three starts.

    python asv_bench/compare_formulas.py [--only wing] [--inputs 10] [--rows 10 20] [--runs 5]
                                         [--noise 0.002] [--json FILE]

Noise is in standard deviations, and added to all rows.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from kernelweave.evidence import EvidenceKernelRegressor
from numpy.typing import NDArray
from scipy.stats import qmc
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder
from threadpoolctl import threadpool_limits

Floats = NDArray[np.float64]
N_TEST, CONFIDENCE, REACH = 5000, 0.95, 1.96
Predicts = Callable[[pd.DataFrame], tuple[Floats, Floats, Floats]]  # means, ends of intervals
say = partial(print, flush=True)


def wing(x: Floats) -> Floats:
    """Weight of a light aircraft's wing (Forrester, Sobester and Keane 2008), angles in degrees."""
    area, fuel, aspect, sweep, pressure, taper, thickness, load, gross, paint = x.T
    cosine = np.cos(np.radians(sweep))
    wings = 0.036 * area**0.758 * fuel**0.0035 * (aspect / cosine**2) ** 0.6 * pressure**0.006
    rest = taper**0.04 * (100 * thickness / cosine) ** -0.3 * (load * gross) ** 0.49
    weight: Floats = wings * rest + area * paint
    return weight


def borehole(x: Floats) -> Floats:
    """Water that flows through a borehole in a year (Morris, Mitchell and Ylvisaker 1993)."""
    radius, reach, upper, upper_head, lower, lower_head, length, conducts = x.T
    log = np.log(reach / radius)
    against = log + 2 * length * upper / (radius**2 * conducts) + log * upper / lower
    flow: Floats = 2 * np.pi * upper * (upper_head - lower_head) / against
    return flow


def buckling(x: Floats) -> Floats:
    """Load on a column, by its length and three kinds, of stiffness, ends and section."""
    stiffness = np.array([73.1, 200.0])[x[:, 1].astype(int)]
    ends = np.array([0.5, 0.7, 1.0, 2.0])[x[:, 2].astype(int)]
    section = np.array([9.49, 12.1, 29.5])[x[:, 3].astype(int)]
    load: Floats = np.pi * stiffness * section / (x[:, 0] * ends) ** 2
    return load


def ackley(x: Floats) -> Floats:
    bowl = -20 * np.exp(-0.2 * np.sqrt(np.mean(x**2, axis=1)))
    values: Floats = bowl - np.exp(np.mean(np.cos(2 * np.pi * x), axis=1)) + 20 + np.e
    return values


def rastrigin(x: Floats) -> Floats:
    values: Floats = np.sum(x**2 - 10 * np.cos(2 * np.pi * x) + 10, axis=1)
    return values


def rosenbrock(x: Floats) -> Floats:
    now, following = x[:, :-1], x[:, 1:]
    values: Floats = np.sum(100 * (following - now**2) ** 2 + (1 - now) ** 2, axis=1)
    return values


def zakharov(x: Floats) -> Floats:
    slope = x @ np.arange(1, x.shape[1] + 1) / 2
    values: Floats = np.sum(x**2, axis=1) + slope**2 + slope**4
    return values


def griewank(x: Floats) -> Floats:
    waves = np.prod(np.cos(x / np.sqrt(np.arange(1, x.shape[1] + 1))), axis=1)
    values: Floats = np.sum(x**2, axis=1) / 4000 - waves + 1
    return values


def dixon_price(x: Floats) -> Floats:
    places = np.arange(2, x.shape[1] + 1)
    values: Floats = (x[:, 0] - 1) ** 2 + (2 * x[:, 1:] ** 2 - x[:, :-1]) ** 2 @ places
    return values


class Formula(NamedTuple):
    """A function, the ends of its inputs, one pair for all or one each, and columns of names."""

    of: Callable[[Floats], Floats]
    low: tuple[float, ...]
    high: tuple[float, ...]
    named: tuple[int, ...] = ()


FORMULAS = {
    "wing": Formula(
        wing,
        (150, 220, 6, -10, 16, 0.5, 0.08, 2.5, 1700, 0.025),
        (200, 300, 10, 10, 45, 1, 0.18, 6, 2500, 0.08),
    ),
    "borehole": Formula(
        borehole,
        (0.05, 100, 63070, 990, 63.1, 700, 1120, 9855),
        (0.15, 50000, 115600, 1110, 116, 820, 1680, 12045),
    ),
    "buckling": Formula(buckling, (0.5, 0, 0, 0), (1.5, 2, 4, 3), named=(1, 2, 3)),
    "ackley": Formula(ackley, (-5,), (10,)),
    "rastrigin": Formula(rastrigin, (-10,), (10,)),
    "rosenbrock": Formula(rosenbrock, (-5,), (10,)),
    "zakharov": Formula(zakharov, (-5,), (10,)),
    "griewank": Formula(griewank, (-600,), (600,)),
    "dixon-price": Formula(dixon_price, (-10,), (10,)),
}


def drawn(formula: Formula, inputs: int, noise: float, run: int) -> tuple[pd.DataFrame, Floats]:
    """Return 8,192 points and their values, in any order; those of a kind are named."""
    points = qmc.Sobol(inputs, scramble=True, rng=run).random_base2(13)
    low, high = (np.broadcast_to(ends, inputs) for ends in (formula.low, formula.high))
    rng = np.random.default_rng(run)
    x = rng.permutation(low + points * (high - low))
    x[:, formula.named] = np.floor(x[:, formula.named])
    y = formula.of(x)
    table = pd.DataFrame(x, columns=[f"x{place}" for place in range(inputs)])
    for place in formula.named:
        table[f"x{place}"] = [f"kind {int(value)}" for value in x[:, place]]
    return table, y + noise * y.std() * rng.normal(size=len(y))


def evidence(X: pd.DataFrame, y: Floats) -> Predicts:
    """Learn the rows with the estimator as it is."""
    model = EvidenceKernelRegressor().fit(X, y)
    return lambda new: (model.predict(new), *model.predict_interval(new, confidence=CONFIDENCE))


def process(X: pd.DataFrame, y: Floats) -> Predicts:
    """Learn the rows with a Gaussian process of scikit-learn, with inputs between 0 and 1."""
    scaled = make_column_transformer(
        (MinMaxScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(sparse_output=False), make_column_selector(dtype_exclude="number")),
    )
    Z = scaled.fit_transform(X)
    smooth = ConstantKernel(1.0, (1e-3, 1e5)) * RBF(np.ones(Z.shape[1]), (1e-2, 1e3))
    kernel = smooth + WhiteKernel(1e-3, (1e-8, 1e1))
    model = GaussianProcessRegressor(
        kernel, normalize_y=True, n_restarts_optimizer=2, random_state=0
    ).fit(Z, y)

    def predicts(new: pd.DataFrame) -> tuple[Floats, Floats, Floats]:
        mean, deviation = model.predict(scaled.transform(new), return_std=True)
        return mean, mean - REACH * deviation, mean + REACH * deviation

    return predicts


MODELS = {"evidence": evidence, "process": process}


def measured(
    learn: Callable[[pd.DataFrame, Floats], Predicts], table: pd.DataFrame, y: Floats, n: int
) -> dict[str, float]:
    """Learn `n` rows, predict the next 5,000, and return what is printed of them."""
    began = time.process_time()
    predicts = learn(table[:n], y[:n])
    learned = time.process_time()
    (mean, low, high), truth = predicts(table[n : n + N_TEST]), y[n : n + N_TEST]
    done, spread = time.process_time(), float(truth.std())
    outside = np.maximum(low - truth, 0.0) + np.maximum(truth - high, 0.0)
    score = np.mean(high - low) + 2 / (1 - CONFIDENCE) * np.mean(outside)
    return {
        "error": float(np.sqrt(np.mean((mean - truth) ** 2))) / spread,
        "coverage": float(np.mean(outside == 0.0)),
        "score": float(score) / spread,
        "fit": learned - began,
        "predict": done - learned,
    }


def compare(name: str, inputs: int, n: int, noise: float, runs: int) -> list[dict[str, Any]]:
    """Print a line for each model, and what ours warned of; return all runs of both."""
    found: list[dict[str, Any]] = []
    each: dict[str, list[dict[str, float]]] = {label: [] for label in MODELS}
    warned: Counter[str] = Counter()
    for run in range(runs):
        table, y = drawn(FORMULAS[name], inputs, noise, run)
        for label, learn in MODELS.items():
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                each[label].append(measured(learn, table, y, n))
            if label == "evidence":
                warned.update({f"{one.category.__name__}: {one.message}" for one in said})
    for label, of_runs in each.items():
        mean = {key: float(np.mean([run[key] for run in of_runs])) for key in of_runs[0]}
        errors = [run["error"] for run in of_runs]
        error = float(np.std(errors, ddof=1)) / runs**0.5 if runs > 1 else np.nan
        say(
            f"{name:12} {inputs:3d} {n:5d} {noise:6g} {label:9} {mean['error']:8.4f} ± {error:.4f} "
            f"{100 * mean['coverage']:6.1f} % {mean['score']:8.4f} {mean['fit']:8.2f} "
            f"{mean['predict']:8.2f}"
        )
        setting = {"formula": name, "inputs": inputs, "rows": n, "noise": noise, "model": label}
        found.append(setting | {"runs": of_runs})
    for text, times in warned.items():
        say(f"    evidence, in {times} of {runs} runs: {text}")
    return found


def main() -> None:
    """Read the command line, and compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="*", default=list(FORMULAS), choices=list(FORMULAS))
    parser.add_argument("--inputs", type=int, default=10, help="of formulas that take any number")
    parser.add_argument("--rows", type=int, nargs="*", default=[10, 20], help="for each input")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--noise", type=float, default=0.0)
    parser.add_argument("--json", type=Path, default=None, help="file that all runs are added to")
    asked = parser.parse_args()
    say(f"{'':12} {'':>3} {'rows':>5} {'noise':>6} {'':9} {'RMSE/std':>17} {'held':>8} ", end="")
    say(f"{'score':>8} {'fit s':>8} {'predict s':>9}")
    with threadpool_limits(1):
        table, y = drawn(FORMULAS["buckling"], 4, 0.0, 0)
        evidence(table[:60], y[:60])(table[:60])  # what is compiled is loaded before the clock runs
        for name in asked.only:
            own = len(FORMULAS[name].low)
            inputs = own if own > 1 else asked.inputs
            for rows in asked.rows:
                found = compare(name, inputs, rows * inputs, asked.noise, asked.runs)
                if asked.json is not None:
                    kept = json.loads(asked.json.read_text()) if asked.json.exists() else []
                    asked.json.write_text(json.dumps(kept + found, indent=1))


if __name__ == "__main__":
    main()
