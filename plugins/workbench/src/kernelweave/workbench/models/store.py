"""The model file: a zip archive of a readable header and an estimator stored by skops.

skops stores an estimator as JSON and plain arrays and rebuilds it from types that the reader
trusts, so a file from a stranger cannot run code. It was chosen over a format of our own (arrays
and parameters) because it holds every estimator that a plugin's algorithm may need, pipelines
included, and over pickle because pickle runs what it is given. Its list of trusted types is ours,
see `trusted`. Around it stand what it has not: a format number, the columns by name, and a
checksum, so that a file that was cut short or altered is refused in one sentence.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zipfile
import zlib
from pathlib import Path

from ..errors import CommandError, one_line
from ..files import check_output, replacing
from .canonical import canonical
from .header import Header
from .model import Model
from .trusted import trusted_types

_HEADER, _SUM, _BODY = "header.json", "checksum.json", "estimator.skops"
# The first date that a zip archive can hold, always the same: a model has the same bytes whenever
# it is stored.
_EPOCH = (1980, 1, 1, 0, 0, 0)


def save_model(model: Model, path: str | Path, *, force: bool = False) -> None:
    """Write a model; the file appears whole or not at all.

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
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content)


def load_model(path: str | Path) -> Model:
    """Read a model; nothing in the file is executed.

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
        not trusted, or is no model at all.
    """
    header, body = _read(Path(path))
    import skops.io

    types = _check_types(body, f"{path} is not loaded")
    try:
        estimator = skops.io.loads(body, trusted=sorted(types))
    except Exception as error:
        raise CommandError(
            f"{path} cannot be rebuilt here ({one_line(error)}): it was written with "
            f"{', '.join(f'{name} {version}' for name, version in header.versions.items())}; fit "
            f"it again or install those"
        ) from error
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
            members = archive.infolist()
            if {member.filename for member in members} != {_HEADER, _SUM, _BODY}:
                raise CommandError(foreign)
            # stored, not compressed: a small file cannot unpack to a large one
            if any(member.compress_type != zipfile.ZIP_STORED for member in members):
                raise CommandError(damaged)
            header, digests, body = (archive.read(name) for name in (_HEADER, _SUM, _BODY))
        if json.loads(digests) != {_HEADER: _digest(header), _BODY: _digest(body)}:
            raise CommandError(damaged)
        return Header.from_json(header.decode()), body
    except zipfile.BadZipFile as error:
        raise CommandError(damaged if content[:2] == b"PK" else foreign) from error
    except (
        # RuntimeError: a member that says it is encrypted, or nested without end
        *(ValueError, KeyError, TypeError, RuntimeError, EOFError),
        *(zlib.error, struct.error, OverflowError),
    ) as error:
        raise CommandError(damaged) from error


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


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
