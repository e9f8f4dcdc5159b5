"""The chart of questions: well-formed, said in words too, and naming what exists."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from types import ModuleType
from xml.etree import ElementTree

import pytest
from workspace import ROOT, members

SVG = "{http://www.w3.org/2000/svg}"
PAGE = (ROOT / "docs" / "which.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def chart() -> ModuleType:
    pytest.importorskip("sphinx")
    path = ROOT / "docs" / "_ext" / "flow_chart.py"
    spec = importlib.util.spec_from_file_location("flow_chart", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["flow_chart"] = module
    spec.loader.exec_module(module)
    return module


def content() -> list[str]:
    found = re.search(r"```\{flow-chart\}[^\n]*\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1].splitlines()


def test_the_picture_is_well_formed_and_said_in_words(chart: ModuleType) -> None:
    rungs = chart.parsed(content())
    text = chart.drawn("Which?", rungs, lambda page: f"{page}.html")
    svg = ElementTree.fromstring(text.replace("<svg ", f'<svg xmlns="{SVG[1:-1]}" ', 1))
    boxes = svg.findall(f".//{SVG}rect")
    assert len(boxes) == 2 * len(rungs) - 1
    width, height = map(float, svg.attrib["viewBox"].split()[2:])
    for box in boxes:
        x, y, w, h = (float(box.attrib[key]) for key in ("x", "y", "width", "height"))
        assert 0 <= x < x + w <= width
        assert 0 <= y < y + h <= height
    assert svg.findtext(f"{SVG}title") == "Which?"
    said = svg.findtext(f"{SVG}desc") or ""
    assert all(question in said and answer in said for question, answer, _ in rungs)
    assert len(svg.findall(f".//{SVG}a")) == len(rungs)


def test_every_answer_exists_and_its_page_too(chart: ModuleType) -> None:
    rungs = chart.parsed(content())
    public: set[str] = set()
    for member in members().values():
        public |= set(dir(importlib.import_module(member.import_name)))
    for _, answer, page in rungs:
        name = page.partition("#")[0]
        assert name.startswith("api/") or (ROOT / "docs" / f"{name}.md").is_file()
        for word in re.findall(
            r"\b[A-Z]\w*(?:Classifier|Regressor|Graph)\b", answer.replace("- ", "")
        ):
            assert word in public, word
            assert f"`{word}`" in PAGE
