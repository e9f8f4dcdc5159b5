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
    from ..summaries import HeldOutScore

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


def tell(
    model: Model,
    before: Model | None,
    more: Mapping[str, Any],
    rows: Mapping[str, str],
    *,
    json: bool,
) -> None:
    """Print what a command did and what is now expected of new rows.

    `before`: the model with its old header; `more`: what the command adds to the summary in JSON;
    `rows`: its own lines on a screen.
    """
    from ..sentences import as_json, closing_sentences, not_shown, other_rows, relearn_sentence
    from ..summaries import summary

    found, relearn = summary(model), relearn_sentence(model)
    scored, was = found.held_out, None if before is None else summary(before).held_out
    if json:
        score = None if was is None else {"score": was.score, "error": was.error}
        told = {"score_before": score, "relearn": relearn, **more}
        console.emit_json({**as_json(found), **told})
        return
    screen, lines = console.out(), dict(rows)
    if scored is not None:
        lines[found.measure] = f"{_text(scored)} on {scored.rows}"
        lines[found.measure] += "" if was is None else f" (before: {_text(was)})"
    lines["kernel"] = f"of {found.kernel_rows} rows of {found.data}"
    lines["seconds"] = f"{more['seconds']:.2f}"
    lines["saved to"] = more["file"] or "nothing (use --out FILE)"
    console.print_section(screen, f"{found.task} of {found.target}", lines.items())
    if parts := other_rows(found):
        title = f"Expected {found.measure} by kind of new rows"
        texts = {name: ", ".join(each) for name, each in parts.items()}
        console.print_section(screen, title, texts.items())
    for sentence in filter(None, (not_shown(found), relearn)):
        screen.print(f"{sentence}\n", markup=False)
    screen.print(closing_sentences(found))


def _text(scored: HeldOutScore) -> str:
    from ..scoring.scores import Score

    return Score(scored.score, scored.error).formatted(3)
