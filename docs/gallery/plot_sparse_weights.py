"""
Two kernels instead of eight
============================

The same data with the weights of all eight kernels free, and with at most four or two of them. Few
can do as well as many, and a reader can say what they are.
"""

import matplotlib.pyplot as plt
from kernelweave.baselines import SimpleMKLClassifier
from kernelweave.mkl_sparse import SparseMKLClassifier
from kernelweave.workbench import KernelWeightsDisplay
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

X, y = load_wine(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y == 1, random_state=0, stratify=y)

free = make_pipeline(StandardScaler(), SimpleMKLClassifier(C=10.0)).fit(X, y)
two = SparseMKLClassifier(C=10.0, lam=10.0, k0=2).fit(X, y)
four = SparseMKLClassifier(C=10.0, lam=10.0, k0=4).fit(X, y)

# %%
# The weights; the percentages are accuracies on samples that were held out.

models = {"no limit": free, "at most four": four, "at most two": two}
figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    KernelWeightsDisplay.from_estimator(model, ax=ax)
    ax.set(title=f"{name}: {model.score(X_test, y_test):.1%}", xlim=(0, 1))
plt.show()

# %%
# What is proved of the choice of two.

print(two.certificate_.lower_proof)
print(f"relative gap {two.certificate_.gap:.1e}")
