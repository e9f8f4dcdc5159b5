"""What the pages say to install is enough: every sibling is named, every import is declared."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import sys

import installs
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from smoke import examples
from workspace import ROOT, Member, closure, members

MEMBERS = members()
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *(member.folder / "README.md" for member in MEMBERS.values()),
]
# a command that names a folder of the clone
COMMAND = re.compile(r"pip install (?:-q )?((?:\./(?:packages|plugins)/[^\s`]+ ?)+)")


def commands() -> list[tuple[str, str]]:
    return [
        (path.relative_to(ROOT).as_posix(), line)
        for path in PAGES
        for line in COMMAND.findall(path.read_text(encoding="utf-8"))
    ]


def distributions(member: Member) -> set[str]:
    """Return every distribution that declared requirements bring, what those need included."""
    needed = closure([member])
    seen = {each.distribution for each in needed}
    queue = [canonicalize_name(each.name) for one in needed for each in one.requirements()]
    while queue:
        name = queue.pop()
        if name in seen:
            continue
        seen.add(name)
        for line in map(Requirement, importlib.metadata.requires(name) or ()):
            if line.marker is None or line.marker.evaluate({"extra": ""}):
                queue.append(canonicalize_name(line.name))
    return seen


def modules(code: str) -> set[str]:
    """Return the full names of the modules that a block imports."""
    found = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(str(node.module))
    return found


def test_a_command_names_every_sibling() -> None:
    assert len(commands()) > 20
    for page, line in commands():
        named = installs.named_in(line)
        assert named, f"{page}: {line}"
        # the requirements of the members pin siblings, which no index has
        missing = {each.name for each in closure(named)} - {each.name for each in named}
        assert not missing, f"{page}: {line!r} lacks {sorted(missing)}"


def test_the_pages_are_as_the_pyproject_files_say() -> None:
    page = installs.PAGE.read_text(encoding="utf-8")
    assert page == installs.with_tables(page), "run nox -s installs"
    for member in MEMBERS.values():
        text = (member.folder / "README.md").read_text(encoding="utf-8")
        assert text == installs.with_command(text, member), f"{member.name}: run nox -s installs"


def test_a_new_requirement_changes_the_command() -> None:
    """The command is the closure, so it is no list that somebody keeps."""
    assert installs.command(["qp-smo"]) == "pip install ./packages/kernels-core ./packages/qp-smo"
    row = dict(installs.tables())["wanted"]
    assert "./packages/spectahedron" in next(x for x in row.splitlines() if "proof of the" in x)
    both = installs.named_in("./packages/* ./plugins/{tables,evidence}")
    assert {"kernels-core", "vv-rkhs", "tables", "evidence"} <= {each.name for each in both}
    assert "workbench" not in {each.name for each in both}


@pytest.mark.parametrize("member", MEMBERS.values(), ids=lambda member: member.name)
def test_a_readme_imports_what_its_package_brings(member: Member) -> None:
    allowed = distributions(member)
    providers = importlib.metadata.packages_distributions()
    own = {each.import_name for each in closure([member])}
    code = examples((member.folder / "README.md").read_text(encoding="utf-8"))
    assert code
    for name in set().union(*map(modules, code)):
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names or ".".join(name.split(".")[:2]) in own or name in own:
            continue
        brought = {canonicalize_name(each) for each in providers.get(top, [])}
        assert top != "kernelweave", f"{member.name}: {name} is another package's"
        assert brought & allowed, f"{member.name}: nothing that it needs brings {name}"
