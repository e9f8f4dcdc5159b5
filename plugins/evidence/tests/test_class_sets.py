"""Sets of classes: against the definition by enumeration, and MAPIE."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernelweave.evidence import EvidenceKernelClassifier
from kernelweave.kernels_core import KernelWeaveWarning
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification

QUICK = {"precisions": (5.0,), "max_iter": 20}


@pytest.fixture(scope="module")
def case() -> Any:
    X, y = make_classification(
        900, 6, n_informative=4, n_classes=3, flip_y=0.1, class_sep=0.8, random_state=0
    )
    labels = np.array(["low", "mid", "high"])[y]
    return EvidenceKernelClassifier(**QUICK).fit(X[:200], labels[:200]), X, labels


def test_sets_are_those_of_the_definition(case: Any) -> None:
    model, X, y = case
    own = [model.held_out_prediction_[i, model.classes_.tolist().index(y[i])] for i in range(200)]
    proba = model.predict_proba(X[200:260])
    for confidence in (0.6, 0.9):
        # the ⌈c(n + 1)⌉-th largest of the held-out probabilities of the own class
        least = sorted(own, reverse=True)[int(np.ceil(confidence * 201)) - 1]
        for row, held in zip(proba, model.predict_set(X[200:260], confidence), strict=True):
            wanted = [p >= least - 1e-12 or k == row.argmax() for k, p in enumerate(row)]
            assert held.tolist() == wanted


def test_sets_hold_their_share_and_are_nested(case: Any) -> None:
    model, X, y = case
    codes = np.searchsorted(model.classes_, y[200:])
    wide, narrow = (model.predict_set(X[200:], c) for c in (0.95, 0.8))
    assert (wide >= narrow).all()
    for sets, asked in ((wide, 0.95), (narrow, 0.8)):
        held = sets[np.arange(700), codes].mean()
        # three standard errors of a share of 700 rows and of the level of a quantile of 200
        assert held > asked - 3 * np.sqrt(asked * (1 - asked) * (1 / 200 + 1 / 700))
    assert narrow.sum(axis=1).mean() < 0.9 * wide.sum(axis=1).mean()
    assert model.predict_set(X[200:], 0.999).all()
    with pytest.raises(ValueError, match="confidence must be"):
        model.predict_set(X, 90)


def test_rows_of_several_copies_count_as_often() -> None:
    """Forty copies are one row to the kernel, but as many to the share."""
    X, y = make_classification(80, 5, flip_y=0.2, random_state=1)
    X, y = np.vstack([X, X[:40]]), np.append(y, y[:40])
    model = EvidenceKernelClassifier(**QUICK).fit(X, y)
    own = np.sort(model.held_out_prediction_[np.arange(120), y])[::-1]
    least = own[int(np.ceil(0.8 * 121)) - 1]
    proba = model.predict_proba(X)
    expected = (proba >= least - 1e-12) | (proba == proba.max(axis=1, keepdims=True))
    np.testing.assert_array_equal(model.predict_set(X, 0.8), expected)


@pytest.fixture(scope="module")
def rare() -> Any:
    """Three classes, of which one has 6 % of the rows and lies between the others."""
    X, y = make_classification(
        3000, 6, n_informative=4, n_redundant=0, n_classes=3, weights=[0.5, 0.44, 0.06],
        n_clusters_per_class=1, class_sep=0.7, flip_y=0.0, random_state=4,
    )  # fmt: skip
    return EvidenceKernelClassifier(**QUICK).fit(X[:700], y[:700]), X, y


def thresholds(model: Any, y: Any, confidence: float) -> list[float]:
    """The ⌈c(n + 1)⌉-th largest of the held-out probabilities of the own class, class by class."""
    out = []
    for k in range(len(model.classes_)):
        own = sorted(model.held_out_prediction_[y == k, k], reverse=True)
        out.append(own[int(np.ceil(confidence * (len(own) + 1))) - 1])
    return out


def test_sets_by_class_are_those_of_the_definition(rare: Any) -> None:
    model, X, y = rare
    proba, least = model.predict_proba(X[700:900]), thresholds(model, y[:700], 0.8)
    sets = model.predict_set(X[700:900], 0.8, by_class=True)
    for row, held in zip(proba, sets, strict=True):
        wanted = [
            p >= t - 1e-12 or k == row.argmax()
            for k, (p, t) in enumerate(zip(row, least, strict=True))
        ]
        assert held.tolist() == wanted


def test_sets_by_class_hold_the_share_of_each(rare: Any) -> None:
    model, X, y = rare
    alike, own = (model.predict_set(X[700:], 0.9, by_class=each) for each in (False, True))
    truth = y[700:]
    held = [[sets[truth == k, k].mean() for k in range(3)] for sets in (alike, own)]
    counts = np.bincount(y[:700])
    # of the rare class far fewer than nine in ten, though of all rows nine in ten
    assert held[0][2] < 0.75
    assert abs(alike[np.arange(2300), truth].mean() - 0.9) < 0.03
    for k in range(3):
        error = np.sqrt(0.09 * (1 / counts[k] + 1 / np.count_nonzero(truth == k)))
        assert held[1][k] > 0.9 - 3 * error


def test_a_class_with_too_few_rows_is_named_and_in_every_set() -> None:
    X, y = make_classification(90, 5, class_sep=0.7, random_state=0)
    labels = np.where(y == 1, "common", "usual").astype(object)
    labels[:6] = "scarce"
    model = EvidenceKernelClassifier(**QUICK).fit(X, labels)
    said = r"every set holds the classes 'scarce' \(6\): a confidence of 0.9 for each class needs 9"
    with pytest.warns(KernelWeaveWarning, match=said):
        sets = model.predict_set(X, 0.9, by_class=True)
    assert sets[:, model.classes_.tolist().index("scarce")].all()
    assert not sets.all()
    with pytest.raises(ValueError, match="by_class must be"):
        model.predict_set(X, 0.9, by_class="yes")


def test_sets_by_class_are_those_of_crepes(rare: Any) -> None:
    crepes = pytest.importorskip("crepes", reason="crepes, of the group `peers`, is not installed")
    model, X, y = rare
    proba = model.predict_proba(X[700:])
    best = proba == proba.max(axis=1, keepdims=True)
    own = 1.0 - model.held_out_prediction_[np.arange(700), y[:700]]
    theirs = [
        crepes.ConformalClassifier()
        .fit(own, bins=y[:700])
        .predict_set(1.0 - proba[:, [k]], bins=np.full(2300, k), confidence=0.9, smoothing=False)
        for k in range(3)
    ]
    expected = np.hstack(theirs).astype(bool) | best
    np.testing.assert_array_equal(model.predict_set(X[700:], 0.9, by_class=True), expected)


class Given(ClassifierMixin, BaseEstimator):
    """Probabilities that are given: the columns of X."""

    def fit(self, X: Any, y: Any) -> Given:
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: Any) -> Any:
        return X

    def predict(self, X: Any) -> Any:
        return self.classes_[X.argmax(axis=1)]


def test_sets_are_those_of_mapie(case: Any) -> None:
    mapie = pytest.importorskip(
        "mapie.classification", reason="MAPIE, of the group `peers`, is not installed"
    )
    model, X, y = case
    given = Given().fit(X, y)
    peer = mapie.SplitConformalClassifier(
        given, confidence_level=0.9, conformity_score="lac", prefit=True
    ).conformalize(model.held_out_prediction_, y[:200])
    proba = model.predict_proba(X[200:])
    _, theirs = peer.predict_set(proba)
    # theirs may be empty, ours hold the most probable class
    best = proba == proba.max(axis=1, keepdims=True)
    np.testing.assert_array_equal(model.predict_set(X[200:], 0.9), theirs[:, :, 0] | best)
