"""Every public estimator against every fault; the generic ones with every algorithm."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import pytest
from cells import judge
from estimator_faults import FAULTS
from expectations import Fault
from naming import absent
from sound_cases import sound
from subjects import Subject, algorithm_subjects, approximated, estimators, everywhere

# variants of an estimator share the code that reads data: a fault meets one in so many of them
VARIANTS = 5
FEW = ("a NaN in X", "no sample", "X times 1e200", "C = 1e+300", "conflicting", "read-only")


@functools.cache
def sound_outcome(subject: Subject) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return subject.run(sound(subject.task))


def pairs(subjects: list[Subject], step: int) -> list[tuple[Subject, Fault]]:
    """Return each fault with every `step`-th of those that can meet it, in turn another one."""
    able = [[each for each in subjects if each.takes(fault)] for fault in FAULTS]
    return [
        (subject, fault)
        for start, (fault, those) in enumerate(zip(FAULTS, able, strict=True))
        for subject in those[start % min(step, max(1, len(those))) :: step]
    ]


def cells(subjects: list[Subject], *, step: int = 1, light: bool = True) -> list[Any]:
    """Return one test for the faults of each group that each subject meets."""
    found: dict[tuple[Subject, str], list[Fault]] = {}
    for subject, fault in pairs(subjects, step):
        found.setdefault((subject, fault.group), []).append(fault)
    marks = () if light else pytest.mark.slow
    return [
        pytest.param(subject, faults, id=f"{subject.name}: {group}", marks=marks)
        for (subject, group), faults in found.items()
    ]


def check(subject: Subject, faults: list[Fault]) -> None:
    problems = [
        f"{fault.name}: {problem}"
        for fault in faults
        if (
            problem := judge(
                subject.expects(fault),
                sound(subject.task),
                subject.run,
                lambda: sound_outcome(subject),
                lambda message: absent(message, subject.words, everywhere()),
            )
        )
    ]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(
    ("subject", "faults"), cells(estimators()) + cells(approximated(), step=VARIANTS)
)
def test_estimator(subject: Subject, faults: list[Fault], record_property: Any) -> None:
    record_property("fault matrix", len(faults))
    check(subject, faults)


@pytest.mark.parametrize("subject", algorithm_subjects(), ids=lambda each: each.name)
def test_algorithm(subject: Subject, record_property: Any) -> None:
    faults = [each for each in FAULTS if subject.takes(each) and named(each.name, FEW)]
    record_property("fault matrix", len(faults))
    check(subject, faults)


@pytest.mark.parametrize(
    ("subject", "faults"), cells(algorithm_subjects(), step=VARIANTS, light=False)
)
def test_algorithm_thoroughly(subject: Subject, faults: list[Fault], record_property: Any) -> None:
    record_property("fault matrix", len(faults))
    check(subject, faults)


def named(name: str, words: tuple[str, ...]) -> bool:
    return any(word in name for word in words)


def test_names_of_faults_are_unique() -> None:
    names = [fault.name for fault in FAULTS]
    assert len(set(names)) == len(names)


def test_every_fault_is_met() -> None:
    """By every estimator that takes it and a share of the variants, each of which meets some."""
    for subjects, step in ((approximated(), VARIANTS), (algorithm_subjects(), VARIANTS)):
        met = pairs(subjects, step)
        assert {fault.name for _, fault in met} == {f.name for _, f in pairs(subjects, 1)}
        assert {subject.name for subject, _ in met} == {each.name for each in subjects}
    everything = [(s, f) for f in FAULTS for s in estimators() if s.takes(f)]
    assert pairs(estimators(), 1) == everything


def test_estimators_are_found() -> None:
    """The list grows by itself; these are some that it must hold."""
    names = {subject.name for subject in estimators()}
    assert {"SparseMKLClassifier", "TessellatedKernelRegressor", "GrangerGraph"} <= names
    algorithms = {subject.name for subject in algorithm_subjects()}
    assert "KernelLearningClassifier[template-exponentiated-gradient]" in algorithms


def test_a_wrong_outcome_is_noticed() -> None:
    """The judge itself: silence, a wrong word, numbers that are not finite, a stray warning."""
    fault = next(each for each in FAULTS if each.name == "a NaN in X")
    layout = next(each for each in FAULTS if each.name == "Fortran order")

    def refuses(case: Any) -> None:
        raise ValueError("something")

    def warns(case: Any) -> float:
        warnings.warn("overflow", RuntimeWarning, stacklevel=1)
        return 1.0

    assert judge(fault, sound("regression"), lambda case: 1.0, float) is not None
    assert judge(fault, sound("regression"), refuses, float) is not None
    assert judge(layout, sound("regression"), refuses, float) is not None
    assert judge(layout, sound("regression"), warns, float) is not None
    assert judge(layout, sound("regression"), lambda case: float("nan"), float) is not None
    assert judge(layout, sound("regression"), lambda case: 1.0, float) is not None
    assert judge(layout, sound("regression"), lambda case: 0.0, float) is None


def test_a_name_in_vain_is_noticed() -> None:
    """The judge of names: given a value, between backticks, or no word of English."""
    everywhere = ("max_time", "tol", "order", "C")
    said = {
        "raise max_time": ["max_time"],
        "raise tol or lower C": ["C", "tol"],
        "set order=3": ["order"],
        "set `order`": ["order"],
        "in this order": [],
        "KernelDictionary(..., psd='clip')": [],
        "X has shape=(3, 4)": [],
    }
    assert {each: absent(each, (), everywhere) for each in said} == said
    assert absent("raise max_time, tol or order=2", everywhere, everywhere) == []


def test_messages_name_what_their_readers_have() -> None:
    """A few of the many: grids, an estimator within another, the settings of an algorithm."""
    words = {each.name: each.words for each in estimators() + algorithm_subjects()}
    assert {"C", "cv", "tol", "delta", "sample_weight"} <= words["TessellatedKernelClassifierCV"]
    assert "n_views" not in words["SimpleMKLClassifier"]
    assert "rank" in words["KernelLearningClassifier[tkl-low-rank]"]
    assert everywhere() > words["GrangerGraph"]
