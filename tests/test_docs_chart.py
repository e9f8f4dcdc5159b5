"""The chart of questions and the map of imports: well-formed, in words too, naming what exists."""

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


def extension(name: str) -> ModuleType:
    pytest.importorskip("sphinx")
    path = ROOT / "docs" / "_ext" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def chart() -> ModuleType:
    return extension("flow_chart")


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
            r"\b[A-Z]\w*(?:Classifier|Regressor|Graph)(?:CV)?\b", answer.replace("- ", "")
        ):
            assert word in public, word
            assert f"`{word}`" in PAGE


def test_the_map_of_imports_holds_every_member_and_points_downwards() -> None:
    pytest.importorskip("networkx")
    found = extension("import_map")
    graph = found.imports()
    assert set(graph) == set(members())
    corners = found.places(graph)
    assert all(corners[to][1] > corners[name][1] for name, to in graph.edges)
    svg = ElementTree.fromstring(found.drawn("Who imports whom?", graph))
    assert len(svg.findall("rect")) == len(members())
    assert "relaxations imports" in (svg.findtext("desc") or "")


def test_the_map_of_rooms_holds_the_folders_of_the_core() -> None:
    pytest.importorskip("networkx")
    found = extension("import_map")
    graph = found.rooms("kernels-core")
    assert {"formula", "grams", "kernels", "families", "estimators"} < set(graph)
    assert graph.has_edge("kernels", "grams")
    assert not list(graph["grams"])
    svg = ElementTree.fromstring(found.drawn("Rooms", graph))
    assert len(svg.findall("rect")) == len(graph)
