"""The checker on a problem whose optimum is known by hand, and on files that are none."""

from __future__ import annotations

import ast
import json
import random
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import kernelweave_check
import pytest
from kernelweave_check import ProofError, check, main, shown


def numbers(*values: int, exponent: int = 0) -> dict[str, Any]:
    return {"values": list(values), "exponent": exponent}


def triangle(*rows: list[int]) -> dict[str, Any]:
    return {"exponent": 0, "rows": list(rows)}


def by_hand() -> list[dict[str, Any]]:
    """Two points x = ∓1 with labels ∓1, kernels xy and 1 + xy, C = 1, λ = 1, one of them.

    u = (−t, t) gives 2t − ½·4t²: 1/2 at t = 1/2 for both kernels, and the penalty 1: 3/2.
    """
    head = {"format": kernelweave_check.FORMAT, "set": "sparse", "n_rows": 2, "n_kernels": 2}
    head |= {"k0": 1, "lambda": "1", "views": [0, 0], "n_views": 1, "degree": 1, "intercept": 1}
    head |= {"epsilon": "0", "lower": "1.5", "upper": "1.5"}
    task = {"linear": numbers(-1, 1), "low": numbers(-1, 0), "high": numbers(0, 1)}
    task |= {"curvature": numbers(0, 0)}
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


def powers_by_hand() -> list[dict[str, Any]]:
    """Ridge on the same points with ρ = 2, kernels xy and I, weights that sum to 1.

    u = (−t, t) gives 2t − 2t² − ½·4t²: 1/4 at t = 1/4 for the first kernel, more for the second.
    """
    head = {"format": kernelweave_check.FORMAT, "set": "powers", "n_rows": 2, "n_kernels": 2}
    head |= {"norm": "1", "radius": "1", "center": numbers(0, 0), "beta": "0", "degree": 1}
    head |= {"intercept": 1, "epsilon": "0", "lower": "0.25", "upper": "0.25"}
    free = {"exponent": 0, "values": [None, None]}
    task = {"linear": numbers(-1, 1), "low": free, "high": free, "curvature": numbers(2, 2)}
    u = numbers(-1, 1, exponent=-2)
    return [
        head,
        {"task": task},
        {"kernel": triangle([1], [-1, 1])},
        {"kernel": triangle([1], [0, 1])},
        {"weights": numbers(1, 0), "points": [u], "offsets": ["0"]},
        {"factor": triangle([1], [-1, 0])},
        {"cut": [u]},
        {"roots": numbers(1, 1)},
    ]


def integrals_by_hand() -> list[dict[str, Any]]:
    """Samples 1/4 and 3/4 in [0, 1], degree 0, C = 1: 1, by P = [1, −1; −1, 1] and u = (−1, 1).

    With them k(x, y) = ∫ ±1 dz = 1 − 2|x − y|, and D = ½[1, −1; −1, 1].
    """
    head = {"format": kernelweave_check.FORMAT, "set": "integrals", "n_rows": 2, "n_kernels": 1}
    head |= {"degree": 0, "z_degree": 0, "min_eig": "0", "exponent": -2, "box": [[0], [4]]}
    head |= {"intercept": 1, "epsilon": "0", "lower": "0.99999999", "upper": "1"}
    task = {"linear": numbers(-1, 1), "low": numbers(-1, 0), "high": numbers(0, 1)}
    task |= {"curvature": numbers(0, 0)}
    u = numbers(-1, 1)
    return [
        head,
        {"task": task},
        {"sample": [1]},
        {"sample": [3]},
        {"columns": [numbers(1, -1)], "points": [u], "offsets": ["0"]},
        {"cut": [u]},
        # the factor of I − D is √½(1, 0; 1, 0)
        {"largest": "1", "factor": {"exponent": -30, "rows": [[759250125], [759250125, 0]]}},
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
    said = capsys.readouterr().out
    assert said.startswith(
        "Proved for support vector classification, C 1 (tasks 1, format kernelweave-proof 1, set "
        "sparse, n_rows 2, n_kernels 2, k0 1, lambda 1, degree 1, intercept 1, epsilon 0): the "
        "optimum lies between 1.5 and 1.5, which the kernel in the file reaches (relative gap at "
        "most 0). Not proved: that its data, SHA-256 "
    )
    found = check(written(tmp_path, powers_by_hand()))
    assert (found.lower, found.upper, found.n_leaves) == (0.25, 0.25, 1)
    assert "for ridge regression, lambda 2 (tasks 1, " in found.sentence
    assert "norm 1, radius 1, center [0, 0], beta 0, degree 1" in found.sentence
    found = check(written(tmp_path, integrals_by_hand()))
    assert (found.side, found.upper) == (2, 1)
    assert "z_degree 0, min_eig 0, exponent -2, box [[0], [4]]" in found.sentence


def test_bounds_are_printed_outwards(tmp_path: Path) -> None:
    """Twelve digits of a bound may be more than it, or less: what is printed is proved."""
    rows = by_hand()
    rows[0] |= {"lower": "1.49999999999999999", "upper": "1.50000000000000001"}
    assert "between 1.49999999999 and 1.50000000001, " in check(written(tmp_path, rows)).sentence
    rows[0] |= {"lower": "1.4", "upper": "1.5"}
    # 1/15 in two digits, upwards
    assert "relative gap at most 0.067)" in check(written(tmp_path, rows)).sentence


def test_numbers_are_shown_as_they_are_rounded() -> None:
    """Down, up, and in as few digits as it takes."""
    rng = random.Random(0)
    for _ in range(2000):
        value = Fraction(rng.randint(-(10**18), 10**18), rng.randint(1, 10 ** rng.randint(1, 30)))
        for digits in (2, 12):
            down, up = (shown(value, f"ROUND_{each}", digits) for each in ("FLOOR", "CEILING"))
            assert Fraction(down) <= value <= Fraction(up)
            assert Fraction(up) - Fraction(down) <= abs(value) * Fraction(10) ** (1 - digits)
    for value, text in ((100.0, "100"), (0.3, "0.3"), (0.0, "0"), (1.2e15, "1200000000000000")):
        assert shown(Fraction(value)) == text


def test_the_learner_is_read_off_the_tasks(tmp_path: Path) -> None:
    """The weights of rows are a range of C, and what is none of the learners is said so."""
    rows = by_hand()
    rows[1]["task"]["high"] = numbers(0, 2)
    assert "support vector classification, C 1 to 2 (" in check(written(tmp_path, rows)).sentence
    rows[1]["task"] |= {"low": numbers(-2, -1), "high": numbers(2, 1)}
    assert "support vector regression, C 1 to 2 (" in check(written(tmp_path, rows)).sentence
    rows[1]["task"] |= {"low": numbers(-2, -1), "high": numbers(2, 3)}
    said = check(written(tmp_path, rows)).sentence
    assert "support vector regression, C 2, maxima over boxes, size 3 (" in said
    rows[0]["views"] = [7, 7]
    assert "views [7, 7], n_views 1, " in check(written(tmp_path, rows)).sentence
    rows = powers_by_hand()
    half = {"exponent": 0, "values": [None, 0]}, {"exponent": 0, "values": [0, None]}
    rows[1]["task"] |= dict(zip(("low", "high"), half, strict=True))
    said = check(written(tmp_path, rows)).sentence
    assert "squared hinge classification, 1/2C 2 (" in said


# moves the cursor up and erases a line; digits of Bengali, which are digits to Unicode
FOREIGN = ("\x1b[1A\x1b[2KProved: all.", "\u09e7", "1\u09e7", "1_0", " 1", "1\n")


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Any:
    """Yield the path to each number and text."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, each in items:
            yield from leaves(each, (*path, key))
    else:
        yield path


@pytest.mark.parametrize("by", [by_hand, powers_by_hand, integrals_by_hand])
@pytest.mark.parametrize("foreign", FOREIGN)
def test_no_text_is_a_number_and_none_is_printed(tmp_path: Path, by: Any, foreign: str) -> None:
    for path in list(leaves(by())):
        rows: Any = by()
        at = rows
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = foreign
        with pytest.raises(ProofError) as caught:
            check(written(tmp_path, rows))
        assert str(caught.value).isprintable()
        assert str(caught.value).isascii()


def test_a_name_that_is_not_of_a_set_is_not_printed(tmp_path: Path) -> None:
    rows = by_hand()
    rows[0]["\x1b[2K"] = rows[0].pop("n_views")
    with pytest.raises(ProofError) as caught:
        check(written(tmp_path, rows))
    assert str(caught.value).isprintable()


def test_a_file_without_a_task_proves_nothing(tmp_path: Path) -> None:
    """An empty sum is 0, and so was the optimum of everything."""
    rows = by_hand()
    del rows[1]
    rows[0] |= {"lambda": "0", "lower": "0", "upper": "0"}
    rows[3]["points"], rows[3]["offsets"], rows[5]["cut"] = [], [], []
    rows[7:] = [{"cuts": [0], "weights": [1], "tau": "0"}] * 2
    with pytest.raises(ProofError, match="tasks, kernels or samples are missing"):
        check(written(tmp_path, rows))


def at_most(count: int, function: Any) -> Any:
    """Return a function whose iterators may be asked so many times."""

    def limited(*arguments: Any) -> Any:
        for i, each in enumerate(function(*arguments)):
            assert i <= count, "more work than the file is worth"
            yield each

    return limited


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"degree": 9, "z_degree": 0}, "there may be 100000 monomials at most"),
        ({"degree": 9, "z_degree": 9}, "there may be 100000 monomials at most"),
        ({"degree": 3}, "the file is too short for a factor of this degree"),
    ],
)
def test_a_forged_degree_is_refused_before_its_monomials_are_listed(
    tmp_path: Path, monkeypatch: Any, change: dict[str, Any], message: str
) -> None:
    name = "combinations_with_replacement"
    limited = at_most(kernelweave_check.MOST, getattr(kernelweave_check, name))
    monkeypatch.setattr(kernelweave_check, name, limited)
    rows = integrals_by_hand()
    rows[0] |= {"n_kernels": 20, "box": [[0] * 20, [4] * 20], **change}
    with pytest.raises(ProofError, match=message):
        check(written(tmp_path, rows))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_kernels": 20, "degree": 9, "norm": "9"}, "there may be 100000 products of kernels"),
        ({"norm": "999"}, "no set of kernels"),
        ({"norm": "100/99"}, "norm must be a text"),
    ],
)
def test_a_forged_power_is_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    rows = powers_by_hand()
    rows[0] |= {"center": numbers(*[0] * change.get("n_kernels", 2)), **change}
    with pytest.raises(ProofError, match=message):
        check(written(tmp_path, rows))


@pytest.mark.skipif(sys.platform == "win32", reason="needs /dev/zero")
def test_a_device_is_not_read() -> None:
    with pytest.raises(ProofError, match="no file on a disk"):
        check("/dev/zero")


@pytest.mark.parametrize(
    ("line", "change", "message"),
    [
        (0, {"lower": "1.5000001"}, "the cuts prove 1.5, not 1.5000001"),
        (0, {"upper": "1.4999999"}, "the kernel reaches 1.5, not 1.4999999"),
        (0, {"lambda": "0.99"}, "the cuts prove"),
        (0, {"lambda": "-1"}, "no set of kernels"),
        (0, {"lambda": "1e9999"}, "must be a text"),
        (0, {"k0": 0}, "k0 must be a whole number"),
        (0, {"k0": True}, "k0 must be a whole number"),
        (0, {"k0": 1.0}, "invalid literal"),
        (0, {"views": [0, 1], "n_views": 2}, "the cuts prove"),
        (0, {"n_rows": 3}, "must have 3 whole numbers"),
        (0, {"format": "kernelweave-proof 0"}, "this is no proof file"),
        (0, {"set": "other"}, "the set must be"),
        (0, {"epsilon": "-1"}, "no set of kernels"),
        (0, {"n_rows": 2, "of your": "data"}, "no set of kernels"),
        (1, {"task": {}}, "linear"),
        (2, {"kernel": triangle([1], [-1, 2])}, "reach"),
        (2, {"kernel": {"exponent": 0, "rows": [[1], ["1", 0]]}}, "whole numbers"),
        (2, {"kernel": {"exponent": 0, "rows": [[1], [-1, None]]}}, "whole numbers"),
        (2, {"kernel": {"exponent": 0, "rows": [[1, 0], [-1, 1]]}}, "rows of 1 to 2"),
        (4, {"weights": numbers(1, 1)}, "sum to 1"),
        (4, {"weights": numbers(1, 1, exponent=-1)}, "fewer may be positive"),
        (4, {"weights": numbers(2, -1)}, "must not be negative"),
        (4, {"offsets": ["1"]}, "reach"),
        (4, {"points": []}, "zip"),
        (5, {"factor": triangle([1], [1, 0])}, "reach"),
        (6, {"cut": [numbers(-1, 2, exponent=-1)]}, "must sum to 0"),
        (6, {"cut": [numbers(-2, 2)]}, "not within the box"),
        (6, {"cut": [numbers(1, -1)]}, "not within the box"),
        (7, {"branch": 2}, "branch must be a whole number from 0 to 1"),
        (8, {"branch": 0}, "kernel 0 cannot be branched on here"),
        (8, {"cuts": [1]}, "out of range"),
        (8, {"weights": [0]}, "a weight of a leaf"),
        (8, {"weights": [-1]}, "a weight of a leaf"),
        (8, {"tau": "-1.4"}, "the cuts prove"),
        (9, {"tau": "-1.6"}, "the cuts prove"),
    ],
)
def test_what_does_not_hold_is_refused(
    tmp_path: Path, line: int, change: dict[str, Any], message: str
) -> None:
    rows = by_hand()
    rows[line] = {**rows[line], **change} if line != 8 or "branch" not in change else change
    with pytest.raises(ProofError, match=message):
        check(written(tmp_path, rows))


@pytest.mark.parametrize(
    ("line", "change", "message"),
    [
        (0, {"lower": "0.2500001"}, "the cuts prove 0.25, not"),
        (0, {"upper": "0.2499999"}, "the kernel reaches 0.25, not"),
        (0, {"norm": "2"}, "the cuts prove"),
        (0, {"norm": "1/2"}, "no set of kernels"),
        (0, {"degree": 2}, "no set of kernels"),
        (0, {"radius": "0.5"}, "the kernel reaches"),
        (0, {"radius": "1.5"}, "the cuts prove"),
        (0, {"center": numbers(1, 0)}, "NoneType"),
        (0, {"center": numbers(-1, 0)}, "no set of kernels"),
        (0, {"beta": "0.05"}, "the kernel reaches"),
        (0, {"beta": "-1"}, "no set of kernels"),
        (2, {"kernel": triangle([2], [-2, 2])}, "NoneType"),
        (3, {"kernel": triangle([4], [0, 4])}, "the cuts prove"),
        (4, {"weights": numbers(0, 1)}, "the kernel reaches"),
        (4, {"weights": numbers(1, 1)}, "not in the ball"),
        (4, {"weights": numbers(2, -1)}, "must not be negative"),
        (5, {"factor": triangle([2], [-1, 0])}, "NoneType"),
        (6, {"cut": [numbers(-1, 1, exponent=-1)]}, "the cuts prove"),
        (6, {"cut": [numbers(-1, 2, exponent=-2)]}, "must sum to 0"),
        (7, {"roots": numbers(1, 0)}, "must be positive"),
        (7, {"roots": numbers(1)}, "must have 2 whole numbers"),
    ],
)
def test_powers_that_do_not_hold_are_refused(
    tmp_path: Path, line: int, change: dict[str, Any], message: str
) -> None:
    rows = powers_by_hand()
    rows[line] |= change
    with pytest.raises(ProofError, match=message):
        check(written(tmp_path, rows))


def test_without_an_intercept_there_is_no_offset(tmp_path: Path) -> None:
    rows = powers_by_hand()
    rows[0]["intercept"], rows[4]["offsets"] = 0, ["1"]
    with pytest.raises(ProofError, match="the offset must be 0"):
        check(written(tmp_path, rows))


@pytest.mark.parametrize(
    ("line", "change", "message"),
    [
        (0, {"lower": "1.0000001"}, "the cuts prove"),
        (0, {"upper": "0.9999999"}, "the kernel reaches 1, not"),
        (0, {"box": [[2], [4]]}, "outside the box"),
        (0, {"box": [[4], [4]]}, "no set of kernels"),
        (0, {"min_eig": "0.5"}, "the trace of P"),
        (0, {"z_degree": -1}, "z_degree must be"),
        (2, {"sample": [2]}, "the kernel reaches"),
        (2, {"sample": [0]}, "the kernel reaches"),
        (2, {"sample": [1, 1]}, "longer"),
        (4, {"columns": [numbers(1, 1)]}, "the kernel reaches"),
        (4, {"columns": [numbers(2, -1)]}, "the trace of P"),
        (5, {"cut": [numbers(-2, 2)]}, "not within the box"),
        (5, {"cut": [numbers(-1, 1, exponent=-1)]}, "the cuts prove"),
        (6, {"largest": "1.1"}, "the cuts prove"),
        (6, {"factor": {"exponent": 0, "rows": [[1], [1, 0]]}}, "the cuts prove"),
    ],
)
def test_integrals_that_do_not_hold_are_refused(
    tmp_path: Path, line: int, change: dict[str, Any], message: str
) -> None:
    rows = integrals_by_hand()
    rows[line] |= change
    with pytest.raises(ProofError, match=message):
        check(written(tmp_path, rows))


@pytest.mark.parametrize("missing", range(10))
def test_no_line_can_be_left_out(tmp_path: Path, missing: int) -> None:
    rows = by_hand()
    del rows[missing]
    with pytest.raises(ProofError, match=r"Not proved\. Line \d+ of "):
        check(written(tmp_path, rows))


def test_nothing_may_follow(tmp_path: Path) -> None:
    with pytest.raises(ProofError, match="nothing may follow the proof"):
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
    """In 400 lines, without a float."""
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
    assert "float" not in {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    alone = subprocess.run(
        [sys.executable, "-I", "-S", str(source)], capture_output=True, text=True, check=True
    )
    assert alone.stderr == ""
