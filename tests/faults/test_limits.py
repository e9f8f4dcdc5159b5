"""Time, interruption and memory: what is promised of every estimator that takes the parameter."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
import tracemalloc
import warnings
from typing import Any

import numpy as np
import pytest
from kernelweave.baselines import AverageMKLClassifier
from kernelweave.kernels_core import (
    RBF,
    Certificate,
    KernelLearningRegressor,
    MemoryBudgetError,
    Progress,
    SolveInterrupted,
    TessellatedFamily,
    UnsupportedProblemError,
    clock,
    config_context,
    watch,
)
from kernelweave.mkl_sparse import SparseMKLClassifier
from kernelweave.spectahedron import TessellatedKernelClassifier
from kernelweave.vv_rkhs import MatrixValuedKernelRegressor
from sklearn.exceptions import ConvergenceWarning
from sound_cases import N, sound
from subjects import Subject, algorithm_subjects, estimators

QUICKEST = ("SimpleMKLClassifier", "SparseMKLClassifier", "TessellatedKernelClassifier")


def having(parameter: str, *, light: tuple[str, ...] = (), generic: bool = False) -> list[Any]:
    """Return the estimators that take a parameter; all but the light ones are slow.

    With ``generic`` also the generic estimators, with every registered algorithm.
    """
    return [
        pytest.param(
            subject,
            id=subject.name,
            marks=() if not light or subject.name in light else pytest.mark.slow,
        )
        for subject in (*estimators(), *(algorithm_subjects() if generic else ()))
        if parameter in subject.parameters
    ]


def hard(task: str, n: int = 120) -> tuple[np.ndarray, np.ndarray]:
    """Return points far apart with targets that are noise, on which scikit-learn's SVC hangs."""
    rng = np.random.default_rng(0)
    X = 1e8 * rng.standard_normal((n, 3))
    y = np.where(rng.random(n) < 0.5, -1.0, 1.0) if task == "classification" else rng.random(n)
    return X, y


@pytest.mark.parametrize("subject", having("max_time", light=QUICKEST, generic=True))
def test_a_hopeless_fit_ends_in_time_with_its_gap(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C = 1e300 and X times 1e8: after the limit, a few looks at the clock are the last."""
    warm = sound(subject.task)
    settings: dict[str, Any] = {"tol": 1e-9, "max_iter": 10**6, "max_time": LIMIT}
    strength = {"C": 1e300} if "C" in subject.parameters else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        subject.run(warm)
        X, y = hard(subject.task, 100 if "sdp" in subject.name else 120)
        model = subject.make({**settings, **strength})
        monkeypatch.setattr(clock, "time", LeapingClock())
        try:
            model.fit(X, y)
        except ValueError as error:
            refusal: str | None = str(error)
        else:
            refusal = None
    if refusal is None:
        assert model.result_.gap >= 0.0
        assert np.isfinite(model.predict(X)).all()
    else:
        assert any(word in refusal for word in ("1e+300", "scale", "raise lam"))


LIMIT = 1.0


class LeapingClock:
    """Stands still for some looks of each fit and then leaps over the limit, looks counted.

    Whoever goes on for long after that is stopped: a time limit that nobody heeds fails the test.
    """

    before, after = 100, 1000

    def __init__(self) -> None:
        self.looks, self.now = 0, 0.0

    def monotonic(self) -> float:
        self.looks += 1
        if self.looks % (self.before + self.after) == self.before:
            self.now += 2.0 * LIMIT
        assert self.looks < 10 * (self.before + self.after), "it goes on after the limit"
        return self.now


def interrupted_at(iteration: int) -> Any:
    """Return a callback that presses Ctrl-C."""

    def press(progress: Progress) -> None:
        if progress.n_iter >= iteration:
            signal.raise_signal(signal.SIGINT)

    return press


@pytest.mark.parametrize("subject", having("on_interrupt"))
def test_an_interrupted_fit_keeps_the_best_iterate(subject: Subject) -> None:
    case = sound(subject.task)
    model = subject.make({"tol": 1e-12})
    with watch(interrupted_at(0)), pytest.raises(SolveInterrupted):
        model.fit(case.X, case.y)
    assert issubclass(SolveInterrupted, KeyboardInterrupt)
    assert model.result_.status.name == "INTERRUPTED"
    assert np.isfinite(model.predict(case.X_new)).all()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("subject", having("on_interrupt"))
def test_an_interrupted_fit_returns_if_told_to(subject: Subject) -> None:
    case = sound(subject.task)
    model = subject.make({"tol": 1e-12, "on_interrupt": "return"})
    with warnings.catch_warnings(), watch(interrupted_at(0)):
        warnings.simplefilter("ignore")
        model.fit(case.X, case.y)
    assert model.result_.status.name == "INTERRUPTED"
    assert np.isfinite(model.predict(case.X_new)).all()


@pytest.mark.parametrize(
    ("estimator", "amid"),
    [
        (KernelLearningRegressor, "kernelweave.kernels_core.fit"),
        (MatrixValuedKernelRegressor, "kernelweave.vv_rkhs.fitting"),
    ],
)
def test_ctrl_c_while_the_answer_is_stored_leaves_it_whole(
    estimator: type, amid: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pressed(*given: Any, **named: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return Certificate(*given, **named)

    monkeypatch.setattr(f"{amid}.Certificate", pressed)
    case = sound("regression")
    model = estimator()
    with pytest.raises(KeyboardInterrupt) as stop:
        model.fit(case.X, case.y)
    assert not isinstance(stop.value, SolveInterrupted)
    assert np.isfinite(model.predict(case.X_new)).all()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def pressed_after(seconds: float) -> tuple[threading.Thread, list[float]]:
    """Return a started thread that presses Ctrl-C, and the main thread's processor time then."""
    sent: list[float] = []
    main = threading.main_thread().ident or 0

    def press() -> None:
        time.sleep(seconds)
        sent.append(time.clock_gettime(time.pthread_getcpuclockid(main)))
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=press, daemon=True)
    thread.start()
    return thread, sent


@pytest.mark.slow
@pytest.mark.skipif(
    not hasattr(time, "pthread_getcpuclockid"), reason="needs the clock of another thread"
)
@pytest.mark.parametrize("subject", having("on_interrupt", generic=True))
def test_ctrl_c_amid_a_long_solve(subject: Subject) -> None:
    """A real signal at a moment of its own: control is back after two seconds of work at most.

    Where the first iterate was there it is stored; while Gram matrices are formed none is.
    """
    X, y = noise(subject.task, 100 if "sdp" in subject.name else 1000)
    hopeless = {"tol": 1e-12, "max_iter": 10**6, "max_time": None}
    model = subject.make({**hopeless, **({"C": 1e4} if "C" in subject.parameters else {})})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        subject.run(sound(subject.task))
        thread, sent = pressed_after(1.5)
        try:
            model.fit(X, y)
            # solved before the signal, which comes here then
            thread.join()
        except SolveInterrupted:
            assert model.result_.status.name == "INTERRUPTED"
            assert np.isfinite(model.result_.upper_bound)
            assert len(model.predict(X[:3])) == 3
        except KeyboardInterrupt:
            # before the first iterate, or after the solve: then the model is whole
            if hasattr(model, "result_"):
                assert model.result_.status.name != "INTERRUPTED"
                assert len(model.predict(X[:3])) == 3
        else:
            pytest.fail("the signal did not come")
        # of this thread: neither other processes nor a solver that is left to end count
        work = time.thread_time() - sent[0]
    assert work <= 2.0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def noise(task: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return targets that no kernel explains."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3))
    return X, np.where(rng.random(n) < 0.5, -1.0, 1.0) if task == "classification" else rng.random(
        n
    )


@pytest.mark.parametrize("subject", having("memory_limit"))
def test_a_refusal_names_the_samples_the_size_and_the_way_out(subject: Subject) -> None:
    """Of all matrices, before the work: a kernel would raise if it were computed."""
    case = sound(subject.task)
    # enough for the tables of a tessellated kernel, which other tests may have left in a cache
    with pytest.raises(MemoryBudgetError) as caught:
        subject.make({"memory_limit": 300}).fit(case.X, case.y)
    said = str(caught.value)
    # a history of one step leaves one row fewer
    assert any(str(n) in said for n in (N, N - 1))
    assert re.search(r"need \S+ [KMG]iB, more than the memory limit of 300 bytes", said), said
    assert len(said.rpartition(": ")[2].split()) >= 3


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory from /proc")
@pytest.mark.parametrize("subject", having("memory_limit"))
def test_peak_memory_stays_below_the_limit(subject: Subject) -> None:
    """In a process of its own: refused, or the resident memory grows by less than the limit."""
    limit, n = 300 * 2**20, 1500
    program = textwrap.dedent(
        f"""
        import json, sys, warnings
        import numpy as np
        sys.path[:0] = {sys.path[:8]!r}
        from subjects import estimators
        from sound_cases import sound
        warnings.simplefilter("ignore")

        def peak():
            lines = open("/proc/self/status").read().splitlines()
            return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024

        subject = next(each for each in estimators() if each.name == {subject.name!r})
        subject.run(sound(subject.task))
        rng = np.random.default_rng(0)
        X = rng.standard_normal(({n}, 3))
        y = np.sign(X[:, 0]) if subject.task == "classification" else X[:, 0]
        before, end = peak(), "fitted"
        try:
            subject.make({{"memory_limit": {limit}, "max_iter": 2}}).fit(X, y)
        except MemoryError as error:
            end = str(error)
        print(json.dumps([end, peak() - before]))
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    end, grown = json.loads(done.stdout.splitlines()[-1])
    assert grown <= limit, (end, grown / 2**20)


@pytest.mark.parametrize(
    "subject",
    [
        pytest.param(subject, id=subject.name)
        for subject in estimators()
        if "max_time" not in subject.parameters
    ],
)
def test_a_hopeless_search_ends_in_time(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes no limit at all must end by itself, features times 1e8 or not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        subject.run(sound(subject.task))
        X, y = hard(subject.task)
        model = subject.make({})
        monkeypatch.setattr(clock, "time", LeapingClock())
        model.fit(X, y)


def machines_over_a_dictionary() -> list[Any]:
    """Return the estimators whose objective is that of a support vector machine on K(β)."""
    return [
        pytest.param(subject, id=subject.name)
        for subject in estimators()
        if {"C", "kernels"} <= subject.parameters and "radius" not in subject.parameters
    ]


@pytest.mark.parametrize("C", [10.0, 1e6, 1e300])
@pytest.mark.parametrize("subject", machines_over_a_dictionary())
def test_a_hopeless_interval_holds_the_optimum(subject: Subject, C: float) -> None:
    """Points 1e8 apart make a Gaussian Gram matrix I, where the optimum is known in closed form.

    Of n₊ and n₋ samples, or for ε = 0: 2n₊n₋/n, or ½Σ(yᵢ − ȳ)².
    """
    X, y = hard(subject.task)
    limit = {"max_time": 1.0} if C == 1e300 else {}
    exact: dict[str, Any] = {"epsilon": 0.0} if "epsilon" in subject.parameters else {}
    exact |= {"units": "absolute"} if "units" in subject.parameters else {}
    settings = {"kernels": [RBF(1.0)], "normalize": None, "C": C, **limit, **exact}
    model = subject.make({**settings, "tol": 1e-6, "max_iter": 1000})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = model.fit(X, y).result_
    if subject.task == "classification":
        optimum = 2.0 * np.sum(y > 0) * np.sum(y < 0) / len(y)
    else:
        optimum = 0.5 * float(np.sum((y - y.mean()) ** 2))
    optimum += model.lam if "k0" in subject.parameters else 0.0
    assert result.lower_bound <= optimum * (1.0 + 1e-12)
    assert optimum * (1.0 - 1e-12) <= result.upper_bound
    if C < 1e300:
        assert result.gap <= 1e-6


def refused(kind: type[Any], X: np.ndarray, said: str, **settings: Any) -> None:
    """Assert that a fit is refused in words that hold a pattern, before memory is taken."""
    tracemalloc.start()
    with pytest.raises((MemoryBudgetError, UnsupportedProblemError), match=said):
        kind(**settings).fit(X, np.where(X[:, 0] > np.median(X[:, 0]), 1, -1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 20 * X.nbytes + 2**24


# the volume of the box is warned of before
@pytest.mark.filterwarnings("ignore:the box of the tessellated kernel:UserWarning")
def test_too_many_features_are_refused_with_how_many_fit() -> None:
    X = np.random.default_rng(0).standard_normal((80, 5000))
    with config_context(memory_limit=16 * 2**30):
        said = "5000 features give P the side 10002, .*: choose 2499 features or fewer, or learn"
        refused(TessellatedKernelClassifier, X, said, max_time=10.0)
        said = "5000 features give P the side 20002, .*: choose 1249 features or fewer"
        refused(TessellatedKernelClassifier, X, said, order=5000)
        said = (
            r"5000 features need 4\d\d GiB, .*: choose \d{3,4} features or fewer, or learn weights"
        )
        family = TessellatedFamily(lower=np.zeros(5000), upper=np.ones(5000))
        with pytest.raises(MemoryBudgetError, match=said):
            family.prepare(np.full((2, 5000), 0.5))


def test_too_many_samples_are_refused_with_how_many_are_bearable() -> None:
    X = np.random.default_rng(0).standard_normal((1_000_000, 2))
    with config_context(memory_limit=16 * 2**30):
        said = "one product with it computes 1e[+]12 entries.*at most 200000 samples"
        refused(TessellatedKernelClassifier, X, said)


@pytest.mark.parametrize("size", [2.0**-531, 2.0**-996], ids=["1e-160", "1e-300"])
def test_features_too_small_are_refused_or_scaled(size: float) -> None:
    case = sound("classification")
    with pytest.raises(ValueError, match="too small: their products underflow, scale the features"):
        AverageMKLClassifier().fit(size * case.X, case.y)
    scaled = SparseMKLClassifier(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        wanted = scaled.fit(case.X, case.y).decision_function(case.X_new)
        found = scaled.fit(size * case.X, case.y).decision_function(size * case.X_new)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-9)
