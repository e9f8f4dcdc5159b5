"""Which kind of new rows each row of a table is, for the fitted estimators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.kernels_core.arrays import Labels
from kernelweave.kernels_core.arrays import Rows as Table
from kernelweave.kernels_core.parameters import fitted

from .large.landmarks import LandmarkPredictor
from .panels import RowKinds, kinds_of_rows

if TYPE_CHECKING:
    from .columns import Encoded


class TellsKinds:
    """Base of the estimators that tell new rows of known groups from those of new ones."""

    if TYPE_CHECKING:
        _predictor: Any = fitted("", "")
        _row_kinds: RowKinds = fitted("", "")

        def _encoded(self, X: Table, *, folds: bool = False) -> Encoded: ...

    def kinds_of_rows(self, X: Table) -> Labels:
        """Return which line of ``held_out_`` tells of each row.

        A row is of a known group where the training rows have its value in the column that names
        the groups, and later where its time is after all of theirs. Where ``groups`` was an array
        and no column names them, every row is taken as one of a new group; where no column has the
        times, as a later one.

        Parameters
        ----------
        X : table of shape (n_samples, n_columns)

        Returns
        -------
        ndarray of str of shape (n_samples,)
            Names of the index of ``held_out_``: one and the same without ``groups`` and ``order``.

        Raises
        ------
        ValueError
            If the model was saved by a version that had no such kinds.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from kernelweave.evidence import EvidenceKernelRegressor
        >>> rng, shop = np.random.RandomState(0), np.repeat(list("abcdefgh"), 5)
        >>> X = pd.DataFrame({"x": rng.normal(size=40), "shop": shop})
        >>> y = 3.0 * X["x"] + np.repeat(rng.normal(size=8), 5)
        >>> model = EvidenceKernelRegressor(precisions=(5.0,)).fit(X, y, groups="shop")
        >>> model.kinds_of_rows(pd.DataFrame({"x": [0.0, 0.0], "shop": ["a", "z"]})).tolist()
        ['rows like these', 'new shop']
        """
        numeric, codes = self._encoded(X)
        if (names := vars(self).get("_row_kinds")) is None:
            raise ValueError("a model of an older version has no names of kinds: fit it again")
        predictor = self._predictor
        of = predictor if isinstance(predictor, LandmarkPredictor) else predictor.rows
        kinds = kinds_of_rows(predictor.rows, numeric, codes, of.is_known(numeric, codes))
        return np.array(names, dtype=object)[kinds].astype(str)
