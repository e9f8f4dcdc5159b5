"""Everything is registered."""

from __future__ import annotations

from kernelweave.kernels_core import algorithms, components


def test_everything_is_registered() -> None:
    names = {
        *("krr-pgd", "krr-rpgd", "krr-iia", "krr-riia", "krr-pgd2", "krr-rpgd2", "krr-gmkl"),
        *("svm-gmkl", "krr-trust-region", "krr-mm", "krr-newton", "krr-spg", "krr-auto"),
    }
    assert names <= set(algorithms())
    for name in names:
        spec = algorithms()[name]
        assert spec.load() is not None
        assert spec.paper
    assert {"ridge", "squared-hinge-svc"} <= set(components("learners"))
    assert {"lq-ball", "orthant"} <= set(components("constraints"))
    assert "dictionary-power" in components("families")
