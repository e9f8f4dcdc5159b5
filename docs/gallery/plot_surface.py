"""
What a learned kernel looks like
================================

A Gaussian kernel has a round neighbourhood of the same width everywhere. A learned tessellated
kernel adapts to the data: here it has edges along the columns, because the boundary of the
classes has steps. Both are drawn as k(point, ·), with the decision surfaces below: the Gaussian
kernel rounds the corners off, the tessellated one keeps them.
"""

import matplotlib.pyplot as plt
import numpy as np
from kernelweave.kernels_core import RBF
from kernelweave.spectahedron import TessellatedKernelClassifier
from sklearn.inspection import DecisionBoundaryDisplay
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
# Top: k(point, ·). Bottom: decision values, which are zero on the black line.

figure, axes = plt.subplots(2, 2, figsize=(8.6, 7.4), layout="constrained")
point = np.array([[0.5, 0.5]])
first, second = np.meshgrid(np.linspace(0, 1, 60), np.linspace(0, 1, 60))
grid = np.column_stack([first.ravel(), second.ravel()])
kernels = [RBF(gamma=gaussian.best_params_["gamma"]), learned.best_estimator_.kernel_]
names = {"Gaussian, tuned": gaussian, "learned": learned}
for k, (name, search) in enumerate(names.items()):
    values = kernels[k](grid, point).reshape(first.shape)
    axes[0, k].pcolormesh(first, second, values, cmap="cividis", shading="gouraud")
    axes[0, k].plot(*point[0], "+", color="white")
    axes[0, k].set_title(name)
    boundary = DecisionBoundaryDisplay.from_estimator(
        search, X, response_method="decision_function", eps=0.0, cmap="PuOr", ax=axes[1, k]
    )
    axes[1, k].contour(boundary.xx0, boundary.xx1, boundary.response, levels=[0], colors="black")
    axes[1, k].scatter(*X.T, c=y == "a", cmap="PuOr", s=9, edgecolors="white", linewidths=0.3)
    axes[1, k].set_title(f"{search.score(X_test, y_test):.1%} of 3000 other rows are right")
plt.show()
