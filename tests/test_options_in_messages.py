"""What the command line says of parameters, it says of options that the command has."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from kernelweave.granger import GrangerGraph
from kernelweave.kernels_core import Status, config_context
from kernelweave.kernels_core.exceptions import MemoryBudgetError
from kernelweave.kernels_core.memory import require
from kernelweave.kernels_core.registry import commands
from kernelweave.workbench.app import run
from kernelweave.workbench.commands import BUILTIN
from kernelweave.workbench.console import message_text, name_options, options_of
from kernelweave.workbench.model_catalog import make_model, models_for_task

SPECS = {spec.name: spec for spec in BUILTIN} | commands()
PARAMETER = re.compile(r"(?<![\w-])(?:\w+_\w+|tol)\b|(?<![\w-])\w+=")

Say = Callable[..., str]


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Say:
    """Return a function that runs a command and returns what it wrote to standard error."""

    def inside(*tokens: object) -> str:
        run([str(token) for token in tokens])
        return capsys.readouterr().err

    return inside


@pytest.fixture
def series(tmp_path: Path) -> Path:
    """Return a file of two series."""
    path = tmp_path / "series.csv"
    rows = np.random.default_rng(0).standard_normal((30, 2))
    np.savetxt(path, rows, delimiter=",", header="a,b", comments="")
    return path


@pytest.mark.parametrize("name", ["fit", "certify", "granger"])
def test_what_a_status_advises_is_an_option(name: str) -> None:
    """Who has no time limit, as GrangerGraph, is never told of one."""
    options = options_of(SPECS[name])
    for status in Status:
        if status is Status.MAX_TIME and "max_time" not in options:
            assert not hasattr(GrangerGraph(), "max_time")
            continue
        name_options(options)
        assert PARAMETER.findall(message_text(status.value)) == [], status
        assert "float32" not in status.value, status  # which few estimators have
    with config_context(memory_limit=1), pytest.raises(MemoryBudgetError) as refused:
        require(2, "pairs", alternative="raise {memory_limit}")
    assert message_text(refused.value).endswith("raise --memory-limit")
    name_options({})
    assert message_text(refused.value) == str(refused.value)


def test_the_models_of_fit_have_options_of_their_own_names() -> None:
    """What an estimator calls C or n_views, the command calls so."""
    options = options_of(SPECS["fit"])
    own = {"max_time", "memory_limit"}
    for model in models_for_task("classification"):
        machine = make_model(model, "classification", {}, seed=0)
        names = getattr(machine, "steps", [(None, machine)])[-1][1].get_params(deep=False)
        assert own <= names.keys() & options.keys(), model


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (["--draws", "0", "--significance", "permutation"], "--draws must be an integer >= 1"),
        (["--level", "2", "--significance", "permutation"], "level must be"),
        (["--memory-limit", "100"], "raise --memory-limit"),
        (["--max-iter", "0"], "--max-iter must be"),
    ],
)
def test_granger_speaks_of_its_options(
    say: Say, series: Path, tokens: list[str], said: str
) -> None:
    line = say("granger", series, "--lam", "0.1", *tokens)
    assert said in line
    # a path is the user's, whatever it is called
    assert PARAMETER.findall(line.replace(str(series), "")) == []


def test_granger_names_the_option_of_a_lam_at_an_end(say: Say, series: Path) -> None:
    lines = say("granger", series, *["--lams", "0.02", "--lams", "0.01"])
    assert "of --lams, has the least held-out error" in " ".join(lines.split())


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (["--model", "tkl", "--max-iter", "1"], "raise --max-iter or --tol"),
        (["--model", "simple", "--set", "C=-1"], "C must be a finite number > 0, got -1"),
        (["--model", "sparse", "--set", "n_views=2"], "--set n_views=2 needs --views FILE"),
        (["--algorithm", "krr-rpgd"], "--algorithm='krr-rpgd' solves the penalised form: set beta"),
        (["--model", "ridge", "--algorithm", "svm-gmkl"], "svm-gmkl belongs to --model gmkl"),
        (["--model", "gmkl", "--algorithm", "krr-pgd"], "(numbers as targets)"),
        (["--model", "simple", "--memory-limit", "100"], "raise --memory-limit"),
    ],
)
def test_fit_speaks_of_its_options(say: Say, tokens: list[str], said: str) -> None:
    lines = say("fit", "iris", "--no-compare", *tokens)
    assert said in lines
    for word in ("max_iter", "memory_limit", "float32", "columns=", "--task"):
        assert word not in lines
