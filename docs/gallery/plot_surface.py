"""
What a learned kernel looks like
================================

A Gaussian kernel sees a round neighbourhood of the same width everywhere. A tessellated kernel that
was learned has the shape that its data asked for: here edges along the columns, for classes that
meet in steps. Both are drawn as seen from one point, with the decision surfaces below: one rounds
the corners off, the other keeps them.
"""

import matplotlib.pyplot as plt
import numpy as np
from kernelweave.kernels_core import RBF
from kernelweave.spectahedron import TessellatedKernelClassifier
from kernelweave.workbench import SurfaceDisplay
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

rng = np.random.default_rng(1)
X = rng.random((3300, 2))
y = np.where(X[:, 1] > 0.2 + 0.6 * (np.floor(4 * X[:, 0]) % 2), "a", "b")
X, X_test, y, y_test = X[:300], X[300:], y[:300], y[300:]

C = [0.1, 1.0, 10.0, 100.0]
gaussian = GridSearchCV(SVC(), {"C": C, "gamma": [1.0, 10.0, 100.0]}, cv=3).fit(X, y)
learned = GridSearchCV(TessellatedKernelClassifier(tol=1e-2), {"C": C}, cv=3).fit(X, y)

# %%
# Above k(point, ·), below the decision values; the black line is where they are zero.

figure, axes = plt.subplots(2, 2, figsize=(8.6, 7.4), layout="constrained")
point = [0.5, 0.5]
first, second = (np.linspace(0, 1, 60) for _ in range(2))
grid = np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2)
round_one = RBF(gamma=gaussian.best_params_["gamma"])(grid, np.array([point]))
SurfaceDisplay(
    [first, second], round_one.reshape(60, 60), ["x0", "x1"], quantity="k(·, point)"
).plot(ax=axes[0, 0])
SurfaceDisplay.from_estimator(learned, X, response="kernel", at=point, ax=axes[0, 1])
SurfaceDisplay.from_estimator(gaussian, X, y=y, ax=axes[1, 0])
SurfaceDisplay.from_estimator(learned, X, y=y, ax=axes[1, 1])
names = {"Gaussian, tuned": gaussian, "learned": learned}
for k, (name, search) in enumerate(names.items()):
    axes[0, k].set_title(name)
    axes[1, k].set_title(f"{search.score(X_test, y_test):.1%} of 3000 other rows are right")
axes[0, 0].plot(*point, "+", color="white")
axes[0, 1].plot(*point, "+", color="white")
plt.show()
