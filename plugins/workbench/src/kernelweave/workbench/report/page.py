"""The page: facts first, then the proof, the pictures, the settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .. import __version__
from ..models import Model
from ..pages import render
from ..summaries import certificate_sentence, summary
from .evaluation import Evaluation
from .pictures import all_pictures


def report_page(model: Model, found: Evaluation | None, *, path: Path) -> str:
    """Return the HTML page of a fitted model.

    Parameters
    ----------
    model : Model
    found : Evaluation or None
        On data with known targets; without it the page has no scores and no heat map.
    path : Path
        The model's file, for the lines that say how to load it.

    Returns
    -------
    str
        HTML that needs nothing beside it.
    """
    about, header = summary(model), model.header
    classes = header.classes if found is not None else None
    return render(
        "report.html",
        title=f"{about['estimator']} on {about['data']}",
        version=__version__,
        about=about,
        facts=_facts(about, model, found),
        proof=certificate_sentence(about),
        scores=[] if found is None else list(found.scores(header.task).items()),
        evaluated=None if found is None else f"{found.source}: {len(found.y)} samples",
        classes=None if classes is None else list(map(str, classes)),
        confusion=None if classes is None or found is None else found.confusion(classes),
        pictures=all_pictures(model, found),
        settings=sorted((name, repr(value)) for name, value in _settings(model).items()),
        columns=list(header.columns),
        versions=sorted(header.versions.items()),
        model_name=path.name,
    )


def _settings(model: Model) -> dict[str, Any]:
    return dict(model.machine.get_params(deep=False))


def _facts(about: dict[str, Any], model: Model, found: Evaluation | None) -> list[tuple[str, str]]:
    """Return what a reader looks for first, as (label, value)."""
    facts = []
    if found is not None:
        name, value = next(iter(found.scores(about["task"]).items()))
        facts.append((f"{name} on {found.source}", f"{value:.4f}"))
    gap = about["gap"]
    facts.append(("proved relative gap", f"{gap:.1e}" if gap < float("inf") else "none"))
    facts.append(("iterations", str(about["n_iter"])))
    support = getattr(model.machine, "support_", None)
    if support is not None:
        facts.append(("support vectors", f"{len(support)} of {about['n_samples']}"))
    return facts
