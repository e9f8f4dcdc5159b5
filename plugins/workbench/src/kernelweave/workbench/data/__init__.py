"""Reading tables: files, data sets by name, of OpenML, standard input, data frames."""

from __future__ import annotations

from .matrix import TableMatrix
from .source import read_table
from .table import Table
from .target import Target, choose_target, read_target
from .units import in_units

__all__ = [
    "Table",
    "TableMatrix",
    "Target",
    "choose_target",
    "in_units",
    "read_table",
    "read_target",
]
