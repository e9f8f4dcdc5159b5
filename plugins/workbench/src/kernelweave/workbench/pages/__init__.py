"""Self-contained HTML pages: one style, for screens wide and narrow, dark, and for paper."""

from __future__ import annotations

from .pictures import as_data_uri, figure_svg
from .rendering import render

__all__ = ["as_data_uri", "figure_svg", "render"]
