"""Sphinx settings; a build needs every member of the workspace and the ``docs`` group."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

import api_pages
from kernelweave.kernels_core import plugins
from sphinx.application import Sphinx

project = "KernelWeave"
author = "The KernelWeave developers"
project_copyright = author
release = version = "0.2.0"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "offline_math",
    "program_help",
    "page_pictures",
    "promises",
    "combinations",
    "unbroken",
]
exclude_patterns = ["_build", "gallery", "auto_examples/**/*.ipynb", "**/README.md"]
templates_path = ["_templates"]
default_role = "py:obj"
nitpicky = False
suppress_warnings = ["config.cache"]

myst_enable_extensions = ["attrs_inline", "dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

html_theme = "furo"
html_title = "KernelWeave"
html_static_path = ["_static"]
html_css_files = ["kernelweave.css"]
html_show_sphinx = False

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_validation_checks: set[str] = set()

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 1,
    # sharp on screens of two pixels a point
    "image_srcset": ["2x"],
    # pages that fetch scripts from elsewhere, and that nobody asks for
    "write_computation_times": False,
    "abort_on_example_error": True,
}

# an example that warns would show its readers a warning; what is said about somebody's broken
# plugin is said here, once, and is no fault of an example
plugins()
warnings.filterwarnings("error", module=r"kernelweave(\.|$)")
api_pages.write(HERE / "api")


def setup(app: Sphinx) -> None:
    """Open the branch of a page in the navigation, and no other.

    The theme asks for all 250 pages on each of them, which was half of the time of a build.
    """

    def close_branches(app: Sphinx, page: str, template: str, context: dict, *rest: object) -> None:
        whole = context["toctree"]
        context["toctree"] = lambda **options: whole(**{**options, "collapse": True})

    app.connect("html-page-context", close_branches, priority=400)
