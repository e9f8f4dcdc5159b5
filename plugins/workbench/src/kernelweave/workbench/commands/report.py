"""``kernelweave report``."""

from __future__ import annotations

import warnings
from pathlib import Path

from .. import console
from ..files import check_output, replacing
from .options import Encoding, Force, NoHeader, Sheet


def report_command(
    model: Path,
    data: str | None = None,
    /,
    *,
    target: str | None = None,
    out: Path | None = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    no_header: NoHeader = False,
    force: Force = False,
    json: bool = False,
) -> None:
    """Write an HTML report on a saved model: scores, plots, columns, proof.

    The scores are cross-validated and saved with the model; scores on another table can be added.

    Parameters
    ----------
    model : Path
        A file that `kernelweave fit --out` wrote.
    data : str
        Table with known targets, as for `kernelweave fit`: adds its scores and plots, and the
        coverage of intervals or sets of classes.
    target : str
        Column of the targets. Default: the one the model was fitted to.
    out : Path
        HTML file to write. Default: the model's name with the extension .html.
    json : bool
        Print the file name, the summary of the fit and the scores on DATA as JSON.
    """
    path = model.with_suffix(".html") if out is None else out
    check_output(path, model, data, force=force)
    from kernelweave.tables import ColumnWarning, read_table

    from ..models import load_model
    from ..report import report_page
    from ..report.evaluation import evaluate
    from ..sentences import as_json
    from ..summaries import summary

    loaded = load_model(model)
    evaluation = None
    if data is not None:
        table = read_table(data, header=not no_header, encoding=encoding, sheet=sheet)
        evaluation = evaluate(loaded, table, target)
    with warnings.catch_warnings():
        # the scores have said it, by the rows as they stand in the file
        warnings.simplefilter("ignore", ColumnWarning)
        page = report_page(loaded, evaluation, path=model)
    with replacing(path) as stream:
        stream.write(page.encode())
    if json:
        scores = {} if evaluation is None else evaluation.scores()
        console.emit_json({"page": str(path), **as_json(summary(loaded)), "scores": scores})
    else:
        console.out().print(f"{path}", soft_wrap=True)
