"""A second solve of a model's problem: a narrower interval for the optimum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from kernelweave.kernels_core import accepted_triples, algorithms, get_algorithm, relative_gap
from kernelweave.kernels_core.arrays import Labels

from .errors import CommandError
from .fitting import FOLDS
from .machines import kernel_machine
from .model_catalog import fit_model, model_title
from .models import Model
from .progress import fit_bar
from .roles import fit_division, read_division, read_weights
from .scoring.held_out import folds_by
from .summaries import is_rule

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from kernelweave.tables import Table
    from sklearn.base import BaseEstimator

# sets of parameters to the algorithm that proves most about them, and to what writes proof files
_BEST = {"sparse-simplex": "smkl-global", "spectahedron": "tkl-low-rank"}
_PROVERS = {
    "sparse-simplex": "kernelweave.relaxations",
    "spectahedron": "kernelweave.spectahedron",
    "lq-ball": "kernelweave.ridge_mkl",
    "orthant": "kernelweave.ridge_mkl",
}
# rounding of two solves of one problem
_SLACK = 1e-9


def certifier(name: str) -> str:
    """Return the installed algorithm that proves most about the problems of another, or it."""
    installed = algorithms()
    for _, _, constraint in accepted_triples(get_algorithm(name)):
        best = _BEST.get(constraint)
        if best in installed:
            return str(best)
    return name


def certify_model(
    model: Model,
    table: Table,
    y: Labels,
    *,
    algorithm: str | None,
    tol: float,
    max_iter: int | None,
    max_time: float | None,
    proof: Path | None = None,
) -> dict[str, object]:
    """Solve the model's problem again and bound how much better the best kernel could be.

    - `table`, `y`: the training data, and its targets
    - `algorithm`: what solves; `certifier` chooses without it
    - `tol`, `max_time`: relative gap and seconds of the second solve
    - `max_iter`: its iterations at most; by default as many as the model had
    - `proof`: where to write a proof of the optimum, which needs no trust in this library

    Returns: ``objective`` (an upper bound of the model's), ``lower_bound`` and ``upper_bound`` of
    the optimum, ``excess`` (objective over the lower bound, relative), and how it was found. Raises
    CommandError if the data are not those of the fit, or no optimum can be bounded: that of the
    evidence, or of weights that follow from a rule.
    """
    asked, name = model.header.asked, model.header.model
    table = replace(table, kinds=asked.get("kinds", {}))
    X = model.inputs(table)
    _refuse_other_data(model, X, y)
    if proof is not None and _prover(model.header.algorithm) is None:
        raise CommandError(
            "--proof needs a model of sparse weights, of weights of ridge regression or of "
            f"tessellated kernels, and this one was fitted by {model.header.algorithm}: use fit "
            "--model sparse, ridge, gmkl or tkl"
        )
    if is_rule(model.header.algorithm):
        raise CommandError(
            f"the weights of {model_title(name)} follow from a rule and are not optimised: there "
            "is no optimum to compare them with"
        )
    if model.header.is_estimate or hasattr(model.machine, "log_evidence_"):
        raise CommandError(
            f"nothing can be proved of the {model_title(name)}: no bound is known for the evidence "
            "of other kernels. Its cross-validated score says what to expect of new rows"
        )
    from sklearn.base import clone

    again = clone(model.estimator)
    changed = {} if max_iter is None else {"max_iter": max_iter}
    kernel_machine(again).set_params(max_time=max_time, **changed)
    weight = read_weights(table, asked["weights"]) if asked.get("weights") else None
    division = {each: asked.get(each) for each in ("cv", "groups", "order")}
    division = read_division(table, model.header.columns, **division)
    counts = np.ones(len(y)) if weight is None else weight
    folds = folds_by(X, y, model.header.task, FOLDS, 0, weight=counts, **division)
    refit = partial(fit_model, again, X, y, weight, **fit_division(name, division, folds))
    return _bounded(model, again, refit, algorithm, tol, proof)


def _refuse_other_data(model: Model, X: pd.DataFrame, y: Labels) -> None:
    """Raise where the rows are not as many, or the targets not those, of the fit."""
    if len(X) != model.header.n_samples:
        raise CommandError(
            f"the model was fitted on {model.header.n_samples} rows, and this table has {len(X)}: "
            "pass the table it was fitted on"
        )
    held_out = model.held_out
    if held_out is not None and not np.array_equal(held_out.truth, y[held_out.rows]):
        raise CommandError(
            f"the model was fitted on other values of the target {model.header.target!r}: pass the "
            "table it was fitted on"
        )


def _bounded(
    model: Model,
    again: BaseEstimator,
    refit: Callable[[], object],
    algorithm: str | None,
    tol: float,
    proof: Path | None,
) -> dict[str, object]:
    """Solve again and return the bounds beside the model's objective."""
    name = certifier(model.header.algorithm) if algorithm is None else algorithm
    machine = kernel_machine(again)
    # a file's own rounding takes a part of the gap
    machine.set_params(tol=tol if proof is None else 0.5 * tol)
    if name != model.header.algorithm:
        machine.set_params(algorithm=name)
    with fit_bar(f"solving again by {name}"):
        refit()
    result, old = kernel_machine(again).result_, model.machine.result_
    lower, upper = result.lower_bound, result.upper_bound
    room = _SLACK * max(abs(upper), abs(old.upper_bound))
    if lower > old.upper_bound + room or old.lower_bound > upper + room:
        raise CommandError(
            f"the optimum for this table is in [{lower:.6g}, {upper:.6g}], that of the model in "
            f"[{old.lower_bound:.6g}, {old.upper_bound:.6g}]: it was fitted on other data or "
            "weights"
        )
    lower, upper = max(lower, old.lower_bound), min(upper, old.upper_bound)
    if proof is not None:
        _write_proof(kernel_machine(again), tol, proof)
    return {
        "objective": old.upper_bound,
        "lower_bound": lower,
        "upper_bound": upper,
        "excess": relative_gap(lower, old.upper_bound),
        "premise": result.premise,
        "algorithm": name,
        "n_iter": result.n_iter,
        "seconds": result.seconds,
        "status": result.status.label,
    }


def _prover(algorithm: str) -> str | None:
    """Return the package that proves the optima of an algorithm's problems in files."""
    if algorithm not in algorithms():
        return None
    sets = [constraint for _, _, constraint in accepted_triples(get_algorithm(algorithm))]
    return next((_PROVERS[name] for name in sets if name in _PROVERS), None)


def _write_proof(machine: BaseEstimator, tol: float, path: Path) -> None:
    """Write a proof of the optimum; raise CommandError where it cannot be closed."""
    from importlib import import_module

    from kernelweave.qp_smo import UnprovedError

    package = _PROVERS[machine.problem_.constraint.name]
    try:
        prove = import_module(package).prove
    except ImportError as error:
        needed = package.replace(".", "-").replace("_", "-")
        raise CommandError(f"--proof needs {needed}: pip install it") from error
    try:
        prove(machine, tol=tol, max_time=machine.max_time).save(path)
    except UnprovedError as error:
        raise CommandError(f"no proof was written: {error}") from error
