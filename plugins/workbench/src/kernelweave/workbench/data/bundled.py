"""Data sets cut from those that ship with scikit-learn."""

from __future__ import annotations

from typing import Any


def breast_cancer_mean() -> dict[str, Any]:
    """Return the Wisconsin biopsies with the ten mean measures of the cells, as a mapping."""
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    kept = [j for j, name in enumerate(bunch["feature_names"]) if str(name).startswith("mean ")]
    return {
        "data": bunch["data"][:, kept],
        "target": bunch["target"],
        "feature_names": [str(bunch["feature_names"][j]) for j in kept],
        "target_names": bunch["target_names"],
    }
