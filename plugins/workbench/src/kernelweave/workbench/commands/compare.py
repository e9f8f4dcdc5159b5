"""``kernelweave compare``."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from .. import console
from ..console import emit_json
from ..errors import CommandError
from . import options


def compare_command(
    data: str,
    /,
    *,
    target: str | None = None,
    task: options.Task = "auto",
    models: Annotated[list[str] | None, Parameter(negative=(), consume_multiple=True)] = None,
    cv: int | Literal["group", "time"] | None = None,
    metric: options.Metric = None,
    groups: options.Groups = None,
    order: options.Order = None,
    drop: options.Drop = None,
    categorical: options.Categorical = None,
    text: options.Text = None,
    numeric: options.Numeric = None,
    date: options.Date = None,
    day_first: options.DayFirst = None,
    weights: options.Weights = None,
    max_time: options.MaxTime = None,
    memory_limit: options.MemoryLimit = None,
    seed: options.Seed = 0,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    no_header: options.NoHeader = False,
    json: options.Json = False,
) -> None:
    """Cross-validate models on the same folds of a table and rank them.

    The models of KernelWeave that suit the table are compared with those of other libraries that
    are installed: HistGradientBoosting, CatBoost, LightGBM, XGBoost, a tuned RBF SVM, and a
    baseline (the mean or the most frequent class).

    Parameters
    ----------
    data : str
        A table, as for `kernelweave fit`.
    target : str
        Column to predict, by name or 0-based index.
    models : str
        Names of models, as in the last column of the output, separated by spaces or commas.
        Default: all.
    cv : int
        As for `kernelweave fit`.
    max_time : float
        Time limit of a fit in seconds. Models of KernelWeave keep the best model so far; a model
        of another library that takes longer is skipped.
    """
    from kernelweave.tables import choose_target, read_table, read_target, split_by_target

    from ..comparing import compare_table
    from ..unlabelled import without_target

    table = read_table(data, header=not no_header, encoding=encoding, sheet=sheet)
    table = options.with_kinds(
        table, categorical=categorical, text=text, numeric=numeric, date=date, day_first=day_first
    )
    column = choose_target(table, target)
    console.name_target(column)
    table, unknown = split_by_target(table, column)
    if unknown is not None:
        console.print_message("note", without_target(table, unknown, column))
    target_column = read_target(table, column, task)
    names = None if models is None else re.findall(r"[^\s,]+", ",".join(models))
    if names == []:
        raise CommandError("--models names no model: leave it out to compare all")
    if target_column.hint:
        console.print_message("note", target_column.hint)
    comparison = compare_table(
        table, target_column, names=names, cv=cv, groups=groups, order=order, metric=metric,
        drop=drop or [], weights=weights, max_time=max_time, seed=seed,
        on_note=lambda sentence: console.print_message("note", sentence),
    )  # fmt: skip
    emit_json(comparison) if json else _show(comparison)


def _show(facts: dict[str, Any]) -> None:
    from rich.text import Text

    from ..score_table import away, print_scores

    screen = console.out()
    screen.print(
        Text(f"{facts['measure']} on {facts['rows']}", style="bold"),
        Text(f"{facts['task']} of {facts['target']} in {facts['data']}"),
        sep="\n",
    )
    rows = [{**row, "away": away(row) if at else ""} for at, row in enumerate(facts["models"])]
    print_scores(
        screen, rows, measure=facts["measure"], rare=facts["rare"], unit=facts["unit"], named=True
    )
    if facts["verdict"]:
        screen.print(f"\n{facts['verdict']}")
