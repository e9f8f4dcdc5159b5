"""What a change needs tested: no less than what imports it, and less than everything."""

from __future__ import annotations

import subprocess
from pathlib import Path

import changed
import pytest
from workspace import ROOT, members

SOURCE = "plugins/evidence/src/kernelweave/evidence"


def needed(*names: str) -> list[str]:
    paths = [ROOT / name for name in names]
    assert all(path.exists() for path in paths)
    return changed.needed_tests(paths)


def test_a_module_needs_the_tests_that_reach_it() -> None:
    """By name, through a package that loads names on first use, and through other modules."""
    found = needed(f"{SOURCE}/monotone/curves.py")
    assert "plugins/evidence/tests/test_monotone.py" in found
    assert "plugins/workbench/tests/test_fit_predict.py" in found
    assert not [name for name in found if name.startswith("packages/qp-smo")]
    assert len(found) < len(changed.needed_tests([ROOT / "pyproject.toml"]))
    # which no test names: the registry does, and estimators name what it registers
    found = needed("plugins/ridge-mkl/src/kernelweave/ridge_mkl/projected_newton.py")
    assert "plugins/ridge-mkl/tests/test_estimators.py" in found
    assert "plugins/ridge-mkl/tests/test_conformance.py" in found
    assert "tests/test_whole_models.py" in found
    assert 2 * len(found) < len(changed.needed_tests([ROOT / "pyproject.toml"]))


def test_helpers_and_fixtures_need_the_tests_beside_them() -> None:
    found = needed("plugins/evidence/tests/large_tables.py")
    assert "plugins/evidence/tests/test_large_division.py" in found
    assert "plugins/evidence/tests/test_monotone.py" not in found
    found = needed("plugins/check/tests/test_check.py", "packages/qp-smo/tests/test_svc.py")
    own = {"plugins/check/tests/test_check.py", "packages/qp-smo/tests/test_svc.py"}
    assert own <= set(found)
    whole = changed.needed_tests([ROOT / "conftest.py"])
    assert whole == changed.needed_tests([ROOT / "noxfile.py"])


def test_pages_and_golden_files_need_those_that_read_them() -> None:
    found = needed("docs/promises.md")
    assert "tests/test_docs_promises.py" in found
    assert not [name for name in found if name.startswith("plugins/")]
    found = needed("tests/golden/tk_golden.json")
    name = "packages/kernels-core/tests/families/test_families_tessellated_golden.py"
    assert name in found


def test_every_module_is_reached_by_a_test_of_its_member() -> None:
    """Else the graph lacks an edge, or the module its tests."""
    graph = changed.graph_of(ROOT)
    for member in members().values():
        own = {path for path in graph.tests if member.folder in path.parents}
        modules = [
            path for path in member.files() if path.name not in {"_plugin.py", "__main__.py"}
        ]
        lost = [path for path in modules if own.isdisjoint(graph.distances([path]))]
        assert lost == [], member.name


def test_the_nearest_come_first_and_are_few() -> None:
    curves = f"{SOURCE}/monotone/curves.py"
    near = changed.nearest_tests([ROOT / curves])
    assert near == ["plugins/evidence/tests/test_monotone.py"]
    assert set(needed(curves)[: len(near)]) == set(near)
    # its own member's alone, though others are as near
    near = changed.nearest_tests([ROOT / "packages/qp-smo/src/kernelweave/qp_smo/problem.py"])
    assert near
    assert all(name.startswith("packages/qp-smo/tests/") for name in near)
    # of each file that changed
    both = changed.nearest_tests([ROOT / curves, ROOT / "docs/promises.md"])
    assert {"plugins/evidence/tests/test_monotone.py", "tests/test_docs_promises.py"} <= set(both)


def test_changes_are_those_since_the_branch_left_main(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        given = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        subprocess.run(("git", *given, *words), cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    for name in ("kept", "edited", "moved"):
        (tmp_path / name).write_text(f"{name}\n" * 9)
    git("add", ".")
    git("commit", "-qm", "one")
    git("checkout", "-qb", "branch")
    (tmp_path / "moved").rename(tmp_path / "here")
    git("add", ".")
    git("commit", "-qm", "two")
    (tmp_path / "edited").write_text("other\n")
    (tmp_path / "new").touch()
    assert changed.changed_files(tmp_path) == [
        tmp_path / name for name in ("edited", "here", "moved", "new")
    ]
    assert changed.changed_files(tmp_path, "HEAD") == [tmp_path / "edited", tmp_path / "new"]
    with pytest.raises(ValueError, match="nowhere is no commit"):
        changed.changed_files(tmp_path, "nowhere")
