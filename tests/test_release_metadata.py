"""What a release says about itself: metadata of every member, the citation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet
from workspace import ROOT, Member, load_toml, members, project_urls, write_urls

MEMBERS = members()
SUPPORTED = ["3.11", "3.12", "3.13", "3.14"]
WANTED = ("name", "version", "description", "readme", "requires-python", "license", "authors")
PYTHON = re.compile(r"^Programming Language :: Python :: (\d+\.\d+)$")


def problems(member: Member) -> list[str]:
    """Return what is missing or untrue in the metadata of a member."""
    project, found = member.project, []
    found += [f"no {key}" for key in WANTED if not project.get(key)]
    for key in ("readme", "license-files"):
        names = project.get(key, [])
        for name in [names] if isinstance(names, str) else names:
            if not (member.folder / name).is_file():
                found.append(f"{key} {name} is not there")
    classifiers = list(project.get("classifiers", []))
    if ("Typing :: Typed" in classifiers) != (member.source / "py.typed").is_file():
        found.append("the classifier 'Typing :: Typed' and the file py.typed do not agree")
    versions = [match[1] for each in classifiers if (match := PYTHON.match(each))]
    allowed = SpecifierSet(project.get("requires-python", ""))
    if versions != SUPPORTED or not all(each in allowed for each in versions):
        found.append(f"Python classifiers {versions} are not {SUPPORTED}, within {allowed}")
    if any(each.startswith("License ::") for each in classifiers):
        found.append("a licence classifier beside the licence expression, which builders refuse")
    if project.get("urls", {}) != project_urls():
        found.append("the addresses are not those of the root: run nox -s urls")
    if len(project.get("description", "")) > 120:
        found.append("the description is longer than a line of a list")
    return found


@pytest.mark.parametrize("member", MEMBERS.values(), ids=list(MEMBERS))
def test_metadata_are_complete(member: Member) -> None:
    assert problems(member) == []


def test_the_first_page_lists_every_package() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \|", (ROOT / "README.md").read_text(encoding="utf-8"), re.M)
    assert sorted(rows) == sorted(member.distribution for member in MEMBERS.values())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"license": ""}, "no license"),
        ({"readme": "NONE.md"}, "is not there"),
        ({"classifiers": []}, "do not agree"),
        ({"requires-python": ">=3.13"}, "within >=3.13"),
        ({"urls": {"Source": "https://example.org"}}, "the addresses"),
    ],
)
def test_planted_faults_are_caught(change: dict[str, Any], said: str) -> None:
    real = MEMBERS["kernels-core"]
    member = Member(real.folder, {"project": {**real.project, **change}})
    assert any(said in each for each in problems(member))


def test_the_addresses_of_the_project_come_from_one_place(tmp_path: Path) -> None:
    member = tmp_path / "packages" / "one"
    member.mkdir(parents=True)
    root, own = tmp_path / "pyproject.toml", member / "pyproject.toml"
    own.write_text(
        '[project]\nname = "one"\n\n[project.urls]\nOld = "https://old.example"\n\n[tool.x]\n'
    )
    for wanted in ({"Source": "https://example.org/kernelweave"}, {}):
        lines = "".join(f'{name} = "{url}"\n' for name, url in wanted.items())
        root.write_text(f"[tool.kernelweave.urls]\n{lines}")
        write_urls(tmp_path)
        assert load_toml(own)["project"].get("urls", {}) == wanted
        assert load_toml(own)["tool"] == {"x": {}}


def test_the_citation_is_one_that_programs_read() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    top = dict(re.findall(r"^([a-z-]+): *(.*)$", text, re.MULTILINE))
    assert top["cff-version"] == "1.2.0"
    assert {"message", "title", "authors", "version", "license", "references"} <= set(top)
    assert {member.project["license"] for member in MEMBERS.values()} == {top["license"]}
    assert all(
        re.fullmatch(r"arXiv:\d{4}\.\d{4,5}", each)
        for each in re.findall(r"arXiv:\S+?(?=[\"'}\s])", text)
    )
