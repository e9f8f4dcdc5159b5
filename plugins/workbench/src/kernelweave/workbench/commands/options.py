"""Options that several commands have, each with its help."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from kernelweave.kernels_core.checks import SECONDS, Rule, integer
from kernelweave.tables.errors import did_you_mean

from ..errors import CommandError

if TYPE_CHECKING:
    from kernelweave.tables import Table


def _kept(name: str, rule: Rule) -> Parameter:
    return Parameter(validator=lambda _, value: rule.check(name, value))


Task = Annotated[
    Literal["auto", "classification", "regression"],
    Parameter(
        help="auto: classification if the target is text, has two distinct values, or is a class "
        "number counted from 0 or 1; otherwise regression."
    ),
]
Event = Annotated[
    str | None,
    Parameter(
        help="Column that says which times of the target ended by an event, such as a death or a "
        "failure: yes or no, true or false, 1 or 0; with other values COLUMN=VALUE, such as "
        "status=dead. The other times had not ended when they were recorded. The column is not a "
        "feature."
    ),
]
Metric = Annotated[
    str | None,
    Parameter(
        help="Scikit-learn scorer for choosing and comparing models, such as roc_auc, neg_log_loss "
        "or neg_mean_absolute_error; greater is better. Default: R² or accuracy; concordance where "
        "targets are known by half, which takes no other."
    ),
]
Groups = Annotated[
    str | None,
    Parameter(
        help="Column of groups, such as patients. Whole groups are held out, so the score is for "
        "rows of new groups; with --order later rows are, and the table of scores and intervals "
        "tell known groups and new ones apart. To exclude the column from the features, add "
        "--drop. Give 'rows alike' instead of a column to group near-duplicate rows. Several "
        "columns with commas between them, as in pupil,school, each get effects of their own: the "
        "first is held out."
    ),
]
Slopes = Annotated[
    str | None,
    Parameter(
        help="Column of numbers whose effect differs by the first of --groups; several with commas "
        "between them. It is left out where rows of known groups are not predicted better with it."
    ),
]
New = Annotated[
    str | None,
    Parameter(help="Which of several --groups is held out, in place of the first."),
]
Order = Annotated[
    str | None,
    Parameter(help="Column of times. Later rows are held out, so the score is for future rows."),
]
Drop = Annotated[list[str] | None, Parameter(help="Column to leave out; may be repeated.")]
Categorical = Annotated[
    list[str] | None,
    Parameter(
        help="Column whose numbers are categories, such as department codes; may be repeated."
    ),
]
Text = Annotated[
    list[str] | None,
    Parameter(
        help="Column of free text, encoded by its groups of three and four letters; may be "
        "repeated."
    ),
]
Numeric = Annotated[
    list[str] | None,
    Parameter(help="Column to read as numbers, whatever else it contains; may be repeated."),
]
Date = Annotated[list[str] | None, Parameter(help="Column to read as dates; may be repeated.")]
DayFirst = Annotated[
    list[str] | None,
    Parameter(
        help="Column of dates whose day stands before the month, such as 5/12/2024 in December; "
        "may be repeated."
    ),
]
Weights = Annotated[str | None, Parameter(help="Column of sample weights; it is not a feature.")]
# `app` has it hold for all that a command does
MemoryLimit = Annotated[
    float | None,
    Parameter(
        help="Memory limit of reading and fitting, in bytes, such as 8e9. Default: four fifths of "
        "the memory of the computer or container."
    ),
]
MaxTime = Annotated[float | None, _kept("max_time", SECONDS.or_none())]
Seed = Annotated[
    int,
    Parameter(help="Random seed: the same command gives the same result."),
    _kept("seed", integer(0, 2**32 - 1)),
]
Encoding = Annotated[
    str | None,
    Parameter(
        help="Character encoding of a text file, such as shift_jis or cp1252. Default: detected."
    ),
]
Sheet = Annotated[
    str | None, Parameter(help="Sheet of an Excel file. Default: the first one with a table.")
]
NoHeader = Annotated[bool, Parameter(help="The first line is data; columns are named 0, 1, ...")]
Force = Annotated[bool, Parameter(help="Overwrite existing files.")]
Json = Annotated[bool, Parameter(help="Print the result as JSON.")]


# what columns are, by the options that say so
_KIND_OF = {"categorical": "category", "numeric": "number", "day_first": "day first"}


def with_kinds(table: Table, **columns: list[str] | None) -> Table:
    """Return a table that knows what the user says that its columns are, by option."""
    kinds: dict[str, Any] = {}
    for option, names in columns.items():
        kind, said = _KIND_OF.get(option, option), option.replace("_", "-")
        for name in names or []:
            if name not in table.columns:
                hint = did_you_mean(name, table.columns, what="columns")
                raise CommandError(f"--{said}: {table.source} has no column {name!r}; {hint}")
            if kinds.setdefault(name, kind) != kind:
                raise CommandError(f"column {name!r} cannot be a {kinds[name]} and a {kind}")
    return replace(table, kinds=kinds)
