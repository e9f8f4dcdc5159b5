"""CPU seconds of `solve_svc` and `solve_svr` beside scikit-learn's SVC and SVR (LIBSVM).

Both get the same Gram matrix, as ``rbf_kernel`` returns it on standardised columns, in one process,
by turns, on one thread; each figure is the least of some runs after one that warms up. The
tolerance is 1e-3, the default of both: a violation for scikit-learn, for ours a proved relative gap
after that violation. Our interval must hold the dual value of scikit-learn's point.

    python asv_bench/compare_svc.py FOLDER              the problems of docs/benchmarks
    python asv_bench/compare_svc.py FOLDER --choose     those that settings were chosen on
    python asv_bench/compare_svc.py --only made         those whose name holds a word

FOLDER holds the public data sets as CSV files with the target last; without it those that
scikit-learn brings or makes are run.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from kernelweave.qp_smo import solve_svc, solve_svr
from sklearn.datasets import load_breast_cancer, load_digits, make_classification, make_friedman1
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from threadpoolctl import threadpool_limits

EPSILON = 0.1
say = partial(print, flush=True)
# seconds of runs of one problem, after which no further one starts; and the most runs
ENOUGH, MOST_RUNS = 6.0, 9


@dataclass(frozen=True)
class Problem:
    """A data set, the rows of it that are taken, and the settings of both solvers.

    `kind`: ``svc``, ``svr``, or either with ``weighted``: sample weights between .1 and 2.
    """

    name: str
    n: int
    C: float
    kind: str = "svc"


CHOSEN = (
    Problem("ionosphere", 351, 10.0),
    Problem("cancer", 569, 100.0),
    Problem("pima", 768, 10.0),
    Problem("fourclass", 862, 1000.0),
    Problem("mammographic", 961, 0.1),
    Problem("digits", 1797, 10.0),
    Problem("checkerboard", 2000, 1000.0),
    Problem("space_ga", 3000, 1.0),
    Problem("made", 3000, 100.0),
    Problem("ccpp", 6000, 10.0),
    Problem("boston_housing", 506, 10.0, "svr"),
    Problem("space_ga", 3000, 1.0, "svr"),
    Problem("pima", 768, 10.0, "svc weighted"),
)
REPORTED = (
    Problem("heart_cleveland", 303, 1.0),
    Problem("liver_bupa", 345, 100.0),
    Problem("transfusion", 748, 1000.0),
    Problem("german_numeric", 1000, 100.0),
    Problem("hill_valley_with_noise", 1212, 1000.0),
    Problem("banknote", 1372, 1.0),
    Problem("airfoil", 1503, 100.0),
    Problem("abalone", 3500, 0.1),
    Problem("spambase", 3500, 10.0),
    Problem("spambase", 3500, 100.0),
    Problem("spambase", 4601, 1000.0),
    Problem("made wide", 5000, 1.0),
    Problem("california_housing", 5000, 100.0),
    Problem("gas_turbine", 5000, 1000.0),
    Problem("shill_bidding", 6321, 10.0),
    Problem("made noisy", 7000, 0.1),
    Problem("california_housing", 8000, 1.0),
    Problem("ccpp", 9568, 0.1),
    Problem("made wide", 10000, 10.0),
    Problem("gas_turbine", 10000, 1.0),
    Problem("airfoil", 1503, 100.0, "svr"),
    Problem("abalone_rings", 3500, 1.0, "svr"),
    Problem("california_housing", 3500, 10.0, "svr"),
    Problem("friedman", 2000, 1000.0, "svr"),
    Problem("gas_turbine", 6000, 0.1, "svr"),
    Problem("german_numeric", 1000, 1.0, "svc weighted"),
    Problem("spambase", 3500, 10.0, "svc weighted"),
    Problem("airfoil", 1503, 10.0, "svr weighted"),
)


def table(problem: Problem, folder: Path | None) -> tuple[np.ndarray, np.ndarray] | None:
    """Return features and targets of a problem's rows, or None where its file is not there."""
    name, n, rng = problem.name, problem.n, np.random.default_rng(0)
    if name == "cancer":
        return load_breast_cancer(return_X_y=True)
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return X, y % 2
    if name == "checkerboard":
        X = rng.random((n, 2))
        wave = np.sin(9.0 * X[:, 0]) * np.sin(9.0 * X[:, 1])
        return X, wave + 0.1 * rng.normal(size=n) > 0.0
    if name == "friedman":
        return make_friedman1(n, noise=0.5, random_state=0)
    if name.startswith("made"):
        columns = {"made": 10, "made wide": 30, "made noisy": 10}[name]
        noise = 0.3 if "noisy" in name else 0.05
        return make_classification(
            n, columns, n_informative=columns // 2, flip_y=noise, random_state=0
        )
    files = [] if folder is None else sorted(folder.glob(f"{name}.csv*"))
    if not files:
        return None
    values = np.loadtxt(files[0], delimiter=",", skiprows=1)
    values = values[rng.permutation(len(values))[:n]]
    return values[:, :-1], values[:, -1]


def targets(y: np.ndarray, kind: str) -> np.ndarray:
    """Return targets of variance 1, or classes: those given, or above the median."""
    if kind.startswith("svr"):
        return (y - y.mean()) / y.std()
    values = np.unique(y)
    return np.where(y > (np.median(y) if len(values) > 2 else values.mean()), 1.0, -1.0)


def least_seconds(runs: list[Callable[[], object]]) -> list[float]:
    """Return the least CPU seconds of each, run by turns after one round that warms up."""
    for run in runs:
        run()
    least, started = [np.inf] * len(runs), time.process_time()
    for _ in range(MOST_RUNS):
        for i, run in enumerate(runs):
            before = time.process_time()
            run()
            least[i] = min(least[i], time.process_time() - before)
        if time.process_time() - started > ENOUGH:
            break
    return least


def compare(problem: Problem, X: np.ndarray, y: np.ndarray) -> float:
    """Print both seconds, their ratio, both gaps and the steps of both; return the ratio."""
    K = rbf_kernel(StandardScaler().fit_transform(X))
    wanted, n, C = targets(y, problem.kind), len(X), problem.C
    weight = None
    if "weighted" in problem.kind:
        weight = np.random.default_rng(1).uniform(0.1, 2.0, n)
    if problem.kind.startswith("svr"):
        ours = partial(solve_svr, K, wanted, C=C, epsilon=EPSILON, sample_weight=weight)
        theirs = SVR(kernel="precomputed", C=C, epsilon=EPSILON)
    else:
        ours = partial(solve_svc, K, wanted, C=C, sample_weight=weight)
        theirs = SVC(kernel="precomputed", C=C)
    libsvm = partial(theirs.fit, K, wanted, sample_weight=weight)
    solution, fitted = ours(), libsvm()
    u = np.zeros(n)
    u[fitted.support_] = fitted.dual_coef_[0]
    linear = wanted @ u - (EPSILON * np.abs(u).sum() if problem.kind.startswith("svr") else 0.0)
    value = linear - 0.5 * u @ K @ u
    assert value <= solution.upper_bound * (1.0 + 1e-9), (value, solution.upper_bound)
    seconds = least_seconds([libsvm, ours])
    steps = int(np.sum(fitted.n_iter_))
    ratio = seconds[0] / seconds[1]
    say(
        f"{problem.name:23} {problem.kind:12} {n:6d} {C:6g} {1e3 * seconds[0]:10.2f} "
        f"{1e3 * seconds[1]:9.2f} {ratio:6.2f} {solution.gap:9.1e} "
        f"{(solution.upper_bound - value) / solution.upper_bound:9.1e} "
        f"{steps:8d} {solution.n_iter:8d} {solution.status.value}"
    )
    return ratio


def problems(arguments: argparse.Namespace) -> Iterator[tuple[Problem, np.ndarray, np.ndarray]]:
    """Yield the problems that were asked for and whose data are there."""
    for problem in CHOSEN if arguments.choose else REPORTED:
        if arguments.only in f"{problem.name} {problem.kind}":
            found = table(problem, arguments.folder)
            if found is not None:
                yield problem, *found


def main() -> None:
    """Print a line for each problem, and the geometric mean and the least ratio of each kind."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    head = ("rows", "C", "LIBSVM ms", "ours ms", "ratio", "our gap", "their gap", "steps", "steps")
    say("{:23} {:12} {:>6} {:>6} {:>10} {:>9} {:>6} {:>9} {:>9} {:>8} {:>8}".format("", "", *head))
    ratios: dict[str, list[float]] = {}
    with threadpool_limits(1):
        for problem, X, y in problems(arguments):
            kind = "to 3,500 rows" if problem.n <= 3500 else "to 10,000 rows"
            kind = kind if problem.kind == "svc" else "regression and weights"
            ratios.setdefault(kind, []).append(compare(problem, X, y))
    for kind, each in ratios.items():
        mean = np.exp(np.mean(np.log(each)))
        say(f"{kind}: geometric mean {mean:.2f}, least {min(each):.2f} of {len(each)}")


if __name__ == "__main__":
    main()
