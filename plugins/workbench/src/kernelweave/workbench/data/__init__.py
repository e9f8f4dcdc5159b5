"""Reading tables: CSV, Parquet and LIBSVM files, data sets by name, standard input."""

from __future__ import annotations

from .source import read_table
from .table import Table
from .target import Target, choose_target, read_target

__all__ = ["Table", "Target", "choose_target", "read_table", "read_target"]
