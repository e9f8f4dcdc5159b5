"""``kernelweave granger``."""

from __future__ import annotations

import json as json_module
import math
import shutil
import sys
import textwrap
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .graph import GrangerGraph

# of the graph or of an edge, by name
_Said: TypeAlias = dict[str, Any]
# as the program spells a dash
_STDIN = ("-", "stdin:")


def granger_command(
    data: str,
    /,
    *,
    lags: int | str = 1,
    replicate: str | None = None,
    drop: list[str] | None = None,
    exogenous: list[str] | None = None,
    never_target: list[str] | None = None,
    forbid: list[str] | None = None,
    per_lag: bool = False,
    pairs: bool | None = None,
    missing: Literal["raise", "skip"] = "raise",
    lam: float | None = None,
    lams: list[float] | None = None,
    tol: float = 1e-3,
    max_iter: int = 500,
    memory_limit: float | None = None,
    significance: Literal["permutation"] | None = None,
    draws: int = 199,
    adjust: Literal["bh", "max-t"] = "bh",
    level: float = 0.05,
    top: int = 20,
    jobs: int = 1,
    seed: int = 0,
    edges: Path | None = None,
    picture: Path | None = None,
    report: Path | None = None,
    graph: Path | None = None,
    force: bool = False,
    json: bool = False,
) -> None:
    """Learn a Granger causality graph: which series of a table drive which others.

    Parameters
    ----------
    data : str
        A CSV file with a header, one column per series and one row per point in time, or - for
        standard input. The separator and the decimal mark are detected. A column of dates is the
        time.
    lags : int
        Number of lags; or a list of lags, such as 1,2,12; or cv to choose the number by
        cross-validation.
    replicate : str
        Column of replicates, such as repeated experiments. No lag crosses from one replicate to
        the next.
    drop : str
        Column to leave out, such as a row number; may be repeated.
    exogenous : str
        Column that may drive every series but is not a node of the graph, such as the weather; may
        be repeated.
    never_target : str
        Series that may drive others but is never driven; may be repeated.
    forbid : str
        Link to exclude, as source:target; may be repeated.
    per_lag : bool
        Give each lag of a series its own weight and p-value, instead of one for all lags.
    pairs : bool
        Include products of the histories of two series. Default: included, unless --significance
        or --per-lag is given. --pairs=False needs less memory.
    missing : str
        Missing values: raise an error, or skip the rows and lags that contain them.
    lam : float
        Regularization parameter λ. Default: chosen by cross-validation.
    lams : float
        Candidate λ for cross-validation; may be repeated. Default: 7 values from 10 to 0.01.
    tol : float
        Relative gap between lower and upper bound at which a fit stops.
    max_iter : int
        Maximum number of iterations of a fit.
    memory_limit : float
        Memory limit of a fit in bytes, such as 8e9. Default: four fifths of the memory.
    significance : str
        How to compute p-values. Default: none are computed.
    draws : int
        Number of refits per series for the p-values.
    adjust : str
        Correction for multiple testing: bh controls the false discovery rate, max-t the
        probability of any false edge.
    level : float
        Significance level of the adjusted p-values.
    top : int
        Number of edges to print.
    jobs : int
        Number of series fitted in parallel.
    seed : int
        Random seed: the same command gives the same graph.
    edges : Path
        CSV file for the table of all edges.
    picture : Path
        Image file for a drawing of the graph and its weights.
    report : Path
        HTML file for a report: the graph, its edges, their effects and how to read them.
    graph : Path
        GraphML file for the graph, which networkx, Gephi and Cytoscape read.
    force : bool
        Overwrite existing files.
    json : bool
        Print the result as JSON.
    """
    _check_outputs([edges, picture, report, graph], data, force)
    _check_endings(picture, graph)
    links, lag_spec = [_link(each) for each in forbid or []], _lags(lags)
    from kernelweave.kernels_core import config_context
    from kernelweave.kernels_core.checks import COUNT

    COUNT.check("top", top)
    from kernelweave.tables.table import no_formula

    from .files import read_series
    from .graph import GrangerGraph
    from .page import graph_page
    from .series import lag_list

    with config_context(memory_limit=memory_limit):
        table = read_series(data, replicate, list(drop or []), allow_missing=missing == "skip")
    data = "standard input" if data in _STDIN else data
    needed = (1 if lag_spec == "cv" else max(lag_list(lag_spec))) + (2 if lam is not None else 5)
    if len(table.frame) < needed:
        raise ValueError(
            f"{data} has {len(table.frame)} rows: --lags {lags} needs at least {needed}"
        )
    model = GrangerGraph(
        lag_spec,
        **_strength(lam, lams),
        replicates=table.replicates,
        exogenous=exogenous,
        never_targets=never_target,
        forbidden=links or None,
        per_lag=per_lag,
        pairs=pairs,
        missing=missing,
        tol=tol,
        max_iter=max_iter,
        memory_limit=memory_limit,
        significance=significance,
        n_draws=draws,
        adjust=adjust,
        level=level,
        n_jobs=jobs,
        random_state=seed,
    ).fit(table.frame)
    rows = [{str(k): value for k, value in row.items()} for row in model.edges_.to_dict("records")]
    if edges is not None:
        ends = {end: model.edges_[end].map(no_formula) for end in ("source", "target")}
        model.edges_.assign(**ends).to_csv(edges, index=False)
    if picture is not None:
        _draw(model, picture)
    if report is not None:
        title = f"Which series drive which: {Path(data).name}"
        report.write_text(graph_page(model, title=title), encoding="utf-8")
    if graph is not None:
        import networkx as nx

        nx.write_graphml(model.to_networkx(), graph)
    _print_json(model, rows) if json else _print_text(model, rows, top, data)


def _strength(lam: float | None, lams: list[float] | None) -> _Said:
    """Return the arguments of `GrangerGraph` for a fixed λ or its candidates."""
    if lam is None:
        return {"lam": "cv", "lams": lams, "cv": 5}
    if lams:
        raise ValueError("--lams are candidates for what --lam fixes: give one of the two")
    return {"lam": lam, "cv": None}


def _lags(given: int | str) -> int | str | list[int]:
    """Return lags as `GrangerGraph` takes them."""
    if isinstance(given, int) or given == "cv":
        return given
    try:
        return [int(each) for each in given.split(",")]
    except ValueError as error:
        raise ValueError(f"--lags must be such as 3, 1,2,12 or cv, got {given!r}") from error


def _link(pair: str) -> tuple[str, str]:
    """Return source and target of a link as the command line writes it."""
    source, colon, target = pair.partition(":")
    if not (source and colon and target):
        raise ValueError(f"--forbid must be source:target, such as price:demand, got {pair!r}")
    return source, target


def _check_outputs(paths: list[Path | None], data: str, force: bool) -> None:
    """Refuse before the work what could not be written after it, or would cost another file."""
    taken = {Path(data).resolve()}
    for path in filter(None, paths):
        if path.resolve() in taken:
            raise ValueError(f"{path} is read, or written twice: give each file its own name")
        taken.add(path.resolve())
        if path.exists() and not force:
            raise ValueError(f"{path} exists: give another name or --force")
        if path.is_dir() or not path.parent.is_dir():
            what = "it is a folder" if path.is_dir() else f"there is no folder {path.parent}"
            raise ValueError(f"{path} cannot be written: {what}")


def _check_endings(picture: Path | None, graph: Path | None) -> None:
    """Refuse formats that nobody knows."""
    if graph is not None and graph.suffix.lower() != ".graphml":
        raise ValueError(f"{graph} must end in .graphml")
    if picture is not None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        endings = FigureCanvasAgg.get_supported_filetypes()
        if picture.suffix[1:].lower() not in endings:
            raise ValueError(f"{picture} must end in one of {', '.join(sorted(endings))}")


def _facts(model: GrangerGraph) -> _Said:
    gaps, adjusted = [result.gap for result in model.results_], model.adjusted_p_values_
    return {
        "n_nodes": len(model.group_names_),
        "constant": model.constant_,
        "lags": list(model.lags_),
        "lam": float(model.lam_[0]),
        "lam_end": "" if model.selection_ is None else model.selection_.end,
        "largest_gap": max(gaps),
        "significance": model.significance,
        "adjust": model.adjust,
        "level": float(model.level),
        "n_draws": model.n_draws_,
        "p_values_doubted": model.p_values_doubted_,
        "n_tested": 0 if adjusted is None else sum(map(math.isfinite, adjusted.ravel())),
        "rmse": None if model.rmse_ is None else model.rmse_.tolist(),
    }


def _print_json(model: GrangerGraph, rows: list[_Said]) -> None:
    facts = {**_facts(model), "edges": rows}
    sys.stdout.write(json_module.dumps(facts, indent=2, ensure_ascii=False) + "\n")


def _print_text(model: GrangerGraph, rows: list[_Said], top: int, data: str) -> None:
    from kernelweave.tables.errors import printable

    from .series import describe_lags
    from .significance import p_value_text

    facts = _facts(model)
    end = f" ({facts['lam_end']})" if facts["lam_end"] else ""
    lines = [
        _wrapped(
            f"{data}: {facts['n_nodes']} series, {describe_lags(model.lags_)}, "
            f"lambda {facts['lam']:.3g}{end}, every fit within {facts['largest_gap']:.1e} of its "
            "optimum"
        )
    ]
    from_, to = (
        max([len(str(row[end])) for row in rows[:top]], default=1) for end in ("source", "target")
    )
    for row in rows[:top]:
        p = ""
        if "p_value" in row:
            p = f"  p {p_value_text(row['p_value'])}"
            p += f"  adjusted p {p_value_text(row['adjusted_p_value'])}"
        edge = f"{row['source']:>{from_}} -> {row['target']:<{to}}  lag {row['lag']}"
        lines.append(f"  {edge}  {row['effect'] or ' '}  {row['weight']:.4f}{p}")
    if len(rows) > top:
        lines.append(f"  {len(rows) - top} lighter edges: --top, --edges or --json show them")
    lines.append(_wrapped(f"  {_reading(model, rows)}"))
    sys.stdout.write(printable("\n".join(lines) + "\n"))


def _wrapped(sentence: str) -> str:
    """Return a sentence in lines that the terminal holds."""
    width = shutil.get_terminal_size().columns
    return textwrap.fill(sentence, width, subsequent_indent="  ", break_long_words=False)


def _reading(model: GrangerGraph, rows: list[_Said]) -> str:
    """Return what the numbers of the edges say, and what they do not."""
    from .page import verdict

    if not rows:
        return "no series drives another at this lambda"
    if model.significance is None:
        return (
            "weights rank the edges, and chance alone gives some weight: --significance "
            "permutation tests them"
        )
    return verdict(model)


def _draw(model: GrangerGraph, path: Path) -> None:
    from kernelweave.kernels_core import KernelWeaveWarning

    from .displays import CausalGraphDisplay
    from .page import picture_bytes, plot_weights

    def both(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        CausalGraphDisplay.from_estimator(model, ax=left)
        plot_weights(model, right)

    side = min(11.0, max(6.0, 3.6 + 0.09 * len(model.group_names_)))
    content, complete = picture_bytes(both, (2.0 * side, side), path.suffix[1:].lower())
    path.write_bytes(content)
    if not complete:
        text = "the font lacks letters of some names, drawn as squares: --report FILE, or a "
        warnings.warn(KernelWeaveWarning(f"{path}: {text}picture in .svg, has them"), stacklevel=2)
