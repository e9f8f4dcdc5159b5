"""The page of combinations: each is served or explained, never both, and every need is in words."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest
from kernelweave.kernels_core import algorithms
from kernelweave.kernels_core.formula.problem import NEED_MEANINGS, ROLES
from workspace import ROOT


@pytest.fixture
def combinations(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    pytest.importorskip("docutils")
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    return importlib.import_module("combinations")


def test_what_is_not_served_has_one_reason(combinations: ModuleType) -> None:
    have = combinations.served()
    for triple in combinations.installed():
        if triple in have:
            with pytest.raises(ValueError, match="has 0 reasons"):
                combinations.explained(triple)
        else:
            combinations.explained(triple)


def test_the_page_counts_what_is_served(combinations: ModuleType) -> None:
    first, *rest = combinations.page().splitlines()
    served = len(combinations.served())
    assert served >= 60
    assert f"{len(combinations.installed())} combinations {served} are served" in first
    reasons = combinations.reasons()
    text = "\n".join(rest)
    assert all(text.count(each.sentence) >= 1 for each in reasons)
    assert f"({chr(ord('a') + len(reasons) - 1)})" in text
    assert all(f"| `{name}` |" in text for name in algorithms())


def test_every_need_of_ours_is_in_words() -> None:
    for name, spec in algorithms().items():
        if spec.load().__module__.partition(".")[0] not in ("kernelweave", "kernelweave_template"):
            continue
        for role in ROLES:
            for need in getattr(spec.needs, role):
                assert need in NEED_MEANINGS[role] or need.startswith("name="), f"{name}: {need}"
