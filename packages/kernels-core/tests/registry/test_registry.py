"""Names to implementations: served at once, refused when doubled, never half registered."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from kernelweave.kernels_core import (
    AlgorithmSpec,
    CommandSpec,
    ComponentSpec,
    DatasetSpec,
    DuplicateNameError,
    Needs,
    Problem,
    UnknownNameError,
    hookimpl,
)
from kernelweave.kernels_core.registry import Registry, hookspecs
from kernelweave.kernels_core.registry.store import HooklessPluginError

SPECS: dict[str, ComponentSpec] = {
    "algorithms": AlgorithmSpec(name="a", target="math:sin", needs=Needs(), tasks=("regression",)),
    "kernels": ComponentSpec(name="k", target="math:sin"),
    "families": ComponentSpec(name="f", target="math:sin"),
    "learners": ComponentSpec(name="l", target="math:sin"),
    "constraints": ComponentSpec(name="c", target="math:sin"),
    "datasets": DatasetSpec(name="d", target="math:sin", task="regression"),
    "commands": CommandSpec(name="m", target="math:sin"),
}


def plugin(kind: str, *specs: Any) -> SimpleNamespace:
    def implementation(register: Any) -> None:
        for spec in specs:
            register(spec)

    name = f"kernelweave_register_{kind}"
    implementation.__name__ = name
    return SimpleNamespace(**{name: hookimpl(implementation)})


@pytest.mark.parametrize("kind", sorted(hookspecs.KINDS))
def test_every_hook_is_served_at_any_time(kind: str) -> None:
    registry = Registry()
    brought = registry.add(plugin(kind, SPECS[kind]), name="p", source="dist")
    assert brought == {kind: [SPECS[kind].name]}
    assert registry.get(kind, SPECS[kind].name) is SPECS[kind]
    assert registry.source(kind, SPECS[kind].name) == "dist"


def test_every_hook_has_a_spec_docstring() -> None:
    for kind in hookspecs.KINDS:
        assert getattr(hookspecs, f"kernelweave_register_{kind}").__doc__


def test_one_name_twice_names_both_distributions_and_leaves_the_first() -> None:
    registry = Registry()
    registry.add(plugin("kernels", SPECS["kernels"]), name="p", source="first-dist")
    other = ComponentSpec(name="other", target="math:cos")
    with pytest.raises(DuplicateNameError, match=r"'first-dist'.*'second-dist'"):
        registry.add(plugin("kernels", other, SPECS["kernels"]), name="q", source="second-dist")
    assert list(registry.specs("kernels")) == ["k"], "the second plugin must leave nothing"
    registry.add(plugin("kernels", other), name="q", source="second-dist")
    assert list(registry.specs("kernels")) == ["k", "other"]


def test_a_plugin_that_raises_leaves_nothing() -> None:
    registry = Registry()
    with pytest.raises(TypeError, match="takes AlgorithmSpec, got ComponentSpec"):
        registry.add(plugin("algorithms", SPECS["kernels"]), name="p", source="d")
    assert registry.specs("algorithms") == {}


def test_an_unknown_name_lists_close_matches() -> None:
    registry = Registry()
    spec = ComponentSpec(name="tessellated", target="math:sin")
    registry.add(plugin("families", spec), name="p", source="d")
    with pytest.raises(UnknownNameError, match="did you mean 'tessellated'"):
        registry.get("families", "tesselated")
    with pytest.raises(UnknownNameError, match=r"known: \['tessellated'\]"):
        registry.get("families", "zzz")


def _unmarked(register: Any) -> None:
    """A hook whose author forgot the marker."""


@hookimpl
def _misspelt(register: Any) -> None:
    """A hook that does not exist."""


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"kernelweave_register_kernels": _unmarked}, "lacks the @hookimpl marker"),
        ({"kernelweave_register_kernel": _misspelt}, "did you mean kernelweave_register_kernels"),
        ({}, "implements no kernelweave_register"),
    ],
)
def test_a_plugin_that_would_do_nothing_is_refused(members: dict[str, Any], message: str) -> None:
    with pytest.raises(HooklessPluginError, match=message):
        Registry().add(SimpleNamespace(**members), name="p", source="d")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "Bad Name"}, "name must be"),
        ({"target": "no_colon"}, "target must read"),
        ({"needs": ()}, "needs must say"),
        ({"needs": {"family": ("fit_grams",)}}, "needs must say"),
        ({"tasks": ("clustering",)}, "tasks must be taken"),
        ({"tasks": ()}, "tasks must be taken"),
    ],
)
def test_a_malformed_spec_is_refused(changes: dict[str, Any], message: str) -> None:
    fields: dict[str, Any] = {
        "name": "a",
        "target": "math:sin",
        "needs": Needs(),
        "tasks": ("regression",),
    }
    with pytest.raises(ValueError, match=message):
        AlgorithmSpec(**{**fields, **changes})


def test_targets_are_loaded_on_use_and_errors_name_the_item() -> None:
    with pytest.raises(ImportError, match="cannot load 'x' from 'nowhere_at_all:y'"):
        ComponentSpec(name="x", target="nowhere_at_all:y").load()
    with pytest.raises(ImportError, match="cannot load 'x'"):
        ComponentSpec(name="x", target="math:no_such_thing").load()


class _Part:
    """Of a problem."""

    def __init__(self, name: str, **attributes: object) -> None:
        self.name = name
        self.__dict__.update(attributes)


def test_an_algorithm_accepts_what_has_what_it_needs() -> None:
    needs = Needs(family=("grams", "degree=1"), learner=("solve",), constraint=("project|cone",))
    spec = AlgorithmSpec(name="a", target="math:sin", needs=needs, tasks=("regression",))
    good = {
        "family": _Part("f", grams=[], degree=1),
        "learner": _Part("l", solve=len),
        "constraint": _Part("c", cone=True),
    }
    data = {"X": np.ones((2, 1)), "y": np.ones(2)}
    assert spec.accepts(Problem(**good, **data))
    for role, part, said in (
        ("family", _Part("f", grams=[], degree=2), "needs a family with degree=1"),
        ("learner", _Part("l", solve=None), "needs a learner with solve"),
        (
            "constraint",
            _Part("c", cone=False),
            "needs a set with project or cone, which 'c'",
        ),
    ):
        problem = Problem(**{**good, role: part}, **data)
        assert not spec.accepts(problem)
        assert said in str(needs.refusal(problem))


@pytest.mark.parametrize("wrong", [("two words",), "fit_grams", (1,), ("=1",)])
def test_a_need_is_an_attribute(wrong: object) -> None:
    with pytest.raises(ValueError, match="family must be a tuple of 'attribute'"):
        Needs(family=wrong)  # type: ignore[arg-type]
