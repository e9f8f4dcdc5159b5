"""Numbers that are known on one side only, as laboratories and surveys write them: <0.5, 36+, 3-5.

A cell is read as a value and a side. The value alone would take a limit for a measurement; with a
dimension for its side a model learns what a limit means.
"""

from __future__ import annotations

import re
from typing import NamedTuple

SIDES = ("below", "between", "above")
# what stands before the limit of a cell that is shown again
MARKS = {"below": "<", "between": "about ", "above": ">"}
_LIMIT = re.compile(r"(<=|=<|<|≤|⩽|>=|=>|>|≥|⩾)\s*(\S.*)")
_OR_MORE = re.compile(r"(\D*[\d.,]*\d)\s*\+(\s*[^\d\s+-]\S*)?")
# 3-5, 3 – 5 kg and -3 - -1; a number before the dash that is no sign
_RANGE = re.compile(r"(-?\d[\d.,]*)\s*[-\u2013\u2014]\s*(-?\d[\d.,]*)(\s*[^\d\s+-]\S*)?")


class Sided(NamedTuple):
    """A cell in parts: its side, the text of its number, and that of its upper end, else empty."""

    side: str
    number: str
    upper: str = ""


def side_of(text: str) -> Sided | None:
    """Return the parts of a cell that is known on one side; ``None`` of others.

    Examples
    --------
    >>> from kernelweave.tables.sided import side_of
    >>> side_of("<0.5 mg/L")
    Sided(side='below', number='0.5 mg/L', upper='')
    >>> side_of("3-5")
    Sided(side='between', number='3', upper='5')
    """
    if limit := _LIMIT.fullmatch(text):
        return Sided("below" if limit[1].strip("=") in "<≤⩽" else "above", limit[2])
    if more := _OR_MORE.fullmatch(text):
        return Sided("above", more[1] + (more[2] or ""))
    if ends := _RANGE.fullmatch(text):
        unit = ends[3] or ""
        return Sided("between", ends[1] + unit, ends[2] + unit)
    return None
