"""``kernelweave fit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from .. import console
from ..console import emit_json
from ..errors import CommandError
from ..files import check_output

_Flag = Parameter(negative=())


def fit_command(
    data: str,
    /,
    *,
    target: str | None = None,
    algorithm: str | None = None,
    kernel: Literal["tessellated", "polynomial"] | None = None,
    task: Literal["auto", "classification", "regression"] = "auto",
    C: Annotated[float | None, Parameter(name="--C")] = None,
    epsilon: float | None = None,
    tol: float | None = None,
    max_iter: int | None = None,
    max_time: float | None = None,
    degree: int | None = None,
    delta: float | None = None,
    seed: int = 0,
    drop: Annotated[list[str] | None, Parameter(negative=())] = None,
    no_header: Annotated[bool, _Flag] = False,
    out: Path | None = None,
    force: Annotated[bool, _Flag] = False,
    json: Annotated[bool, _Flag] = False,
) -> None:
    """Learn a kernel and its predictor from a table, and save the model.

    Parameters
    ----------
    data : str
        A CSV, Excel, Parquet, JSON or LIBSVM file, the name of a data set (see `kernelweave
        list`), a data set of OpenML as openml:NAME@VERSION or openml:ID, or - for standard input.
    target : str
        The column to predict, by name or 0-based index. LIBSVM files and named data sets know
        theirs.
    algorithm : str
        What learns the kernel, from `kernelweave list`. Default: the estimator's own.
    kernel : str
        The family of kernels that is learned. Default: tessellated.
    task : str
        auto: text or two distinct targets are classes, anything else is a number.
    C : float
        Penalty of the loss; larger fits the training samples more closely. Default: 1.
    epsilon : float
        Regression: errors up to this size cost nothing. Default: 0.1.
    tol : float
        The relative gap between the proved bounds to reach. Default: 0.001.
    max_iter : int
        Iterations at most.
    max_time : float
        Seconds at most.
    degree : int
        Degree of the monomials in the kernel. Default: 1.
    delta : float
        How far the kernel's box reaches beyond the range of the data. Default: 0.5.
    seed : int
        Seed of everything random: the same command gives the same model.
    drop : str
        A column to leave out; may be given several times.
    no_header : bool
        The first line is data; columns are called 0, 1, ...
    out : Path
        The file to save the model in.
    force : bool
        Replace the file if it exists.
    json : bool
        Print the outcome as JSON.
    """
    if out is not None:
        check_output(out, force=force)
    from ..fitting import Choices

    choices = Choices(
        algorithm=algorithm,
        kernel=kernel,
        C=C,
        epsilon=epsilon,
        tol=tol,
        max_iter=max_iter,
        max_time=max_time,
        degree=degree,
        delta=delta,
        seed=seed,
    )
    table = _table(data, not no_header)
    found = _fit(table, target, task, choices, list(drop or []), out, force)
    emit_json(found) if json else _show(found)


def _table(data: str, header: bool) -> Any:
    from ..data import read_table

    return read_table(data, header=header)


def _fit(
    table: Any,
    column: str | None,
    task: str,
    choices: Any,
    drop: list[str],
    path: Path | None,
    force: bool,
) -> dict[str, Any]:
    """Fit, save where asked, and return the summary."""
    from ..data import choose_target, read_target
    from ..fitting import fit_table
    from ..models import save_model
    from ..summaries import summary

    column = choose_target(table, column)
    if column in drop:
        raise CommandError(f"--drop {column!r} is the target")
    target = read_target(table, column, task)
    model = fit_table(table, target, choices, drop=drop)
    if target.hint:
        console.say("note", target.hint)
    if path is not None:
        save_model(model, path, force=force)
    score = float(model.estimator.score(model.inputs(table), target.values))
    saved = None if path is None else str(path)
    extra = {"task_reason": target.reason, "training_score": score, "model": saved}
    return {**summary(model), **extra}


def _show(found: dict[str, Any]) -> None:
    from ..summaries import bounds_rows, certificate_sentence, told_columns

    measure = "accuracy" if found["task"] == "classification" else "R²"
    rows = {
        "data": f"{found['data']}: {found['n_samples']} samples, {found['n_features']} features",
        "learned": f"{found['estimator']}, {found['algorithm']}, C = {found['C']:g}",
        f"{measure} on these samples": f"{found['training_score']:.4f}",
        **bounds_rows(found),
        "model": found["model"] or "not saved (use --out FILE)",
    }
    screen = console.out()
    console.print_section(
        screen, f"{found['task']} of {found['target']} ({found['task_reason']})", rows.items()
    )
    if told := told_columns(found):
        console.print_section(screen, "columns", told.items())
    screen.print(certificate_sentence(found))
