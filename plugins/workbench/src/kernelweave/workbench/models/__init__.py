"""Models as files: saved whole or not at all, loaded without running anything from them."""

from __future__ import annotations

from .header import Header
from .model import Model
from .store import load_model, save_model

__all__ = ["Header", "Model", "load_model", "save_model"]
