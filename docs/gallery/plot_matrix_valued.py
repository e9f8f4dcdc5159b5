"""
Targets that move together
==========================

Six signals over the same inputs: three are noisy copies of one wave, two of its negative, and one
is different. A matrix-valued kernel learns from the data which are related, and uses it to
predict all.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from kernelweave.kernels_core import RBF
from kernelweave.vv_rkhs import MatrixValuedKernelRegressor
from sklearn.exceptions import ConvergenceWarning

rng = np.random.default_rng(0)
x = np.sort(rng.random(50))[:, None]
wave, other = np.sin(2 * np.pi * x), np.cos(5 * np.pi * x)
clean = np.hstack([wave, wave, wave, -wave, -wave, other])
Y = clean + 0.4 * rng.standard_normal(clean.shape)

kernels = [RBF(gamma=gamma) for gamma in (1.0, 10.0, 100.0)]
apart = MatrixValuedKernelRegressor(kernels, lam=0.02).fit(x, Y)
warnings.simplefilter("ignore", ConvergenceWarning)  # weights and L together: no optimum is proved
together = MatrixValuedKernelRegressor(kernels, lam=0.02, learn_output=True).fit(x, Y)

# %%
# Left: the learned output kernel as correlations. Right: one of the signals. The numbers are root
# mean squared errors over all six, compared with the noise-free signals, which neither model has
# seen.


def miss(model):
    return np.sqrt(np.mean((model.predict(x) - clean) ** 2))


L = together.output_kernel_
scale = np.sqrt(np.maximum(np.diag(L), 1e-12))
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
image = left.imshow(L / np.outer(scale, scale), cmap="PuOr", vmin=-1, vmax=1)
figure.colorbar(image, ax=left, label="correlation of outputs")
left.set(title="learned output kernel", xlabel="output", ylabel="output")
right.plot(x, Y[:, 0], ".", color="0.6", label="seen")
right.plot(x, clean[:, 0], color="0.3", ls=":", label="truth")
right.plot(
    x,
    apart.predict(x)[:, 0],
    color="#0072B2",
    ls="--",
    label=f"each output alone: {miss(apart):.3f}",
)
right.plot(x, together.predict(x)[:, 0], color="#D55E00", label=f"together: {miss(together):.3f}")
right.legend(frameon=False, fontsize=8)
right.set(xlabel="x", title=f"output 0; error {1 - miss(together) / miss(apart):.0%} smaller")
plt.show()
