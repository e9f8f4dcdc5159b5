"""Colours that people with a colour-vision deficiency can tell apart (Okabe and Ito)."""

from __future__ import annotations

from typing import Any

UPPER = "#D55E00"
LOWER = "#0072B2"
GAP = "#333333"
FAINT = "#8C8C8C"
HEAT = "cividis"
DIVERGING = "PuOr"
# one style a series: told apart by marker and dash too
SERIES: tuple[dict[str, Any], ...] = tuple(
    {"color": color, "marker": marker, "markersize": 3, "linewidth": 1.2, "linestyle": line}
    for color, marker, line in (
        ("#0072B2", "o", "-"),
        ("#D55E00", "v", "--"),
        ("#009E73", "s", "-."),
        ("#CC79A7", "^", ":"),
        ("#E69F00", "D", "-"),
        ("#56B4E9", "P", "--"),
        ("#333333", "X", "-."),
    )
)
