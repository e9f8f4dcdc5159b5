"""Several groups from a command to the picture of what each adds."""

from __future__ import annotations

import base64
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kernelweave.tables import read_table, read_target
from kernelweave.workbench import load_model
from kernelweave.workbench.choices import Choices
from kernelweave.workbench.errors import CommandError
from kernelweave.workbench.fitting import fit_table
from kernelweave.workbench.models import save_model
from kernelweave.workbench.report.groups import groups_chapter, shown_places
from kernelweave.workbench.roles import groups_held_out


def wards() -> pd.DataFrame:
    """Patients of 45 nurses and five wards."""
    state = np.random.RandomState(0)
    n = 90
    nurse, ward = np.arange(n) % 45, state.randint(0, 5, n)
    y = 3.0 * (nurse == 7) + state.randn(5)[ward] + 0.1 * state.randn(n)
    X = pd.DataFrame({"age": state.randn(n), "nurse": [f"n{k}" for k in nurse]})
    return X.assign(ward=[f"w{k}" for k in ward], stay=y)


def test_commas_are_between_names_of_groups() -> None:
    table = read_table(wards().rename(columns={"age": "age, years"}))
    columns = ["age, years", "nurse", "ward"]
    assert groups_held_out(table, columns, "svm", "nurse", None, None) == ("nurse", {})
    held, beside = groups_held_out(table, columns, "evidence", "nurse, ward", "age, years", "ward")
    assert held == "ward"
    assert beside == {"groups": ["nurse", "ward"], "slopes": ["age, years"], "new": "ward"}
    for given, words in (
        (("evidence", None, "age, years", None), "--slopes needs --groups COLUMN"),
        (("evidence", "nurse,wart", None, None), "has no feature 'wart'; did you mean 'ward'"),
        (("evidence", "nurse", None, "ward"), "--new must be one of --groups, nurse"),
        (("svm", "nurse,ward", None, None), "--model svm has no effects of groups"),
    ):
        with pytest.raises(CommandError, match=words):
            groups_held_out(table, columns, *given)


@pytest.mark.filterwarnings("ignore")
def test_the_report_draws_groups_at_the_ends(tmp_path: Path) -> None:
    table = read_table(wards())
    settings = {"max_iter": 5, "precisions": (5.0,), "n_folds": 2, "warp": False}
    choices = Choices("evidence", settings, groups="nurse,ward")
    model = fit_table(table, read_target(table, "stay"), choices).model
    save_model(model, tmp_path / "m.skops")
    again = load_model(tmp_path / "m.skops")
    effects = again.machine.group_effects_
    pd.testing.assert_frame_equal(effects, model.machine.group_effects_)
    nurses = effects[effects.grouping == "nurse"]
    assert nurses.group[nurses.effect.idxmax()] == "n7"
    chapter = groups_chapter(again)
    assert chapter is not None
    first, second = chapter["pictures"]
    assert "45 groups of 2 to 2 rows, of which the 12 at either end" in first["description"]
    drawn = base64.b64decode(first["address"].partition(",")[2]).decode()
    assert drawn.startswith("<")
    assert "n7" in drawn
    assert second["description"].startswith("5 groups of")
    assert model.header.asked["groups"] == "nurse"


def test_ends_and_a_middle_are_shown() -> None:
    places = shown_places(400)
    assert len(set(places)) == 40
    assert places == sorted(places)
    assert places[:12] == list(range(12))
    assert places[-12:] == list(range(388, 400))
