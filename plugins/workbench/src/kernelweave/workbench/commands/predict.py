"""``kernelweave predict``."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from .. import console
from ..files import check_output, replacing

_Flag = Parameter(negative=())


def predict_command(
    model: Path,
    data: str,
    /,
    *,
    out: Path | None = None,
    no_header: Annotated[bool, _Flag] = False,
    force: Annotated[bool, _Flag] = False,
    json: Annotated[bool, _Flag] = False,
) -> None:
    """Predict a table with a saved model, as CSV with one column `prediction`.

    Columns are matched by name; others, the target among them, are passed over.

    Parameters
    ----------
    model : Path
        A file that `kernelweave fit --out` wrote.
    data : str
        A CSV, Excel, Parquet, JSON or LIBSVM file, the name of a data set, or - for standard
        input.
    out : Path
        The file to write; standard output without it.
    no_header : bool
        The first line of the CSV is data; columns are called 0, 1, ...
    force : bool
        Replace the file if it exists.
    json : bool
        Print the predictions as a JSON list; with --out, where they are.
    """
    if out is not None:
        check_output(out, force=force)
    from ..data import read_table
    from ..models import load_model

    loaded = load_model(model)
    table = read_table(data, header=not no_header)
    predictions = loaded.predict(table).tolist()
    _say_what_is_outside(*loaded.outside(table), len(predictions))
    if out is not None:
        with replacing(out) as stream:
            stream.write(to_csv(predictions).encode())
        if json:
            console.emit_json({"predictions": str(out), "n_rows": len(predictions)})
    elif json:
        console.emit_json(predictions)
    else:
        sys.stdout.write(to_csv(predictions))


def _say_what_is_outside(n_outside: int, columns: list[str], n_rows: int) -> None:
    if n_outside:
        most = ", ".join(map(repr, columns[:3]))
        console.say(
            "note",
            f"{n_outside} of {n_rows} rows lie outside what the model learned from, most in "
            f"{most}: trust those predictions less",
        )


def to_csv(predictions: list[Any]) -> str:
    """Return the CSV of one column; numbers keep every digit.

    Parameters
    ----------
    predictions : list
        Labels or numbers.

    Returns
    -------
    str
        With the header ``prediction``.

    Examples
    --------
    >>> to_csv([0.1, 2.0]).splitlines()
    ['prediction', '0.1', '2.0']
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["prediction"])
    writer.writerows([value] for value in predictions)
    return buffer.getvalue()
