"""A refit that is refused or interrupted leaves a whole model: the old one, or the best so far."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.baselines import (
    AverageMKLClassifier,
    CKAClassifier,
    ElasticNetMKLRegressor,
    KernelQuantileRegressor,
    SimpleMKLRegressor,
)
from kernelweave.granger import GrangerGraph, random_network
from kernelweave.kernels_core import RBF, KernelDictionary, KernelLearningClassifier, Linear
from kernelweave.mkl_sparse import SparseMKLClassifier, SparseMKLRegressor
from kernelweave.ridge_mkl import (
    GeneralizedMKLClassifier,
    RidgeMKLClassifier,
    RidgeMKLRegressor,
    RidgeMKLRegressorCV,
)
from kernelweave.spectahedron import TessellatedKernelClassifier, TessellatedKernelRegressor
from kernelweave.vv_rkhs import MatrixValuedKernelClassifier, MatrixValuedKernelRegressor
from sklearn.base import clone, is_classifier

KERNELS = [RBF(1.0), Linear()]
VIEWS = KernelDictionary(["rbf", "linear"], columns={"one": ["a"], "both": ["a", "b"]})
MODELS: dict[str, Any] = {
    "ridge": RidgeMKLRegressor(KERNELS),
    "ridge, classes": RidgeMKLClassifier(KERNELS),
    "ridge, of a table": RidgeMKLRegressor(VIEWS),
    "ridge, λ by folds": RidgeMKLRegressorCV(KERNELS, lam=[0.1, 1.0], cv=2),
    "ridge, probabilities": RidgeMKLClassifier(KERNELS, probability=True),
    "ridge, a kernel each": RidgeMKLClassifier(KERNELS, multiclass="ovr"),
    "squared hinge": GeneralizedMKLClassifier(KERNELS),
    "average": AverageMKLClassifier(KERNELS),
    "average, approximated": AverageMKLClassifier(
        KERNELS, approximation="nystroem", n_components=5, random_state=0
    ),
    "alignment": CKAClassifier(KERNELS),
    "simplex": SimpleMKLRegressor(KERNELS),
    "elastic net": ElasticNetMKLRegressor(KERNELS),
    "quantile": KernelQuantileRegressor(KERNELS, quantile=0.7),
    "tessellated": TessellatedKernelClassifier(tol=0.05),
    "tessellated, warm": TessellatedKernelRegressor(tol=0.05, warm_start=True),
    "sparse": SparseMKLClassifier(KERNELS, k0=1),
    "sparse, k₀ by folds": SparseMKLRegressor(KERNELS, k0=[1, 2], cv=2),
    "matrix-valued": MatrixValuedKernelRegressor(KERNELS),
    "matrix-valued, classes": MatrixValuedKernelClassifier(KERNELS, max_iter=3),
    "by name": KernelLearningClassifier(tol=0.1),
}
CASES: dict[str, Callable[[Any, Any], tuple[Any, ...]]] = {
    "a missing target": lambda X, y: (X, np.where(np.arange(len(y)) == 7, np.nan, y)),
    "too few targets": lambda X, y: (X, y[:-1]),
    "a negative weight": lambda X, y: (X, y, -np.ones(len(y))),
    "an infinite value": lambda X, y: (np.where(X > 50, np.inf, X), y),
    "another width and a negative weight": lambda X, y: (np.hstack([X, X]), y, -np.ones(len(y))),
}


def points(seed: int, shift: float = 0.0) -> tuple[Any, Any]:
    """Thirty rows whose target is the first column."""
    X = np.random.default_rng(seed).normal(size=(30, 2))
    return X + shift, X[:, 0]


def given(model: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """Return the same as the model takes it: three classes for a number, a table for points."""
    return framed(model, X), np.digitize(y, [-0.5, 0.5]) * 1.0 if is_classifier(model) else y


def framed(model: Any, X: Any) -> Any:
    """Return a table for a model that reads columns by name."""
    is_read = getattr(model, "kernels", None) is VIEWS
    return pd.DataFrame(X, columns=["a", "b", "c", "d"][: X.shape[1]]) if is_read else X


def quietly(fit: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit()


def fitted(name: str) -> tuple[Any, Any]:
    model = clone(MODELS[name])
    model.__dict__.update(vars(MODELS[name]))
    X, y = given(model, *points(0))
    return quietly(lambda: model.fit(X, y)), X


def changed(model: Any, before: dict[str, Any]) -> list[str]:
    """Return the attributes that are not the very same objects."""
    after = vars(model)
    names = before.keys() | after.keys()
    return [name for name in names if after.get(name) is not before.get(name)]


@pytest.mark.parametrize("name", list(MODELS))
def test_a_refused_refit_leaves_the_old_model(name: str) -> None:
    model, X = fitted(name)
    before, said = dict(vars(model)), model.predict(X)
    X_new, y_new = points(1, shift=50.0)
    _, y_new = given(model, X_new, y_new)
    for spoil in CASES.values():
        bad, *rest = spoil(X_new, y_new)
        with pytest.raises((ValueError, TypeError)):
            model.fit(framed(model, bad), *rest)
        assert changed(model, before) == []
    np.testing.assert_array_equal(model.predict(X), said)


def test_a_class_that_is_too_rare_for_probabilities_leaves_the_old_model() -> None:
    model, _ = fitted("ridge, probabilities")
    before, (X, y) = dict(vars(model)), points(1)
    with pytest.raises(ValueError, match="has 1 row of positive weight"):
        model.fit(X, np.arange(30) == 3)
    assert changed(model, before) == []
    assert len(y) == 30


class Countdown:
    """Raises a Ctrl-C at the n-th call of a function of the project.

    But none inside the handler of signals, which holds them back where it is not whole itself.
    """

    def __init__(self, at: float) -> None:
        self.at, self.calls = at, 0

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event != "call" or "kernelweave" not in name or name.endswith("interrupts.py"):
            return
        self.calls += 1
        if self.calls == self.at:
            raise KeyboardInterrupt

    def run(self, fit: Callable[[], Any]) -> bool:
        """Return whether the fit was interrupted."""
        # a collection closes what earlier interrupted fits left, and those calls are not the fit's
        gc.disable()
        sys.setprofile(self)
        try:
            quietly(fit)
        except KeyboardInterrupt:
            return True
        finally:
            sys.setprofile(None)
            gc.enable()
        return False


def by_hand(model: Any, X: Any) -> Any:
    """Return Σ k(x, xᵢ) cᵢ + b from what the model tells, for the points that it learned from."""
    by_row = isinstance(model, MatrixValuedKernelClassifier | MatrixValuedKernelRegressor)
    coef = model.dual_coef_ if by_row else np.atleast_2d(model.dual_coef_).T
    used = np.flatnonzero(coef.any(axis=1))
    K = model.kernel_(X, X[used]) if len(used) else np.zeros((len(X), 0))
    return K @ coef[used] + np.asarray(model.intercept_)


# Python drops what is raised while a generator is closed
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", list(MODELS))
def test_a_ctrl_c_anywhere_leaves_a_whole_model(name: str) -> None:
    model, X = fitted(name)
    before, said = dict(vars(model)), model.predict(X)
    X_new, y_new = given(model, *points(1, shift=2.0))
    # what is imported at first use is not counted
    quietly(lambda: clone(model).fit(X_new, y_new))

    def calls() -> int:
        whole, other = Countdown(np.inf), clone(model)
        assert not whole.run(lambda: other.fit(X_new, y_new))
        return whole.calls

    # late ones meet what makes the model, and what judges it; they are counted back from the end
    places = [*np.linspace(1, calls(), 10).astype(int), *(-np.arange(1, 50, 5))]
    kept, ended = 0, []
    for place in places:
        model.__dict__ = dict(before)
        count = Countdown(place if place > 0 else max(1, calls() + place))
        ended.append((count.at, count.run(lambda: model.fit(X_new, y_new)), count.calls))
        if not ended[-1][1]:
            continue
        if model.result_ is before["result_"]:
            kept += 1
            assert changed(model, before) == []
            np.testing.assert_array_equal(model.predict(X), said)
            continue
        found = before.keys() - model.get_params().keys()
        objects = [name for name in found if not isinstance(before[name], str | float | int | None)]
        # the new model has nothing of the old one
        assert set(objects) <= set(changed(model, before))
        numbers = model._table.transform(X_new) if name == "ridge, of a table" else X_new
        values = np.reshape(_decided(model, X_new), (len(X_new), -1))
        if isinstance(model.result_, list) or getattr(model, "approximation_", None) is not None:
            assert np.isfinite(values).all()
        else:
            np.testing.assert_allclose(
                values, np.reshape(by_hand(model, numbers), values.shape), rtol=1e-6, atol=1e-6
            )
        assert np.isfinite(np.asarray(model.predict(X_new), dtype=float)).all()
    assert kept >= 4, ended


def _decided(model: Any, X: Any) -> Any:
    return model.decision_function(X) if is_classifier(model) else model.predict(X)


@pytest.mark.parametrize("name", ["ridge", "ridge, probabilities", "sparse", "tessellated"])
def test_a_ctrl_c_in_the_search_keeps_the_best_point(name: str) -> None:
    """Raised by the search itself after its first step, so that there is something to keep."""
    from kernelweave.kernels_core import Status, driver

    model, _ = fitted(name)
    X_new, y_new = given(model, *points(1, shift=2.0))
    old = model.result_
    observe = driver._Run.observe

    def interrupted(run: Any) -> None:
        observe(run)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver._Run, "observe", interrupted)
        with pytest.raises(KeyboardInterrupt):
            quietly(lambda: model.fit(X_new, y_new))
    assert model.result_ is not old
    assert model.result_.status is Status.INTERRUPTED
    assert np.isfinite(np.asarray(model.predict(X_new), dtype=float)).all()


def ctrl_c_in_solve(patch: pytest.MonkeyPatch, at: int) -> list[int]:
    """Raise a Ctrl-C in the first step of the solve of this number; return those that began."""
    from kernelweave.kernels_core import driver

    observe, seen = driver._Run.observe, list[Any]()

    def interrupted(run: Any) -> None:
        observe(run)
        if not any(run is each for each in seen):
            seen.append(run)
            if len(seen) == at:
                raise KeyboardInterrupt

    patch.setattr(driver._Run, "observe", interrupted)
    return seen


@pytest.mark.parametrize("at", [1, 3])
@pytest.mark.parametrize("name", ["ridge, probabilities", "ridge, a kernel each and probabilities"])
def test_a_ctrl_c_returns_without_probabilities(
    name: str, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The solve of the model is the first, those of the folds for probabilities follow."""
    from kernelweave.kernels_core import SolveInterrupted, Status

    several = "each" in name
    scheme, at = ("ovr", at + 3) if several else ("shared", at)
    model = RidgeMKLClassifier(KERNELS, probability=True, multiclass=scheme, on_interrupt="return")
    X, y = given(model, *points(0))
    seen = ctrl_c_in_solve(monkeypatch, at)
    quietly(lambda: model.fit(X, y))
    assert len(seen) == at
    assert not hasattr(model, "calibration_")
    results = model.result_ if several else [model.result_]
    assert {each.status for each in results} == {Status.INTERRUPTED}
    assert set(model.predict(X)) <= set(y)
    if at > 1:
        seen.clear()
        with pytest.raises(SolveInterrupted) as caught:
            quietly(lambda: model.set_params(on_interrupt="raise").fit(X, y))
        assert caught.value.result is (model.result_[-1] if several else model.result_)


def test_a_ctrl_c_in_one_class_of_several_keeps_the_old_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = RidgeMKLClassifier(KERNELS, multiclass="ovr", on_interrupt="return")
    X, y = given(model, *points(0))
    quietly(lambda: model.fit(X, y))
    before, seen = dict(vars(model)), ctrl_c_in_solve(monkeypatch, 2)
    with pytest.raises(KeyboardInterrupt):
        quietly(lambda: model.fit(X + 1.0, y))
    assert len(seen) == 2
    assert changed(model, before) == []


GRAPHS: dict[str, Any] = {
    "plain": GrangerGraph(lam=0.1, cv=None),
    "p-values": GrangerGraph(
        lam=0.1, cv=None, significance="permutation", n_draws=4, random_state=0
    ),
    "λ and lags by folds": GrangerGraph("cv", lams=[1.0, 0.1], cv=2, tol=1e-2, pairs=False),
    "groups": GrangerGraph(groups=["a", "b", "a"], lam=0.1, cv=None, tol=1e-2),
}


def put(X: Any, value: float) -> Any:
    X = X.copy()
    X[30:, 1] = value
    return X


SERIES: dict[str, Callable[[Any], Any]] = {
    "a gap": lambda X: put(X, np.nan),
    "an infinite value": lambda X: put(X, np.inf),
    "no series varies": np.zeros_like,
    "a single row": lambda X: X[:1],
    "another width": lambda X: np.hstack([X, put(X, np.nan)]),
    "more than the memory": lambda X: np.vstack([X] * 20),
}


def graph_of(name: str) -> tuple[Any, Any, dict[str, Any], float]:
    """Return a fitted graph, its series, its attributes and its score."""
    model, X = clone(GRAPHS[name]), random_network(3, 40, random_state=0)[0]
    quietly(lambda: model.set_params(memory_limit=2e7).fit(X))
    return model, X, dict(vars(model)), model.score(X)


@pytest.mark.parametrize("name", list(GRAPHS))
def test_a_refused_refit_leaves_the_old_graph(name: str) -> None:
    model, X, before, score = graph_of(name)
    other = 50.0 + 9.0 * random_network(3, 40, random_state=1)[0]
    for spoil in SERIES.values():
        with pytest.raises((ValueError, MemoryError)):
            quietly(lambda spoil=spoil: model.fit(spoil(other)))
        assert changed(model, before) == []
    assert model.score(X) == score


@pytest.mark.parametrize("name", list(GRAPHS))
def test_a_ctrl_c_anywhere_leaves_the_old_graph(name: str) -> None:
    model, X, before, score = graph_of(name)
    other = 50.0 + 9.0 * random_network(3, 40, random_state=1)[0]
    whole, copy = Countdown(np.inf), clone(model)
    assert not whole.run(lambda: copy.fit(other))
    for at in np.linspace(1, whole.calls, 10).astype(int):
        assert Countdown(at).run(lambda: model.fit(other))
        assert changed(model, before) == []
    assert model.score(X) == score
    quietly(lambda: model.fit(other))
    assert "graph_" in changed(model, before)
