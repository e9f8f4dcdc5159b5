"""Data sets that ship with this package or are cut from those of scikit-learn.

``airfoil.csv`` is "Airfoil Self-Noise" by Brooks, Pope and Marcolini (NASA, 1989), donated to the
UCI Machine Learning Repository, doi 10.24432/C5VW2C, under the Creative Commons Attribution 4.0
licence (CC BY 4.0); the columns got names, the values are unchanged.
"""

from __future__ import annotations

from pathlib import Path


def breast_cancer_mean() -> dict[str, object]:
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


def airfoil() -> dict[str, object]:
    """Return the noise of airfoils in a wind tunnel, 1503 measurements, as a mapping."""
    import pandas as pd

    table = pd.read_csv(Path(__file__).with_name("airfoil.csv"))
    return {
        "data": table.drop(columns="target").to_numpy(),
        "target": table["target"].to_numpy(),
        "feature_names": [str(name) for name in table.columns if name != "target"],
    }
