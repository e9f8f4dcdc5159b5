"""How well models predict rows that they have not seen, on folds that all of them share."""

from __future__ import annotations

from .comparison import Row, TriedRival, tried, verdict
from .held_out import HeldOut, cross_predict, decision_of_classes, folds_of, held_out_by
from .ranking import Ranking, ranking_of, roc_area
from .rivals import Rival, rivals
from .scores import Score, lead, measure_name, score

__all__ = [
    "HeldOut",
    "Ranking",
    "Rival",
    "Row",
    "Score",
    "TriedRival",
    "cross_predict",
    "decision_of_classes",
    "folds_of",
    "held_out_by",
    "lead",
    "measure_name",
    "ranking_of",
    "rivals",
    "roc_area",
    "score",
    "tried",
    "verdict",
]
