"""Guards on the text of the repository: nothing of one machine, and rooms of a human size."""

from __future__ import annotations

import ast
import re
import statistics
import subprocess
from pathlib import Path

import pytest
from workspace import ROOT, checked_in

MACHINE = re.compile(r"(?:^|[^A-Za-z0-9_.])/(?:home|root|work|tmp|opt|Users)/[A-Za-z]")
LOCKS = {"uv.lock", "poetry.lock", "package-lock.json"}

FUNCTION_HARD, FUNCTION_USUAL = 80, 40
FILE_HARD, FILE_USUAL = 700, 450


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    """The files that git tracks or would add."""
    try:
        return checked_in()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs a git checkout to know which files belong to it")


def text_problems(path: Path) -> list[str]:
    """Return the lines of a text file that name a folder of one machine."""
    if path.name in LOCKS:
        return [f"{path.name} is a lock file: the project pins nothing"]
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        return []
    return [
        f"{path.name}:{number}: {line.strip()[:100]}"
        for number, line in enumerate(lines, 1)
        if path.suffix != ".svg" and MACHINE.search(line)
    ]


def function_lengths(path: Path) -> dict[str, int]:
    """Return the lines of code of every function of a file, its docstring not counted."""
    lengths = {}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if ast.get_docstring(node, clean=False) is not None:
                docstring = node.body[0]
                length -= (docstring.end_lineno or 0) - docstring.lineno + 1
            lengths[f"{path.name}:{node.lineno} {node.name}"] = length
    return lengths


def size_problems(lengths: dict[str, int], hard: int, usual: int) -> list[str]:
    """Return what is longer than the hard limit, and whether nine in ten are within the usual."""
    problems = [f"{name}: {length} lines" for name, length in lengths.items() if length > hard]
    if len(lengths) > 10 and statistics.quantiles(lengths.values(), n=10)[-1] > usual:
        longest = sorted(lengths, key=lambda name: -lengths[name])[:10]
        problems.append(f"more than one in ten is over {usual} lines: {', '.join(longest)}")
    return problems


def test_no_folder_of_a_machine_is_named(tracked: list[Path]) -> None:
    assert [line for path in tracked for line in text_problems(path)] == []


@pytest.mark.parametrize("folder", ["home", "tmp"])
def test_a_planted_folder_is_caught(tmp_path: Path, folder: str) -> None:
    path = tmp_path / "page.md"
    path.write_text(f'a/tmp/x and data/work/x are relative\nopen("/{folder}/me/x")\n')
    assert [problem.partition(": ")[0] for problem in text_problems(path)] == ["page.md:2"]


def test_planted_lock_file_is_caught(tmp_path: Path) -> None:
    path = tmp_path / "uv.lock"
    path.touch()
    assert len(text_problems(path)) == 1


def test_functions_have_a_human_size(tracked: list[Path]) -> None:
    lengths: dict[str, int] = {}
    for path in tracked:
        if path.suffix == ".py":
            found = function_lengths(path)
            lengths |= {f"{path.parent.relative_to(ROOT)}/{name}": n for name, n in found.items()}
    assert size_problems(lengths, FUNCTION_HARD, FUNCTION_USUAL) == []


def test_files_have_a_human_size(tracked: list[Path]) -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in tracked
        if path.suffix == ".py"
    }
    assert size_problems(lengths, FILE_HARD, FILE_USUAL) == []


def test_planted_long_function_is_caught(tmp_path: Path) -> None:
    path = tmp_path / "long.py"
    documented = '    """Say\n' + "much\n" * 90 + '    """\n'
    path.write_text(f"def short():\n{documented}    return 1\n\ndef long():\n" + "    x = 1\n" * 80)
    lengths = function_lengths(path)
    assert list(lengths.values()) == [2, 81]
    assert len(size_problems(lengths, FUNCTION_HARD, FUNCTION_USUAL)) == 1


def test_planted_general_length_is_caught() -> None:
    lengths = {f"f{i}": 50 if i < 3 else 5 for i in range(20)}
    assert len(size_problems(lengths, FUNCTION_HARD, FUNCTION_USUAL)) == 1
