"""``kernelweave certify``: a second proof, and data that are not the model's."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from kernelweave.workbench.certifying import certifier
from kernelweave.workbench.summaries import certificate_sentence


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from kernelweave.workbench.app import run

    path = tmp_path_factory.mktemp("model") / "wine.kw"
    tokens = ["fit", "wine", "--algorithm", "tkl-frank-wolfe", "--C", "0.001", "--no-compare"]
    assert run([*tokens, "--tol", "0.1", "--out", str(path)]) == 0
    return path


def test_the_second_interval_is_narrower_and_agrees(run: Callable, model: Path) -> None:
    done = run("certify", model, "wine", "--tol", "1e-4", "--json")
    found = json.loads(done.out)
    assert found["algorithm"] == "tkl-low-rank"
    assert found["lower_bound"] <= found["upper_bound"] <= found["objective"]
    assert found["upper_bound"] - found["lower_bound"] <= 1.01e-4 * found["upper_bound"]
    assert 0.0 <= found["excess"] <= 0.1


def test_people_read_a_sentence(run: Callable, model: Path) -> None:
    done = run("certify", model, "wine", "--algorithm", "tkl-frank-wolfe", "--tol", "0.1")
    assert "is proved to be within" in " ".join(done.out.split())


@pytest.mark.parametrize(
    ("lower", "upper", "said"),
    [
        (99.0, 100.0, "proved to be within 1 % of the best"),
        (1e-4, 4e-3, "The optimum lies between 0.0001 and 0.004: too far apart to say"),
        (float("-inf"), 1.0, "No lower bound is claimed"),
    ],
)
def test_a_sentence_claims_no_more_than_the_bounds(lower: float, upper: float, said: str) -> None:
    gap = (upper - lower) / upper
    found = {
        "lower_bound": lower,
        "upper_bound": upper,
        "gap": gap,
        "is_rule": False,
        "algorithm": "any",
    }
    assert said in certificate_sentence(found)


@pytest.mark.parametrize(
    ("task", "score", "said"),
    [
        ("regression", -0.0002, "hardly better than the mean (R² 0.000, give or take 0.020): that"),
        ("regression", 0.9, "expect an R² of about 0.900, give or take 0.020: that is measured"),
        ("classification", 0.0, "an accuracy of about 0.000, give or take 0.020: that"),
        ("classification", 1.0, "an accuracy above 0.980, for no row held out was wrong: that"),
    ],
)
def test_what_to_expect_of_new_rows(task: str, score: float, said: str) -> None:
    measure = {"regression": "R²", "classification": "accuracy"}[task]
    found = {"algorithm": "evidence", "task": task, "measure": measure}
    found["held_out"] = {"score": score, "error": 0.01}
    assert said in certificate_sentence(found)


@pytest.mark.parametrize("algorithm", ["mkl-average", "mkl-easy", "mkl-cka", "mkl-pwmk"])
def test_weights_by_a_rule_are_not_called_the_best(run: Callable, algorithm: str) -> None:
    pytest.importorskip("kernelweave.baselines")
    done = run("fit", "wine", "--algorithm", algorithm, "--no-compare")
    said = " ".join(done.out.split())
    assert "The weights follow a rule, and no better ones were looked for" in said
    assert "No kernel of this family" not in said


def test_the_page_does_not_call_a_rule_the_best(run: Callable, tmp_path: Path) -> None:
    pytest.importorskip("kernelweave.baselines")
    model, page = tmp_path / "rule.kw", tmp_path / "rule.html"
    run("fit", "wine", "--algorithm", "mkl-average", "--no-compare", "--out", model)
    assert run("report", model, "--out", page).status == 0
    text = " ".join(page.read_text().split())
    assert "The weights follow a rule, and no better ones were looked for" in text
    assert "No kernel of this family" not in text
    assert "proved relative gap" not in text


def test_least_squares_learns_classes_under_the_name_of_its_algorithm(run: Callable) -> None:
    pytest.importorskip("kernelweave.ridge_mkl")
    tokens = ("fit", "iris", "--algorithm", "krr-pgd2", "--degree", "2", "--no-compare", "--json")
    found = json.loads(run(*tokens).out)
    assert (found["model"], found["algorithm"]) == ("ridge", "krr-pgd2")
    assert found["gap"] <= 1e-3
    assert "learns products" in run("fit", "iris", "--algorithm", "krr-pgd2").said


@pytest.mark.parametrize(
    ("tokens", "model"),
    [
        (["iris", "--algorithm", "smkl-best-response"], "sparse"),
        (["iris", "--algorithm", "krr-newton"], "ridge"),
        (["diabetes", "--algorithm", "krr-trust-region", "--degree", "2"], "ridge"),
        (["iris", "--algorithm", "krr-rpgd", "--beta", "0.1"], "ridge"),
        (["iris", "--algorithm", "svm-gmkl", "--degree", "2"], "gmkl"),
        (
            ["iris", "--model", "gmkl", "--algorithm", "krr-spg", "--degree", "3", "--q", "3"],
            "gmkl",
        ),
    ],
)
def test_an_algorithm_starts_as_in_its_estimator(
    run: Callable, tokens: list[str], model: str
) -> None:
    pytest.importorskip("kernelweave.ridge_mkl")
    pytest.importorskip("kernelweave.mkl_sparse")
    found = json.loads(run("fit", *tokens, "--no-compare", "--cv", "2", "--json").out)
    assert found["model"] == model
    assert found["gap"] <= 1e-2
    assert found["settings"].get("init", "saddle") == "saddle"
    assert found["settings"].get("center", 0.0) == 0.0


def test_the_algorithm_of_sparse_models_lets_folds_choose(run: Callable) -> None:
    pytest.importorskip("kernelweave.relaxations")
    tokens = ("--algorithm", "smkl-global", "--k0", "cv", "--no-compare", "--cv", "2", "--json")
    found = json.loads(run("fit", "breast-cancer-mean", *tokens).out)
    assert (found["model"], found["algorithm"]) == ("sparse", "smkl-global")
    assert found["chosen"]["k0"] in range(1, 6)
    assert found["gap"] <= 1e-4


def test_other_data_are_refused(run: Callable, model: Path, tmp_path: Path) -> None:
    from sklearn.datasets import load_wine

    assert "fitted on 178 samples, these are" not in run("certify", model, "wine", "--json").said
    frame = load_wine(as_frame=True).frame
    classes = load_wine().target_names
    frame["target"] = classes[frame["target"]]
    frame.head(150).to_csv(tmp_path / "less.csv", index=False)
    said = run("certify", model, tmp_path / "less.csv").error
    assert "fitted on 178 samples, these are 150" in said
    frame["target"] = frame["target"].sample(frac=1, random_state=0).to_numpy()
    frame.to_csv(tmp_path / "other.csv", index=False)
    assert "not the data" in run("certify", model, tmp_path / "other.csv").error


@pytest.mark.parametrize(
    ("name", "best"),
    [("tkl-frank-wolfe", "tkl-low-rank"), ("tkl-low-rank", "tkl-low-rank")],
)
def test_the_algorithm_that_proves_most(name: str, best: str) -> None:
    assert certifier(name) == best


def test_the_evidence_is_fitted_again(run: Callable, tmp_path: Path) -> None:
    from sklearn.datasets import load_iris

    frame, data, model = load_iris(as_frame=True).frame, tmp_path / "t.csv", tmp_path / "m.kw"
    frame.to_csv(data, index=False)
    options = ["--target", "target", "--max-iter", "5", "--no-compare"]
    assert run("fit", data, *options, "--out", model).status == 0
    found = json.loads(run("certify", model, data, "--json").out)
    assert found["again_score"] == pytest.approx(found["held_out_score"], abs=0.05)
    assert found["predictions_differ"] < 0.05
    said = " ".join(run("certify", model, data).out.split())
    assert "predicted the same rows: the two give" in said
    assert "does not solve" in run("certify", model, data, "--algorithm", "tkl-low-rank").error
    frame["target"] = frame["target"].sample(frac=1, random_state=0).to_numpy()
    frame.to_csv(data, index=False)
    assert "are not the data" in run("certify", model, data).error
