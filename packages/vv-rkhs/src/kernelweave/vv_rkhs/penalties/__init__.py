"""Regularisers with the variational form Ω(f) = min over η ≥ 0 of Σ ‖fⱼ‖²/ηⱼ + ω(η)."""

from __future__ import annotations

from .base import Penalty
from .elastic_net import ElasticNet
from .group import GroupNorm
from .squared_lp import SquaredLpNorm
from .update import update_weights

__all__ = ["ElasticNet", "GroupNorm", "Penalty", "SquaredLpNorm", "update_weights"]
