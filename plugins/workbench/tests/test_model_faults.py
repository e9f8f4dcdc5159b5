"""Model files that were cut, altered or half written: a sentence, or the very same model."""

from __future__ import annotations

import copy
import io
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import skops.io
from kernelweave.tables import read_table, read_target
from kernelweave.workbench import Model, load_model, save_model
from kernelweave.workbench.choices import Choices
from kernelweave.workbench.errors import CommandError
from kernelweave.workbench.fitting import fit_table
from kernelweave.workbench.models import store
from kernelweave.workbench.models.schema import check_references, files_of

LIGHT, MANY = 300, 10_000
HEADERS = (
    *(b"", b"null", b"[]", b"{}", b"\xff", b"9" * 10_000, b"[" * 100_000),
    *(b'{"format": "1"}', b'{"format": 99}', b'{"format": 1}', b'{"format": 1e999}'),
    b'{"format": 1, "columns": 3}',
)


@pytest.fixture(scope="module")
def model() -> Model:
    table = read_table("iris")
    choices = Choices(settings={"algorithm": "tkl-frank-wolfe", "tol": 0.2})
    return fit_table(table, read_target(table, "target"), choices).model


@pytest.fixture(scope="module")
def content(model: Model, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("sound") / "model"
    save_model(model, path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def wanted(model: Model) -> np.ndarray:
    return model.predict(read_table("iris"))


def attempt(path: Path) -> tuple[Model | None, str]:
    """Return the model, or the one sentence that refuses it; nothing else may be raised."""
    try:
        return load_model(path), ""
    except CommandError as error:
        said = str(error)
    assert said
    assert "\n" not in said
    return None, said


def outcome(path: Path, content: bytes, wanted: np.ndarray, header: object) -> str:
    """Return how a file ends: refused in one sentence, or the same model.

    A mutant may change bytes that carry nothing (a date in the archive's directory); whatever
    loads must therefore predict the same and say the same about itself.
    """
    # a file that is cut and written again may be flushed to the disk
    path.unlink(missing_ok=True)
    path.write_bytes(content)
    loaded, said = attempt(path)
    if loaded is None:
        assert str(path) in said
        return "refused"
    assert loaded.header == header
    np.testing.assert_array_equal(loaded.predict(read_table("iris")), wanted)
    return "same"


def mutate(content: bytes, rng: np.random.Generator) -> bytes:
    """Return the bytes with a few flipped, deleted, repeated, inserted or exchanged."""
    data = bytearray(content)
    # half of the changes hit the header, the archive's directory and other structure
    ends = 4096
    for _ in range(int(rng.integers(1, 4))):
        size = len(data)
        at = int(rng.integers(size))
        if rng.random() < 0.5:
            at = int(rng.integers(min(ends, size)))
            at = at if rng.random() < 0.5 else size - 1 - at
        length = int(rng.integers(1, 64))
        kind = int(rng.integers(5))
        if kind == 0:
            data[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            del data[at : at + length]
        elif kind == 2:
            data[at:at] = data[at : at + length]
        elif kind == 3:
            data[at:at] = rng.bytes(length)
        else:
            data[at : at + length] = rng.bytes(min(length, size - at))
        if not data:
            return b""
    return bytes(data)


@pytest.mark.parametrize(
    ("count", "seed"), [(LIGHT, 0), pytest.param(MANY, 1, marks=pytest.mark.slow)]
)
def test_random_mutations(
    content: bytes, wanted: np.ndarray, model: Model, tmp_path: Path, count: int, seed: int
) -> None:
    rng, path = np.random.default_rng(seed), tmp_path / "model"
    ends = [outcome(path, mutate(content, rng), wanted, model.header) for _ in range(count)]
    assert ends.count("refused") > 0.9 * count


def cuts(content: bytes, *, every: bool) -> list[int]:
    """Return lengths to cut at: all, or all near the ends and a sample between."""
    size = len(content)
    if every:
        return list(range(size))
    between = np.linspace(0, size - 1, 200).astype(int).tolist()
    return sorted({*range(64), *range(size - 64, size), *between})


@pytest.mark.parametrize(
    "every", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["sample", "every"]
)
def test_truncations(
    content: bytes, wanted: np.ndarray, model: Model, tmp_path: Path, every: bool
) -> None:
    """No file that was cut short loads."""
    path = tmp_path / "model"
    for length in cuts(content, every=every):
        assert outcome(path, content[:length], wanted, model.header) == "refused", length


def forged(content: bytes, **changes: bytes) -> bytes:
    """Return a file with other members and the checksums that belong to them."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    names = {"header": "header.json", "body": "estimator.skops"}
    for key, value in changes.items():
        members[names[key]] = value
    digests = {name: store._digest(members[name]) for name in names.values()}
    members["checksum.json"] = json.dumps(digests).encode()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in ("header.json", "checksum.json", "estimator.skops"):
            archive.writestr(name, members[name])
    return stream.getvalue()


def body_of(content: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.read("estimator.skops")


@pytest.mark.parametrize(
    ("count", "seed"), [(LIGHT, 2), pytest.param(MANY, 3, marks=pytest.mark.slow)]
)
def test_forged_bodies(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, seed: int
) -> None:
    """With the checksum of a stranger's own making the types are still refused or sound.

    What loads need not be the same model, since somebody meant it; it must only be one, and no
    program may start.
    """
    body, path = body_of(content), tmp_path / "model"
    rng = np.random.default_rng(seed)
    ran: list[object] = []

    def refuse(*arguments: object, **settings: object) -> None:
        # the loader may turn what is raised here into its own error
        ran.append(arguments)
        raise AssertionError(f"a model file ran something: {arguments}")

    for name in ("system", "popen", "execv", "posix_spawn"):
        monkeypatch.setattr(os, name, refuse, raising=False)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    for _ in range(count):
        path.write_bytes(forged(content, body=mutate(body, rng)))
        attempt(path)
    assert not ran


@pytest.mark.parametrize(
    "header",
    HEADERS,
    ids=range(len(HEADERS)),
)
def test_forged_headers(content: bytes, header: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_bytes(forged(content, header=header))
    with pytest.raises(CommandError) as caught:
        load_model(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("held_out", {}),
        ("held_out", {"rows": []}),
        ("comparison", {}),
        ("comparison", {"ours": "a", "rows": [{"name": "b"}]}),
        ("importance", [{"name": 1}]),
        ("new_rows", ["x"]),
        ("n_samples", "x"),
        ("source", None),
    ],
)
def test_a_header_of_other_values_is_refused(
    content: bytes, tmp_path: Path, name: str, value: object
) -> None:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        header = json.loads(archive.read("header.json"))
    if value == {"rows": []}:
        value = {each: [] if isinstance(v, list) else v for each, v in header["held_out"].items()}
    path = tmp_path / "model"
    path.write_bytes(forged(content, header=json.dumps(header | {name: value}).encode()))
    assert "is damaged" in attempt(path)[1]


def rewritten(content: bytes, change: Callable[[str, bytes], bytes], pack: int) -> bytes:
    """Return a file whose inner archive was written again, with the checksums that belong to it."""
    stream = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(body_of(content))) as old,
        zipfile.ZipFile(stream, "w", pack) as new,
    ):
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))
    return forged(content, body=stream.getvalue())


def test_an_inner_archive_that_unpacks_to_more_costs_no_memory(
    content: bytes, tmp_path: Path
) -> None:
    """Zeros shrink to a thousandth; the peak of loading stays near the size of the file."""
    large = 200_000_000

    def blown_up(name: str, data: bytes) -> bytes:
        return bytes(large) if name == "0.npy" else data

    path = tmp_path / "model"
    path.write_bytes(rewritten(content, blown_up, zipfile.ZIP_DEFLATED))
    assert path.stat().st_size < large / 100
    tracemalloc.start()
    loaded, said = attempt(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert loaded is None
    assert "compressed" in said
    assert peak < large / 10


def test_a_member_that_is_named_many_times_is_refused(content: bytes, tmp_path: Path) -> None:
    """A directory may point at the same stored bytes again and again."""
    stream = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(body_of(content))) as old,
        zipfile.ZipFile(stream, "w") as new,
    ):
        for name in old.namelist():
            new.writestr(name, old.read(name))
        schema = new.getinfo("schema.json")
        for k in range(50):
            again = copy.copy(schema)
            again.filename = f"{k}.again"
            new.filelist.append(again)
            new.NameToInfo[again.filename] = again
    (tmp_path / "model").write_bytes(forged(content, body=stream.getvalue()))
    loaded, said = attempt(tmp_path / "model")
    assert loaded is None, said


def test_an_array_of_two_objects_is_refused(content: bytes, tmp_path: Path) -> None:
    """It would be read for each: a thousand objects would make a thousand arrays of one."""

    def shared(name: str, data: bytes) -> bytes:
        return data.replace(b'"file":"1.npy"', b'"file":"0.npy"') if "schema" in name else data

    (tmp_path / "model").write_bytes(rewritten(content, shared, zipfile.ZIP_STORED))
    loaded, said = attempt(tmp_path / "model")
    assert loaded is None
    assert "two objects name 0.npy" in said


def schema_changed(change: Callable[[Any], Any]) -> Callable[[str, bytes], bytes]:
    """Return what changes the schema of an archive."""

    def each(name: str, data: bytes) -> bytes:
        return json.dumps(change(json.loads(data))).encode() if "schema" in name else data

    return each


def lists(depth: int, *, first: object) -> Any:
    """Return a list that holds two lists, each the next one, and so on: 2^depth of them."""
    node = first
    for k in range(depth):
        node = {
            "__class__": "list",
            "__module__": "builtins",
            "__loader__": "ListNode",
            "__id__": 10_000 + k,
            "content": [node, {"__id__": 10_000 + k - 1}],
        }
    return node


@pytest.mark.parametrize("depth", [60, 400])
def test_lists_that_name_each_other_are_counted_before_they_are_walked(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, depth: int
) -> None:
    def folded(schema: Any) -> Any:
        empty = {**lists(1, first=None), "__id__": 9_999, "content": []}
        schema["content"]["content"]["more"] = lists(depth, first=empty)
        return schema

    def walked(*arguments: object, **settings: object) -> None:
        raise AssertionError("skops walked the tree")

    monkeypatch.setattr(skops.io, "get_untrusted_types", walked)
    monkeypatch.setattr(skops.io, "loads", walked)
    path = tmp_path / "model"
    path.write_bytes(rewritten(content, schema_changed(folded), zipfile.ZIP_STORED))
    loaded, said = attempt(path)
    assert loaded is None
    # so deep that even counting is refused
    assert ("name each other more than" if depth == 60 else "cannot be read") in said


def test_an_object_that_holds_itself_is_refused(content: bytes, tmp_path: Path) -> None:
    def within(schema: Any) -> Any:
        schema["content"]["content"]["more"] = {"__id__": schema["content"]["__id__"]}
        return schema

    path = tmp_path / "model"
    path.write_bytes(rewritten(content, schema_changed(within), zipfile.ZIP_STORED))
    assert "an object holds itself" in attempt(path)[1]


def test_what_is_repeated_as_models_repeat_it_is_counted_right() -> None:
    """1 + 2·(1 + 2·(1 + …)) by hand: lists of depth 3 over an empty one are 15 objects."""
    empty = {"__loader__": "ListNode", "__id__": 9_999, "content": []}
    check_references(lists(3, first=empty))
    # 2^(k + 1) − 1 objects, of which k + 1 with k references are described: at most 100 times
    check_references(lists(9, first=empty))
    with pytest.raises(ValueError, match="its 23 objects name each other more than 2300 times"):
        check_references(lists(11, first=empty))


@pytest.mark.parametrize("ending", ["npy", "bin", "txt", ""])
def test_an_array_under_another_name_is_checked(
    content: bytes, tmp_path: Path, ending: str
) -> None:
    """Every array in turn: with NaN in it, no name of its file lets it through."""
    with zipfile.ZipFile(io.BytesIO(body_of(content))) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    names = files_of(json.loads(members["schema.json"]))
    checked = 0
    for spoilt, held in names.items():
        stream, array = io.BytesIO(), np.load(io.BytesIO(members[spoilt])).copy()
        # rows that no fold held out may be missing; a dtype is stored as an empty array
        if array.dtype.kind != "f" or not array.size or held <= store._MAY_LACK:
            continue
        array.flat[-1:] = np.nan
        np.save(stream, array)
        renamed, body = f"array.{ending}", io.BytesIO()
        with zipfile.ZipFile(body, "w") as archive:
            for name, each in members.items():
                if name == "schema.json":
                    each = each.replace(f'"{spoilt}"'.encode(), f'"{renamed}"'.encode())
                archive.writestr(
                    *((renamed, stream.getvalue()) if name == spoilt else (name, each))
                )
        path = tmp_path / "model"
        path.unlink(missing_ok=True)
        path.write_bytes(forged(content, body=body.getvalue()))
        assert "NaN or infinity in '" in attempt(path)[1], spoilt
        checked += 1
    assert checked > 3


def test_an_array_that_may_lack_rows_may_not_be_another_too() -> None:
    """NaN is right where no fold held a row out: not in an array that is also a coefficient."""
    array = {"__loader__": "NdArrayNode", "__id__": 7, "type": "numpy", "file": "0.bin"}
    schema = {"content": {"held_out": array, "dual_coef_": {"__id__": 7}}}
    assert files_of(schema) == {"0.bin": {"held_out", "dual_coef_"}}


def test_a_sparse_matrix_is_refused() -> None:
    """Its file is an archive that is unpacked where it is read, and nobody's model holds one."""
    node = {"__loader__": "SparseMatrixNode", "type": "scipy", "file": "0.npz"}
    with pytest.raises(ValueError, match="a sparse matrix in 'X_'"):
        files_of({"content": {"X_": node}})


def numbers_changed(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[str, bytes], bytes]:
    """Return what changes every array of floats in an archive."""

    def each(name: str, data: bytes) -> bytes:
        if not name.endswith(".npy"):
            return data
        found = np.load(io.BytesIO(data))
        if found.dtype.kind != "f":
            return data
        stream = io.BytesIO()
        np.save(stream, change(found))
        return stream.getvalue()

    return each


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_forged_numbers_do_not_predict(content: bytes, bad: float, tmp_path: Path) -> None:
    """With a checksum that is right: NaN or infinity in an array is said, with its name."""

    def spoilt(found: np.ndarray) -> np.ndarray:
        found = found.copy()
        found.flat[-1:] = bad
        return found

    path = tmp_path / "model"
    path.write_bytes(rewritten(content, numbers_changed(spoilt), zipfile.ZIP_STORED))
    loaded, said = attempt(path)
    assert loaded is None
    assert "NaN or infinity in '" in said


def test_forged_shapes_do_not_predict(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model"
    shorter = numbers_changed(lambda found: found[: len(found) // 2] if found.ndim else found)
    path.write_bytes(rewritten(content, shorter, zipfile.ZIP_STORED))
    loaded, said = attempt(path)
    assert loaded is None
    assert "cannot" in said


def test_an_array_that_says_it_is_larger_than_it_is(content: bytes, tmp_path: Path) -> None:
    """NumPy would ask for the memory before it looks for the numbers."""

    def boasting(name: str, data: bytes) -> bytes:
        if not name.endswith(".npy"):
            return data
        stream = io.BytesIO()
        header = {"descr": "<f8", "fortran_order": False, "shape": (10**9,)}
        np.lib.format.write_array_header_1_0(stream, header)
        return stream.getvalue() + bytes(8)

    path = tmp_path / "model"
    path.write_bytes(rewritten(content, boasting, zipfile.ZIP_STORED))
    loaded, said = attempt(path)
    assert loaded is None
    assert "its size contradicts" in said


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
@pytest.mark.parametrize(
    "moment",
    [
        pytest.param("before the bytes", marks=pytest.mark.slow),
        pytest.param("amid the bytes", marks=pytest.mark.slow),
        "before the name",
    ],
)
def test_a_kill_during_a_save_leaves_the_old_file(
    content: bytes, wanted: np.ndarray, model: Model, moment: str, tmp_path: Path
) -> None:
    path, ready = tmp_path / "model", tmp_path / "ready"
    path.write_bytes(content)
    program = textwrap.dedent(
        f"""
        import os, time, zipfile
        from pathlib import Path
        from kernelweave.workbench import load_model, save_model
        model = load_model({str(path)!r})

        def stop(*arguments, **settings):
            Path({str(ready)!r}).touch()
            time.sleep(600)

        moment, real = {moment!r}, zipfile.ZipFile.writestr

        def some(archive, info, data, *rest):
            name = getattr(info, "filename", info)
            if moment == "before the bytes" and name == "header.json":
                stop()
            if moment == "amid the bytes" and name == "estimator.skops":
                archive.fp.write(data[: len(data) // 2])
                archive.fp.flush()
                stop()
            return real(archive, info, data, *rest)

        zipfile.ZipFile.writestr = some
        if moment == "before the name":
            os.fsync = stop
        save_model(model, {str(path)!r}, force=True)
        """
    )
    child = subprocess.Popen([sys.executable, "-c", program])
    try:
        while not ready.exists():
            assert child.poll() is None, "the save ended before it was stopped"
            time.sleep(0.02)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert path.read_bytes() == content
    assert outcome(path, path.read_bytes(), wanted, model.header) == "same"
    save_model(model, path, force=True)
    assert load_model(path).header == model.header
