"""``python -m gate counts FILE``, ``instructions FILE``, ``compare OLD NEW`` or ``exponents``.

Exits 1 if something is worse.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from kernelweave.kernels_core import algorithms

from . import compare, counts, exponents, instructions


def main() -> int:
    """Run one part of the gate."""
    parser = argparse.ArgumentParser(prog="gate", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("counts", "instructions"):
        commands.add_parser(name).add_argument("file", type=Path)
    both = commands.add_parser("compare")
    both.add_argument("before", type=Path)
    both.add_argument("after", type=Path)
    commands.add_parser("exponents")
    chosen = parser.parse_args()
    if chosen.command == "counts":
        chosen.file.write_text(json.dumps(counts.all_counts(), indent=1))
        return 0
    if chosen.command == "instructions":
        found = instructions.all_counts() if instructions.is_available() else {}
        chosen.file.write_text(json.dumps(found, indent=1))
        sys.stdout.write(f"{len(found)} fits counted\n" if found else f"{instructions.ABSENT}\n")
        return 0
    if chosen.command == "compare":
        return _compare(chosen.before, chosen.after)
    return _exponents()


def _compare(before: Path, after: Path) -> int:
    old, new = (json.loads(path.read_text()) for path in (before, after))
    worse = compare.regressions(old, new)
    for each in worse:
        sys.stdout.write(f"worse: {each}\n")
    shared = len(set(new) & set(old))
    sys.stdout.write(f"{len(new)} problems, {shared} in both, {len(worse)} counts worse\n")
    return 1 if worse else 0


def _exponents() -> int:
    undeclared = [spec.name for spec in algorithms().values() if "m" not in spec.scaling]
    for name in undeclared:
        sys.stdout.write(f"no scaling in m is declared: {name}\n")
    wrong = len(undeclared)
    for spec in algorithms().values():
        for found in exponents.growths(spec):
            wrong += found.is_too_steep or found.is_too_flat
            sys.stdout.write(f"{found.verdict}: {found}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
