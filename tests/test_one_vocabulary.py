"""One mistake, one sentence, whoever is given it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kernelweave.baselines import AverageMKLClassifier, SimpleMKLClassifier, SimpleMKLRegressor
from kernelweave.granger import GrangerGraph
from kernelweave.kernels_core import (
    RBF,
    KernelDictionary,
    KernelLearningClassifier,
    KernelLearningRegressor,
    Polynomial,
    TessellatedFamily,
)
from kernelweave.mkl_sparse import SparseMKLClassifier, SparseMKLRegressor, sparse_mkl_path
from kernelweave.qp_smo import (
    SVC,
    SVR,
    QuantileSVR,
    SquaredHingeSVC,
    solve_quantile_svr,
    solve_svc,
    solve_svr,
)
from kernelweave.qp_smo.saddle import solve_kernel_weights
from kernelweave.ridge_mkl import GeneralizedMKLClassifier, RidgeMKLClassifier, RidgeMKLRegressor
from kernelweave.spectahedron import TessellatedKernelClassifier, TessellatedKernelRegressor
from kernelweave.vv_rkhs import (
    MatrixValuedKernelClassifier,
    MatrixValuedKernelRegressor,
    VectorLeastSquares,
)
from kernelweave.vv_rkhs.constraint import given_weights
from workspace import members

X = np.linspace(-1.0, 1.0, 12)[:, None]
Y = np.where(X[:, 0] > 0, 1.0, -1.0)
K = X @ X.T

MACHINES = [
    AverageMKLClassifier,
    SimpleMKLClassifier,
    SimpleMKLRegressor,
    SparseMKLClassifier,
    SparseMKLRegressor,
    GeneralizedMKLClassifier,
    RidgeMKLClassifier,
    RidgeMKLRegressor,
    TessellatedKernelClassifier,
    TessellatedKernelRegressor,
    KernelLearningClassifier,
    KernelLearningRegressor,
    MatrixValuedKernelClassifier,
    MatrixValuedKernelRegressor,
]


def fits(**parameters: Any) -> list[Callable[[], Any]]:
    """Return a fit of every estimator that has the parameters."""
    known = [each for each in MACHINES if parameters.keys() <= set(each._get_param_names())]
    return [lambda each=each: each(**parameters).fit(X, Y) for each in known]


def at_penalty(C: float) -> list[Callable[[], Any]]:
    return [
        *fits(C=C),
        lambda: solve_svc(K, Y, C=C),
        lambda: solve_svr(K, Y, C=C, epsilon=0.1),
        lambda: SquaredHingeSVC(C=C).solve(K, Y),
        lambda: SVC(C=C).solve(K, Y),
        lambda: SVR(C=C).solve(K, Y),
        lambda: QuantileSVR(C=C).solve(K, Y),
        lambda: solve_quantile_svr(K, Y, C=C),
        lambda: solve_kernel_weights([K], Y, C=C),
        lambda: sparse_mkl_path([K], Y, Cs=[C], lams=[1.0], k0s=[1]),
    ]


LIMITED = [
    lambda **limit: solve_svc(K, Y, C=1.0, **limit),
    lambda **limit: solve_svr(K, Y, C=1.0, epsilon=0.1, **limit),
    lambda **limit: solve_quantile_svr(K, Y, C=1.0, **limit),
    lambda **limit: solve_kernel_weights([K], Y, C=1.0, **limit),
]


def limits(**limit: Any) -> list[Callable[[], Any]]:
    return [*fits(**limit), *(lambda each=each: each(**limit) for each in LIMITED)]


MISTAKES = {
    "C must be a finite number > 0, got -1.0": at_penalty(-1.0),
    "C must be a finite number > 0, got nan": at_penalty(np.nan),
    "lam must be a finite number > 0, got -1": [
        *fits(lam=-1),
        lambda: VectorLeastSquares(lam=-1).validate(),
        lambda: sparse_mkl_path([K], Y, Cs=[1.0], lams=[-1], k0s=[1]),
    ],
    "epsilon must be a finite number >= 0, got -1": [
        *fits(epsilon=-1),
        lambda: solve_svr(K, Y, C=1.0, epsilon=-1),
        lambda: SVR(epsilon=-1).validate(),
    ],
    "max_iter must be an integer >= 1, got 0": [
        *limits(max_iter=0),
        lambda: GrangerGraph(max_iter=0).fit(X),
    ],
    "max_time must be None or a number > 0, got -1": limits(max_time=-1),
    "verbose must be an integer, got 'loud'": fits(verbose="loud"),
    "random_state must be None or an integer from 0 to 4294967295 or a numpy RandomState, got -1": [
        *fits(random_state=-1),
        lambda: GrangerGraph(random_state=-1).fit(X),
    ],
    "on_interrupt must be one of 'raise', 'return', got 'ask'": fits(on_interrupt="ask"),
    "multiclass must be one of 'shared', 'ovr', 'ovo', got 'all'": fits(multiclass="all"),
    "dtype must be one of 'float64', 'float32', got 'float16'": [
        *fits(dtype="float16"),
        lambda: KernelDictionary([RBF()]).fit_grams(X, dtype="float16"),
    ],
    "degree must be an integer >= 0, got -1": [
        lambda: TessellatedKernelClassifier(degree=-1).fit(X, Y),
        lambda: TessellatedFamily(-1, lower=[0.0], upper=[1.0]),
    ],
    "k0 must be an integer >= 1, got 0": [
        *fits(k0=0),
        lambda: sparse_mkl_path([K], Y, Cs=[1.0], lams=[1.0], k0s=[0]),
    ],
    "weights must be 1 finite numbers >= 0, one per kernel, got array([-1.])": [
        lambda: solve_kernel_weights([K], Y, C=1.0, weights0=[-1.0]),
        lambda: SparseMKLClassifier([RBF()], init=[-1.0], algorithm="smkl-best-response").fit(X, Y),
        lambda: given_weights([-1.0], 1),
    ],
    "sample_weight must be at least 0, got -1.0 at position 0": [
        lambda: solve_svc(K, Y, C=1.0, sample_weight=-np.ones(12)),
        lambda: solve_kernel_weights([K], Y, C=1.0, sample_weight=-np.ones(12)),
        lambda: AverageMKLClassifier().fit(X, Y, -np.ones(12)),
        lambda: TessellatedKernelRegressor().fit(X, Y, -np.ones(12)),
    ],
}


def refusal(make: Callable[[], Any]) -> str:
    with pytest.raises(ValueError, match="must be") as refused:
        make()
    return str(refused.value)


@pytest.mark.parametrize("sentence", MISTAKES)
def test_one_mistake_has_one_sentence(sentence: str) -> None:
    said = [refusal(make) for make in MISTAKES[sentence]]
    assert len(said) > 1
    assert said == [sentence] * len(said)


def test_kernels_say_whose_parameter_it_is() -> None:
    with pytest.raises(ValueError, match=r"^RBF: gamma must be a finite number > 0, got -1$"):
        RBF(gamma=-1)(X)
    wrong = Polynomial(degree=0)
    with pytest.raises(ValueError, match=r"^Polynomial: degree must be an integer >= 1, got 0$"):
        wrong(X)


# what a `Rule` says: a number, an integer, one of a few words
SENTENCE = re.compile(r"must be (one of|(None or )?(a|an) (finite |positive )?(number|integer))\b")
# lists that a rule for words does not hold, or endings of the command line
BY_HAND = {
    "kernelweave.tables.columns",  # of a column's values, with their rows
    "kernelweave.granger.page",  # lags are numbers
    "kernelweave.mkl_sparse.best_response",  # or weights
    "kernelweave.vv_rkhs.penalties",  # or an object
    "kernelweave.evidence.groupings",  # of the names that the user gave
    "kernelweave.workbench.roles",
    "kernelweave.tables.target",  # an option of a command
}


def test_a_sentence_of_the_vocabulary_is_said_by_a_rule() -> None:
    found = set()
    for member in members().values():
        for path in member.files():
            text = path.read_text(encoding="utf-8")
            if "must be" not in text:
                continue
            raised = (each for each in ast.walk(ast.parse(text)) if isinstance(each, ast.Raise))
            if any(SENTENCE.search(ast.unparse(node)) for node in raised):
                found.add(member.module(path))
    assert found == BY_HAND
