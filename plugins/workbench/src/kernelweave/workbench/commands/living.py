"""What commands on models that live have in common: where they write, and what they print."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import console
from ..errors import CommandError
from ..files import check_output

if TYPE_CHECKING:
    from ..models import Model

# of a file, while a command works
_Stamp = tuple[int, int, int]


def goal_of(model: Path, out: Path | None, *read: str | None, force: bool) -> Path:
    """Return where the changed model is written: the file of the model itself without ``out``.

    `read`: what else is read. Raises CommandError if it cannot be written, is one of the files that
    are read, or is read-only.
    """
    goal = model if out is None else out
    own = out is None or (model.exists() and goal.exists() and goal.samefile(model))
    check_output(goal, *read, force=force or own)
    if goal.exists() and not goal.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
        raise CommandError(f"cannot write {goal}: it is read-only; use --out FILE to keep it")
    return goal


def stamp_of(path: Path) -> _Stamp | None:
    """Return what tells whether a file is still the one that was read; ``None`` without it."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def save_changed(model: Model, goal: Path, source: Path, before: _Stamp | None) -> None:
    """Write a changed model whole, or leave what is there.

    `source`: the file that it was read from, which looked like ``before`` then. Raises CommandError
    if another command has changed that file meanwhile, whose rows would be lost.
    """
    from ..models import save_model

    if goal == source and stamp_of(source) != before:
        raise CommandError(
            f"{source} was changed by another command meanwhile, and is left as that wrote it: "
            "run this one again"
        )
    save_model(model, goal, force=True)


def facts_of(model: Model, before: Model | None, more: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is printed of a changed model, ready for JSON; `before`: with its old header."""
    from ..summaries import relearn_sentence, summary

    facts = summary(model)
    was = None if before is None else _score(summary(before)["held_out"])
    return {**facts, "score_before": was, "relearn": relearn_sentence(model), **more}


def _score(held_out: Mapping[str, Any] | None) -> dict[str, float] | None:
    return None if held_out is None else {name: held_out[name] for name in ("score", "error")}


def show(facts: Mapping[str, Any], rows: Mapping[str, str]) -> None:
    """Print what a command did and what is now expected of new rows; `rows`: its own lines."""
    from ..scoring.scores import Score
    from ..summaries import not_shown, other_rows

    screen, lines = console.out(), dict(rows)
    scored, was = facts["held_out"], facts["score_before"]
    if scored is not None:
        now = Score(scored["score"], scored["error"]).formatted(3)
        text = f"{now} on {scored['rows']}"
        if was is not None:
            text += f" (before: {Score(was['score'], was['error']).formatted(3)})"
        lines[facts["measure"]] = text
    lines["kernel"] = f"of {facts['kernel_rows']} rows of {facts['data']}"
    lines["seconds"] = f"{facts['seconds']:.2f}"
    lines["saved to"] = facts["file"] or "nothing (use --out FILE)"
    console.print_section(screen, f"{facts['task']} of {facts['target']}", lines.items())
    if parts := other_rows(facts):
        title = f"Expected {facts['measure']} by kind of new rows"
        texts = {name: ", ".join(each) for name, each in parts.items()}
        console.print_section(screen, title, texts.items())
    if sentence := not_shown(facts):
        screen.print(f"{sentence}\n", markup=False)
    if facts["relearn"]:
        screen.print(f"{facts['relearn']}\n", markup=False)
    screen.print(facts["certificate"])
