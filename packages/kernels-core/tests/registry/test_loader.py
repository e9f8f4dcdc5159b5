"""Third-party plugins of every kind of brokenness: the host lives and says which and why."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

GOOD = """
from kernelweave.kernels_core import ComponentSpec, hookimpl

@hookimpl
def kernelweave_register_kernels(register):
    register(ComponentSpec(name="{name}", target="math:sin", summary="a kernel"))
"""
HOOKLESS = """
def kernelweave_register_kernels(register):
    raise AssertionError("must not be called")
"""
REPORT = """
import json, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from kernelweave.kernels_core import components, plugins
    rows = {row.distribution: [row.status, row.cause] for row in plugins()}
    plugins()
    print(json.dumps({
        "rows": rows,
        "kernels": sorted(components("kernels")),
        "warnings": [str(w.message) for w in caught],
    }))
"""


def install(folder: Path, distribution: str, source: str) -> None:
    module = distribution.replace("-", "_")
    (folder / f"{module}.py").write_text(source)
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[kernelweave]\n{distribution} = {module}\n")


@pytest.fixture
def report(tmp_path: Path):  # type: ignore[no-untyped-def]
    install(tmp_path, "aa-good", GOOD.format(name="good"))
    install(tmp_path, "bb-duplicate", GOOD.format(name="good"))
    install(tmp_path, "cc-broken", "import module_that_does_not_exist_anywhere\n")
    install(tmp_path, "dd-hookless", HOOKLESS)
    install(tmp_path, "ee-exits", "raise SystemExit(3)\n")
    install(tmp_path, "ff-syntax", "def f(:\n")
    install(tmp_path, "gg-blocked", GOOD.format(name="blocked"))

    def run(**environment: str) -> dict:  # type: ignore[type-arg]
        env = {**os.environ, "PYTHONPATH": str(tmp_path), **environment}
        done = subprocess.run(
            [sys.executable, "-c", REPORT], env=env, capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)  # type: ignore[no-any-return]

    return run


def test_the_host_lives_and_names_each_failure(report) -> None:  # type: ignore[no-untyped-def]
    answer = report(KERNELWEAVE_BLOCK_PLUGINS="gg-blocked")
    rows = answer["rows"]
    assert rows["aa-good"] == ["loaded", ""]
    assert rows["bb-duplicate"][0] == "duplicate"
    assert "'aa-good'" in rows["bb-duplicate"][1]
    assert "'bb-duplicate'" in rows["bb-duplicate"][1]
    assert rows["cc-broken"][0] == "broken"
    assert "module_that_does_not_exist_anywhere" in rows["cc-broken"][1]
    assert rows["dd-hookless"][0] == "hookless"
    assert "@hookimpl" in rows["dd-hookless"][1]
    assert rows["ee-exits"][0] == "broken"
    assert rows["ff-syntax"][0] == "broken"
    assert "SyntaxError" in rows["ff-syntax"][1]
    assert rows["gg-blocked"][0] == "blocked"
    assert "good" in answer["kernels"]
    assert "rbf" in answer["kernels"]
    assert "blocked" not in answer["kernels"]


def test_one_warning_names_every_plugin_that_did_not_load(report) -> None:  # type: ignore[no-untyped-def]
    (message,) = report(KERNELWEAVE_BLOCK_PLUGINS="gg-blocked")["warnings"]
    for name in ("bb-duplicate", "cc-broken", "dd-hookless", "ee-exits", "ff-syntax"):
        assert name in message
    assert "aa-good" not in message.replace("'aa-good'", "")
    assert "gg-blocked" not in message


def test_blocking_takes_distribution_names_too(report) -> None:  # type: ignore[no-untyped-def]
    answer = report(KERNELWEAVE_BLOCK_PLUGINS="aa-good, gg-blocked")
    assert answer["rows"]["aa-good"][0] == "blocked"
    assert answer["rows"]["bb-duplicate"][0] == "loaded"


def test_an_installation_without_its_metadata_spoils_nothing(report, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    broken = tmp_path / "hh_broken-1.0.dist-info"
    broken.mkdir()
    (broken / "entry_points.txt").write_text("[kernelweave]\nhh = module_that_is_not_there\n")
    rows = report(KERNELWEAVE_BLOCK_PLUGINS="gg-blocked")["rows"]
    assert rows["unknown"][0] == "broken"
    assert rows["aa-good"][0] == "loaded"
