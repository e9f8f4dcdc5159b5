"""How a plugin describes the reproduction of a published table or figure.

The target of a `TableSpec` is a function from a `Request` to a `Plan`. Whoever runs the plan (the
``kernelweave tables`` command does) estimates its time, computes its cells in any order and in any
process, keeps each result as JSON, and hands all of them to ``present``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Cell", "Drawing", "MissingDataError", "Plan", "Request", "Sheet"]

Value = str | float | int | bool | None


class MissingDataError(FileNotFoundError):
    """A reproduction needs a data file that is not on this machine."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the user asked for.

    Parameters
    ----------
    quick : bool
        Every row and method, but one split and at most `most_samples` samples, marked as reduced.
    folder : Path or None
        Where the papers' data sets lie: one CSV file a set.
    most_samples : int
        The samples of a quick run.
    subsample : int, optional
        Samples at most, quick or not; cells that have more are marked as reduced.
    repeats : int, optional
        Random splits of each data set, where a reproduction has several.
    """

    quick: bool = False
    folder: Path | None = None
    most_samples: int = 500
    subsample: int | None = None
    repeats: int | None = None

    @property
    def sample_limit(self) -> int | None:
        """Return the samples at most that were asked for, or None."""
        if self.quick:
            return min(self.most_samples, self.subsample or self.most_samples)
        return self.subsample

    def data_file(self, name: str) -> Path:
        """Return the path of a file of the data folder.

        Parameters
        ----------
        name : str
            Relative to the folder, such as ``"wine.csv"``.

        Raises
        ------
        MissingDataError
            Naming the file, the folder and how to set it.
        """
        if self.folder is None:
            raise MissingDataError(
                f"{name} is needed and no data folder is set: set KERNELWEAVE_DATA to the folder "
                "that holds the papers' data sets, or pass --data"
            )
        path = self.folder / name
        if not path.is_file():
            raise MissingDataError(f"{name} is not in the data folder {self.folder}")
        return path


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One piece of work whose result is kept.

    Parameters
    ----------
    key : str
        Unique in its plan, such as ``"wine/SimpleMKL"``.
    compute : callable
        A function of a module (not a lambda: it may run in another process), called with
        ``arguments``; returns what JSON can hold.
    arguments : mapping
        What JSON can hold. A result is kept for the same arguments of the same version only.
    seconds : float
        An estimate of its time on one core.
    is_reduced : bool
        Whether the cell does less than the paper did, as ``quick`` asks.
    """

    key: str
    compute: Callable[..., Any]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 1.0
    is_reduced: bool = False


@dataclass(frozen=True)
class Sheet:
    """A table to show.

    Parameters
    ----------
    title : str
    columns : sequence of str
        The heads.
    rows : sequence of sequence
        Text, numbers, or None for what the paper leaves empty.
    notes : sequence of str
        Sentences below the table: what differs from the paper and why.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Value]]
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Drawing:
    """A picture to show.

    Parameters
    ----------
    title : str
    description : str
        What a reader who does not see it must know.
    draw : callable
        Draws into an empty matplotlib figure.
    notes : sequence of str
    """

    title: str
    description: str
    draw: Callable[[Figure], None]
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Plan:
    """The work of a reproduction and how to show it.

    Parameters
    ----------
    cells : sequence of Cell
        In the order of their importance.
    present : callable
        From the results by key to `Sheet` and `Drawing` objects. A cell that failed is absent.
    """

    cells: Sequence[Cell]
    present: Callable[[Mapping[str, Any]], Sequence[Sheet | Drawing]]
