"""
Forty views, of which three matter
==================================

A machine has forty sensors of three channels each, and fails when three of its parts leave their
working points. Methods that use all 120 columns at once hardly learn this. With one kernel per
view and at most three views it is learned, with a proof that no other three fit the training rows
better.
"""

import matplotlib.pyplot as plt
import numpy as np
from kernelweave.baselines import SimpleMKLClassifier
from kernelweave.kernels_core import RBF, KernelDictionary
from kernelweave.mkl_sparse import SparseMKLClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

rng = np.random.default_rng(0)
N_VIEWS, TRUE = 40, [4, 17, 31]
X = rng.standard_normal((1400, 3 * N_VIEWS))
away = sum((X[:, 3 * v : 3 * v + 3] ** 2).sum(axis=1) for v in TRUE)
y = away + 0.3 * rng.standard_normal(len(away)) > 9
X_test, y_test = X[400:], y[400:]

views = KernelDictionary(
    [RBF(gamma=0.3)], columns=[[3 * v, 3 * v + 1, 3 * v + 2] for v in range(N_VIEWS)]
)
grid = {"C": [1, 10], "gamma": [0.001, 0.003, 0.01, 0.03]}
methods = {
    "three views, proved": SparseMKLClassifier(views, C=1.0, lam=0.1, k0=3, tol=1e-2),
    "SimpleMKL": SimpleMKLClassifier(views, C=1.0),
    "boosted trees": HistGradientBoostingClassifier(max_iter=50, random_state=0),
    "random forest": RandomForestClassifier(random_state=0),
    "tuned Gaussian": GridSearchCV(SVC(), grid),
}
rows = [100, 150, 200, 300, 400]

# %%
# Each method is fitted to increasing numbers of rows, and tested on the same thousand others.

scores = {name: [] for name in methods}
weights = {}
for m in rows:
    for name, method in methods.items():
        scores[name].append(method.fit(X[:m], y[:m]).score(X_test, y_test))
    if m == 300:
        weights = {each: methods[each].weights_ for each in ("three views, proved", "SimpleMKL")}

COLOURS = ["#0072B2", "#E69F00", "#009E73", "#56B4E9", "#999999"]
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for (name, course), colour in zip(scores.items(), COLOURS, strict=True):
    left.plot(rows, course, "o-", color=colour, label=name)
left.set(xlabel="training rows", ylabel="accuracy on 1000 other rows")
left.legend(frameon=False, loc="center right", bbox_to_anchor=(1.0, 0.67))
for (name, found), colour, shift in zip(weights.items(), COLOURS, (-0.2, 0.2), strict=False):
    right.bar(np.arange(N_VIEWS) + shift, found, 0.4, color=colour, label=f"{name}, 300 rows")
right.set(xlabel="view", ylabel="weight", xticks=TRUE)
right.legend(frameon=False)
ours, others = (scores[name][rows.index(300)] for name in ("three views, proved", "boosted trees"))
figure.suptitle(f"Learned from 300 rows: {ours:.1%} right, boosted trees {others:.1%}")
plt.show()

# %%
# Accuracy with 300 training rows, and the number of views that two of the methods keep.

for name, course in scores.items():
    print(f"{name:<20} {course[rows.index(300)]:.3f}")

# %%
# SimpleMKL keeps the three true views and many others.

{name: int(np.sum(found > 1e-3)) for name, found in weights.items()}
