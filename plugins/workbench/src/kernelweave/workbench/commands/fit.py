"""``kernelweave fit``."""

from __future__ import annotations

import warnings
from ast import literal_eval
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter
from kernelweave.tables.errors import did_you_mean

from .. import console
from ..console import emit_json
from ..errors import CommandError
from ..files import check_output, replacing
from ..unlabelled import without_target
from . import options
from .refit import check_options, fit_with_kernel

if TYPE_CHECKING:
    from kernelweave.tables import Event, Table, Target
    from rich.console import Console

    from ..choices import Choices
    from ..models import Model
    from ..models.header import Comparison
    from ..summaries import FileScore, Summary


ModelName = Literal[
    "evidence", "evidence-mkl", "tkl", "sparse", "ridge", "gmkl", "average", "cka", "easy", "pwmk",
    "simple", "elastic-net", "quantile",
]  # fmt: skip
# less is printed as 0.000
_LEAST_SHOWN = 0.0005
_PREDICT = "; use --predictions FILE to predict them"
_OTHERS = Parameter(group=Group("Model parameters", sort_key=1))
_LIVING = Parameter(group=Group("A kernel that is there", sort_key=2))


def fit_command(
    data: str,
    /,
    *,
    target: str | None = None,
    event: options.Event = None,
    task: options.Task = "auto",
    out: Path | None = None,
    test: str | None = None,
    compare: Annotated[bool, Parameter(negative="--no-compare")] = True,
    cv: int | Literal["group", "time"] | None = None,
    metric: options.Metric = None,
    groups: options.Groups = None,
    slopes: options.Slopes = None,
    new: options.New = None,
    order: options.Order = None,
    drop: options.Drop = None,
    categorical: options.Categorical = None,
    text: options.Text = None,
    numeric: options.Numeric = None,
    date: options.Date = None,
    day_first: options.DayFirst = None,
    weights: options.Weights = None,
    predictions: Path | None = None,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    class_weight: Literal["balanced"] | None = None,
    max_time: options.MaxTime = None,
    memory_limit: options.MemoryLimit = None,
    seed: options.Seed = 0,
    no_header: options.NoHeader = False,
    force: options.Force = False,
    json: options.Json = False,
    model: ModelName | None = None,
    algorithm: Annotated[str | None, _OTHERS] = None,
    tol: Annotated[float | None, _OTHERS] = None,
    max_iter: Annotated[int | None, _OTHERS] = None,
    increasing: Annotated[list[str] | None, _OTHERS] = None,
    decreasing: Annotated[list[str] | None, _OTHERS] = None,
    kernel: Annotated[Path | None, _LIVING] = None,
    share: Annotated[Literal["sums"] | None, _LIVING] = None,
    views: Annotated[Path | None, _OTHERS] = None,
    set: Annotated[list[str] | None, _OTHERS] = None,
) -> None:
    """Fit a model to a table and estimate how well it predicts new rows.

    Text, dates and missing values are encoded automatically; nothing has to be scaled or tuned.
    Ctrl-C keeps the best model so far.

    Parameters
    ----------
    data : str
        A CSV, Excel, Parquet, JSON or LIBSVM file, the name of a data set (see `kernelweave
        list`), an OpenML data set as openml:NAME@VERSION or openml:ID, or - for standard input.
    target : str
        Column to predict, by name or 0-based index. LIBSVM files and named data sets have their
        own. Some of its numbers may be limits or ranges, such as <0.5, 36+ and 3-5.
    out : Path
        File to save the model to.
    test : str
        Another table with known targets, read like DATA: the model is scored on it too.
    compare : bool
        Compare with a tuned RBF SVM, HistGradientBoosting and a baseline (the mean or the most
        frequent class), on the same rows; --no-compare skips this. They learn from known targets
        only, so there is no comparison where some are limits, ranges or times without an event.
    cv : int
        Number of cross-validation folds (default: 3); group: whole groups of the column --groups
        are held out; time: later rows are held out, by the column --order or the order of the file.
        Above 2000 rows, the evidence kernel holds out this number of parts of the rows: the first
        selects its settings, and the score is computed on the others.
    predictions : Path
        CSV file for predictions of the rows of DATA whose target is missing. These rows are never
        used for fitting.
    class_weight : str
        balanced: all classes get the same total weight.
    max_time : float
        Time limit of a fit in seconds: the best model so far is kept. A model of the comparison
        that takes longer is skipped. The importance of the columns is skipped if it takes longer
        than the time that is left, or than one second if less is left.
    model : str
        Model to fit: evidence (the default), evidence-mkl (of those that weight kernels the one to
        predict with), tkl (tessellated kernel, with bounds on the optimum), sparse (few of many
        kernels), ridge (ridge regression with weighted kernels), gmkl (its SVM counterpart), or
        one of the baselines average, cka, easy, pwmk, simple, elastic-net and quantile (one
        quantile, the median unless --set quantile=0.9 or another says which). gmkl, average, cka,
        easy and pwmk are for classification only, quantile for regression.
    algorithm : str
        Algorithm that learns the kernel, see `kernelweave list`. It determines the model.
    tol : float
        Relative gap between the lower and the upper bound at which the fit stops; for evidence,
        the relative improvement below which it stops.
    max_iter : int
        Maximum number of iterations.
    increasing : str
        Columns of numbers or dates with which predictions may only rise, such as dose,age; may be
        repeated. Of two classes: the probability of the second by alphabet. For the evidence
        kernel.
    decreasing : str
        Columns with which predictions may only fall.
    kernel : Path
        A model whose kernel is used as it is: the result is the model of the rows of DATA with that
        kernel, as if it had been updated with them and had forgotten all others.
    share : str
        sums: write to --out, in place of a model, sums of the rows of DATA over the landmarks of
        --kernel, which `kernelweave merge` adds up. No row is in them.
    views : Path
        For models that weight kernels: a TOML or JSON file of groups of columns. Each group
        gets a linear and a Gaussian kernel; columns in no group are left out.
    set : str
        Any other parameter of the estimator, as name=value: C=10, k0=cv, n_landmarks=2000; may be
        repeated.
    """
    given = dict(locals())
    if kernel is not None or share is not None:
        check_options(fit_command, given)
        fit_with_kernel(
            data, kernel, target, out, share, {"encoding": encoding, "sheet": sheet},
            header=not no_header, force=force, json=json,
        )  # fmt: skip
        return
    for path, others in ((out, []), (predictions, [out])):
        if path is not None:
            check_output(path, data, test, views, force=force, written=others)
    from kernelweave.tables import choose_event, choose_target, read_table

    settings = {
        "algorithm": algorithm, "tol": tol, "max_iter": max_iter, "max_time": max_time,
        "class_weight": class_weight, **_settings(set or []),
    }  # fmt: skip
    read = partial(read_table, header=not no_header, encoding=encoding, sheet=sheet)
    table, other = read(data), None if test is None else read(test)
    table = options.with_kinds(
        table, categorical=categorical, text=text, numeric=numeric, date=date, day_first=day_first
    )
    column = choose_target(table, target)
    if increasing or decreasing:
        settings["monotone"] = _signs(table, column, increasing or [], decreasing or [])
    ended = None if event is None else choose_event(table, event, column)
    # learners load slowly, and what cannot be fitted is refused before
    from ..choices import Choices

    choices = Choices(model, settings, cv, seed, views, metric, groups, order, slopes, new)
    found, more = _fit(
        table,
        other,
        column,
        ended,
        task,
        choices,
        drop or [],
        weights,
        compare,
        out,
        predictions,
        force,
    )
    if json:
        from ..sentences import as_json

        emit_json({**as_json(found), **more})
    else:
        _show(found, more)
    if more["interrupted"]:
        kept = f"the best model so far is in {out}" if out else "nothing was saved (--out FILE)"
        raise KeyboardInterrupt(kept)


def _settings(pairs: Sequence[str]) -> dict[str, Any]:
    """Return parameters by name; a value is a Python literal, true, false, none or text."""
    words = {"true": True, "false": False, "none": None}
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.isidentifier():
            raise CommandError(f"--set must be name=value, such as C=10, got {pair!r}")
        try:
            settings[name] = words[text] if text in words else literal_eval(text)
        except (ValueError, SyntaxError):
            settings[name] = text
    return settings


def _signs(
    table: Table, target: str, increasing: list[str], decreasing: list[str]
) -> dict[str, int]:
    """Return 1 for each column with which predictions rise, and −1 where they fall.

    Names are separated by commas, unless a column is called so.
    """
    signs: dict[str, int] = {}
    for option, given, sign in (("--increasing", increasing, 1), ("--decreasing", decreasing, -1)):
        for text in given:
            for name in [text] if text in table.columns else map(str.strip, text.split(",")):
                if name not in table.columns:
                    hint = did_you_mean(name, table.columns, what="columns")
                    raise CommandError(f"{option}: {table.source} has no column {name!r}; {hint}")
                if name == target:
                    raise CommandError(f"{option}: {name!r} is the target: name other columns")
                if signs.setdefault(name, sign) != sign:
                    raise CommandError(f"column {name!r} cannot be both increasing and decreasing")
    return signs


def _fit(
    table: Table,
    other: Table | None,
    column: str,
    event: Event | None,
    task: str,
    choices: Choices,
    drop: list[str],
    weights: str | None,
    comparing: bool,
    path: Path | None,
    predictions: Path | None,
    force: bool,
) -> tuple[Summary, dict[str, Any]]:
    """Fit, save where asked, and return the summary and what the command adds to it."""
    from kernelweave.tables import read_target, split_by_target
    from kernelweave.tables.data_checks import shared_rows

    from ..fitting import fit_table
    from ..models import save_model
    from ..roles import feature_columns
    from ..summaries import summary

    console.name_target(column)
    table, unknown = split_by_target(table, column)
    if unknown is not None:
        console.print_message(
            "note", without_target(table, unknown, column, predictions, hint=_PREDICT)
        )
    target = read_target(table, column, task, event=event)
    features = feature_columns(table, column, drop, weights, event)
    notes = [target.hint] if target.hint else []
    if other is not None:
        other = _test(other, table, features if choices.views is None else [], target)
        shared = shared_rows(table, other, [*features, column])
        notes += shared
    for sentence in notes:
        console.print_message("note", sentence)

    def save(model: Model) -> None:
        if path is not None:
            save_model(model, path, force=force)

    outcome = fit_table(
        table, target, choices, drop=drop, weights=weights, comparing=comparing,
        on_note=lambda sentence: console.print_message("note", sentence),
        on_fitted=save,
    )  # fmt: skip
    if path is not None:
        # what was found out beside the fit belongs to it
        save_model(outcome.model, path, force=True)
    if predictions is not None:
        _write_predictions(outcome.model, unknown, predictions)
    found = summary(outcome.model)
    tested = None if other is None else _tested(outcome.model, other, notes, bool(shared))
    seconds = {row.name: row.seconds for row in outcome.rows}
    rows = [{**row, "seconds": seconds[row["name"]]} for row in found.comparison["rows"]]
    comparison: Comparison = {"ours": found.comparison["ours"], "rows": rows}
    return replace(found, test=tested, comparison=comparison), {
        "test": None if tested is None else _test_json(tested),
        "task_reason": target.reason,
        "notes": [*notes, *outcome.model.header.notes],
        "seconds": outcome.seconds,
        "interrupted": outcome.interrupted,
        "file": None if path is None else str(path),
    }


def _test(other: Table, table: Table, features: Sequence[str], target: Target) -> Table:
    """Return rows to test with, that have targets and are in the units of a table.

    Refuse them before anything is learned.
    """
    from kernelweave.evidence import ColumnEncoder
    from kernelweave.tables import TableError, choose_event, choose_target, split_by_target
    from kernelweave.tables.table import check_units

    column = target.column
    choose_target(other, column)
    if target.event is not None:
        choose_event(other, target.event.column, column)
        try:
            choose_event(other, str(target.event), column)
        except TableError as no_event:
            # in a few rows the event may not have happened, which is no reason against the fit
            console.print_message("note", no_event)
    absent = [name for name in features if name not in other.columns]
    unused = set(absent)
    if absent:
        encoder = ColumnEncoder()
        with warnings.catch_warnings(), suppress(ValueError):
            # of a column that a fit leaves out, or refuses, the fit speaks itself
            warnings.simplefilter("ignore")
            encoder.fit(table.inputs(features))
            unused -= {row.column for row in encoder.report_ if row.used}
    other.require([name for name in features if name not in unused])
    named = features if target.ends is not None else (*features, column)
    check_units(other, [name for name in named if name not in absent], table.units)
    labelled, missing = split_by_target(other, column)
    if missing is not None:
        console.print_message("note", without_target(labelled, missing, column))
    return labelled


def _write_predictions(model: Model, unknown: Table | None, path: Path) -> None:
    """Write the rows without a target as they were read, each with its prediction."""
    from .predict import to_csv

    if unknown is None:
        console.print_message("note", f"no row has a missing target: {path} is not written")
        return
    cells = unknown.frame.drop(columns=model.header.target)
    columns = {str(name): column.tolist() for name, column in cells.items()}
    name = "prediction"
    while name in columns:
        name += "_"
    columns[name] = model.predict(unknown).tolist()
    with replacing(path) as stream:
        stream.write(to_csv(columns).encode())


def _strongest(importance: Sequence[Mapping[str, Any]]) -> str:
    """Return the columns whose worth is above two errors, and above what is printed as 0.000."""
    strong = [row for row in importance if row["value"] > max(2.0 * row["error"], _LEAST_SHOWN)]
    return ", ".join(f"{row['name']} ({row['value']:.3f})" for row in strong[:5])


def _tested(model: Model, table: Table, notes: list[str], shares_rows: bool) -> FileScore | None:
    """Return the scores on other rows; where there are none, add a note: the fit has succeeded."""
    from ..report.evaluation import evaluate
    from ..scoring.metrics import Metric, also_scored
    from ..summaries import FileScore

    try:
        evaluation = evaluate(model, table, None)
        rows = evaluation.held_out
        metric = Metric(model.header.metric)
        scored = metric.score(rows)
        half_known = rows.ends is not None
        low, high = metric.interval(scored, rows.task, rows.n_parts, half_known=half_known)
        also = also_scored(rows)
    except (CommandError, ValueError, MemoryError) as refused:
        reason = console.message_text(refused).removeprefix(f"{table.source}: ")
        notes.append(f"--test {table.source} is not scored: {reason}")
        console.print_message("note", notes[-1])
        return None
    return FileScore(
        data=table.source,
        rows=len(evaluation.y),
        score=scored.value,
        error=scored.error,
        n_parts=rows.n_parts,
        low=low,
        high=high,
        also=also,
        coverage=evaluation.coverage,
        by_class=evaluation.by_class,
        shares_rows=shares_rows,
    )


def _test_json(tested: FileScore) -> dict[str, Any]:
    """Return a test ready for JSON, without coverage where there is none."""
    return {name: each for name, each in asdict(tested).items() if each not in ((), None)}


def _show(found: Summary, more: Mapping[str, Any]) -> None:
    from ..model_catalog import model_title
    from ..sentences import (
        bounds_rows,
        closing_sentences,
        column_remarks,
        not_shown,
        other_rows,
    )

    screen = console.out()
    width = found.n_features
    rows = {
        "data": f"{found.data}: {found.n_samples} rows, {width} column"
        + ("s" if width != 1 else ""),
        "model": f"{model_title(found.model)}, {found.algorithm}"
        if not found.is_estimate
        else model_title(found.model),
        "seconds": f"{more['seconds']:.1f}",
        "saved to": more["file"] or "nothing (use --out FILE)",
    }
    if found.kernels:
        few = [f"{weight:.3f} {name}" for name, weight in list(found.kernels.items())[:8]]
        left = len(found.kernels) - len(few)
        rows["kernels"] = ", ".join(few) + (f" and {left} more" if left else "")
    if found.chosen:
        chosen = found.chosen.items()
        rows["chosen by CV"] = ", ".join(f"{name} {value:g}" for name, value in chosen)
    if found.views:
        rows["views"] = _views(found.views)
    if strong := _strongest(found.importance):
        rows["top columns"] = (
            f"{strong}: drop in {found.importance_measure} when a column is shuffled"
        )
    console.print_section(
        screen, f"{found.task} of {found.target} ({more['task_reason']})", rows.items()
    )
    _show_scores(screen, found, more["seconds"])
    if lines := other_rows(found):
        title = f"Expected {found.measure} by kind of new rows"
        texts = {name: ", ".join(parts) for name, parts in lines.items()}
        console.print_section(screen, title, texts.items())
    if sentence := not_shown(found):
        screen.print(f"{sentence}\n", markup=False)
    if remarks := column_remarks(found):
        console.print_section(screen, "Columns", remarks.items())
    if not found.is_estimate:
        rows = bounds_rows(found)
        rows["status"] = console.message_text(rows["status"])
        console.print_section(screen, "Certificate", rows.items())
    screen.print(closing_sentences(found))


def _views(views: Sequence[Mapping[str, Any]], most: int = 8) -> str:
    used = [row for row in views if row["weight"] > 0]
    named = ", ".join(f"{row['weight']:.3f} {row['name']}" for row in used[:most])
    more = f" and {len(used) - most} more" if len(used) > most else ""
    return f"{named}{more}: {len(used)} of {len(views)}"


def _show_scores(screen: Console, found: Summary, seconds: float) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from ..model_catalog import model_title
    from ..score_table import away, print_scores, shown
    from ..scoring.scores import CONCORDANCE, Score

    scored = found.held_out
    if scored is None:
        screen.print("No validation score: the fit stopped before the first fold was done.\n")
        return
    rows = [{**vars(scored), "title": model_title(found.model), "seconds": seconds, "ours": True}]
    rows += [{**row, "away": away(row)} for row in found.comparison["rows"]]
    screen.print(Text(f"{found.measure} on {scored.rows}", style="bold"))
    print_scores(screen, rows, measure=found.measure, rare=scored.rare, unit=found.unit)
    if found.half_known:
        screen.print(Padding(Text(f"{CONCORDANCE[0].upper()}{CONCORDANCE[1:]}."), (0, 2)))
    if found.verdict:
        screen.print(Padding(Text(found.verdict), (0, 2)))
    screen.print("")
    if (tested := found.test) is not None:
        value = Score(tested.score, tested.error).formatted(3)
        also = "".join(f", {name} {shown(name, value)}" for name, value in tested.also.items())
        # a long folder would leave the column beside it no room
        line = {Path(tested.data).name: f"{value}{also}, on {tested.rows} rows"}
        for held in (each for each in tested.coverage if each.level == 0.9):
            sets = "intervals" if found.task == "regression" else "sets of classes"
            line["coverage"] = f"{held.share:.1%} of the targets are in their 90 % {sets}"
            line |= {"lowest": held.lowest} if held.lowest else {}
        if tested.by_class is not None:
            worst = tested.by_class.lowest()
            line["lowest class"] = f"{worst.label}: {worst.held} of {worst.n_rows} rows"
        console.print_section(screen, f"Test {found.measure}", line.items())
