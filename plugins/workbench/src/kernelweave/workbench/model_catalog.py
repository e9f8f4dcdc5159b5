"""The models that ``kernelweave fit`` can learn, by the names of the command line."""

from __future__ import annotations

import inspect
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from kernelweave.evidence.division import later_blocks
from kernelweave.kernels_core import AlgorithmSpec, get_algorithm, get_component
from kernelweave.kernels_core.arrays import FloatArray, Labels
from kernelweave.kernels_core.estimators.search import values_of
from kernelweave.kernels_core.registry import parts_for
from sklearn.utils.validation import has_fit_parameter

from .errors import CommandError
from .machines import kernel_machine
from .matrix import TableMatrix
from .views import dictionary_of

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.base import BaseEstimator

# parameters of estimators that have an option of their own
_OPTIONS = {"algorithm", "tol", "max_iter", "max_time", "class_weight", "views"}
# of several options
_NAMED = {"monotone": "--increasing, --decreasing"}
# chosen by --algorithm alone
GENERIC = "generic"
_MATRIX_FAMILIES = {"tessellated", "polynomial"}
# the models of algorithms, by the set of weights that they prefer
_BY_SET = {"sparse-simplex": "sparse", "lq-ball": "ridge", "orthant": "ridge"}


class ModelKind(NamedTuple):
    """A model: its title, the module and the start of the names of its classes, and what it can.

    - `scaled`: whether its columns are standardised
    - `reads_tables`: whether it takes tables as they are, and names of columns for groups and order
    - `holds_out_itself`: whether it holds rows out while it fits, and tells of scores on new rows
    - `has_probabilities`: whether it has those of classes without being asked
    - `orders_classes`: whether it takes ``levels``, classes that have an order
    - `learns_half_known`: whether it learns from limits, ranges and times up to an event
    - `lives`: whether a fitted one can take and lose rows
    """

    title: str
    module: str
    stem: str
    tasks: tuple[str, ...] = ("classification", "regression")
    scaled: bool = True
    reads_tables: bool = False
    holds_out_itself: bool = False
    has_probabilities: bool = False
    orders_classes: bool = False
    learns_half_known: bool = False
    lives: bool = False


_CLASSES, _NUMBERS = ("classification",), ("regression",)
_FAMILIES = {
    "evidence": ModelKind(
        "evidence kernel",
        "kernelweave.evidence",
        "EvidenceKernel",
        reads_tables=True,
        holds_out_itself=True,
        has_probabilities=True,
        orders_classes=True,
        learns_half_known=True,
        lives=True,
    ),
    "evidence-mkl": ModelKind("evidence MKL", "kernelweave.evidence", "EvidenceMKL"),
    # it maps each column to a box itself
    "tkl": ModelKind(
        "tessellated kernel", "kernelweave.spectahedron", "TessellatedKernel", scaled=False
    ),
    "sparse": ModelKind("sparse MKL", "kernelweave.mkl_sparse", "SparseMKL"),
    "ridge": ModelKind("ridge MKL", "kernelweave.ridge_mkl", "RidgeMKL"),
    "gmkl": ModelKind("generalized MKL", "kernelweave.ridge_mkl", "GeneralizedMKL", _CLASSES),
    "average": ModelKind("AverageMKL", "kernelweave.baselines", "AverageMKL", _CLASSES),
    "cka": ModelKind("CKA", "kernelweave.baselines", "CKA", _CLASSES),
    "easy": ModelKind("EasyMKL", "kernelweave.baselines", "EasyMKL", _CLASSES),
    "pwmk": ModelKind("PWMK", "kernelweave.baselines", "PWMK", _CLASSES),
    "simple": ModelKind("SimpleMKL", "kernelweave.baselines", "SimpleMKL"),
    "elastic-net": ModelKind("elastic-net MKL", "kernelweave.baselines", "ElasticNetMKL"),
    "quantile": ModelKind(
        "kernel quantile machine", "kernelweave.baselines", "KernelQuantile", _NUMBERS
    ),
    GENERIC: ModelKind("kernel learning", "kernelweave.kernels_core", "KernelLearning"),
}


# what the command itself gives to estimators
_OF_THE_COMMAND = {
    "random_state": "use --seed",
    "on_interrupt": "Ctrl-C always keeps the best model so far",
}


def model_kind(name: str) -> ModelKind:
    """Return what is known of a model; of one without a name, as in old files, that it can nothing.

    Raises KeyError for any other name that is not listed.
    """
    return _FAMILIES[name] if name else ModelKind("", "", "")


def model_title(name: str) -> str:
    """Return the title of a model, as shown to users."""
    return _FAMILIES[name].title


def models_for_task(task: str) -> list[str]:
    """Return the names of the installed models for a task, as ``--model`` takes them.

    Without `GENERIC`, which needs an algorithm.
    """
    return [
        name
        for name, family in _FAMILIES.items()
        if name != GENERIC and task in family.tasks and find_spec(family.module)
    ]


def model_of_algorithm(algorithm: str | None, task: str) -> str:
    """Return the name of the model that an algorithm belongs to; by default ``"evidence"``.

    ``"tkl"`` for algorithms over positive matrices, ``"sparse"`` for those over few kernels; for
    those over a ball of weights ``"ridge"``, which learns classes as ±1, or ``"gmkl"`` where they
    need classes; else ``"generic"``. Raises UnknownNameError if it is not registered; CommandError
    if it does not serve the task.
    """
    if algorithm is None:
        return "evidence"
    spec = get_algorithm(algorithm)
    name = "tkl" if _over_matrices(spec) else _over_weights(spec)
    if name != "ridge" and task not in spec.tasks:
        raise CommandError(
            f"--algorithm {spec.name} is for {' and '.join(spec.tasks)}, and this is a {task}"
        )
    return name


def make_model(name: str, task: str, settings: dict[str, Any], *, seed: int) -> BaseEstimator:
    """Return an unfitted model for tables.

    `settings`: parameters of the estimator by their names, ``views``, the columns of each, standing
    for ``kernels``; `seed`: ``random_state``, where the estimator has one.

    The model has ``fit(X, y)`` for tables: an estimator that takes only numbers is put behind steps
    that encode the table. Numeric targets are standardised, so that C and epsilon mean the same for
    prices and for fractions. Raises CommandError if the model is not installed, does not serve the
    task, or has no such setting.
    """
    kind = _class(name, task)
    parameters = inspect.signature(kind).parameters
    views = settings.get("views")
    if views is not None:
        if "kernels" not in parameters:
            raise CommandError(_unknown_setting(name, task, "views", "kernels"))
        settings = settings | {"kernels": dictionary_of(views)}
        del settings["views"]
    fixed = {"random_state": seed, "on_interrupt": "return"}
    for each in settings:
        if each in fixed:
            raise CommandError(f"--set {each} is not for the command: {_OF_THE_COMMAND[each]}")
        if each not in parameters:
            raise CommandError(_unknown_setting(name, task, each))
    _check_settings(name, task, settings)
    machine = kind(**{key: value for key, value in fixed.items() if key in parameters}, **settings)
    if _FAMILIES[name].reads_tables:
        return machine
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    scaled = [("scale", StandardScaler())] if _FAMILIES[name].scaled else []
    chain = Pipeline([("columns", TableMatrix()), *scaled, ("machine", machine)])
    if views is not None:
        # the dictionary finds its columns by their names
        chain.set_output(transform="pandas")
    if task == "classification":
        return chain
    return TransformedTargetRegressor(chain, transformer=StandardScaler())


def fit_model(
    model: BaseEstimator, X: pd.DataFrame, y: Labels, weight: FloatArray | None, **division: object
) -> BaseEstimator:
    """Fit a model of `make_model`, with sample weights if there are any.

    `division`: ``groups`` and ``order`` of the rows, passed on if the estimator takes them. An
    estimator that takes no order still chooses its parameters on later rows.
    """
    machine = kernel_machine(model)
    order = division.get("order")
    chosen = [name for name in getattr(machine, "grids", ()) if len(values_of(machine, name)) > 1]
    if chosen and isinstance(order, np.ndarray) and isinstance(machine.cv, int):
        machine.set_params(cv=later_blocks(order, machine.cv))
    given = {"sample_weight": weight} | {
        name: each for name, each in division.items() if has_fit_parameter(machine, name)
    }
    # a pipeline passes on arguments with the prefix of its last step
    step = "" if machine is model else "machine__"
    return model.fit(X, y, **{step + k: each for k, each in given.items() if each is not None})


def _class(name: str, task: str) -> type[BaseEstimator]:
    family = _FAMILIES[name]
    if task not in family.tasks:
        raise CommandError(
            f"--model {name} is for {family.tasks[0]} only, and this is a {task}: choose one of "
            f"{', '.join(models_for_task(task))}"
        )
    if find_spec(family.module) is None:
        distribution = family.module.replace(".", "-").replace("_", "-")
        raise CommandError(f"--model {name} needs {distribution}: pip install {distribution}")
    suffix = "Classifier" if task == "classification" else "Regressor"
    kind: type[BaseEstimator] = getattr(import_module(family.module), family.stem + suffix)
    return kind


def _check_settings(name: str, task: str, settings: dict[str, Any]) -> None:
    """Raise CommandError if the algorithm belongs to another model, or n_views comes without views.

    `settings`: with ``kernels`` where views are named.
    """
    algorithm, n_views = settings.get("algorithm"), settings.get("n_views")
    # evidence-mkl has ways of its own, such as lbfgs, which are not registered
    if algorithm is not None and name != "evidence-mkl":
        home = model_of_algorithm(algorithm, task)
        # gmkl also takes the algorithms of ridge
        if home not in (name, GENERIC) and (name, home) != ("gmkl", "ridge"):
            raise CommandError(f"--algorithm {algorithm} belongs to --model {home}, not to {name}")
    if n_views is not None and "kernels" not in settings:
        raise CommandError(
            f"--set n_views={n_views} needs --views FILE, which lists the columns of each view"
        )


def _unknown_setting(name: str, task: str, setting: str, parameter: str | None = None) -> str:
    """Return the message for a setting that the model does not have.

    `parameter`: the parameter of the estimator, where its name differs from the setting.
    """
    option = f"--{setting.replace('_', '-')}" if setting in _OPTIONS else f"--set {setting}"
    option = _NAMED.get(setting, option)
    if setting in ("epsilon", "class_weight", "probability"):
        other = "regression" if setting == "epsilon" else "classification"
        if task != other:
            return f"{option} is for {other}, and this is a {task}"
    if name == GENERIC:
        return f"the model of this --algorithm has no {option}: leave it out, or choose a --model"
    having = [
        each
        for each in models_for_task(task)
        if (parameter or setting) in inspect.signature(_class(each, task)).parameters
    ]
    fitting = (
        f"it belongs to --model {' or '.join(having)}"
        if having
        else "no installed model has this parameter"
    )
    return f"--model {name} has no {option}: {fitting}"


def _over_weights(spec: AlgorithmSpec) -> str:
    """Return the model over the set of weights that an algorithm prefers."""
    name = _BY_SET.get(next(iter(parts_for(spec, "constraints")), ""), GENERIC)
    return "gmkl" if name == "ridge" and "ridge" not in parts_for(spec, "learners") else name


def _over_matrices(spec: AlgorithmSpec) -> bool:
    """Whether an algorithm solves the problems of the tessellated estimators."""
    from kernelweave.spectahedron import Spectahedron

    return not spec.needs.missing("constraint", Spectahedron) and any(
        not spec.needs.missing("family", get_component("families", name).load())
        for name in _MATRIX_FAMILIES
    )
