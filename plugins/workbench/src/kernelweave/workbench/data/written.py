"""Numbers as people write them: with units, decimal commas, thousands, and as times of day."""

from __future__ import annotations

import datetime
import re
import warnings
from collections.abc import Iterable, Iterator
from numbers import Real
from typing import Any

import pandas as pd
from kernelweave.kernels_core import KernelWeaveWarning

from .table import is_missing

# 1,234,567.5 with at least one comma, and 1.234.567,5
_ENGLISH = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?")
_CONTINENTAL = re.compile(r"[-+]?(\d{1,3}(\.\d{3})+|\d+),\d+([eE][-+]?\d+)?")
_PLAIN = re.compile(r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?")
_FORMS = (_PLAIN, _ENGLISH, _CONTINENTAL)
_WHOLE = re.compile(r"[-+]?(\d{1,3}(\.\d{3})+|\d+)")
_THOUSANDS = re.compile(r"[-+]?([1-9]\d{0,2}(\.\d{3})+|\d+)")
_SIGNS = "€$£¥%"
# EUR 12.50: of currencies alone, for BUS 12 is a name
_CURRENCY = re.compile(
    r"^([-+]?)\s*(AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HUF|INR|JPY|KRW|MXN|NOK|PLN|SEK|TRY|USD|ZAR)"
    r"\s*([-+]?\d.*)"
)
_SIGN_OF = {"EUR": "€", "GBP": "£", "USD": "$"}
# 71.8 kg; 41 680 and 27'415; (78) for -78; 12:26 or 12:26:30
_UNIT = re.compile(r"(.*\d)\s*([^\d\s.,:;()+-][^\d\s]*)")
_GROUPED = re.compile(r"[-+]?[1-9]\d{0,2}([ \u00a0\u202f'’]\d{3})+([.,]\d+)?")
_BETWEEN = re.compile(r"[ \u00a0\u202f'’]")
_BRACKETS = re.compile(r"\(\s*([^-+()\s][^()]*)\)")
# 1,5 and 0,125, which no comma between thousands makes
_DECIMAL_COMMA = re.compile(r"[-+(\s€$£¥]*(0,\d+|[\d.]*\d,(\d{1,2}|\d{4,}))\s*[^\d\s,]{0,5}")
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?")


def read_numbers(
    frame: pd.DataFrame, separator: str | None = None
) -> tuple[pd.DataFrame, dict[str, str], dict[str, pd.Series]]:
    """Return a frame whose columns of written numbers are numbers, the units and texts they had.

    Those with decimal commas, with commas, blanks or apostrophes between thousands, with losses in
    brackets, with one sign of a currency or per cent before or behind every number, or with one
    unit behind every number; 5 % is 5. Times of day are hours. Other columns as they are.

    `frame`: cells as they are written; `separator`: between the columns: where it is a comma, 1,234
    has a thousand. So have $1,234 anywhere, 1.234 € anywhere, and $1.234 between semicolons, unless
    other cells of the column show that these are decimals. Where cells have no separator, those of
    all columns decide.

    Examples
    --------
    >>> import pandas as pd
    >>> written = pd.DataFrame({"a": ["1.234,5 €", "2 €"], "b": ["x,1", "y"]})
    >>> found, units, texts = read_numbers(written, ";")
    >>> found["a"].tolist(), units, texts["a"].tolist()
    ([1234.5, 2.0], {'a': '€'}, ['1.234,5 €', '2 €'])
    """
    texts = dict(_columns_of_texts(frame))
    between = separator or _separator_like(texts)
    read: dict[str, list[float]] = {}
    units, unsure = {}, {}
    for name, cells in texts.items():
        known, unit = _written(name, cells, between)
        if not known:
            continue
        if separator is None and between == "," and not unit and (cell := _unsure(known)):
            unsure[name] = f"{cell!r} is read as {known[cell]:.0f}"
        read[name] = [known.get(cell, float("nan")) for cell in frame[name]]
        if unit:
            units[name] = unit
    if unsure:
        warnings.warn(
            f"column {', '.join(map(repr, unsure))}: {next(iter(unsure.values()))}, its comma as "
            "one between thousands; if it is a decimal comma, write a point",
            KernelWeaveWarning,
            stacklevel=2,
        )
    if not read:
        return frame, {}, {}
    found = frame.copy(deep=False)
    found[list(read)] = pd.DataFrame(read, index=frame.index)
    return found, units, {name: frame[name] for name in read}


def units_in(cells: pd.Series) -> set[str]:
    """Return the units of a column that would be numbers if it had one only.

    `cells`: as `read_numbers` left them. Returns: an empty text for numbers without; nothing of
    columns that are no numbers either way.
    """
    units = set()
    for cell in cells.dropna().unique():
        if is_missing(cell):
            continue
        bare, unit = _bared({cell: str(cell).strip()})
        if not _are_numbers(bare.values()):
            return set()
        units.add(unit)
    return units


def _columns_of_texts(frame: pd.DataFrame) -> Iterator[tuple[str, list[object]]]:
    """Yield the name and the different cells, gaps left out, of columns that may hold texts."""
    for name, column in frame.items():
        if not (pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column)):
            continue
        try:
            yield str(name), [each for each in column.unique() if not is_missing(each)]
        except TypeError:
            # cells with several values in them, which are refused where they are used
            continue


def _separator_like(texts: dict[str, list[object]]) -> str:
    """Return the separator of a CSV in which commas would mean what they mean in these cells."""
    for column in texts.values():
        cells = {cell: cell.strip() for cell in column if isinstance(cell, str)}
        if any(map(_DECIMAL_COMMA.fullmatch, cells)) and _are_numbers(_bared(cells)[0].values()):
            return ";"
    return ","


def _are_numbers(texts: Iterable[str]) -> bool:
    """Whether each is a number in some way to write one."""
    return all(any(form.fullmatch(text) for form in _FORMS) for text in texts)


def _written(name: str, cells: list[object], separator: str) -> tuple[dict[Any, float], str]:
    """Return the number of each cell, and their unit; nothing where they are not read anew."""
    clock = {cell: cell.strftime("%H:%M:%S") for cell in cells if isinstance(cell, datetime.time)}
    texts = clock | {cell: cell.strip() for cell in cells if isinstance(cell, str)}
    plain = {
        cell: float(cell) for cell in cells if isinstance(cell, Real) and not isinstance(cell, bool)
    }
    if not texts or len(texts) + len(plain) < len(cells):
        return {}, ""
    times = {cell: _CLOCK.fullmatch(text) for cell, text in texts.items()}
    if all(times.values()):
        hours = {cell: _hours(found) for cell, found in times.items() if found}
        return ({}, "") if plain else (hours, "h")
    bare, unit = _bared(texts)
    if unit and plain:
        return {}, ""
    if unit == "€" or (unit in ("$", "£", "¥") and separator == ";"):
        whole = _thousands(name, bare)
        if whole:
            return whole, unit
    english = separator == "," or unit in ("$", "£", "¥")
    found = _numbers(bare, english=english, anew=bare != texts)
    return (found | plain if found else {}), unit


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
    texts = {cell: _CURRENCY.sub(r"\1\3 \2", text) for cell, text in texts.items()}
    parts = {cell: _UNIT.fullmatch(text) for cell, text in texts.items()}
    units = {"" if part is None else part[2] for part in parts.values()}
    # ½ and ² belong to the number
    if len(units) != 1 or "" in units or any(unit[0].isnumeric() for unit in units):
        return texts, ""
    unit = units.pop()
    bare = {cell: part[1] for cell, part in parts.items() if part is not None}
    return bare, _SIGN_OF.get(unit, unit)


def _bare(text: str, unit: str) -> str:
    """Return a cell without the unit before or behind its number."""
    if text.endswith(unit):
        return text[:-1].rstrip()
    return re.sub(rf"^([-+]?)\s*{re.escape(unit)}\s*", r"\1", text)


def _unsure(known: dict[Any, float]) -> str:
    """Return a cell whose comma is taken to stand before thousands, where nothing shows it."""
    texts = [cell for cell in known if isinstance(cell, str) and "," in cell]
    sure = any(cell.count(",") > 1 or "." in cell for cell in texts)
    return "" if sure or not texts else texts[0]


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
