"""Which tests a change needs: those that read a changed file or import it, however far away.

A graph of imports between the Python files of the repository, read without running them. Names that
a package loads on first use are looked up in its stub; a string with the name of a module, as tests
patch them, is an import of it, and the name of what is registered one of the file that registers.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

import workspace

# what every test stands on
OF_ALL = ("pyproject.toml", "noxfile.py")
_DOCSTRING = re.compile(r'"""(?s:.*?)"""')
# names of algorithms and other parts, of modules and their attributes; how f-strings begin
_STRINGS = re.compile(r'"([a-z]+(?:-[a-z0-9]+)+(?=")|[\w.]+:\w+(?=")|kernelweave[\w.:-]*(?=["{]))')


def changed_files(root: Path = workspace.ROOT, base: str = "") -> list[Path]:
    """Return what differs from a commit, files that git does not know yet included.

    ``base``: by default where the branch left ``main``, here or at the origin.
    """

    def git(*words: str) -> list[str]:
        done = subprocess.run(("git", *words), cwd=root, capture_output=True, text=True)
        return done.stdout.split("\0" if "-z" in words else None) if done.returncode == 0 else []

    mains = (git("merge-base", "HEAD", name) for name in ("main", "origin/main"))
    since = [base] if base else next((found for found in mains if found), ["HEAD"])
    if not git("rev-parse", "--verify", since[0]):
        raise ValueError(f"{since[0]} is no commit of this checkout")
    names = git("diff", "--name-only", "--no-renames", "-z", since[0])
    names += git("ls-files", "--others", "--exclude-standard", "-z")
    return [root / name for name in sorted(set(names)) if name]


class Imports:
    """The imports between the files of members, of tests and of ``.ci``."""

    def __init__(self, root: Path = workspace.ROOT) -> None:
        self.root = root
        self.members = workspace.members(root)
        self.modules = {
            member.module(path): path for member in self.members.values() for path in member.files()
        }
        folders = [root / "tests", *(each.folder / "tests" for each in self.members.values())]
        self.tests = sorted(path for folder in folders for path in folder.rglob("*.py"))
        self.helpers = {path.stem: path for path in sorted((root / ".ci").glob("*.py"))}

    @cached_property
    def edges(self) -> dict[Path, set[Path]]:
        """Return the files that each file imports."""
        names = {path: name for name, path in self.modules.items()}
        files = [*names, *self.tests, *self.helpers.values(), self.root / "conftest.py"]
        found = {path: self._imported(path, names.get(path, "")) for path in files if path.exists()}
        # what nothing imports is loaded by a name that is put together
        loaded = names.keys() - set().union(*found.values())
        for member in self.members.values():
            own = {each for each in loaded if member.source in each.parents}
            for path in self.tests:
                if member.folder in path.parents:
                    found[path] |= own | {self.plugins[member.import_name]}
        for path in self.tests:
            found[path] |= {folder / "conftest.py" for folder in path.parents} & found.keys() - {
                path
            }
        return found

    @cached_property
    def exports(self) -> dict[str, dict[str, str]]:
        """Return the full names of what each package loads on first use."""
        found: dict[str, dict[str, str]] = {}
        for name, path in self.modules.items():
            stub = path.with_suffix(".pyi")
            if path.name != "__init__.py" or not stub.exists():
                continue
            tree = ast.parse(stub.read_text(encoding="utf-8"))
            found[name] = {
                alias.asname or alias.name: f"{name}.{node.module}.{alias.name}"
                for node in ast.walk(tree)
                if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module
                for alias in node.names
            }
        return found

    @cached_property
    def plugins(self) -> dict[str, Path]:
        """Return the file that registers each name, as ``krr-auto``, and that of each member."""
        found: dict[str, Path] = {}
        # a name is registered below where it is also asked for
        for member in sorted(
            self.members.values(), key=lambda each: len(workspace.closure([each], self.root))
        ):
            path = self.modules.get(f"{member.import_name}._plugin", member.source / "__init__.py")
            found[member.import_name] = path
            for text in strings(path) if path.exists() else ():
                if "-" in text:
                    found.setdefault(text, path)
        return found

    def _imported(self, path: Path, name: str) -> set[Path]:
        found = set()
        for wanted in imported_names(path, name, path.name == "__init__.py"):
            top = wanted.partition(".")[0]
            # a test imports helpers that lie beside it
            if not name and (path.parent / f"{top}.py").exists():
                found.add(path.parent / f"{top}.py")
            found |= self._files_of(wanted) | {
                self.helpers[each] for each in {top} & {*self.helpers}
            }
        home = name.rpartition(".")[0]
        for text in strings(path):
            if text.startswith("kernelweave") and text.endswith(".") and text.count(".") > 1:
                # whatever lies in a package, as the commands do
                found |= {at for each, at in self.modules.items() if each.startswith(text)}
            elif text.startswith("kernelweave"):
                found |= self._files_of(text)
            elif text in self.plugins:
                found.add(self.plugins[text])
            elif name.endswith("._plugin") and ":" in text:
                found |= self._files_of(f"{home}.{text}")
        return found - {path}

    def _files_of(self, wanted: str) -> set[Path]:
        """Return the files that a dotted name stands for, those of the packages above included."""
        parts = wanted.partition(":")[0].split(".")
        known = [".".join(parts[:k]) for k in range(1, len(parts) + 1)]
        found = {self.modules[each] for each in known if each in self.modules}
        last = next((each for each in reversed(known) if each in self.modules), "")
        lazy = self.exports.get(last, {})
        rest = parts[len(last.split(".")) :] if last else []
        # a package by itself: whatever it exports may be asked of it
        names = [lazy[rest[0]]] if rest and rest[0] in lazy else [] if rest else lazy.values()
        return found.union(*(self._files_of(name) for name in names))

    @cached_property
    def importers(self) -> dict[Path, set[Path]]:
        """Return the files that import each file."""
        found: dict[Path, set[Path]] = {}
        for path, imported in self.edges.items():
            for each in imported:
                found.setdefault(each, set()).add(path)
        return found

    def distances(self, changed: Iterable[Path]) -> dict[Path, int]:
        """Return how many imports lie between each file and the nearest that changed."""
        found = dict.fromkeys(changed, 0)
        waiting = list(found)
        for path in waiting:
            new = self.importers.get(path, set()) - found.keys()
            found |= dict.fromkeys(new, found[path] + 1)
            waiting += new
        return found


def strings(path: Path) -> set[str]:
    """Return the strings of one line that may be names of modules or of what they register."""
    return set(_STRINGS.findall(_DOCSTRING.sub("", path.read_text(encoding="utf-8"))))


def statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield the statements of a module, those of functions too, without their expressions."""
    waiting: list[ast.AST] = [tree]
    for node in waiting:
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, part, [])
            # that of a conditional expression is no list
            waiting += inner if isinstance(inner, list) else []
        if isinstance(node, ast.stmt):
            yield node


def imported_names(path: Path, name: str, is_package: bool) -> Iterator[str]:
    """Yield the dotted names that a module imports, inside functions too."""
    for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = name.split(".")
                kept = parts[: len(parts) - node.level + is_package]
                base = ".".join([*kept, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


@functools.cache
def graph_of(root: Path) -> Imports:
    return Imports(root)


def needed_tests(changed: Iterable[Path], root: Path = workspace.ROOT) -> list[str]:
    """Return the files of tests that a change needs, relative to the root, the nearest first.

    A module, a helper or a ``conftest.py`` needs the tests that reach it; a data file those that
    reach a module of its folder, or have its name in their text; a page those of the pages. Tests
    that walk over all members, and whatever a pyproject file or the noxfile decides, are needed by
    any change of code.
    """
    graph, changed = graph_of(root), set(changed)
    tests = [path for path in graph.tests if path.name.startswith("test_")]
    if any(path.name in OF_ALL for path in changed):
        return named(tests, root)
    code = {path for path in changed if path.suffix == ".py"}
    # stubs and data of a package are read by the modules beside them
    data = changed - code
    code |= {each for path in data if "src" in path.parts for each in path.parent.glob("*.py")}
    stems = {f'"{path.stem}"' for path in data} | {path.name for path in data}
    pages = {path for path in data if path.suffix in (".md", ".rst", ".cff")}
    distances = graph.distances(code)
    last = len(graph.edges)
    chosen = {}
    for path in tests:
        text = path.read_text(encoding="utf-8")
        walks = "from workspace import" in text
        of_pages = pages and (path.name.startswith("test_docs_") or walks)
        if path in distances or any(stem in text for stem in stems):
            chosen[path] = distances.get(path, 0)
        elif of_pages or (code and walks):
            chosen[path] = last
    return named(sorted(chosen, key=lambda path: chosen[path]), root)


def nearest_tests(changed: Iterable[Path], root: Path = workspace.ROOT) -> list[str]:
    """Return the tests with the fewest imports between them and each changed file, relative.

    They are those of its own member, where any reaches it. A file that no test reaches by imports,
    such as a page, needs what ``needed_tests`` says.
    """
    graph, chosen, others = graph_of(root), set[Path](), set[Path]()
    for path in changed:
        found = {
            test: steps
            for test, steps in graph.distances([path]).items()
            if test.name.startswith("test_")
        }
        homes = (root / "packages", root / "plugins")
        member = next((each for each in path.parents if each.parent in homes), root)
        found = {test: found[test] for test in found if member in test.parents} or found
        if not found or path.name in OF_ALL:
            others.add(path)
        else:
            chosen |= {test for test in found if found[test] == min(found.values())}
    beside = needed_tests(others, root) if others else []
    return [*named(sorted(chosen), root), *beside]


def named(paths: Iterable[Path], root: Path) -> list[str]:
    return [path.relative_to(root).as_posix() for path in paths]
