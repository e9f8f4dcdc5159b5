"""The program as a whole: help, errors in one line, interruption, plugins' commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import kernelweave.workbench.fitting
import numpy as np
import pytest
from kernelweave.evidence import EvidenceKernelRegressor
from kernelweave.evidence.new_rows import IN_THE_FILE
from kernelweave.kernels_core import Progress, config_context, watch
from kernelweave.kernels_core.exceptions import MemoryBudgetError
from kernelweave.tables import TableError, read_table
from kernelweave.workbench import load_model
from kernelweave.workbench.commands import BUILTIN
from kernelweave.workbench.console import message_text, name_options, options_of

HEAVY = {"numba", "scipy", "sklearn", "cvxpy", "matplotlib", "pandas", "skops"}


def test_help_names_every_command(run: Callable) -> None:
    done = run("--help")
    assert done.status == 0
    assert all(spec.name in done.out for spec in BUILTIN)
    assert run().out == done.out


def test_lines_in_a_file_end_without_blanks(run: Callable) -> None:
    for tokens in (["list"], ["fit", "--help"], ["plugins"], ["doctor"]):
        lines = run(*tokens).out.splitlines()
        assert lines
        assert max(map(len, lines)) <= 80 or tokens == ["doctor"]
        if tokens != ["fit", "--help"]:
            assert [line for line in lines if line.endswith(" ")] == []


@pytest.mark.parametrize("name", [spec.name for spec in BUILTIN])
def test_every_command_explains_itself(run: Callable, name: str) -> None:
    done = run(name, "--help")
    assert done.status == 0
    assert f"Usage: kernelweave {name}" in done.out
    assert "--json" in done.out or name == "completion"


def test_version(run: Callable) -> None:
    assert run("--version").out.strip() == "0.2.0"


@pytest.mark.parametrize(
    "tokens", [["--help"], ["list"], ["list", "--json"], ["fit", "--help"], ["plugins"]]
)
def test_looking_around_loads_nothing_heavy(tokens: list[str]) -> None:
    assert loaded_by(tokens, code=0) & HEAVY == set()


@pytest.mark.parametrize("tokens", [["towns.csv"], ["town.csv", "--target", "prize"]])
def test_what_cannot_be_fitted_is_refused_before_learners_load(
    tokens: list[str], tmp_path: Path
) -> None:
    write_towns(tmp_path)
    loaded = loaded_by(["fit", *tokens], code=2, folder=tmp_path)
    assert loaded & {"numba", "sklearn", "scipy", "skrub"} == set()


def test_a_fit_of_words_loads_nothing_that_it_does_not_use(tmp_path: Path) -> None:
    write_towns(tmp_path)
    tokens = ["fit", "town.csv", "--target", "price", "--no-compare", "--max-iter", "1"]
    loaded = loaded_by(tokens, code=0, folder=tmp_path)
    assert "numba" in loaded
    assert loaded & {"skrub", "polars", "matplotlib", "requests"} == set()


def write_towns(folder: Path) -> None:
    """Write a table with words."""
    towns = ("Oslo", "Bergen", "Hamar")
    rows = [f"{towns[k % 3]},{k % 7},{100 * (k % 3) + k}" for k in range(40)]
    (folder / "town.csv").write_text("\n".join(["town,rooms,price", *rows]))


def loaded_by(tokens: list[str], *, code: int, folder: Path | None = None) -> set[str]:
    """Run a command in a fresh interpreter, and return the packages that it has loaded."""
    program = (
        "import sys\nfrom kernelweave.workbench.app import run\n"
        f"assert run({tokens!r}) == {code}\n"
        "print('LOADED', *sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.rpartition("LOADED")[2].split())
    assert "cyclopts" in loaded
    return loaded


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (["fti"], "no command 'fti'; did you mean 'fit'?"),
        (
            ["fit", "iris", "kind"],
            "name the column to predict by --target 'kind'; see `kernelweave",
        ),
        (
            ["predict", "a", "b", "c"],
            "'c' is one argument too many: see `kernelweave predict --help`",
        ),
        (["fit"], "DATA"),
        (["fit", "iris", "--colour", "red"], "--colour"),
        (["fit", "iris", "--set", "C=much"], "--model evidence has no --set C"),
        (["fit", "iris", "--task", "guess"], "guess"),
        (["predict", "model"], "DATA"),
        (["list", "--kind", "animals"], "animals"),
    ],
)
def test_wrong_arguments_are_one_line(run: Callable, tokens: list[str], said: str) -> None:
    assert said in run(*tokens).error


def test_a_defect_is_one_line_and_the_traceback_on_request(
    run: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("the sky\nfell")

    monkeypatch.setattr(kernelweave.workbench.fitting, "fit_table", fail)
    assert run("fit", "iris").error.startswith("RuntimeError: the sky fell (this is a bug;")
    monkeypatch.setenv("KERNELWEAVE_DEBUG", "1")
    assert "Traceback" in run("fit", "iris").err


def test_interruption_keeps_the_best_model_so_far(
    run: Callable, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def press(progress: Progress) -> None:
        if progress.n_iter:
            raise KeyboardInterrupt

    @contextmanager
    def bar(*_: object) -> Iterator[Callable]:
        with watch(press):
            yield lambda: None

    monkeypatch.setattr(kernelweave.workbench.fitting, "fit_bar", bar)
    path = tmp_path / "model"
    path.write_text("precious")
    done = run("fit", "iris", "--model", "tkl", "--out", path, "--force")
    assert done.status == 130
    assert f"interrupted; the best model so far is in {path}" in done.err
    assert "No validation score" in done.out
    assert len(load_model(path).predict("iris")) == 150
    done = run("fit", "iris", "--model", "tkl")
    assert "nothing was saved" in done.err


def test_a_reader_that_leaves_early_is_no_error() -> None:
    command = [sys.executable, "-m", "kernelweave.workbench", "list", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read().decode()
    assert "Traceback" not in said
    assert "error" not in said


COMMAND = """
from kernelweave.kernels_core import CommandSpec, hookimpl

@hookimpl
def kernelweave_register_commands(register):
    register(CommandSpec(name="greet", target="{target}", summary="Greet somebody."))

def greet(name: str, *, times: int = 1, loud: bool = False) -> None:
    '''Greet somebody.

    Parameters
    ----------
    name : str
        Whom.
    times : int
        How often.
    loud : bool
        Whether to shout.
    '''
    print(*["hello", name] * times)
"""


def test_a_plain_typed_function_becomes_a_command(shell: Callable, plant: Callable) -> None:
    path = plant("greeter", COMMAND.replace("{target}", "greeter:greet"))
    assert "Greet somebody." in shell("--help", PYTHONPATH=path).out
    done = shell("greet", "Ada", "--times", "2", PYTHONPATH=path)
    assert done.out == "hello Ada hello Ada\n"
    assert "--times" in shell("greet", "Ada", "--times", "often", PYTHONPATH=path).error
    explained = shell("greet", "--help", PYTHONPATH=path).out
    assert "--loud" in explained
    assert "--no-loud" not in explained


def test_a_broken_plugin_harms_no_command(plant: Callable, tmp_path: Path) -> None:
    plant("raises", "raise RuntimeError('no licence')")
    path = plant("gone", COMMAND.replace("{target}", "gone:missing"))
    commands = [[spec.name, "--help"] for spec in BUILTIN]
    commands += [["list"], ["plugins"], ["doctor"], ["completion", "bash"]]
    commands += [["tables"]] if find_spec("kernelweave.papers") else []
    commands += [
        ["fit", "iris", "--model", "tkl", "--tol", "0.1", "--no-compare", "--out", "m.kw"],
        ["predict", "m.kw", "iris"],
        ["report", "m.kw", "iris"],
        ["certify", "m.kw", "iris", "--tol", "0.1"],
        ["demo", "--dataset", "iris"],
    ]
    code = (
        "from kernelweave.workbench.app import run\n"
        f"print('STATUS', [run(each) for each in {commands!r}])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert f"STATUS {[0] * len(commands)}" in done.stdout, done.stderr
    assert "raises" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_command_of_another_distribution_is_named(
    run: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {spec.name: spec for spec in BUILTIN}
    monkeypatch.setattr("kernelweave.workbench.app.command_specs", lambda: own)
    assert run("tables").error == "tables needs kernelweave-papers: pip install kernelweave-papers"
    assert "no command 'tabels'" in run("tabels").error


def test_a_broken_command_harms_no_other(shell: Callable, plant: Callable) -> None:
    path = plant("greeter", COMMAND.replace("{target}", "greeter:missing"))
    assert shell("--help", PYTHONPATH=path).status == 0
    assert "did you mean 'greet'" in shell("gret", PYTHONPATH=path).error
    assert "the command 'greet' is broken" in shell("greet", "Ada", PYTHONPATH=path).error


def test_blocking_the_workbench_keeps_its_commands(shell: Callable) -> None:
    done = shell("list", "--json", KERNELWEAVE_BLOCK_PLUGINS="workbench,tables")
    assert done.status == 0
    listed = json.loads(done.out)
    assert listed["datasets"] == []
    assert {row["name"] for row in listed["commands"]} >= {spec.name for spec in BUILTIN}


def test_memory_that_runs_out_is_said_in_a_sentence(
    run: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("kernelweave.tables.read_table", exhausted)
    assert run("fit", "iris").error.startswith("there is not enough memory for this: use")


def test_the_memory_limit_is_that_of_reading_too(run: Callable, tmp_path: Path) -> None:
    """A table that is refused for its size is read where the option that is named is raised."""
    path = tmp_path / "t.csv"
    rows = np.column_stack([np.arange(3000), np.arange(3000) % 7])
    np.savetxt(path, rows, "%d", ",", header="a,y", comments="")
    assert "reading it may take" in run("fit", path, "--target", "y", "--memory-limit", 5e5).error
    with config_context(memory_limit=5e5):
        assert "reading it may take" in run("fit", path, "--target", "z").error
        assert "no column 'z'" in run("fit", path, "--target", "z", "--memory-limit", 8e9).error


def test_advice_names_no_option_that_a_command_has_not(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("0.1,2\n1,2\n")
    with pytest.raises(TableError, match="or read it with header=False") as refused:
        read_table(path)
    specs = {spec.name: spec for spec in BUILTIN}
    for name, ending in (("fit", "add a line of names, or use --no-header"), ("demo", "of names")):
        name_options(options_of(specs[name]))
        assert message_text(refused.value).endswith(ending)
    name_options(options_of(specs["fit"]))
    assert message_text(IN_THE_FILE) == "--cv time"
    with pytest.raises(MemoryBudgetError, match="or give Batches, or fewer rows") as refused:
        EvidenceKernelRegressor(memory_limit=1000).fit(np.eye(60), np.arange(60.0))
    assert message_text(refused.value).endswith(
        "raise --memory-limit or give fewer rows or columns"
    )
    name_options({})
