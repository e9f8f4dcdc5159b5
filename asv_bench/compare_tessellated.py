"""What the search of C, ε and δ gains over a fixed tube and box, beside a random forest.

Eleven tables of numbers, 400 rows to learn from and up to 1,000 others to predict, two draws each:
R² of `TessellatedKernelRegressorCV` as it is, with ε = 0.1 and δ = 0.5, between which only C is
searched, and of 200 trees of scikit-learn. CPU seconds of one thread.

    python asv_bench/compare_tessellated.py FOLDER [--only gas]

FOLDER holds the CSV files that ``kernelweave tables`` reads.
"""

from __future__ import annotations

import argparse
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from kernelweave.papers.data import load
from kernelweave.spectahedron import TessellatedKernelRegressorCV
from sklearn.datasets import load_diabetes, make_friedman1, make_friedman2, make_friedman3
from sklearn.ensemble import RandomForestRegressor
from threadpoolctl import threadpool_limits

N_TRAIN, N_TEST, DRAWS = 400, 1000, 2
say = partial(print, flush=True)
FILES = {
    "Boston housing": "boston_housing.csv",
    "CCPP": "ccpp.csv",
    "Space": "space_ga.csv",
    "Abalone, rings": "abalone_rings.csv",
    "California housing": "california_housing.csv.gz",
    "Grand Canyon": "grand_canyon_750.csv",
    "Gas turbine": "gas_turbine.csv.gz",
}
MADE = {
    "Diabetes": partial(load_diabetes, return_X_y=True),
    "Friedman 1": partial(make_friedman1, 1000, noise=0.5, random_state=1),
    "Friedman 2": partial(make_friedman2, 1000, noise=20.0, random_state=1),
    "Friedman 3": partial(make_friedman3, 1000, noise=0.02, random_state=1),
}
MODELS = {
    "searched": TessellatedKernelRegressorCV,
    "fixed": partial(TessellatedKernelRegressorCV, epsilon=0.1, delta=0.5),
    "forest": partial(RandomForestRegressor, 200, random_state=0),
}


def compare(name: str, folder: Path) -> list[float]:
    """Print a line for each draw; return the ratio of squared errors, searched to fixed."""
    X, y = MADE[name]() if name in MADE else load(folder / FILES[name])
    X, y, ratios = np.asarray(X, dtype=float), np.asarray(y, dtype=float), []
    for draw in range(DRAWS):
        order = np.random.RandomState(draw).permutation(len(y))
        train, test = order[:N_TRAIN], order[N_TRAIN : N_TRAIN + N_TEST]
        left, line = {}, f"{name}, draw {draw}:"
        for label, make in MODELS.items():
            began = time.process_time()
            model = make().fit(X[train], y[train])
            score = float(model.score(X[test], y[test]))
            line += f" {label} {score:.4f} ({time.process_time() - began:.1f} s)"
            left[label] = 1.0 - score
        ratios.append(left["searched"] / left["fixed"])
        say(f"{line} ratio {ratios[-1]:.2f}")
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="tables whose name holds this word")
    given = parser.parse_args()
    ratios: list[float] = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in (*MADE, *FILES):
            if given.only.lower() in name.lower():
                ratios += compare(name, given.folder)
    geomean, least, most = np.exp(np.mean(np.log(ratios))), min(ratios), max(ratios)
    say(f"squared errors, searched to fixed: {geomean:.2f}, {least:.2f} to {most:.2f}")


if __name__ == "__main__":
    main()
