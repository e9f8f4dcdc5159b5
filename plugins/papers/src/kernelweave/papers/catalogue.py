"""Every table and figure by name: what it shows, of which paper, and where its plan is made."""

from __future__ import annotations

from collections.abc import Iterator

from .plan import PaperTable

_JMLR = "Talitckii, Colbert and Peet, JMLR 2024"
_EARLIER = "An Efficient Algorithm for Tessellated Kernel Learning, anonymous, 2021"
_SPARSE = "Bertsimas, Iglesias and Johnson 2025"
_RIDGE = "Li, Venturi and Xu, Learning the Kernel for Classification and Regression"
_MATRIX = "Sindhwani, Minh and Lozano 2013"
_GRAPHS = "Marbach et al. 2010 (DREAM3) and Lorenz 1996, for their data alone"
_OWN = "ours: no paper has it"
# name: function, where it is printed, summary, settings of the function
_TESSELLATED: dict[str, tuple[str, str, str, dict[str, object]]] = {
    "1": ("times:table", f"{_JMLR}, Table 1", "seconds of a fit on four sets", {}),
    "3": (
        *("accuracy:table", f"{_JMLR}, Table 3", "errors on six regression sets"),
        {"task": "regression"},
    ),
    "4": (
        *("accuracy:table", f"{_JMLR}, Table 4", "accuracy on six classification sets"),
        {"task": "classification"},
    ),
    "figure-1": (
        *("convergence:figure", f"{_JMLR}, Figure 1", "gap against iteration"),
        {"year": 2024},
    ),
    "figure-2": (
        *("scaling:figure", f"{_JMLR}, Figure 2", "seconds of an iteration"),
        {"year": 2024},
    ),
    "figure-3": ("surface:figure", f"{_JMLR}, Figure 3", "the Grand Canyon's surface", {}),
    "figure-4": ("ranks:figure", f"{_JMLR}, Figure 4", "inner steps against the rank of P", {}),
    "2021-figure-2": (
        *("convergence:figure", f"{_EARLIER}, Figure 2", "gap against iteration on four sets"),
        {"year": 2021},
    ),
    "2021-figure-3": (
        *("scaling:figure", f"{_EARLIER}, Figure 3", "seconds of a whole fit"),
        {"year": 2021},
    ),
    "exponents": (
        *("parts:table", f"{_JMLR}, Figure 2"),
        *("growth of Gram, moment matrix, learner and iteration with m and n_P", {}),
    ),
    "gas-turbine": (
        *("gas_turbine:table", f"{_JMLR}, Table 3, first row at its full size"),
        *("one certified fit to 30,000 samples: seconds, memory and error", {}),
    ),
}
# number: function, summary
_SPARSE_TABLES = {
    1: ("tasks:table", "the ten tasks: samples, columns and positive labels"),
    2: ("fits:table", "test accuracy of Algorithm 1, of proved optima and of tuned optima"),
    3: ("fits:table", "kernels used by Algorithm 1, by proved optima and by tuned optima"),
    4: ("fits:table", "seconds of a fit by Algorithm 1 and of a proved optimum"),
    5: ("fits:table", "test accuracy of Algorithm 1 by its start"),
    6: ("objectives:table", "lower bounds, and objectives of Algorithm 1 and of the optimum"),
    7: ("objectives:table", "per cent between lower bounds and the objectives above them"),
    8: ("fifty:table", "test accuracy with fifty kernels"),
    9: ("fifty:table", "kernels used, of fifty"),
    10: ("fifty:table", "seconds of a fit with fifty kernels"),
}
_RIDGE_TABLES = {
    1: "cross-validation errors on ionosphere",
    2: "test errors on ionosphere",
    3: "cross-validation errors on sonar",
    4: "test errors on sonar",
}
_RIDGE_FIGURES = (
    *("regression on ionosphere", "regression on sonar"),
    *("classification on ionosphere", "classification on sonar"),
    *("regression on breast cancer", "regression on diabetes", "regression on fourclass"),
    *("regression on german", "regression on heart"),
    *("classification on breast cancer", "classification on diabetes", "classification on heart"),
)
_MATRIX_FIGURES = {
    1: ("matrix_valued.inexactness", "objective against time, 102 classes"),
    2: ("matrix_valued.inexactness", "accuracy against time, 102 classes"),
    3: ("granger.genes", "held-out error, fruit-fly genes"),
    4: ("granger.genes", "causal graphs of gene groups"),
    5: ("granger.genes", "interactions in a gene group"),
}


def tables() -> dict[str, PaperTable]:
    """Return every table and figure by name, paper by paper.

    Returns
    -------
    dict of str to PaperTable
        Nothing of a paper is imported before a table is planned.

    Examples
    --------
    >>> from kernelweave.papers import tables
    >>> tables()["vv-1"].paper
    'Sindhwani, Minh and Lozano 2013, Table 1'
    """
    papers = (_tessellated(), _sparse(), _ridge(), _matrix_valued(), _study())
    return {table.name: table for paper in papers for table in paper}


def _table(name: str, target: str, paper: str, summary: str, **settings: object) -> PaperTable:
    target = f"kernelweave.papers.{target}"
    return PaperTable(name=name, target=target, paper=paper, summary=summary, settings=settings)


def _tessellated() -> Iterator[PaperTable]:
    for name, (target, paper, summary, settings) in _TESSELLATED.items():
        yield _table(f"tkl-{name}", f"tessellated.{target}", paper, summary, **settings)


def _sparse() -> Iterator[PaperTable]:
    for number, (target, summary) in _SPARSE_TABLES.items():
        paper = f"{_SPARSE}, Table {number}"
        settings = {} if number == 1 else {"number": number}
        yield _table(f"smkl-{number}", f"sparse.{target}", paper, summary, **settings)
    paper = f"{_SPARSE}, section 6, which leaves it to the future"
    summary = "bounds, proved optima, learner solves and seconds on the ten sets"
    yield _table("smkl-optima", "sparse.optima:table", paper, summary)
    for n_kernels, numbers in ((8, "2"), (50, "8")):
        paper = f"{_SPARSE}, section 5, question 1, and Table {numbers}"
        summary = f"baselines, Algorithm 1 and the proved optimum tuned alike, {n_kernels} kernels"
        name = "smkl-question" if n_kernels == 8 else f"smkl-question-{n_kernels}"
        yield _table(name, "sparse.question:table", paper, summary, n_kernels=n_kernels)
    summary = "three of forty views, over ten seeds: who finds them, and how well all predict"
    yield _table("smkl-views", "sparse.views:table", _OWN, summary)
    summary = "the share of draws in which the true views are found, by rows and views"
    yield _table("smkl-views-phase", "sparse.phase:figure", _OWN, summary)
    summary = "what it costs to prove which few of 40 to 200 views are best"
    yield _table("smkl-proofs", "sparse.proofs:table", _OWN, summary)
    summary = "nine views of real digits, two of them noise, over ten splits"
    yield _table("smkl-views-digits", "sparse.views:table", _OWN, summary, n_views=0)


def _ridge() -> Iterator[PaperTable]:
    for number, summary in _RIDGE_TABLES.items():
        paper = f"{_RIDGE}, Table {number}"
        yield _table(f"krr-{number}", "ridge.tables:table", paper, summary, number=number)
    for number, subject in enumerate(_RIDGE_FIGURES, 1):
        name, paper = f"krr-figure-{number}", f"{_RIDGE}, Figure {number}"
        task, _, data = subject.partition(" on ")
        summary = f"{subject}: error against λ by degree"
        yield _table(name, "ridge.figures:figure", paper, summary, data=data, task=task)


def _matrix_valued() -> Iterator[PaperTable]:
    summary = "next week's returns of nine stocks"
    yield _table("vv-1", "matrix_valued.stocks:table", f"{_MATRIX}, Table 1", summary)
    for number, (home, summary) in _MATRIX_FIGURES.items():
        name, paper = f"vv-figure-{number}", f"{_MATRIX}, Figure {number}"
        yield _table(name, f"{home}:figure", paper, summary, number=number)
    summary = "several outputs by MatrixValuedKernelRegressor, himalaya, kernel ridge and trees"
    yield _table("vv-several-outputs", "matrix_valued.rivals:table", _OWN, summary)
    summary = "DREAM3 and Lorenz-96 against the lasso"
    yield _table("vv-known-graphs", "granger.known_graphs:table", _GRAPHS, summary)
    summary = "Lorenz-96 by GrangerGraph, PCMCI, F tests, a forest and the lasso"
    yield _table("vv-graph-rivals", "granger.rivals:table", _OWN, summary)
    summary = "which edges of 200 random systems pass a test, and how many of them are false"
    yield _table("vv-graph-decisions", "granger.decisions:table", _OWN, summary)


def _study() -> Iterator[PaperTable]:
    summary = "is a kernel chosen by the evidence better than what you would pick today?"
    yield _table("study", "study.comparison:study", _OWN, summary)
    summary = "does a learned P of a tessellated kernel beat P = I?"
    yield _table("study-p", "study.learned_matrix:study", _OWN, summary)
    summary = "evidence kernels from thousands of rows to a million: scores and CPU seconds"
    yield _table("large", "study.large:large", _OWN, summary)
