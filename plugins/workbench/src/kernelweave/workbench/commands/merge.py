"""``kernelweave merge``."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from kernelweave.kernels_core import clock

from ..errors import CommandError
from ..files import check_output
from .living import tell
from .options import Force, Json, MemoryLimit

if TYPE_CHECKING:
    from kernelweave.evidence import SharedSums

    from ..models import Model

_HEADER = "header.json"


def merge_command(
    *files: Path,
    out: Path,
    kernel: Path | None = None,
    memory_limit: MemoryLimit = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Merge models of one kernel, and files of sums, into the model of all their rows.

    One place fits a model and gives it to the others. Each of them sums its own rows with
    `kernelweave fit SITE.csv --kernel MODEL --share sums --out SITE.sums`; no row is in such a
    file. What is merged equals the fit of all rows with that kernel.

    Parameters
    ----------
    files : Path
        Models, whose rows count, and files of sums: two or more, no two of the same rows.
    out : Path
        File to save the model to.
    kernel : Path
        A model whose rows do not count, only its kernel. Default: that of the models given.
    """
    watch = clock.Stopwatch()
    if len(files) + (kernel is not None) < 2:
        raise CommandError(
            "merge needs two files or more: models of one kernel, and files of sums over it"
        )
    check_output(out, *files, kernel, force=force)
    from ..living import merged, require_evidence
    from ..models import Model, load_model, save_model

    parts = [_read(each) for each in files]
    home = None if kernel is None else load_model(kernel)
    for part, path in zip([*parts, home], [*files, kernel], strict=True):
        if path is not None and isinstance(part, Model):
            require_evidence(part, path, "merge")
    model = merged(parts, home)
    save_model(model, out, force=True)
    more = {"file": str(out), "parts": list(map(str, files)), "seconds": watch.seconds}
    rows = {"rows": f"{model.header.n_samples} of {len(files)} files"}
    tell(model, None, more, rows, json=json)


def _read(path: Path) -> Model | SharedSums:
    """Return the model or the sums of a file."""
    from kernelweave.evidence import SharedSums

    from ..models import load_model

    try:
        with zipfile.ZipFile(path) as archive:
            is_model = _HEADER in archive.namelist()
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror or error}") from error
    except zipfile.BadZipFile:
        # of a model that was cut short it says so
        is_model = True
    return load_model(path) if is_model else SharedSums.load(path)
