"""Every public solver on Gram matrices, and why the other public functions are not here."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from expectations import Case, Fault


@dataclass(frozen=True)
class Solver:
    """A public function, its fixed arguments, and what comes out of it.

    ``single`` says that it takes one Gram matrix, ``psd`` that it refuses every indefinite one,
    ``targets`` that it takes y after the matrices.
    """

    name: str
    function: Callable[..., Any]
    task: str
    fixed: dict[str, Any]
    values: Callable[[Any], Any]
    single: bool = False
    psd: bool = False
    targets: bool = True

    @property
    def abilities(self) -> set[str]:
        """What a fault may need."""
        known = set(inspect.signature(self.function).parameters)
        given = {"y": self.targets, "weight": "sample_weight" in known}
        given |= {"psd": self.psd, "stack": not self.single}
        return known - {"y"} | {name for name, it in given.items() if it}

    def takes(self, fault: Fault) -> bool:
        """Whether the fault can be done to it."""
        return fault.task in (None, self.task) and set(fault.needs) <= self.abilities

    def run(self, case: Case) -> Any:
        """Solve, and return the numbers that must be finite."""
        weight = {} if case.weight is None else {"sample_weight": case.weight}
        K = case.X[0] if self.single else case.X
        settings = {**self.fixed, **case.params}
        return self.values(self.function(K, *[case.y] * self.targets, **settings, **weight))


def _dual(solution: Any) -> Any:
    assert solution.lower_bound <= solution.upper_bound
    return solution.dual_coef, solution.intercept, solution.lower_bound


def _weights(solution: Any) -> Any:
    assert np.all(solution.weights >= 0.0)
    return solution.weights, solution.lower_bound, solution.upper_bound


def _bound(bound: Any) -> Any:
    return (bound.bound,)


def _path(path: Any) -> Any:
    return np.stack([point.weights for point in path.points]) if path.points else ()


def _numbers(values: Any) -> Any:
    return values if isinstance(values, tuple) else (values,)


def solvers() -> list[Solver]:
    """Return the solvers of all packages."""
    return [*_of_packages(), *_of_plugins(), *_of_matrix_equations()]


def _of_packages() -> list[Solver]:
    from kernelweave import mkl_sparse, qp_smo, relaxations

    quick = {"C": 1.0, "tol": 1e-2}
    sparse = {**quick, "lam": 0.5, "k0": 1}
    path = {"Cs": (1.0,), "lams": (0.5,), "k0s": (1,)}
    cl, re = "classification", "regression"
    return [
        Solver("solve_svc", qp_smo.solve_svc, cl, quick, _dual, single=True),
        Solver("solve_svr", qp_smo.solve_svr, re, {**quick, "epsilon": 0.1}, _dual, single=True),
        Solver("solve_quantile_svr", qp_smo.solve_quantile_svr, re, quick, _dual, single=True),
        Solver("solve_kernel_weights", qp_smo.solve_kernel_weights, cl, quick, _weights, psd=True),
        Solver("lower_bound", relaxations.lower_bound, cl, sparse, _bound, psd=True),
        Solver("solve_global", relaxations.solve_global, cl, sparse, _weights, psd=True),
        Solver("sparse_mkl_path", mkl_sparse.sparse_mkl_path, cl, path, _path, psd=True),
    ]


def _of_plugins() -> list[Solver]:
    from kernelweave import baselines

    cl, re = "classification", "regression"
    return [
        Solver("alignment_weights", baselines.alignment_weights, re, {}, _numbers),
        Solver("easymkl_weights", baselines.easymkl_weights, cl, {}, _numbers, psd=True),
    ]


def _of_matrix_equations() -> list[Solver]:
    from kernelweave import vv_rkhs

    quick = {"p": 1.0, "lam": 1.0}
    methods = ("auto", "cg", "cholesky", "columns", "eigen")
    return [
        *(_sylvester(each) for each in methods),
        Solver(
            "rademacher_bound",
            vv_rkhs.rademacher_bound,
            "regression",
            {**quick, "tau": 1.0},
            _numbers,
            False,
            True,
            False,
        ),
    ]


def _sylvester(method: str) -> Solver:
    """Return K C + λC = y, one output, as a solver."""
    from kernelweave.vv_rkhs import solve_sylvester

    def solve(K: Any, y: Any, *, lam: float = 1.0) -> Any:
        return solve_sylvester(
            np.asarray(K), np.eye(1), np.asarray(y)[:, None], lam, method=method
        ).C

    name = "solve_sylvester" + ("" if method == "auto" else f"_{method}")
    return Solver(name, solve, "regression", {}, _numbers, single=True)


# Public functions that solve nothing on Gram matrices, and where their arguments are tested.
ELSEWHERE = {
    "settings and the registry, in the tests of kernels-core": {
        *(
            "accepted_triples",
            "algorithms",
            "as_grams",
            "as_sklearn_gp_kernel",
            "commands",
            "components",
        ),
        *("config_context", "datasets", "default_kernels", "get_algorithm", "get_component"),
        *("get_config", "plugins", "register_plugin", "relative_gap", "solve", "watch"),
    },
    "they fit estimators, which are in the matrix": {"certify", "lasso_var"},
    "models and files of sums, in the tests of evidence": {"merge"},
    "proofs, in the tests of relaxations and of the checker": {"prove", "prove_sparse", "check"},
    "readers of tables, in the tests of their package": {
        *("choose_event", "choose_target", "plan_columns", "read_target", "split_by_target"),
    },
    "pictures and files, in the tests of their packages": {
        *("plot_weights", "plot_effect", "graph_page"),
        *("load_model", "save_model", "read_table", "tables"),
    },
}
