"""What the tables register: data sets by name."""

from __future__ import annotations

from collections.abc import Callable

from kernelweave.kernels_core import DatasetSpec, hookimpl

# of this package; the others are scikit-learn's
_OWN = ("airfoil", "penguins", "grunfeld", "breast-cancer-mean")
_BUNDLED = "scikit-learn's"
_DATASETS = {
    "regression": {
        "airfoil": "1503 airfoils in a wind tunnel, 5 measures, noise in dB; NASA, CC BY 4.0",
        "penguins": "342 penguins, species, island, sex, 3 measures, year, body mass in g; CC0",
        "grunfeld": "11 firms in 20 years, value, capital, investment; public domain",
        "diabetes": f"442 patients, 10 measures, progression; {_BUNDLED}",
    },
    "classification": {
        "iris": f"150 flowers, 4 measures, 3 species; {_BUNDLED}",
        "wine": f"178 wines, 13 analyses, 3 cultivars; {_BUNDLED}",
        "breast-cancer": f"569 biopsies, 30 features; {_BUNDLED}",
        "breast-cancer-mean": f"569 biopsies, the 10 mean features; {_BUNDLED}",
        "digits": f"1797 handwritten digits, 64 pixels; {_BUNDLED}",
    },
}


@hookimpl
def kernelweave_register_datasets(register: Callable[[DatasetSpec], None]) -> None:
    """Register the data sets."""
    for task, summaries in _DATASETS.items():
        for name, summary in summaries.items():
            loader = name.replace("-", "_")
            bundled = f"kernelweave.tables.bundled:{loader}"
            target = bundled if name in _OWN else f"sklearn.datasets:load_{loader}"
            register(DatasetSpec(name=name, target=target, task=task, summary=summary))
