"""Columns with limits such as <0.5, learned with their sides at every door."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import Batches, EvidenceKernelRegressor

pytestmark = pytest.mark.filterwarnings("ignore::kernelweave.tables.ColumnWarning")


def laboratory(n: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Return a table whose laboratories have limits of their own, a target, and what was cut."""
    state = np.random.RandomState(seed)
    lead, place = np.exp(state.randn(n)), state.randint(0, 3, n)
    limit = np.array([0.2, 0.4, 0.6])[place]
    y = np.log(lead) + 0.2 * state.randn(n)
    cells = [f"<{cut:g}" if x < cut else f"{x:.3g}" for x, cut in zip(lead, limit, strict=True)]
    table = pd.DataFrame({"lead": cells, "place": np.array(["a", "b", "c"])[place]})
    return table, y, np.where(lead < limit, 0.5 * limit, lead)


def test_limits_cost_no_more_than_what_is_not_known() -> None:
    table, y, lead = laboratory(300)
    model = EvidenceKernelRegressor(random_state=0).fit(table[:200], y[:200])
    known = table.assign(lead=lead)
    best = EvidenceKernelRegressor(random_state=0).fit(known[:200], y[:200])
    gap = best.score(known[200:], y[200:]) - model.score(table[200:], y[200:])
    assert gap < 0.01
    assert [each.name for each in model.dimensions_ if each.kind == "side"] == ["lead below"]


@pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.ExtrapolationWarning")
@pytest.mark.usefixtures("by_landmarks")
def test_batches_read_limits_too() -> None:
    table, y, _ = laboratory(600)
    quick = {"precisions": (50.0, 5.0), "max_iter": 15, "n_landmarks": 80, "random_state": 0}
    model = EvidenceKernelRegressor(**quick).fit(Batches(table.assign(y=y), "y", size=200))
    whole = EvidenceKernelRegressor(**quick).fit(table, y)
    assert "landmarks" in str(whole.certificate_)
    assert [each.name for each in model.dimensions_] == [each.name for each in whole.dimensions_]
    new, truth, _ = laboratory(500, seed=1)
    assert model.score(new, truth) == pytest.approx(whole.score(new, truth), abs=0.02)


def test_explanations_show_cells_as_they_are_written() -> None:
    table, y, _ = laboratory(120)
    model = EvidenceKernelRegressor(random_state=0).fit(table, y)
    row = table.index[table.lead.str.startswith("<")][:1]
    assert model.explain(table.loc[row]).data[0, 0] == table.lead[row[0]]


def test_marks_are_worth_what_their_numbers_are(shared: Path) -> None:
    scores = []
    for name in ("censored_lab.csv", "censored_as_number.csv"):
        table = pd.read_csv(shared / "cases" / name)
        model = EvidenceKernelRegressor(random_state=0).fit(
            table.drop(columns="score"), table.score
        )
        scores.append(model.held_out_score_)
    assert scores[0] == pytest.approx(scores[1], abs=0.02)
