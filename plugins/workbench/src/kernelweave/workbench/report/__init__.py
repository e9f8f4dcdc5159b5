"""The page: how well the model predicts, what it learned from what, and what is proved."""

from __future__ import annotations

from pathlib import Path

from .. import __version__
from ..models import Model
from ..pages import render
from ..score_table import away
from ..scoring.scores import CONCORDANCE, Score
from ..sentences import (
    bounds_rows,
    closing_sentences,
    not_shown,
    other_rows,
    proved_sentence,
    relearn_sentence,
)
from ..summaries import Summary, summary
from .evaluation import HeldOutEvaluation, learned_from, of_held_out, worst_rows
from .groups import groups_chapter
from .monotone import monotone_chapter
from .pictures import (
    column_pictures,
    kernel_pictures,
    new_rows_picture,
    prediction_pictures,
    weight_pictures,
)
from .survival import survival_chapters, survival_facts


def report_page(model: Model, tested: HeldOutEvaluation | None, *, path: Path) -> str:
    """Return the HTML page of a fitted model, which needs no other file.

    `tested`: scores on a table with known targets. If the model was fitted on these rows, the page
    shows its cross-validated predictions of them instead; `path`: the model's file, for the lines
    that say how to load it.
    """
    about, header = summary(model), model.header
    same = tested is not None and learned_from(model, tested)
    return render(
        "report.html",
        title=f"{about.target}, from {about.n_features} column"
        + ("s" if about.n_features != 1 else ""),
        version=__version__,
        about=about,
        source=Path(about.data).name,
        facts=_facts(about, tested, same),
        models=_models(about),
        notes=header.notes,
        new_rows=new_rows_picture(about),
        other_rows=not_shown(about),
        chapters=_chapters(model, tested, same),
        survival=survival_chapters(model, about, None if same else tested),
        monotone=monotone_chapter(model),
        groups=groups_chapter(model),
        column_pictures=column_pictures(model, about.measure),
        weight_pictures=weight_pictures(model, about.kernels),
        kernel_pictures=kernel_pictures(model),
        same=tested.rows if same and tested is not None else None,
        proof=closing_sentences(about),
        relearn=relearn_sentence(model),
        details=_details(about, model),
        settings=sorted((name, repr(value)) for name, value in about.settings.items()),
        columns=list(header.columns),
        versions=sorted(header.versions.items()),
        model_name=path.name,
        concordance=CONCORDANCE,
    )


def _chapters(
    model: Model, tested: HeldOutEvaluation | None, same: bool
) -> list[dict[str, object]]:
    """Return scores and pictures of the held-out rows, and of other rows where they are given."""
    parts = []
    held_out = model.held_out
    if held_out is not None:
        title = "Cross-validation"
        has_sets = hasattr(model.estimator, "predict_set")
        parts.append((title, of_held_out(held_out, has_sets=has_sets)))
    if tested is not None and not same:
        parts.append((f"Test scores on {tested.rows}", tested))
    return [
        {
            "title": title,
            "rows": each.rows,
            "scores": list(each.scores().items()),
            "coverage": each.coverage,
            "by_class": each.by_class,
            "pictures": prediction_pictures(each),
            "worst": worst_rows(model, each),
        }
        for title, each in parts
    ]


def _models(about: Summary) -> list[dict[str, object]]:
    """Return the model and those compared with it, the best first; empty without a score."""
    if about.held_out is None:
        return []
    name = about.comparison["ours"] or about.estimator
    ours = {**vars(about.held_out), "title": name, "away": "", "ours": True}
    others = [{**row, "ours": False, "away": away(row)} for row in about.comparison["rows"]]
    rows = sorted([ours, *others], key=lambda row: -row["score"])
    least = min(0.0, rows[-1]["score"])
    span = (rows[0]["score"] - least) or 1.0
    return [
        {
            **row,
            "score": Score(row["score"], row["error"]).formatted(3),
            "share": 100.0 * (row["score"] - least) / span,
        }
        for row in rows
    ]


def _facts(about: Summary, tested: HeldOutEvaluation | None, same: bool) -> list[tuple[str, str]]:
    """Return what a reader looks for first, as (label, value)."""
    facts = []
    if about.held_out is not None:
        scored = Score(about.held_out.score, about.held_out.error)
        kind = next((row["name"] for row in about.new_rows), "cross-validated")
        chance = "; 0.5 by chance" if about.measure == "concordance" else ""
        facts.append((f"{about.measure}, {kind}{chance}", scored.formatted(3)))
        others = list(other_rows(about).items())[1:]
        facts += [(f"{about.measure}, {name}, {on}", score) for name, (score, on) in others]
        facts += survival_facts(about)
    if tested is not None and not same:
        facts.append((f"{about.measure} on {tested.rows}", tested.held_out.score.formatted(3)))
    left = sum(row["done"] != "used" for row in about.columns)
    used = about.n_features - left
    facts.append(("columns used" if not left else f"columns used, {left} left out", f"{used}"))
    facts.append(("training rows", f"{about.n_samples}"))
    if about.kernel_rows:
        facts.append(("rows that the kernel was learned from", f"{about.kernel_rows}"))
    if about.gap < float("inf") and not about.is_rule and not about.premise:
        facts.append(("proved relative gap", f"{about.gap:.1e}"))
    return facts


def _details(about: Summary, model: Model) -> list[tuple[str, str]]:
    """Return the mathematics, for those who unfold it."""
    support = getattr(model.machine, "support_", None)
    rows = []
    if support is not None:
        rows.append(("support vectors", f"{len(support)} of {about.n_samples}"))
    if not about.is_estimate:
        return [*bounds_rows(about).items(), *rows]
    certificate = model.machine.certificate_
    return [
        ("evaluations of the evidence", f"{about.n_iter}"),
        (
            "λ of the prior along the path",
            ", ".join(f"{each:g}" for each in certificate.precisions),
        ),
        ("weights of the path", ", ".join(f"{each:.3f}" for each in certificate.weights)),
        ("log evidence reached", ", ".join(f"{each:.6g}" for each in certificate.evidence)),
        ("how the search for each ended", ", ".join(certificate.ends)),
        ("largest entry of its gradient", ", ".join(f"{each:.1e}" for each in certificate.slopes)),
        ("training rows", certificate.work),
        *rows,
        ("status", about.message),
        ("what is proved", proved_sentence(about)),
    ]
