"""Every table and figure by name: what it shows, of which paper, and where its plan is made."""

from __future__ import annotations

from .plan import Table

_JMLR = "Talitckii, Colbert and Peet, JMLR 2024"
_ICML = "Colbert and Peet, ICML 2021"
_SPARSE = "Bertsimas, Iglesias and Johnson 2025"
_RIDGE = "Li, Venturi and Xu, Learning the Kernel for Classification and Regression"
_MATRIX = "Sindhwani, Minh and Lozano 2013"
_GRAPHS = "Marbach et al. 2010 (DREAM3) and Lorenz 1996, for their data alone"
_RIDGE_FIGURES = (
    *("regression on ionosphere", "regression on sonar"),
    *("classification on ionosphere", "classification on sonar"),
    *("regression on breast cancer", "regression on diabetes", "regression on fourclass"),
    *("regression on german", "regression on heart"),
    *("classification on breast cancer", "classification on diabetes", "classification on heart"),
)
# name: target, paper, summary; in the order in which they are listed
_TABLES = {
    "tkl-1": ("tessellated.times:table_1", f"{_JMLR}, Table 1", "seconds of a fit on four sets"),
    "tkl-3": ("tessellated.accuracy:table_3", f"{_JMLR}, Table 3", "errors on six regression sets"),
    "tkl-4": (
        "tessellated.accuracy:table_4",
        f"{_JMLR}, Table 4",
        "accuracy on six classification sets",
    ),
    "tkl-figure-1": (
        "tessellated.convergence:figure_1",
        f"{_JMLR}, Figure 1",
        "gap against iteration",
    ),
    "tkl-figure-2": (
        "tessellated.scaling:figure_2",
        f"{_JMLR}, Figure 2",
        "seconds of an iteration",
    ),
    "tkl-figure-3": (
        "tessellated.surface:figure_3",
        f"{_JMLR}, Figure 3",
        "the Grand Canyon's surface",
    ),
    "tkl-figure-4": (
        "tessellated.ranks:figure_4",
        f"{_JMLR}, Figure 4",
        "inner steps against the rank of P",
    ),
    "tkl-2021-figure-2": (
        "tessellated.convergence:icml_figure_2",
        f"{_ICML}, Figure 2",
        "gap against iteration on four sets",
    ),
    "tkl-2021-figure-3": (
        "tessellated.scaling:icml_figure_3",
        f"{_ICML}, Figure 3",
        "seconds of a whole fit",
    ),
    "tkl-gas-turbine": (
        "tessellated.gas_turbine:table",
        f"{_JMLR}, Table 3, first row at its full size",
        "one certified fit to 30,000 samples: seconds, memory and error",
    ),
    "tkl-exponents": (
        "tessellated.parts:table",
        f"{_JMLR}, Figure 2",
        "growth of Gram, moment matrix, learner and iteration with m and n_P",
    ),
    "smkl-2": (
        "sparse.accuracy:accuracy",
        f"{_SPARSE}, Table 2",
        "test accuracy of Algorithm 1, of proved optima and of tuned optima",
    ),
    "smkl-3": (
        "sparse.accuracy:sparsity",
        f"{_SPARSE}, Table 3",
        "kernels used by Algorithm 1, by proved optima and by tuned optima",
    ),
    "smkl-4": (
        "sparse.accuracy:times",
        f"{_SPARSE}, Table 4",
        "seconds of a fit by Algorithm 1 and of a proved optimum",
    ),
    "smkl-5": (
        "sparse.accuracy:warm_starts",
        f"{_SPARSE}, Table 5",
        "test accuracy of Algorithm 1 by its start",
    ),
    "smkl-6": (
        "sparse.objectives:objectives",
        f"{_SPARSE}, Table 6",
        "lower bounds, and objectives of Algorithm 1 and of the proved optimum",
    ),
    "smkl-7": (
        "sparse.objectives:gaps",
        f"{_SPARSE}, Table 7",
        "per cent between lower bounds and the objectives above them",
    ),
    "smkl-8": (
        "sparse.fifty:fifty_accuracy",
        f"{_SPARSE}, Table 8",
        "test accuracy with fifty kernels",
    ),
    "smkl-9": ("sparse.fifty:fifty_sparsity", f"{_SPARSE}, Table 9", "kernels used, of fifty"),
    "smkl-10": (
        "sparse.fifty:fifty_times",
        f"{_SPARSE}, Table 10",
        "seconds of a fit with fifty kernels",
    ),
    "smkl-optima": (
        "sparse.optima:optima",
        f"{_SPARSE}, section 6, which leaves it to the future",
        "bounds, proved optima, learner solves and seconds on the ten sets",
    ),
    "mkl-baselines": (
        "sparse.baselines:baselines_table",
        f"{_SPARSE}, Tables 2 to 4, the columns of baselines",
        "accuracy, kernels used and seconds of five baselines on ten sets",
    ),
    **{
        f"krr-{number}": (
            f"ridge.tables:table_{number}",
            f"{_RIDGE}, Table {number}",
            f"{what} errors on {data}",
        )
        for number, (data, what) in enumerate(
            (
                (data, what)
                for data in ("ionosphere", "sonar")
                for what in ("cross-validation", "test")
            ),
            1,
        )
    },
    **{
        f"krr-figure-{number}": (
            f"ridge.figures:figure_{number}",
            f"{_RIDGE}, Figure {number}",
            f"{subject}: error against λ by degree",
        )
        for number, subject in enumerate(_RIDGE_FIGURES, 1)
    },
    "vv-1": (
        "matrix_valued.stocks:stocks_table",
        f"{_MATRIX}, Table 1",
        "next week's returns of nine stocks",
    ),
    "vv-figure-1": (
        "matrix_valued.inexactness:objective_figure",
        f"{_MATRIX}, Figure 1",
        "objective against time, 102 classes",
    ),
    "vv-figure-2": (
        "matrix_valued.inexactness:accuracy_figure",
        f"{_MATRIX}, Figure 2",
        "accuracy against time, 102 classes",
    ),
    "vv-figure-3": (
        "granger.genes:error_figure",
        f"{_MATRIX}, Figure 3",
        "held-out error, fruit-fly genes",
    ),
    "vv-figure-4": (
        "granger.genes:graph_figure",
        f"{_MATRIX}, Figure 4",
        "causal graphs of gene groups",
    ),
    "vv-figure-5": (
        "granger.genes:output_figure",
        f"{_MATRIX}, Figure 5",
        "interactions in a gene group",
    ),
    "vv-known-graphs": (
        "granger.known_graphs:known_graphs_table",
        _GRAPHS,
        "DREAM3 and Lorenz-96 against the lasso",
    ),
    "study": (
        "study.learned_or_tuned:study",
        "ours: no paper has it",
        "does learning the kernel beat a tuned Gaussian?",
    ),
}


def tables() -> dict[str, Table]:
    """Return every table and figure by name, paper by paper.

    Returns
    -------
    dict of str to Table
        Nothing of a paper is imported before a table is loaded.

    Examples
    --------
    >>> from kernelweave.papers import tables
    >>> tables()["vv-1"].paper
    'Sindhwani, Minh and Lozano 2013, Table 1'
    """
    return {
        name: Table(name=name, target=f"kernelweave.papers.{target}", paper=paper, summary=summary)
        for name, (target, paper, summary) in _TABLES.items()
    }
