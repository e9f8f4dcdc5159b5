"""The data sets of Tables 1, 3 and 4, and what the paper prints of the latter two."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from ..data import printed


class Task(NamedTuple):
    """A data set of Table 3 or 4.

    The sizes are the paper's split where the file has as many rows, else the test part of the
    paper and the rest to learn from. The note says what stands between the file and the paper's
    set.
    """

    file: str
    n_features: int
    n_train: int
    n_test: int
    note: str = ""


def _tasks(kind: str) -> dict[str, Task]:
    """Return the sets with numbers or with classes as targets, from ``sets.csv``."""
    sizes, found = ("n_features", "n_train", "n_test"), {}
    for row in printed("tessellated", "sets.csv"):
        if row["task"] == kind:
            counts = {name: int(row[name]) for name in sizes}
            found[str(row["name"])] = Task(row["file"], **counts, note=row.get("note", ""))
    return found


REGRESSION, CLASSIFICATION = _tasks("regression"), _tasks("classification")
# Table 1: file, its rows, and mean and standard deviation of the seconds over 30 trials by
# algorithm
TIMES: dict[str, tuple[str, int, dict[str, tuple[float, float]]]] = {
    "Liver": ("liver_bupa.csv", 345, {"tkl-sdp": (95.75, 2.68), "tkl-frank-wolfe": (0.12, 0.03)}),
    "Cancer": (
        *("breastcancer_wisconsin_original.csv", 683),
        {"tkl-sdp": (636.17, 25.43), "tkl-frank-wolfe": (0.41, 0.23)},
    ),
    "Heart": (
        *("heart_statlog.csv", 270),
        {"tkl-sdp": (221.67, 29.63), "tkl-frank-wolfe": (4.71, 1.15)},
    ),
    "Pima": ("pima.csv", 768, {"tkl-sdp": (1211.66, 27.01), "tkl-frank-wolfe": (0.80, 0.36)}),
}


@cache
def theirs() -> dict[tuple[str, str], dict[str, Any]]:
    """Return score, spread and seconds by set and method; empty where the paper prints N/A."""
    return {(row["data"], row["method"]): row for row in printed("tessellated")}
