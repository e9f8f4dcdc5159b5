"""The table of coverage notices a member that falls below what is promised."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import coverage_by_member
import pytest
from workspace import ROOT, shared_tests


def report(path: Path, name: str, lines: int, branches: int) -> str:
    summary = {
        "num_statements": 100,
        "covered_lines": lines,
        "num_branches": 100,
        "covered_branches": branches,
    }
    file = f"packages/qp-smo/src/kernelweave/qp_smo/{name}"
    path.write_text(json.dumps({"files": {file: {"summary": summary}}}))
    return str(path)


@pytest.mark.parametrize(("lines", "branches", "below"), [(92, 85, 0), (91, 100, 1), (100, 84, 1)])
def test_limits(
    lines: int, branches: int, below: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = coverage_by_member.main([report(tmp_path / "one", "engine.py", lines, branches)])
    assert found == below
    said = capsys.readouterr().out
    assert ("above both bars" in said) == (below == 0)
    assert ("1 below" in said) == bool(below)


def test_only_the_members_in_question_are_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    low = report(tmp_path / "one", "engine.py", 10, 10)
    qp_smo, other = str(ROOT / "packages" / "qp-smo" / "tests"), str(ROOT / "plugins" / "template")
    assert coverage_by_member.main([low, "--of", qp_smo]) == 1
    assert coverage_by_member.main([low, "--of", other]) == 0
    assert coverage_by_member.main([low, "--of"]) == 1
    assert "qp-smo" in capsys.readouterr().out


def test_a_member_that_nobody_imported_is_not_whole(tmp_path: Path) -> None:
    empty = {"num_statements": 0, "covered_lines": 0, "num_branches": 0, "covered_branches": 0}
    name = "plugins/template/src/kernelweave_template/__init__.py"
    (tmp_path / "one").write_text(json.dumps({"files": {name: {"summary": empty}}}))
    assert coverage_by_member.rows(coverage_by_member.files_of(tmp_path / "one")) == [
        ("template", 0.0, 0.0)
    ]


def test_compiled_files_come_from_the_second_report(tmp_path: Path) -> None:
    one = report(tmp_path / "one", "engine.py", 100, 100)
    two = report(tmp_path / "two", "_njit_smo.py", 90, 80)
    files = {**coverage_by_member.files_of(Path(one)), **coverage_by_member.files_of(Path(two))}
    assert coverage_by_member.rows(files) == [("qp-smo", 95.0, 90.0)]


def test_files_that_ask_what_is_installed_run_with_every_member(tmp_path: Path) -> None:
    tests = tmp_path / "packages" / "one" / "tests"
    tests.mkdir(parents=True)
    (tests.parent / "pyproject.toml").write_text('[project]\nname = "one"\n')
    (tests / "test_own.py").write_text("def test_alone(): ...\n")
    (tests / "test_some.py").write_text('pytest.importorskip("kernelweave.qp_smo")\n')
    (tests / "test_more.py").write_text('if find_spec("pandas"): ...\n')
    folder = "packages/one/tests"
    wanted = ["tests", f"{folder}/test_more.py", f"{folder}/test_some.py"]
    assert shared_tests(tmp_path) == wanted


def test_the_tests_without_the_compiler_exist() -> None:
    (names,) = (
        eval(compile(ast.Expression(node.value), "noxfile.py", "eval"))
        for node in ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "INTERPRETED"
    )
    for name in names:
        path, _, test = name.partition("::")
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert not test or test in defined, name
