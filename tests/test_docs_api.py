"""The pages of the API reference can be written: every exported value has its sentence."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from workspace import ROOT


def test_every_page_of_the_reference_is_written(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("api_pages", ROOT / "docs/_ext/api_pages.py")
    assert spec is not None
    assert spec.loader is not None
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    pages.write(tmp_path)
    written = {path.stem for path in tmp_path.glob("*.rst")}
    assert {name.removeprefix("kernelweave.") for name in pages.PACKAGES} <= written
    assert "PAPER_TEN" in (tmp_path / "kernels_core.rst").read_text(encoding="utf-8")
