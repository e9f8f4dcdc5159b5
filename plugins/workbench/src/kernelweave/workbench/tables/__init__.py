"""Tables and figures of papers, recomputed: plans from plugins, kept cells, one page."""

from __future__ import annotations
