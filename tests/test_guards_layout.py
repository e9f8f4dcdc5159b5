"""Guards on the workspace itself: the namespace, one version, one licence, complete lists."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from workspace import ROOT, closure, load_toml, members, split_local

PERMISSIVE = re.compile(r"\b(MIT|BSD|Apache|PSF|Python Software|ISC|HPND)\b")
COPYLEFT = re.compile(r"\b[AL]?GPL|GNU (Affero|General|Lesser)")

SPOKEN_VERSION = re.compile(r"^__version__ *(?::[^=]+)?= *[\"']([^\"']+)", re.MULTILINE)

MakeMember = Callable[..., Path]


@pytest.fixture
def make_member(tmp_path: Path) -> MakeMember:
    """Return a function that writes a small sound member below ``tmp_path``."""
    (tmp_path / "LICENSE").write_text("a licence")

    def make(name: str, version: str = "1.0", needs: tuple[str, ...] = ()) -> Path:
        folder = tmp_path / "packages" / name
        source = folder / "src" / "kernelweave" / name.replace("-", "_")
        source.mkdir(parents=True)
        (source / "__init__.py").touch()
        (source / "py.typed").touch()
        (folder / "LICENSE").write_text("a licence")
        needed = ", ".join(f'"{line}"' for line in needs)
        (folder / "pyproject.toml").write_text(
            f'[project]\nname = "kernelweave-{name}"\nversion = "{version}"\n'
            f'license = "BSD-3-Clause"\nlicense-files = ["LICENSE"]\ndependencies = [{needed}]\n'
        )
        return source

    return make


def namespace_problems(root: Path) -> list[str]:
    """A file here would hide every sibling; a folder without one would not be typed."""
    problems = [
        f"{path.relative_to(root)} hides every other member of the namespace: delete it"
        for path in sorted(root.glob("p*/*/src/kernelweave/__init__.py"))
    ]
    for member in members(root).values():
        for name in ("__init__.py", "py.typed"):
            if not (member.source / name).is_file():
                problems.append(f"{member.source.relative_to(root)} has no {name}")
        if canonicalize_name(f"kernelweave-{member.name}") != member.distribution:
            problems.append(f"{member.name} ships {member.distribution}: one word for all three")
    return problems


def name_problems(root: Path) -> list[str]:
    """A class that is not private has a name that no other such class of any member has."""
    places: dict[str, list[str]] = {}
    for path in sorted(root.glob("p*/*/src/**/*.py")):
        where = path.relative_to(root).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(f"{where}:{node.lineno}")
    return [
        f"{name} is a class in {' and '.join(found)}: one noun, one class"
        for name, found in places.items()
        if len(found) > 1
    ]


def constant_problems(root: Path) -> list[str]:
    """No module gives a name to two values: the second would count in functions of the first."""
    problems = []
    for path in sorted(root.glob("p*/*/src/**/*.py")):
        seen: set[str] = set()
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            names = {
                each.id
                for target in targets
                for each in ast.walk(target)
                if isinstance(each, ast.Name)
            }
            where = path.relative_to(root).as_posix()
            problems += [f"{where}:{node.lineno}: {name} again" for name in sorted(names & seen)]
            seen |= names
    return problems


def version_problems(root: Path, citation: str, workspace_version: str) -> list[str]:
    """Every member, the root, the citation and every pin between members carry one version."""
    problems = []
    cited = re.search(r"^version: *[\"']?([^\"'\n]+)", citation, re.MULTILINE)
    if cited is None or cited[1] != workspace_version:
        problems.append(f"CITATION.cff says {cited and cited[1]}, the root {workspace_version}")
    local = {member.distribution for member in members(root).values()}
    for member in members(root).values():
        if member.project["version"] != workspace_version:
            problems.append(f"{member.name} is {member.project['version']}")
        for path in member.source.glob("__init__.py"):
            spoken = SPOKEN_VERSION.search(path.read_text(encoding="utf-8"))
            if spoken and spoken[1] != workspace_version:
                problems.append(f"{member.import_name}.__version__ is {spoken[1]}")
        problems += [
            f"{member.name} needs {line}, which is not =={workspace_version}"
            for line in member.requirements(extras=True)
            if canonicalize_name(line.name) in local
            and str(line.specifier) != f"=={workspace_version}"
        ]
    return problems


def licence_problems(root: Path) -> list[str]:
    """Every member ships the licence of the root and says which one it is."""
    text = (root / "LICENSE").read_bytes()
    problems = []
    for member in members(root).values():
        path = member.folder / "LICENSE"
        if not path.is_file() or path.read_bytes() != text:
            problems.append(f"{member.name}/LICENSE is not the root's LICENSE")
        if member.project.get("license") != "BSD-3-Clause":
            problems.append(f"{member.name} does not declare BSD-3-Clause")
        if "LICENSE" not in member.project.get("license-files", []):
            problems.append(f"{member.name} does not ship its LICENSE")
    return problems


def dependency_licence(name: str) -> str:
    """Return what an installed distribution says about its licence, in fields and files."""
    distribution = importlib.metadata.distribution(name)
    metadata = distribution.metadata
    said = [metadata.get("License-Expression", ""), metadata.get("License", "")]
    said += [line for line in metadata.get_all("Classifier", []) if "License" in line]
    if not PERMISSIVE.search(" ".join(said)):
        files = [path for path in distribution.files or [] if path.stem.upper() == "LICENSE"]
        said += [path.read_text() for path in files]
    return " ".join(line[:400] for line in said)


def is_permissive(licence: str) -> bool:
    """Whether a licence text names a permissive licence and no copyleft one."""
    return bool(PERMISSIVE.search(licence)) and not COPYLEFT.search(licence)


def test_no_member_hides_the_namespace() -> None:
    assert namespace_problems(ROOT) == []


def test_members_import_side_by_side() -> None:
    names = [member.import_name for member in members().values()]
    code = f"import {', '.join(names)}; import kernelweave; assert kernelweave.__file__ is None"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_planted_namespace_file_is_caught(make_member: MakeMember, tmp_path: Path) -> None:
    source = make_member("one")
    assert namespace_problems(tmp_path) == []
    (source.parent / "__init__.py").touch()
    assert "hides every other member" in namespace_problems(tmp_path)[0]


def test_planted_missing_marker_is_caught(make_member: MakeMember, tmp_path: Path) -> None:
    (make_member("one") / "py.typed").unlink()
    assert "has no py.typed" in namespace_problems(tmp_path)[0]


def test_one_class_for_each_name() -> None:
    assert name_problems(ROOT) == []


def test_one_value_for_each_constant() -> None:
    assert constant_problems(ROOT) == []


def test_planted_second_value_is_caught(make_member: MakeMember, tmp_path: Path) -> None:
    (make_member("one") / "path.py").write_text("_A, _B = 1, 2\n_C = 3\n_D, _A = 4, 5\n")
    (problem,) = constant_problems(tmp_path)
    assert problem.endswith("path.py:3: _A again")


def test_planted_second_class_is_caught(make_member: MakeMember, tmp_path: Path) -> None:
    text = "class Plan:\n    pass\n\nclass _Drawn:\n    pass\n"
    (make_member("one") / "path.py").write_text(text)
    assert name_problems(tmp_path) == []
    (make_member("two") / "plan.py").write_text(text)
    (problem,) = name_problems(tmp_path)
    assert problem.startswith("Plan is a class in packages/one/src/kernelweave/one/path.py:1 and ")


def test_one_version_everywhere() -> None:
    version = load_toml(ROOT / "pyproject.toml")["project"]["version"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert version_problems(ROOT, citation, version) == []


@pytest.mark.parametrize(
    ("version", "pin", "cited", "spoken"),
    [
        ("1.1", "==1.0", "1.0", "1.0"),
        ("1.0", ">=1.0", "1.0", "1.0"),
        ("1.0", "==1.0", "0.9", "1.0"),
        ("1.0", "==1.0", "1.0", "1.2"),
    ],
)
def test_planted_version_is_caught(
    make_member: MakeMember, tmp_path: Path, version: str, pin: str, cited: str, spoken: str
) -> None:
    source = make_member("one")
    (source / "__init__.py").write_text(f'__version__ = "{spoken}"\n')
    make_member("two", version=version, needs=(f"kernelweave-one{pin}",))
    assert len(version_problems(tmp_path, f"version: {cited}", "1.0")) == 1


def test_one_licence_everywhere() -> None:
    assert licence_problems(ROOT) == []


def test_planted_licence_is_caught(make_member: MakeMember, tmp_path: Path) -> None:
    make_member("one")
    assert licence_problems(tmp_path) == []
    (tmp_path / "packages" / "one" / "LICENSE").write_text("another licence")
    assert licence_problems(tmp_path) == ["one/LICENSE is not the root's LICENSE"]


def test_declared_dependencies_are_permissive() -> None:
    declared = {
        line.name
        for member in members().values()
        for line in member.requirements()
        if not split_local([line])[0]
    }
    licences = {name: dependency_licence(name) for name in sorted(declared)}
    assert {name: text for name, text in licences.items() if not is_permissive(text)} == {}


@pytest.mark.parametrize("licence", ["GPL-3.0-or-later", "GNU Lesser General Public License", ""])
def test_copyleft_or_no_licence_is_caught(licence: str) -> None:
    assert is_permissive("BSD-3-Clause")
    assert not is_permissive(licence)


def test_root_brings_every_member() -> None:
    """``kernelweave`` and its extras bring every package but the one that is there to be copied."""
    root = load_toml(ROOT / "pyproject.toml")
    every = {member.distribution: member for member in members().values()}
    assert set(root["tool"]["uv"]["sources"]) == set(every)
    extras = root["project"]["optional-dependencies"]
    lines = [*root["project"]["dependencies"], *(line for name in extras for line in extras[name])]
    named = [Requirement(line) for line in lines]
    ours = [each for each in named if each.name != root["project"]["name"]]
    version = root["project"]["version"]
    assert {str(each.specifier) for each in ours} == {f"=={version}"}
    brought = closure(every[canonicalize_name(each.name)] for each in ours)
    assert {member.name for member in every.values()} - {each.name for each in brought} == {
        "template"
    }
    (together,) = (each.extras for each in named if each.name == root["project"]["name"])
    assert together == set(extras) - {"all", "papers"}


def test_benchmarks_install_every_member() -> None:
    text = (ROOT / "asv_bench" / "asv.conf.json").read_text(encoding="utf-8")
    folders = [member.folder.relative_to(ROOT).as_posix() for member in members().values()]
    assert [folder for folder in folders if f"{{build_dir}}/{folder}" not in text] == []


def test_closure_follows_declared_members(make_member: MakeMember, tmp_path: Path) -> None:
    make_member("one")
    make_member("two", needs=("kernelweave-one==1.0", "numpy"))
    make_member("three", needs=("kernelweave-two==1.0",))
    make_member("apart")
    start = members(tmp_path)["three"]
    found = [member.name for member in closure([start], tmp_path)]
    assert found == ["one", "three", "two"]
