"""``kernelweave compare``."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from kernelweave.kernels_core import config_context

from .. import console
from ..console import emit_json
from ..errors import CommandError

_Flag = Parameter(negative=())


def compare_command(
    data: str,
    /,
    *,
    target: str | None = None,
    task: Literal["auto", "classification", "regression"] = "auto",
    models: Annotated[list[str] | None, Parameter(negative=(), consume_multiple=True)] = None,
    cv: int | Literal["group", "time"] | None = None,
    metric: str | None = None,
    groups: str | None = None,
    order: str | None = None,
    drop: Annotated[list[str] | None, Parameter(negative=())] = None,
    weights: str | None = None,
    max_time: float | None = None,
    memory_limit: float | None = None,
    seed: int = 0,
    no_header: Annotated[bool, _Flag] = False,
    json: Annotated[bool, _Flag] = False,
) -> None:
    """Score every model on the same held-out rows of a table, the best first.

    Ours, where they can take the table, and those of others that are installed: boosted trees of
    scikit-learn, CatBoost, LightGBM and XGBoost, xRFM, a tuned RBF SVM, and the mean or the
    most frequent class (dummy). Each is fitted
    without each fold and predicts that fold.

    Parameters
    ----------
    data : str
        A table, as for `kernelweave fit`.
    target : str
        The column to predict, by name or 0-based index.
    task : str
        As for `kernelweave fit`.
    models : str
        Which, by the names that the table shows; several may follow, or stand between commas.
        Default: all.
    cv : int
        As for `kernelweave fit`.
    metric : str
        As for `kernelweave fit`.
    groups : str
        As for `kernelweave fit`.
    order : str
        As for `kernelweave fit`.
    drop : str
        A column to leave out; may be given several times.
    weights : str
        The column that says what each row counts; it is not learned from.
    max_time : float
        Seconds that a fit may take: ours keep the best so far; a model of others that is not done
        in time is left out.
    memory_limit : float
        Bytes that a fit may take, such as 8e9. Default: four fifths of the memory.
    seed : int
        Seed of the folds and of everything random.
    no_header : bool
        The first line is data; columns are called 0, 1, ...
    json : bool
        Print the outcome as JSON.
    """
    from kernelweave.tables import choose_target, read_table, read_target, split_by_target

    from ..comparing import compare_table

    table = read_table(data, header=not no_header)
    column = choose_target(table, target)
    table, unknown = split_by_target(table, column)
    if unknown is not None:
        many = len(unknown.frame)
        console.say("note", f"rows without {column!r} are left out: {many}")
    known = read_target(table, column, task)
    names = None if models is None else re.findall(r"[^\s,]+", ",".join(models))
    if names == []:
        raise CommandError("--models names no model: leave it out to compare all")
    if known.hint:
        console.say("note", known.hint)
    with config_context(memory_limit=memory_limit):
        found = compare_table(
            table, known, names=names, cv=cv, groups=groups, order=order, metric=metric,
            drop=drop or [], weights=weights, max_time=max_time, seed=seed,
            told=lambda sentence: console.say("note", sentence),
        )  # fmt: skip
    emit_json(found) if json else _show(found)


def _show(found: dict[str, Any]) -> None:
    from rich.text import Text

    from ..score_table import print_scores
    from ..scoring import Score

    screen = console.out()
    screen.print(
        Text(f"{found['measure']} on {found['rows']}", style="bold"),
        Text(f"{found['task']} of {found['target']} in {found['data']}"),
        sep="\n",
    )
    rows = [
        {**row, "away": Score(-row["behind"], row["behind_error"]).told(3, sign="+") if at else ""}
        for at, row in enumerate(found["models"])
    ]
    print_scores(
        screen, rows, measure=found["measure"], rare=found["rare"], unit=found["unit"], named=True
    )
    if found["verdict"]:
        screen.print(f"\n{found['verdict']}")
