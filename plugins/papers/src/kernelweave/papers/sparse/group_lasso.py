"""The group lasso for classes as skglm solves it, a group for each view: a rival."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Labels
from sklearn.base import BaseEstimator, ClassifierMixin

NEEDS = "skglm"


class GroupLasso(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Logistic regression whose coefficients vanish by groups of columns.

    Parameters
    ----------
    groups : sequence of list of int
        Columns.
    share : float
        The penalty, as a share of the least at which all coefficients are 0.
    squares : bool
        Whether the squares of its columns belong to a group too.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_columns) or (2, n_columns)
        Of the columns, and of their squares.
    """

    def __init__(
        self, groups: Sequence[list[int]] = (), share: float = 0.3, squares: bool = False
    ) -> None:
        self.groups = groups
        self.share = share
        self.squares = squares

    def fit(self, X: FloatArray, y: Labels) -> GroupLasso:
        """Fit signs of the two classes."""
        from skglm import GeneralizedLinearEstimator
        from skglm.datafits import LogisticGroup
        from skglm.penalties import WeightedGroupL2
        from skglm.solvers import GroupProxNewton

        self.classes_ = np.unique(y)
        signs = np.where(np.asarray(y) == self.classes_[1], 1.0, -1.0)
        wide = np.asfortranarray(self._wide(X))
        shifts = range(0, wide.shape[1], X.shape[1])
        members = [np.concatenate([np.add(at, by) for by in shifts]) for at in self.groups]
        ends = np.cumsum([0, *map(len, members)]).astype(np.int32)
        order = np.concatenate(members).astype(np.int32)
        weights = np.sqrt(np.diff(ends))
        # the gradient at the best intercept alone
        rest = signs / (1.0 + np.exp(signs * np.log((signs > 0).sum() / (signs < 0).sum())))
        slopes = [np.linalg.norm(wide[:, at].T @ rest) / len(signs) for at in members]
        penalty = WeightedGroupL2(
            self.share * float(np.max(slopes / weights)), weights, ends, order
        )
        self.model_ = GeneralizedLinearEstimator(
            LogisticGroup(ends, order), penalty, GroupProxNewton(fit_intercept=True, tol=1e-5)
        ).fit(wide, signs)
        self.coef_ = np.ravel(self.model_.coef_).reshape(-1, X.shape[1])
        return self

    def predict(self, X: FloatArray) -> Labels:
        """Return the class of each row."""
        values = self._wide(X) @ self.coef_.ravel() + float(np.ravel(self.model_.intercept_)[0])
        return np.asarray(self.classes_[(values > 0.0).astype(np.intp)])

    def _wide(self, X: FloatArray) -> FloatArray:
        return np.hstack([X, X**2]) if self.squares else X
