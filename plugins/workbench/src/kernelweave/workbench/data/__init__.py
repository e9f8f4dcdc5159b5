"""Reading tables: files, data sets by name, of OpenML, standard input, data frames."""

from __future__ import annotations

from .preparation import Preparation
from .source import read_table
from .table import Table
from .target import Target, choose_target, read_target

__all__ = ["Preparation", "Table", "Target", "choose_target", "read_table", "read_target"]
