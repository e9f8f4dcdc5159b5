"""What was seen in each column of a table and what was done with it."""

from __future__ import annotations

from typing import Literal, NamedTuple


class ColumnReport(NamedTuple):
    """What was seen in one column of a table and what was done with it.

    Attributes
    ----------
    column : str
        Name of the column.
    seen : str
        What it holds: "numbers", "words", "booleans", "categories", "dates" or "durations".
    done : {"used", "left out"}
        What was done with it.
    sentence : str
        What is worth knowing; empty where there is nothing to say.

    Examples
    --------
    >>> from kernelweave.evidence import ColumnReport
    >>> ColumnReport("height", "numbers", "used", "").done
    'used'
    """

    column: str
    seen: str
    done: Literal["used", "left out"]
    sentence: str


class Findings:
    """Sentences on columns, gathered in any order and told in the table's."""

    def __init__(self) -> None:
        self._said: dict[str, list[str]] = {}
        self._left_out: set[str] = set()

    def say(self, column: str, sentence: str) -> None:
        """Add a sentence on a column."""
        self._said.setdefault(column, []).append(sentence)

    def leave_out(self, column: str, sentence: str, advice: str = "") -> None:
        """Say that a column is not used, why, and what to do if it should be."""
        self._left_out.add(column)
        self.say(column, f"{sentence} Left out{f'; {advice}' if advice else ''}.")

    def rows(self, seen: dict[str, str]) -> list[ColumnReport]:
        """Return a row for each column, given what was seen in it."""
        return [
            ColumnReport(
                column,
                kind,
                "left out" if column in self._left_out else "used",
                " ".join(self._said.get(column, ())),
            )
            for column, kind in seen.items()
        ]
