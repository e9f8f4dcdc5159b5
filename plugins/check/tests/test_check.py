"""The checker on a problem whose optimum is known by hand, and on files that are none."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import kernelweave_check
import pytest
from kernelweave_check import ProofError, check, main


def numbers(*values: int, exponent: int = 0) -> dict[str, Any]:
    return {"values": list(values), "exponent": exponent}


def triangle(*rows: list[int]) -> dict[str, Any]:
    texts = ["".join(f"{each + 8:x}" for each in row) for row in rows]
    return {"exponent": 0, "width": 1, "rows": texts}


def by_hand() -> list[dict[str, Any]]:
    """Two points x = ∓1 with labels ∓1, kernels xy and 1 + xy, C = 1, λ = 1, one of them.

    u = (−t, t) gives 2t − ½·4t²: 1/2 at t = 1/2 for both kernels, and the penalty 1: 3/2.
    """
    head = {"format": kernelweave_check.FORMAT, "n_rows": 2, "n_kernels": 2, "k0": 1}
    head |= {"lambda": "1", "epsilon": "0", "lower": "1.5", "upper": "1.5"}
    task = {"linear": numbers(-1, 1), "low": numbers(-1, 0), "high": numbers(0, 1)}
    reach = {"weights": numbers(1, 0), "points": [numbers(-1, 1, exponent=-1)], "offsets": ["0"]}
    leaf = {"cuts": [0], "weights": [1], "tau": "-1.5"}
    return [
        head,
        {"task": task},
        {"kernel": triangle([1], [-1, 1])},
        {"kernel": triangle([2], [0, 2])},
        reach,
        {"factor": triangle([1], [-1, 0])},
        {"cut": [numbers(-1, 1, exponent=-1)]},
        {"branch": 0},
        leaf,
        leaf,
    ]


def written(tmp_path: Path, rows: list[Any]) -> Path:
    path = tmp_path / "proof.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return path


def test_a_proof_by_hand(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    path = written(tmp_path, by_hand())
    found = check(path)
    assert (found.lower, found.upper, found.n_leaves) == (1.5, 1.5, 2)
    monkeypatch.setattr(sys, "argv", ["kernelweave-check", str(path)])
    main()
    assert "Proved: the optimum for 2 rows and 2 kernels" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "change", "message"),
    [
        (0, {"lower": "1.5000001"}, "the tree proves 1.5, not 1.5000001"),
        (0, {"upper": "1.4999999"}, "the weights reach 1.5, not 1.4999999"),
        (0, {"lambda": "0.99"}, "the tree proves"),
        (0, {"lambda": "-1"}, "must not be negative"),
        (0, {"lambda": "1e9999"}, "must be a number as text"),
        (0, {"k0": 0}, "k0 must be a whole number"),
        (0, {"n_rows": 3}, "must be a list of 3 entries"),
        (0, {"format": "kernelweave-proof 0"}, "this is no proof file"),
        (2, {"kernel": triangle([1], [-1, 2])}, "reach"),
        (2, {"kernel": {"exponent": 0, "width": 1, "rows": ["9", "g9"]}}, "digits, 0 to f"),
        (4, {"weights": numbers(1, 1)}, "sum to 1"),
        (4, {"weights": numbers(1, 1, exponent=-1)}, "more weights than allowed"),
        (4, {"weights": numbers(2, -1)}, "must not be negative"),
        (4, {"offsets": ["1"]}, "reach"),
        (5, {"factor": triangle([1], [1, 0])}, "reach"),
        (6, {"cut": [numbers(-1, 2, exponent=-1)]}, "must sum to 0"),
        (6, {"cut": [numbers(-2, 2)]}, "not within the box"),
        (6, {"cut": [numbers(1, -1)]}, "not within the box"),
        (7, {"branch": 2}, "branch must be a whole number from 0 to 1"),
        (8, {"branch": 0}, "kernel 0 cannot be branched on here"),
        (8, {"cuts": [1]}, "a cut must be a whole number from 0 to 0"),
        (8, {"weights": [0]}, "must not all be 0"),
        (8, {"weights": [-1]}, "a weight must be a whole number"),
        (8, {"tau": "-1.4"}, "the tree proves"),
        (9, {"tau": "-1.6"}, "the tree proves"),
    ],
)
def test_what_does_not_hold_is_refused(
    tmp_path: Path, line: int, change: dict[str, Any], message: str
) -> None:
    rows = by_hand()
    rows[line] = {**rows[line], **change} if line != 8 or "branch" not in change else change
    with pytest.raises(ProofError, match=message):
        check(written(tmp_path, rows))


@pytest.mark.parametrize("missing", range(10))
def test_no_line_can_be_left_out(tmp_path: Path, missing: int) -> None:
    rows = by_hand()
    del rows[missing]
    with pytest.raises(ProofError, match=r"Not proved\. Line \d+ of "):
        check(written(tmp_path, rows))


def test_nothing_may_follow(tmp_path: Path) -> None:
    with pytest.raises(ProofError, match="nothing may follow the tree"):
        check(written(tmp_path, [*by_hand(), {}]))


@pytest.mark.parametrize(
    "text", ["", "{", "[]\n", "1\n", "[" * 100_000, '{"format": NaN}\n', "é\n"]
)
def test_a_file_that_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "proof.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ProofError, match="Not proved"):
        check(path)


def test_it_needs_nothing_but_python() -> None:
    """In 400 lines, without a float: the two in the sentence that is printed aside."""
    source = Path(kernelweave_check.__file__)
    tree = ast.parse(source.read_text(encoding="utf-8"))
    imported = {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
        )
    }
    assert {str(name).partition(".")[0] for name in imported} <= sys.stdlib_module_names
    assert "math" not in imported
    assert len(source.read_text(encoding="utf-8").splitlines()) <= 400
    floats = [node for node in ast.walk(tree) if isinstance(getattr(node, "value", None), float)]
    assert floats == []
    alone = subprocess.run(
        [sys.executable, "-I", "-S", str(source)], capture_output=True, text=True, check=True
    )
    assert alone.stderr == ""
