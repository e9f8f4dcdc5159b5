"""``kernelweave predict``."""

from __future__ import annotations

import csv
import io
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from .. import console
from ..errors import CommandError
from ..files import check_output, replacing
from .options import Encoding, Force, NoHeader, Sheet

if TYPE_CHECKING:
    from kernelweave.tables import Table

    from ..models import Model


def predict_command(
    model: Path,
    data: str,
    /,
    *,
    out: Path | None = None,
    interval: float | None = None,
    quantiles: str | None = None,
    sets: Annotated[float | None, Parameter(name="--set")] = None,
    by_class: Annotated[bool, Parameter(negative=())] = False,
    proba: bool = False,
    explain: int | None = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    no_header: NoHeader = False,
    force: Force = False,
    json: bool = False,
) -> None:
    """Predict the rows of a table with a saved model.

    The output is a CSV with the column `prediction`: a class, a mean, or the median where targets
    of the fit are limits, ranges or times up to an event. Columns are matched by name; other
    columns, such as the target, are ignored. New categories and missing values are accepted.

    Parameters
    ----------
    model : Path
        A file that `kernelweave fit --out` wrote.
    data : str
        A CSV, Excel, Parquet, JSON or LIBSVM file, the name of a data set, or - for standard
        input.
    out : Path
        File to write. Default: standard output.
    interval : float
        Regression: add the columns `low` and `high`, the ends of prediction intervals that contain
        this share of the targets, such as 0.9. Of a model that was fitted with --groups and
        --order also the column `kind`: whether a row is of a known group or a new one, now or
        later, as its interval is of that kind.
    quantiles : str
        Regression: add a column `quantile_Q` for each of these levels, such as .1,.5,.9.
    sets : float
        Classification: add the column `set`, the classes, separated by |, that a row may have:
        the true class is among them with this probability, such as 0.9, over all rows together.
    by_class : bool
        With --set: hold the true class with this probability in the rows of each class, rare ones
        too; the sets are larger.
    proba : bool
        Classification: add the probability of each class as a column `proba_CLASS`.
    explain : int
        Add this number of columns `reason_1`, ...: the columns of the table that change the
        prediction, or the probability of the predicted class, most from its mean, each with its
        value and the change, as in age = 63: +1.2.
    json : bool
        Print the predictions as a JSON list; with --out, the name of the file.
    """
    if out is not None:
        check_output(out, model, data, force=force)
    _check(explain, interval, sets, by_class)
    shares = [] if quantiles is None else _shares(quantiles)
    import numpy as np
    from kernelweave.kernels_core.exceptions import ExtrapolationWarning
    from kernelweave.tables import read_table
    from kernelweave.tables.errors import printable

    from ..models import load_model

    loaded = load_model(model)
    table = read_table(data, header=not no_header, encoding=encoding, sheet=sheet)
    with warnings.catch_warnings():
        # the note below counts them, and new words too
        warnings.simplefilter("ignore", ExtrapolationWarning)
        predicted = {"prediction": loaded.predict(table)}
    if interval is not None:
        predicted["low"], predicted["high"] = loaded.predict_interval(table, interval)
    if shares:
        by_level = loaded.predict_quantiles(table, shares).T
        predicted |= {f"quantile_{q:g}": each for q, each in zip(shares, by_level, strict=True)}
    if any(np.isinf(each).any() for name, each in predicted.items() if name != "prediction"):
        message = "the validation rows are too few for this level, so some ends are infinite"
        if loaded.header.half_known:
            message = (
                "the rows of the fit do not tell how far targets reach at this level, so some ends "
                "are infinite"
            )
        console.print_message("note", message)
    if proba:
        each = loaded.predict_proba(table).T
        labels = loaded.header.classes or ()
        predicted |= {f"proba_{label}": share for label, share in zip(labels, each, strict=True)}
    columns = {name: values.tolist() for name, values in predicted.items()}
    if interval is not None and (kinds := loaded.kinds_of_rows(table)) is not None:
        columns["kind"] = kinds.tolist()
    if sets is not None:
        chosen = loaded.predict_set(table, sets, by_class=by_class)
        if not by_class:
            _note_rare(loaded, sets)
        columns["set"] = chosen if json and out is None else ["|".join(map(str, s)) for s in chosen]
    if explain is not None:
        columns |= _reasons(loaded, table, explain)
    n_rows = len(columns["prediction"])
    _note_extrapolation(*loaded.outside(table), n_rows)
    if out is not None:
        with replacing(out) as stream:
            stream.write(to_csv(columns).encode())
        if json:
            console.emit_json({"predictions": str(out), "n_rows": n_rows})
    elif json:
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        console.emit_json(rows if len(columns) > 1 else columns["prediction"])
    else:
        text = to_csv(columns)
        sys.stdout.write(printable(text) if sys.stdout.isatty() else text)


def _check(explain: int | None, interval: float | None, sets: float | None, by_class: bool) -> None:
    """Raise CommandError for values of options that are out of range."""
    if explain is not None and explain < 1:
        raise CommandError(f"--explain must be at least 1, got {explain}")
    for option, share in (("--interval", interval), ("--set", sets)):
        if share is not None and not 0.0 < share < 1.0:
            raise CommandError(f"{option} must be between 0 and 1, such as 0.9, got {share:g}")
    if by_class and sets is None:
        raise CommandError("--by-class is for sets of classes: add --set 0.9")


def _reasons(model: Model, table: Table, n: int) -> dict[str, list[str]]:
    """Return the columns of reasons: a row has one of each of its columns at most."""
    most = min(n, len(model.header.columns))
    if most < n:
        console.print_message("note", f"--explain {n}: the model has {most} columns")
    rows = model.reasons(table, most)
    return {
        f"reason_{k + 1}": [row[k] if k < len(row) else "" for row in rows] for k in range(most)
    }


def _shares(given: str) -> list[float]:
    """Parse quantile levels such as .1,.5,.9."""
    try:
        shares = [float(each) for each in given.split(",")]
    except ValueError:
        shares = [0.0]
    if not all(0.0 < each < 1.0 for each in shares):
        raise CommandError(
            f"--quantiles must be numbers between 0 and 1, as in .1,.5,.9, got {given}"
        )
    return shares


def _note_rare(model: Model, confidence: float) -> None:
    """Say which class the sets hold least, where the rows held out show it."""
    from ..scoring.class_sets import sets_by_class

    found = None if model.held_out is None else sets_by_class(model.held_out, confidence)
    below = None if found is None else found.below()
    if below is not None:
        console.print_message(
            "note",
            f"of the rows of class {below.label} held out of the fit, these sets hold "
            f"{below.held} of {below.n_rows}: --by-class makes sets that hold "
            f"{100.0 * confidence:g} % of the rows of each class",
        )


def _note_extrapolation(n_outside: int, columns: list[str], n_rows: int) -> None:
    if n_outside:
        most = ", ".join(map(repr, columns[:3]))
        have = "has" if n_outside == 1 else "have"
        console.print_message(
            "note",
            f"{n_outside} of {n_rows} rows {have} values outside the range of the training data, "
            f"most often in {most}: these predictions are less reliable",
        )


def to_csv(columns: dict[str, list[object]]) -> str:
    """Return columns as CSV with a header, with all digits of numbers and no formulas.

    A spreadsheet would evaluate text that begins with ``=``, ``+``, ``-`` or ``@``, so such text
    gets an apostrophe in front, unless it is a number.

    Examples
    --------
    >>> to_csv({"prediction": [0.1, 2.0]}).splitlines()
    ['prediction', '0.1', '2.0']
    >>> to_csv({"prediction": ["=1+1", "-2", "- none"]}).split()
    ['prediction', "'=1+1", '-2', "'-", 'none']
    """
    from kernelweave.tables.table import no_formula

    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(map(no_formula, columns))
    writer.writerows(map(no_formula, row) for row in zip(*columns.values(), strict=True))
    return buffer.getvalue()
