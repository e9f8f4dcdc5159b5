"""One small fit with each member: what must work where that member is installed alone.

Nothing but the standard library is imported above the functions: one member needs no NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


def samples() -> tuple[np.ndarray, np.ndarray]:
    """Return thirty points in two overlapping classes."""
    import numpy as np

    X = np.random.default_rng(0).random((30, 2))
    return X, np.where(X[:, 0] + 0.3 * np.sin(9.0 * X[:, 1]) > 0.5, 1.0, -1.0)


def kernels_core() -> float:
    import numpy as np
    from kernelweave.kernels_core import RBF, KernelDictionary, Linear

    X, _ = samples()
    grams = KernelDictionary([Linear(), RBF(gamma=2.0)]).fit_grams(X).grams
    return float(np.asarray(grams[1]).mean())


def qp_smo() -> float:
    from kernelweave.kernels_core import RBF
    from kernelweave.qp_smo import solve_svc

    X, y = samples()
    solution = solve_svc(RBF(gamma=2.0)(X), y, C=1.0)
    return float(solution.upper_bound - solution.lower_bound)


def spectahedron() -> float:
    from kernelweave.spectahedron import TessellatedKernelClassifier

    return float(TessellatedKernelClassifier(tol=0.1).fit(*samples()).certificate_.gap)


def mkl_sparse() -> float:
    from kernelweave.mkl_sparse import SparseMKLClassifier

    return float(SparseMKLClassifier(k0=2).fit(*samples()).score(*samples()))


def relaxations() -> float:
    from kernelweave.mkl_sparse import SparseMKLClassifier
    from kernelweave.relaxations import certify

    return float(certify(SparseMKLClassifier(k0=2).fit(*samples())).gap)


def vv_rkhs() -> float:
    import numpy as np
    from kernelweave.vv_rkhs import MatrixValuedKernelRegressor

    X, y = samples()
    Y = np.stack([y, -y], axis=1)
    return float(MatrixValuedKernelRegressor(lam=0.1, tol=1e-2).fit(X, Y).score(X, Y))


def baselines() -> float:
    from kernelweave.baselines import AverageMKLClassifier

    return float(AverageMKLClassifier().fit(*samples()).score(*samples()))


def ridge_mkl() -> float:
    from kernelweave.ridge_mkl import RidgeMKLRegressor

    return float(RidgeMKLRegressor(lam=0.1).fit(*samples()).certificate_.gap)


def granger() -> float:
    import numpy as np
    from kernelweave.granger import GrangerGraph

    series = np.random.default_rng(0).standard_normal((40, 3))
    return float(GrangerGraph(lam=0.1, cv=None, tol=1e-1).fit(series).graph_.sum())


def tables() -> float:
    from kernelweave.tables import read_table

    return float(read_table("iris").numbers("petal width (cm)").mean())


def evidence() -> float:
    from kernelweave.evidence import ColumnEncoder

    return float(ColumnEncoder().fit_transform(samples()[0]).numeric.mean())


def check() -> float:
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from kernelweave_check import check as checked

    lines = (
        '{"format":"kernelweave-proof 1","set":"sparse","n_rows":1,"n_kernels":1,"k0":1,'
        '"views":[0],"n_views":1,"lambda":"0","degree":1,"epsilon":"0","intercept":1,'
        '"lower":"0","upper":"0"}',
        '{"task":{"linear":{"exponent":0,"values":[1]},"low":{"exponent":0,"values":[0]},'
        '"high":{"exponent":0,"values":[1]},"curvature":{"exponent":0,"values":[0]}}}',
        '{"kernel":{"exponent":0,"rows":[[1]]}}',
        '{"weights":{"exponent":0,"values":[1]},"points":[{"exponent":0,"values":[0]}],'
        '"offsets":["1"]}',
        '{"factor":{"exponent":0,"rows":[[1]]}}',
        '{"cut":[{"exponent":0,"values":[0]}]}',
        '{"cuts":[0],"weights":[1],"tau":"0"}',
    )
    with TemporaryDirectory() as folder:
        path = Path(folder, "proof.jsonl")
        path.write_text("\n".join(lines) + "\n", encoding="ascii")
        return float(checked(path).upper)


def template() -> float:
    from kernelweave.kernels_core import RBF, KernelDictionary, Linear, Problem, solve
    from kernelweave.qp_smo import SVC
    from kernelweave_template import TemplateSimplex

    X, y = samples()
    family = KernelDictionary([Linear(), RBF(gamma=1.0)])
    problem = Problem(family, SVC(C=1.0), TemplateSimplex(), X, y)
    return float(solve(problem, "template-exponentiated-gradient", tol=1e-1).gap)


def workbench() -> float:
    from kernelweave.workbench.app import run

    status = run(["fit", "iris", "--max-iter", "20", "--no-compare", "--json"])
    return 0.0 if status == 0 else float("nan")


def papers() -> float:
    from kernelweave.papers import Request
    from kernelweave.papers import tables as papers_tables

    plan = papers_tables()["vv-figure-2"].plan(Request(quick=True, most_samples=60))
    cell = next(cell for cell in plan.cells if cell.key == "vv-dinuzzo")
    return float(max(cell.compute(**cell.arguments)["accuracy"]))


FITS: dict[str, Callable[[], float]] = {
    "kernelweave.kernels_core": kernels_core,
    "kernelweave.qp_smo": qp_smo,
    "kernelweave.spectahedron": spectahedron,
    "kernelweave.mkl_sparse": mkl_sparse,
    "kernelweave.relaxations": relaxations,
    "kernelweave.vv_rkhs": vv_rkhs,
    "kernelweave.baselines": baselines,
    "kernelweave.ridge_mkl": ridge_mkl,
    "kernelweave.granger": granger,
    "kernelweave.tables": tables,
    "kernelweave.evidence": evidence,
    "kernelweave_check": check,
    "kernelweave_template": template,
    "kernelweave.workbench": workbench,
    "kernelweave.papers": papers,
}
