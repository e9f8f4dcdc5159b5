"""Guards on what is said in public: numpydoc docstrings, and examples that run."""

from __future__ import annotations

import doctest
import enum
import importlib
import inspect
import re
import types
from collections.abc import Iterator
from typing import Any, get_origin

import pytest
from workspace import Member, members

SECTION = re.compile(r"^(?P<title>[A-Z][A-Za-z ]+)\n-{3,}\s*$", re.MULTILINE)
ENTRY = re.compile(r"^(?P<names>\*{0,2}[A-Za-z_]\w*(?:, *\*{0,2}[A-Za-z_]\w*)*)\s*(?::|$)")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

# what a plugin may import beside the packages themselves
FOR_PLUGINS = [
    f"kernelweave.kernels_core.{name}"
    for name in ("checks", "formula", "parameters", "rounding", "settings")
]
PUBLIC = sorted([*FOR_PLUGINS, *(member.import_name for member in members().values())])


def modules_of(member: Member) -> list[str]:
    return [member.module(path) for path in member.files() if path.name != "__main__.py"]


def sections(docstring: str) -> dict[str, str]:
    """Return the numpydoc sections of a docstring by title."""
    text = inspect.cleandoc(docstring)
    found = list(SECTION.finditer(text))
    ends = [*(match.start() for match in found), len(text)][1:]
    return {match["title"]: text[match.end() : end] for match, end in zip(found, ends, strict=True)}


def documented_names(parts: dict[str, str]) -> set[str]:
    """Return the names of every parameter and attribute that a docstring describes."""
    names = set()
    for title in ("Parameters", "Other Parameters", "Attributes"):
        for line in parts.get(title, "").splitlines():
            if entry := ENTRY.match(line):
                names |= {name.strip(" *") for name in entry["names"].split(",")}
    return names


def parameter_names(thing: Any) -> list[str]:
    """Return the parameters that a caller gives."""
    try:
        parameters = inspect.signature(thing).parameters
    except (TypeError, ValueError):
        return []
    return [name for name in parameters if name not in {"self", "cls"} and name[0] != "_"]


def returns_something(function: Any) -> bool:
    """Whether the annotation promises a value."""
    promised = inspect.get_annotations(function).get("return", None)
    return promised not in {None, "None", type(None), "NoReturn"}


def function_problems(name: str, function: Any) -> Iterator[str]:
    """Yield what a public function's docstring leaves out."""
    docstring = function.__doc__ or ""
    if not docstring.strip():
        yield f"{name} has no docstring"
        return
    parts = sections(docstring)
    missing = [each for each in parameter_names(function) if each not in documented_names(parts)]
    if missing:
        yield f"{name} does not describe {', '.join(missing)}"
    # without parameters, "Return the ..." says it all
    says_it = not parameter_names(function) and docstring.lstrip().startswith(("Return", "Yield"))
    if returns_something(function) and not says_it and not {"Returns", "Yields"} & set(parts):
        yield f"{name} has no section Returns"


def is_plain(cls: type) -> bool:
    """Whether the class is made of members or messages, not of parameters."""
    return issubclass(cls, enum.Enum | BaseException) or getattr(cls, "_is_protocol", False)


def class_problems(name: str, cls: type) -> Iterator[str]:
    """Yield what a public class's docstring, or those of its own methods, leave out."""
    docstring = cls.__dict__.get("__doc__") or ""
    if not docstring.strip() or docstring.startswith(f"{cls.__name__}("):
        yield f"{name} has no docstring"
    elif not is_plain(cls):
        # a base of ours may describe what it brings
        texts = [base.__doc__ or "" for base in cls.__mro__ if base is not object]
        known = set().union(*(documented_names(sections(text)) for text in texts))
        missing = [each for each in parameter_names(cls) if each not in known]
        if missing and missing != ["args", "kwargs"]:
            yield f"{name} does not describe {', '.join(missing)}"
    for method_name, method in vars(cls).items():
        target = getattr(method, "__func__", getattr(method, "fget", method))
        public = not method_name.startswith("_") and isinstance(target, types.FunctionType)
        if public and not (inspect.getdoc(getattr(cls, method_name)) or "").strip():
            yield f"{name}.{method_name} has no docstring"


def docstring_problems(name: str, thing: Any) -> list[str]:
    """Return what is missing from the docstring of anything a package exports."""
    if get_origin(thing) is not None or isinstance(thing, types.ModuleType):
        return []
    if inspect.isclass(thing):
        return list(class_problems(name, thing))
    if inspect.isroutine(thing):
        return list(function_problems(name, thing))
    return []


def run_examples(module: types.ModuleType) -> tuple[int, str]:
    """Run every example in a module's docstrings; return how many there were and what failed."""
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    for test in doctest.DocTestFinder(exclude_empty=True).find(module):
        runner.run(test, out=said.append)
    return runner.summarize(verbose=False).attempted, "".join(said)


def package_problems(package: types.ModuleType) -> list[str]:
    """Return what is wrong with a package's docstring, its exports and their docstrings."""
    name, exported = package.__name__, list(getattr(package, "__all__", []))
    found = [] if (package.__doc__ or "").strip() else [f"{name} has no docstring"]
    if len(exported) != len(set(exported)):
        found.append(f"{name} exports a name twice")
    if unlisted := set(exported) - set(dir(package)):
        found.append(f"{name} lacks {sorted(unlisted)} in its __dir__")
    for each in exported:
        found += docstring_problems(f"{name}.{each}", getattr(package, each))
    return found


def test_public_names_are_documented_and_sorted_out() -> None:
    found = [line for name in PUBLIC for line in package_problems(importlib.import_module(name))]
    assert len(PUBLIC) >= 20
    assert found == []


@pytest.mark.parametrize("member", members())
def test_examples_run(member: str) -> None:
    modules = modules_of(members()[member])
    assert modules
    failures = {name: run_examples(importlib.import_module(name))[1] for name in modules}
    assert not any(failures.values()), "".join(failures.values())


def silent(values: list[float]) -> float:
    return sum(values)


def curt(values: list[float]) -> float:
    """Add."""
    return sum(values)


def vague(values: list[float], weight: float) -> float:
    """Add.

    Parameters
    ----------
    values : list of float
        What to add.
    """
    return weight * sum(values)


def clear(values: list[float], *, weight: float = 1.0) -> float:
    """Add.

    Parameters
    ----------
    values, weight : list of float, float
        What to add, and times what.

    Returns
    -------
    float
        The sum.
    """
    return weight * sum(values)


class Vague:
    """A thing.

    Attributes
    ----------
    size : int
        How large.
    """

    def __init__(self, size: int, colour: str) -> None:
        self.size, self.colour = size, colour

    def grow(self) -> None:
        self.size += 1


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        (silent, ["it has no docstring"]),
        (curt, ["it does not describe values", "it has no section Returns"]),
        (vague, ["it does not describe weight", "it has no section Returns"]),
        (clear, []),
        (Vague, ["it does not describe colour", "it.grow has no docstring"]),
    ],
)
def test_planted_docstring_is_caught(thing: Any, said: list[str]) -> None:
    assert docstring_problems("it", thing) == said


def test_a_planted_package_is_caught() -> None:
    package = types.ModuleType("planted")
    package.__all__, package.silent = ["silent", "silent"], silent  # type: ignore[attr-defined]
    package.__dir__ = lambda: ["other"]  # type: ignore[method-assign]
    assert package_problems(package) == [
        "planted has no docstring",
        "planted exports a name twice",
        "planted lacks ['silent'] in its __dir__",
        "planted.silent has no docstring",
        "planted.silent has no docstring",
    ]


@pytest.mark.parametrize(("answer", "failures"), [("2", 0), ("3", 1)])
def test_planted_example_is_run(answer: str, failures: int) -> None:
    module = types.ModuleType("planted", f"Add.\n\n>>> 1 + 1\n{answer}\n")
    attempted, said = run_examples(module)
    assert attempted == 1
    assert said.count("Failed example") == failures
