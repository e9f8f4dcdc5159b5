"""What the tables register: data sets by name."""

from __future__ import annotations

from collections.abc import Callable

from kernelweave.kernels_core import DatasetSpec, hookimpl

_LOADERS = "sklearn.datasets"
_OWN = "kernelweave.tables.bundled"
_BUNDLED = "scikit-learn's"
_DATASETS = {
    "airfoil": (
        f"{_OWN}:airfoil",
        "regression",
        "1503 airfoils in a wind tunnel, 5 measures, noise in dB; NASA, CC BY 4.0",
    ),
    "penguins": (
        f"{_OWN}:penguins",
        "regression",
        "342 penguins, species, island, sex, 3 measures, year, body mass in g; CC0",
    ),
    "grunfeld": (
        f"{_OWN}:grunfeld",
        "regression",
        "11 firms in 20 years, value, capital, investment; public domain",
    ),
    "iris": (
        f"{_LOADERS}:load_iris",
        "classification",
        f"150 flowers, 4 measures, 3 species; {_BUNDLED}",
    ),
    "wine": (
        f"{_LOADERS}:load_wine",
        "classification",
        f"178 wines, 13 analyses, 3 cultivars; {_BUNDLED}",
    ),
    "breast-cancer": (
        f"{_LOADERS}:load_breast_cancer",
        "classification",
        f"569 biopsies, 30 features; {_BUNDLED}",
    ),
    "breast-cancer-mean": (
        f"{_OWN}:breast_cancer_mean",
        "classification",
        f"569 biopsies, the 10 mean features; {_BUNDLED}",
    ),
    "digits": (
        f"{_LOADERS}:load_digits",
        "classification",
        f"1797 handwritten digits, 64 pixels; {_BUNDLED}",
    ),
    "diabetes": (
        f"{_LOADERS}:load_diabetes",
        "regression",
        f"442 patients, 10 measures, progression; {_BUNDLED}",
    ),
}


@hookimpl
def kernelweave_register_datasets(register: Callable[[DatasetSpec], None]) -> None:
    """Register the data sets."""
    for name, (target, task, summary) in _DATASETS.items():
        register(DatasetSpec(name=name, target=target, task=task, summary=summary))
