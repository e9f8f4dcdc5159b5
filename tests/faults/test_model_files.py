"""Every kind of model as a file: it comes back the same, cut or altered it is refused."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernelweave.kernels_core import RBF, KernelDictionary, Linear
from kernelweave.mkl_sparse import SparseMKLClassifier
from kernelweave.spectahedron import TessellatedKernelClassifier
from kernelweave.workbench import Model, load_model, save_model
from kernelweave.workbench.errors import CommandError
from kernelweave.workbench.models import Header
from sklearn.compose import ColumnTransformer
from sklearn.multiclass import OneVsOneClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, StandardScaler
from sound_cases import sound
from subjects import Subject, algorithm_subjects, estimators

MANY, FORGED = 10_000, 300
PARTS = ("header.json", "checksum.json", "estimator.skops")


def columns_of_two() -> KernelDictionary:
    return KernelDictionary([RBF(0.5), Linear()], columns=[[0], [1]])


def nested() -> dict[str, Any]:
    """Return estimators that hold estimators, functions of NumPy and composed kernels."""
    kernel = 0.5 * RBF(1.0) * Linear() + RBF(2.0)
    learner = TessellatedKernelClassifier(tol=1e-2)
    sparse = SparseMKLClassifier([kernel, Linear()], k0=1, random_state=0)
    both = FeatureUnion([("as they are", StandardScaler()), ("products", PolynomialFeatures(2))])
    parts = ColumnTransformer([("one", StandardScaler(), [0]), ("two", "passthrough", [1])])
    return {
        "a pipeline": make_pipeline(StandardScaler(), learner),
        "a union in a pipeline": make_pipeline(both, sparse),
        "columns apart": make_pipeline(parts, learner),
        "a function of NumPy": make_pipeline(FunctionTransformer(np.tanh), sparse),
        "one against one": SparseMKLClassifier(columns_of_two(), multiclass="ovo", random_state=0),
        "scikit-learn's one against one": OneVsOneClassifier(learner),
    }


def kinds() -> list[Any]:
    """Return every public estimator, the generic ones with every algorithm, and the nested."""
    subjects = [
        pytest.param(each, id=each.name, marks=() if light else pytest.mark.slow)
        for group, light in ((estimators(), True), (algorithm_subjects(), False))
        for each in group
    ]
    return [*subjects, *(pytest.param(name, id=name) for name in nested())]


def fitted(kind: Subject | str) -> tuple[Any, Any]:
    """Return a fitted estimator and what it predicts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case = sound("classification" if isinstance(kind, str) else kind.task)
        if isinstance(kind, str):
            y = np.arange(len(case.y)) % 3 if "one against" in kind else case.y
            model = nested()[kind].fit(case.X, y)
        else:
            model = kind.make({}).fit(case.X, case.y)
        return model, predicted(model, case.X_new)


def predicted(model: Any, X: Any) -> Any:
    return model.predict(X) if hasattr(model, "predict") else model.forecast(X)


def header(task: str) -> Header:
    return Header(("a", "b"), "y", task, "any", "any", "memory", 20)


def store(model: Any, path: Path) -> bytes:
    save_model(Model(model, header("classification")), path, force=True)
    return path.read_bytes()


@pytest.mark.parametrize("kind", kinds())
def test_a_model_comes_back(kind: Subject | str, tmp_path: Path) -> None:
    model, wanted = fitted(kind)
    store(model, tmp_path / "model")
    again = load_model(tmp_path / "model").estimator
    case = sound("classification" if isinstance(kind, str) else kind.task)
    np.testing.assert_array_equal(predicted(again, case.X_new), wanted)


REFUSED = "refused"
CHOSEN = (
    *("GrangerGraph", "MatrixValuedKernelRegressor", "RidgeMKLClassifier", "SimpleMKLRegressor"),
    *("SparseMKLClassifier", "TessellatedKernelClassifierCV", "PWMKClassifier"),
    *("KernelLearningClassifier", *nested()),
)


def chosen() -> list[Any]:
    by_name: dict[str, Subject | str] = {each.name: each for each in estimators()}
    return [pytest.param(by_name.get(name, name), id=name) for name in CHOSEN]


def end(path: Path, content: bytes) -> Any:
    """Return the model of a file, or that it was refused in one sentence."""
    # a file that is cut and written again may be flushed to the disk
    path.unlink(missing_ok=True)
    path.write_bytes(content)
    try:
        return load_model(path)
    except CommandError as error:
        said = str(error)
    assert said
    assert "\n" not in said
    return REFUSED


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """Return the bytes with one to three bits, runs or places changed."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        at, length = int(rng.integers(len(data))), int(rng.integers(1, 64))
        kind = int(rng.integers(4))
        if kind == 0:
            data[at] ^= 1 << int(rng.integers(8))
        elif kind == 1 and len(data) > 128:
            del data[at : at + length]
        elif kind == 2:
            data[at:at] = data[at : at + length]
        else:
            data[at : at + length] = rng.bytes(min(length, len(data) - at))
    return bytes(data)


@pytest.mark.slow
@pytest.mark.parametrize("kind", chosen())
def test_every_cut_and_ten_thousand_mutations(kind: Subject | str, tmp_path: Path) -> None:
    """Refused, or the very same model: a date in the archive's directory carries nothing."""
    model, wanted = fitted(kind)
    path = tmp_path / "model"
    content = store(model, path)
    case = sound("classification" if isinstance(kind, str) else kind.task)
    step = max(1, len(content) // MANY)
    for length in {*range(0, len(content), step), *range(len(content) - 512, len(content))}:
        assert end(path, content[:length]) == REFUSED, length
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(MANY):
        found = end(path, mutated(content, rng))
        if found == REFUSED:
            refused += 1
        else:
            np.testing.assert_array_equal(predicted(found.estimator, case.X_new), wanted)
    assert refused > 0.9 * MANY


def forged(content: bytes, body: bytes) -> bytes:
    """Return a file with another estimator and the checksum that belongs to it."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in PARTS}
    members[PARTS[2]] = body
    sums = {name: hashlib.sha256(members[name]).hexdigest() for name in (PARTS[0], PARTS[2])}
    members[PARTS[1]] = json.dumps(sums).encode()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in PARTS:
            archive.writestr(name, members[name])
    return stream.getvalue()


def mutated_schema(body: bytes, rng: np.random.Generator) -> bytes:
    """Return skops's archive with a word of its schema exchanged for another of its words."""
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    words = members["schema.json"].decode().split('"')
    at, other = rng.integers(1, len(words), 2)
    words[at] = words[other]
    members["schema.json"] = '"'.join(words).encode()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return stream.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("kind", chosen())
def test_forged_insides(
    kind: Subject | str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a right checksum: refused in a sentence or some model, and nothing is started."""
    model, _ = fitted(kind)
    path, rng = tmp_path / "model", np.random.default_rng(1)
    content = store(model, path)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        body = archive.read(PARTS[2])
    ran: list[object] = []

    def refuse(*arguments: object, **settings: object) -> None:
        ran.append(arguments)
        raise AssertionError("a model file ran something")

    for name in ("system", "popen", "execv", "posix_spawn"):
        monkeypatch.setattr(os, name, refuse, raising=False)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(FORGED):
            change = mutated if number % 3 == 0 else mutated_schema
            end(path, forged(content, change(body, rng)))
    assert not ran


def secret(X: Any) -> Any:
    return X


@pytest.mark.parametrize(
    "inner",
    [
        FunctionTransformer(secret),
        FunctionTransformer(lambda X: X),
        FunctionTransformer(os.system),
        FunctionTransformer(print),
    ],
    ids=["function", "lambda", "os.system", "print"],
)
def test_somebody_elses_function_is_not_stored(inner: Any, tmp_path: Path) -> None:
    """Loading would import it: the save says so, and leaves no file."""
    case = sound("classification")
    learner = SparseMKLClassifier([Linear()], k0=1, random_state=0).fit(case.X, case.y)
    model = make_pipeline(inner, learner)
    with pytest.raises(CommandError) as caught:
        save_model(Model(model, header("classification")), tmp_path / "model")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "model").exists()
