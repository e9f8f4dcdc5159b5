"""Every task of the repository by name; ``nox -l`` lists them, plain ``nox`` runs the checks.

Needs ``pip install "nox[uv]"`` and nothing else on the machine but Python 3.11 or newer.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nox

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / ".ci"))

import changed as changes  # noqa: E402
import draw  # noqa: E402
import installs  # noqa: E402
import workspace  # noqa: E402


def interpreters() -> list[str]:
    """Return the supported versions that this machine has, beside the one that runs nox."""
    others = [f"3.{minor}" for minor in range(11, 15) if minor != sys.version_info.minor]
    names = {version: shutil.which(f"python{version}") for version in others}
    # a shim may stand for an interpreter that is not there
    return [
        version
        for version, name in names.items()
        if name and subprocess.run([name, "-c", ""], capture_output=True).returncode == 0
    ]


INTERPRETERS = interpreters()
MEMBERS = workspace.members()
ROOT_PROJECT = workspace.load_toml(ROOT / "pyproject.toml")
# the versions of its time: later ones warn about what 1.6 does
OLDEST_SCIKIT_LEARN = ("scikit-learn==1.6.*", "scipy<1.16", "pandas<3", "pytest<9")

LINT = ("ruff", "check", "."), ("ruff", "format", "--check", ".")
TYPES = ("mypy", *(part for each in MEMBERS.values() for part in ("-p", each.import_name)))
STRICT = ("-q", "-W", "--keep-going", "-j", "2")
DOCS = ("sphinx-build", *STRICT, "-b", "html", "docs", "docs/_build/html")
LIGHT = ("pytest", "-n", "2", "-m", "not slow")
# what runs a member's tests beside what they declare: neither brings a library that members use
RUNNERS = ("pytest-cov", "pytest-xdist")
MEASURED = ("--cov", "--cov-branch", "--cov-report=")
# what each member's own tests reached in `full`
PARTS = ROOT / ".coverage-parts"
# where an answer may depend on the instructions of a processor
NUMERICAL = ("packages", "plugins/evidence", "plugins/baselines", "plugins/ridge-mkl")

# small enough for an interpreter: each pass against its twin or its definition
INTERPRETED = (
    "packages/kernels-core/tests/families/test_families_interpreted.py",
    "packages/kernels-core/tests/families/test_decision_values.py",
    "packages/kernels-core/tests/families/test_unstored_grams.py",
    "packages/kernels-core/tests/grams/test_stored.py",
    "packages/qp-smo/tests/test_proofs.py",
    "packages/qp-smo/tests/saddle/test_master.py",
    *(
        f"packages/qp-smo/tests/test_passes.py::test_{name}"
        for name in (
            "classification_steps_match_the_twin",
            "product_and_its_majorant",
            "sub_gram",
            "a_newton_step_solves_the_free_problem",
            "newton_steps_never_leave_the_box_nor_lower_the_dual",
        )
    ),
)

nox.needs_version = ">=2024.10.9"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.sessions = ["checks"]
nox.options.error_on_missing_interpreters = True

# the interpreter that runs nox is the one to test; uv must not fetch another
os.environ.setdefault("UV_PYTHON_DOWNLOADS", "never")
# set in many container images; without stored bytecode each of the tests' hundreds of processes
# would compile SciPy, scikit-learn and pandas anew
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def settings(session: nox.Session) -> None:
    """Share compiled code between sessions, keep idle threads quiet, draw without a screen."""
    session.env["NUMBA_CACHE_DIR"] = str(ROOT / ".numba_cache" / workspace.njit_hash())
    session.env["OMP_WAIT_POLICY"] = "PASSIVE"
    session.env["MPLBACKEND"] = "Agg"


def one_thread_each(session: nox.Session) -> None:
    """Give each of several workers one thread: libraries that spin for work stop each other."""
    for library in ("OMP", "OPENBLAS", "MKL"):
        session.env[f"{library}_NUM_THREADS"] = "1"


def group(name: str, project: dict[str, object] = ROOT_PROJECT) -> list[str]:
    """Return the requirements of a dependency group."""
    return list(nox.project.dependency_groups(project, name))


def install(
    session: nox.Session, chosen: list[workspace.Member], requirements: list[str], *extra: str
) -> None:
    """Install members from their folders in one call, so that their pins find each other."""
    editable = [part for member in chosen for part in ("-e", str(member.folder))]
    session.install(*editable, *requirements, *extra)
    settings(session)


def install_all(session: nox.Session, *groups: str, extra: tuple[str, ...] = ()) -> None:
    """Install every member and the root's dependency groups."""
    requirements = [line for name in groups for line in group(name)]
    install(session, list(MEMBERS.values()), [*requirements, *extra])


def assert_installed(session: nox.Session, expected: list[workspace.Member]) -> None:
    """Fail unless the environment holds exactly these members: no undeclared sibling."""
    code = (
        "import importlib.metadata as m, json;"
        "print(json.dumps(sorted({d.name for d in m.distributions()"
        " if d.name.startswith('kernelweave')})))"
    )
    output = session.run("python", "-c", code, silent=True)
    found = set(json.loads(str(output).strip().splitlines()[-1]))
    wanted = {member.distribution for member in expected}
    if found != wanted:
        session.error(f"installed members are {sorted(found)}, declared are {sorted(wanted)}")
    session.log(f"members here: {', '.join(sorted(found))}")


@nox.session
def checks(session: nox.Session) -> None:
    """Lint, types, docs and light tests, in one environment and beside one another.

    mypy, the gallery and the reading of pages keep one core busy each, beside which tests run.
    """
    install_all(session, "lint", "types", "docs", "test")
    one_thread_each(session)
    with ThreadPoolExecutor(1) as beside:
        # in silence: what fails is printed
        others = [beside.submit(session.run, *each, silent=True) for each in (*LINT, TYPES, DOCS)]
        try:
            session.run(*LIGHT, *session.posargs)
        except BaseException:
            beside.shutdown(cancel_futures=True)
            raise
    for each in others:
        each.result()


@nox.session
def lint(session: nox.Session) -> None:
    """Ruff: rules and formatting."""
    session.install(*group("lint"))
    for command in LINT:
        session.run(*command)


@nox.session(name="format")
def format_(session: nox.Session) -> None:
    """Ruff: repair what can be repaired, and format."""
    session.install(*group("lint"))
    session.run("ruff", "check", "--fix", ".")
    session.run("ruff", "format", ".")


@nox.session(venv_backend="none")
def dev(session: nox.Session) -> None:
    """Install every member, editable, and every tool beside nox itself: a place to work in."""
    editable = [part for member in MEMBERS.values() for part in ("-e", str(member.folder))]
    needed = [line for name in ("dev", "docs", "bench") for line in group(name)]
    target = ("uv", "pip", "install", "--python", sys.executable)
    session.run(sys.executable, "-m", *target, *editable, *needed)


@nox.session
def urls(session: nox.Session) -> None:
    """Write the addresses of the project, [tool.kernelweave.urls], into every member."""
    workspace.write_urls()


@nox.session(name="installs", python=False)
def write_installs(session: nox.Session) -> None:
    """Write what to install for what, from the pyproject files, into docs and READMEs."""
    installs.write()


@nox.session
def types(session: nox.Session) -> None:
    """Mypy in strict mode, one -p per import name."""
    install_all(session, "types")
    session.run(*TYPES)


@nox.session
def docs(session: nox.Session) -> None:
    """Sphinx with warnings as errors, into docs/_build/html; the tests of its own directives."""
    install_all(session, "docs", "test")
    session.run("pytest", "-q", "tests/test_docs_combinations.py")
    session.run(*DOCS)


@nox.session
@nox.parametrize("member", [nox.param(name, id=name) for name in ("all", *MEMBERS)])
def tests(session: nox.Session, member: str) -> None:
    """Light tests: of everything, or of one member among its declared dependencies alone."""
    if member == "all":
        install_all(session, "test")
        one_thread_each(session)
        session.run(*LIGHT, *session.posargs)
        return
    chosen = MEMBERS[member]
    siblings, others = workspace.split_local(group("test", chosen.pyproject))
    needed = workspace.closure([chosen, *siblings])
    runners = [line for line in group("test") if line.startswith(RUNNERS)]
    install(session, needed, [*others, *runners])
    assert_installed(session, needed)
    one_thread_each(session)
    session.env["COVERAGE_FILE"] = str(PARTS / member)
    own = os.path.relpath(chosen.folder, ROOT)
    session.run("pytest", "-n", "2", own, "-m", "not slow", *session.posargs)


@nox.session
def changed(session: nox.Session) -> None:
    """Light tests of what differs from main, and of what imports that: the nearest first.

    Another commit may be named: ``nox -R -s changed -- HEAD~1``. Those that every estimator or
    algorithm is put through are left to ``checks``.
    """
    run_tests_of_changes(session, changes.needed_tests, "-n", "2")


@nox.session
def near(session: nox.Session) -> None:
    """Light tests that import what differs from main themselves: about a minute, as you type.

    They say that a line does what it did; ``changed`` says the same of what stands on it. Another
    commit may be named, as in ``nox -R -s near -- HEAD``.
    """
    run_tests_of_changes(session, changes.nearest_tests, "-x")


def run_tests_of_changes(
    session: nox.Session, chosen: Callable[[list[Path]], list[str]], *how: str
) -> None:
    """Run the tests that are chosen for what differs from a commit, main if none is named."""
    files = chosen(changes.changed_files(base=(session.posargs or [""])[0]))
    if not files:
        session.skip("no test reads what changed")
    install_all(session, "test")
    one_thread_each(session)
    session.run("pytest", *how, "-m", "not slow and not faults", *files)


@nox.session
def plant(session: nox.Session) -> None:
    """Plant a fault in each of twenty random modules: do the tests of a change notice?

    In a checkout without changes. Other modules: ``nox -s plant -- --seed 7 --number 5``.
    """
    if session.run("git", "status", "--porcelain", external=True, silent=True):
        session.error("commit or stash first: faults are planted in files, and written back")
    install_all(session, "test")
    one_thread_each(session)
    session.run("python", ".ci/plant.py", *session.posargs)


@nox.session
def slow(session: nox.Session) -> None:
    """The tests that take more than about ten seconds: paper tables, scaling, long proofs."""
    install_all(session, "test")
    one_thread_each(session)
    session.run("pytest", "-n", "2", "-m", "slow", *session.posargs)


@nox.session
def processors(session: nox.Session) -> None:
    """Numerical light tests as without AVX-512: in NumPy, OpenBLAS and what numba compiles.

    The packages, the evidence kernel, the baselines and ridge regression: the pages, the command,
    the papers' tables and the fault matrix run the same solvers and compare no further digits.
    """
    install_all(session, "test")
    one_thread_each(session)
    listing = "import numpy as n; print(*n._core._multiarray_umath.__cpu_dispatch__)"
    groups = str(session.run("python", "-c", listing, silent=True)).split()
    wide = [name for name in groups if name.startswith("AVX512") or name == "X86_V4"]
    session.env["NPY_DISABLE_CPU_FEATURES"] = " ".join(wide)
    session.env["OPENBLAS_CORETYPE"] = session.env["NUMBA_CPU_NAME"] = "haswell"
    session.run("pytest", "-n", "2", "-m", "not slow", *NUMERICAL, *session.posargs)


@nox.session
def coverage(session: nox.Session) -> None:
    """Lines and branches that the light tests reach, per member; fails below what is promised.

    A tracer sees no compiled line: those files are measured in a second, small run without the
    compiler. ``nox -s coverage -- packages/qp-smo`` measures one member by its own tests.
    """
    folders = [each for each in session.posargs if (ROOT / each.partition("::")[0]).exists()]
    measure(session, session.posargs, (), folders)


@nox.session(name="coverage-together")
def coverage_together(session: nox.Session) -> None:
    """What `full` measures after each member alone: the tests of several members, and the sum.

    They are those of ``tests/``, and the files of members that ask what is installed.
    """
    parts = tuple(str(PARTS / name) for name in MEMBERS)
    measure(session, workspace.shared_tests(), parts, [])


def measure(
    session: nox.Session, chosen: Sequence[str], parts: Sequence[str], folders: Sequence[str]
) -> None:
    """Measure the chosen tests, add the parts, and judge the members in or above the folders."""
    install_all(session, "test")
    one_thread_each(session)
    if sys.version_info >= (3, 14):
        session.env["COVERAGE_CORE"] = "sysmon"
    home = Path(session.create_tmp()).resolve()
    session.env["COVERAGE_FILE"] = str(home / "seen")
    session.run("coverage", "erase")
    session.run("pytest", "-n", "2", "-m", "not slow", *MEASURED, *chosen)
    if parts:
        session.run("coverage", "combine", "-q", "--append", "--keep", *parts)
    session.run("coverage", "json", "-q", "-o", str(home / "seen.json"))
    rules = "--rcfile=.ci/coverage-njit.ini"
    plain = {"NUMBA_DISABLE_JIT": "1", "COVERAGE_FILE": str(home / "interpreted")}
    few = ("-q", "-W", "ignore", "-k", "not (200 or 10000 or 1100 or 129 or threads)")
    session.run("coverage", "run", rules, "-m", "pytest", *few, *INTERPRETED, env=plain)
    session.run("coverage", "json", rules, "-q", "-o", str(home / "interpreted.json"), env=plain)
    reports = [str(home / name) for name in ("seen.json", "interpreted.json")]
    session.run("python", ".ci/coverage_by_member.py", *reports, "--of", *folders)


@nox.session
def oldest(session: nox.Session) -> None:
    """Every test about estimators, with the oldest scikit-learn that is supported."""
    install_all(session, "test", extra=OLDEST_SCIKIT_LEARN)
    one_thread_each(session)
    session.run("pytest", "-n", "2", "-m", "not slow", "-k", "estimator", *session.posargs)


@nox.session(name="random-versions")
def random_versions(session: nox.Session) -> None:
    """Light tests with a random version of every dependency, drawn from what is declared.

    The seed is said, to draw the same again: ``nox -s random-versions -- 1234``. The newest
    versions are what plain ``nox`` runs, the oldest scikit-learn is what ``oldest`` runs.
    """
    seed, *others = session.posargs or [str(random.SystemRandom().randrange(10_000))]
    session.log(f"the same versions again: nox -s random-versions -- {seed}")
    session.install("pip")
    python = str(Path(session.bin) / "python")
    resolve = (*pip(python), "--dry-run", *group("test"))
    held = draw.draw(int(seed), python, resolve)
    session.log(", ".join(held))
    install_all(session, "test", extra=tuple(held))
    one_thread_each(session)
    # an older library may use what a newer one calls deprecated
    quiet = ("-W", "ignore::DeprecationWarning")
    session.run("pytest", "-n", "2", "-m", "not slow and not faults", *quiet, *others)


@nox.session(python=INTERPRETERS or None)
def pythons(session: nox.Session) -> None:
    """Light tests with every other Python from 3.11 to 3.14 that the machine has."""
    if not INTERPRETERS:
        session.skip("there is no other Python from 3.11 to 3.14 here")
    install_all(session, "test")
    one_thread_each(session)
    session.run("pytest", "-n", "2", "-m", "not slow and not faults", *session.posargs)


@nox.session
def build(session: nox.Session) -> None:
    """Build every wheel, install each alone in an empty environment, import it, run its README.

    The whole, ``kernelweave``, is installed too, and fits. Every command of the install page is
    resolved, which fails where a sibling is missing.
    """
    session.install("uv")
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    session.run("uv", "build", "--all-packages", "--out-dir", str(dist))
    for member in MEMBERS.values():
        home, python = alone(session, dist, member.distribution, member.project["version"])
        with session.chdir(home):
            smoke = (str(ROOT / ".ci" / "smoke.py"), member.import_name)
            session.run(python, *smoke, str(member.folder / "README.md"), external=True)
    project = workspace.load_toml(ROOT / "pyproject.toml")["project"]
    home, python = alone(session, dist, project["name"], project["version"])
    program = str(home / Path(python).parent.name / "kernelweave")
    session.run(program, "list", external=True)
    session.run(program, "fit", "iris", "--max-iter", "20", "--no-compare", external=True)
    every = f"{project['name']}[{','.join(project['optional-dependencies'])}]"
    session.run(*pip(python), "--dry-run", "--find-links", str(dist), every)
    # `uv run`, as the README has it, resolves the whole workspace, all extras among it
    session.run("uv", "sync", "--no-default-groups", "--dry-run")
    for said, names in installs.WANTED:
        session.log(said)
        session.run(*pip(python), "--dry-run", *installs.command(names).split()[2:])


def pip(python: str) -> tuple[str, ...]:
    """Return the command that installs into an interpreter's environment."""
    return ("uv", "pip", "install", "--quiet", "--python", python)


def alone(session: nox.Session, dist: Path, name: str, version: str) -> tuple[Path, str]:
    """Install one wheel in an empty environment; return its folder and interpreter."""
    home = Path(session.create_tmp()).resolve() / name
    session.run("uv", "venv", "--clear", "--quiet", "-p", sys.executable, str(home))
    python = str(home / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    ours = [*(each.distribution for each in MEMBERS.values()), name]
    # wheels of an earlier build have the same version
    refresh = [f"--refresh-package={each}" for each in ours]
    wheel = str(dist / f"{name.replace('-', '_')}-{version}-py3-none-any.whl")
    session.run(*pip(python), "--find-links", str(dist), *refresh, wheel)
    session.run("uv", "pip", "check", "--quiet", "--python", python)
    return home, python


ASV_CONFIG = ("--config", str(ROOT / "asv_bench" / "asv.conf.json"))


# asv matches names with their parameters
NOT_LARGE = r"^(?!.*\(1500, )"


def asv(session: nox.Session, *arguments: str) -> None:
    """Run asv with its home folder inside the checkout: it writes there."""
    settings(session)
    home = ROOT / ".asv-home"
    home.mkdir(exist_ok=True)
    session.env["HOME"] = str(home)
    session.run("asv", "machine", "--yes", "--machine", "ci", *ASV_CONFIG)
    session.run("asv", "run", "--machine", "ci", "--show-stderr", *ASV_CONFIG, *arguments)


@nox.session
def bench(session: nox.Session) -> None:
    """Measure every benchmark in environments of asv's own and publish them as a site.

    The results of all commits that were measured here lie in asv_bench/.asv/results and stay; the
    site in asv_bench/.asv/html draws them, and its page of regressions lists where a figure became
    worse for good by a twentieth. Part of them: ``nox -s bench -- --quick --bench smo``.
    """
    session.install(*group("bench"), "virtualenv")
    asv(session, *session.posargs)
    session.run("asv", "publish", *ASV_CONFIG)
    session.log("the site: asv_bench/.asv/html/index.html; asv preview serves it")


@nox.session(name="bench-smoke")
def bench_smoke(session: nox.Session) -> None:
    """Execute every benchmark once: do they still run?

    Without its largest sizes, 1500 rows, which take as long as a third of the rest.
    """
    install_all(session, "bench")
    asv(session, "--quick", "--python=same", *(session.posargs or ("--bench", NOT_LARGE)))


@nox.session(name="compare-mklpy")
def compare_mklpy(session: nox.Session) -> None:
    """Train CKA and EasyMKL here and in MKLpy, side by side; brings torch, which is large."""
    install(session, workspace.closure([MEMBERS["baselines"]]), ["MKLpy==0.6", "torch"])
    session.run("python", "asv_bench/compare_mklpy.py")


@nox.session(name="bench-gate")
def bench_gate(session: nox.Session) -> None:
    """Compare the counts of this tree with those of its parent, and growth with what is declared.

    Twelve fits are counted in instructions as well, where valgrind is installed. A tree with
    changes is compared with HEAD, a clean one with the commit before it; another commit may be
    named: ``nox -s bench-gate -- v0.1.0``.
    """
    install_all(session, "bench")
    one_thread_each(session)
    dirty = session.run("git", "status", "--porcelain", external=True, silent=True)
    base = session.posargs[0] if session.posargs else ("HEAD" if dirty else "HEAD~1")
    known = subprocess.run(["git", "cat-file", "-e", f"{base}^{{commit}}"], cwd=ROOT)
    if known.returncode != 0:
        session.error(f"{base} is not in this checkout: fetch more of the history")
    home = Path(session.create_tmp()).resolve()
    session.env["PYTHONPATH"] = str(ROOT / "asv_bench")
    parts = ("counts", "instructions")
    for part in parts:
        session.run("python", "-m", "gate", part, str(home / f"{part}-after.json"))
    tree = home / "parent"
    session.run("git", "worktree", "add", "--force", "--detach", str(tree), base, external=True)
    try:
        parents = workspace.members(tree).values()
        session.install(*(part for member in parents for part in ("-e", str(member.folder))))
        session.env["NUMBA_CACHE_DIR"] = str(home / "numba")
        for part in parts:
            session.run("python", "-m", "gate", part, str(home / f"{part}-before.json"))
    finally:
        session.run("git", "worktree", "remove", "--force", str(tree), external=True)
    install_all(session)
    for part in parts:
        both = (str(home / f"{part}-{when}.json") for when in ("before", "after"))
        session.run("python", "-m", "gate", "compare", *both)
    session.run("python", "-m", "gate", "exponents")


@nox.session(venv_backend="none")
def full(session: nox.Session) -> None:
    """Everything but ``checks``: each member alone, slow tests, every Python, wheels.

    Each light test runs once: in the session of its member, or with those of several members in
    ``coverage-together``, which sums what both have reached. ``processors`` repeats the numerical
    ones, ``oldest`` those about estimators.
    """
    shutil.rmtree(PARTS, ignore_errors=True)
    session.log(f"other Pythons here: {', '.join(INTERPRETERS) or 'none'}")
    for name in ("lint", "types", "docs"):
        session.notify(name)
    for name in MEMBERS:
        session.notify(f"tests({name})", MEASURED)
    pythons = (f"pythons-{version}" for version in INTERPRETERS)
    names = ("coverage-together", "slow", "oldest", *pythons, "processors", "build")
    for name in (*names, "bench-smoke", "bench-gate"):
        session.notify(name)
