"""One self-contained HTML page about a fitted model."""

from __future__ import annotations

from .page import report_page

__all__ = ["report_page"]
