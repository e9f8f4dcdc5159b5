"""The model file: a zip archive of a readable header and an estimator stored by skops.

skops stores an estimator as JSON and plain arrays and rebuilds it from types that the reader
trusts, so a file from a stranger cannot run code. It was chosen over a format of our own (arrays
and parameters) because it holds every estimator that a plugin's algorithm may need, pipelines
included, and over pickle because pickle runs what it is given. Its list of trusted types is ours,
see `trusted_types`. Around it stand what it has not: a format number, the columns by name, and a
checksum, so that a file that was cut short or altered is refused in one sentence. A checksum can
be forged too: before anything is unpacked its size is checked, and before a model is returned its
arrays are finite and it has predicted a row.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import struct
import warnings
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import is_dataclass
from enum import Enum
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import components
from kernelweave.tables.errors import one_line

from .. import __version__
from ..errors import CommandError
from ..files import check_output, replacing
from ..machines import encoder_of
from .header import Header
from .model import Model
from .schema import EPOCH, SCHEMA, canonical, check_references, files_of

# packages whose values a model holds
_PACKAGES = tuple(
    f"kernelweave.{name}."
    for name in (
        *("kernels_core", "qp_smo", "spectahedron", "mkl_sparse", "relaxations", "vv_rkhs"),
        *("baselines", "evidence", "granger", "ridge_mkl", "tables", "workbench"),
    )
)
# of the others of these packages that models hold
_PLAIN = frozenset({"ColumnEncoder", "KernelDictionary", "TableReader"})
# what estimators hold of others, built from words and arrays and nothing else
_HARMLESS = frozenset({"numpy.dtype"})
_KINDS = ("kernels", "families", "learners", "constraints")
_HEADER, _SUM, _BODY = "header.json", "checksum.json", "estimator.skops"
_OWN = _HEADER.encode()
# attributes with NaN for rows that no fold held out, where time was up
_MAY_LACK = frozenset({"held_out", "held_out_prediction_"})
# ends of what a target can be, and quantiles of residuals known by half, which may be infinite
_ENDS = frozenset({"low", "high", "ends", "quantiles"})
# of an archive; RuntimeError: a member that says it is encrypted, or nested without end
_UNREADABLE = (
    *(ValueError, KeyError, TypeError, RuntimeError, EOFError),
    *(zlib.error, struct.error, OverflowError),
)

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


def save_model(model: Model, path: str | Path, *, force: bool = False) -> None:
    """Save a model; the file is written whole or not at all.

    Parameters
    ----------
    model : Model
        Fitted.
    path : str or Path
        The file.
    force : bool, default=False
        Whether an existing file may be replaced.

    Raises
    ------
    CommandError
        If the file exists and ``force`` is false, if it cannot be written, or if the estimator
        holds something that cannot be stored or would not be loaded again.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from kernelweave.spectahedron import TessellatedKernelClassifier
    >>> from kernelweave.tables import read_table, read_target
    >>> from kernelweave.workbench import Model, load_model, save_model
    >>> table = read_table("iris")
    >>> target = read_target(table, "target")
    >>> X = table.frame.drop(columns="target")
    >>> estimator = TessellatedKernelClassifier().fit(X, target.values)
    >>> model = Model.of(estimator, columns=list(X.columns), target=target, table=table)
    >>> with TemporaryDirectory() as folder:
    ...     save_model(model, f"{folder}/iris.kw")
    ...     again = load_model(f"{folder}/iris.kw")
    >>> again.predict(X.iloc[:2]).tolist()
    ['setosa', 'setosa']
    """
    import skops.io

    goal = Path(path)
    check_output(goal, force=force)
    try:
        body = canonical(skops.io.dumps(model.estimator))
    except Exception as error:
        raise CommandError(f"the model cannot be stored: {one_line(error)}") from error
    _check_types(body, "the model would not be loaded again")
    header = model.header.to_json().encode()
    digests = json.dumps({_HEADER: _digest(header), _BODY: _digest(body)}).encode()
    with replacing(goal) as stream, zipfile.ZipFile(stream, "w") as archive:
        for name, content in ((_HEADER, header), (_SUM, digests), (_BODY, body)):
            archive.writestr(zipfile.ZipInfo(name, EPOCH), content)


def load_model(path: str | Path) -> Model:
    """Load a model; no code in the file is executed.

    Parameters
    ----------
    path : str or Path
        A file that `save_model` wrote.

    Returns
    -------
    Model
        Ready to predict.

    Raises
    ------
    CommandError
        If the file is missing, cut short, altered, from a newer program, holds types that are
        not trusted or numbers that cannot predict, or is no model at all.

    See Also
    --------
    save_model : Its example loads the model again.
    """
    header, body = _read(Path(path))
    _check_members(body, Path(path))
    import skops.io

    try:
        types = _check_types(body, f"{path} is not loaded")
    except CommandError as error:
        raise _of_other_version(path, header) or error from None
    try:
        estimator = skops.io.loads(body, trusted=sorted(types))
    except Exception as error:
        raise CommandError(
            f"{path} cannot be rebuilt here ({one_line(error)}): it was written with "
            f"{', '.join(f'{name} {version}' for name, version in header.versions.items())}; fit "
            f"it again or install those"
        ) from error
    _check_prediction(estimator, header, Path(path))
    return Model(estimator, header)


def _read(path: Path) -> tuple[Header, bytes]:
    """Return header and estimator of a sound file."""
    foreign = f"{path} is not a model written by `kernelweave fit`"
    damaged = f"{path} is damaged or was cut short: copy it again or fit it again"
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CommandError(f"cannot read the model {path}: {error.strerror or error}") from error
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if set(archive.namelist()) != {_HEADER, _SUM, _BODY}:
                # of a model that was cut short, the archive within it may be found
                raise CommandError(damaged if content[30:].startswith(_OWN) else foreign)
            if not _is_stored(archive, len(content)):
                raise CommandError(damaged)
            header, digests, body = (archive.read(name) for name in (_HEADER, _SUM, _BODY))
        if json.loads(digests) != {_HEADER: _digest(header), _BODY: _digest(body)}:
            raise CommandError(damaged)
        return Header.from_json(header.decode()), body
    except zipfile.BadZipFile as error:
        raise CommandError(damaged if content[:2] == b"PK" else foreign) from error
    except _UNREADABLE as error:
        raise CommandError(damaged) from error


def _is_stored(archive: zipfile.ZipFile, size: int) -> bool:
    """Whether a small archive cannot unpack to a large one: nothing compressed, nothing twice."""
    members = archive.infolist()
    stored = all(member.compress_type == zipfile.ZIP_STORED for member in members)
    return stored and sum(member.file_size for member in members) <= size


def _check_members(body: bytes, path: Path) -> None:
    """Raise where the inner archive would unpack to more, or an array holds no numbers."""
    damaged = f"{path} is damaged: its estimator"
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            if not _is_stored(archive, len(body)):
                raise CommandError(
                    f"{damaged} is compressed; `kernelweave fit` does not write that"
                )
            schema = json.loads(archive.read(SCHEMA))
            check_references(schema)
            for file, names in files_of(schema).items():
                array, kept = _array(archive.read(file)), names - _MAY_LACK
                if not kept or array.dtype.kind not in "fc":
                    continue
                if not (~np.isnan(array) if kept <= _ENDS else np.isfinite(array)).all():
                    raise CommandError(f"{damaged} holds NaN or infinity in {min(kept)!r}")
    except (*_UNREADABLE, zipfile.BadZipFile) as error:
        raise CommandError(f"{damaged} cannot be read ({one_line(error)})") from error


def _array(content: bytes) -> npt.NDArray[Any]:
    """Return an array whose header says as many numbers as there are."""
    stream = io.BytesIO(content)
    read = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}
    shape, _, dtype = read[np.lib.format.read_magic(stream)[0]](stream)
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != len(content) - stream.tell():
        raise ValueError(f"an array says it is {shape} of {dtype}, which its size contradicts")
    return np.frombuffer(content, dtype, offset=stream.tell())


def _check_prediction(estimator: BaseEstimator, header: Header, path: Path) -> None:
    """Raise where a model cannot predict a row with every value missing, or predicts no number."""
    import pandas as pd

    X: Any = pd.DataFrame({name: [np.nan] for name in header.columns})
    if encoder_of(estimator) is None:
        X = np.zeros((1, getattr(estimator, "n_features_in_", len(header.columns))))
    methods = ("predict_proba", "decision_function", "predict")
    values = next((name for name in methods if hasattr(estimator, name)), None)
    if values is None:
        return
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            answer = np.asarray(getattr(estimator, values)(X))
        except Exception as error:
            damaged = CommandError(f"{path} is damaged: it cannot predict ({one_line(error)})")
            raise _of_other_version(path, header) or damaged from error
    if len(answer) != 1 or not (answer.dtype.kind not in "fc" or np.isfinite(answer).all()):
        raise CommandError(f"{path} is damaged: its predictions are not finite numbers")


def _of_other_version(path: str | Path, header: Header) -> CommandError | None:
    """Return what to say of a file that another version wrote; ``None`` of this one's."""
    saved = header.versions.get("kernelweave-workbench", "unknown")
    if saved == __version__:
        return None
    return CommandError(
        f"{path} was saved by KernelWeave {saved}, and this is {__version__}, which reads no such "
        "file: fit it again, or use it with the version that saved it"
    )


def _check_types(body: bytes, consequence: str) -> set[str]:
    """Return the types in a stored estimator; raise if one is not trusted."""
    import skops.io

    try:
        wanted = set(skops.io.get_untrusted_types(data=body))
    except Exception as error:
        raise CommandError(f"{consequence}: {one_line(error)}") from error
    refused = sorted(wanted - trusted_types(wanted))
    if refused:
        raise CommandError(
            f"{consequence}: it holds types that are not trusted ({', '.join(refused[:4])})"
        )
    return wanted


def trusted_types(wanted: Iterable[str]) -> set[str]:
    """Return those of the ``wanted`` types, by qualified name, that a model file may contain.

    They are the values, kernels and estimators of our own packages, and the classes that installed
    plugins register as kernels, families, learners or constraints: somebody installed those on
    purpose. Functions are not among them, nor the types that skops itself trusts (NumPy's arrays,
    scikit-learn's estimators).
    """
    names = set(wanted)
    trusted = {name for name in names if name in _HARMLESS or _is_own_value(name)}
    return trusted | (names - trusted) & _registered(names - trusted)


def _is_own_value(name: str) -> bool:
    """Whether a name is that of a value of ours, in the module that defines it."""
    from kernelweave.kernels_core.kernels.base import Kernel
    from sklearn.base import BaseEstimator

    module, _, last = name.rpartition(".")
    if not name.startswith(_PACKAGES) or not _is_there(module):
        return False
    member = getattr(import_module(module), last, None)
    if not isinstance(member, type) or (member.__module__, member.__name__) != (module, last):
        return False
    kinds = (tuple, Enum, Kernel, BaseEstimator)
    return is_dataclass(member) or issubclass(member, kinds) or last in _PLAIN


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _registered(names: set[str]) -> set[str]:
    """Return the qualified names of registered classes, importing only look-alikes of ``names``."""
    endings = {name.rpartition(".")[2] for name in names}
    qualified = set()
    for kind in _KINDS if names else ():
        for spec in components(kind).values():
            if spec.target.partition(":")[2] in endings:
                loaded = spec.load()
                qualified.add(f"{loaded.__module__}.{loaded.__qualname__}")
    return qualified


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
