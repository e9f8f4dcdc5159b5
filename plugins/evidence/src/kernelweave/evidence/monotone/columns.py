"""Which columns predictions rise or fall with, as the user says it, and where they are encoded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.checks import Rule
from kernelweave.tables.errors import did_you_mean
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ..columns import ColumnEncoder
    from ..columns.encoded import GroupColumn

# values of all columns together are worked out on a grid, which grows with each as a product
MOST_COLUMNS = 4
_DAYS, _YEAR = "days since 1970", "year"
_KINDS = {"category": "categories", "text": "texts"}


def _is_signs(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    names = all(isinstance(k, str | int | np.integer) for k in value)
    return names and all(not isinstance(s, str) and s in (-1, 0, 1) for s in value.values())


SIGNS = Rule("a dict from columns to 1 (predictions rise), -1 (they fall) or 0", _is_signs)


@dataclass(frozen=True)
class MonotoneColumn:
    """A column that predictions rise or fall with.

    - `name`: as in the table; `sign`: 1 or −1
    - `place`: which encoded number it is; of a date its days since 1970
    - `year`: which number is the year of a date, −1 where there is none
    - `indicator`: which number tells that it is missing, −1 where none does
    """

    name: str
    sign: int
    place: int
    year: int = -1
    indicator: int = -1

    @property
    def moving(self) -> list[int]:
        """The encoded numbers that its values change."""
        return [self.place] if self.year < 0 else [self.place, self.year]

    def known(self, numeric: FloatArray) -> NDArray[np.bool_]:
        """Return which rows have a value, shape (n,)."""
        if self.indicator < 0:
            return np.ones(len(numeric), dtype=np.bool_)
        return np.asarray(numeric[:, self.indicator] == 0.0)

    def fill(self, numeric: FloatArray, codes: NDArray[np.int64], values: FloatArray) -> None:
        """Give rows values of the column, which none misses then; `codes` stay."""
        numeric[:, self.place] = values
        if self.indicator >= 0:
            numeric[:, self.indicator] = 0.0
        if self.year >= 0:
            numeric[:, self.year] = _years(values)


def _years(days: FloatArray) -> FloatArray:
    """Return the year of days since 1970, shape (n,)."""
    moments = np.floor(days).astype("datetime64[D]")
    return np.asarray(moments.astype("datetime64[Y]").astype(np.int64) + 1970, dtype=np.float64)


def signs_of(
    signs: Mapping[str | int, int] | None, encoder: ColumnEncoder
) -> tuple[tuple[str, int], ...]:
    """Return the columns that are asked for and their signs, in the order of the table.

    Raises ValueError where a column is unknown.
    """
    asked = {_name_of(key, encoder.names_): int(sign) for key, sign in (signs or {}).items()}
    return tuple((name, asked[name]) for name in encoder.names_ if asked.get(name))


def monotone_columns(
    asked: Mapping[str, int],
    encoder: ColumnEncoder,
    group: GroupColumn | None = None,
) -> tuple[MonotoneColumn, ...]:
    """Return the columns that are used, in the order of the table.

    A column that is left out of the fit changes no prediction, so that nothing is to do for it.

    `asked`: their signs; `group`: the column that names groups, where there is one. Raises
    ValueError where a column is no number, or there are too many.
    """
    found = []
    for name, plan in zip(encoder.names_, encoder.report_, strict=True):
        if name not in asked:
            continue
        if plan.kind in _KINDS:
            raise ValueError(
                f"monotone names {name!r}, a column of {_KINDS[plan.kind]}: only numbers and dates "
                "have an order that predictions could rise with"
            )
        found += _column_of(name, asked[name], encoder)
    if len(found) > MOST_COLUMNS:
        raise ValueError(
            f"monotone names {len(found)} columns: predictions are worked out on a grid of the "
            f"values of all of them, which is possible for {MOST_COLUMNS} at most"
        )
    if group is not None and (same := [each for each in found if each.place == group.place]):
        raise ValueError(
            f"monotone names {same[0].name!r}, whose values name the groups: predictions of known "
            "groups have intercepts of their own, which rise with nothing"
        )
    return tuple(found)


def _name_of(key: str | int, names: Sequence[str]) -> str:
    """Return the name of a column by its name or its place."""
    if isinstance(key, str):
        if key not in names:
            hint = did_you_mean(key, names, what="columns")
            raise ValueError(f"monotone names {key!r}, which is no column; {hint}")
        return key
    if not 0 <= key < len(names):
        raise ValueError(
            f"monotone names column {key}, but the table has {len(names)}: give places from 0 to "
            f"{len(names) - 1}, or names"
        )
    return names[int(key)]


def _column_of(name: str, sign: int, encoder: ColumnEncoder) -> list[MonotoneColumn]:
    """Return where a column is among the encoded numbers, nothing where it is not."""
    places = {
        each.name.removeprefix(name).strip() or each.kind: k
        for k, each in enumerate(encoder.dimensions_)
        if each.source == name and each.kind in ("number", "date part")
    }
    indicators = encoder.coding.indicator_of
    if "number" in places:
        place = places["number"]
        return [MonotoneColumn(name, sign, place, indicator=int(indicators[place]))]
    if _DAYS in places:
        place = places[_DAYS]
        year = places.get(_YEAR, -1)
        return [MonotoneColumn(name, sign, place, year, int(indicators[place]))]
    if places:
        parts = ", ".join(sorted(places))
        raise ValueError(
            f"monotone names {name!r}, dates that differ in {parts} alone: there is no earlier and "
            "later that predictions could rise with"
        )
    return []
