"""Ordered classes, such as a rating."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from kernelweave.evidence import Batches, EvidenceKernelClassifier
from kernelweave.evidence.classes import class_codes
from kernelweave.evidence.tasks import Classification
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.metrics import log_loss

QUICK = {"precisions": (50.0, 5.0), "max_iter": 20}
# not in the order of the alphabet
NAMES = ["poor", "fair", "good", "best"]
ARROW = pa.dictionary(pa.int8(), pa.string(), ordered=True)
CODES = np.array([0, 3, 1, 2, 2, 0, 1, 3, 3, 0, 1, 2])


def ordered(codes: np.ndarray, names: list[Any] = NAMES) -> pd.Series:
    return pd.Series(pd.Categorical.from_codes(codes, names, ordered=True))


def rated(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and ratings of the proportional odds model."""
    state = np.random.RandomState(seed)
    X = state.randn(n, 3)
    latent = X @ [1.0, -0.7, 0.0] + state.logistic(size=n)
    return X, np.digitize(latent, [-1.0, 0.3, 1.5])


def test_targets_are_means_of_those_of_cumulative_problems() -> None:
    labels, own = np.array(sorted(NAMES)), np.array(NAMES)[CODES]
    task, targets, _ = Classification().read(ordered(CODES), 12, None)
    above = np.where(np.arange(3)[:, None] < CODES, 1.0, -1.0)
    signs = np.where(np.arange(4)[:, None] > np.arange(3), 1.0, -1.0)
    places = [NAMES.index(label) for label in labels]
    np.testing.assert_allclose(targets, (signs @ above / 3)[places])
    assert task.ordered is not None
    assert task.ordered.tolist() == NAMES
    np.testing.assert_array_equal(labels[class_codes(targets)], own)


@pytest.mark.parametrize(
    ("y", "levels", "found"),
    [
        (ordered(CODES), None, NAMES),
        (ordered(CODES).array, None, NAMES),
        (ordered(CODES, [5, 3, 4, 9]), None, [5, 3, 4, 9]),
        (pl.Series(np.array(NAMES)[CODES], dtype=pl.Enum(NAMES)), None, NAMES),
        (pl.Series(np.array(NAMES)[CODES], dtype=pl.Categorical), None, None),
        (pa.array(ordered(CODES)), None, NAMES),
        (pa.array(ordered(CODES).cat.as_unordered()), None, None),
        (pa.chunked_array([pa.array(ordered(CODES))]), None, NAMES),
        (pd.Series(pd.array(pa.array(ordered(CODES)), pd.ArrowDtype(ARROW))), None, NAMES),
        (np.array(NAMES)[CODES], NAMES, NAMES),
        (ordered(CODES), NAMES[::-1], NAMES[::-1]),
        (ordered(CODES + 1, ["never", *NAMES]), None, NAMES),
        (CODES, [3, 1, 0, 2], [3, 1, 0, 2]),
        (ordered(CODES).cat.as_unordered(), None, None),
        (ordered(CODES).astype(object), None, None),
    ],
)
def test_which_order_classes_have(y: Any, levels: Any, found: list[Any] | None) -> None:
    task, targets, _ = Classification(levels=levels).read(y, 12, None)
    assert (None if task.ordered is None else task.ordered.tolist()) == found
    assert (np.abs(targets) == 1.0).all() == (found is None)


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        (["poor", "fair", "good"], "levels must be all classes of y, lowest first: 'best' is not"),
        ([0, 1, 2, 3], "'best' is not in"),
        (["poor", *NAMES], "levels must be different from each other"),
        ("poor, fair", "levels must be a list of the classes, lowest first, got 'poor, fair'"),
        (4, "levels must be a list of the classes, lowest first, got 4"),
    ],
)
def test_levels_that_are_none_get_a_sentence(levels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Classification(levels=levels).read(np.array(NAMES)[CODES], 12, None)


@pytest.fixture(scope="module")
def model() -> EvidenceKernelClassifier:
    X, codes = rated(200, 0)
    return EvidenceKernelClassifier(**QUICK).fit(X, ordered(codes))


def proportional_odds(X: np.ndarray, codes: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Return the probabilities of the likeliest proportional odds model."""

    def probabilities(theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        cuts = np.cumsum(np.append(theta[0], np.exp(theta[1:3])))
        below = expit(cuts - (rows @ theta[3:])[:, None])
        return np.diff(below, axis=1, prepend=0.0, append=1.0)

    start = np.array([-1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    done = minimize(lambda theta: log_loss(codes, probabilities(theta, X)), start)
    return probabilities(done.x, new)


def test_ratings_are_predicted_as_well_as_by_the_model_that_drew_them(model) -> None:
    X, codes = rated(2000, 1)
    plain = EvidenceKernelClassifier(**QUICK).fit(rated(200, 0)[0], rated(200, 0)[1])
    assert model.levels_.tolist() == NAMES
    assert plain.levels_ is None
    places = np.searchsorted(model.classes_, NAMES)
    proba, other = model.predict_proba(X)[:, places], plain.predict_proba(X)
    truth = proportional_odds(*rated(200, 0), X)
    assert log_loss(codes, proba) < 1.02 * log_loss(codes, truth)
    assert log_loss(codes, proba) < log_loss(codes, other)


def test_reversed_levels_give_the_same_model(model) -> None:
    X, codes = rated(200, 0)
    other = EvidenceKernelClassifier(**QUICK, levels=NAMES[::-1]).fit(X, np.array(NAMES)[codes])
    assert other.levels_.tolist() == NAMES[::-1]
    np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))


def test_two_levels_have_no_neighbours() -> None:
    X, codes = rated(80, 0)
    two = np.minimum(codes, 1)
    plain = EvidenceKernelClassifier(**QUICK).fit(X, two)
    given = EvidenceKernelClassifier(**QUICK, levels=[1, 0]).fit(X, two)
    np.testing.assert_array_equal(given.predict_proba(X), plain.predict_proba(X))


def test_a_fold_may_lack_a_level() -> None:
    X, codes = rated(60, 0)
    codes = np.minimum(codes, 2)
    codes[0] = 3
    model = EvidenceKernelClassifier(**QUICK).fit(X, ordered(codes))
    assert np.isfinite(model.held_out_prediction_).all()
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize("kind", ["levels", "frame", "parquet", "polars", "pairs", "arrays"])
def test_batches_have_the_order_of_their_classes(model, kind: str, tmp_path: Path) -> None:
    X, codes = rated(200, 0)
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=ordered(codes))
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=50)
    enum = pl.from_pandas(frame.astype({"y": str})).cast({"y": pl.Enum(NAMES)})
    parts = {
        "levels": lambda: Batches(frame.astype({"y": object}), "y", size=70),
        "frame": lambda: Batches(frame, "y", size=70),
        "parquet": lambda: Batches(tmp_path / "t.parquet", "y", size=70),
        "polars": lambda: Batches(enum.lazy(), "y", size=70),
        "pairs": lambda: Batches(lambda: iter([(frame[["a", "b", "c"]], frame["y"])])),
        "arrays": lambda: Batches((X, frame["y"]), size=70),
    }[kind]()
    levels = NAMES if kind == "levels" else None
    found = EvidenceKernelClassifier(**QUICK, levels=levels).fit(parts)
    assert found.levels_.tolist() == NAMES
    new = rated(20, 1)[0]
    named = new if kind == "arrays" else pd.DataFrame(new, columns=list("abc"))
    np.testing.assert_allclose(found.predict_proba(named), model.predict_proba(new), atol=1e-6)
