"""Every example of the documentation runs: Python, doctests, and the ``kernelweave`` commands."""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import runpy
import shlex
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
from kernelweave.kernels_core import registry
from kernelweave.workbench.app import run
from matplotlib import pyplot
from workspace import ROOT, members

DOCS = ROOT / "docs"
FENCE = re.compile(
    r"^```(?P<language>python|console)\n(?P<code>.*?)^```$"
    # what a block prints stands right below it
    r"(?:\n\n^```text\n(?P<printed>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]\d+)?")
# pages whose fits take more than a few seconds
SLOW = {"tutorials/living.md", "tutorials/wide.md"}
GENERATED = {"_build", "api", "auto_examples", "pictures"}
PAGES = sorted(
    path for path in DOCS.rglob("*.md") if not GENERATED & set(path.relative_to(DOCS).parts)
)
READMES = [
    ROOT / "README.md",
    *sorted(member.folder / "README.md" for member in members().values()),
]
TESTS = sorted((ROOT / "tests").glob("test_*.py"))
GALLERY = sorted((DOCS / "gallery").glob("plot_*.py"))
# what a reader types that a test must not: it installs, or drives the tests themselves
NOT_RUN = re.compile(r"^(python3 -m venv|\.venv/bin/|pip install|nox|kernelweave demo)")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(text: str, language: str) -> Iterator[tuple[int, str, str | None]]:
    """Yield (line, code, output where it is shown) of each fenced block of a language."""
    for match in FENCE.finditer(text):
        if match["language"] == language:
            yield text.count("\n", 0, match.start()) + 2, match["code"], match["printed"]


def check_output(shown: str, printed: str) -> None:
    """Compare what a page shows with what its block prints: another processor rounds otherwise."""
    # NumPy pads a number by the digits of those in its column
    words = ["".join(NUMBER.sub("#", text).split()) for text in (shown, printed)]
    assert words[0] == words[1], printed
    for one, other in zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True):
        digit = 10.0 ** -len(one.partition("e")[0].partition(".")[2])
        near = pytest.approx(float(one), rel=0.02, abs=2.0 * digit)
        assert float(other) == near, f"{other} where the page shows {one}: {printed}"


def run_python(path: Path) -> int:
    """Run the Python blocks of a page in order, as one module, and return how many there are."""
    # a real module, so that the classes of a page can be pickled
    module = sys.modules["page"] = types.ModuleType("page")
    namespace = vars(module)
    count = 0
    for line, code, shown in blocks(path.read_text(encoding="utf-8"), "python"):
        count += 1
        if code.startswith(">>>"):
            test = doctest.DocTestParser().get_doctest(code, namespace, path.name, str(path), line)
            said: list[str] = []
            failed = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.append).failed
            assert failed == 0, "".join(said)
        else:
            # empty lines first, so that a traceback shows the line of the page
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile("\n" * (line - 1) + code, str(path), "exec"), namespace)
            if shown is not None:
                check_output(shown, printed.getvalue())
    return count


def commands(text: str) -> Iterator[tuple[dict[str, str], list[str]]]:
    """Yield (environment, arguments) of each ``kernelweave`` command that is to be run."""
    for _, code, _ in blocks(text, "console"):
        for line in re.findall(r"^\$ (.*)$", code, re.MULTILINE):
            if NOT_RUN.match(line):
                continue
            words = shlex.split(line)
            settings = {}
            while "=" in words[0]:
                name, _, value = words.pop(0).partition("=")
                settings[name] = value
            assert words[0] == "kernelweave", f"no test runs {line!r}"
            yield settings, words[1:]


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """Give an example an empty folder and a registry of its own: it may write and register."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_state", {})
    return monkeypatch


def named(path: Path) -> str:
    return path.relative_to(DOCS).as_posix()


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[pytest.mark.slow] if named(path) in SLOW else [])
        for path in PAGES
        if "```python" in path.read_text(encoding="utf-8")
    ],
    ids=named,
)
@pytest.mark.usefixtures("alone")
def test_python_runs(path: Path) -> None:
    assert run_python(path) > 0


@pytest.mark.parametrize("path", READMES, ids=lambda path: path.parent.name)
@pytest.mark.usefixtures("alone")
def test_readme_runs(path: Path) -> None:
    assert run_python(path) > 0


@pytest.mark.parametrize(
    "path", [path for path in PAGES if "```console" in path.read_text(encoding="utf-8")], ids=named
)
def test_commands_run(
    path: Path, alone: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for settings, arguments in commands(path.read_text(encoding="utf-8")):
        with alone.context() as patch:
            patch.setattr(registry, "_state", {})
            for name, value in settings.items():
                patch.setitem(os.environ, name, value)
            status = run(arguments)
        assert status == 0, f"{arguments}: {capfd.readouterr().err}"


@pytest.mark.slow
@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_gallery_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "Agg")
    runpy.run_path(str(path))
    pyplot.close("all")


def test_every_page_is_a_plain_file_that_the_tests_see() -> None:
    assert {"index.md", "conventions.md", "extend/algorithm.md"} <= {named(path) for path in PAGES}
    assert all("```py\n" not in path.read_text(encoding="utf-8") for path in PAGES)


def test_the_template_is_included_literally() -> None:
    page = (DOCS / "extend" / "algorithm.md").read_text(encoding="utf-8")
    included = re.findall(r"```\{literalinclude\} (\S+)", page)
    targets = [(DOCS / "extend" / each).resolve() for each in included]
    template = ROOT / "plugins" / "template"
    assert targets == [
        template / "src" / "kernelweave_template" / "__init__.py",
        template / "pyproject.toml",
    ]
    assert all(target.is_file() for target in targets)


def test_what_the_page_on_the_build_names_is_in_the_sources() -> None:
    page = (DOCS / "extend" / "built.md").read_text(encoding="utf-8")
    names = set(re.findall(r"\b_?[a-z]+(?:_[a-z]+)+\b|\b(?:[A-Z][a-z]+){2,}\b", page))
    files = [*(each for member in members().values() for each in member.files()), *TESTS]
    words = {each.stem for each in files}
    for each in files:
        words.update(re.findall(r"\w+", each.read_text(encoding="utf-8")))
    assert len(names) > 30
    assert not names - words


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("```python\nassert 1 == 2\n```\n", AssertionError),
        ("```python\n>>> 1 + 1\n3\n```\n", AssertionError),
        ("```python\nprint('R²', 0.81)\n```\n\n```text\nR² 0.84\n```\n", AssertionError),
        ("```python\nprint('R²', 0.81)\n```\n\n```text\nR 0.81\n```\n", AssertionError),
        ("```python\nx = 1\n```\n\n```python\ny = x + nothing\n```\n", NameError),
    ],
)
def test_planted_example_is_caught(text: str, error: type[Exception], tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(error):
        run_python(page)


def test_planted_command_is_caught() -> None:
    with pytest.raises(AssertionError, match="no test runs"):
        list(commands("```console\n$ rm -r x\n```\n"))
