"""No code reads the clock or the free memory but where it is stated here.

The clock stops solves and fills reports; what a solver does depends on counts of work. See
`kernelweave.kernels_core.clock` and the page of promises.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CORE = "packages/kernels-core/src/kernelweave/kernels_core"

# who may look at the time, and why
CLOCKS = {
    f"{CORE}/clock.py": "the one clock",
    "plugins/evidence/src/kernelweave/evidence/fit.py": "says what learning the kernel again costs",
    "plugins/workbench/src/kernelweave/workbench/demonstration.py": "prints how long it took",
}
# tables of papers, whose columns are seconds
PAPERS = "plugins/papers/"
# who may know the seconds that are left: solvers of others, and processes of ours, have limits of
# their own
SECONDS_LEFT = {
    "packages/relaxations/src/kernelweave/relaxations/conic.py",
    "plugins/evidence/src/kernelweave/evidence/cross_validation.py",
    "plugins/evidence/src/kernelweave/evidence/folds.py",
    "plugins/evidence/src/kernelweave/evidence/learn.py",
}
# who may know how much memory there is
MEMORY = {f"{CORE}/memory.py"}
# who may turn to blocks, or to help that is forbidden aloud, because of the limit in force
LIMIT = {
    f"{CORE}/memory.py",
    f"{CORE}/fit.py",
    f"{CORE}/families/_box.py",
    "packages/spectahedron/src/kernelweave/spectahedron/curvature.py",
    "packages/spectahedron/src/kernelweave/spectahedron/gram_memory.py",
    "packages/spectahedron/src/kernelweave/spectahedron/saddle.py",
    "plugins/granger/src/kernelweave/granger/shared_grams.py",
    "plugins/granger/src/kernelweave/granger/together.py",
    "plugins/tables/src/kernelweave/tables/sizes.py",
    "plugins/workbench/src/kernelweave/workbench/commands/doctor.py",
}
FREE_MEMORY = ("MemAvailable", "MemFree", "virtual_memory", "SC_AVPHYS_PAGES", "/proc/meminfo")


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    """The text of each module that is installed, by its path from the root."""
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for area in ("packages", "plugins")
        for path in sorted((ROOT / area).glob("*/src/**/*.py"))
    }


def trees(sources: dict[str, str], words: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield the files worth parsing: none has a name that its text has not."""
    for path, text in sources.items():
        if re.search(words, text):
            yield path, ast.parse(text)


def imported(tree: ast.AST) -> set[str]:
    """Return the names of the modules that a file imports."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def used(tree: ast.AST) -> set[str]:
    """Return every name and attribute of a file."""
    found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return found | {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def test_who_looks_at_the_time(sources: dict[str, str]) -> None:
    found = {
        path
        for path, tree in trees(sources, r"\b(import|from)\b.*\btime(it)?\b")
        if imported(tree) & {"time", "timeit"} and not path.startswith(PAPERS)
    }
    assert found == CLOCKS.keys(), "who reads the clock and is not listed asks clock.expired()"


def test_seconds_of_tables_are_cpu_seconds(sources: dict[str, str]) -> None:
    """Wall time ends a run that was given a limit, and is no figure of a table."""
    tables = {path: text for path, text in sources.items() if path.startswith(PAPERS)}
    names = {path: used(tree) for path, tree in trees(tables, r"\btime\b")}
    assert any("process_time" in each for each in names.values())
    assert not [path for path, each in names.items() if "perf_counter" in each]
    limited = {path.removeprefix(PAPERS) for path, each in names.items() if "monotonic" in each}
    home = "src/kernelweave/papers"
    assert limited == {f"{home}/command.py", f"{home}/engine/running.py"}


def test_who_plans_with_seconds_or_with_memory(sources: dict[str, str]) -> None:
    machine = {"machine_bytes", "sysconf"}
    words = "seconds_left|limit_bytes|machine_bytes|sysconf"
    names = {path: used(tree) for path, tree in trees(sources, words)}
    assert {path for path, each in names.items() if "seconds_left" in each} == SECONDS_LEFT
    tables = {path for path in names if path.startswith(PAPERS)}
    limited = {path for path, each in names.items() if "limit_bytes" in each} - tables
    knowing = {path for path, each in names.items() if each & machine}
    assert limited == LIMIT
    assert MEMORY <= knowing <= MEMORY | LIMIT


@pytest.mark.parametrize("word", FREE_MEMORY)
def test_nobody_reads_the_free_memory(sources: dict[str, str], word: str) -> None:
    found = {path for path, text in sources.items() if word in text}
    assert not found
