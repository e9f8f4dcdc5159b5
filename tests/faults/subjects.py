"""Every public estimator of every member, found from the public names."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from expectations import WORKS, Case, Fault, either, error
from kernelweave.kernels_core.settings import known_settings
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import get_tags
from workspace import members

# a few steps on few samples: a cell asks whether the answer is sound, not whether it is the best
QUICK = {
    "tol": 1e-2,
    "max_iter": 10,
    "random_state": 0,
    "C": 1.0,
    "precisions": (5.0,),
    # of one value each, so that nothing is searched
    "delta": 0.5,
    "epsilon": 0.1,
}

# what must happen where an estimator takes tables as they are
OF_TABLES = {
    **dict.fromkeys(
        (
            "objects in X, one of them a word",
            "a category of words in X",
            "a category of numbers in X",
            "a missing value in a nullable column of pandas",
            "a sparse X",
            "a sparse array to predict",
            "a NaN in X",
            "None in X",
            "a NaN to predict",
        ),
        WORKS,
    ),
    "a column of dates in X": error("held dates in training"),
    "one sample, classified": error("1 sample"),
    "words in X": error("no column can be used"),
    "all columns constant": error("no column can be used"),
    "words to predict": error("held numbers in training"),
    "words as targets": error("must hold numbers"),
    "words as weights": error("must hold numbers"),
    "constant targets": error("nothing to learn"),
}
_SPARSE = ("a sparse X", "a sparse array to predict")


@dataclass(frozen=True)
class Subject:
    """An estimator class, the algorithm that it is told to run, and how it is called."""

    name: str
    kind: type[Any]
    fixed: tuple[tuple[str, Any], ...] = ()

    @functools.cached_property
    def parameters(self) -> frozenset[str]:
        """What its constructor takes."""
        return frozenset(inspect.signature(self.kind).parameters)

    @property
    def task(self) -> str:
        """Whether it classifies or predicts numbers."""
        return "classification" if is_classifier(self.kind()) else "regression"

    @functools.cached_property
    def abilities(self) -> frozenset[str]:
        """What a fault may need: constructor parameters, y, weights, Gram matrices."""
        fit = inspect.signature(self.kind.fit).parameters
        found = set(self.parameters - dict(self.fixed).keys())
        if fit["y"].default is inspect.Parameter.empty:
            found.add("y")
        if "sample_weight" in fit:
            found.add("weight")
        # what is approximated is no matrix that a user computed
        approximate = "approximation" in dict(self.fixed)
        if {"kernels"} <= found and "weight" in found and not approximate:
            found.add("grams")
        return frozenset(found)

    @functools.cached_property
    def words(self) -> frozenset[str]:
        """What a message may name: parameters, settings, data."""
        model = self.kind()
        found = {name.rpartition("__")[2] for name in model.get_params(deep=True)}
        for name in ("fit", "predict", "predict_interval", "forecast"):
            if hasattr(model, name):
                found |= inspect.signature(getattr(self.kind, name)).parameters.keys()
        if "algorithm_params" in found:
            chosen = dict(self.fixed).get("algorithm", model.algorithm)
            found |= known_settings(chosen) or set()
        return frozenset(found)

    def takes(self, fault: Fault) -> bool:
        """Whether the fault can be done to it."""
        return fault.task in (None, self.task) and set(fault.needs) <= self.abilities

    def expects(self, fault: Fault) -> Fault:
        """Return the fault with what it must lead to here: folds may lack a class."""
        folds = "cv" in self.parameters and fault.name in (
            "more features than samples",
            "one sample of the second class",
        )
        if folds:
            return replace(fault, expected=either("class|fold"))
        if self.takes_sparse and fault.name in _SPARSE:
            return replace(fault, expected=WORKS)
        if self.takes_tables:
            return replace(fault, expected=OF_TABLES.get(fault.name, fault.expected))
        return fault

    @functools.cached_property
    def takes_tables(self) -> bool:
        """Whether words, dates, gaps and sparse matrices are no faults to it."""
        return bool(get_tags(self.kind()).input_tags.string)

    @functools.cached_property
    def takes_sparse(self) -> bool:
        """Whether sparse matrices are no faults to it, with the kernels that the matrix gives."""
        return bool(get_tags(self.make({})).input_tags.sparse)

    def make(self, params: dict[str, Any]) -> Any:
        """Return the estimator, quick unless the parameters say otherwise."""
        chosen = {name: value for name, value in QUICK.items() if name in self.parameters}
        if "kernels" in self.parameters:
            chosen["kernels"] = small_dictionary()
        if self.kind.__name__ == "GrangerGraph":
            chosen.update(lam=0.1, cv=None)
        elif "cv" in self.parameters:
            chosen["cv"] = 2
            if "lam" in self.parameters and self.kind().lam == "cv":
                chosen["lam"] = (0.1, 1.0)
        chosen |= dict(self.fixed) | params
        for name in self._grids & chosen.keys():
            chosen[name] = [chosen[name]]
        return self.kind(**chosen)

    @functools.cached_property
    def _grids(self) -> frozenset[str]:
        """Numbers of which it takes several, to choose among."""
        known = inspect.signature(self.kind).parameters
        return frozenset(
            name
            for name in ("C", "epsilon")
            if name in known and not isinstance(known[name].default, int | float)
        )

    def run(self, case: Case) -> Any:
        """Fit and predict."""
        model = self.make(case.params)
        if case.fitted:
            weight = {} if case.weight is None else {"sample_weight": case.weight}
            model.fit(case.X, case.y, **weight)
        if not hasattr(model, "predict"):
            return model.forecast(case.X_new)
        return model.predict(case.X_new)


def small_dictionary() -> list[Any]:
    """Return three kernels."""
    from kernelweave.kernels_core import RBF, Linear, Polynomial

    return [RBF(1.0), Linear(), Polynomial(2)]


def public_names() -> Iterator[tuple[str, str, Any]]:
    """Yield (import name, name, object) for every public name of every member."""
    for member in members().values():
        package = importlib.import_module(member.import_name)
        own = [name for name in vars(package) if not name.startswith("_")]
        for name in getattr(package, "__all__", own):
            yield member.import_name, name, getattr(package, name)


def estimators() -> list[Subject]:
    """Return every public estimator with its default algorithm."""
    found = {
        name: Subject(name, it)
        for _, name, it in public_names()
        if inspect.isclass(it) and issubclass(it, BaseEstimator) and hasattr(it, "fit")
    }
    return [found[name] for name in sorted(found)]


@functools.cache
def everywhere() -> frozenset[str]:
    """Return the parameters of all estimators."""
    return frozenset().union(*(each.words for each in estimators()))


def approximated() -> list[Subject]:
    """Return the estimators of kernel lists with their kernels approximated at any size."""
    settings = (("approximation", "nystroem"), ("n_components", 8))
    return [
        Subject(f"{each.name}[nystroem]", each.kind, settings)
        for each in estimators()
        if "approximation" in each.parameters
    ]


def algorithm_subjects() -> list[Subject]:
    """Return the generic estimators with every registered algorithm, third parties' included."""
    from kernelweave.kernels_core import (
        KernelLearningClassifier,
        KernelLearningRegressor,
        algorithms,
    )

    kinds = {"classification": KernelLearningClassifier, "regression": KernelLearningRegressor}
    return [
        Subject(f"{kind.__name__}[{name}]", kind, (("algorithm", name),))
        for task, kind in kinds.items()
        for name, spec in sorted(algorithms(task=task).items())
        if _has_learner(spec, task)
    ]


def _has_learner(spec: Any, task: str) -> bool:
    """Whether a learner that the algorithm accepts serves the task by itself."""
    from kernelweave.kernels_core import get_component
    from kernelweave.kernels_core.registry import parts_for

    return any(
        get_component("learners", name).load().task == task for name in parts_for(spec, "learners")
    )
