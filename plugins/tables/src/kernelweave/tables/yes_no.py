"""Cells that say yes or no: words, truth values, and the numbers 1 and 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_YES, _NO = ("yes", "y", "true", "1"), ("no", "n", "false", "0")


def yes_and_no(cells: Any) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return which cells say yes and which say no, each of shape (n_cells,).

    Yes is ``yes``, ``y``, ``true`` or 1, and no is ``no``, ``n``, ``false`` or 0, in upper or lower
    case, as words, numbers or truth values. A cell that is neither, or missing, is in neither.

    Parameters
    ----------
    cells : array-like of shape (n_cells,)

    Returns
    -------
    yes, no : ndarray of bool of shape (n_cells,)

    Examples
    --------
    >>> from kernelweave.tables.yes_no import yes_and_no
    >>> yes, no = yes_and_no(["Yes", "FALSE", "1", "dead", None])
    >>> yes.tolist(), no.tolist()
    ([True, False, True, False, False], [False, True, False, False, False])
    """
    import pandas as pd

    codes, values = pd.factorize(np.asarray(cells, dtype=object))
    words = pd.Series(values, dtype=object).astype(str).str.strip().str.lower()
    # 1.0 is 1 too
    numbers = pd.to_numeric(words, errors="coerce").to_numpy(np.float64)
    yes = words.isin(_YES).to_numpy() | (numbers == 1.0)
    no = words.isin(_NO).to_numpy() | (numbers == 0.0)
    # a missing cell has the code −1, which is the last
    return np.append(yes, False)[codes], np.append(no, False)[codes]
