"""What the workbench registers: commands, data sets of scikit-learn, tables of papers."""

from __future__ import annotations

from collections.abc import Callable

from kernelweave.kernels_core import CommandSpec, DatasetSpec, TableSpec, hookimpl

from .commands import BUILTIN

_LOADERS = "sklearn.datasets"
_OWN = "kernelweave.workbench.data.bundled"
_DATASETS = {
    "iris": (f"{_LOADERS}:load_iris", "classification", "150 flowers, 4 measures, 3 species"),
    "wine": (f"{_LOADERS}:load_wine", "classification", "178 wines, 13 analyses, 3 cultivars"),
    "breast-cancer": (
        f"{_LOADERS}:load_breast_cancer",
        "classification",
        "569 biopsies, 30 features",
    ),
    "breast-cancer-mean": (
        f"{_OWN}:breast_cancer_mean",
        "classification",
        "569 biopsies, the 10 mean features",
    ),
    "digits": (f"{_LOADERS}:load_digits", "classification", "1797 handwritten digits, 64 pixels"),
    "diabetes": (
        f"{_LOADERS}:load_diabetes",
        "regression",
        "442 patients, 10 measures, progression",
    ),
}
_BUNDLED = "scikit-learn's"

_JMLR = "Talitckii, Colbert and Peet, JMLR 2024"
_ICML = "Colbert and Peet, ICML 2021"
_REPRODUCTIONS = "kernelweave.workbench.reproductions"
_TABLES = {
    "tkl-1": ("times:table_1", f"{_JMLR}, Table 1", "seconds of a fit on four sets"),
    "tkl-3": ("accuracy:table_3", f"{_JMLR}, Table 3", "errors on six regression sets"),
    "tkl-4": ("accuracy:table_4", f"{_JMLR}, Table 4", "accuracy on six classification sets"),
    "tkl-figure-1": ("convergence:figure_1", f"{_JMLR}, Figure 1", "gap against iteration"),
    "tkl-figure-2": ("scaling:figure_2", f"{_JMLR}, Figure 2", "seconds of an iteration"),
    "tkl-figure-3": ("surface:figure_3", f"{_JMLR}, Figure 3", "the Grand Canyon's surface"),
    "tkl-figure-4": ("ranks:figure_4", f"{_JMLR}, Figure 4", "inner steps against the rank of P"),
    "tkl-2021-figure-2": (
        "convergence:icml_figure_2",
        f"{_ICML}, Figure 2",
        "gap against iteration on four sets",
    ),
    "tkl-2021-figure-3": ("scaling:icml_figure_3", f"{_ICML}, Figure 3", "seconds of a whole fit"),
}


@hookimpl
def kernelweave_register_commands(register: Callable[[CommandSpec], None]) -> None:
    """Register the commands, so that a plugin's command of the same name is refused."""
    for spec in BUILTIN:
        register(spec)


@hookimpl
def kernelweave_register_datasets(register: Callable[[DatasetSpec], None]) -> None:
    """Register the data sets."""
    for name, (target, task, summary) in _DATASETS.items():
        about = f"{summary}; {_BUNDLED}"
        register(DatasetSpec(name=name, target=target, task=task, summary=about))


@hookimpl
def kernelweave_register_tables(register: Callable[[TableSpec], None]) -> None:
    """Register the tables and figures of the tessellated-kernel papers, and a study of ours."""
    register(
        TableSpec(
            name="study",
            target="kernelweave.workbench.studies.learned_or_tuned:study",
            paper="ours: no paper has it",
            summary="does learning the kernel beat a tuned Gaussian?",
        )
    )
    for name, (target, paper, summary) in _TABLES.items():
        spec = TableSpec(
            name=name, target=f"{_REPRODUCTIONS}.{target}", paper=paper, summary=summary
        )
        register(spec)
