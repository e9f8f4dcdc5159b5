"""Numbers as people write them: with units, decimal commas, thousands, and as times of day."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pandas as pd
from kernelweave.kernels_core import KernelWeaveWarning

from .table import is_missing

# 1,234,567.5 with at least one comma, and 1.234.567,5
_ENGLISH = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?")
_CONTINENTAL = re.compile(r"[-+]?(\d{1,3}(\.\d{3})+|\d+),\d+([eE][-+]?\d+)?")
_PLAIN = re.compile(r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?")
_WHOLE = re.compile(r"[-+]?(\d{1,3}(\.\d{3})+|\d+)")
_THOUSANDS = re.compile(r"[-+]?([1-9]\d{0,2}(\.\d{3})+|\d+)")
_SIGNS = "€$£¥%"
# 71.8 kg; 41 680 and 27'415; (78) for -78; 12:26 or 12:26:30
_UNIT = re.compile(r"(.*\d)\s*([^\d\s.,:;()+-][^\d\s]*)")
_GROUPED = re.compile(r"[-+]?[1-9]\d{0,2}([ \u00a0\u202f'’]\d{3})+([.,]\d+)?")
_BETWEEN = re.compile(r"[ \u00a0\u202f'’]")
_BRACKETS = re.compile(r"\(\s*([^-+()\s][^()]*)\)")
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?")


def read_numbers(frame: pd.DataFrame, separator: str) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return a frame whose columns of written numbers are numbers, and the units they had.

    Those with decimal commas, with commas, blanks or apostrophes between thousands, with losses in
    brackets, with one sign of a currency or per cent before or behind every number, or with one
    unit behind every number; 5 % is 5. Times of day are hours. Other columns as they are.

    `frame`: cells as they are written; `separator`: between the columns: where it is a comma, 1,234
    has a thousand. So have $1,234 anywhere, 1.234 € anywhere, and $1.234 between semicolons, unless
    other cells of the column show that these are decimals.

    Examples
    --------
    >>> import pandas as pd
    >>> written = pd.DataFrame({"a": ["1.234,5 €", "2 €"], "b": ["x,1", "y"]})
    >>> found, units = read_numbers(written, ";")
    >>> found["a"].tolist(), units
    ([1234.5, 2.0], {'a': '€'})
    """
    units = {}
    for name, column in frame.items():
        if pd.api.types.is_numeric_dtype(column):
            continue
        cells = [each for each in column.unique() if not is_missing(each)]
        known, unit = _written(str(name), cells, separator)
        if known:
            numbers = [known.get(cell, float("nan")) for cell in column]
            frame = frame.assign(**{str(name): numbers})
            if unit:
                units[str(name)] = unit
    return frame, units


def _written(name: str, cells: list[object], separator: str) -> tuple[dict[Any, float], str]:
    """Return the number of each cell, and their unit; nothing where they are not read anew."""
    texts = {cell: cell.strip() for cell in cells if isinstance(cell, str)}
    if len(texts) < len(cells):
        return {}, ""
    times = {cell: _CLOCK.fullmatch(text) for cell, text in texts.items()}
    if times and all(times.values()):
        return {cell: _hours(found) for cell, found in times.items() if found}, "h"
    bare, unit = _bared(texts)
    if unit == "€" or (unit in ("$", "£", "¥") and separator == ";"):
        whole = _thousands(name, bare)
        if whole:
            return whole, unit
    english = separator == "," or unit in ("$", "£", "¥")
    return _numbers(bare, english=english, anew=bare != texts), unit


def _numbers(texts: dict[Any, str], *, english: bool, anew: bool) -> dict[Any, float]:
    """Return the number of each cell; nothing unless all are numbers and one is not plain.

    `english`: whether 1,234 has a thousand, for certain; `anew`: whether none need be so.
    """
    rest = [text for text in texts.values() if not _PLAIN.fullmatch(text)]
    if not rest and anew:
        return {cell: float(text) for cell, text in texts.items()}
    if not any("," in text for text in rest):
        return {}
    english = english or any("." in text for text in texts.values())
    if english and all(map(_ENGLISH.fullmatch, rest)):
        return {cell: float(text.replace(",", "")) for cell, text in texts.items()}
    if all(_CONTINENTAL.fullmatch(text) or _WHOLE.fullmatch(text) for text in texts.values()):
        return {
            cell: float(text.replace(".", "").replace(",", ".")) for cell, text in texts.items()
        }
    return {}


def _hours(found: re.Match[str]) -> float:
    hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return hours + minutes / 60.0 + seconds / 3600.0


def _bared(texts: dict[Any, str]) -> tuple[dict[Any, str], str]:
    """Return cells without brackets, marks between thousands and a unit, and what the unit is."""
    texts = {cell: _BRACKETS.sub(r"-\1", text) for cell, text in texts.items()}
    texts, unit = _without_unit(texts)
    return {
        cell: _BETWEEN.sub("", text) if _GROUPED.fullmatch(text) else text
        for cell, text in texts.items()
    }, unit


def _without_unit(texts: dict[Any, str]) -> tuple[dict[Any, str], str]:
    """Return cells without the sign or the unit that all of them share, and what it is."""
    for sign in _SIGNS if texts else "":
        if all(sign in text for text in texts.values()):
            return {cell: _bare(text, sign) for cell, text in texts.items()}, sign
    parts = {cell: _UNIT.fullmatch(text) for cell, text in texts.items()}
    units = {"" if part is None else part[2] for part in parts.values()}
    # ½ and ² belong to the number
    if len(units) != 1 or "" in units or any(unit[0].isnumeric() for unit in units):
        return texts, ""
    return {cell: part[1] for cell, part in parts.items() if part is not None}, units.pop()


def _bare(text: str, unit: str) -> str:
    """Return a cell without the unit before or behind its number."""
    if text.endswith(unit):
        return text[:-1].rstrip()
    return re.sub(rf"^([-+]?)\s*{re.escape(unit)}\s*", r"\1", text)


def _thousands(name: str, texts: dict[str, str]) -> dict[Any, float]:
    """Return whole amounts, if all are and some have points between thousands."""
    points = [text.count(".") for text in texts.values()]
    if not any(points) or not all(map(_THOUSANDS.fullmatch, texts.values())):
        return {}
    found = {cell: float(text.replace(".", "")) for cell, text in texts.items()}
    if set(points) == {1}:
        cell = next(iter(found))
        warnings.warn(
            f"column {name!r}: {cell!r} is read as {found[cell]:.0f}, its point as one between "
            "thousands; if it is a decimal point, remove the sign of the currency",
            KernelWeaveWarning,
            stacklevel=3,
        )
    return found
