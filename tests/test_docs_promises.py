"""Every promise names the tests that keep it, and they are there."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

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


def test_every_promise_has_tests() -> None:
    assert len(promises()) > 20
    assert [promise for promise, named in promises().items() if not named] == []
    for name in (name for named in promises().values() for name in named):
        path, *_, function = name.split("::")
        assert (ROOT / path).is_file(), name
        assert function.startswith("test_"), name
        assert function in functions_of(ROOT / path), name
