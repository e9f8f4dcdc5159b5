"""Other people's plugins: whatever they do, the host lives and says so."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from kernelweave.workbench.commands import BUILTIN

GOOD = """
from kernelweave.kernels_core import ComponentSpec, hookimpl

@hookimpl
def kernelweave_register_kernels(register):
    register(ComponentSpec(name="{name}", target="json:dumps", summary="a test"))
"""

BAD = {
    "raises": ("raise RuntimeError('no licence')", "broken", "RuntimeError: no licence"),
    "exits": ("import sys; sys.exit(7)", "broken", "SystemExit: 7"),
    "syntax": ("def :", "broken", "SyntaxError"),
    "needs": ("import a_module_that_is_not_there", "broken", "a_module_that_is_not_there"),
    "twice": (GOOD.replace("{name}", "rbf"), "duplicate", "kernelweave-kernels-core"),
    "empty": ("", "hookless", "implements no kernelweave_register_"),
    "forgot": (GOOD.replace("@hookimpl", "").replace("{name}", "x"), "hookless", "@hookimpl"),
    "misspelt": (
        GOOD.replace("_kernels(", "_kernel(").replace("{name}", "x"),
        "hookless",
        "did you mean kernelweave_register_kernels?",
    ),
    "steals": (
        "from kernelweave.kernels_core import CommandSpec, hookimpl\n@hookimpl\n"
        "def kernelweave_register_commands(register):\n"
        "    register(CommandSpec(name='fit', target='json:dumps'))",
        "duplicate",
        "commands 'fit'",
    ),
}


def test_each_bad_plugin_is_named_with_its_cause(shell: Callable, plant: Callable) -> None:
    for name, (code, _, _) in BAD.items():
        path = plant(f"bad-{name}", code)
    done = shell("plugins", "--json", PYTHONPATH=path)
    assert done.status == 0
    assert done.err == ""
    rows = {row["name"]: row for row in json.loads(done.out)}
    for name, (_, status, cause) in BAD.items():
        row = rows[f"bad-{name}"]
        assert row["status"] == status, row
        assert cause in row["cause"], row
        assert (row["distribution"], row["version"]) == (f"bad-{name}", "3.2")
    assert rows["workbench"]["status"] == "loaded"

    table = shell("plugins", PYTHONPATH=path)
    assert table.status == 0
    assert "no licence" in table.out
    assert table.out.count("broken") > 4

    listed = shell("list", "--json", PYTHONPATH=path)
    assert listed.status == 0
    assert listed.err.count("\n") == 1
    assert "plugins not loaded" in listed.err
    assert all(f"bad-{name}" in listed.err for name in BAD)
    assert json.loads(listed.out)["kernels"]

    assert "bad-raises" in " ".join(json.loads(shell_doctor(shell, path))["problems"])


def shell_doctor(shell: Callable, path: str) -> str:
    done = shell("doctor", "--json", PYTHONPATH=path)
    assert done.status == 0
    out: str = done.out
    return out


def test_a_good_plugin_is_listed_and_can_be_blocked(shell: Callable, plant: Callable) -> None:
    path = plant("good", GOOD.replace("{name}", "mine"))
    rows = json.loads(shell("plugins", "--json", PYTHONPATH=path).out)
    assert {"kernels": ["mine"]} in [row["provides"] for row in rows]
    done = shell("plugins", "--json", PYTHONPATH=path, KERNELWEAVE_BLOCK_PLUGINS="good")
    row = next(row for row in json.loads(done.out) if row["name"] == "good")
    assert row["status"] == "blocked"
    assert "KERNELWEAVE_BLOCK_PLUGINS" in row["cause"]


def test_what_a_plugin_prints_spoils_no_pipe(shell: Callable, plant: Callable) -> None:
    code = "print('hello from a plugin')\n" + GOOD.replace("{name}", "mine")
    done = shell("list", "--json", PYTHONPATH=plant("chatty", code))
    assert "mine" in [row["name"] for row in json.loads(done.out)["kernels"]]
    assert "hello from a plugin" in done.err


def test_table_in_this_process(run: Callable) -> None:
    done = run("plugins")
    assert done.status == 0
    assert "kernelweave-workbench 0.2.0" in done.out
    assert f"{len(BUILTIN)} commands" in done.out


@pytest.mark.parametrize("tokens", [["list"], ["list", "--kind", "kernels"], ["list", "--matrix"]])
def test_list_in_this_process(run: Callable, tokens: list[str]) -> None:
    done = run(*tokens)
    assert done.status == 0
    wanted = "tkl-frank-wolfe" if "--kind" not in tokens else "rbf"
    assert wanted in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_matrix_as_json_says_who_solves_what(run: Callable) -> None:
    rows = json.loads(run("list", "--matrix", "--json").out)
    triple = {"family": "tessellated", "constraint": "spectahedron", "learner": "svr"}
    row = next(row for row in rows if triple.items() <= row.items())
    assert "tkl-frank-wolfe" in row["algorithms"]


def test_list_as_json_has_what_the_text_has_not(run: Callable) -> None:
    listed = json.loads(run("list", "--json", "--kind", "algorithms").out)
    assert list(listed) == ["algorithms"]
    row = next(row for row in listed["algorithms"] if row["name"] == "tkl-frank-wolfe")
    assert row["distribution"] == "kernelweave-spectahedron"
    assert row["scaling"]["m"] > 1
    assert row["needs"]["constraint"] == ["min_eig"]
