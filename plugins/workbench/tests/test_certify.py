"""``kernelweave certify``: a second proof, and data that are not the model's."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.workbench import load_model
from kernelweave.workbench.certifying import certifier
from kernelweave.workbench.sentences import closing_sentences, proved_sentence
from kernelweave.workbench.summaries import FileScore, HeldOutScore, Summary


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from kernelweave.workbench.app import run

    path = tmp_path_factory.mktemp("model") / "wine.kw"
    tokens = ["fit", "wine", "--algorithm", "tkl-frank-wolfe", "--set", "C=0.001", "--no-compare"]
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
        (99.0, 100.0, "proved to be within 1 % of the optimum"),
        (1e-4, 4e-3, "The optimum is between 0.0001 and 0.004: too wide an interval to say"),
        (float("-inf"), 1.0, "This algorithm has no lower bound"),
    ],
)
def test_a_sentence_claims_no_more_than_the_bounds(lower: float, upper: float, said: str) -> None:
    bounds = {"lower_bound": lower, "upper_bound": upper, "gap": (upper - lower) / upper}
    unknown = {"algorithm": "any", "held_out": None, "test": None}
    assert said in closing_sentences(found(Summary, **bounds, **unknown))


def found(kind: type, **known: object) -> Any:
    """Return a summary, or a part of one, of which nothing else is known."""
    return kind(**dict.fromkeys((each.name for each in fields(kind)), "") | known)


def known(task: str, score: float, ahead: float, **more: Any) -> str:
    """Return the closing sentences of an evidence model with a score ± 0.01 on rows held out."""
    held_out = found(
        HeldOutScore,
        score=score,
        error=0.01,
        ahead=ahead,
        ahead_error=0.01,
        n_parts=200,
        low=max(score - 0.02, 0.0 if task == "classification" else -1.0),
        high=min(score + 0.02, 1.0),
        baseline=score - ahead,
    )
    fit = {"algorithm": "evidence", "task": task, "status": "stationary", "held_out": held_out}
    fit |= {"measure": "R²" if task == "regression" else "accuracy", "metric": None, "test": None}
    compared = {"comparison": {"ours": "", "rows": []}}
    return closing_sentences(found(Summary, **fit | compared | more))


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("stationary", "the kernel is a local optimum of the evidence."),
        ("max_iter", "the kernel is what the search had found when it ended (max_iter)."),
    ],
)
def test_what_an_estimate_does_not_prove_ends_no_output(status: str, said: str) -> None:
    """It stands among the details of the fit."""
    sentence = proved_sentence(found(Summary, algorithm="evidence", status=status))
    assert sentence.startswith("This is an estimate, not a proof")
    assert sentence.endswith(said)
    assert known("regression", 0.9, 0.9, status=status).endswith("0.880 to 0.920).")


@pytest.mark.parametrize(
    ("task", "score", "ahead", "said"),
    [
        ("regression", -0.0002, -0.0002, "0.000 (95 % interval -0.020 to 0.020), no better than "
         "the mean (0.000): the columns may not be informative"),
        ("regression", 0.9, 0.9, "R² on similar new rows: about 0.900 (95 % interval 0.880 to "
         "0.920)."),
        # the error of the score is no error of the difference: 0.05 may be within two of the one
        ("classification", 0.6, 0.05, "about 0.600 (95 % interval 0.580 to 0.620)."),
        ("classification", 0.0, -0.5, "about 0.000 (95 % interval 0.000 to 0.020), no better than"),
        ("classification", 1.0, 0.5, "above 0.980 (a perfect score in cross-validation)."),
    ],
)  # fmt: skip
def test_what_to_expect_of_new_rows(task: str, score: float, ahead: float, said: str) -> None:
    assert said in known(task, score, ahead)


def test_what_the_verdict_said_is_followed_by_no_blank() -> None:
    rare = {"score": 0.9, "baseline": 0.9, "rare_ranking": "It ranks.", "ahead": 0.0}
    rare |= {"ahead_error": 0.1, "n_parts": 9}
    row = {"name": "baseline", "score": 0.9, "behind": 0.0, "behind_error": 0.1, "n_parts": 9}
    more = {"held_out": found(HeldOutScore, **rare), "comparison": {"rows": [row]}}
    assert known("classification", 0.9, 0.0, **more) == ""


@pytest.mark.parametrize(
    ("score", "said"),
    [
        (-0.34, "R² -0.340 (95 % interval -0.360 to -0.320), worse than in cross-validation "
         "(0.900): the test rows differ"),
        (0.91, "R² 0.910 (95 % interval 0.890 to 0.930), in agreement with cross-validation"),
        (0.99, "better than in cross-validation (0.900)."),
    ],
)  # fmt: skip
def test_a_test_file_counts_more_than_rows_held_out(score: float, said: str) -> None:
    about = {"score": score, "error": 0.01, "n_parts": 40, "rows": 40, "data": "new.csv"}
    about |= {"low": score - 0.02, "high": score + 0.02, "shares_rows": False}
    tested = found(FileScore, **about)
    sentences = known("regression", 0.9, 0.9, test=tested)
    assert sentences.startswith("On 40 rows of new.csv: ")
    assert said in sentences
    assert "similar new rows" not in sentences
    few = replace(tested, n_parts=2, rows=2, low=-np.inf)
    known_by_two = known("regression", 0.9, 0.9, test=few)
    assert "(too few rows or groups for an interval)." in known_by_two
    shared = replace(tested, shares_rows=True)
    assert known("regression", 0.9, 0.9, test=shared) == known("regression", 0.9, 0.9)


def test_the_sentence_and_the_verdict_judge_by_the_same_difference() -> None:
    """A paired difference from the dummy's row of 0.038 ± 0.014 is better, whatever else says."""
    behind = {"behind": 0.038, "behind_error": 0.014, "n_parts": 200}
    row = {"name": "baseline", "score": 0.66, **behind}
    compared = {"comparison": {"rows": [row]}}
    assert "better than" not in known("classification", 0.7, 0.0, **compared)
    row["behind"] = 0.02
    # beside the score that is in the table
    assert "not significantly better than the most frequent class (0.660)" in known(
        "classification", 0.7, 0.1, **compared
    )


@pytest.mark.parametrize("algorithm", ["mkl-average", "mkl-easy", "mkl-cka", "mkl-pwmk"])
def test_weights_by_a_rule_are_not_called_the_best(run: Callable, algorithm: str) -> None:
    pytest.importorskip("kernelweave.baselines")
    done = run("fit", "wine", "--algorithm", algorithm, "--no-compare")
    said = " ".join(done.out.split())
    assert "The weights follow from a rule and were not optimised" in said
    assert "No kernel of this family" not in said


def test_simple_mkl_is_solved_again_by_its_own_algorithm(run: Callable, tmp_path: Path) -> None:
    pytest.importorskip("kernelweave.baselines")
    data, model = tmp_path / "t.csv", tmp_path / "simple.kw"
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["a", "b"])
    frame.assign(y=np.where(frame["a"] > frame["b"], "yes", "no")).to_csv(data, index=False)
    options = ["--target", "y", "--model", "simple", "--tol", "0.1", "--no-compare"]
    assert run("fit", data, *options, "--out", model).status == 0
    found = json.loads(run("certify", model, data, "--tol", "0.05", "--json").out)
    assert found["algorithm"] == "mkl-simple"
    assert found["lower_bound"] <= found["upper_bound"] <= found["objective"]


@pytest.mark.parametrize(
    ("name", "options", "share"),
    [("elastic-net", (), None), ("quantile", ("--set", "quantile=0.9"), 0.9)],
)
def test_models_of_numbers_are_fitted_and_proved(
    run: Callable, tmp_path: Path, name: str, options: tuple[str, ...], share: float | None
) -> None:
    pytest.importorskip("kernelweave.baselines")
    data, model = tmp_path / "t.csv", tmp_path / "model.kw"
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 2)), columns=["a", "b"])
    y = frame["a"] + np.random.default_rng(1).normal(size=80)
    frame.assign(y=y).to_csv(data, index=False)
    given = ("--target", "y", "--model", name, "--tol", "0.01", "--no-compare", *options)
    assert run("fit", data, *given, "--out", model).status == 0
    found = json.loads(run("certify", model, data, "--json").out)
    assert found["lower_bound"] <= found["upper_bound"] <= found["objective"]
    if share is not None:
        said = run("predict", model, data).out.split()[1:]
        assert np.mean(y <= np.array(said, dtype=float)) == pytest.approx(share, abs=0.05)


def test_a_model_of_numbers_refuses_classes(run: Callable) -> None:
    pytest.importorskip("kernelweave.baselines")
    done = run("fit", "wine", "--model", "quantile", "--no-compare")
    assert done.status == 2
    assert "--model quantile is for regression only, and this is a classification" in done.error


def test_the_page_does_not_call_a_rule_the_best(run: Callable, tmp_path: Path) -> None:
    pytest.importorskip("kernelweave.baselines")
    model, page = tmp_path / "rule.kw", tmp_path / "rule.html"
    run("fit", "wine", "--algorithm", "mkl-average", "--no-compare", "--out", model)
    assert "follow from a rule and are not optimised" in run("certify", model, "wine").error
    assert run("report", model, "--out", page).status == 0
    text = " ".join(page.read_text().split())
    assert "The weights follow from a rule and were not optimised" in text
    assert "No kernel of this family" not in text
    assert "proved relative gap" not in text


def test_a_stationary_point_is_not_called_an_optimum(run: Callable, tmp_path: Path) -> None:
    pytest.importorskip("kernelweave.evidence")
    data, model, page = tmp_path / "waves.csv", tmp_path / "mkl.kw", tmp_path / "mkl.html"
    state = np.random.default_rng(0)
    X = state.normal(size=(60, 2)).round(3)
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.1 * state.normal(size=60)
    lines = [f"{a},{b},{c:.4f}" for (a, b), c in zip(X, y, strict=True)]
    data.write_text("\n".join(["a,b,y", *lines]))
    given = ("--target", "y", "--model", "evidence-mkl", "--no-compare")
    by_folds = run("fit", data, *given)
    words = " ".join(by_folds.out.split())
    assert "rows held out chose the weights, of which nothing is proved" in words
    assert "importance" not in by_folds.err
    proved = ("--set", "algorithm=lbfgs")
    fitted = run("fit", data, *given, *proved, "--out", model)
    assert "nothing can be proved of the evidence MKL" in run("certify", model, data).error
    assert run("report", model, "--out", page).status == 0
    for said in (fitted.out, page.read_text()):
        words = " ".join(said.split())
        assert "a stationary point of the evidence, not its global maximum" in words
        assert "proved" not in words
        assert "proven" not in words


def test_least_squares_learns_classes_under_the_name_of_its_algorithm(run: Callable) -> None:
    pytest.importorskip("kernelweave.ridge_mkl")
    tokens = (
        "fit",
        "iris",
        "--algorithm",
        "krr-pgd2",
        "--set",
        "degree=2",
        "--no-compare",
        "--json",
    )
    found = json.loads(run(*tokens).out)
    assert (found["model"], found["algorithm"]) == ("ridge", "krr-pgd2")
    assert found["gap"] <= 1e-3
    assert "learns products" in run("fit", "iris", "--algorithm", "krr-pgd2").said


@pytest.mark.parametrize(
    ("tokens", "model"),
    [
        (["iris", "--algorithm", "smkl-best-response"], "sparse"),
        (["iris", "--algorithm", "krr-newton"], "ridge"),
        (["diabetes", "--algorithm", "krr-trust-region", "--set", "degree=2"], "ridge"),
        (["iris", "--algorithm", "krr-rpgd", "--set", "beta=0.1"], "ridge"),
        (["iris", "--algorithm", "svm-gmkl", "--set", "degree=2"], "gmkl"),
        (
            [
                "iris",
                "--model",
                "gmkl",
                "--algorithm",
                "krr-spg",
                "--set",
                "degree=3",
                "--set",
                "q=3",
            ],
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
    tokens = ("--algorithm", "smkl-global", "--set", "k0=cv", "--no-compare", "--cv", "2", "--json")
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
    assert "fitted on 178 rows, and this table has 150" in said
    frame["target"] = frame["target"].sample(frac=1, random_state=0).to_numpy()
    frame.to_csv(tmp_path / "other.csv", index=False)
    assert "other values of the target" in run("certify", model, tmp_path / "other.csv").error


@pytest.mark.parametrize(
    ("name", "best"),
    [("tkl-frank-wolfe", "tkl-low-rank"), ("tkl-low-rank", "tkl-low-rank")],
)
def test_the_algorithm_that_proves_most(name: str, best: str) -> None:
    assert certifier(name) == best


def test_the_second_solve_is_told_what_the_fit_was(run: Callable, tmp_path: Path) -> None:
    """Without the weights, or by other folds, the optimum would be that of another problem."""
    pytest.importorskip("kernelweave.ridge_mkl")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=96), "who": np.repeat([*"abcdefghijkl"], 8)})
    frame["code"] = rng.integers(1, 4, 96)
    frame["y"] = np.sin(2 * frame["a"]) + (frame["code"] == 2) + rng.normal(size=12).repeat(8)
    frame["count"] = np.where(np.arange(96) < 64, rng.integers(1, 4, 96), 0)
    frame.loc[64:, "y"] = rng.normal(size=32)
    data, model = tmp_path / "t.csv", tmp_path / "m.kw"
    frame.to_csv(data, index=False)
    options = ["--target", "y", "--model", "ridge", "--set", "lam=cv", "--categorical", "code"]
    asked = [*options, "--weights", "count", "--groups", "who", "--drop", "who", "--no-compare"]
    assert run("fit", data, *asked, "--out", model).status == 0
    found = json.loads(run("certify", model, data, "--json").out)
    assert 0.0 <= found["excess"] < 0.01
    assert load_model(model).header.asked["kinds"] == {"code": "category"}


@pytest.mark.parametrize("options", [("sparse", "k0=2"), ("ridge", "q=1"), ("tkl", "C=0.01")])
def test_a_proof_is_written_and_checked(
    run: Callable, tmp_path: Path, options: tuple[str, str]
) -> None:
    check = pytest.importorskip("kernelweave_check").check
    packages = {"sparse": "relaxations", "ridge": "ridge_mkl", "tkl": "spectahedron"}
    pytest.importorskip(f"kernelweave.{packages[options[0]]}")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
    frame["y"] = np.where(frame["a"] * frame["b"] > 0, "yes", "no")
    data, model, proof = tmp_path / "t.csv", tmp_path / "m.kw", tmp_path / "proof.jsonl"
    frame.to_csv(data, index=False)
    fit = ["--target", "y", "--model", options[0], "--set", options[1], "--no-compare"]
    assert run("fit", data, *fit, "--out", model).status == 0
    done = run("certify", model, data, "--tol", "1e-4", "--proof", proof)
    assert f"kernelweave-check {proof}" in " ".join(done.out.split()), done.err
    found = check(proof)
    said = json.loads(run("certify", model, data, "--json").out)
    assert float(found.lower) <= said["upper_bound"] * (1 + 1e-6)
    assert said["lower_bound"] <= float(found.upper) * (1 + 1e-6)


def test_no_proof_of_other_models(run: Callable, tmp_path: Path) -> None:
    model = tmp_path / "m.kw"
    assert run("fit", "iris", "--max-iter", "2", "--no-compare", "--out", model).status == 0
    done = run("certify", model, "iris", "--proof", tmp_path / "proof")
    assert done.status == 2
    assert "--proof needs a model of sparse weights" in " ".join(done.err.split())
    assert "nothing can be proved of the evidence kernel" in run("certify", model, "iris").error
