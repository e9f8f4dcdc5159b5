"""Every promise names the tests that keep it, and they are there."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")


def promises() -> dict[str, list[str]]:
    """Return the tests that stand below each promise, by its first line."""
    found: dict[str, list[str]] = {}
    for line in PAGE.splitlines():
        if line.startswith("- "):
            found[line[2:]] = []
        elif line.startswith("  % "):
            found[next(reversed(found))].append(line[4:])
    return found


@cache
def functions_of(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(
        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
    )  # fmt: skip


@pytest.mark.parametrize("promise", promises())
def test_a_promise_has_tests(promise: str) -> None:
    named = promises()[promise]
    assert named, f"no test keeps: {promise}"
    for name in named:
        path, *_, function = name.split("::")
        assert (ROOT / path).is_file(), name
        assert function.startswith("test_"), name
        assert function in functions_of(ROOT / path), name


def test_there_are_promises() -> None:
    assert len(promises()) > 20
