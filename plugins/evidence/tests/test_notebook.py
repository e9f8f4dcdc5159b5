"""What a notebook shows of an estimator."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import EvidenceKernelClassifier, EvidenceKernelRegressor, HeldOutWarning
from kernelweave.evidence.explaining import mixin
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_html_repr

QUICK = {"precisions": (5.0,), "max_iter": 20}
NAME = "<script>alert('a & b')</script>"


class Reader(HTMLParser):
    """Texts of an HTML fragment, whose tags must close in their order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: object) -> None:
        assert tag in {"div", "p", "table", "thead", "tbody", "tr", "th", "td"}
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts += [data.strip()] if data.strip() else []


def added(model) -> list[str]:
    """Return what stands below scikit-learn's diagram, the same at both doors of IPython."""
    both = model._repr_html_(), model._repr_mimebundle_()["text/html"]
    parts = [re.split(r"(?=<div class=\"kernelweave-fit)", html) for html in both]
    assert [len(each) for each in parts] == [2, 2]
    assert parts[0][1] == parts[1][1]
    assert parts[0][0].count(NAME) == 0
    return Reader(parts[0][1]).texts


@pytest.fixture(scope="module")
def fitted():
    state = np.random.default_rng(0)
    groups = np.repeat(np.arange(12), 4)
    X = pd.DataFrame({"a": state.normal(size=48), "b": state.normal(size=48)})
    X[NAME] = [f"g{k}" for k in groups]
    y = X["a"] ** 2 + state.normal(size=12)[groups] + 0.1 * state.normal(size=48)
    with pytest.warns(HeldOutWarning):
        return EvidenceKernelRegressor(kinds={NAME: "category"}, **QUICK).fit(X, y)


@pytest.fixture
def model(fitted):
    return copy.copy(fitted)


def test_before_a_fit_it_is_that_of_scikit_learn() -> None:
    model = EvidenceKernelRegressor(**QUICK)
    shown = model._repr_html_(), model._repr_mimebundle_()["text/html"], estimator_html_repr(model)
    assert len({re.sub(r"sk-(container|estimator)-id-\d+", "", html) for html in shown}) == 1


def test_a_fit_shows_its_scores_and_columns(model) -> None:
    texts, lines = added(model), model.held_out_
    assert f"new {NAME}" in lines.index
    told = [f"{score:.4g} ± {error:.2g}" for score, error in lines[["score", "error"]].to_numpy()]
    assert texts[0] == f"Cross-validated R²: {told[0]} on rows like these"
    for kind, own in zip(lines.index, told, strict=True):
        assert texts[texts.index(kind, 1) + 1] == own
    place = texts.index("relevance")
    assert texts[place - 1].startswith("Columns with the largest inverse length scales")
    found = dict(zip(texts[place + 1 :: 2], texts[place + 2 :: 2], strict=True))
    sources = np.array([each.source for each in model.dimensions_])
    most = {name: max(model.relevance_[sources == name]) for name in sources}
    assert found == {name: f"{value:.3g}" for name, value in most.items() if value > 0.0}


def test_a_display_computes_no_importance_but_shows_what_is_known(model, monkeypatch) -> None:
    known = copy.copy(model)
    worth = sorted(known.importance_, key=lambda each: -each.importance)

    def refuse(*args: object) -> None:
        raise AssertionError

    monkeypatch.setattr(mixin, "shuffled_importance", refuse)
    assert "relevance" in added(model)
    # of an estimator inside another scikit-learn shows the attributes too
    make_pipeline(model)._repr_html_()
    texts = added(known)
    place = texts.index("importance")
    assert texts[place - 1].startswith("Strongest columns: drop in R² when")
    best = worth[0]
    cells = [best.column, f"{best.importance:.3g}", f"{best.error:.3g}"]
    assert texts[place + 2 : place + 5] == cells


def test_classes_have_an_accuracy_or_the_score_asked_for() -> None:
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.repeat([0, 1], 20)
    model = EvidenceKernelClassifier(scoring="roc_auc", **QUICK).fit(X + 2.0 * y[:, None], y)
    # what the fit was judged by, not what the next will be
    assert added(model.set_params(scoring=None))[0].startswith("Cross-validated roc_auc: ")
    model.fit(X + 2.0 * y[:, None], y)
    _ = model.importance_
    texts = added(model)
    assert texts[0].startswith("Cross-validated accuracy: ")
    assert any(text.startswith("Strongest columns: drop in accuracy") for text in texts)


def test_a_refit_forgets_the_importances_of_the_fit_before(model) -> None:
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["a", "c"])
    assert [each.column for each in model.importance_] == ["a", "b", NAME]
    model.set_params(kinds=None).fit(X, X["c"])
    assert "relevance" in added(model)
    assert [each.column for each in model.importance_] == ["a", "c"]


def test_no_fold_has_no_score() -> None:
    X = np.random.default_rng(0).normal(size=(40, 2))
    with pytest.warns(ConvergenceWarning):
        model = EvidenceKernelRegressor(max_time=1e-9).fit(X, X[:, 0])
    assert added(model)[0] == "No cross-validated R²: no fold was finished."
    assert np.isnan(model.importance_[0].importance)
    assert "importance" not in added(model)


def test_what_cannot_be_shown_is_a_note(model, monkeypatch) -> None:
    def fail(self: object) -> None:
        raise KeyError(NAME)

    monkeypatch.setattr(type(model), "held_out_", property(fail))
    assert added(model) == [f"The scores cannot be shown: KeyError: {KeyError(NAME)!s}"]


def test_a_display_of_text_has_no_html(model) -> None:
    with config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert set(model._repr_mimebundle_()) == {"text/plain"}


def test_a_display_loads_nothing_to_draw_or_compile(fitted, tmp_path: Path) -> None:
    (tmp_path / "model").write_bytes(pickle.dumps(fitted))
    code = (
        "import pickle, sys; from pathlib import Path\n"
        "model = pickle.loads(Path(sys.argv[1]).read_bytes()); before = set(sys.modules)\n"
        "assert 'kernelweave-fit' in model._repr_html_()\n"
        "assert 'matplotlib' not in sys.modules\n"
        "print(sorted(name for name in set(sys.modules) - before if name.startswith('numba')))"
    )
    run = [sys.executable, "-c", code, str(tmp_path / "model")]
    assert subprocess.run(run, check=True, capture_output=True, text=True).stdout == "[]\n"
