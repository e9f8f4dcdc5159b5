"""How well models predict rows that they have not seen, on folds that all of them share."""

from __future__ import annotations

from .comparison import CrossValidatedModel, Row, cross_validate_models, verdict
from .held_out import (
    Folds,
    HeldOut,
    cross_predict,
    decision_of_classes,
    folds_by,
    folds_of,
    held_out_by,
)
from .metrics import (
    SHORT,
    Metric,
    Ranking,
    also_scored,
    check_metric,
    has_rare_class,
    ranking_of,
    roc_area,
)
from .other_models import ComparedModel, other_models
from .scores import (
    Coverage,
    MeanInterval,
    Score,
    corrected_resampled,
    lead,
    measure_name,
    of_independent,
    score,
)

__all__ = [
    "SHORT",
    "ComparedModel",
    "Coverage",
    "CrossValidatedModel",
    "Folds",
    "HeldOut",
    "MeanInterval",
    "Metric",
    "Ranking",
    "Row",
    "Score",
    "also_scored",
    "check_metric",
    "corrected_resampled",
    "cross_predict",
    "cross_validate_models",
    "decision_of_classes",
    "folds_by",
    "folds_of",
    "has_rare_class",
    "held_out_by",
    "lead",
    "measure_name",
    "of_independent",
    "other_models",
    "ranking_of",
    "roc_area",
    "score",
    "verdict",
]
