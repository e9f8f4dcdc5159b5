"""What a table becomes: numbers without gaps, codes of levels, and what each dimension is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

DimensionKind = Literal["number", "gap", "level", "date part"]


class Encoded(NamedTuple):
    """Rows of a table as numbers and as codes of levels.

    Attributes
    ----------
    numeric : ndarray of shape (n_rows, n_numeric)
        Numbers, date parts and indicators of gaps, without gaps of their own; C-contiguous.
    codes : ndarray of shape (n_rows, n_levels_columns)
        Which level of its column each row has, from 0; a level that training had not seen has the
        number of levels as its code.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.evidence import Encoded
    >>> rows = Encoded(np.zeros((3, 2)), np.zeros((3, 1), dtype=np.int64))
    >>> rows.numeric.shape, rows.codes.shape
    ((3, 2), (3, 1))
    """

    numeric: NDArray[np.float64]
    codes: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Dimension:
    """One dimension of an encoded table, and the column of the user's table it comes from.

    Parameters
    ----------
    name : str
        Name of the dimension: that of its column, with the part of a date or "missing" behind it.
    source : str
        Name of the column in the user's table.
    kind : {"number", "gap", "level", "date part"}
        What the dimension holds: "gap" is 1 where the column has none and 0 elsewhere.
    levels : tuple of str, default=()
        Labels of the levels, in the order of their codes; empty for numbers.
    frequencies : ndarray of shape (n_levels,), default=empty
        Share of the training rows that has each level; empty for numbers.

    Examples
    --------
    >>> from kernelweave.evidence import Dimension
    >>> Dimension("height", "height", "number").levels
    ()
    """

    name: str
    source: str
    kind: DimensionKind
    levels: tuple[str, ...] = ()
    frequencies: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
