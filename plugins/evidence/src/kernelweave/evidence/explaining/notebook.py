"""What a notebook shows of a fit, below scikit-learn's diagram."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..tasks import score_name

if TYPE_CHECKING:
    from ..base import EvidenceModel

# columns, and kinds of new rows, that are shown at most
_COLUMNS, _KINDS = 5, 10


def fit_html(model: EvidenceModel) -> str:
    """Return the cross-validated scores and the strongest columns of a fit as HTML.

    Nothing is predicted for it. What cannot be shown is a note: a display raises no error.
    """
    try:
        parts = [*_scores(model), *_columns(model)]
    except Exception as error:  # noqa: BLE001 (an older or altered model may lack anything)
        note = f"The scores cannot be shown: {type(error).__name__}: {error}"
        parts = [f"<p>{escape(note)}</p>"]
    return f'<div class="kernelweave-fit">{"".join(parts)}</div>'


def _scores(model: EvidenceModel) -> list[str]:
    """Return the score of rows held out, and a table where other kinds of new rows have one."""
    name, lines = score_name(model._task), model.held_out_
    if not lines["n_rows"].iloc[0]:
        return [f"<p>No cross-validated {escape(name)}: no fold was finished.</p>"]
    texts = [f"{score:z.4g} ± {error:.2g}" for score, error in lines[["score", "error"]].to_numpy()]
    where = escape(f"{name}: {texts[0]} on {lines.index[0]}")
    shown = [f"<p>Cross-validated {where}</p>", *_measures(lines)]
    lines = lines[["score", "error", "n_rows", "n_groups"]]
    if len(lines) == 1:
        return shown
    table = lines.drop(columns="error").assign(score=texts).rename(columns={"score": name})
    shown.append(table.rename_axis(None).iloc[:_KINDS].to_html(border=0))
    more = f" held_out_ has {len(lines) - _KINDS} more." if len(lines) > _KINDS else ""
    note = "The lines below the first use what all rows chose, so that they are upper estimates."
    return [*shown, f"<p>{note}{more}</p>"]


def _measures(lines: pd.DataFrame) -> list[str]:
    """Return how right predicted distributions of targets known by half were."""
    told = []
    if "brier" in lines and np.isfinite(lines["brier"].iloc[0]):
        brier, one_curve = lines[["brier", "brier_one_curve"]].iloc[0]
        told.append(
            f"Integrated Brier score {brier:.3g} ({one_curve:.3g} by one Kaplan-Meier curve)"
        )
    if "brier" in lines and np.isfinite(lines["calibration_p"].iloc[0]):
        told.append(f"Calibration test: p = {lines['calibration_p'].iloc[0]:.2g}")
    return [f"<p>{each}</p>" for each in told]


def _columns(model: EvidenceModel) -> list[str]:
    """Return the columns of most importance, or of most relevance while that is not known."""
    if model._importance is not None:
        names = [each.column for each in model.columns_]
        table = pd.DataFrame(model._importance, names, ["importance", "error"])
        usual = model._task.usual_score
        caption = f"Strongest columns: drop in {usual} when a column is shuffled (importance_)."
    else:
        sources = [each.source for each in model.dimensions_]
        table = pd.DataFrame({"relevance": model.relevance_}, sources).groupby(level=0).max()
        caption = (
            "Columns with the largest inverse length scales (relevance_). These are small for "
            "linear effects, however strong. Once importance_ has been read, the strongest columns "
            "are shown here instead."
        )
    most = table[table.iloc[:, 0] > 0].nlargest(_COLUMNS, table.columns[0])
    return [f"<p>{caption}</p>", most.map("{:.3g}".format).to_html(border=0)] if len(most) else []
