"""What is said of a fit, and of the new rows that it will predict, in sentences and lines."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from kernelweave.evidence.new_rows import AS_THEY_RECUR
from kernelweave.evidence.panels import is_of_panel
from kernelweave.evidence.scores import margin_of_error
from kernelweave.kernels_core import Status

from .models import Model
from .scoring.scores import FEWEST_OF_PAIRS, FEWEST_PARTS, Score
from .summaries import FileScore, HeldOutScore, Summary

# a relative gap, in per cent, that proves nothing worth saying
_FAR = 20.0
_MOST_REMARKS = 12  # columns: more would fill the terminal


def as_json(found: Summary) -> dict[str, Any]:
    """Return a summary ready for JSON, with what is said of it; tests are the command's own."""
    named = {name: each for name, each in vars(found).items() if name != "test"}
    held_out = None if found.held_out is None else dict(vars(found.held_out))
    said = {"certificate": closing_sentences(found), "proved": proved_sentence(found)}
    return {**named, "held_out": held_out, **said}


def relearn_sentence(model: Model) -> str:
    """Return what learning the kernel again would gain; empty where nobody knows, or after a fit.

    The estimator says it where rows came or went since its kernel was learned.
    """
    certificate = getattr(model.machine, "certificate_", None)
    found = getattr(certificate, "relearn", None) if model.header.kernel_rows else None
    if found is None:
        return ""
    lead = "is worth it: fit all rows anew" if found.is_worth_it else "is not worth it yet"
    told = f"gain {found.held_out:.3g}" if found.held_out > 0.0 else f"lose {-found.held_out:.3g}"
    return (
        f"Learning the kernel again {lead}. By a test on {found.n_rows} rows, half of which were "
        f"predicted with what the others teach, the log evidence of a target would {told} nats."
    )


def column_remarks(found: Summary) -> dict[str, str]:
    """Return at most twelve remarks on columns, those on ignored columns first.

    Columns with the same remark share a line.
    """
    remarked = [row for row in found.columns if row["sentence"]]
    remarked.sort(key=lambda row: row["done"] == "used")
    alike: dict[str, list[str]] = {}
    for row in remarked:
        alike.setdefault(f"{row['seen']}: {row['sentence']}", []).append(row["name"])
    lines: dict[str, str] = {}
    for remark, names in list(alike.items())[:_MOST_REMARKS]:
        first = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
        lines[first] = remark
    if left := sum(map(len, list(alike.values())[_MOST_REMARKS:])):
        lines["..."] = f"and {left} more, see the report"
    return lines


def bounds_rows(found: Summary) -> dict[str, str]:
    """Return the rows that say how good the learned kernel is for its objective.

    With what bounds are of, where that is not the problem itself.
    """
    tolerance = "" if found.tol is None else f" (asked for {found.tol:g})"
    premise = found.premise
    return {
        "iterations": f"{found.n_iter}",
        "lower bound": f"{found.lower_bound:.8g}",
        "upper bound": f"{found.upper_bound:.8g}",
        "relative gap": f"{found.gap:.2e}{tolerance}",
        "status": found.message,
        **({"premise": premise} if premise else {}),
    }


def closing_sentences(found: Summary) -> str:
    """Return what is known of predictions of new rows, by the best evidence, and what is proved.

    Its ``test``, where it has one, counts more than the rows held out.
    """
    # what an estimate does not prove stands in the certificate, and not at the end of every page
    proved = "" if found.is_estimate else proved_sentence(found)
    return f"{_known(found)} {proved}".strip()


def _known(found: Summary) -> str:
    """Return how well new rows are predicted: by a test file, or by rows held out."""
    scored, tested = found.held_out, found.test
    # of rows that were learned from, a test says nothing of new ones
    if tested is not None and not tested.shares_rows:
        return _test_sentence(found, tested, scored)
    if scored is None:
        return "How well new rows are predicted is not known yet."
    answer = "the mean" if found.task == "regression" else "the most frequent class"
    answer = "chance" if found.measure == "concordance" else answer
    if _is_no_better(found, scored):
        # beside other models the verdict has said it
        rows = found.comparison["rows"]
        compared, baseline = bool(rows), scored.baseline
        for row in rows:
            baseline = row["score"] if row["name"] == "baseline" else baseline
        why = "the columns may not be informative, or there may be too few rows"
        if ranking := scored.rare_ranking:
            return "" if compared else ranking
        word = "not significantly" if scored.score > baseline else "no"
        text = f"{_expected(found, scored)}, {word} better than {answer} ({baseline:z.3f})"
        return f"{text}." if compared else f"{text}: {why}."
    return f"{_expected(found, scored)}{found.warning}."


def shown_kinds(found: Summary) -> list[Mapping[str, Any]]:
    """Return the kinds of new rows that are shown.

    Those that were held out, rows like these, rows of a panel now and later, of known groups and
    new ones, rows as they recur, and those that are surely predicted worse.
    """
    rows = found.new_rows
    usual = [row for row in rows[1:] if _is_asked(row["name"]) or row.get("worse")]
    return [*rows[:1], *usual]


def _is_asked(name: str) -> bool:
    """Return whether a kind of new rows is shown wherever it is told of."""
    return name in ("rows like these", AS_THEY_RECUR.name) or is_of_panel(name)


def not_shown(found: Summary) -> str:
    """Return a sentence on the kinds of new rows that are not shown; empty if there are none."""
    shown = shown_kinds(found)
    names = [row["name"] for row in found.new_rows if row not in shown]
    # files of older versions do not say which kinds are worse
    if not names or not all("worse" in row for row in found.new_rows):
        return ""
    most = 3 if len(names) > 4 else 4
    more = f" and {len(names) - most} more" if len(names) > most else ""
    what = "No other kind" if any(row.get("worse") for row in shown) else "No kind"
    verdict = f"{what} of new rows is expected to be predicted significantly worse"
    return f"{verdict} (checked: {', '.join(names[:most])}{more})."


def other_rows(found: Summary) -> dict[str, tuple[str, str]]:
    """Return the score of each kind of new rows that is shown and of what, where several are."""
    lines: dict[str, tuple[str, str]] = {}
    for row in shown_kinds(found):
        parts = "blocks of time" if row["name"].startswith("later") else "groups"
        if row["name"] == AS_THEY_RECUR.name:
            parts = "different rows"
        elif is_of_panel(row["name"]):
            parts = "groups or blocks of time"
        of = f" of {row['n_groups']} {parts}" if row["n_groups"] < row["n_rows"] else ""
        scored = Score(row["score"], row["error"]).formatted(3)
        # of groups and times that the fit was not told of, whose rows the kernel was learned from
        alike = row["name"] in ("rows like these", AS_THEY_RECUR.name)
        most = "at most " if lines and not alike else ""
        lines[row["name"]] = f"{most}{scored}", f"on {_counted(found, row, first=not lines)}{of}"
    return lines if len(lines) > 1 else {}


def _counted(found: Summary, row: Mapping[str, Any], *, first: bool) -> str:
    """Return how many rows a score is of, and why the ``first`` is of fewer than are held out."""
    n, of = row["n_rows"], found.n_samples
    text = f"{n} rows" if n == of else f"{n} of {of} rows"
    held_out = found.held_out
    if first and held_out is not None and n < held_out.n_rows:
        return f"{text} (equal rows count once)"
    return text


def _test_sentence(found: Summary, tested: FileScore, scored: HeldOutScore | None) -> str:
    where = f"On {tested.rows} rows of {tested.data}"
    text = f"{where}: {found.measure} {_interval(tested)}"
    # of fewer rows, or groups, nobody knows how far their score is from that of others
    fewest = FEWEST_OF_PAIRS if found.measure == "concordance" else FEWEST_PARTS
    if scored is None or tested.n_parts < fewest:
        return f"{text}."
    away = tested.score - scored.score
    errors = [(each.error, each.n_parts) for each in (tested, scored)]
    if abs(away) <= margin_of_error(*errors):
        return f"{text}, in agreement with cross-validation ({scored.score:z.3f})."
    if away > 0.0:
        return f"{text}, better than in cross-validation ({scored.score:z.3f})."
    return (
        f"{text}, worse than in cross-validation ({scored.score:z.3f}): the test rows differ "
        "from the training rows, so expect the lower score for new rows like them."
    )


def _is_no_better(found: Summary, scored: HeldOutScore) -> bool:
    """Whether one answer for every row scores as high on the same rows, as the verdict says too."""
    ahead, error, n_parts = scored.ahead, scored.ahead_error, scored.n_parts
    for row in found.comparison["rows"]:
        if row["name"] == "baseline":
            ahead, error, n_parts = (row[key] for key in ("behind", "behind_error", "n_parts"))
    return not ahead > margin_of_error((error, n_parts))


def _expected(found: Summary, scored: HeldOutScore) -> str:
    """Return the score to expect of new rows, from the held-out score, as a phrase."""
    measure = found.measure
    if found.metric is None:
        measure = measure[:1].upper() + measure[1:]
    kinds = [row["name"] for row in found.new_rows[:1] if row["name"] != "rows like these"]
    on = f"{measure} on similar new rows" + "".join(f" ({kind})" for kind in kinds)
    if scored.score == scored.high:
        is_known = scored.error > 0.0 and math.isfinite(scored.low)
        above = f"above {scored.low:.3f} (" if is_known else "not known ("
        return f"{on}: {above}a perfect score in cross-validation)"
    return f"{on}: about {_interval(scored)}"


def _interval(scored: HeldOutScore | FileScore) -> str:
    return Score(scored.score, scored.error).with_interval(scored.low, scored.high)


def proved_sentence(found: Summary) -> str:
    """Return what is proved of a fit, and what is not."""
    if found.is_estimate:
        kernel = "is a local optimum of the evidence"
        if found.status != Status.STATIONARY.label:
            kernel = f"is what the search had found when it ended ({found.status})"
        return (
            "This is an estimate, not a proof: the predictor is optimal for the chosen kernel, "
            f"but the kernel {kernel}."
        )
    if premise := found.premise:
        return f"This is an estimate, not a proof: {premise}."
    if not found.gap < float("inf"):
        return "This algorithm has no lower bound, so the distance to the optimum is not known."
    lower, upper = f"{found.lower_bound:.8g}", f"{found.upper_bound:.8g}"
    if found.is_rule:
        return (
            f"The weights follow from a rule and were not optimised: their objective is between "
            f"{lower} and {upper}."
        )
    # beyond that, digits say nothing to anybody
    percent = 100.0 * max(found.gap, 1e-5)
    if percent > _FAR:
        return (
            f"The optimum is between {lower} and {upper}: too wide an interval to say how good the "
            f"learned kernel is."
        )
    return (
        f"On the training rows, the objective of the learned kernel ({upper}) is proved to be "
        f"within {percent:.2g} % of the optimum of its family (at least {lower})."
    )
