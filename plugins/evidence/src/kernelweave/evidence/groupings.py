"""Groups that the user names: several at once, and effects of numbers that differ by group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.kernels_core.estimators.classes import column_of
from kernelweave.kernels_core.exceptions import Message
from sklearn.utils.validation import _num_features, _num_samples

from .columns.encoded import GroupColumn, GroupTerm
from .large.batches import Batches
from .large.dask_parts import is_dask
from .new_rows import ALIKE

if TYPE_CHECKING:
    from .columns import ColumnEncoder
    from .monotone.predictor import Monotone
    from .rows import Rows

# Above so many rows the groups that are held out have levels beside the landmarks. Those of other
# groups are a part of the landmarks' kernel, and each group must be among some hundred of these.
_MOST_BESIDE = 100


@dataclass(frozen=True)
class Groupings:
    """What ``groups``, ``slopes`` and ``new`` say.

    - `held`: the groups that folds hold out, as a fit takes one of them
    - `others`: columns of other groups, each of which has an effect
    - `slopes`: columns of numbers whose effects differ by the groups of the column `by`
    """

    held: object
    others: tuple[str, ...] = ()
    slopes: tuple[str, ...] = ()
    by: str = ""

    @property
    def are_plain(self) -> bool:
        """Whether there is nothing beside the groups that are held out."""
        return not (self.others or self.slopes)


def groupings_of(X: Any, groups: object, slopes: object, new: object) -> Groupings:
    """Return the groups that are held out, and the effects that are beside them.

    Parameters
    ----------
    X : table of shape (n_samples, n_columns)
    groups : str, list of str, array-like or None
        Names of columns, the first of which is held out; or what a fit takes of one.
    slopes : str, list of str or None
        Columns of numbers whose effects differ by the first groups.
    new : str or None
        The name among ``groups`` that is held out, in place of the first.

    Raises
    ------
    ValueError
        If a name comes twice, or ``slopes`` and ``new`` are given without names.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelweave.evidence.groupings import groupings_of
    >>> X = pd.DataFrame({"pupil": ["a", "a", "b"], "school": ["s", "s", "t"], "dose": [1, 2, 1]})
    >>> groupings_of(X, ["pupil", "school"], "dose", "school")
    Groupings(held='school', others=('pupil',), slopes=('dose',), by='pupil')
    """
    names, sloped = _names_of(X, groups, "groups"), _names_of(X, slopes, "slopes")
    if slopes is not None and sloped is None:
        got = type(slopes).__name__ if np.ndim(slopes) else repr(slopes)  # type: ignore[arg-type]
        raise ValueError(f"slopes must be names of columns of numbers, such as 'dose', got {got}")
    if names is None or names == (ALIKE,):
        for argument, given in (("slopes", slopes), ("new", new)):
            if given is not None:
                text = f"{{{argument}}} is for groups that are named: give {{groups}}='column', too"
                raise ValueError(Message(text))
        return Groupings(groups)
    if new is not None and new not in names:
        listed = ", ".join(map(repr, names))
        raise ValueError(f"new must be one of the groups, {listed}, got {new!r}")
    held = names[0] if new is None else str(new)
    others = tuple(each for each in names if each != held)
    if same := [each for each in sloped or () if each in names]:
        raise ValueError(f"slopes and groups both name {same[0]!r}: an effect is of a number")
    return Groupings(held, others, sloped or (), names[0])


def _names_of(X: Any, given: object, argument: str) -> tuple[str, ...] | None:
    """Return names of columns; ``None`` where nothing or a value a row is given."""
    if given is None:
        return None
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, list | tuple) or not given or _has_a_value_a_row(X, given):
        return None
    if odd := [each for each in given if not isinstance(each, str)]:
        if len(odd) == len(given):
            return None
        kind = type(odd[0]).__name__
        raise ValueError(
            f"{argument} must list names of columns alone, got one of type {kind}: make it a "
            "column of X and give its name"
        )
    names = tuple(map(str, given))
    if twice := [each for each in names if names.count(each) > 1]:
        raise ValueError(f"{argument} names {twice[0]!r} twice")
    return names


def _has_a_value_a_row(X: Any, given: Sequence[object]) -> bool:
    """Return whether a list is as long as a table, or too long for one of names; else it names."""
    if isinstance(X, Batches) or is_dask(X):
        return False
    return bool(len(given) == _num_samples(X) or len(given) > _num_features(X))


def terms_beside(
    groupings: Groupings, encoder: ColumnEncoder, rows: Rows, factor_rows: int
) -> tuple[GroupTerm, ...]:
    """Return the terms of the kernel that are beside the levels of groups held out.

    `rows`: encoded; `factor_rows`: more of them are learned by landmarks, which have levels of one
    column and no slopes.

    Raises ValueError where a column is not read as names of groups, or as a number; where rows are
    too many for what is asked for.
    """
    terms = [
        GroupTerm(GroupColumn.of(_place(encoder, each, "groups"), encoder.coding), each)
        for each in groupings.others
    ]
    if groupings.slopes:
        place = _place(encoder, groupings.by, "groups")
        column = GroupColumn.of(place, encoder.coding)
        terms += [
            GroupTerm(column, groupings.by, _place(encoder, each, "slopes"), each)
            for each in groupings.slopes
        ]
    if len(rows) > factor_rows:
        _refuse_of_many(terms, groupings, rows, factor_rows)
    return tuple(terms)


def _place(encoder: ColumnEncoder, name: str, argument: str) -> int:
    """Return which dimension a column is."""
    import pandas as pd

    kinds = ("number", "category") if argument == "groups" else ("number",)
    if name not in encoder.names_:
        column_of(pd.DataFrame(columns=list(encoder.names_)), name, argument, 0)
    for place, each in enumerate(encoder.dimensions_):
        if each.source == name and each.kind in kinds:
            return place
    plan = next(each for each in encoder.report_ if each.column == name)
    why = plan.remark.removeprefix("Ignored: ").removesuffix(".")
    if plan.kind == "ignore":
        text = f"{{{argument}}} names {{name!r}}, which tells nothing ({{why}}): leave it out"
        raise ValueError(Message(text, name=name, why=why))
    wanted = "names or whole numbers" if argument == "groups" else "numbers"
    hint = "leave it out"
    if argument == "slopes" and plan.seen == "booleans":
        hint = "give it as 0 and 1"
    raise ValueError(
        Message(
            f"{{{argument}}} names {{name!r}}, which is read as {{seen}} and not as {{wanted}}: "
            "{hint}",
            name=name,
            seen=plan.seen,
            wanted=wanted,
            hint=hint,
        )
    )


def _refuse_of_many(
    terms: Sequence[GroupTerm], groupings: Groupings, rows: Rows, factor_rows: int
) -> None:
    """Raise where landmarks cannot have what is asked for."""
    if groupings.slopes:
        raise ValueError(
            f"slopes are for at most {factor_rows:,} rows, got {len(rows):,}: leave slopes out, or "
            "give some of the groups"
        )
    for term in terms:
        n_groups = len(np.unique(term.column.names(rows.numeric, rows.codes)))
        if n_groups > _MOST_BESIDE:
            raise ValueError(
                f"groups names {term.name!r}, of {n_groups:,} groups, beside {groupings.held!r}: "
                f"above {factor_rows:,} rows only the groups that are held out may be more than "
                f"{_MOST_BESIDE}; name {term.name!r} first, or as new"
            )


def refuse_monotone(monotone: Monotone | None, groupings: Groupings) -> None:
    """Raise ValueError where predictions are to rise with a column that groups say more of."""
    told = {*groupings.others, *groupings.slopes}
    for each in () if monotone is None else monotone.columns:
        if each.name in told:
            raise ValueError(
                f"monotone names {each.name!r}, which groups or slopes name, too: effects that "
                "differ by group need not rise with it; leave it out of one of them"
            )
