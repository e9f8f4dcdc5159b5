"""Data sets that ship with this package or are cut from those of scikit-learn.

``airfoil.csv`` is "Airfoil Self-Noise" by Brooks, Pope and Marcolini (NASA, 1989), donated to the
UCI Machine Learning Repository, doi 10.24432/C5VW2C, under the Creative Commons Attribution 4.0
licence (CC BY 4.0); the columns got names, the values are unchanged.

``penguins.csv`` are 344 penguins of the Palmer Archipelago by Gorman, Williams and Fraser (2014),
which Horst, Hill and Gorman (2020) published under CC0. ``grunfeld.csv`` is the investment of
eleven firms in twenty years of Grunfeld's thesis (Chicago, 1958), as Kleiber and Zeileis (2010)
restored it; in the public domain.
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
    return _read("airfoil", "target")


def penguins() -> dict[str, object]:
    """Return penguins by species, island, sex and four measures, with missing values."""
    return _read("penguins", "body_mass_g")


def grunfeld() -> dict[str, object]:
    """Return the investment, value and capital of eleven firms in twenty years."""
    return _read("grunfeld", "invest")


def _read(name: str, target: str) -> dict[str, object]:
    import pandas as pd

    table = pd.read_csv(Path(__file__).with_name(f"{name}.csv")).dropna(subset=target)
    return {"data": table.drop(columns=target), "target": table[target]}
