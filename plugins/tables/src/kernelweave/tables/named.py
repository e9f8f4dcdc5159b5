"""Data sets by name, from the registry."""

from __future__ import annotations

import numpy as np
import pandas as pd
from kernelweave.kernels_core import DatasetSpec

from .errors import TableError
from .table import Table

TARGET = "target"


def read_named(spec: DatasetSpec) -> Table:
    """Load a registered data set.

    `spec`: its loader returns a mapping with ``data``, ``target`` and, where it has them,
    ``feature_names`` and ``target_names``. Returns: features by name and the column ``"target"``,
    with the classes' names in it. Raises TableError if the loader fails or returns something
    else.
    """
    try:
        bunch = spec.load()()
        X, y = np.asarray(bunch["data"]), np.asarray(bunch["target"])
    except Exception as error:
        raise TableError(f"the data set {spec.name!r} cannot be loaded: {error}") from error
    names = bunch.get("feature_names")
    columns = [str(j) for j in range(X.shape[1])] if names is None else list(map(str, names))
    frame = pd.DataFrame(X, columns=pd.Index(columns))
    labels = bunch.get("target_names")
    named = spec.task == "classification" and labels is not None and y.dtype.kind in "iu"
    frame[TARGET] = np.asarray(labels)[y] if named else y
    return Table(spec.name, frame, target=TARGET, task=spec.task)
