"""How a model does on a table: scores, and what its pictures need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..data import Table, Target, read_target
from ..errors import CommandError
from ..models import Model
from ..scoring import Score, score

_MOST_DRAWN = 300


@dataclass(frozen=True)
class Evaluation:
    """Predictions of a model on data with known targets.

    Attributes
    ----------
    X : ndarray or DataFrame of shape (n, n_features)
        As the model takes them.
    y : ndarray of shape (n,)
        Known.
    predicted : ndarray of shape (n,)
        By the model.
    source : str
        Of the data.
    classes : bool, default=True
        Whether ``y`` holds labels.
    """

    X: Any
    y: npt.NDArray[Any]
    predicted: npt.NDArray[Any]
    source: str
    classes: bool = True

    @property
    def score(self) -> Score:
        """R² or accuracy with its standard error; each row counts the same."""
        task = "classification" if self.classes else "regression"
        return score(self.y, self.predicted, np.ones(len(self.y)), task)

    def scores(self, task: str) -> dict[str, float]:
        """Return the usual scores by name."""
        from sklearn import metrics

        if task == "classification":
            return {
                "accuracy": float(metrics.accuracy_score(self.y, self.predicted)),
                "balanced accuracy": float(metrics.balanced_accuracy_score(self.y, self.predicted)),
                "macro F1": float(metrics.f1_score(self.y, self.predicted, average="macro")),
            }
        return {
            "R²": float(metrics.r2_score(self.y, self.predicted)),
            "root mean squared error": float(
                metrics.root_mean_squared_error(self.y, self.predicted)
            ),
            "mean absolute error": float(metrics.mean_absolute_error(self.y, self.predicted)),
        }

    def confusion(self, classes: tuple[Any, ...]) -> list[list[Any]]:
        """Return one row a true class: its name, then how often each class was predicted."""
        from sklearn.metrics import confusion_matrix

        counts = confusion_matrix(self.y, self.predicted, labels=list(classes))
        return [[label, *map(int, row)] for label, row in zip(classes, counts, strict=True)]

    def drawn(self) -> npt.NDArray[np.intp]:
        """Return the samples of a heat map: all, or an even choice along the order of y."""
        order = np.argsort(self.y, kind="stable")
        if len(order) <= _MOST_DRAWN:
            return order
        return order[np.linspace(0, len(order) - 1, _MOST_DRAWN).astype(np.intp)]

    def rows(self, chosen: npt.NDArray[np.intp]) -> Any:
        """Return some of the samples."""
        return self.X.iloc[chosen] if hasattr(self.X, "iloc") else self.X[chosen]


def evaluate(model: Model, table: Table, column: str | None) -> Evaluation:
    """Predict a table that holds the target too.

    Parameters
    ----------
    model : Model
    table : Table
    column : str or None
        The target's name; the one the model was fitted to without it.

    Returns
    -------
    Evaluation

    Raises
    ------
    CommandError
        If the table lacks a column, or holds classes the model does not know.
    """
    target: Target = read_target(table, column or model.header.target, model.header.task)
    known = model.header.classes
    if known is not None:
        strange = sorted(set(np.unique(target.values).tolist()) - set(known), key=str)
        if strange:
            raise CommandError(
                f"{table.source}: the model knows no class {strange[0]!r}; it knows "
                f"{', '.join(map(repr, known))}"
            )
    X = model.inputs(table)
    predicted = np.asarray(model.estimator.predict(X))
    return Evaluation(X, target.values, predicted, table.source, classes=known is not None)
