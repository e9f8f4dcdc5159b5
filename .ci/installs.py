"""What to install for what: the tables of docs/install.md and the last line of every README.

Written by ``nox -s installs`` from the pyproject files, and compared with them by
``tests/test_installs.py``: a command that misses a sibling cannot stand anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from workspace import ROOT, Member, closure, members, split_local

PAGE = ROOT / "docs" / "install.md"
# what somebody wants, and the members that give it; the rest follows
WANTED = (
    ("the `kernelweave` command and the evidence kernel", ("workbench",)),
    (
        "the same, with sparse weights, proofs, several outputs and causal graphs",
        ("workbench", "relaxations", "granger"),
    ),
    ("kernels and the registry, to write an algorithm", ("kernels-core",)),
    ("support vector machines with proved bounds", ("qp-smo",)),
    ("tessellated and polynomial kernels, from Python only", ("spectahedron",)),
    ("sparse weights", ("mkl-sparse",)),
    ("sparse weights with a proof of the optimum", ("relaxations",)),
    ("ridge regression on learned kernels", ("ridge-mkl",)),
    ("the evidence kernel, from Python only", ("evidence",)),
    ("several outputs", ("vv-rkhs",)),
    ("causal graphs of time series", ("granger",)),
    ("classic multiple kernel learning, as baselines", ("baselines",)),
    ("the papers' tables, recomputed", ("papers",)),
)
_NAMED = re.compile(r"\./(packages|plugins)/(\{[^}]*\}|[\w*-]+)")


def command(names: Iterable[str], root: Path = ROOT) -> str:
    """Return the pip command that installs members with the siblings that they need."""
    found = members(root)
    needed = {member.name for member in closure([found[name] for name in names], root)}
    return "pip install " + " ".join(
        f"./{member.folder.parent.name}/{member.name}"
        for member in found.values()
        if member.name in needed
    )


def named_in(line: str, root: Path = ROOT) -> list[Member]:
    """Return the members that a command names, its ``*`` and ``{a,b}`` expanded."""
    found = members(root)
    chosen: dict[str, Member] = {}
    for folder, names in _NAMED.findall(line):
        for name in names.strip("{}").split(","):
            every = [each for each in found.values() if each.folder.parent.name == folder]
            chosen |= {each.name: each for each in every if name in ("*", each.name)}
    return list(chosen.values())


def _short(requirements: Iterable[Requirement | str]) -> str:
    return ", ".join(
        canonicalize_name(Requirement(str(each)).name).removeprefix("kernelweave-")
        for each in requirements
        if Requirement(str(each)).name != "lazy-loader"
    )


def tables(root: Path = ROOT) -> Iterator[tuple[str, str]]:
    """Yield the name and the lines of each table of the page."""
    rows = [f"| {said} | `{command(names, root)}` |" for said, names in WANTED]
    yield "wanted", "\n".join(["| you want | install |", "|---|---|", *rows])
    rows = []
    for member in members(root).values():
        own, others = split_local(member.requirements(), root)
        needs = _short([*(each.distribution for each in own), *others]) or "nothing but Python"
        groups = member.project.get("optional-dependencies", {})
        extras = "; ".join(f"`[{name}]`: {_short(lines)}" for name, lines in groups.items())
        said = member.project["description"].removesuffix(".")
        rows.append(f"| `{member.distribution}` | {said} | {needs} | {extras} |")
    head = ["| package | gives | needs | extras |", "|---|---|---|---|"]
    yield "packages", "\n".join([*head, *rows])


def with_tables(text: str, root: Path = ROOT) -> str:
    """Return the text of the page with its tables written anew between their marks."""
    for name, lines in tables(root):
        begin, end = f"<!-- {name}: written by nox -s installs -->", f"<!-- end of {name} -->"
        before, after = text.split(begin)[0], text.split(end)[1]
        text = f"{before}{begin}\n{lines}\n{end}{after}"
    return text


def with_command(text: str, member: Member, root: Path = ROOT) -> str:
    """Return the text of a README with its section on how to install it, at the end."""
    kept = text.split("\n## Install\n")[0].rstrip("\n")
    return (
        f"{kept}\n\n## Install\n\nFrom a clone of the repository, with the packages that it needs:"
        f"\n\n    {command([member.name], root)}\n"
    )


def write(root: Path = ROOT) -> None:
    """Write the tables of the page and the last section of every member's README."""
    page = root / PAGE.relative_to(ROOT)
    page.write_text(with_tables(page.read_text(encoding="utf-8"), root), encoding="utf-8")
    for member in members(root).values():
        path = member.folder / "README.md"
        text = with_command(path.read_text(encoding="utf-8"), member, root)
        path.write_text(text, encoding="utf-8")
