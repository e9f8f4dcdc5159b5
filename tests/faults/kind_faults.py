"""The faults of the samples' kinds: words, objects, dates, missing values, sparse matrices."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from expectations import SAME, WORKS, Case, Faults, either, error
from sound_cases import N

KINDS = Faults()
add = KINDS.add


@add("kinds", error("could not convert|is not a number"))
def _(case: Case) -> None:
    """words in X."""
    case.X = np.array([["a", "b"]] * N)


@add("kinds", error("could not convert|is not a number"))
def _(case: Case) -> None:
    """objects in X, one of them a word."""
    case.X = case.X.astype(object)
    case.X[0, 0] = "a"


@add("kinds", SAME)
def _(case: Case) -> None:
    """objects in X, all of them numbers."""
    case.X = case.X.astype(object)


@add("kinds", error("could not convert|is not a number"))
def _(case: Case) -> None:
    """a category of words in X."""
    import pandas as pd

    words = pd.Series(["a", "b"] * (N // 2), dtype="category")
    case.X = pd.DataFrame({"number": case.X[:, 0], "word": words})


@add("kinds", WORKS)
def _(case: Case) -> None:
    """a boolean X."""
    rng = np.random.default_rng(0)
    case.X = rng.random((N, 2)) < 0.5
    case.X[:4] = [[0, 0], [0, 1], [1, 0], [1, 1]]
    case.X_new = case.X[:6]


@add("kinds", error("[Ss]parse|dense", "TypeError", "ValueError"))
def _(case: Case) -> None:
    """a sparse X."""
    case.X = scipy.sparse.csr_matrix(case.X)


@add("kinds", error("[Ss]parse|dense", "TypeError", "ValueError"))
def _(case: Case) -> None:
    """a sparse array to predict."""
    case.X_new = scipy.sparse.csr_array(case.X_new)


@add("kinds", error("[Cc]omplex"))
def _(case: Case) -> None:
    """a complex X."""
    case.X = case.X + 1j


@add("kinds", WORKS, "y", task="classification")
def _(case: Case) -> None:
    """words as labels."""
    case.y = np.where(case.y == 1, "good", "bad")


@add("kinds", WORKS, "y", task="classification")
def _(case: Case) -> None:
    """boolean labels."""
    case.y = case.y == 1


@add("kinds", WORKS, "y", task="classification")
def _(case: Case) -> None:
    """labels as a category."""
    import pandas as pd

    case.y = pd.Series(np.where(case.y == 1, "good", "bad"), dtype="category")


@add("kinds", WORKS, "y", task="classification")
def _(case: Case) -> None:
    """labels as objects."""
    case.y = np.where(case.y == 1, "good", "bad").astype(object)


@add(
    "kinds",
    error("could not convert|Unknown label|unknown", "ValueError", "TypeError"),
    "y",
    task="regression",
)
def _(case: Case) -> None:
    """words as targets."""
    case.y = np.array(["a"] * N)


@add("kinds", SAME, "y", task="regression")
def _(case: Case) -> None:
    """targets as objects, all of them numbers."""
    case.y = case.y.astype(object)


@add("kinds", WORKS, "y", task="regression")
def _(case: Case) -> None:
    """boolean targets."""
    case.y = case.y > 0


@add("kinds", either("bytes", "TypeError", "ValueError"), "y", task="classification")
def _(case: Case) -> None:
    """labels as bytes."""
    case.y = np.where(case.y == 1, b"good", b"bad")


@add("kinds", WORKS, "y", task="classification")
def _(case: Case) -> None:
    """labels of 2**60 and one more."""
    case.y = np.where(case.y == 1, 2**60 + 1, 2**60)


@add("kinds", error("[Ss]parse|dense|1d array", "TypeError", "ValueError"), "y")
def _(case: Case) -> None:
    """a sparse y."""
    case.y = scipy.sparse.csr_matrix(case.y[:, None])


@add(
    "kinds",
    error(
        "datetime|DType|could not|convert|numeric|dtype|turn dates into numbers|not a number",
        "ValueError",
        "TypeError",
    ),
)
def _(case: Case) -> None:
    """a column of dates in X."""
    import pandas as pd

    dates = pd.date_range("2020-01-01", periods=N)
    case.X = pd.DataFrame({"number": case.X[:, 0], "date": dates})


@add("kinds", error("NaN"))
def _(case: Case) -> None:
    """a missing value in a nullable column of pandas."""
    import pandas as pd

    whole = pd.array([None, *range(N - 1)], dtype="Int64")
    case.X = pd.DataFrame({"number": case.X[:, 0], "whole": whole})


@add("kinds", SAME)
def _(case: Case) -> None:
    """nullable columns of pandas."""
    import pandas as pd

    case.X = pd.DataFrame({"a": case.X[:, 0], "b": case.X[:, 1]}).astype("Float64")
    case.X_new = pd.DataFrame({"a": case.X_new[:, 0], "b": case.X_new[:, 1]})


@add("kinds", SAME)
def _(case: Case) -> None:
    """a category of numbers in X."""
    import pandas as pd

    case.X = pd.DataFrame({"a": case.X[:, 0], "b": pd.Series(case.X[:, 1], dtype="category")})
    case.X_new = pd.DataFrame({"a": case.X_new[:, 0], "b": case.X_new[:, 1]})


@add("kinds", WORKS)
def _(case: Case) -> None:
    """float16."""
    case.X = case.X.astype(np.float16)


@add("kinds", SAME)
def _(case: Case) -> None:
    """longdouble."""
    case.X = case.X.astype(np.longdouble)
