"""A fold by itself: every candidate fitted on its training rows."""

from __future__ import annotations

from kernelweave.evidence.folds import Fold, fit_metric, fold_of
from kernelweave.evidence.path import PathPlan
from kernelweave.evidence.rows import Rows
from kernelweave.kernels_core.arrays import Index


def fit_fold(rows: Rows, training: Index, held_out: Index, plan: PathPlan) -> Fold:
    """Fit every candidate on the training rows alone and predict the rows held out."""
    metric = fit_metric(rows.take(training), plan, seed=0)
    assert metric is not None
    return fold_of(rows, training, held_out, metric.polished(plan, range(len(metric.fits))))
