"""Colours that people with a colour-vision deficiency can tell apart (Okabe and Ito)."""

from __future__ import annotations

UPPER = "#D55E00"
LOWER = "#0072B2"
GAP = "#333333"
FAINT = "#8C8C8C"
HEAT = "cividis"
