"""Guards on compiled code: closed files, cached, compiled on first call and never at import.

A cached njit function keeps the old code of a callee from another file, so a file of compiled
code may use nothing of the project but itself.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from pathlib import Path

import pytest
from workspace import ROOT, members

COMPILERS = {"njit", "jit", "vectorize", "guvectorize", "cfunc", "stencil", "generated_jit"}
FORBIDDEN = {"jitclass", "overload", "vectorize", "guvectorize", "generated_jit", "jit"}
# numba's njit, with a cache that may be damaged
OWN = ("kernelweave.kernels_core.compiled", "compiled")
OUTSIDE = {"__future__", "numba", "numpy", "math", "cmath", "typing", "collections", "llvmlite"}


def last_name(node: ast.expr) -> str:
    """Return ``c`` of ``a.b.c(...)``, or an empty string."""
    target = node.func if isinstance(node, ast.Call) else node
    if isinstance(target, ast.Attribute):
        return target.attr
    return target.id if isinstance(target, ast.Name) else ""


def is_numba(module: str) -> bool:
    """Whether compilers come from a module."""
    return module.partition(".")[0] == "numba" or module in OWN


def numba_names(tree: ast.Module) -> set[str]:
    """Return the names under which the file knows numba and what it imported from numba."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {
                (alias.asname or alias.name).partition(".")[0]
                for alias in node.names
                if alias.name.partition(".")[0] == "numba"
            }
        elif isinstance(node, ast.ImportFrom) and is_numba(node.module or ""):
            names |= {alias.asname or alias.name for alias in node.names}
    return names


def is_compiler(node: ast.expr, known: set[str]) -> bool:
    """Whether an expression is numba's ``njit`` or a relative, called or not."""
    target = node.func if isinstance(node, ast.Call) else node
    while isinstance(target, ast.Attribute):
        target = target.value
    root = target.id if isinstance(target, ast.Name) else ""
    return root in known and last_name(node) in COMPILERS | FORBIDDEN


def imported_elsewhere(tree: ast.Module) -> dict[str, str]:
    """Return the names that a file imports from anything but numpy, numba and the language."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] not in OUTSIDE:
                    found[(alias.asname or alias.name).partition(".")[0]] = alias.name
        elif isinstance(node, ast.ImportFrom):
            source = "." * node.level + (node.module or "")
            if node.level or source.partition(".")[0] not in OUTSIDE:
                found |= {alias.asname or alias.name: source for alias in node.names}
    return found


def shared_options(tree: ast.Module) -> dict[str, dict[str, ast.expr]]:
    """Return the dictionaries of options that a file keeps for its decorators, by name."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            pairs = zip(node.value.keys, node.value.values, strict=True)
            table = {ast.literal_eval(key): value for key, value in pairs if key is not None}
            found |= {ast.unparse(target): table for target in node.targets}
    return found


def options_of(decorator: ast.expr, shared: dict[str, dict[str, ast.expr]]) -> dict[str, ast.expr]:
    """Return what a decorator is given by name."""
    options: dict[str, ast.expr] = {}
    for word in decorator.keywords if isinstance(decorator, ast.Call) else ():
        named = {word.arg: word.value} if word.arg else shared.get(ast.unparse(word.value), {})
        options |= named
    return options


def decorator_problems(
    decorator: ast.expr, shared: dict[str, dict[str, ast.expr]]
) -> Iterator[str]:
    """Yield what is wrong with one njit decorator."""
    if last_name(decorator) != "njit":
        yield f"uses {last_name(decorator)}: plain njit functions only"
        return
    if not isinstance(decorator, ast.Call):
        yield "has no cache=True"
        return
    options = options_of(decorator, shared)
    if decorator.args or "signature_or_function" in options:
        yield "has an eager signature, which compiles at import"
    cache = options.get("cache")
    if not (isinstance(cache, ast.Constant) and cache.value is True):
        yield "has no cache=True"


def body_problems(
    function: ast.FunctionDef, compiled: set[str], plain: set[str], elsewhere: dict[str, str]
) -> Iterator[str]:
    """Yield every use, inside a compiled function, of code that is not of the same file."""
    local = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
    local |= {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    for statement in function.body:
        for node in ast.walk(statement):
            if not isinstance(node, ast.Name) or node.id in local | compiled:
                continue
            if node.id in elsewhere:
                yield f"line {node.lineno} uses {node.id} of {elsewhere[node.id]}"
            elif node.id in plain and not hasattr(builtins, node.id):
                yield f"line {node.lineno} uses {node.id}, which is not njit"


def order_problems(function: ast.FunctionDef) -> Iterator[str]:
    """Yield every innermost loop that stores values and sums others, where sums may be reordered.

    The compiler then asks at run time how far apart the arrays lie, and sums one by one where
    they are near each other: a rounding that differs from fit to fit.
    """
    for loop in ast.walk(function):
        if not isinstance(loop, ast.For):
            continue
        nodes = [node for statement in loop.body for node in ast.walk(statement)]
        if any(isinstance(node, ast.For) for node in nodes):
            continue
        moving = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
        kept = [node.target for node in nodes if isinstance(node, ast.AugAssign)]
        kept += [t for node in nodes if isinstance(node, ast.Assign) for t in node.targets]
        stores = [target for target in kept if isinstance(target, ast.Subscript)]
        added = [node.target for node in nodes if isinstance(node, ast.AugAssign)]
        sums = [
            target
            for target in added
            if not moving & {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}
        ]
        if stores and sums:
            yield f"line {loop.lineno} stores and sums {ast.unparse(sums[0])} in one loop"


def file_problems(path: Path) -> list[str]:
    """Return what is wrong with the compiled code of one file."""
    text = path.read_text(encoding="utf-8")
    if not any(name in text for name in COMPILERS | FORBIDDEN):
        return []
    tree = ast.parse(text)
    known = numba_names(tree)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    marked = {
        function.name: (function, decorator)
        for function in functions
        for decorator in function.decorator_list
        if is_compiler(decorator, known)
    }
    decorators = {id(decorator) for _, decorator in marked.values()}
    problems = [
        f"{path.name}:{node.lineno} calls {ast.unparse(node.func)}: decorate the function instead"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and is_compiler(node, known) and id(node) not in decorators
    ]
    problems += [
        f"{path.name}:{node.lineno} takes njit from numba: kernels_core.compiled has the one whose "
        "cache may be damaged"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and node.module == "numba"
        and any(alias.name == "njit" for alias in node.names)
    ]
    if (marked or problems) and not path.name.startswith("_njit_"):
        problems.append(f"{path.name} holds compiled code and is not called _njit_<subject>.py")
    plain = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)} - set(marked)
    for name, (function, decorator) in marked.items():
        found = list(decorator_problems(decorator, shared_options(tree)))
        found += body_problems(function, set(marked), plain, imported_elsewhere(tree))
        if "fastmath" in options_of(decorator, shared_options(tree)):
            found += order_problems(function)
        problems += [f"{path.name}: {name} {line}" for line in found]
    return problems


def test_compiled_code_is_closed_cached_and_lazy() -> None:
    problems = [
        f"{name}/{line}"
        for name, member in members().items()
        for path in member.files()
        if (name, path.name) != ("kernels-core", "compiled.py")
        for line in file_problems(path)
    ]
    assert problems == []


def test_there_is_compiled_code_to_guard() -> None:
    assert list(ROOT.glob("p*/*/src/**/_njit_*.py"))


SOUND = """
from __future__ import annotations
import math
import numpy as np
from kernelweave.kernels_core.compiled import njit
from numba import prange

HALF = 0.5
_JIT = {"cache": True, "fastmath": {"reassoc"}}

@njit(cache=True, nogil=True)
def inner(x):
    return HALF * math.sqrt(x) + np.abs(x)

@njit(**_JIT)
def outer(values, f):
    total = 0.0
    for i in prange(len(values)):
        total += inner(values[i]) + f(values[i])
    return max(total, 0.0)

def twin(values):
    return sum(values)
"""


def test_sound_file_passes(tmp_path: Path) -> None:
    path = tmp_path / "_njit_sound.py"
    path.write_text(SOUND)
    assert file_problems(path) == []


def test_compiled_code_in_another_file_is_caught(tmp_path: Path) -> None:
    path = tmp_path / "sound.py"
    path.write_text(SOUND)
    assert "is not called _njit_<subject>.py" in file_problems(path)[0]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("kernelweave.kernels_core.compiled import njit", "numba import njit", "takes njit from"),
        ("def outer", "def other(x):\n    return twin(x)\n\ndef outer", "twin, which is not njit"),
        ("f(values[i])", "far(values[i])", "uses far of .mine"),
        ("* math", "* LIMIT * math", "uses LIMIT of .mine"),
        ("@njit(cache=True, nogil=True)\ndef inner", "@njit\ndef inner", "no cache=True"),
        ("cache=True, nogil=True", "nogil=True", "no cache=True"),
        ('"cache": True, ', "", "outer has no cache=True"),
        ("njit(cache", "njit('f8(f8)', cache", "eager signature"),
        ("def twin", "fast = njit(cache=True)(len)\n\ndef twin", "decorate the function"),
        ("@njit(cache=True, nogil=True)\ndef inner", "@numba.jit\ndef inner", "plain njit"),
        ("+ f(values[i])", "+ f(values[i])\n        values[i] = 0.0", "stores and sums total"),
    ],
)
def test_planted_violation_is_caught(tmp_path: Path, old: str, new: str, said: str) -> None:
    far = "import numba\nfrom .mine import far, LIMIT\n"
    text = SOUND.replace("import math", f"import math\n{far}", 1).replace(old, new)
    path = tmp_path / "_njit_planted.py"
    path.write_text(text)
    assert any(said in line for line in file_problems(path))
