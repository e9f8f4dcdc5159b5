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

FEW = ("a NaN in X", "no sample", "X times 1e200", "C = 1e+300", "conflicting", "read-only")


@functools.cache
def sound_outcome(subject: Subject) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return subject.run(sound(subject.task))


def cells(subjects: list[Subject], *, light: bool) -> list[Any]:
    """Return the cells of subjects; those that are not light are marked slow."""
    return [
        pytest.param(
            subject,
            subject.expects(fault),
            id=f"{subject.name}: {fault.name}",
            marks=() if light or any(word in fault.name for word in FEW) else pytest.mark.slow,
        )
        for subject in subjects
        for fault in FAULTS
        if subject.takes(fault)
    ]


def check(subject: Subject, fault: Fault) -> None:
    problem = judge(
        fault,
        sound(subject.task),
        subject.run,
        lambda: sound_outcome(subject),
        lambda message: absent(message, subject.words, everywhere()),
    )
    assert problem is None, problem


@pytest.mark.parametrize(("subject", "fault"), cells(estimators() + approximated(), light=True))
def test_estimator(subject: Subject, fault: Fault, record_property: Any) -> None:
    record_property("fault matrix", True)
    check(subject, fault)


@pytest.mark.parametrize(("subject", "fault"), cells(algorithm_subjects(), light=False))
def test_algorithm(subject: Subject, fault: Fault, record_property: Any) -> None:
    record_property("fault matrix", True)
    check(subject, fault)


def test_names_of_faults_are_unique() -> None:
    names = [fault.name for fault in FAULTS]
    assert len(set(names)) == len(names)


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
