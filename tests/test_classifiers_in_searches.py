"""Every public classifier in scikit-learn's company: searches, probabilities, routed weights."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from kernelweave.kernels_core import KernelWeaveWarning
from scipy import sparse
from sklearn import config_context
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from workspace import members

pytestmark = [
    pytest.mark.faults,
    *(
        pytest.mark.filterwarnings(f"ignore::{kind.__module__}.{kind.__name__}")
        for kind in (ConvergenceWarning, KernelWeaveWarning)
    ),
]


def classifiers() -> dict[str, type]:
    """Return the public classifiers of every package, by name."""
    found = {}
    for member in members().values():
        package = importlib.import_module(member.import_name)
        for name in getattr(package, "__all__", ()):
            it = getattr(package, name)
            if inspect.isclass(it) and name.endswith(("Classifier", "ClassifierCV")):
                found[name] = it
    return found


CLASSIFIERS = classifiers()


def make(name: str) -> Any:
    kind = CLASSIFIERS[name]
    rough = {"tol": 0.1, "max_iter": 20, "random_state": 0}
    known = inspect.signature(kind).parameters
    return kind(**{key: value for key, value in rough.items() if key in known})


def likely(name: str) -> Any:
    """Return a classifier that learns probabilities."""
    model = make(name)
    if "probability" in model.get_params():
        model.set_params(probability=True)
    elif "estimator" in model.get_params():
        kind = CLASSIFIERS[name.removesuffix("CV")]
        model.set_params(estimator=kind(tol=0.1, probability=True))
    return model


def rows() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(48, 2))
    return X, np.where(X[:, 0] + 0.3 * rng.normal(size=48) > 0, "yes", "no")


def test_none_is_missing() -> None:
    assert len(CLASSIFIERS) >= 13
    assert all(is_classifier(make(name)) for name in CLASSIFIERS)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_search_by_log_loss_finds_more_than_chance(name: str) -> None:
    X, y = rows()
    model = likely(name)
    search = GridSearchCV(model, {}, scoring="neg_log_loss", cv=2, error_score="raise").fit(X, y)
    assert -search.best_score_ < np.log(2)
    np.testing.assert_allclose(search.predict_proba(X).sum(axis=1), 1.0)
    assert type(make(name)).__name__ in search._repr_html_()


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_weights_are_routed_through_a_pipeline(name: str) -> None:
    X, y = rows()
    weight = np.where(X[:, 1] > 0, 1.0, 0.0)
    with config_context(enable_metadata_routing=True):
        model = make(name).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        chain = make_pipeline(StandardScaler().set_fit_request(sample_weight=True), model)
        found = cross_validate(chain, X, y, cv=2, params={"sample_weight": weight})
    assert found["test_score"].min() > 0.5


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_data_frames_come_through_a_pipeline_and_joblib(name: str, tmp_path: Path) -> None:
    X, y = rows()
    frame = pd.DataFrame(X, columns=["a", "b"])
    chain = make_pipeline(StandardScaler(), make(name)).set_output(transform="pandas")
    chain.fit(frame, y)
    assert list(chain[-1].feature_names_in_) == ["a", "b"]
    joblib.dump(chain, tmp_path / "model")
    again = joblib.load(tmp_path / "model").predict(frame)
    np.testing.assert_array_equal(again, chain.predict(frame))


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_sparse_rows_are_learned_alike_or_refused_by_name(name: str) -> None:
    X, y = rows()
    X = np.where(np.abs(X) > 0.3, X, 0.0)
    try:
        model = make(name).fit(sparse.csr_array(X), y)
    except TypeError as refused:
        assert "Sparse data was passed" in str(refused)  # noqa: PT017
        return
    dense = make(name).fit(X, y)
    np.testing.assert_array_equal(model.predict(sparse.csr_array(X)), dense.predict(X))
