"""The demo's work: a kernel chosen by the evidence beside what people use, on one split."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from kernelweave.tables import Target, choose_target, read_table, read_target
from numpy.typing import ArrayLike

from .errors import CommandError
from .progress import fit_bar
from .scoring import Coverage, rivals, score

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


# The demo shall end in seconds: larger tables are refused and sent to `fit`.
MAX_FEATURES = 13
MAX_ROWS = 2500
HELD_OUT = 0.3
SEED = 0
CONFIDENCE = 0.9
OURS = "evidence kernel"
OTHERS = {"tuned RBF SVM": "rbf", "HistGradientBoosting": "boosting"}
# As many as scikit-learn's `permutation_importance` takes.
_REPEATS = 5


class Demonstration:
    """Everything the demo shows, computed once.

    `name`: a data set by name or a file whose last column is the target. `found`: scores and
    seconds of each model, and what ours says of itself: what ``--json`` prints.
    """

    def __init__(self, name: str) -> None:
        table = read_table(name)
        self.target = read_target(table, choose_target(table, None))
        columns = [each for each in table.columns if each != self.target.column]
        _refuse_what_takes_minutes(name, len(columns), len(table.frame))
        self.name = name
        self._split(table.as_given(columns), self.target.values)
        self.found: dict[str, Any] = {
            "data": name,
            "task": self.target.task,
            "n_samples": len(table.frame),
            "n_features": len(columns),
            "n_train": len(self.y),
            "n_test": len(self.y_test),
            "scores": {label: self._scored(label) for label in (OURS, *OTHERS)},
        }
        self.found |= self._said_by_ours()

    @property
    def classes(self) -> bool:
        """Whether labels are predicted."""
        return self.target.task == "classification"

    def _split(self, X: pd.DataFrame, y: ArrayLike) -> None:
        from sklearn.model_selection import train_test_split

        self.X, self.X_test, self.y, self.y_test = train_test_split(
            X, y, test_size=HELD_OUT, random_state=SEED, stratify=y if self.classes else None
        )

    def _scored(self, label: str) -> dict[str, float]:
        """Fit one of the models and return its held-out score, its error and seconds."""
        model = self._made(label)
        started = time.perf_counter()
        with fit_bar(f"{label}: fitting {len(self.y)} rows"):
            model.fit(self.X, self.y)
        seconds = time.perf_counter() - started
        if label == OURS:
            self.model = model
        predicted, weight = np.asarray(model.predict(self.X_test)), np.ones(len(self.y_test))
        found = score(np.asarray(self.y_test), predicted, weight, self.target.task)
        return {"score": found.value, "error": found.error, "seconds": seconds}

    def _made(self, label: str) -> BaseEstimator:
        if label != OURS:
            rival = next(each for each in rivals() if each.name == OTHERS[label])
            return rival.make(self.target.task, SEED)
        from kernelweave.evidence import EvidenceKernelClassifier, EvidenceKernelRegressor

        return EvidenceKernelClassifier() if self.classes else EvidenceKernelRegressor()

    def _said_by_ours(self) -> dict[str, object]:
        """Return the held-out score by the folds, intervals' coverage, and what columns matter."""
        from sklearn.inspection import permutation_importance

        drop = permutation_importance(
            self.model, self.X_test, self.y_test, n_repeats=_REPEATS, random_state=SEED
        )["importances_mean"]
        order = np.argsort(-drop)
        said = {
            "held_out_score": self.model.held_out_score_,
            "held_out_error": self.model.held_out_error_,
            "importance": {str(self.X.columns[j]): float(drop[j]) for j in order},
        }
        if not self.classes:
            low, high = self.model.predict_interval(self.X_test, CONFIDENCE)
            inside = (low <= self.y_test) & (self.y_test <= high)
            predicted = self.model.predict(self.X_test)
            said["coverage"] = asdict(Coverage.of(CONFIDENCE, inside, predicted, self.X_test))
        return said

    def target_sentence(self) -> str:
        """Return what is predicted, for people."""
        return _target_sentence(self.target)


def _refuse_what_takes_minutes(name: str, n_features: int, n_rows: int) -> None:
    for count, most, what in ((n_features, MAX_FEATURES, "features"), (n_rows, MAX_ROWS, "rows")):
        if count > most:
            raise CommandError(
                f"{name} has {count} {what}, and the demo takes at most {most}: use `kernelweave "
                f"fit {name}`"
            )


def _target_sentence(target: Target) -> str:
    if target.task == "regression":
        return f"regression, targets from {target.values.min():g} to {target.values.max():g}"
    labels, counts = np.unique(target.values, return_counts=True)
    parts = [f"{label} {count}" for label, count in zip(labels, counts, strict=True)]
    return f"classification: {', '.join(parts)}"
