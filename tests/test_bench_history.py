"""The site of the benchmarks marks the commit at which a figure became worse for good."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from workspace import ROOT

pytest.importorskip("asv", reason="asv is not installed: it is in the group bench")
NAME = "planted.track_cost"
MACHINE = {"arch": "x", "cpu": "x", "machine": "ci", "num_cpu": "1", "os": "x", "ram": "1"}


def commits(home: Path, count: int) -> list[str]:
    """Return the hashes of some empty commits, an hour apart."""

    def git(*words: str, date: str = "") -> str:
        person = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
        when = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date} if date else {}
        command = ["git", *person, *words]
        run = subprocess.run(
            command, cwd=home, env={"PATH": "/usr/bin:/bin", **when}, capture_output=True, text=True
        )
        assert run.returncode == 0, run.stderr
        return run.stdout.strip()

    git("init", "-q", "-b", "main")
    found = []
    for i in range(count):
        day, hour = divmod(i, 24)
        git(
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            str(i),
            date=f"2026-01-{day + 1:02d}T{hour:02d}:00Z",
        )
        found.append(git("rev-parse", "HEAD"))
    return found


def write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def published(home: Path, costs: list[float]) -> list[Any]:
    """Return the regressions that the site of one benchmark lists, with our configuration."""
    config = json.loads((ROOT / "asv_bench" / "asv.conf.json").read_text())
    write(home / "asv.conf.json", {**config, "repo": str(home), "branches": ["main"]})
    results = home / config["results_dir"]
    write(results / "ci" / "machine.json", {**MACHINE, "version": 1})
    about = {"name": NAME, "type": "track", "unit": "", "code": "", "timeout": 60, "version": "1"}
    one = {**about, "params": [], "param_names": []}
    write(results / "benchmarks.json", {NAME: one, "version": 2})
    for i, (commit, cost) in enumerate(zip(commits(home, len(costs)), costs, strict=True)):
        found = {
            "commit_hash": commit,
            "env_name": "env",
            "date": 1767225600000 + 3600000 * i,
            "params": MACHINE,
            "python": "3.12",
            "requirements": {},
            "env_vars": {},
            "result_columns": ["result", "params", "version"],
            "results": {NAME: [[cost], [], "1"]},
            "durations": {},
            "version": 2,
        }
        write(results / "ci" / f"{commit[:8]}-env.json", found)
    command = [sys.executable, "-m", "asv", "publish", "--no-pull", "--config", "asv.conf.json"]
    run = subprocess.run(command, cwd=home, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    site = home / config["html_dir"]
    assert (site / "index.html").is_file()
    return list(json.loads((site / "regressions.json").read_text())["regressions"])


@pytest.mark.parametrize(("rise", "count"), [(1.0, 0), (1.02, 0), (1.2, 1)])
def test_a_lasting_rise_is_marked(tmp_path: Path, rise: float, count: int) -> None:
    costs = [100.0 + 0.1 * (i % 3) for i in range(12)]
    costs += [rise * cost for cost in costs]
    found = published(tmp_path, costs)
    assert len(found) == count
    assert all(each[0] == NAME for each in found)
