"""Boosted trees on a table as it is: missing values stay, categories are codes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from kernelweave.evidence import ColumnEncoder
from kernelweave.kernels_core.arrays import FloatArray, Labels, Rows

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


# histograms of trees have 255 bins, one of them for missing values: each category of a column with
# more is what targets are for it on average, as scikit-learn advises
_MOST_BINS = 254
# rarer ones are merged
MOST_CATEGORIES = 10_000
# title and module
KINDS = {
    "boosting": ("HistGradientBoosting", "sklearn"),
    "catboost": ("CatBoost", "catboost"),
    "lightgbm": ("LightGBM", "lightgbm"),
    "xgboost": ("XGBoost", "xgboost"),
}


class BoostedTrees:
    """Boosted trees of one of four libraries, with the settings that the library comes with.

    `kind`: ``"boosting"`` (scikit-learn's histograms), ``"catboost"``, ``"lightgbm"``,
    ``"xgboost"``.
    """

    def __init__(self, kind: str, task: str, seed: int) -> None:
        self.kind = kind
        self.task = task
        self.seed = seed

    def fit(self, X: Rows, y: Labels, weight: FloatArray | None = None) -> BoostedTrees:
        """Learn the columns and the trees."""
        self._encoder = ColumnEncoder(max_categories=MOST_CATEGORIES).fit(X, weight)
        if self.task == "classification":
            # not every library takes text as labels
            self.classes_, y = np.unique(y, return_inverse=True)
        counts = [
            len(each.categories) for each in self._encoder.dimensions_ if each.kind == "category"
        ]
        limit = _MOST_BINS if self.kind == "boosting" else MOST_CATEGORIES
        self._many = np.array(counts, dtype=int) > limit
        self._by_target = target_encoder(self.task, self.seed)
        rows, words = self._as_taken(X, partial(self._by_target.fit_transform, y=y))
        self._model = _made(self.kind, self.task, self.seed, words)
        self._model.fit(rows, y, sample_weight=weight)
        return self

    def predict(self, X: Rows) -> Labels:
        """Return labels or numbers."""
        rows, _ = self._as_taken(X, self._by_target.transform)
        given = np.asarray(self._model.predict(rows)).ravel()
        if self.task == "regression":
            return given
        return self.classes_[given.astype(np.intp)]

    def predict_proba(self, X: Rows) -> npt.NDArray[np.float64]:
        """Return the probability of each class."""
        rows, _ = self._as_taken(X, self._by_target.transform)
        return np.asarray(self._model.predict_proba(rows))

    def _as_taken(
        self, X: Rows, mean_of: Callable[[FloatArray], FloatArray]
    ) -> tuple[FloatArray | pd.DataFrame, list[int]]:
        """Return rows as the library takes them, and which columns hold categories."""
        numbers, codes = with_missing(self._encoder, X)
        if self._many.any():
            numbers = np.hstack([numbers, mean_of(codes[:, self._many])])
            codes = codes[:, ~self._many]
        words = list(range(numbers.shape[1], numbers.shape[1] + codes.shape[1]))
        if self.kind == "boosting":
            return np.hstack([numbers, codes]), words
        frame = pd.DataFrame(np.hstack([numbers, codes]))
        for j in words:
            if self.kind == "catboost":
                frame[j] = frame[j].fillna(-1).astype(int)
            else:
                labels = self._encoder.dimensions_[j - len(self._encoder.dimensions_)].categories
                frame[j] = pd.Categorical(frame[j], categories=np.arange(float(len(labels))))
        frame.columns = pd.Index([f"x{j}" for j in frame.columns])
        return frame, words


def target_encoder(task: str, seed: int) -> BaseEstimator:
    """Return an encoder of categories by the mean of their targets, by folds in training."""
    from sklearn.model_selection import KFold, StratifiedKFold
    from sklearn.preprocessing import TargetEncoder

    # "auto" would take whole numbers for classes
    kind = "continuous" if task == "regression" else "auto"
    folds = (KFold if task == "regression" else StratifiedKFold)(5, shuffle=True, random_state=seed)
    # how folds are given changed in scikit-learn 1.9
    default = signature(TargetEncoder).parameters["random_state"].default
    given = {"cv": folds} if default == "deprecated" else {"random_state": seed}
    return TargetEncoder(target_type=kind, **given)


def with_missing(
    encoder: ColumnEncoder, X: Rows
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return numbers with NaN for missing values, and codes of categories, NaN for new ones.

    Numbers have no indicators: trees take a missing value as it is.
    """
    numeric, codes = encoder.transform(X)
    kinds = encoder.dimensions_[: numeric.shape[1]]
    numbers = numeric.copy()
    for j, each in enumerate(kinds):
        if each.kind == "missing":
            columns = [k for k, other in enumerate(kinds) if other.source == each.source and k != j]
            numbers[np.ix_(np.flatnonzero(numeric[:, j] > 0), np.array(columns))] = np.nan
    kept = [j for j, each in enumerate(kinds) if each.kind != "missing"]
    counts = np.array([len(each.categories) for each in encoder.dimensions_[numeric.shape[1] :]])
    return numbers[:, kept], np.where(codes < counts, codes, np.nan)


def _made(kind: str, task: str, seed: int, words: list[int]) -> BaseEstimator:
    """Return trees of a library that may be installed, with the settings that it comes with."""
    libraries: dict[str, tuple[str, dict[str, Any]]] = {
        "boosting": ("HistGradientBoosting", {"categorical_features": words or None}),
        "catboost": (
            "CatBoost",
            {"cat_features": words, "verbose": False, "allow_writing_files": False},
        ),
        "lightgbm": ("LGBM", {"verbose": -1}),
        "xgboost": ("XGB", {"enable_categorical": True}),
    }
    name, settings = libraries[kind]
    module = "sklearn.ensemble" if kind == "boosting" else kind
    suffix = "Classifier" if task == "classification" else "Regressor"
    made: type[BaseEstimator] = getattr(import_module(module), name + suffix)
    return made(**{"random_seed" if kind == "catboost" else "random_state": seed}, **settings)
