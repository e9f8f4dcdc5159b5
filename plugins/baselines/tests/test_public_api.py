"""Everything is registered."""

from __future__ import annotations

from kernelweave.kernels_core import algorithms, components

NAMES = ("average", "easy", "cka", "pwmk", "simple", "elastic-net")


def test_everything_is_registered() -> None:
    names = {f"mkl-{name}" for name in NAMES}
    assert names <= set(algorithms())
    for name in names:
        spec = algorithms()[name]
        assert spec.load() is not None
        assert spec.paper
    sets = {"average-weights", "easymkl-weights", "alignment-weights", "proportional-weights"}
    assert {"simplex", "elastic-net-weights", *sets} <= set(components("constraints"))
