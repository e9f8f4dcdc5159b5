"""A rare class: what is said of it where accuracy is that of the other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from kernelweave.workbench.scoring.comparison import Row, verdict
from kernelweave.workbench.scoring.held_out import HeldOut
from kernelweave.workbench.scoring.metrics import ranking_of


def held_out(informed: bool) -> HeldOut:
    """Predict 8 rare rows of 200, two of which are found."""
    rng = np.random.default_rng(0)
    truth = np.repeat(["0", "1"], [192, 8])
    score = rng.uniform(0.0, 0.4, 200) + (0.3 * (truth == "1") if informed else 0.0)
    if informed:
        score[-2:] = 0.9
    return HeldOut(
        np.arange(200), np.arange(200) % 3, truth, np.where(score > 0.75, "1", "0"),
        np.ones(200), "classification", np.column_stack([1.0 - score, score]),
    )  # fmt: skip


def test_a_rare_class_that_is_told_apart_is_not_nothing() -> None:
    dummy = Row("baseline", "baseline", 0.96, 0.01, 0.01, 0.01, 300)
    ranking = ranking_of(held_out(informed=True))
    assert ranking is not None
    said = verdict("kernel", [dummy], "accuracy", ranking)
    assert said.startswith("The kernel is not significantly more accurate than the baseline, but")
    assert "The model finds 2 of the 8 rows of '1', with 0 false positives" in said
    nothing = verdict("kernel", [dummy], "accuracy", ranking_of(held_out(informed=False)))
    assert nothing.startswith(
        "The kernel is not significantly better than always predicting the baseline"
    )


def test_frequent_classes_are_left_to_accuracy() -> None:
    rows = held_out(informed=True)
    half = HeldOut(
        rows.rows[90:], rows.fold[90:], np.repeat(["0", "1"], 55), rows.predicted[90:],
        rows.weight[90:], rows.task, rows.proba[90:],
    )  # fmt: skip
    ranking = ranking_of(half)
    assert ranking is not None
    assert not ranking.is_rare
    first = Row("trees", "trees", 0.7, 0.01, 0.2, 0.01, 300)
    assert "The model finds" not in verdict("kernel", [first], "accuracy", ranking)


def test_without_probabilities_a_rare_class_is_left_open() -> None:
    dummy = Row("baseline", "baseline", 0.96, 0.01, 0.0, 0.01, 300)
    assert "use probabilities" in verdict("kernel", [dummy], "accuracy")


@pytest.mark.parametrize("n_rare", [1, 2, 3, 8])
def test_chance_is_rarely_taken_for_skill(n_rare: int) -> None:
    rng = np.random.default_rng(3)
    truth = np.repeat(["0", "1"], [100, n_rare])
    taken = 0
    for _ in range(300):
        score = rng.random(len(truth))
        proba = np.column_stack([1.0 - score, score])
        found = ranking_of(
            HeldOut(
                np.arange(len(truth)), np.arange(len(truth)) % 3, truth, np.full(len(truth), "0"),
                np.ones(len(truth)), "classification", proba,
            )
        )  # fmt: skip
        assert found is not None
        taken += found.informs
    assert taken <= 0.05 * 300


def test_a_class_without_weight_is_not_ranked() -> None:
    rows = held_out(informed=True)
    weight = (rows.truth == "0").astype(float)
    assert ranking_of(replace(rows, weight=weight)) is None
