"""How well models predict rows that they have not seen, on folds that all of them share."""

from __future__ import annotations

from .comparison import Row, TriedRival, tried, verdict
from .held_out import HeldOut, cross_predict, decision_of_classes, folds_of, held_out_by
from .intervals import MeanInterval, corrected_resampled, of_independent
from .ranking import Ranking, ranking_of, roc_area
from .rivals import Rival, rivals
from .scores import Score, lead, measure_name, score

__all__ = [
    "HeldOut",
    "MeanInterval",
    "Ranking",
    "Rival",
    "Row",
    "Score",
    "TriedRival",
    "corrected_resampled",
    "cross_predict",
    "decision_of_classes",
    "folds_of",
    "held_out_by",
    "lead",
    "measure_name",
    "of_independent",
    "ranking_of",
    "rivals",
    "roc_area",
    "score",
    "tried",
    "verdict",
]
