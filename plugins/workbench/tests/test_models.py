"""Model files: what was saved comes back, and nothing else is let in."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io
from kernelweave.kernels_core import Status
from kernelweave.tables import TableError, read_table, read_target
from kernelweave.tables.table import read_cells
from kernelweave.workbench import Model, load_model, save_model
from kernelweave.workbench.choices import Choices
from kernelweave.workbench.errors import CommandError
from kernelweave.workbench.fitting import fit_table
from kernelweave.workbench.machines import unwrap_target_scaler
from kernelweave.workbench.model_catalog import fit_model, make_model, models_for_task
from kernelweave.workbench.models import Header, store
from kernelweave.workbench.models.schema import canonical
from kernelweave.workbench.models.store import trusted_types
from sklearn.linear_model import Ridge


def learn(name: str, **choices: Any) -> Model:
    table = read_table(name)
    choices.setdefault("algorithm", "tkl-frank-wolfe")
    return fit_table(table, read_target(table, "target"), Choices(settings=choices)).model


@pytest.fixture(scope="module")
def model() -> Model:
    return learn("iris", tol=0.05)


@pytest.fixture
def saved(model: Model, tmp_path: Path) -> Path:
    path = tmp_path / "model"
    save_model(model, path)
    return path


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        ("iris", {"tol": 0.05}),
        ("iris", {"tol": 0.05, "kernel": "polynomial", "degree": 2}),
        ("diabetes", {"tol": 0.2, "C": 1.0, "degree": 0}),
        ("iris", {"tol": 0.05, "algorithm": "template-exponentiated-gradient"}),
    ],
)
def test_a_model_comes_back_bit_for_bit(name: str, choices: dict[str, Any], tmp_path: Path) -> None:
    if choices.get("algorithm", "").startswith("template"):
        pytest.importorskip("kernelweave_template")
    before = learn(name, **choices)
    save_model(before, tmp_path / "model")
    after = load_model(tmp_path / "model")
    table = read_table(name)
    np.testing.assert_array_equal(after.predict(table), before.predict(table))
    assert after.header == before.header
    assert after.machine.result_.status is before.machine.result_.status
    assert after.machine.result_.history == before.machine.result_.history
    assert str(after.machine.certificate_) == str(before.machine.certificate_)
    X = table.inputs(before.header.columns)[:5]
    for _, step in getattr(unwrap_target_scaler(before.estimator), "steps", [])[:-1]:
        X = step.transform(X)
    X = before.machine.encode(X) if hasattr(before.machine, "encode") else X
    np.testing.assert_array_equal(after.machine.kernel_(X), before.machine.kernel_(X))


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.KernelWeaveWarning")
def test_every_model_of_the_command_line_comes_back(task: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
    y = X["a"].to_numpy() + 0.1 * rng.normal(size=40)
    y = y > 0 if task == "classification" else y
    for name in models_for_task(task):
        estimator = fit_model(make_model(name, task, {}, seed=0), X, y, None)
        header = Header(("a", "b"), "y", task, "any", "any", "memory", 40)
        save_model(Model(estimator, header), tmp_path / name)
        after = load_model(tmp_path / name).estimator
        np.testing.assert_array_equal(after.predict(X), estimator.predict(X), err_msg=name)


def test_the_same_seed_gives_the_same_file(tmp_path: Path) -> None:
    table = read_table("iris")
    for name in ("one", "other"):
        choices = Choices(settings={"max_iter": 3})
        model = fit_table(table, read_target(table, "target"), choices, comparing=True).model
        save_model(model, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    loaded = load_model(tmp_path / "one")
    assert loaded.header == model.header
    assert loaded.held_out.score == model.held_out.score
    assert loaded.held_out.score[0] == pytest.approx(loaded.machine.held_out_score_)


def test_a_model_of_many_rows_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above 2,000 rows, here 400, one metric serves all folds and its rows are not held out."""
    for name in ("fit", "learn"):
        monkeypatch.setattr(f"kernelweave.evidence.{name}.SHARED_METRIC", 400)
        monkeypatch.setattr(f"kernelweave.evidence.{name}.METRIC_ROWS", 200)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=500), "b": rng.choice([*"xyz"], 500)})
    frame["y"] = np.sin(frame["a"]) + (frame["b"] == "x")
    table = read_table(frame, target="y")
    settings = {"max_iter": 3, "precisions": (50.0,)}
    model = fit_table(table, read_target(table, "y"), Choices(settings=settings)).model
    save_model(model, tmp_path / "m")
    again = load_model(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(table), model.predict(table))
    assert str(again.held_out) == "300 rows, cross-validated in 3 folds"


@pytest.mark.parametrize(
    ("n_rows", "more", "most"), [(800, {}, 500_000), (1000, {"n_landmarks": 800}, 2_200_000)]
)
def test_a_model_file_holds_no_matrix_of_all_pairs(
    n_rows: int,
    more: dict[str, int],
    most: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """800 rows or landmarks: their kernel matrix alone would be 5.1 MB.

    Of landmarks a file has the triangle of a factor in single precision, 1.3 MB.
    """
    monkeypatch.setattr("kernelweave.evidence.read_table.FACTOR_ROWS", 900)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n_rows, 3)), columns=[*"abc"])
    frame["y"] = np.sin(frame["a"]) + frame["b"] + 0.1 * rng.normal(size=n_rows)
    table = read_table(frame, target="y")
    settings = {"max_iter": 3, "precisions": (50.0,), **more}
    model = fit_table(table, read_target(table, "y"), Choices(settings=settings)).model
    assert ("landmarks" in str(model.estimator.certificate_)) == bool(more)
    save_model(model, tmp_path / "m")
    assert (tmp_path / "m").stat().st_size < most
    again, new = load_model(tmp_path / "m"), read_table(frame[:50], target="y")
    np.testing.assert_array_equal(again.predict_interval(new), model.predict_interval(new))
    with_deviation = [
        each.estimator.predict(each.inputs(new), return_std=True)[1] for each in (model, again)
    ]
    np.testing.assert_array_equal(*with_deviation)


def test_a_model_by_the_likelihood_of_classes_comes_back(tmp_path: Path) -> None:
    state = np.random.RandomState(0)
    y, angle = state.randint(0, 5, 150), state.uniform(0, 2 * np.pi, 150)
    radius = 1 + y + 0.35 * state.randn(150)
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": [f"ring {k}" for k in y]})
    read = read_table(table, target="y")
    choices = Choices(settings={"max_iter": 10})
    before = fit_table(read, read_target(read, "y"), choices).model
    assert type(before.estimator._predictor).__name__ == "ClassPredictor"
    save_model(before, tmp_path / "model")
    after = load_model(tmp_path / "model")
    np.testing.assert_array_equal(after.predict(read), before.predict(read))


def test_the_header_can_be_read_without_the_model(saved: Path) -> None:
    with zipfile.ZipFile(saved) as archive:
        header = json.loads(archive.read("header.json"))
    assert header["classes"] == ["setosa", "versicolor", "virginica"]
    assert header["columns"][0] == "sepal length (cm)"
    assert header["certificate"]["gap"] <= 0.05
    assert header["certificate"]["status"] == Status.CONVERGED.label
    assert header["versions"]["kernelweave-workbench"] == "0.2.0"
    # the package of the estimator too
    assert header["versions"]["kernelweave-spectahedron"] == "0.2.0"


def test_a_loaded_model_can_be_saved_again(model: Model, saved: Path, tmp_path: Path) -> None:
    save_model(load_model(saved), tmp_path / "again")
    assert load_model(tmp_path / "again").header == model.header


def test_columns_are_matched_by_name(model: Model) -> None:
    table = read_table("iris")
    shuffled = table.frame[table.columns[::-1]].assign(extra="text")
    other = read_cells(shuffled, "shuffled")
    np.testing.assert_array_equal(model.predict(other), model.predict(table))
    lacking = read_cells(table.frame.drop(columns=["petal width (cm)"]), "lacking")
    with pytest.raises(TableError, match=r"lacks 1 of the 4 columns .*'petal width"):
        model.predict(lacking)


def test_an_existing_file_is_kept(model: Model, saved: Path) -> None:
    content = saved.read_bytes()
    with pytest.raises(CommandError, match="add force=True to overwrite it"):
        save_model(model, saved)
    assert saved.read_bytes() == content


def test_a_file_cut_short_anywhere_is_one_sentence(saved: Path) -> None:
    content = saved.read_bytes()
    for length in {0, 1, 2, 30, 400, len(content) // 2, len(content) - 30, len(content) - 1}:
        saved.write_bytes(content[:length])
        said = "cut short" if length >= 400 else r"cut short|is not a model"
        with pytest.raises(CommandError, match=said):
            load_model(saved)


def test_an_altered_byte_is_noticed(saved: Path) -> None:
    content = saved.read_bytes()
    for place in np.linspace(40, len(content) - 40, 60).astype(int):
        altered = bytearray(content)
        altered[place] ^= 0xFF
        saved.write_bytes(bytes(altered))
        try:
            loaded = load_model(saved)
        except CommandError:
            continue
        # a byte of the archive's own bookkeeping, such as a time stamp
        assert loaded.header.columns


def rewrite(path: Path, **members: bytes) -> None:
    """Replace members of a model file and put matching checksums."""
    with zipfile.ZipFile(path) as archive:
        old = {name: archive.read(name) for name in archive.namelist()}
    names = {"header": "header.json", "body": "estimator.skops"}
    old |= {names[key]: content for key, content in members.items()}
    sums = {name: store._digest(old[name]) for name in names.values()}
    old["checksum.json"] = json.dumps(sums).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in old.items():
            archive.writestr(name, content)


class Stranger:
    """A type that nobody registered."""

    def __init__(self) -> None:
        self.value = 1


def test_types_that_are_not_trusted_are_refused(saved: Path) -> None:
    rewrite(saved, body=skops.io.dumps(Stranger()))
    with pytest.raises(CommandError, match=r"not trusted \(.*Stranger"):
        load_model(saved)


def test_a_file_of_another_version_says_which_and_what_to_do(saved: Path) -> None:
    with zipfile.ZipFile(saved) as archive:
        header = json.loads(archive.read("header.json"))
    header["versions"]["kernelweave-workbench"] = "0.1.0"
    # it may have types that are no more
    rewrite(saved, header=json.dumps(header).encode(), body=skops.io.dumps(Stranger()))
    with pytest.raises(CommandError, match=r"saved by KernelWeave 0\.1\.0, and this is .* fit it"):
        load_model(saved)


def test_a_module_named_in_a_file_is_not_imported(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trap.py").write_text("raise SystemExit('sprung')\nclass RBF: pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with zipfile.ZipFile(io.BytesIO(skops.io.dumps(Stranger()))) as archive:
        schema = json.loads(archive.read("schema.json"))
    schema["__module__"], schema["__class__"] = "trap", "RBF"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("schema.json", json.dumps(schema))
    rewrite(saved, body=buffer.getvalue())
    with pytest.raises(CommandError, match=r"not trusted \(trap.RBF"):
        load_model(saved)


def test_a_pickle_is_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "model.pkl"
    path.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(CommandError, match="is not a model written by"):
        load_model(path)


def test_any_other_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme", "hello")
    with pytest.raises(CommandError, match="is not a model written by"):
        load_model(path)


def test_a_compressed_member_is_refused(saved: Path) -> None:
    with zipfile.ZipFile(saved) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(saved, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(CommandError, match="damaged"):
        load_model(saved)


def test_a_member_that_says_it_is_encrypted(saved: Path) -> None:
    content = bytearray(saved.read_bytes())
    # the flags of the first entry of the directory
    content[content.index(b"PK\x01\x02") + 8] |= 1
    saved.write_bytes(bytes(content))
    with pytest.raises(CommandError, match="damaged"):
        load_model(saved)


def test_a_model_of_a_later_program(saved: Path, model: Model) -> None:
    header = json.loads(model.header.to_json()) | {"format": 99, "unheard": "of"}
    rewrite(saved, header=json.dumps(header).encode())
    with pytest.raises(CommandError, match=r"format 99, this program reads up to 5: upgrade"):
        load_model(saved)
    rewrite(saved, header=json.dumps(header | {"format": 1}).encode())
    assert load_model(saved).header == model.header


@pytest.mark.parametrize("header", [b"[]", b"{}", b'{"format": 1}', b"\xff", b"not json"])
def test_a_header_that_is_none(saved: Path, header: bytes) -> None:
    rewrite(saved, header=header)
    with pytest.raises(CommandError, match="damaged"):
        load_model(saved)


def test_a_missing_file() -> None:
    with pytest.raises(CommandError, match="cannot read the model nowhere"):
        load_model("nowhere")


def test_a_model_that_would_not_load_is_not_saved(model: Model, tmp_path: Path) -> None:
    odd = Ridge()
    odd.extra_ = Stranger()
    with pytest.raises(CommandError, match="would not be loaded again"):
        save_model(Model(odd, model.header), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_values_of_our_packages_are_trusted_where_they_are_defined() -> None:
    own = {
        "kernelweave.evidence.estimators.EvidenceKernelRegressor",
        "kernelweave.evidence.columns.encoder.ColumnEncoder",
        "kernelweave.kernels_core.result.Status",
        "kernelweave.kernels_core.kernels.standard.RBF",
        "kernelweave.workbench.matrix.TableMatrix",
    }
    others = {
        "kernelweave.evidence.EvidenceKernelRegressor",  # another name of it
        "kernelweave.workbench.files.replacing",  # a function
        "kernelweave.workbench.console._Trimmed",  # no value
        "kernelweave.workbench.models.store.Enum",  # of another module
        "kernelweave.evidence.nothing.Here",
        "kernelweave.stranger.Here",
    }
    assert trusted_types(own | others) == own


def test_registered_components_are_trusted_and_nothing_else() -> None:
    registered = "kernelweave_template.TemplateSimplex"
    pytest.importorskip("kernelweave_template")
    wanted = {registered, "builtins.eval", "os.system", "kernelweave.workbench.app.run"}
    assert trusted_types(wanted) == {registered}


def test_a_file_tells_of_each_object_once_and_of_no_array_for_each_column() -> None:
    """Of 5,000 columns there were 15,000 arrays, and then 4.9 kB of each column."""
    from kernelweave.evidence import EvidenceKernelRegressor

    counts, sizes, columns = [], [], (4, 24)
    for p in columns:
        X = np.random.default_rng(0).normal(size=(30, p))
        names = [f"c{k}" for k in range(p)]
        model = EvidenceKernelRegressor(max_iter=1, n_folds=2)
        body = canonical(skops.io.dumps(model.fit(pd.DataFrame(X, columns=names), X[:, 0])))
        found = skops.io.loads(body, trusted=skops.io.get_untrusted_types(data=body))
        assert found._predictor.mixture.views == model._predictor.mixture.views
        assert found.dimensions_[0] is found.encoder_.dimensions_[0]
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            counts.append(sum(name.endswith(".npy") for name in archive.namelist()))
            sizes.append(len(archive.read("schema.json")))
    assert counts[1] <= counts[0]
    assert sizes[1] - sizes[0] <= 1500 * (columns[1] - columns[0])
