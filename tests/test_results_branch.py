"""What benchmarks measured stays on a branch of the repository, commit after commit."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from history import History


def write(path: Path, value: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def git(*words: str, cwd: Path) -> str:
    person = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    return subprocess.check_output(("git", *person, *words), cwd=cwd, text=True).strip()


def test_results_are_kept_on_a_branch_beside_the_code(tmp_path: Path) -> None:
    """Of two checkouts each adds to what the other measured; neither is changed by it."""
    git("init", "-q", "--bare", "-b", "main", "origin", cwd=tmp_path)
    checkouts = []
    for name in ("one", "other"):
        git("clone", "-q", "origin", name, cwd=tmp_path)
        root = tmp_path / name
        if name == "one":
            (root / ".gitignore").write_text("results/\n")
            git("add", "-A", cwd=root)
            git("commit", "-q", "-m", "code", cwd=root)
            git("push", "-q", "origin", "HEAD:main", cwd=root)
        checkouts.append(History(root, root / "results"))
    one, other = checkouts
    one.fetch()
    assert not any(one.results.iterdir())
    write(one.results / "ci" / "a.json", 1)
    assert one.push("first")
    assert not one.push("nothing new")
    other.fetch()
    assert json.loads((other.results / "ci" / "a.json").read_text()) == 1
    write(other.results / "ci" / "b.json", 2)
    assert other.push("second")
    one.fetch()
    assert json.loads((one.results / "ci" / "b.json").read_text()) == 2
    log = git("log", "--format=%s", one.branch, cwd=tmp_path / "origin")
    assert log.split() == ["second", "first"]
    listed = git("ls-tree", "-r", "--name-only", one.branch, cwd=tmp_path / "origin")
    assert listed.split() == ["ci/a.json", "ci/b.json"]
    for each in checkouts:
        assert git("status", "--porcelain", "--untracked-files=all", cwd=each.root) == ""
