"""``kernelweave demo``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from .. import console
from ..errors import CommandError
from ..files import check_output, replacing

if TYPE_CHECKING:
    from ..demonstration import Demonstration

DEFAULT_PICTURE = Path("kernelweave-demo.png")
DEFAULT_DATASET = "breast-cancer-mean"
_Flag = Parameter(negative=())


def demo_command(
    *,
    dataset: str = DEFAULT_DATASET,
    out: Path | None = None,
    force: Annotated[bool, _Flag] = False,
    json: Annotated[bool, _Flag] = False,
) -> None:
    """Learn a kernel on a real data set, prove how good it is, and draw both.

    Beside it stands a support vector machine with the usual RBF kernel, tuned on the same split.

    Parameters
    ----------
    dataset : str
        A data set by name with at most 13 features, see `kernelweave list --kind datasets`.
    out : Path
        The picture. Default: kernelweave-demo.png, which a later demo may replace.
    force : bool
        Replace the picture whatever it is.
    json : bool
        Print the outcome as JSON.
    """
    path = DEFAULT_PICTURE if out is None else out
    check_picture(path, force=force, chosen=out is not None)
    from ..demonstration import Demonstration

    demo = Demonstration(dataset)
    picture = demo.picture
    with replacing(path) as stream:
        stream.write(picture)
    if json:
        console.emit_json({**demo.found, "picture": str(path)})
    else:
        _show(demo, path)


def check_picture(path: Path, *, force: bool, chosen: bool) -> None:
    """Refuse to replace a picture, unless nobody chose its name and the demo itself wrote it.

    Parameters
    ----------
    path : Path
        Where the picture goes.
    force : bool
        Replace whatever is there.
    chosen : bool
        Whether the user named the file.

    Raises
    ------
    CommandError
        If something else is there.
    """
    from ..displays import is_demo_picture

    if not chosen and not force and path.is_file():
        if not is_demo_picture(path):
            raise CommandError(
                f"{path} exists and was not written by the demo: add --force to replace it, or "
                f"choose another name with --out"
            )
        force = True
    check_output(path, force=force)


def _show(demo: Demonstration, path: Path) -> None:
    from ..summaries import bounds_rows, certificate_sentence

    found: dict[str, Any] = demo.found
    rival = found["rbf"]
    measure = "accuracy" if found["task"] == "classification" else "R²"
    tuned = ", ".join(f"{name} = {value:g}" for name, value in rival["tuned"].items())
    about = {
        "data": f"{found['data']}: {found['n_samples']} samples, {found['n_features']} features",
        "task": demo.target_sentence(),
        "split": f"{found['n_train']} to learn from, {found['n_test']} held out",
    }
    scores = {
        "learned kernel": f"{_score(found, found['held_out_score'])}; C = {found['C']:g}, best of "
        f"{found['candidates']}, chosen in {found['tuning_seconds']:.1f} s",
        "RBF kernel": f"{_score(found, rival['score'])}; {tuned}, best of {rival['candidates']}, "
        f"chosen in {rival['seconds']:.1f} s",
    }
    screen = console.out()
    console.print_section(screen, "data", about.items())
    console.print_section(screen, f"held-out {measure}", scores.items())
    console.print_section(
        screen, f"the learned kernel ({found['algorithm']})", bounds_rows(found).items()
    )
    screen.print(certificate_sentence(found))
    screen.print(f"\nPicture: {path}")


def _score(found: dict[str, Any], score: float) -> str:
    """Return a score, and for classes how many of the held-out samples it is."""
    if found["task"] == "regression":
        return f"{score:.4f}"
    return f"{score:.4f}, {round(score * found['n_test'])} of {found['n_test']} right"
