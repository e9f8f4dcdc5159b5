"""Which types a model file may contain. Everything else is refused before it is imported."""

from __future__ import annotations

from collections.abc import Iterable

from kernelweave.kernels_core import components

_CORE = "kernelweave.kernels_core"
_EVIDENCE = "kernelweave.evidence"
_COLUMNS = f"{_EVIDENCE}.columns"
_OWN = {
    f"{_CORE}.estimators.generic": ("KernelLearningClassifier", "KernelLearningRegressor"),
    f"{_CORE}.estimators.parts": ("PartsPredictor",),
    f"{_CORE}.fit": ("ExpansionPredictor", "GramPredictor", "Predictor"),
    f"{_CORE}.result": ("Certificate", "History", "Result", "Status"),
    f"{_CORE}.kernels.standard": ("Laplacian", "Linear", "Polynomial", "RBF", "Sigmoid"),
    f"{_CORE}.families.learned": ("GeneralizedPolynomial", "Tessellated"),
    f"{_CORE}.kernels.base": ("Columns", "Product", "Scaled", "Sum"),
    f"{_CORE}.kernels.compose": ("Combination", "UnitDiagonal"),
    f"{_CORE}.kernels.fitted": ("Centered", "Clipped"),
    f"{_CORE}.kernels.fitted_dictionary": ("FittedDictionary", "FittedFamily"),
    f"{_CORE}.kernels.dictionary": ("KernelDictionary",),
    f"{_CORE}.kernels.scaled": ("ScaledFeatures", "Scaling"),
    f"{_CORE}.kernels.by_name": ("ByName",),
    f"{_CORE}.estimators.tables": ("TableReader",),
    f"{_CORE}.formula.problem": ("Problem",),
    f"{_CORE}.formula.learner": ("Solution",),
    "kernelweave.spectahedron.estimators": (
        "TessellatedKernelClassifier",
        "TessellatedKernelRegressor",
    ),
    "kernelweave.spectahedron.model_selection": (
        "TessellatedKernelClassifierCV",
        "TessellatedKernelRegressorCV",
    ),
    "kernelweave.spectahedron.settings": (
        "AcceleratedPrimalDual",
        "FrankWolfe",
        "Hybrid",
        "InteriorPoint",
        "LowRank",
        "Spectahedron",
    ),
    "kernelweave.spectahedron.start": ("Start",),
    "kernelweave.qp_smo.learners": ("SVC", "SVR"),
    "kernelweave.qp_smo.ridge": ("Ridge",),
    "kernelweave.qp_smo.squared_hinge": ("SquaredHingeSVC",),
    "kernelweave.qp_smo.solution": ("DualSolution",),
    "kernelweave.mkl_sparse.estimators": ("SparseMKLClassifier", "SparseMKLRegressor"),
    "kernelweave.vv_rkhs.classifier": ("MatrixValuedKernelClassifier",),
    "kernelweave.vv_rkhs.regressor": ("MatrixValuedKernelRegressor",),
    "kernelweave.vv_rkhs.selection": ("KernelChoice",),
    "kernelweave.vv_rkhs.parameters": ("SeparableKernel", "VectorSolution"),
    "kernelweave.mkl_sparse.settings": ("BestResponse",),
    "kernelweave.ridge_mkl.settings": (
        "Automatic",
        "GeneralizedMKL",
        "GeneralizedMKLForLabels",
        "IIA",
        "LinearPGD",
        "MajorizeMinimize",
        "ProjectedNewton",
        "QuadraticPGD",
        "RegularizedIIA",
        "RegularizedLinearPGD",
        "RegularizedQuadraticPGD",
        "SpectralProjectedGradient",
        "TrustRegion",
    ),
    "kernelweave.relaxations.settings": ("BranchAndBound", "SemidefiniteProgram"),
    "kernelweave.vv_rkhs.settings": ("BlockDescent", "OutputKernelLearning", "SpectralGradient"),
    "kernelweave.baselines.estimators": (
        "AverageMKLClassifier",
        "CKAClassifier",
        "EasyMKLClassifier",
        "PWMKClassifier",
        "SimpleMKLClassifier",
        "SimpleMKLRegressor",
    ),
    "kernelweave.ridge_mkl.estimators": (
        "GeneralizedMKLClassifier",
        "RidgeMKLClassifier",
        "RidgeMKLClassifierCV",
        "RidgeMKLRegressor",
        "RidgeMKLRegressorCV",
    ),
    "kernelweave.ridge_mkl.families": ("HadamardPower",),
    f"{_EVIDENCE}.base": ("EvidenceCertificate",),
    f"{_EVIDENCE}.calibration": ("Calibration",),
    f"{_EVIDENCE}.estimators": ("EvidenceKernelClassifier", "EvidenceKernelRegressor"),
    f"{_EVIDENCE}.exact": ("ExactPredictor",),
    f"{_EVIDENCE}.folds": ("Fold",),
    f"{_EVIDENCE}.kernel": ("EvidenceKernel",),
    f"{_EVIDENCE}.large.features": ("Landmarks",),
    f"{_EVIDENCE}.large.landmarks": ("LandmarkPredictor",),
    f"{_EVIDENCE}.large.posterior": ("PosteriorOfRows", "PosteriorOfSums"),
    f"{_EVIDENCE}.last_step": ("ClassPredictor",),
    f"{_EVIDENCE}.mixture": ("Mixture",),
    f"{_EVIDENCE}.mkl.estimators": ("EvidenceMKLClassifier", "EvidenceMKLRegressor"),
    f"{_EVIDENCE}.mkl.posterior": ("KernelPosterior",),
    f"{_EVIDENCE}.new_rows": ("Expectation", "Kind"),
    f"{_EVIDENCE}.path": ("Fit",),
    f"{_EVIDENCE}.rows": ("Rows", "Standardised"),
    f"{_EVIDENCE}.softmax": ("Softmax",),
    f"{_EVIDENCE}.spread": ("Spread",),
    f"{_EVIDENCE}.terms": ("Scales",),
    f"{_EVIDENCE}.views": ("Points", "Views"),
    f"{_EVIDENCE}.warp": ("Warp",),
    f"{_COLUMNS}.encoded": ("Coding", "Dimension"),
    f"{_COLUMNS}.encoder": ("ColumnEncoder",),
    f"{_COLUMNS}.levels": ("Levels",),
    f"{_COLUMNS}.numbers": ("NumberBlock",),
    f"{_COLUMNS}.training": ("LevelColumn", "NumberColumn"),
    "kernelweave.tables.dates": ("DateParts",),
    "kernelweave.tables.plans": ("ColumnPlan",),
    "kernelweave.tables.written": ("WrittenNumbers",),
    "kernelweave.workbench.matrix": ("TableMatrix",),
    "kernelweave.granger.effects": ("Effects",),
    "kernelweave.workbench.views": ("EncodedFrom",),
    "kernelweave.granger.graph": ("GrangerGraph",),
    "kernelweave.granger.roles": ("Roles",),
    "kernelweave.granger.series": ("Groups",),
    "kernelweave.granger.target": ("TargetFit",),
}
OWN_TYPES = frozenset(f"{module}.{name}" for module, names in _OWN.items() for name in names)
# what estimators hold of NumPy, built from a word and nothing else
_HARMLESS = frozenset({"numpy.dtype"})
_KINDS = ("kernels", "families", "learners", "constraints")


def trusted_types(wanted: Iterable[str]) -> set[str]:
    """Return those of the ``wanted`` types that a model file may contain.

    They are our own, listed one by one, and the classes that installed plugins register as
    kernels, families, learners or constraints: somebody installed those on purpose. The types
    that skops itself trusts (NumPy's arrays, scikit-learn's estimators) are not among them.

    `wanted`: qualified names from a file. A subset of them.
    """
    names = set(wanted)
    known = names & (OWN_TYPES | _HARMLESS)
    return known | (names - known) & _registered(names - known)


def _registered(names: set[str]) -> set[str]:
    """Return the qualified names of registered classes, importing only look-alikes of ``names``."""
    endings = {name.rpartition(".")[2] for name in names}
    found = set()
    for kind in _KINDS if names else ():
        for spec in components(kind).values():
            if spec.target.partition(":")[2] in endings:
                loaded = spec.load()
                found.add(f"{loaded.__module__}.{loaded.__qualname__}")
    return found
