"""Numbers as people write them: with units, decimal commas, thousands, and as times of day."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from numpy.typing import NDArray

from .marks import says_nothing, without_brackets, without_marks
from .sided import SIDES, side_of

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from .columns import Words

# one or two words among so many different numbers or dates each are typing errors or missing values
MOST_ODD = 2
WORDS_AN_ODD = 10
# more are the words of a text and no units
MOST_UNITS = 3
# Cells that are tried first: enough to see that nearly any column of words holds no numbers.
_PROBED = 100
_SIGNS = "€$£¥₹%"
# EUR 12.50 and A$12: of currencies alone, for BUS 12 is a name
_CURRENCY = re.compile(
    r"^([-+]?)\s*([A-Z]{1,3}\$|AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HUF|INR|JPY|KRW|MXN|NOK|PLN|SEK"
    r"|TRY|USD|ZAR)\s*([-+]?\d.*)"
)
_SIGN_OF = {"EUR": "€", "GBP": "£", "INR": "₹", "USD": "$", "US$": "$"}
# 71.8 kg; 41 680; 12:26 or 12:26:30 or 1:15 pm
_UNIT = re.compile(r"(.*\d)\s*([^\d\s.,:;()+-][^\d\s]*)")
# 5.2 10^9/l, x10E9/L, mm Hg and mg / l
_UNIT_OF_PARTS = re.compile(
    r"(.*?\d)\s*((?:[x×*]\s?)?10(?:\^|[eE])\d\d?\s*/\s*[^\d\s]+|mm Hg|[^\W\d]+\s*/\s*[^\W\d]+)"
)
# litre is l or L; the micro sign has two codes
_LITRE = re.compile(r"(?<![^\W\d_])([cdhkmnu\u03bc]?)l$")
# 41 680 and, in Switzerland, 41'680
_THOUSANDS = re.compile("[ \u00a0\u2009\u202f'\u2019]")
_BLANKS = re.compile(rf"[-+]?[1-9]\d{{0,2}}({_THOUSANDS.pattern}\d{{3}})+([.,]\d+)?")
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?(?: ?([AaPp])\.?[Mm]\.?)?")
_PLAIN = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|[-+]?(inf|infinity)", re.IGNORECASE)
# 1,234,567.5 and 1.234.567,5 and 1,5: what stands before the last sign is in groups of three
_GROUPED = re.compile(r"[-+]?[1-9]\d{0,2}(?:([.,])\d{3})(?:\1\d{3})*(?:(?!\1)[.,]\d+)?")
# one comma before three digits, which either parts thousands or is a decimal comma
_OPEN = re.compile(r"(?<![\d.,])([1-9]\d{0,2}),(\d{3})(?![\d.,])")
_DECIMAL = re.compile(r"[-+]?\d+[.,]\d+([eE][-+]?\d+)?")


class _Cell(NamedTuple):
    """A cell as digits and its unit; `value`: its number, if it needs no reading.

    `side`: on which it is known, empty of a plain number; `upper`: the upper end of a range.
    """

    digits: str
    unit: str
    value: float | None
    side: str = ""
    upper: _Cell | None = None


@dataclass(frozen=True)
class WrittenNumbers:
    """How a column of numbers is written: all in one unit, with one sign between whole and part.

    - `unit`: kg, €, %, or h of times of day; empty where there is none
    - `decimal`: a point or a comma; empty if no training cell shows it
    - `sides`: on which of "below", "between" and "above" some training cells are known only
    - `halved`: whether a cell such as <0.5 is read as half its limit, which it is where all numbers
      are positive; a range is read as its middle
    - `unitless`: whether some training cells had no unit, though the column has one
    """

    unit: str = ""
    decimal: str = ""
    sides: tuple[str, ...] = ()
    halved: bool = False
    unitless: bool = False

    @classmethod
    def fit(
        cls,
        cells: Sequence[str],
        rows: Sequence[float],
        *,
        comma: str = "",
        any_words: bool = False,
    ) -> tuple[WrittenNumbers, str] | None:
        """Return the number format of a column, and a remark where it is ambiguous.

        One or two texts among many numbers are read as missing, and so is any number of cells such
        as ND and a dash. Of several units the most frequent is that of the column, and of its cells
        without a unit; one that only limits have is too.

        - `cells`: the distinct cells, missing ones left out
        - `rows` of shape (n_cells,): how many rows have each
        - `comma`: meaning of the comma in 1,234 where the column does not decide: ``"decimal"``, as
          in a file that separates by semicolons, ``"thousands"``, or empty if unknown
        - `any_words`: read all words as missing, however many there are

        ``None`` where they are no numbers.
        """
        words = (each for each in cells[:_PROBED] if _read(each) is None)
        if not any_words and sum(not says_nothing(each) for each in words) > MOST_ODD:
            return None
        unit, mass = unit_of_most(cells, rows) or _unit_of_limits(cells), np.asarray(rows)
        numbers = {i: each for i, each in enumerate(_read_all(tuple(cells))) if _is_of(each, unit)}
        if not any_words and not _are_mostly_plain(numbers, mass):
            # ages such as 18-24 and 65+ are categories
            numbers = {i: each for i, each in numbers.items() if not each.side}
            unit = unit if any(each.unit for each in numbers.values()) else ""
        # beside a few numbers a dash may be a sign of its own, as + and - are
        empty = [i for i, each in enumerate(cells) if says_nothing(each)]
        empty = empty if len(numbers) >= WORDS_AN_ODD else []
        n_odd = len(cells) - len(numbers) - len(empty)
        few = n_odd <= MOST_ODD and len(cells) >= WORDS_AN_ODD * n_odd
        few = few and 2 * mass[list(numbers)].sum() >= mass.sum() - mass[empty].sum()
        if not numbers or not (few or any_words):
            return None
        texts = [each.digits for each in numbers.values() if each.value is None]
        decimal, ambiguous = _decimal_of(texts, unit, comma, len(numbers))
        if decimal == "both":
            return None
        remarks = []
        if ambiguous:
            cell = next(cells[i] for i, each in numbers.items() if each.digits == ambiguous)
            remarks.append(_doubt(cell, _value(ambiguous, decimal), decimal))
        if n_bare := int(sum(mass[i] for i, each in numbers.items() if each.unit != unit)):
            remarks.append(f"{n_bare} of {int(mass.sum())} rows {have_no_unit(n_bare, unit)}")
        sided = [i for i, each in numbers.items() if each.side]
        reading = cls(unit, decimal if texts else "", unitless=n_bare > 0)
        if sided:
            values = reading.read([cells[i] for i in numbers])
            sides = tuple(each for each in SIDES if any(numbers[i].side == each for i in sided))
            reading = replace(reading, sides=sides, halved=bool(values.min() > 0.0))
            remarks.append(_of_sides(cells[sided[0]], int(mass[sided].sum()), reading))
        return reading, "; ".join(remarks)

    def read(self, cells: Sequence[str], *, comma: str = "") -> FloatArray:
        """Return the number of each cell, NaN where it is none in this unit.

        `comma`: as in `fit`, where training did not tell.
        """
        read = _read_all(tuple(cells))
        decimal = self.decimal
        if not decimal:
            texts = [each.digits for each in read if each is not None and each.value is None]
            decimal, _ = _decimal_of(texts, self.unit, comma)
        values = np.full(len(cells), np.nan)
        for i, each in enumerate(read):
            if _is_of(each, self.unit):
                values[i] = _number(each, decimal)
                if each.upper is not None:
                    values[i] = 0.5 * (values[i] + _number(each.upper, decimal))
                if each.side == "below" and self.halved:
                    values[i] *= 0.5
        return values

    def ends(self, cells: Sequence[str]) -> FloatArray:
        """Return the least and the largest number that each cell may stand for, (2, n_cells).

        Both are its number where it is known, infinite on a side without a limit, and NaN where a
        cell is no number in this unit.

        Examples
        --------
        >>> from kernelweave.tables.written import WrittenNumbers
        >>> WrittenNumbers().ends(["2", "<5", "36+", "3-5"]).tolist()
        [[2.0, -inf, 36.0, 3.0], [2.0, 5.0, inf, 5.0]]
        """
        low = np.full(len(cells), np.nan)
        high = low.copy()
        for i, each in enumerate(_read_all(tuple(cells))):
            if not _is_of(each, self.unit):
                continue
            low[i] = high[i] = _number(each, self.decimal)
            if each.side == "below":
                low[i] = -np.inf
            elif each.side == "above":
                high[i] = np.inf
            elif each.upper is not None:
                high[i] = _number(each.upper, self.decimal)
        return np.array([low, high])

    def values_of(self, words: Words, comma: str = "") -> FloatArray:
        """Return the number of each row, NaN where there is none; True is 1."""
        if words.seen == "booleans":
            values = np.array([each == "True" for each in words.labels], dtype=np.float64)
        else:
            values = self.read(words.labels, comma=comma)
        return np.asarray(np.append(values, np.nan)[words.codes])

    def sides_of(self, words: Words) -> FloatArray:
        """Return a column of ones and zeros for each of `sides`, (n_rows, n_sides)."""
        given = [None if each is None else each.side for each in _read_all(words.labels)]
        known = np.array([[each == side for side in self.sides] for each in given] or [[]])
        blank = np.zeros((1, len(self.sides)))
        shown = np.vstack([known.reshape(-1, len(self.sides)), blank])[words.codes]
        return np.asarray(shown, dtype=np.float64)


def _unit_of_limits(cells: Sequence[str]) -> str:
    """Return the one unit that cells known on one side have, where no other cell has one."""
    read = [each for each in _read_all(tuple(cells)) if each is not None and each.unit]
    units = {each.unit for each in read}
    return units.pop() if len(units) == 1 and all(each.side for each in read) else ""


def have_no_unit(n_rows: int, unit: str) -> str:
    """Return the end of a sentence on rows of numbers without a unit."""
    have, are = ("has", "is") if n_rows == 1 else ("have", "are")
    return f"{have} no unit and {are} read as {unit}"


def sides_behind(cells: Sequence[str]) -> list[str | None]:
    """Return the side on which each cell is known, empty of plain numbers; ``None`` of words."""
    return [None if each is None else each.side for each in _read_all(tuple(cells))]


def first_limit(cells: Sequence[str]) -> str:
    """Return the first cell that is known above or below only; empty where none is."""
    sides = zip(cells, sides_behind(cells), strict=True)
    return next((cell for cell, side in sides if side in ("below", "above")), "")


def is_written_number(text: str) -> bool:
    """Whether a cell is a number in some way to write one, with a unit or without.

    Not one that is known on one side: 0-14 and 65+ are names of columns.
    """
    return (read := _read(text)) is not None and not read.side


def shows_decimal_comma(cells: Sequence[str]) -> bool:
    """Return whether all cells of a column are numbers and a comma is clearly the decimal mark."""
    if not any("," in cell for cell in cells):
        return False
    marks = set()
    for read in map(_read, cells):
        marks.add(_decimal_mark(read.digits) if read is not None and read.value is None else "")
        if read is None or "." in marks:
            return False
    return "," in marks


def with_clear_comma(cell: object, comma: str) -> object:
    """Return a cell whose one comma, if it has one, can mean nothing else than it does.

    `comma`: what that is: ``"decimal"`` or ``"thousands"``.

    Examples
    --------
    >>> from kernelweave.tables.written import with_clear_comma
    >>> [with_clear_comma("1,234 kg", each) for each in ("decimal", "thousands")]
    ['1,2340 kg', '1234 kg']
    """
    if not isinstance(cell, str) or "," not in cell:
        return cell
    return _OPEN.sub(r"\1,\g<2>0" if comma == "decimal" else r"\1\2", cell)


def units_behind(cells: Sequence[str]) -> list[str | None]:
    """Return the unit of each cell, empty without one; ``None`` of those that are no numbers."""
    return [None if each is None else each.unit for each in _read_all(tuple(cells))]


def unit_of_most(cells: Sequence[str], rows: Sequence[float]) -> str:
    """Return the unit that most rows have, of cells that are numbers; none where as many have none.

    `rows` of shape (n_cells,): how many have each cell.
    """
    counts: dict[str, float] = {}
    for unit, n_rows in zip(units_behind(cells), rows, strict=True):
        if unit is not None:
            counts[unit] = counts.get(unit, 0.0) + n_rows
    return max(counts, key=lambda unit: (counts[unit], unit == ""), default="")


def _are_mostly_plain(numbers: Mapping[int, _Cell], mass: NDArray[np.generic]) -> bool:
    """Whether most rows, or most different cells, are no limits or ranges."""
    plain = [i for i, each in numbers.items() if not each.side]
    most = 2 * len(plain) > len(numbers)
    return most or bool(2 * mass[plain].sum() > mass[list(numbers)].sum())


def _of_sides(cell: str, n_rows: int, reading: WrittenNumbers) -> str:
    """Return what to say of cells that are known on one side."""
    are = "row is a limit or a range" if n_rows == 1 else "rows are limits or ranges"
    value = reading.read([cell])[0]
    return f"{n_rows} {are}, such as {cell!r}, read as {value:g}, with a column that marks them"


def _is_of(read: _Cell | None, unit: str) -> TypeIs[_Cell]:
    """Whether a cell is a number of a unit, or without one."""
    return read is not None and read.unit in (unit, "")


# a column is asked for its unit, its numbers and those without a unit, one after the other
@functools.lru_cache(maxsize=1)
def _read_all(cells: tuple[str, ...]) -> list[_Cell | None]:
    return [_read(cell) for cell in cells]


def _read(text: str) -> _Cell | None:
    """Return a cell without brackets, blanks between thousands and its unit; ``None`` of words."""
    text = text.strip()
    if _PLAIN.fullmatch(text):
        return _Cell(text, "", None if "." in text else float(text))
    if not any(map(str.isdigit, text)):
        return None
    text = without_marks(text)
    if sided := side_of(text):
        number = _read(sided.number)
        upper = _read(sided.upper) if sided.upper else None
        if number is None or number.side or (sided.upper and not _is_range(number, upper)):
            return None
        return number._replace(side=sided.side, upper=upper)
    if clock := _CLOCK.fullmatch(text):
        hours, minutes, seconds = (float(part or 0) for part in clock.groups()[:3])
        if half := clock[4]:  # 12:30 AM is half past midnight
            hours = hours % 12.0 + 12.0 * (half in "Pp")
        return _Cell("", "h", hours + minutes / 60.0 + seconds / 3600.0)
    digits, unit = _without_unit(without_brackets(text))
    if _BLANKS.fullmatch(digits):
        digits = _THOUSANDS.sub("", digits)
    if _GROUPED.fullmatch(digits) or ("," in digits and _DECIMAL.fullmatch(digits)):
        return _Cell(digits, unit, None)
    is_number = _PLAIN.fullmatch(digits) is not None
    return _Cell(digits, unit, None if "." in digits else float(digits)) if is_number else None


def _is_range(low: _Cell, high: _Cell | None) -> bool:
    """Whether one number is below another, as 3-5 is and 2019-20 is not."""
    return high is not None and _number(low, "") < _number(high, "")


def _number(cell: _Cell, decimal: str) -> float:
    """Return the number of a cell without its side."""
    return _value(cell.digits, decimal) if cell.value is None else cell.value


def _without_unit(text: str) -> tuple[str, str]:
    """Return a text without the sign or the unit before or behind its number, and what it is."""
    if currency := _CURRENCY.fullmatch(text):
        return currency[1] + currency[3], _SIGN_OF.get(currency[2], currency[2])
    for sign in _SIGNS:
        if text.endswith(sign) and not text[-2:-1].isalpha():
            return text[:-1].rstrip(), sign
        if sign in text[:-1]:
            before, _, number = text.partition(sign)
            led = before.strip() in ("", "+", "-")
            return before.strip() + number.lstrip() if led else text, sign
    parts = _UNIT_OF_PARTS.fullmatch(text) or _UNIT.fullmatch(text)
    # ½ and ² belong to the number
    if parts is None or (parts[2][0].isnumeric() and not parts[2].startswith("10")):
        return text, ""
    unit = "".join(parts[2].split()).replace("\u00b5", "\u03bc")
    return parts[1], _SIGN_OF.get(unit, _LITRE.sub(r"\1L", unit))


def _decimal_mark(digits: str) -> str:
    """Return which sign is decimal for sure, ``""`` where a single one may part thousands."""
    signs = [each for each in digits if each in ".,"]
    if not signs:
        return ""
    if len(set(signs)) == 2:
        return signs[-1]
    if not _GROUPED.fullmatch(digits):
        return signs[0]
    return "" if len(signs) == 1 else {".": ",", ",": "."}[signs[0]]


def _decimal_of(texts: Sequence[str], unit: str, comma: str, n_cells: int = 0) -> tuple[str, str]:
    """Return the decimal mark of a column, "both" if cells differ, and an ambiguous cell if any."""
    marks = {each for each in map(_decimal_mark, texts) if each}
    open_ = [each for each in texts if not _decimal_mark(each)]
    if len(marks) == 2:
        # every cell is unambiguous by itself
        return ("both" if open_ else ""), ""
    if marks or not open_:
        return (marks.pop() if marks else "."), ""
    english = unit in ("£", "¥", "₹") or unit.endswith("$")
    if all("," in each for each in open_):
        if english or comma == "thousands":
            return ".", ""
        return (",", "") if comma == "decimal" else (".", open_[0])
    if any("," in each for each in open_):
        return "both", ""
    grouped = unit == "€" or (english and comma == "decimal")
    # beside 980 €, 1.234 € is no price of petrol
    doubtful = len(open_) == n_cells
    return (",", open_[0] if doubtful else "") if grouped else (".", "")


def _value(digits: str, decimal: str) -> float:
    """Return a number, by its own decimal mark if it is unambiguous."""
    decimal = _decimal_mark(digits) or decimal or "."
    other = "," if decimal == "." else "."
    return float(digits.replace(other, "").replace(decimal, "."))


def _doubt(cell: str, value: float, decimal: str) -> str:
    """Return what to say of a single sign that is taken to part thousands."""
    sign, remedy = "comma", "comma, write a point"
    if decimal == ",":
        sign, remedy = "point", "point, remove the sign of the currency"
    return (
        f"{cell!r} is read as {value:.0f}, its {sign} as one between thousands; if it is a decimal "
        f"{remedy}"
    )
