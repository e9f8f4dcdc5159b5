"""``kernelweave certify``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from kernelweave.kernels_core import config_context

from .. import console

_Flag = Parameter(negative=())


def certify_command(
    model: Path,
    data: str,
    /,
    *,
    target: str | None = None,
    algorithm: str | None = None,
    tol: float = 1e-6,
    max_iter: int | None = None,
    max_time: float | None = None,
    memory_limit: float | None = None,
    proof: Path | None = None,
    no_header: Annotated[bool, _Flag] = False,
    json: Annotated[bool, _Flag] = False,
) -> None:
    """Prove anew how far a saved model is from the best kernel for its data.

    A second solve of the same problem, by another algorithm where there is a better one, bounds
    the optimum from both sides, and the model's objective is compared with them. Of the evidence
    kernel, the default, no bound is known, so there is nothing to prove: it is fitted again on
    other folds, and how much its predictions of rows held out change is said.

    Parameters
    ----------
    model : Path
        A file that `kernelweave fit --out` wrote.
    data : str
        The data it was fitted on, as for `kernelweave fit`.
    target : str
        The column with the targets. Default: the one the model was fitted to.
    algorithm : str
        What solves the problem again. Default: the certified optimum for sparse weights, the
        second-order method over matrices, else the model's own.
    tol : float
        The relative gap of the second solve.
    max_iter : int
        Its iterations at most. Default: as many as the fit had.
    max_time : float
        Seconds at most; the bounds reached by then are proofs too.
    memory_limit : float
        Bytes that a fit may take, such as 8e9. Default: four fifths of the memory.
    proof : Path
        Write a proof of the optimum of sparse weights to this file, which `kernelweave-check`
        checks without this program.
    no_header : bool
        The first line of the CSV is data; columns are called 0, 1, ...
    json : bool
        Print the outcome as JSON.
    """
    from kernelweave.tables import read_table

    from ..certifying import certify_model
    from ..models import load_model

    loaded = load_model(model)
    table = read_table(data, header=not no_header)
    known = loaded.targets(table, target)
    X = loaded.inputs(table)
    asked: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "max_time": max_time, "proof": proof}
    with config_context(memory_limit=memory_limit):
        found = certify_model(loaded, X, known.values, algorithm=algorithm, **asked)
    if json:
        console.emit_json(found)
    elif found["algorithm"] == "evidence":
        _show_repeated(found, loaded.header.task)
    else:
        _show(found)
    if proof is not None and not json:
        console.out().print(
            f"proof in {proof}; to check it: kernelweave-check {proof}", soft_wrap=True
        )


def _show_repeated(found: dict[str, Any], task: str) -> None:
    from ..scoring import Score

    rows = {
        "score": f"{Score(found['held_out_score'], found['held_out_error'])}, on rows held out",
        "fitted again": f"{Score(found['again_score'], found['again_error'])}, on other folds",
        "gradient": f"of the log evidence along log scales, at most {found['slope']:.1e}",
    }
    screen = console.out()
    console.print_section(screen, "fitted again", rows.items())
    screen.print(_repeatable(found["predictions_differ"], task))


def _repeatable(away: float | None, task: str) -> str:
    """Return what a second fit of the evidence kernel says, and that it proves nothing."""
    nothing = (
        "Nothing is proved of this model: no bound is known for the evidence kernel, so another "
        "kernel may have more evidence. "
    )
    if away is None:
        return f"{nothing}A fit ended before rows were held out, so the two cannot be compared."
    share = f"{100 * away:.2g} %"
    differ = (
        f"get another label in {share} of the cases"
        if task == "classification"
        else f"are predicted differently by {share} of the target's spread"
    )
    return (
        f"{nothing}What can be checked is how well the fit can be repeated: rows that neither fit "
        f"saw {differ}."
    )


def _show(found: dict[str, Any]) -> None:
    rows = {
        "objective of the model": f"{found['objective']:.10g} (at most)",
        "optimum": f"between {found['lower_bound']:.10g} and {found['upper_bound']:.10g}",
        "second solve": f"{found['algorithm']}, {found['n_iter']} iterations, "
        f"{found['seconds']:.2f} s, {found['status']}",
    }
    screen = console.out()
    console.print_section(screen, "certificate", rows.items())
    percent = 100 * max(found["excess"], 1e-5)
    screen.print(f"The model's objective is proved to be within {percent:.2g} % of the best.")
