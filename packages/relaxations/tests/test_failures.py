"""Conic solvers that fail: without a licence, inaccurate, at a limit, in error.

The solver is simulated, never our own result: a stand-in for Clarabel's or SCS's solver runs the
real one and reports another status, and a stand-in for MOSEK has no licence.
"""

from __future__ import annotations

import signal
import threading
import time
import types

import clarabel
import numpy as np
import pytest
from kernelweave.kernels_core import (
    KernelLearningClassifier,
    KernelWeaveWarning,
    Problem,
    Status,
    TessellatedFamily,
    solve,
)
from kernelweave.kernels_core.testing import make_classification
from kernelweave.qp_smo import SVC
from kernelweave.relaxations import conic, lower_bound
from kernelweave.spectahedron import Spectahedron
from sklearn.exceptions import ConvergenceWarning

SETTING = {"C": 2.0, "lam": 0.5, "k0": 2}
CONIC = ("full-sdp", "sdp-3x3", "soc", "soc-random")


class Reported:
    """Clarabel's solution with another status, cut short or spoilt."""

    def __init__(self, solution: object, status: str, spoil: float = 0.0) -> None:
        self._solution = solution
        self.status = status
        rng = np.random.default_rng(0)
        for name in ("x", "z", "s"):
            values = np.array(getattr(solution, name))
            setattr(self, name, list(values * (1.0 + spoil * rng.standard_normal(values.size))))

    def __getattr__(self, name: str) -> object:
        return getattr(self._solution, name)


@pytest.fixture
def clarabel_says(monkeypatch):
    """Return a function that lets Clarabel end with a status, after at most some iterations."""
    real = clarabel.DefaultSolver

    def pretend(status: str, *, iterations: int | None = None, spoil: float = 0.0) -> list[int]:
        calls: list[int] = []

        class Solver:
            def __init__(self, P, q, A, b, cones, settings) -> None:
                if iterations is not None:
                    settings.max_iter = iterations
                self.real = real(P, q, A, b, cones, settings)

            def solve(self) -> Reported:
                calls.append(1)
                return Reported(self.real.solve(), status, spoil)

        monkeypatch.setattr(clarabel, "DefaultSolver", Solver)
        return calls

    return pretend


@pytest.fixture
def truth(problem):
    grams, y, _ = problem
    return lower_bound(grams, y, tol=1e-8, **SETTING)


def bounded(problem, relaxation, **settings):
    grams, y, _ = problem
    return lower_bound(grams, y, relaxation=relaxation, **SETTING, **settings)


def test_a_content_solver_is_the_only_one(problem):
    found = bounded(problem, "soc")
    assert found.attempts == ("CLARABEL: optimal",)
    assert found.solver == "CLARABEL"


@pytest.mark.filterwarnings("ignore:the conic solvers ended so")
@pytest.mark.parametrize("relaxation", CONIC)
def test_an_inaccurate_answer_is_checked_by_our_own_proof(
    problem, relaxation, clarabel_says, truth
):
    """Multipliers that are a tenth off prove less, and never too much."""
    clarabel_says("AlmostSolved", spoil=0.1)
    found = bounded(problem, relaxation)
    assert found.attempts[0] == "CLARABEL: optimal_inaccurate"
    assert found.attempts[1].startswith("SCS: ")
    assert 0.0 < found.bound <= truth.value
    np.testing.assert_allclose(found.weights.sum(), 1.0)


@pytest.mark.filterwarnings("ignore:the conic solvers ended so")
@pytest.mark.parametrize("relaxation", CONIC)
def test_an_iteration_limit_leaves_multipliers_of_use(problem, relaxation, clarabel_says, truth):
    clarabel_says("MaxIterations", iterations=4)
    found = bounded(problem, relaxation)
    assert found.attempts[0] == "CLARABEL: user_limit"
    assert found.bound <= truth.value
    assert found.bound > 0.0


@pytest.mark.parametrize("status", ["NumericalError", "Unsolved", "PrimalInfeasible"])
def test_the_next_solver_takes_over(problem, status, clarabel_says):
    right = bounded(problem, "soc")
    clarabel_says(status)
    found = bounded(problem, "soc")
    assert found.solver == "SCS"
    assert found.attempts[0].startswith("CLARABEL: ")
    assert found.attempts[1:] == ("SCS: optimal",)
    assert found.bound <= right.value
    assert found.bound == pytest.approx(right.bound, rel=1e-2)


def test_who_has_proved_enough_asks_no_further(problem, clarabel_says):
    """Clarabel's answer is right, only its word is not: no warning and no second solver."""
    right = bounded(problem, "soc-random")
    clarabel_says("AlmostSolved")
    found = bounded(problem, "soc-random")
    assert found.attempts == ("CLARABEL: optimal_inaccurate",)
    assert found.bound == right.bound


def test_a_proof_that_is_not_close_says_why(problem, clarabel_says, monkeypatch):
    clarabel_says("MaxIterations", iterations=3)
    monkeypatch.setattr(conic, "CHAIN", ("CLARABEL",))
    with pytest.warns(KernelWeaveWarning, match="CLARABEL: user_limit; the bounds are proved"):
        bounded(problem, "soc")


def test_all_fail(problem, clarabel_says, monkeypatch):
    clarabel_says("NumericalError")
    monkeypatch.setattr(conic, "CHAIN", ("CLARABEL",))
    with pytest.raises(RuntimeError, match=r"CLARABEL: .*: use relaxation='saddle'"):
        bounded(problem, "soc")


class NoLicence(Exception):
    """As ``mosek.Error``."""


@pytest.fixture
def mosek(monkeypatch):
    """Return a function that installs a stand-in of MOSEK, with a licence or without.

    It solves by Clarabel, and what it is asked with comes into the list that is returned.
    """
    cp = conic.cvxpy()
    real = cp.Problem.solve

    def install(*, licensed: bool) -> list[dict[str, object]]:
        asked: list[dict[str, object]] = []

        class Env:
            def __enter__(self):
                return self

            def __exit__(self, *_):
                return None

            def checkoutlicense(self, feature):
                if not licensed:
                    raise NoLicence("License cannot be located")

        def solve(problem, *, solver, **options):
            if solver != "MOSEK":
                return real(problem, solver=solver, **options)
            asked.append(options)
            return real(problem, solver="CLARABEL", canon_backend="SCIPY")

        module = types.ModuleType("mosek")
        module.Env, module.Error = Env, NoLicence
        module.feature = types.SimpleNamespace(pton=1)
        monkeypatch.setitem(__import__("sys").modules, "mosek", module)
        monkeypatch.setattr(cp, "installed_solvers", lambda: ["MOSEK", "CLARABEL", "SCS"])
        monkeypatch.setattr(cp.Problem, "solve", solve)
        conic.mosek_licence.cache_clear()
        return asked

    yield install
    conic.mosek_licence.cache_clear()


@pytest.fixture
def unlicensed(mosek):
    """MOSEK, installed and without a licence."""
    mosek(licensed=False)


@pytest.mark.parametrize("relaxation", ["full-sdp", "sdp-3x3"])
def test_a_licensed_mosek_is_asked_first_for_matrix_inequalities(problem, relaxation, mosek):
    right = bounded(problem, relaxation)
    asked = mosek(licensed=True)
    found = bounded(problem, relaxation)
    assert found.solver == "MOSEK"
    assert found.attempts == ("MOSEK: optimal",)
    assert len(asked) == 1
    assert found.bound == pytest.approx(right.bound, rel=1e-6)
    mosek(licensed=False)
    assert bounded(problem, relaxation).attempts == ("CLARABEL: optimal",)


def test_a_licensed_mosek_is_for_others_on_request_alone(problem, mosek):
    asked = mosek(licensed=True)
    assert bounded(problem, "soc").attempts == ("CLARABEL: optimal",)
    assert not asked
    assert bounded(problem, "soc", solver="mosek").attempts == ("MOSEK: optimal",)
    assert len(asked) == 1


@pytest.mark.usefixtures("unlicensed")
def test_mosek_without_a_licence(problem):
    """Nobody notices it who does not ask for it, and who does is told what was done instead."""
    right = bounded(problem, "soc")
    assert right.attempts == ("CLARABEL: optimal",)
    with pytest.warns(KernelWeaveWarning, match="MOSEK: no licence .License cannot be located"):
        found = bounded(problem, "soc", solver="mosek")
    assert found.solver == "CLARABEL"
    assert found.bound == right.bound
    assert found.attempts[0].startswith("MOSEK: no licence")


def test_an_unknown_solver_is_refused(problem):
    with pytest.raises(ValueError, match="solver='best' is not installed: choose one of"):
        bounded(problem, "soc", solver="best")


def learned(max_time=None, **params):
    X, y = make_classification(16)
    family = TessellatedFamily(1, lower=[-0.1] * 2, upper=[1.1] * 2)
    problem = Problem(family, SVC(C=1.0), Spectahedron(), X, y)
    return problem, solve(problem, "tkl-sdp", tol=1e-3, max_time=max_time, **params)


@pytest.mark.parametrize(
    ("status", "settings"),
    [("AlmostSolved", {"spoil": 0.05}), ("MaxIterations", {"iterations": 6})],
)
def test_a_learned_kernel_is_certified_whatever_the_solver_says(status, settings, clarabel_says):
    clarabel_says(status, **settings)
    problem, result = learned()
    best = solve(problem, "tkl-low-rank", tol=1e-6)
    assert result.lower_bound <= best.upper_bound
    assert result.upper_bound >= best.lower_bound


def test_a_program_that_nobody_solves_leaves_the_first_kernel(clarabel_says, monkeypatch):
    clarabel_says("NumericalError")
    monkeypatch.setattr(conic, "CHAIN", ("CLARABEL",))
    told = pytest.warns(KernelWeaveWarning, match="P = I stays")
    with told, pytest.warns(ConvergenceWarning, match="tkl-sdp"):
        problem, result = learned()
    assert result.status is Status.STALLED
    np.testing.assert_array_equal(result.parameters, np.eye(problem.family.n_P))
    assert 0.0 <= result.lower_bound <= result.upper_bound


def test_a_time_limit_reaches_the_solver(problem, monkeypatch):
    seen = {}
    real = conic._options
    monkeypatch.setattr(
        conic, "_options", lambda name, seconds: seen.setdefault(name, real(name, seconds))
    )
    bounded(problem, "soc", max_time=50.0)
    assert 40.0 < seen["CLARABEL"]["time_limit"] <= 50.0
    assert real("SCS", 3.0) == {"time_limit_secs": 3.0}
    assert real("MOSEK", 3.0) == {"mosek_params": {"MSK_DPAR_OPTIMIZER_MAX_TIME": 3.0}}
    assert real("MOSEK", np.inf) == real("SCS", np.inf) == real("ECOS", 1.0) == {}


def test_ctrl_c_leaves_a_solver_that_does_not_listen(clarabel_says, monkeypatch):
    """The best iterate so far, P = I, is stored: the solver would go on for ever."""
    calls = clarabel_says("Solved")
    monkeypatch.setattr(
        clarabel.DefaultSolver, "solve", lambda self: calls.append(1) or threading.Event().wait()
    )

    def press():
        while not calls:
            time.sleep(0.05)
        signal.raise_signal(signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    X, y = make_classification(16)
    model = KernelLearningClassifier(algorithm="tkl-sdp", on_interrupt="return")
    model.fit(X, y)
    assert model.result_.status is Status.INTERRUPTED
    assert calls == [1]
    assert set(model.predict(X)) <= set(y)
