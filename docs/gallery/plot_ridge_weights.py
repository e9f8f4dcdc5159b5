"""
Kernel weights under a squared loss
===================================

Ridge regression on twelve Gaussian kernels of different widths, whose weights are learned in balls
of different norms. A small exponent selects few kernels, a large one distributes the weight. Each
fit proves that no other weights in the ball have a lower objective.
"""

import matplotlib.pyplot as plt
import numpy as np
from kernelweave.kernels_core import RBF
from kernelweave.ridge_mkl import RidgeMKLRegressor
from sklearn.model_selection import train_test_split

rng = np.random.default_rng(0)
x = np.sort(rng.random(160))[:, None]
clean = np.sin(2 * np.pi * x[:, 0]) + 0.4 * np.sin(24 * np.pi * x[:, 0])
X, X_test, y, y_test = train_test_split(x, clean + 0.15 * rng.standard_normal(160), random_state=0)

widths = np.geomspace(1.0, 1e4, 12)
kernels = [RBF(gamma=float(width)) for width in widths]
norms = [1.0, 1.5, 2.0, 4.0]
fits = [RidgeMKLRegressor(kernels, lam=0.5, q=q, center=0.0).fit(X, y) for q in norms]

# %%
# The target is the sum of a slow and a fast wave, and the weights select a wide and a narrow
# kernel.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
looks = zip(fits, norms, "ovs^", ("#0072B2", "#D55E00", "#009E73", "#CC79A7"), strict=True)
for fit, q, marker, color in looks:
    weights = fit.weights_ / fit.weights_.max()
    used = np.sum(weights > 1e-3)
    label = f"q = {q:g}: {used} kernels, R² {fit.score(X_test, y_test):.2f}"
    left.semilogx(widths, weights, marker=marker, ms=4, color=color, label=label)
left.set(xlabel="γ of the kernel", ylabel="weight, largest = 1")
left.legend(frameon=False, fontsize=8)
grid = np.linspace(0, 1, 400)[:, None]
right.plot(X, y, ".", color="0.6", ms=4)
right.plot(grid, fits[0].predict(grid), color="#D55E00", lw=1.4)
right.set(xlabel="x", title="the fit with q = 1")
plt.show()

# %%
# The relative gaps:

[f"q = {q:g}: {fit.certificate_.gap:.1e}" for q, fit in zip(norms, fits, strict=True)]
