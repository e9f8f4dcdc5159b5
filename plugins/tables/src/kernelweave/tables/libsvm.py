"""LIBSVM's format: a label and index:value pairs per line; what is absent is zero."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd
from kernelweave.kernels_core import memory

from .errors import TableError, one_line
from .table import Table

TARGET = "target"
_TOKEN = re.compile(rb"^(qid|\d+):[-+]?(\d+\.?\d*([eE][-+]?\d+)?|\.\d+([eE][-+]?\d+)?|inf|nan)$")


def read_libsvm(content: bytes, source: str) -> Table:
    """Read a LIBSVM file; features are named by their index in it.

    `content`: the text; `source`: what messages call it. Returns: dense, with column ``"target"``;
    a feature that the file never mentions is zero.
    """
    from scipy.sparse import csr_matrix
    from sklearn.datasets import load_svmlight_file

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            X, y = load_svmlight_file(io.BytesIO(content), zero_based=True)
    except (ValueError, IndexError, OverflowError, Warning) as error:
        raise TableError(f"{source}, {_diagnose(content)}: {one_line(error)}") from error
    # a feature that is never mentioned is zero, and a single large index would cost what it counts
    used, columns = np.unique(X.indices, return_inverse=True)
    memory.require(
        8 * X.shape[0] * len(used),
        f"{X.shape[0]} dense rows of {len(used)} features",
        alternative="select fewer features, since kernels are computed on dense rows",
    )
    dense = csr_matrix((X.data, columns, X.indptr), (X.shape[0], len(used))).toarray()
    frame = pd.DataFrame(dense, columns=pd.Index([str(j) for j in used]))
    frame[TARGET] = y.astype(np.int64) if np.array_equal(y, np.round(y)) else y
    return Table(source, frame, target=TARGET, lines=lambda: _lines(content), sparse=True)


def _lines(content: bytes) -> Sequence[int]:
    """Return the line of each row; comments and blank lines are none."""
    lines = enumerate(content.splitlines(), 1)
    return [number for number, line in lines if line.partition(b"#")[0].strip()]


def _diagnose(content: bytes) -> str:
    """Return the first line with a token that is not ``index:value``, and the token."""
    for number, line in enumerate(content.splitlines(), 1):
        for token in line.partition(b"#")[0].split()[1:]:
            if not _TOKEN.match(token):
                return f"line {number}: {token.decode(errors='replace')!r} is not index:value"
    return "a LIBSVM file"
