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
    """A public function, its fixed arguments, and what comes out of it."""

    name: str
    function: Callable[..., Any]
    task: str
    fixed: dict[str, Any]
    values: Callable[[Any], Any]
    single: bool = False
    psd: bool = False

    @property
    def abilities(self) -> set[str]:
        """What a fault may need."""
        known = set(inspect.signature(self.function).parameters)
        found = known | {"y"}
        found |= {"weight"} if "sample_weight" in known else set()
        return found | ({"psd"} if self.psd else set())

    def takes(self, fault: Fault) -> bool:
        """Whether the fault can be done to it."""
        return fault.task in (None, self.task) and set(fault.needs) <= self.abilities

    def run(self, case: Case) -> Any:
        """Solve, and return the numbers that must be finite."""
        weight = {} if case.weight is None else {"sample_weight": case.weight}
        K = case.X[0] if self.single else case.X
        settings = {**self.fixed, **case.params}
        return self.values(self.function(K, case.y, **settings, **weight))


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


def solvers() -> list[Solver]:
    """Return the solvers whose packages are installed."""
    from kernelweave import mkl_sparse, qp_smo, relaxations

    quick = {"C": 1.0, "tol": 1e-2}
    sparse = {**quick, "lam": 0.5, "k0": 1}
    path = {"Cs": (1.0,), "lams": (0.5,), "k0s": (1,)}
    cl, re = "classification", "regression"
    return [
        Solver("solve_svc", qp_smo.solve_svc, cl, quick, _dual, single=True),
        Solver("solve_svr", qp_smo.solve_svr, re, {**quick, "epsilon": 0.1}, _dual, single=True),
        Solver("solve_squared_hinge_svc", qp_smo.solve_squared_hinge_svc, cl, quick, _dual, True),
        Solver("solve_kernel_weights", qp_smo.solve_kernel_weights, cl, quick, _weights, psd=True),
        Solver("lower_bound", relaxations.lower_bound, cl, sparse, _bound, psd=True),
        Solver("solve_global", relaxations.solve_global, cl, sparse, _weights, psd=True),
        Solver("sparse_mkl_path", mkl_sparse.sparse_mkl_path, cl, path, _path, psd=True),
    ]


# Functions that take Gram matrices as they are: the solvers above, or the estimators, check them.
INNER = {
    *("alignment_weights", "centered_products", "easymkl_weights", "margin_distribution"),
    *("single_kernel_accuracies", "ridge_gradient", "ridge_hessian", "ridge_objective"),
    *("misdp", "closed_form_output_kernel", "rademacher_average", "rademacher_bound"),
    *("solve_sylvester", "solve_sylvester_cg", "solve_sylvester_cholesky"),
    *("solve_sylvester_columns", "solve_sylvester_eigen", "solve_sylvester_low_rank"),
    "choose_method",
}
# Public functions that solve nothing on Gram matrices, and where their arguments are tested.
ELSEWHERE = {
    "settings and the registry, in the tests of kernels-core": {
        *("algorithms", "as_grams", "as_sklearn_gp_kernel", "commands", "components"),
        *("config_context", "datasets", "default_kernels", "get_algorithm", "get_component"),
        *("get_config", "plugins", "register_plugin", "relative_gap", "solve", "tables", "watch"),
    },
    "they fit estimators, which are in the matrix": {"cross_validate_path", "certify", "lasso_var"},
    "projections and steps of one vector or matrix, in the tests of their packages": {
        *("project_sparse_simplex", "project_simplex", "project_spectahedron", "sparse_sdp"),
        *("project_lq_ball", "update_weights", "average_weights", "proportional_weights"),
    },
    "numbers and series, in the tests of their packages": {
        *("margin_bound", "lagged_samples", "lorenz96", "score_graph", "low_rank_factor"),
        "random_fourier_factor",
    },
    "pictures and files, in the tests of their packages": {
        *("plot_weights", "plot_output_kernel"),
        *("load_model", "save_model", "read_table"),
    },
}
# Functions that take no samples.
OTHER_ARGUMENTS = {"K", "kernels", "grams", "Z"}
