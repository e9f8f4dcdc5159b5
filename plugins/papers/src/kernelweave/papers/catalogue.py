"""Every table and figure by name, as ``catalogue.csv`` lists them."""

from __future__ import annotations

import csv
from importlib.resources import files

from .plan import PaperTable


def tables() -> dict[str, PaperTable]:
    """Return every table and figure by name, paper by paper.

    Returns
    -------
    dict of str to PaperTable
        Nothing of a paper is imported before a table is planned.

    Examples
    --------
    >>> from kernelweave.papers import tables
    >>> tables()["vv-1"].paper
    'Sindhwani, Minh and Lozano 2013, Table 1'
    """
    with (files(__package__) / "catalogue.csv").open(encoding="utf-8") as stream:
        return {row["name"]: _table(row) for row in csv.DictReader(stream)}


def _table(row: dict[str, str]) -> PaperTable:
    pairs = (each.partition("=")[::2] for each in row["settings"].split("|") if each)
    settings = {name: int(value) if value.isdigit() else value for name, value in pairs}
    target = f"kernelweave.papers.{row['target']}"
    texts = {name: row[name] for name in ("name", "paper", "summary")}
    return PaperTable(target=target, settings=settings, **texts)
