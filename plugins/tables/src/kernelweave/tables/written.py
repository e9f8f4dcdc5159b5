"""Numbers as people write them: with units, decimal commas, thousands, and as times of day."""

from __future__ import annotations

import datetime
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import pandas as pd
from kernelweave.kernels_core import KernelWeaveWarning

from .table import is_missing

# 1,234,567.5 with at least one comma, 12,34,567 as in India, and 1.234.567,5
_ENGLISH = re.compile(r"[-+]?([1-9]\d{0,2}(,\d{3})+|[1-9]\d?(,\d{2})+,\d{3})(\.\d+)?")
_CONTINENTAL = re.compile(r"[-+]?(\d{1,3}(\.\d{3})+|\d+),\d+([eE][-+]?\d+)?")
_PLAIN = re.compile(r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?")
_WHOLE = re.compile(r"[-+]?(\d{1,3}(\.\d{3})+|\d+)")
_FORMS = (_PLAIN, _ENGLISH, _CONTINENTAL, _WHOLE)
_THOUSANDS = re.compile(r"[-+]?([1-9]\d{0,2}(\.\d{3})+|\d+)")
_SIGNS = "€$£¥₹%"
# EUR 12.50 and A$12: of currencies alone, for BUS 12 is a name
_CURRENCY = re.compile(
    r"^([-+]?)\s*([A-Z]{1,3}\$|AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HUF|INR|JPY|KRW|MXN|NOK|PLN|SEK|TRY|USD|ZAR)"
    r"\s*([-+]?\d.*)"
)
_SIGN_OF = {"EUR": "€", "GBP": "£", "INR": "₹", "USD": "$", "US$": "$"}
# 71.8 kg; 41 680 and 27'415; (78) for -78; 12:26 or 12:26:30
_UNIT = re.compile(r"(.*\d)\s*([^\d\s.,:;()+-][^\d\s]*)")
_GROUPED = re.compile(r"[-+]?[1-9]\d{0,2}([ \u00a0\u202f'’]\d{3})+([.,]\d+)?")
_BETWEEN = re.compile(r"[ \u00a0\u202f'’]")
_BRACKETS = re.compile(r"\(\s*([^-+()\s][^()]*)\)")
# 1,5 and 0,125, which no comma between thousands makes
_DECIMAL_COMMA = re.compile(r"[-+(\s€$£¥]*(0,\d+|[\d.]*\d,(\d{1,2}|\d{4,}))\s*[^\d\s,]{0,5}")
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?(?: ?([AaPp])\.?[Mm]\.?)?")
# words among numbers that stand for gaps or are typing errors, as the evidence kernel takes them
_MOST_ODD = 2
_NUMBERS_AN_ODD = 10


@dataclass(frozen=True)
class _Cell:
    """A cell as digits and its unit; `value`: its number, if it needs no reading."""

    digits: str
    unit: str
    value: float | None = None


def read_numbers(
    frame: pd.DataFrame, source: str, separator: str | None = None
) -> tuple[pd.DataFrame, dict[str, str], dict[str, pd.Series]]:
    """Return a frame whose columns of written numbers are numbers, the units and texts they had.

    Those with decimal commas, with commas, blanks or apostrophes between thousands, with losses in
    brackets, with one sign of a currency or per cent before or behind the number, or with one
    unit behind it; 5 % is 5. Times of day are hours. Where most rows have the unit, the others are
    taken to be in it, with a warning. One or two words among many numbers stay as they are. Other
    columns as they are.

    `frame`: cells as they are written; `source`: what warnings call it; `separator`: between the
    columns: where it is a comma, 1,234 has a thousand. So have $1,234 anywhere, 1.234 € anywhere,
    and $1.234 between semicolons, unless other cells of the column show that these are decimals.
    Where cells have no separator, those of all columns decide.

    Examples
    --------
    >>> import pandas as pd
    >>> written = pd.DataFrame({"a": ["1.234,5 €", "2 €"], "b": ["x,1", "y"]})
    >>> found, units, texts = read_numbers(written, "t.csv", ";")
    >>> found["a"].tolist(), units, texts["a"].tolist()
    ([1234.5, 2.0], {'a': '€'}, ['1.234,5 €', '2 €'])
    """
    texts = dict(_columns_of_texts(frame))
    between = separator or _separator_like(texts)
    read: dict[str, pd.Series] = {}
    units, unsure = {}, {}
    for name, cells in texts.items():
        written = _cells(cells)
        unit = _unit_of_most(written, frame[name])
        place = f"{source}: column {name!r}"
        known = _written(place, written, unit, between)
        if not known or not _nearly_all(known, cells, frame[name]):
            continue
        if separator is None and between == "," and not unit and (cell := _unsure(known)):
            unsure[name] = f"{cell!r} is read as {known[cell]:.0f}"
        read[name] = _numbered(frame[name], cells, known)
        if unit:
            _warn_of_bare(place, frame[name], written, known, unit)
            units[name] = unit
    if unsure:
        warnings.warn(
            f"{source}: column {', '.join(map(repr, unsure))}: {next(iter(unsure.values()))}, "
            "its comma as one between thousands; if it is a decimal comma, write a point",
            KernelWeaveWarning,
            stacklevel=2,
        )
    if not read:
        return frame, {}, {}
    found = frame.copy(deep=False)
    found[list(read)] = pd.DataFrame(read, index=frame.index)
    return found, units, {name: frame[name] for name in read}


def read_in_unit(
    column: pd.Series, unit: str, source: str, separator: str | None = None
) -> pd.Series:
    """Return a column of texts in which those in one unit, or in none, are numbers.

    `column`: texts; `unit`: empty for none; `source`, `separator`: as for `read_numbers`. Returns:
    other texts, such as numbers in other units, as they are.

    Examples
    --------
    >>> import pandas as pd
    >>> read_in_unit(pd.Series(["70,5 kg", "68 kg", "150 lb"]), "kg", "t.csv", ";").tolist()
    [70.5, 68.0, '150 lb']
    """
    name = str(column.name)
    texts = dict(_columns_of_texts(column.to_frame(name)))
    if name not in texts:
        return column
    written = _cells(texts[name])
    place = f"{source}: column {name!r}"
    known = _written(place, written, unit, separator or _separator_like(texts), plain=True)
    if not known:
        return column
    if unit:
        _warn_of_bare(place, column, written, known, unit)
    return _numbered(column, texts[name], known)


def is_written_number(text: str) -> bool:
    """Whether a cell is a number in some way to write one, with a unit or without.

    `text`: the cell.
    """
    return bool(_cells([text]))


def units_in(cells: pd.Series) -> set[str]:
    """Return the units of a column that would be numbers if it had one only.

    `cells`: as `read_numbers` left them. Returns: an empty text for numbers without; nothing of
    columns that are no numbers either way, or are numbers but for a word or two.
    """
    different = [each for each in cells.dropna().unique() if not is_missing(each)]
    units = Counter(each.unit for each in _cells(different).values())
    if units.total() < len(different) or _are_few(len(different) - units[""], len(different)):
        return set()
    return set(units)


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
        cells = [cell.strip() for cell in column if isinstance(cell, str)]
        if any(map(_DECIMAL_COMMA.fullmatch, cells)) and len(_cells(cells)) == len(cells):
            return ";"
    return ","


def _cells(cells: Iterable[object]) -> dict[object, _Cell]:
    """Return those of the different cells of a column that are numbers in some way to write one."""
    found: dict[object, _Cell] = {}
    for cell in cells:
        if isinstance(cell, Real) and not isinstance(cell, bool):
            found[cell] = _Cell("", "", float(cell))
        elif isinstance(cell, str | datetime.time):
            read = _cell(cell.strip() if isinstance(cell, str) else cell.strftime("%H:%M:%S"))
            if read.value is not None or any(form.fullmatch(read.digits) for form in _FORMS):
                found[cell] = read
    return found


def _cell(text: str) -> _Cell:
    """Return a text without brackets, marks between thousands and a unit, and what the unit is."""
    clock = _CLOCK.fullmatch(text)
    if clock:
        hours, minutes, seconds = (float(part or 0) for part in clock.groups()[:3])
        if half := clock[4]:  # 12:30 AM is half past midnight
            hours = hours % 12.0 + 12.0 * (half in "Pp")
        return _Cell("", "h", hours + minutes / 60.0 + seconds / 3600.0)
    text, unit = _without_unit(_BRACKETS.sub(r"-\1", text))
    return _Cell(_BETWEEN.sub("", text) if _GROUPED.fullmatch(text) else text, unit)


def _without_unit(text: str) -> tuple[str, str]:
    """Return a text without the sign or the unit before or behind its number, and what it is."""
    if currency := _CURRENCY.fullmatch(text):
        return currency[1] + currency[3], _SIGN_OF.get(currency[2], currency[2])
    for sign in _SIGNS:
        if text.endswith(sign) and not text[-2:-1].isalpha():
            return text[:-1].rstrip(), sign
        if sign in text[:-1]:
            return re.sub(rf"^([-+]?)\s*{re.escape(sign)}\s*", r"\1", text), sign
    parts = _UNIT.fullmatch(text)
    # ½ and ² belong to the number
    if parts is None or parts[2][0].isnumeric():
        return text, ""
    return parts[1], _SIGN_OF.get(parts[2], parts[2])


def _unit_of_most(written: Mapping[object, _Cell], column: pd.Series) -> str:
    """Return the unit that most rows have; none where as many have none."""
    units = {cell: each.unit for cell, each in written.items()}
    if len(set(units.values())) < 2:
        return next(iter(units.values()), "")
    counts = column.map(units).value_counts()
    return str(max(counts.index, key=lambda unit: (counts[unit], unit == "")))


def _written(
    place: str, written: Mapping[Any, _Cell], unit: str, separator: str, *, plain: bool = False
) -> dict[object, float]:
    """Return the number of each cell in a unit or in none; nothing where none are read anew.

    `plain`: whether those that are read already count too.
    """
    cells = {cell: each for cell, each in written.items() if each.unit in (unit, "")}
    exact = {cell: each.value for cell, each in cells.items() if each.value is not None}
    texts = {cell: each.digits for cell, each in cells.items() if each.value is None}
    anew = plain or any(not isinstance(cell, Real) for cell in exact)
    if not texts:
        return exact if anew else {}
    anew = anew or any(text != cell.strip() for cell, text in texts.items())
    found = _thousands(place, texts, unit, separator) or _numbers(
        texts, english=separator == "," or _is_english(unit), anew=anew
    )
    return found | exact if found else {}


def _nearly_all(known: Mapping[object, float], cells: list[object], column: pd.Series) -> bool:
    """Whether all different cells of a column are known, but for a word or two in few rows."""
    odd = [cell for cell in cells if cell not in known]
    if not odd:
        return True
    words = _are_few(len(odd), len(cells)) and all(isinstance(cell, str) for cell in odd)
    return words and int(column.isin(odd).sum()) <= int(column.isin(list(known)).sum())


def _are_few(n_odd: int, n_cells: int) -> bool:
    """Whether so many different words among so many different cells leave them numbers."""
    return n_odd <= _MOST_ODD and n_cells >= _NUMBERS_AN_ODD * n_odd


def _numbered(column: pd.Series, cells: list[object], known: Mapping[object, float]) -> pd.Series:
    """Return a column with the numbers of known cells; others of its words stay."""
    odd = {cell for cell in cells if cell not in known}
    gap = float("nan")
    read = [known.get(cell, cell if cell in odd else gap) for cell in column]
    return pd.Series(read, column.index, name=column.name)


def _warn_of_bare(
    place: str, column: pd.Series, written: Mapping[Any, _Cell], known: Iterable[object], unit: str
) -> None:
    """Say how many rows have no unit and are taken to be in that of the others."""
    bare = [cell for cell in known if written[cell].unit != unit]
    n_bare = int(column.isin(bare).sum()) if bare else 0
    if n_bare:
        said = "has no unit and is" if n_bare == 1 else "have no unit and are"
        warnings.warn(
            f"{place}: {n_bare} of {len(column)} rows {said} read as {unit}",
            KernelWeaveWarning,
            stacklevel=3,
        )


def _numbers(texts: dict[object, str], *, english: bool, anew: bool) -> dict[object, float]:
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


def _is_english(unit: str) -> bool:
    """Whether amounts in a currency have commas between thousands as a rule."""
    return unit in ("£", "¥", "₹") or (unit.endswith("$") and unit != "R$")


def _unsure(known: dict[object, float]) -> str:
    """Return a cell whose comma is taken to stand before thousands, where nothing shows it."""
    texts = [cell for cell in known if isinstance(cell, str) and "," in cell]
    sure = any(cell.count(",") > 1 or "." in cell for cell in texts)
    return "" if sure or not texts else texts[0]


def _thousands(
    place: str, texts: dict[object, str], unit: str, separator: str
) -> dict[object, float]:
    """Return whole amounts, if all are and some have points between thousands."""
    if unit != "€" and (not _is_english(unit) or separator != ";"):
        return {}
    points = [text.count(".") for text in texts.values()]
    if not any(points) or not all(map(_THOUSANDS.fullmatch, texts.values())):
        return {}
    found = {cell: float(text.replace(".", "")) for cell, text in texts.items()}
    if set(points) == {1}:
        cell = next(iter(found))
        warnings.warn(
            f"{place}: {cell!r} is read as {found[cell]:.0f}, its point as one between "
            "thousands; if it is a decimal point, remove the sign of the currency",
            KernelWeaveWarning,
            stacklevel=3,
        )
    return found
