"""The hooks reference: a heading with the exact signature, a docstring, a test and a user each."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest
from kernelweave.kernels_core import (
    AlgorithmSpec,
    CommandSpec,
    ComponentSpec,
    DatasetSpec,
    Needs,
)
from kernelweave.kernels_core.registry import hookspecs
from kernelweave.kernels_core.registry.store import Registry
from workspace import ROOT, members

PAGE = ROOT / "docs" / "extend" / "hooks.md"
HOOKS = {
    name: function
    for name, function in vars(hookspecs).items()
    if name.startswith("kernelweave_") and inspect.isfunction(function)
}
PREFIX = "kernelweave_register_"
# a hook without a user; a plugin that registers the first item makes this test fail until the
# name is removed here
WITHOUT_USER: set[str] = set()


def signature(function: Callable[..., Any]) -> str:
    """Return ``name(parameters) -> result`` as it stands in the source."""
    text = f"{function.__name__}{inspect.signature(function)}"
    return text.replace("'", "")


def headings(text: str) -> list[str]:
    """Return what stands in backticks in the headings of second level."""
    return re.findall(r"^## `(.*)`$", text, re.MULTILINE)


def section(text: str, name: str) -> str:
    """Return the text below the heading of one hook."""
    body = text[text.index(f"## `{name}(") :]
    return body.partition("\n## ")[0]


def users(hook: str) -> list[str]:
    """Return the distributions of this workspace that implement a hook.

    One that cannot be imported is no user of anything; the guards on imports report it.
    """
    found = []
    for member in members().values():
        for target in member.project.get("entry-points", {}).get("kernelweave", {}).values():
            try:
                module = importlib.import_module(target)
            except ImportError:
                continue
            if hasattr(getattr(module, hook, None), "kernelweave_impl"):
                found.append(member.distribution)
    return found


def test_every_hook_has_its_signature_as_heading() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert headings(text) == [signature(function) for function in HOOKS.values()]


def test_every_kind_has_a_hook() -> None:
    assert list(HOOKS) == [PREFIX + kind for kind in hookspecs.KINDS]


@pytest.mark.parametrize("name", HOOKS)
def test_hook_has_a_docstring_that_says_what_to_call(name: str) -> None:
    assert "register(spec)" in (HOOKS[name].__doc__ or "")


@pytest.mark.parametrize("name", HOOKS)
def test_hook_has_a_real_user_that_the_page_names(name: str) -> None:
    text, found = section(PAGE.read_text(encoding="utf-8"), name), users(name)
    if name in WITHOUT_USER:
        assert found == [], f"{found} use {name}: name them on the page, and drop the exception"
        assert "No plugin implements it yet." in text
        return
    assert found, f"no plugin of the workspace implements {name}"
    stated = set(re.findall(r"`(kernelweave-[a-z-]+)`", text))
    assert stated, f"the section of {name} names no user"
    assert stated <= set(found)


SPECS = {
    "algorithms": AlgorithmSpec(name="x", target="m:a", needs=Needs(), tasks=("regression",)),
    "datasets": DatasetSpec(name="x", target="m:a", task="regression"),
    "commands": CommandSpec(name="x", target="m:a"),
}


class Plugin:
    """One hook, one item."""

    def __init__(self, hook: str, item: object) -> None:
        def implementation(register: Callable[[object], None]) -> None:
            register(item)

        setattr(self, hook, hookspecs.hookimpl(implementation))


@pytest.mark.parametrize("kind", hookspecs.KINDS)
def test_hook_registers_what_it_is_given(kind: str) -> None:
    spec = SPECS.get(kind, ComponentSpec(name="x", target="m:a"))
    registry = Registry()
    provided = registry.add(Plugin(PREFIX + kind, spec), name="a plugin", source="a source")
    assert provided == {kind: ["x"]}
    assert registry.get(kind, "x") is spec
    assert registry.source(kind, "x") == "a source"


@pytest.mark.parametrize("kind", hookspecs.KINDS)
def test_hook_refuses_anything_else(kind: str) -> None:
    registry = Registry()
    with pytest.raises(TypeError, match=f"{PREFIX}{kind} takes"):
        registry.add(Plugin(PREFIX + kind, object()), name="a plugin", source="a source")
    assert registry.specs(kind) == {}


def test_planted_stale_heading_is_caught() -> None:
    stale = "## `kernelweave_register_datasets(register) -> None`\n"
    assert headings(stale) != [signature(HOOKS["kernelweave_register_datasets"])]
