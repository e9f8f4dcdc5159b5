"""λ by cross-validation: one for all targets, or one each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import Index, Matrix, RealArray
from kernelweave.kernels_core.checks import integer
from kernelweave.vv_rkhs import PrecomputedFamily

from .target import Task, fit_target, of_kernels

Fold = tuple[Index, Index]


def make_folds(cv: Any, replicate: Index) -> list[Fold]:
    """Return training and test samples of each fold.

    `cv`: a number k: whole replicates are held out where there are at least three, contiguous
    stretches of time otherwise. Or anything with scikit-learn's ``split``. `replicate` of shape
    (n_samples,): replicate of each sample. Raises ValueError if there are fewer samples than folds.
    """
    from sklearn.model_selection import GroupKFold, KFold

    samples = np.empty((len(replicate), 1))
    if hasattr(cv, "split") and not isinstance(cv, str):
        return list(cv.split(samples, groups=replicate))
    _FOLDS.check("cv", cv)
    n_replicates = int(replicate.max()) + 1
    if n_replicates >= 3:
        return list(GroupKFold(min(int(cv), n_replicates)).split(samples, groups=replicate))
    if len(replicate) < cv:
        raise ValueError(
            f"cv={cv} folds need as many samples, got n_samples={len(replicate)}: the series is "
            "too short, give a longer one or fewer folds"
        )
    return list(KFold(int(cv)).split(samples))


_FOLDS = replace(integer(2), words="an integer >= 2 or a splitter")


@dataclass(frozen=True, eq=False)
class Selection:
    """Held-out errors and what they choose.

    `lams` of shape (n_lams,): candidates; `errors` of shape (n_lams, n_nodes): mean squared error
    of held-out predictions, in standardised units; `chosen` of shape (n_groups,): candidate of each
    target group.
    """

    lams: npt.NDArray[np.float64]
    errors: Matrix
    chosen: Index

    @property
    def end(self) -> str:
        """Return whether the one λ that serves all is the largest or the least candidate."""
        if len(self.lams) < 2 or len(set(self.chosen.tolist())) > 1:
            return ""
        return {0: "the largest tried", len(self.lams) - 1: "the least tried"}.get(
            int(self.chosen[0]), ""
        )

    def error(self, groups: list[Index]) -> npt.NDArray[np.float64]:
        """Return the held-out error of each node at the chosen λ, shape (n_nodes,)."""
        out = np.full(self.errors.shape[1], np.nan)
        for nodes, each in zip(groups, self.chosen, strict=True):
            out[nodes] = self.errors[each, nodes]
        return out


def held_out_errors(
    grams: RealArray,
    Y: Matrix,
    seen: Index,
    folds: list[Fold],
    lams: npt.NDArray[np.float64],
    task: Task,
) -> Matrix:
    """Return mean squared errors of one target group, shape (n_lams, n_outputs).

    - `grams` of shape (n_kernels, n_samples, n_samples): kernels of all histories
    - `Y` of shape (n_samples, n_outputs): targets
    - `seen`: kernels of the model
    - `folds`: training and test samples
    - `lams` of shape (n_lams,): candidates; each fit starts at the weights of the one before
    - `task`: the problem

    Returns shape (n_lams, n_outputs): over all held-out samples.
    """
    grams = of_kernels(grams, seen)
    total = np.zeros((len(lams), Y.shape[1]))
    count = 0
    for train, test in folds:
        inner = np.ascontiguousarray(grams[:, train[:, None], train])
        cross = grams[:, test[:, None], train]
        family, start = PrecomputedFamily(inner, check=False), None
        for i, lam in enumerate(lams):
            fit = fit_target(family, Y[train], float(lam), task, start=start)
            total[i] += ((fit.predict(cross) - Y[test]) ** 2).sum(axis=0)
            start = fit.weights
        count += len(test)
    return total / count


def choose(
    errors: Matrix, lams: npt.NDArray[np.float64], groups: list[Index], shared: bool
) -> Selection:
    """Return the candidate of least error, over all nodes or group by group.

    - `errors` of shape (n_lams, n_nodes): held-out errors
    - `lams` of shape (n_lams,): candidates
    - `groups`: columns of each target group
    - `shared`: whether all targets share one λ
    """
    if shared:
        best = np.full(len(groups), int(np.nansum(errors, axis=1).argmin()))
    else:
        best = np.array([int(errors[:, nodes].sum(axis=1).argmin()) for nodes in groups])
    return Selection(lams, errors, best)
