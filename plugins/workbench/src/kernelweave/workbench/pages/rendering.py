"""Templates to one HTML file that needs nothing beside it."""

from __future__ import annotations

from functools import cache

import jinja2

_HERE = "kernelweave.workbench.pages"


@cache
def _environment(package: str) -> jinja2.Environment:
    loaders = [jinja2.PackageLoader(each) for each in dict.fromkeys((package, _HERE))]
    return jinja2.Environment(
        loader=jinja2.ChoiceLoader(loaders),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


def render(template: str, *, package: str = _HERE, **values: object) -> str:
    """Return the page of a template.

    Parameters
    ----------
    template : str
        The name of a file in ``templates``.
    package : str
        Whose ``templates`` are looked into first, before those of this room.
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
    return _environment(package).get_template(template).render(**values)
