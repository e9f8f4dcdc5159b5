"""A machine with an RBF kernel, tuned by folds."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from kernelweave.evidence import ColumnEncoder
from kernelweave.evidence.division import division_of
from kernelweave.kernels_core import KernelWeaveWarning
from kernelweave.kernels_core.arrays import FloatArray, Index, Labels, Rows
from sklearn.utils.metaestimators import available_if

from .trees import MOST_CATEGORIES, target_encoder, with_missing

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator
    from sklearn.model_selection import GridSearchCV

# rows that are tuned on, and learned from, at most: all pairs of more take minutes
TUNED, MOST = 1000, 8000
# support vectors of more numbers take minutes where one factorisation takes seconds
_SUPPORT = 2000
FOLDS = 3
# categories of a column: up to few are one-hot, of many each is a number; rarer ones are merged
_FEW_CATEGORIES = 20
# the last, which takes most of the time, is tried where the best of the others is beside it
_C = np.logspace(-1, 3, 5)
_ALPHA = np.logspace(-4, 1, 6)
# in units of one over the number of columns
_GAMMA = np.logspace(-1.5, 1.0, 6)


def rbf_title(task: str, n_rows: int) -> str:
    """Return what a tuned RBF machine that learns from so many rows is called."""
    return "tuned RBF kernel ridge" if _is_ridge(task, n_rows) else "tuned RBF SVM"


def _is_ridge(task: str, n_rows: int) -> bool:
    return task == "regression" and n_rows > _SUPPORT


class TunedRBF:
    """A tuned RBF SVM: few categories one-hot, many by their targets, columns scaled.

    A support vector machine; of numbers in more than 2,000 rows, kernel ridge regression. C, by
    tens from 0.1 to 1,000, or the ridge, by tens from 1e-4 to 10, and six γ are chosen by three
    folds of at most 1,000 training rows; the machine then learns from at most 8,000.
    """

    def __init__(self, task: str, seed: int) -> None:
        self.task = task
        self.seed = seed

    def fit(
        self,
        X: Rows,
        y: npt.NDArray[Any],
        weight: FloatArray | None = None,
        groups: Index | None = None,
        order: FloatArray | None = None,
    ) -> TunedRBF:
        """Tune, by folds of whole groups or of later rows where they are given, and learn."""
        self._encoder = ColumnEncoder(max_categories=MOST_CATEGORIES).fit(X, weight)
        numbers, codes = with_missing(self._encoder, X)
        self._columns = _prepared(numbers.shape[1], codes, self.task, self.seed)
        Z = self._columns.fit_transform(np.hstack([numbers, codes]), y)
        weight = np.ones(len(y)) if weight is None else weight
        if self.task == "regression":
            self._centre, self._unit = float(y.mean()), float(y.std()) or 1.0
        target = (y - self._centre) / self._unit if self.task == "regression" else y
        rows = np.random.RandomState(self.seed).permutation(len(y))
        few, many = rows[:TUNED], np.sort(rows[:MOST])
        machine = self._machine_for(len(y))
        division = {"groups": groups, "order": order}
        division = {name: None if each is None else each[few] for name, each in division.items()}
        folds = self._folds(Z[few], y[few], **division)
        chosen = self._tuned(machine, Z[few], target[few], weight[few], folds)
        machine.set_params(**chosen)
        self._machine = machine.fit(Z[many], target[many], weight[many])
        return self

    def _machine_for(self, n_rows: int) -> BaseEstimator:
        from sklearn.kernel_ridge import KernelRidge
        from sklearn.svm import SVC, SVR

        if _is_ridge(self.task, n_rows):
            return KernelRidge(kernel="rbf")
        return SVC() if self.task == "classification" else SVR(epsilon=0.05)

    def _folds(self, Z: FloatArray, y: Labels, groups: object, order: object) -> object:
        """Return the folds that choose, as scikit-learn takes them."""
        from sklearn.model_selection import KFold, StratifiedKFold

        classes = self.task == "classification"
        if len(Z) < FOLDS:
            raise ValueError(f"{len(Z)} training rows are too few for {FOLDS} folds to tune it on")
        division = division_of(Z, y, groups, order, None)
        if not division.is_given:
            kind = StratifiedKFold if classes else KFold
            return kind(FOLDS, shuffle=True, random_state=self.seed)
        codes = np.unique(y, return_inverse=True)[1] if classes else None
        return division.splits(FOLDS, codes, np.random.RandomState(self.seed))

    def _tuned(
        self, machine: object, Z: FloatArray, y: object, weight: object, folds: object
    ) -> dict[str, float]:
        """Return the settings that folds choose."""
        from sklearn.model_selection import GridSearchCV

        gamma = _GAMMA / max(1, Z.shape[1])

        def search(**grid: object) -> GridSearchCV:
            chosen = GridSearchCV(machine, grid | {"gamma": gamma}, cv=folds, refit=False)
            return chosen.fit(Z, y, sample_weight=weight)

        if not hasattr(machine, "C"):
            return dict(search(alpha=_ALPHA).best_params_)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The least populated class", UserWarning)
            best = search(C=_C[:-1])
            if best.best_params_["C"] == _C[-2]:
                best = max(best, search(C=_C[-1:]), key=lambda each: float(each.best_score_))
        return dict(best.best_params_)

    def predict(self, X: Rows) -> Labels:
        """Return labels or numbers."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", KernelWeaveWarning)
            given = self._machine.predict(self._rows(X))
        return np.asarray(given * self._unit + self._centre if self.task == "regression" else given)

    @property
    def classes_(self) -> Labels:
        """Labels of a classification."""
        return np.asarray(self._machine.classes_)

    @available_if(lambda self: self.task == "classification")
    def decision_function(self, X: Rows) -> FloatArray:
        """Return decision values: of two classes those of the second."""
        return np.asarray(self._machine.decision_function(self._rows(X)))

    def _rows(self, X: Rows) -> FloatArray:
        return np.asarray(self._columns.transform(np.hstack(with_missing(self._encoder, X))))


def _prepared(n_numbers: int, codes: FloatArray, task: str, seed: int) -> BaseEstimator:
    """Return a pipeline that turns numbers and categories into scaled numbers.

    Missing numbers are medians, with an indicator; a column of few categories is one-hot, and
    each of many is what targets are for it on average, by folds (scikit-learn's target encoding).
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    counts = [len(np.unique(column[~np.isnan(column)])) for column in codes.T]
    few = [n_numbers + j for j, count in enumerate(counts) if count <= _FEW_CATEGORIES]
    many = [n_numbers + j for j, count in enumerate(counts) if count > _FEW_CATEGORIES]
    medians = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    parts = ColumnTransformer(
        [
            ("numbers", medians, list(range(n_numbers))),
            ("few", OneHotEncoder(handle_unknown="ignore", sparse_output=False), few),
            ("many", target_encoder(task, seed), many),
        ]
    )
    return make_pipeline(parts, StandardScaler())
