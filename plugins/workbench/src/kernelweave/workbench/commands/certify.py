"""``kernelweave certify``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .. import console
from .options import Encoding, Json, MaxTime, MemoryLimit, NoHeader, Sheet


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

    The problem is solved again, by a stronger algorithm if there is one. This gives a lower and an
    upper bound on the optimum, with which the objective of the model is compared. The evidence
    kernel, the default model of `kernelweave fit`, has no such bounds, nor has evidence MKL.

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
        weights, tkl-low-rank for tessellated kernels, otherwise that of the fit.
    tol : float
        Relative gap to reach in the second solve.
    max_iter : int
        Maximum number of iterations. Default: that of the fit.
    max_time : float
        Time limit in seconds; the bounds that are reached by then are valid.
    proof : Path
        File for a proof of the optimum, which `kernelweave-check` verifies without this program.
        Only for the models sparse, ridge, gmkl and tkl.
    """
    from kernelweave.tables import choose_target, read_table, split_by_target

    from ..certifying import certify_model
    from ..models import load_model

    loaded = load_model(model)
    table = read_table(data, header=not no_header, encoding=encoding, sheet=sheet)
    table, _ = split_by_target(table, choose_target(table, target or loaded.header.target))
    target_column = loaded.targets(table, target)
    given: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "max_time": max_time, "proof": proof}
    bounds = certify_model(loaded, table, target_column.values, algorithm=algorithm, **given)
    console.emit_json(bounds) if json else _show(bounds)
    if proof is not None and not json:
        console.out().print(
            f"Proof written to {proof}; to verify it: kernelweave-check {proof}", soft_wrap=True
        )


def _show(bounds: dict[str, Any]) -> None:
    rows = {
        "objective of the model": f"{bounds['objective']:.10g} (at most)",
        "optimum": f"between {bounds['lower_bound']:.10g} and {bounds['upper_bound']:.10g}",
        "second solve": f"{bounds['algorithm']}, {bounds['n_iter']} iterations, "
        f"{bounds['seconds']:.2f} s, {bounds['status']}",
    }
    screen = console.out()
    console.print_section(screen, "Certificate", rows.items())
    percent = 100 * max(bounds["excess"], 1e-5)
    within = f"within {percent:.2g} % of the optimum"
    if bounds["premise"]:
        screen.print(f"The model's objective is {within}, but {bounds['premise']}.")
        return
    screen.print(f"The model's objective is proved to be {within}.")
