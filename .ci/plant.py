"""Plant a fault in each of a few random modules, and see which tests notice.

Run by ``nox -s plant``, in a checkout without changes: a turned comparison, sign or condition, or a
number one off, in one module at a time, which is written back at the end, also after Ctrl-C. First
come the nearest tests, then, where they pass, those of everything that imports the module.
"""

from __future__ import annotations

import argparse
import ast
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import changed
import workspace

# how each operator is written, and the one that is planted for it, and it for that one
PAIRS: tuple[tuple[type[ast.AST], str, type[ast.AST], str], ...] = (
    (ast.Lt, "<", ast.GtE, ">="),
    (ast.LtE, "<=", ast.Gt, ">"),
    (ast.Eq, "==", ast.NotEq, "!="),
    (ast.And, "and", ast.Or, "or"),
    (ast.Add, "+", ast.Sub, "-"),
    (ast.Mult, "*", ast.Div, "/"),
)
OPERATORS = {kind: (written, other) for kind, written, _, other in PAIRS}
OPERATORS |= {kind: (written, other) for _, other, kind, written in PAIRS}


# a loop without end, or tests that are only slow: nobody knows
UNENDED = "the tests did not end in time"


@dataclass(frozen=True)
class Fault:
    """A text of one line of a file, and what is planted in its place."""

    path: Path
    line: int
    start: int
    before: str
    after: str

    def planted(self, text: str) -> str:
        """Return the file's text with the fault in it."""
        lines = text.splitlines(keepends=True)
        # columns of a syntax tree count bytes
        line = lines[self.line - 1].encode()
        end = self.start + len(self.before.encode())
        lines[self.line - 1] = (line[: self.start] + self.after.encode() + line[end:]).decode()
        return "".join(lines)

    def __str__(self) -> str:
        where = self.path.relative_to(workspace.ROOT).as_posix()
        return f"{where}:{self.line}: {self.before} -> {self.after}"


def faults(path: Path) -> Iterator[Fault]:
    """Yield what can be planted in the functions of a module."""
    text = path.read_text(encoding="utf-8")
    lines = [line.encode() for line in text.splitlines()]

    def between(left: ast.expr, right: ast.expr, operator: ast.AST) -> Iterator[Fault]:
        before, after = OPERATORS.get(type(operator), ("", ""))
        if before and left.end_lineno == right.lineno:
            start = lines[right.lineno - 1].find(
                before.encode(), left.end_col_offset, right.col_offset
            )
            if start >= 0:
                yield Fault(path, right.lineno, start, before, after)

    functions = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))
    for node in (part for each in functions for line in each.body for part in ast.walk(line)):
        if isinstance(node, ast.Compare):
            yield from between(node.left, node.comparators[0], node.ops[0])
        elif isinstance(node, ast.BinOp):
            yield from between(node.left, node.right, node.op)
        elif isinstance(node, ast.BoolOp):
            yield from between(node.values[0], node.values[1], node.op)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield Fault(path, node.lineno, node.col_offset, "not ", "")
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            written = lines[node.lineno - 1][node.col_offset : node.end_col_offset].decode()
            yield Fault(path, node.lineno, node.col_offset, written, f"({written} + 1)")


def drawn(seed: int, number: int) -> list[Fault]:
    """Return a fault in each of some random modules, drawn again from the same seed."""
    state = random.Random(seed)
    modules = sorted(changed.graph_of(workspace.ROOT).modules.values())
    found = {path: sorted(set(faults(path)), key=str) for path in modules}
    chosen = []
    for path in state.sample([path for path in modules if found[path]], number):
        # else most of them would be numbers
        turned = [each for each in found[path] if each.before in dict(OPERATORS.values())]
        chosen.append(state.choice(turned or found[path]))
    return chosen


def noticed(fault: Fault, tests: Sequence[str], limit: float) -> str:
    """Plant a fault, run the tests, write the file back; return how they noticed, if they did."""
    whole = fault.path.read_bytes()
    run = ("pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow and not faults")
    fault.path.write_bytes(fault.planted(whole.decode()).encode())
    try:
        done = subprocess.run(
            (sys.executable, "-m", *run, *tests), capture_output=True, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return UNENDED
    finally:
        fault.path.write_bytes(whole)
    # 5: no test was there to run
    if done.returncode in (0, 5):
        return ""
    words = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return words[0].partition(" - ")[0] if words else f"pytest ended with {done.returncode}"


def main() -> None:
    """Plant, run and print a line for each fault; fail if one was not noticed at all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--number", type=int, default=20, help="modules to plant a fault in")
    parser.add_argument("--limit", type=float, default=900, help="seconds for the tests of one")
    given = parser.parse_args()
    answers = []
    for fault in drawn(given.seed, given.number):
        print(fault, flush=True)
        begun = time.monotonic()
        how = noticed(fault, changed.nearest_tests([fault.path]), given.limit)
        which = "nearest" if how else "others"
        how = how or noticed(fault, changed.needed_tests([fault.path]), given.limit)
        answers.append(how)
        said = f"{which}: {how}" if how else "NOT NOTICED"
        print(f"    {said}, {time.monotonic() - begun:.0f} s", flush=True)
    unended, missed = answers.count(UNENDED), answers.count("")
    print(f"{given.number - unended - missed} of {given.number} were noticed, {unended} unknown")
    sys.exit(unended + missed > 0)


if __name__ == "__main__":
    main()
