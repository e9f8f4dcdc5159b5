"""
Gap against iterations
======================

Every iteration of every algorithm ends with two proved bounds on the optimum. Their relative
distance, the gap, is compared with ``tol``. Here it is plotted for two algorithms that
learn tessellated kernels: Frank-Wolfe adds one rank-one matrix at a time, and the low-rank method
takes second-order steps on a factor of the matrix.
"""

import matplotlib.pyplot as plt
import numpy as np
from kernelweave.kernels_core import Problem, TessellatedFamily, solve
from kernelweave.qp_smo import SVC
from kernelweave.spectahedron import Spectahedron
from kernelweave.workbench import ConvergenceDisplay

rng = np.random.default_rng(5)
X = rng.random((150, 4))
y = np.sign((X[:, 0] - 0.5) * (X[:, 1] - 0.5) + 0.1 * (X[:, 2] - 0.5))
family = TessellatedFamily(degree=1, lower=np.full(4, -0.1), upper=np.full(4, 1.1))
problem = Problem(family, SVC(C=10.0), Spectahedron(), X, y)

runs = {
    "tkl-frank-wolfe": solve(problem, "tkl-frank-wolfe", tol=1e-3),
    "tkl-low-rank": solve(problem, "tkl-low-rank", tol=1e-6),
}

# %%
# Iterations of the two are not comparable, so the right panel shows the number of solves of the
# support vector machine, which take most of the time.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, layout="constrained")
styles = {"tkl-frank-wolfe": {"color": "#D55E00"}, "tkl-low-rank": {"color": "#0072B2"}}
for name, run in runs.items():
    for ax, by in zip(axes, ("iterations", "n_solves"), strict=True):
        ConvergenceDisplay.from_result(run, kind="gap", by=by, ax=ax, **styles[name])
axes[1].set(xlabel="solves of the support vector machine", ylabel="")
axes[1].legend(frameon=False)
solves = {name: run.history.counts["n_solves"][-1] for name, run in runs.items()}
figure.suptitle(
    "; ".join(f"{name}: gap {run.gap:.0e} in {solves[name]} solves" for name, run in runs.items())
)
plt.show()

# %%
# Both intervals contain the same optimum, so they overlap.

[f"{run.lower_bound:.6f} to {run.upper_bound:.6f}" for run in runs.values()]
