import json

import numpy as np
import pytest
from kernelweave.kernels_core.grams import GramStack
from kernelweave.kernels_core.kernels import (
    PAPER_FIFTY,
    PAPER_TEN,
    KernelDictionary,
    default_kernels,
)
from kernelweave.qp_smo import SVC
from kernelweave.qp_smo.saddle import KSupport, solve_kernel_weights
from kernelweave.relaxations import lower_bound, solve_global

QUICK = ("iris", "wine", "parkinsons", "heart", "haberman", "ionosphere", "breastcancer")
QUICK = (*QUICK, "mammographic", "banknote")
ALL = [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in ("spambase",))]
# Proven here to 1e-8; the lower and upper ends of the optima at the authors' settings.
OPTIMA = {
    "iris": 16.7803,
    "wine": 7.70475,
    "parkinsons": 25.6859,
    "heart": 69.9484,
    "haberman": 431.969,
    "ionosphere": 88.392,
    "breastcancer": 23.0217,
    "mammographic": 1092.02,
    "banknote": 42.1300,
    "spambase": 520.51,
}
FULL = ("iris", "wine", "parkinsons", "heart", "haberman", "ionosphere")
BOUNDS = {
    "iris": 14.6869,
    "wine": 7.70475,
    "parkinsons": 25.6859,
    "heart": 69.9484,
    "haberman": 431.969,
    "ionosphere": 80.390,
    "breastcancer": 22.9993,
    "mammographic": 1092.02,
    "banknote": 28.3100,
    "spambase": 520.51,
}
# where their best of three variants is not the optimum
BELOW = ("parkinsons", "heart", "ionosphere", "breastcancer", "mammographic", "spambase")
SOC = {
    "iris": 0.499156,
    "wine": 5.190723,
    "parkinsons": 0.187557,
    "heart": 0.189614,
    "haberman": 0.508845,
    "ionosphere": 50.246196,
    "breastcancer": 0.148314,
}


def settings_of(setting):
    return {name: setting[name] for name in ("C", "lam", "k0")}


@pytest.mark.parametrize("name", ALL)
def test_relaxation_and_optimum_at_the_authors_settings(published, name):
    grams, y, setting = published(name)
    s = settings_of(setting)
    penalty = KSupport(s["lam"], s["k0"])
    relaxed = solve_kernel_weights(grams, y, C=s["C"], penalty=penalty, tol=1e-5)
    assert relaxed.gap <= 1e-5
    assert relaxed.upper_bound == pytest.approx(BOUNDS[name], rel=2e-5)
    if name in FULL:
        value = setting["published"]["full_sdp_bound"]
        assert relaxed.lower_bound == pytest.approx(value, rel=1e-5)
        assert relaxed.upper_bound == pytest.approx(value, rel=1e-5)
    best = solve_global(grams, y, **s, tol=1e-4)
    assert best.gap <= 1e-4
    assert best.n_svm_solves - best.n_svm_solves_relaxation <= 25
    assert best.upper_bound == pytest.approx(OPTIMA[name], rel=1e-4)
    variants = ("", "_warm_3x3", "_warm_full")
    heuristic = [setting["published"][f"algorithm1{end}_objective"] for end in variants]
    heuristic = min(value for value in heuristic if value is not None)
    # theirs are dual values at their solver's tolerance: a little too low
    assert best.upper_bound <= heuristic * (1 + 1e-6)
    if name in BELOW:
        assert best.upper_bound < heuristic * (1 - 1e-4)


@pytest.mark.parametrize("name", SOC)
def test_second_order_cone_values(published, name):
    grams, y, setting = published(name)
    b = lower_bound(grams, y, relaxation="soc", **settings_of(setting))
    assert b.value == pytest.approx(SOC[name], rel=1e-5)
    assert b.bound == pytest.approx(SOC[name], rel=2e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "value"), [("iris", 7.6762), ("wine", 5.65288)])
def test_three_by_three_values(published, name, value):
    grams, y, setting = published(name)
    b = lower_bound(grams, y, relaxation="sdp-3x3", **settings_of(setting))
    assert b.value == pytest.approx(value, rel=1e-5)
    assert b.bound == pytest.approx(value, rel=1e-5)


@pytest.mark.slow
def test_full_program_equals_the_saddle_on_iris(published):
    grams, y, setting = published("iris")
    # every other sample: all of them take a conic program minutes
    grams, y = grams[:, ::2, ::2], y[::2]
    s = settings_of(setting)
    full = lower_bound(grams, y, relaxation="full-sdp", **s)
    saddle = lower_bound(grams, y, tol=1e-7, **s)
    assert full.value == pytest.approx(saddle.bound, rel=1e-5)
    assert full.bound <= saddle.value


@pytest.fixture(scope="module")
def golden_smkl(shared):
    return json.loads((shared / "golden" / "smkl_golden.json").read_text())["sets"]


def golden_grams(case, dictionary):
    X = np.array(case["X"])[case["train_idx0"]]
    y = np.array(case["y"], dtype=float)[case["train_idx0"]]
    X = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    kernels = default_kernels()
    if dictionary == "clip10":
        kernels = KernelDictionary(PAPER_TEN, psd="clip")
    return kernels.fit_grams(X).grams, y


@pytest.mark.filterwarnings("ignore:.*negative eigenvalues set to zero")
@pytest.mark.parametrize("dictionary", ["psd8", "clip10"])
@pytest.mark.parametrize("name", ["iris", "wine", "heart", "haberman"])
def test_golden_intervals(golden_smkl, name, dictionary):
    case = golden_smkl[name]
    grams, y = golden_grams(case, dictionary)
    stack = GramStack(grams)
    for p in (p for p in case["problems"] if p["dictionary"] == dictionary):
        for f in p["F"]:
            beta = np.array(f["beta"])
            value = SVC(C=p["C"]).solve(stack.combine(beta), y, tol=1e-12)
            ridge = p["lam"] * beta @ beta
            assert value.lower_bound + ridge == pytest.approx(f["F_lo"], rel=1e-9)
            assert value.upper_bound + ridge == pytest.approx(f["F_hi"], rel=1e-9)
            pen = KSupport(1.0, p["k0"]).on(len(grams)).value(beta)
            assert pen == pytest.approx(f["pen"], rel=1e-9)
        relaxed = lower_bound(stack, y, C=p["C"], lam=p["lam"], k0=p["k0"], tol=1e-6)
        assert relaxed.gap <= 1e-6
        assert relaxed.bound <= p["relax_hi"] * (1 + 1e-7)
        assert relaxed.value >= p["relax_lo"] * (1 - 1e-7)
        best = solve_global(stack, y, C=p["C"], lam=p["lam"], k0=p["k0"], tol=1e-5)
        assert best.gap <= 1e-5
        assert best.lower_bound <= p["exact_hi"] * (1 + 1e-7)
        assert best.upper_bound >= p["exact_lo"] * (1 - 1e-7)


@pytest.mark.filterwarnings("ignore:.*negative eigenvalues set to zero")
@pytest.mark.parametrize(
    ("name", "dictionary"),
    [
        ("iris", "psd8"),
        pytest.param("iris", "clip10", marks=pytest.mark.slow),
        *(
            pytest.param(name, kind, marks=pytest.mark.slow)
            for name in ("wine", "heart", "haberman")
            for kind in ("psd8", "clip10")
        ),
    ],
)
def test_golden_second_order_cones(golden_smkl, name, dictionary):
    case = golden_smkl[name]
    grams, y = golden_grams(case, dictionary)
    for p in (p for p in case["problems"] if p["dictionary"] == dictionary):
        for relaxation, key in (("soc", "soc_basis"), ("soc-random", "soc_random")):
            setting = {"C": p["C"], "lam": p["lam"], "k0": p["k0"]}
            b = lower_bound(grams, y, relaxation=relaxation, check=False, **setting)
            assert b.value == pytest.approx(p[key], rel=1e-5)
            assert b.bound <= p[key] * (1 + 1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*negative eigenvalues set to zero")
@pytest.mark.parametrize("name", ["wine", "heart", "ionosphere", "breastcancer"])
def test_fifty_kernels_are_proved_within_450_solves(published, name):
    grams, y, _ = published(name, kernels=PAPER_FIFTY)
    for C, lam, k0 in ((10, 0.01, 3), (10, 1.0, 3), (5, 10.0, 3), (5, 0.01, 1)):
        best = solve_global(grams, y, C=C, lam=lam, k0=k0, tol=1e-4)
        assert best.gap <= 1e-4
        assert best.n_svm_solves <= 450
