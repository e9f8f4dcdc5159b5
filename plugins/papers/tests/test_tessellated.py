"""The plans of the tessellated-kernel papers: complete, and their cells compute."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kernelweave.papers import Request, tables
from kernelweave.papers.data import printed
from kernelweave.papers.plan import Drawing, MissingDataError, Plan, Sheet
from kernelweave.papers.tessellated import accuracy, methods
from kernelweave.papers.tessellated.accuracy import COSTS, measure, seconds_of, theirs
from kernelweave.papers.tessellated.methods import methods_for
from kernelweave.workbench.pages import figure_svg

CLASSIFICATION, REGRESSION = (accuracy.sets(task) for task in ("classification", "regression"))
OURS = [name for name, spec in tables().items() if "papers.tessellated" in spec.target]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data folder with a small made-up set under every name."""
    path = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    classes = {task.file for task in CLASSIFICATION.values()}
    classes |= {row["file"] for row in printed("tessellated", "times.csv")}
    files = classes | {task.file for task in REGRESSION.values()}
    for name in sorted(files | {"grand_canyon_750.csv", "grand_canyon_native.csv.gz"}):
        X = rng.uniform(size=(130, 2))
        signal = np.sin(4 * X[:, 0]) + X[:, 1]
        y = np.where(signal > np.median(signal), 1.0, -1.0) if name in classes else 50 * signal
        if "canyon" in name:
            first, second = np.meshgrid(np.arange(10.0), np.arange(13.0), indexing="ij")
            X = np.column_stack([first.ravel(), second.ravel()])
        lines = [
            "a,b,target",
            *(",".join(map(repr, row)) for row in np.column_stack([X, y]).tolist()),
        ]
        import gzip

        text = ("\n".join(lines) + "\n").encode()
        (path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return path


def plan_of(name: str, folder: Path | None) -> Plan:
    plan: Plan = tables()[name].plan(Request(quick=True, folder=folder, most_samples=60))
    return plan


def test_every_numbered_item_of_both_papers_has_a_name() -> None:
    wanted = {"tkl-1", "tkl-3", "tkl-4", *(f"tkl-figure-{n}" for n in (1, 2, 3, 4))}
    assert set(OURS) == wanted | {
        *("tkl-2021-figure-2", "tkl-2021-figure-3", "tkl-gas-turbine", "tkl-exponents")
    }


@pytest.mark.parametrize("name", OURS)
def test_missing_data_are_named(name: str) -> None:
    cells = plan_of(name, None).cells
    assert all(cell.missing_files() for cell in cells)
    with pytest.raises(MissingDataError, match=r"KERNELWEAVE_DATA"):
        cells[0].compute(**cells[0].arguments)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["tkl-1", "tkl-figure-1", "tkl-figure-3", "tkl-figure-4"])
def test_a_quick_plan_fills_its_table(name: str, folder: Path) -> None:
    plan = plan_of(name, folder)
    results = {}
    for cell in plan.cells:
        if (
            cell.key.startswith(("Liver", "Heart", "Pima"))
            or "/" not in cell.key
            or "/1" in cell.key
        ):
            results[cell.key] = cell.compute(**cell.arguments)
    shown = plan.present(results)
    sheets = [item for item in shown if isinstance(item, Sheet)]
    assert sheets
    assert all(len(row) == len(sheet.columns) for sheet in sheets for row in sheet.rows)
    assert any(isinstance(value, float) for sheet in sheets for row in sheet.rows for value in row)
    for item in shown:
        if isinstance(item, Drawing):
            assert figure_svg(item.draw).startswith(b"<?xml")
    assert plan.present({})


@pytest.mark.parametrize("name", ["tkl-3", "tkl-4"])
def test_the_papers_aggregate_is_recomputed_from_its_table(name: str, folder: Path) -> None:
    _, summary = plan_of(name, folder).present({})
    printed, recomputed = summary.rows[0][1], summary.rows[1][1]
    assert recomputed == pytest.approx(printed, abs=1.5)
    assert summary.rows[2][1] is None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize(
    "method", ["TKL", "RBF-SVM", "perceptron", "random forest", "boosted trees"]
)
def test_methods_beat_a_guess(method: str, task: str, folder: Path) -> None:
    file = "transfusion.csv" if task == "classification" else "airfoil.csv"
    found = measure(str(folder / file), method, task, 90, 40, 0, True, False)
    if task == "classification":
        assert found["score"] > 60.0
    else:
        assert found["score"] < 900.0
    assert (found["gap"] is not None) == (method == "TKL")


def test_methods_are_the_papers() -> None:
    for tasks, task in (
        (CLASSIFICATION, "classification"),
        (REGRESSION, "regression"),
    ):
        assert len(tasks) == 6
        for name in tasks:
            assert {method for data, method in theirs() if data == name} <= set(methods_for(task))


def test_a_subsample_and_repeats_are_obeyed(folder: Path) -> None:
    request = Request(folder=folder, subsample=100, repeats=2)
    cells = tables()["tkl-4"].plan(request).cells
    assert {cell.arguments["n_train"] for cell in cells} == {80}
    assert {cell.arguments["seed"] for cell in cells} == {0, 1}
    assert all(cell.is_reduced for cell in cells)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_where_the_airfoil_row_is_off_the_choice_of_C_is_why(shared: Path) -> None:
    """The paper prints 1.41 ± .44; two folds of the training part choose a C that is too small.

    On half of the samples C = σ is best, on all of them a hundred times as much is: with that our
    mean lies within the printed standard deviation, with the chosen one it does not.
    """
    from kernelweave.papers.data import load, split
    from kernelweave.spectahedron import TessellatedKernelRegressor

    printed = theirs()["Airfoil", "TKL"]
    X, y = load(str(shared / "data" / "airfoil.csv"))
    errors: dict[float, list[float]] = {1.0: [], 100.0: []}
    for seed in range(3):
        X_train, X_test, y_train, y_test = split(X, y, 1300, 203, seed, classes=False)
        for unit, found in errors.items():
            machine = TessellatedKernelRegressor(
                C=unit * np.std(y_train),
                epsilon=0.1,
                units="absolute",
                delta=0.5,
                tol=1e-2,
                max_iter=500,
            ).fit(X_train, y_train)
            found.append(float(np.mean((machine.predict(X_test) - y_test) ** 2)))
    assert abs(np.mean(errors[100.0]) - printed["score"]) <= printed["spread"]
    assert abs(np.mean(errors[1.0]) - printed["score"]) > printed["spread"]


def test_estimates_follow_the_growth_of_each_method() -> None:
    tasks = [("classification", CLASSIFICATION), ("regression", REGRESSION)]
    for task, sets in tasks:
        for about in sets.values():
            for method in methods_for(task):
                assert 0.5 <= seconds_of(method, about.n_train, about.n_features) < 1e5
    # what is tuned on stops growing at 8000 samples, the last fit does not
    large, twice = seconds_of("TKL", 20_000, 4), seconds_of("TKL", 40_000, 4)
    assert twice - large == pytest.approx(COSTS["TKL"]["fit"] * (40**2 - 20**2))
    # the gas turbine took 293 s on two cores
    assert 150.0 < seconds_of("TKL", 30_000, 11) < 600.0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_where_the_shill_row_is_off_the_splits_are_why(shared: Path) -> None:
    """The paper prints 99.76 ± .08, one sample of 1321 up or down; our splits differ by more.

    With the settings that two folds choose, one split lies above that range and another below;
    below stays below with a hundred times that C and with a wider box.
    """
    from kernelweave.papers.data import load, split
    from kernelweave.spectahedron import TessellatedKernelClassifier

    printed = theirs()["Shill Bid", "TKL"]
    X, y = load(str(shared / "data" / "shill_bidding.csv.gz"))

    def accuracy(seed: int, C: float, delta: float) -> float:
        X_train, X_test, y_train, y_test = split(X, y, 5000, 1321, seed, classes=True)
        machine = TessellatedKernelClassifier(
            C=C, units="absolute", delta=delta, tol=1e-2, max_iter=60
        )
        return 100.0 * float(machine.fit(X_train, y_train).score(X_test, y_test))

    assert accuracy(4, 0.1, 0.5) > printed["score"] + printed["spread"]
    for C, delta in ((0.1, 0.5), (10.0, 0.5), (0.1, 1.0)):
        assert accuracy(1, C, delta) < printed["score"] - printed["spread"]


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("classes", [True, False])
def test_fits_are_limited_by_steps_and_not_by_the_clock(quick: bool, classes: bool) -> None:
    y = np.array([0.0, 1.0])
    search = methods._tessellated(4, y, classes=classes, quick=quick, fine=False)
    found = search.get_params()
    steps = methods.QUICK_STEPS if quick else methods.MOST_STEPS
    assert (found["max_iter"], found["max_time"]) == (steps, None)


def test_the_page_names_the_fits_that_ended_before_their_gap() -> None:
    record = {"score": 80.0, "seconds": 1.0, "gap": 0.005, "chosen": {}}
    plan = tables()["tkl-4"].plan(Request())
    results = {f"{name}/TKL/0": record for name in ("German", "Abalone")}
    ends = [note for note in plan.present(results)[0].notes if "ended with a gap" in note]
    assert ends == []
    results["German/TKL/0"] = {**record, "gap": 0.09}
    ends = [note for note in plan.present(results)[0].notes if "ended with a gap" in note]
    assert ends == ["Fits that ended with a gap above 0.01: German (0.09)."]
