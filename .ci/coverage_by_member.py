"""Lines and branches that the tests reach, one row per member; fails below what is promised.

Usage: ``python .ci/coverage_by_member.py DATA.json [INTERPRETED.json] [--of FOLDER …]``, both from
``coverage json``. Compiled files, which a tracer cannot see, are counted from the second. With
``--of`` only the members in or above those folders are judged.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from workspace import ROOT, members

LINES, BRANCHES = 92.0, 85.0
COUNTS = ("num_statements", "covered_lines", "num_branches", "covered_branches")


def files_of(report: Path) -> dict[str, Counter[str]]:
    """Return the counts of each file of a report, by its path in the checkout."""
    found = {}
    for name, entry in json.loads(report.read_text(encoding="utf-8"))["files"].items():
        path = Path(name)
        inside = path.relative_to(ROOT) if path.is_absolute() else path
        found[inside.as_posix()] = Counter({key: entry["summary"][key] for key in COUNTS})
    return found


def share(part: int, whole: int) -> float:
    """Return a percentage; nothing at all is whole."""
    return 100.0 if whole == 0 else 100.0 * part / whole


def rows(files: dict[str, Counter[str]]) -> list[tuple[str, float, float]]:
    """Return (member, percent of lines, percent of branches); 0 where nothing was imported."""
    found = []
    for name, member in members().items():
        folder = member.folder.relative_to(ROOT).as_posix() + "/src/"
        own = [counts for path, counts in files.items() if path.startswith(folder)]
        if own:
            total = sum(own, Counter())
            seen = total["num_statements"] > 0
            lines = share(total["covered_lines"], total["num_statements"]) if seen else 0.0
            branches = share(total["covered_branches"], total["num_branches"]) if seen else 0.0
            found.append((name, lines, branches))
    return found


def judged(folders: list[str]) -> set[str]:
    """Return the names of the members that lie in or above the folders; of all, without any."""
    chosen = [Path(folder.partition("::")[0]).resolve() for folder in folders]
    return {
        name
        for name, member in members().items()
        if not chosen
        or any(
            member.folder.is_relative_to(path) or path.is_relative_to(member.folder)
            for path in chosen
        )
    }


def main(arguments: list[str]) -> int:
    """Print the table and return how many members are below a limit."""
    at = arguments.index("--of") if "--of" in arguments else len(arguments)
    reports, names = arguments[:at], judged(arguments[at + 1 :])
    files: dict[str, Counter[str]] = {}
    for report in reports:
        files |= files_of(Path(report))
    below = 0
    print(f"{'member':<16}{'lines':>8}{'bar':>6}{'branches':>10}{'bar':>6}")
    for name, lines, branches in rows(files):
        if name not in names:
            continue
        short = lines < LINES or branches < BRANCHES
        below += short
        end = "   below" if short else ""
        print(f"{name:<16}{lines:>8.1f}{LINES:>6g}{branches:>10.1f}{BRANCHES:>6g}{end}")
    print(f"{below} below" if below else "every member is above both bars")
    return below


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
