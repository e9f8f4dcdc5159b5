"""Parameters as data: each is declared once, with its default, its meaning and its rule.

The constructor, the checks before a fit, and the sections "Parameters" and "Attributes" of the
docstring are made from the declarations.
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
# Width of the generated docstrings: 100 columns as in the source, less an indent of 4.
_WIDTH = 96


@dataclasses.dataclass(frozen=True)
class _Declaration:
    """What a field declares besides its default: its meaning, its type and its rule."""

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
        Its type for the documentation; by default the choices of the rule, or the annotation.
    rule : Rule, optional
        What its value must satisfy; ``None`` is allowed too if it is the default.
    kw_only : bool, optional
        Whether it is keyword-only; by default as the class is.

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
    metadata = {"declared": _Declaration(text, kind, rule)}
    return dataclasses.field(default=default, metadata=metadata, kw_only=kw_only)


def parameter_of(owner: type, name: str) -> Any:
    """Declare a parameter with the meaning, rule and default that another class gives it.

    `owner`: that class, a dataclass; `name`: the parameter. Returns: what the class body stores.
    """
    old = owner.__dataclass_fields__[name]  # type: ignore[attr-defined]
    return dataclasses.field(default=old.default, metadata=old.metadata)


def fitted(kind: str, text: str, *, init: Literal[False] = False) -> Any:
    """Declare an attribute that only a fitted estimator has.

    `kind`: its type for the documentation; `text`: what it means; `init`: False, since it is not a
    parameter of the constructor.
    Returns: what the class body stores.
    """
    return dataclasses.field(init=init, metadata={"declared": _Declaration(text, kind)})


def inherit_meaning(cls: type) -> None:
    """Keep a base's declaration of a parameter that gets a new default, ``tol: float = 1e-6``.

    `cls`: a class that is not a dataclass yet, with bases that are.
    """
    inherited = {
        field.name: field
        for base in reversed(cls.__mro__[1:])
        for field in getattr(base, "__dataclass_fields__", {}).values()
    }
    for name, annotation in inspect.get_annotations(cls).items():
        value = cls.__dict__.get(name, dataclasses.MISSING)
        old = inherited.get(name)
        if old is None or value is dataclasses.MISSING or "ClassVar" in str(annotation):
            continue
        if not isinstance(value, dataclasses.Field):
            new = dataclasses.field(default=value, metadata=old.metadata, kw_only=bool(old.kw_only))
            setattr(cls, name, new)


def check_parameters(values: DataclassInstance) -> None:
    """Raise ValueError on the first field, declared by `parameter`, that breaks its rule."""
    for field in dataclasses.fields(values):
        declared = field.metadata.get("declared")
        if declared is None or declared.rule is None:
            continue
        rule = declared.rule.or_none() if field.default is None else declared.rule
        rule.check(field.name, getattr(values, field.name))


@dataclass_transform(frozen_default=True, field_specifiers=(parameter,))
class Value:
    """Base of frozen dataclasses that declare their parameters: sets, learners, settings.

    A subclass becomes a dataclass without a decorator. Fields declared by `parameter` are
    documented from their declaration and checked by ``validate``, not by the constructor.
    ``class Ball(Value, eq=False)`` compares by identity, as it must if a field is an array.

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
        # only parameters that differ from their default, as in scikit-learn
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        values = ((each.name, getattr(self, each.name), each.default) for each in fields)
        # an array never is the default, unless it is the same object
        changed = (
            f"{name}={value!r}"
            for name, value, default in values
            if value is not default
            and not (isinstance(value, str | int | float) and value == default)
        )
        return f"{type(self).__name__}({', '.join(changed)})"

    validate = check_parameters


def ordered_signature(cls: type) -> inspect.Signature:
    """Return the constructor's signature with a class's own parameters before those of its bases.

    `cls`: a dataclass. Returns: the constructor's parameters, ``self`` included, without
    annotations.
    """
    unordered = inspect.signature(cls.__init__).parameters  # type: ignore[misc]
    order = ["self", *(field.name for field in _ordered(cls) if field.init)]
    ordered = sorted(unordered.values(), key=lambda each: (each.kind, order.index(each.name)))
    return inspect.Signature([each.replace(annotation=each.empty) for each in ordered])


def document(cls: type) -> None:
    """Write the sections "Parameters" and "Attributes" into a dataclass's docstring.

    `cls`: a dataclass with a docstring of its own; a class without one is left alone.
    """
    docstring = cls.__dict__.get("__doc__")
    if docstring is None or docstring.startswith(f"{cls.__name__}("):
        return
    text = inspect.cleandoc(docstring)
    fields = list(_ordered(cls))
    parts = {
        "Parameters": [_entry(field) for field in fields if field.init],
        "Attributes": [_entry(field) for field in fields if not field.init],
    }
    sections = [
        f"{title}\n{'-' * len(title)}\n" + "\n".join(entries)
        for title, entries in parts.items()
        if entries and f"\n{title}\n---" not in text
    ]
    first = _SECTION.search(text)
    head, tail = (text, "") if first is None else (text[: first.start()], text[first.start() :])
    cls.__doc__ = "\n\n".join(part for part in (head.rstrip(), *sections, tail) if part) + "\n"


def _entry(field: dataclasses.Field[object]) -> str:
    """Return the numpydoc entry of one field: its type, and its meaning if it is declared."""
    declared: _Declaration = field.metadata.get("declared", _Declaration("", None))
    kind = declared.kind
    if kind is None and declared.rule is not None and declared.rule.choices:
        kind = "{" + ", ".join(f'"{each}"' for each in declared.rule.choices) + "}"
    if kind is None:
        # without postponed evaluation an annotation is a type, else the type's name as a string
        named = field.type if isinstance(field.type, str) else getattr(field.type, "__name__", "")
        kind = (named or str(field.type)).removesuffix(" | None")
    if field.init and field.default is None and not kind.startswith("None"):
        kind += ", optional"
    elif field.init and field.default is not None:
        default = field.default
        kind += f', default="{default}"' if isinstance(default, str) else f", default={default!r}"
    return f"{field.name} : {kind}\n" + indent(fill(declared.text, _WIDTH - 4), "    ")


def _ordered(cls: type) -> Iterator[dataclasses.Field[object]]:
    """Yield the positional fields first, then the class's own, then those of its bases."""
    owner: dict[str, int] = {}
    for place, base in enumerate(cls.__mro__):
        owner.update(dict.fromkeys(inspect.get_annotations(base), place))
    fields = {field.name: field for field in dataclasses.fields(cls)}
    yield from (fields.pop(name) for name in list(fields) if not fields[name].kw_only)
    # a base that only changes a default leaves the parameter where it was declared first
    for place in range(len(cls.__mro__)):
        yield from (field for name, field in fields.items() if owner[name] == place)
