"""Parameters as data: each is declared once, with its default, its meaning and what it must be.

From the declarations come the constructor, the checks before any work, and the sections
"Parameters" and "Attributes" of the docstring.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from textwrap import fill, indent
from typing import TYPE_CHECKING, Any, Literal, dataclass_transform

from .checks import Rule

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["Value", "parameter"]

_SECTION = re.compile(r"^ *[A-Z][A-Za-z ]+\n *-{3,} *$", re.MULTILINE)
# Columns of the docstrings that are made: 100 as in the source, less an indent.
_WIDTH = 96


@dataclasses.dataclass(frozen=True)
class _Said:
    """What the declaration of a field says beyond its default."""

    text: str
    kind: str | None
    rule: Rule | None = None


def parameter(
    text: str,
    *,
    default: object,
    kind: str | None = None,
    rule: Rule | None = None,
    kw_only: Any = dataclasses.MISSING,
) -> Any:
    """Declare a parameter of a `Value` or of an estimator.

    Parameters
    ----------
    text : str
        What it means, in one sentence or a few.
    default : object
        Its default, hashable, as all instances share it.
    kind : str, optional
        Its type as documentation says it; by default the choices of the rule, or the annotation.
    rule : Rule, optional
        What it must be; where the default is ``None``, so may be the value.
    kw_only : bool, optional
        Whether it is given by name only; as the class says by default.

    Returns
    -------
    dataclasses.Field
        What the class body stores.

    Raises
    ------
    ValueError
        When the class is made, if the default is not hashable, such as a list.

    Examples
    --------
    >>> from kernelweave.kernels_core.checks import POSITIVE
    >>> from kernelweave.kernels_core.parameters import Value, parameter
    >>> class Loss(Value):
    ...     C: float = parameter("Penalty.", default=1.0, rule=POSITIVE)
    >>> Loss(C=-1).validate()
    Traceback (most recent call last):
    ValueError: C must be a finite number > 0, got -1
    """
    metadata = {"said": _Said(text, kind, rule)}
    return dataclasses.field(default=default, metadata=metadata, kw_only=kw_only)


def parameter_of(owner: type, name: str) -> Any:
    """Declare a parameter that a part of the problem declares too, with its words and default.

    `owner`: a dataclass; `name`: its parameter. Returns: what the class body stores.
    """
    old = owner.__dataclass_fields__[name]  # type: ignore[attr-defined]
    return dataclasses.field(default=old.default, metadata=old.metadata)


def fitted(kind: str, text: str, *, init: Literal[False] = False) -> Any:
    """Declare an attribute that only a fitted estimator has.

    `kind`: its type as documentation says it; `text`: what it means; `init`: it is no parameter.
    Returns: what the class body stores.
    """
    return dataclasses.field(init=init, metadata={"said": _Said(text, kind)})


def inherit_meaning(cls: type) -> None:
    """Let a new default, ``tol: float = 1e-6``, keep what a base says of the parameter.

    `cls`: not a dataclass yet; its bases are.
    """
    known = {field.name: field for field in _fields_of_bases(cls)}
    for name, annotation in inspect.get_annotations(cls).items():
        value = cls.__dict__.get(name, dataclasses.MISSING)
        old = known.get(name)
        if old is None or value is dataclasses.MISSING or "ClassVar" in str(annotation):
            continue
        if not isinstance(value, dataclasses.Field):
            new = dataclasses.field(default=value, metadata=old.metadata, kw_only=bool(old.kw_only))
            setattr(cls, name, new)


def check_parameters(values: DataclassInstance) -> None:
    """Raise ValueError on the first field, declared by `parameter`, that breaks its rule."""
    for field in dataclasses.fields(values):
        said = field.metadata.get("said")
        if said is None or said.rule is None:
            continue
        rule = said.rule.or_none() if field.default is None else said.rule
        rule.check(field.name, getattr(values, field.name))


@dataclass_transform(frozen_default=True, field_specifiers=(parameter,))
class Value:
    """Base of frozen dataclasses that declare their parameters: sets, learners, settings.

    A subclass is a dataclass without a decorator: fields declared by `parameter` are documented
    from their declaration, and checked by ``validate``, not by the constructor.
    ``class Ball(Value, eq=False)`` compares by identity, which fields that are arrays need.

    Examples
    --------
    >>> from kernelweave.kernels_core.checks import POSITIVE
    >>> from kernelweave.kernels_core.parameters import Value, parameter
    >>> class Ball(Value):
    ...     '''Weights of bounded length.'''
    ...     radius: float = parameter("The length.", default=1.0, rule=POSITIVE)
    >>> Ball(), Ball(radius=2.0), Ball(2.0) == Ball(radius=2.0)
    (Ball(), Ball(radius=2.0), True)
    >>> "radius : float, default=1.0" in Ball.__doc__
    True
    """

    def __init_subclass__(cls, *, eq: bool = True, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        inherit_meaning(cls)
        dataclasses.dataclass(frozen=True, eq=eq, repr=False)(cls)
        document(cls)

    def __repr__(self) -> str:
        # what is as by default goes without saying, as in scikit-learn
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        said = ((each.name, getattr(self, each.name), each.default) for each in fields)
        changed = (
            f"{name}={value!r}" for name, value, default in said if not _same(value, default)
        )
        return f"{type(self).__name__}({', '.join(changed)})"

    validate = check_parameters


def ordered_signature(cls: type) -> inspect.Signature:
    """Return the constructor's signature with a class's own parameters before those of its bases.

    `cls`: a dataclass. The same parameters as the constructor's, ``self`` among them, without
    annotations.
    """
    given = inspect.signature(cls.__init__).parameters  # type: ignore[misc]
    order = ["self", *(field.name for field in _ordered(cls) if field.init)]
    places = sorted(given.values(), key=lambda each: (each.kind, order.index(each.name)))
    return inspect.Signature([each.replace(annotation=each.empty) for each in places])


def document(cls: type) -> None:
    """Write the sections "Parameters" and "Attributes" into a dataclass's docstring.

    `cls`: a dataclass with a docstring of its own; a class without one is left alone.
    """
    own = cls.__dict__.get("__doc__")
    if own is None or own.startswith(f"{cls.__name__}("):
        return
    text = inspect.cleandoc(own)
    fields = list(_ordered(cls))
    parts = {
        "Parameters": [_entry(field) for field in fields if field.init],
        "Attributes": [_entry(field) for field in fields if not field.init],
    }
    made = [
        f"{title}\n{'-' * len(title)}\n" + "\n".join(entries)
        for title, entries in parts.items()
        if entries and f"\n{title}\n---" not in text
    ]
    first = _SECTION.search(text)
    head, tail = (text, "") if first is None else (text[: first.start()], text[first.start() :])
    cls.__doc__ = "\n\n".join(part for part in (head.rstrip(), *made, tail) if part) + "\n"


def _same(value: object, default: object) -> bool:
    """Whether a value is the default; arrays are not."""
    return value is default or (isinstance(value, str | int | float) and value == default)


def _entry(field: dataclasses.Field[object]) -> str:
    """Return the lines of numpydoc for one field; one without words has its type only."""
    said: _Said = field.metadata.get("said", _Said("", None))
    kind = said.kind
    if kind is None and said.rule is not None and said.rule.choices:
        kind = "{" + ", ".join(f'"{each}"' for each in said.rule.choices) + "}"
    if kind is None:
        # a class without postponed annotations has types where others have their names
        named = field.type if isinstance(field.type, str) else getattr(field.type, "__name__", "")
        kind = (named or str(field.type)).removesuffix(" | None")
    if field.init and field.default is None and not kind.startswith("None"):
        kind += ", optional"
    elif field.init and field.default is not None:
        default = field.default
        kind += f', default="{default}"' if isinstance(default, str) else f", default={default!r}"
    return f"{field.name} : {kind}\n" + indent(fill(said.text, _WIDTH - 4), "    ")


def _fields_of_bases(cls: type) -> Iterator[dataclasses.Field[object]]:
    for base in reversed(cls.__mro__[1:]):
        yield from getattr(base, "__dataclass_fields__", {}).values()


def _ordered(cls: type) -> Iterator[dataclasses.Field[object]]:
    """Yield the fields: those by position first, then the class's own, then those of its bases."""
    owner: dict[str, int] = {}
    for place, base in enumerate(cls.__mro__):
        owner.update(dict.fromkeys(inspect.get_annotations(base), place))
    fields = {field.name: field for field in dataclasses.fields(cls)}
    yield from (fields.pop(name) for name in list(fields) if not fields[name].kw_only)
    # a base that only changes a default leaves the parameter where it was declared first
    for place in range(len(cls.__mro__)):
        yield from (field for name, field in fields.items() if owner[name] == place)
