"""scikit-learn's own checks: every public estimator passes all of them, and none is excused."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kernelweave.kernels_core import KernelLearningClassifier, KernelLearningRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks
from workspace import ROOT, members

# the generic estimators belong to a package that has no algorithm of its own
GENERIC = [
    KernelLearningClassifier(),
    KernelLearningClassifier(algorithm="mkl-simple"),
    KernelLearningClassifier(algorithm="smkl-best-response"),
    KernelLearningRegressor(),
    KernelLearningRegressor(algorithm="krr-auto"),
]


# the checks' features of about 100 leave no precision to kernels that are not scaled
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
# some of the checks learn from noise
@pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.exceptions.UnderfitWarning")
@parametrize_with_checks(GENERIC)
def test_sklearn(estimator: Any, check: Any) -> None:
    check(estimator)


def trees(*words: str) -> Iterator[tuple[Path, ast.Module]]:
    """Yield the files of tests in whose text one of some names stands, this one included."""
    folders = [member.folder / "tests" for member in members().values()]
    for path in (
        path for each in (*folders, ROOT / "tests") for path in sorted(each.rglob("*.py"))
    ):
        text = path.read_text(encoding="utf-8")
        if any(word in text for word in words):
            yield path, ast.parse(text)


def checked(tree: ast.Module) -> set[str]:
    """Return the names of the classes that a file hands to ``parametrize_with_checks``."""
    lists = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found: set[str] = set()
    for call in calls(tree, "parametrize_with_checks"):
        given = call.args[0]
        wanted = lists[given.id] if isinstance(given, ast.Name) else given
        found |= {
            node.func.id
            for node in ast.walk(wanted)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
    return found


def calls(tree: ast.Module, name: str) -> list[ast.Call]:
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == name
    ]


def public_estimators() -> set[str]:
    import importlib
    import inspect

    from sklearn.base import BaseEstimator

    found = set()
    for member in members().values():
        package = importlib.import_module(member.import_name)
        for name in getattr(package, "__all__", ()):
            it = getattr(package, name)
            if inspect.isclass(it) and issubclass(it, BaseEstimator) and hasattr(it, "fit"):
                found.add(name)
    return found


def test_every_public_estimator_is_checked() -> None:
    """A new one is put into the list of its package."""
    seen: set[str] = set()
    for _, tree in trees("parametrize_with_checks"):
        seen |= checked(tree)
    estimators = public_estimators()
    assert len(estimators) >= 20
    assert estimators - seen == set()


def excuses(tree: ast.Module) -> list[str]:
    """Return what lets a test fail without a word."""
    found = [
        f"line {call.lineno} excuses checks"
        for call in calls(tree, "parametrize_with_checks")
        for word in call.keywords
        if word.arg == "expected_failed_checks" and ast.unparse(word.value) != "None"
    ]
    found += [
        f"line {node.lineno} expects a failure"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "xfail"
    ]
    return found


def test_no_failure_is_expected_anywhere() -> None:
    problems = {
        str(path.relative_to(ROOT)): found
        for path, tree in trees("parametrize_with_checks", "xfail")
        if (found := excuses(tree))
    }
    assert problems == {}


@pytest.mark.parametrize(
    "text",
    [
        "@parametrize_with_checks([A()], expected_failed_checks={'a': 'b'})\ndef test(): ...",
        "@pytest.mark.xfail(reason='later')\ndef test(): ...",
    ],
)
def test_an_excuse_is_noticed(text: str) -> None:
    assert excuses(ast.parse(text))
    assert not excuses(ast.parse("@parametrize_with_checks([A()])\ndef test(): ..."))


def test_names_behind_a_list_are_found() -> None:
    text = "LIST = [A(), B(C(), k=1)]\n@parametrize_with_checks(LIST)\ndef test(): ..."
    assert checked(ast.parse(text)) == {"A", "B", "C"}
