"""Templates to one HTML file that needs nothing beside it."""

from __future__ import annotations

from functools import cache
from typing import Any

import jinja2


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("kernelweave.workbench.pages"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


def render(template: str, **values: Any) -> str:
    """Return the page of a template.

    Parameters
    ----------
    template : str
        The name of a file in ``templates``.
    **values
        What it names; text is escaped.

    Returns
    -------
    str
        HTML.

    Raises
    ------
    jinja2.UndefinedError
        If the template needs a value that is not there.
    """
    return _environment().get_template(template).render(**values)
