"""``kernelweave demo``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import console
from ..files import check_output, replacing
from .options import Force, Json

if TYPE_CHECKING:
    from ..demonstration import Demonstration

DEFAULT_PICTURE = Path("kernelweave-demo.png")
DEFAULT_DATASET = "airfoil"


def demo_command(
    *,
    dataset: str = DEFAULT_DATASET,
    out: Path = DEFAULT_PICTURE,
    force: Force = False,
    json: Json = False,
) -> None:
    """Fit models to a real data set, compare them on test rows, and prove how good two kernels are.

    The evidence kernel is beside an RBF SVM and boosted trees. A tessellated kernel and a choice of
    three kernels end with a proof of how far they can be from the best of their family. The figure
    shows the scores, the effects of the most important columns, predictions with their intervals,
    and the bounds of the proof as they close.

    Parameters
    ----------
    dataset : str
        Name of a data set with at most 13 features and 2500 rows, see
        `kernelweave list --kind datasets`.
    out : Path
        PNG file to write. A figure that the demo wrote under the default name is overwritten.
    """
    from ..demonstration import Demonstration, demo_picture, is_demo_picture

    check_output(out, force=force or (out == DEFAULT_PICTURE and is_demo_picture(out)))
    demo = Demonstration(dataset)
    picture = demo_picture(demo)
    with replacing(out) as stream:
        stream.write(picture)
    console.emit_json({**demo.figures, "picture": str(out)}) if json else _show(demo, out)


def _show(demo: Demonstration, path: Path) -> None:
    from ..scoring.scores import Score

    figures: dict[str, Any] = demo.figures
    measure = "accuracy" if demo.classes else "R²"
    about = {
        "data": f"{figures['data']}: {figures['n_samples']} rows, {figures['n_features']} columns",
        "task": demo.target_sentence,
        "split": f"{figures['n_train']} training rows, {figures['n_test']} test rows",
    }
    scores = {
        label: f"{Score(each['score'], each['error'])}, "
        f"in {each['seconds']:.1f} s ({each['cpu_seconds']:.1f} CPU s)"
        for label, each in figures["scores"].items()
    }
    proved = {
        label: f"{Score(each['score'], each['error'])}, in {each['cpu_seconds']:.1f} CPU s, "
        f"proved gap {100 * each['gap']:.2g} %"
        for label, each in figures["proved"].items()
    }
    screen = console.out()
    console.print_section(screen, "Data", about.items())
    console.print_section(screen, f"Test {measure}", scores.items())
    console.print_section(screen, "Evidence kernel", _model_lines(figures).items())
    console.print_section(screen, f"Kernels with a proof, test {measure}", proved.items())
    screen.print(f"Figure: {path}")


def _model_lines(figures: dict[str, Any]) -> dict[str, str]:
    """Return the lines on the learned model."""
    from ..scoring.scores import Coverage, Score, measure_name

    strongest, measure = list(figures["importance"])[:3], measure_name(figures["task"])
    lines = {
        f"{measure}": f"{Score(figures['held_out_score'], figures['held_out_error'])}, "
        "cross-validated on the training rows",
        "top columns": ", ".join(strongest),
    }
    held = Coverage(**figures["coverage"])
    sets = "intervals" if figures["task"] == "regression" else "sets of classes"
    lines["coverage"] = f"{held.share:.1%} of the test rows are in their 90 % {sets}"
    return lines | ({"lowest": held.lowest} if held.lowest else {})
