"""From what a user asks for to a fitted estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kernelweave.kernels_core import AlgorithmSpec, get_algorithm, get_component

from .data import Table, TableMatrix, Target
from .errors import CommandError, did_you_mean
from .models import Model
from .progress import gap_bar

_MATRIX_FAMILIES = {"tessellated", "polynomial"}


@dataclass(frozen=True)
class Choices:
    """What the options of ``kernelweave fit`` say; ``None`` leaves the estimator's default.

    Attributes
    ----------
    algorithm, kernel : str or None
        Registered algorithm, and the family ``"tessellated"`` or ``"polynomial"``.
    C, epsilon, tol, max_time, delta : float or None
        As the estimators name them.
    max_iter, degree : int or None
        Likewise.
    seed : int
        ``random_state``, so that the same command gives the same model.
    """

    algorithm: str | None = None
    kernel: str | None = None
    C: float | None = None
    epsilon: float | None = None
    tol: float | None = None
    max_iter: int | None = None
    max_time: float | None = None
    degree: int | None = None
    delta: float | None = None
    seed: int = 0

    def shared(self) -> dict[str, Any]:
        """Return the parameters that every estimator has, where they are given."""
        given = {
            "C": self.C,
            "tol": self.tol,
            "max_iter": self.max_iter,
            "max_time": self.max_time,
            "random_state": self.seed,
        }
        return {name: value for name, value in given.items() if value is not None}

    def matrix(self) -> dict[str, Any]:
        """Return the parameters of kernels learned over positive matrices, where given."""
        given = {"kernel": self.kernel, "degree": self.degree, "delta": self.delta}
        return {name: value for name, value in given.items() if value is not None}


def make_estimator(task: str, choices: Choices) -> Any:
    """Return the unfitted estimator for a task.

    An algorithm over positive matrices runs in the tessellated estimators, which scale the
    features themselves; any other in the generic ones, behind a standard scaler.

    Parameters
    ----------
    task : str
        ``"classification"`` or ``"regression"``.
    choices : Choices
        What the user asks for.

    Returns
    -------
    object
        An estimator or a pipeline that ends in one.

    Raises
    ------
    UnknownNameError
        If the algorithm is not registered.
    CommandError
        If an option does not go with the task or the algorithm.
    """
    params = choices.shared()
    if choices.epsilon is not None:
        if task == "classification":
            raise CommandError("--epsilon belongs to regression, and this is classification")
        params["epsilon"] = choices.epsilon
    if choices.algorithm is None:
        return _tessellated(task)(**params, **choices.matrix())
    spec = get_algorithm(choices.algorithm)
    if task not in spec.tasks:
        raise CommandError(
            f"--algorithm {spec.name} serves {' and '.join(spec.tasks)}, and this is {task}"
        )
    if _over_matrices(spec):
        return _tessellated(task)(algorithm=spec.name, **params, **choices.matrix())
    if choices.matrix():
        options = ", ".join(f"--{name}" for name in choices.matrix())
        raise CommandError(f"--algorithm {spec.name} learns no positive matrix: drop {options}")
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), _generic(task)(spec.name, **params))


def _over_matrices(spec: AlgorithmSpec) -> bool:
    """Whether an algorithm solves the problems of the tessellated estimators."""
    from kernelweave.spectahedron import Spectahedron

    return not spec.needs.missing("constraint", Spectahedron) and any(
        not spec.needs.missing("family", get_component("families", name).load())
        for name in _MATRIX_FAMILIES
    )


def _tessellated(task: str) -> Any:
    from kernelweave import spectahedron

    if task == "classification":
        return spectahedron.TessellatedKernelClassifier
    return spectahedron.TessellatedKernelRegressor


def _generic(task: str) -> Any:
    from kernelweave.kernels_core import KernelLearningClassifier, KernelLearningRegressor

    return KernelLearningClassifier if task == "classification" else KernelLearningRegressor


def fit_table(
    table: Table,
    target: Target,
    choices: Choices,
    *,
    drop: Sequence[str] = (),
) -> Model:
    """Learn a kernel and a predictor from a table as it is: words, dates and gaps included.

    Parameters
    ----------
    table : Table
        The data.
    target : Target
        What to predict.
    choices : Choices
        How.
    drop : sequence of str
        Columns to leave out.

    Returns
    -------
    Model
        Fitted, with the names of its columns.

    Raises
    ------
    CommandError
        If no feature is left, or a cell cannot be used.
    """
    columns = feature_columns(table, target.column, drop)
    X = table.inputs(columns)
    estimator = _behind(TableMatrix(), make_estimator(target.task, choices))
    with table.speaking(), gap_bar(f"{target.task}, {len(X)} samples"):
        estimator.fit(X, target.values)
    return Model.of(estimator, columns=columns, target=target, source=table.source)


def _behind(step: Any, estimator: Any) -> Any:
    """Return a pipeline of one more step."""
    from sklearn.pipeline import Pipeline

    steps = getattr(estimator, "steps", [("machine", estimator)])
    return Pipeline([("columns", step), *steps])


def feature_columns(table: Table, target: str, drop: Sequence[str] = ()) -> list[str]:
    """Return the names of the features in the order of the table.

    Parameters
    ----------
    table : Table
        The data.
    target : str
        The column to predict.
    drop : sequence of str
        Columns to leave out.

    Returns
    -------
    list of str
        At least one.

    Raises
    ------
    CommandError
        If a column to drop is not there, or nothing is left.
    """
    for name in drop:
        if name not in table.columns:
            hint = did_you_mean(name, table.columns, what="columns")
            raise CommandError(f"--drop: {table.source} has no column {name!r}; {hint}")
    columns = [name for name in table.columns if name != target and name not in drop]
    if not columns:
        raise CommandError(f"{table.source} has no column beside the target {target!r}")
    return columns
