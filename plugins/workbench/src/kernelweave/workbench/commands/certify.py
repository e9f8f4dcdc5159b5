"""``kernelweave certify``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kernelweave.kernels_core import config_context

from .. import console
from .options import Encoding, Json, MaxTime, MemoryLimit, NoHeader, Sheet

# log evidences that differ by less are printed alike, or nearly
_SAME_EVIDENCE = 1e-3


def certify_command(
    model: Path,
    data: str,
    /,
    *,
    target: str | None = None,
    algorithm: str | None = None,
    tol: float = 1e-6,
    max_iter: int | None = None,
    max_time: MaxTime = None,
    memory_limit: MemoryLimit = None,
    proof: Path | None = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    no_header: NoHeader = False,
    json: Json = False,
) -> None:
    """Check how far a saved model is from the optimum for its data.

    The same problem is solved again, by a stronger algorithm where there is one, which bounds the
    optimum from both sides; the model's objective is compared with these bounds. For the evidence
    kernel, the default model, no bounds are known: it is fitted again on other folds, and the
    change of its cross-validated predictions is reported. Evidence MKL is learned again by its
    other algorithm.

    Parameters
    ----------
    model : Path
        A file that `kernelweave fit --out` wrote.
    data : str
        The table it was fitted on, as for `kernelweave fit`.
    target : str
        Column of the targets. Default: the one the model was fitted to.
    algorithm : str
        Algorithm of the second solve, see `kernelweave list`. Default: smkl-global for sparse
        weights, tkl-low-rank for tessellated kernels, otherwise that of the model.
    tol : float
        Relative gap to reach in the second solve.
    max_iter : int
        Maximum number of iterations. Default: as many as the fit had.
    max_time : float
        Time limit in seconds; the bounds reached by then are valid too.
    proof : Path
        File for a proof of the optimum, which `kernelweave-check` verifies without this program:
        of sparse weights, of weights of ridge regression and of tessellated kernels.
    """
    from kernelweave.tables import choose_target, read_table, split_by_target

    from ..certifying import certify_model
    from ..models import load_model

    loaded = load_model(model)
    table = read_table(data, header=not no_header, encoding=encoding, sheet=sheet)
    table, _ = split_by_target(table, choose_target(table, target or loaded.header.target))
    known = loaded.targets(table, target)
    asked: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "max_time": max_time, "proof": proof}
    with config_context(memory_limit=memory_limit):
        found = certify_model(loaded, table, known.values, algorithm=algorithm, **asked)
    if json:
        console.emit_json(found)
    elif found["algorithm"] == "evidence":
        _show_repeated(found, loaded.header.task)
    elif "log_evidence" in found:
        _show_other_way(found)
    else:
        _show(found)
    if proof is not None and not json:
        console.out().print(
            f"Proof written to {proof}; to verify it: kernelweave-check {proof}", soft_wrap=True
        )


def _show_repeated(found: dict[str, Any], task: str) -> None:
    from ..scoring.scores import Score

    folds = "on the same later rows, with another seed" if found["later"] else "on other folds"
    rows = {
        "score": f"{Score(found['held_out_score'], found['held_out_error'])}, cross-validated",
        "second fit": f"{Score(found['again_score'], found['again_error'])}, {folds}",
        "gradient": f"at most {found['slope']:.1e}, of the log evidence in the log scales",
    }
    screen = console.out()
    console.print_section(screen, "Second fit", rows.items())
    screen.print(_repeatable(found["predictions_differ"], task))


def _show_other_way(found: dict[str, Any]) -> None:
    rows = {
        "log evidence": f"{found['log_evidence']:.10g}",
        "second fit": f"{found['again_log_evidence']:.10g}, by {found['algorithm']}",
        "relative gap": f"{found['gap']:.1e}",
    }
    screen = console.out()
    console.print_section(screen, "Second fit", rows.items())
    more = ""
    if found["again_log_evidence"] - found["log_evidence"] > _SAME_EVIDENCE:
        more = "The weights of the second fit have more evidence than those of the model. "
    screen.print(f"{more}Other weights may have more evidence: {found['premise']}.")


def _repeatable(away: float | None, task: str) -> str:
    """Return what a second fit of the evidence kernel says, and that it proves nothing."""
    nothing = (
        "Nothing is proved for this model: no bound is known for the evidence kernel, so another "
        "kernel may have more evidence. "
    )
    if away is None:
        return f"{nothing}A fit stopped before its first fold, so the two cannot be compared."
    share = f"{100 * away:.2g} %"
    differ = (
        f"{share} of the predicted labels differ"
        if task == "classification"
        else f"predictions differ by {share} of the target's standard deviation"
    )
    return (
        f"{nothing}What can be checked is how repeatable the fit is: on rows that neither fit saw, "
        f"{differ}."
    )


def _show(found: dict[str, Any]) -> None:
    rows = {
        "objective of the model": f"{found['objective']:.10g} (at most)",
        "optimum": f"between {found['lower_bound']:.10g} and {found['upper_bound']:.10g}",
        "second solve": f"{found['algorithm']}, {found['n_iter']} iterations, "
        f"{found['seconds']:.2f} s, {found['status']}",
    }
    screen = console.out()
    console.print_section(screen, "Certificate", rows.items())
    percent = 100 * max(found["excess"], 1e-5)
    within = f"within {percent:.2g} % of the optimum"
    if found["premise"]:
        screen.print(f"The model's objective is {within}, but {found['premise']}.")
        return
    screen.print(f"The model's objective is proved to be {within}.")
