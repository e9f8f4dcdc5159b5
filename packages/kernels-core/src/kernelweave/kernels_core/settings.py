"""Settings of algorithms as values: ``algorithm=LowRank(rank=8)`` or just ``"tkl-low-rank"``."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from .parameters import Value
from .registry import get_algorithm
from .registry.specs import AlgorithmSpec

if TYPE_CHECKING:
    from .driver import Search

__all__ = ["Settings"]

S = TypeVar("S", bound="Settings")


class Settings(Value):
    """Base of the settings of an algorithm: frozen, so that they compare, clone and pickle.

    A subclass declares each setting by `kernelweave.kernels_core.parameters.parameter` and has
    the name under which the algorithm is registered. The class of the algorithm has the default as
    an attribute, ``settings = LowRank()``, and its constructor takes ``settings=LowRank(rank=8)``.

    Parameters
    ----------
    *values, **settings : object
        What the subclass declares.

    Attributes
    ----------
    algorithm : str
        The registered name.

    Raises
    ------
    ValueError
        Naming an unknown setting and the nearest one.

    Examples
    --------
    >>> from kernelweave.spectahedron import LowRank
    >>> LowRank(rank=8).algorithm
    'tkl-low-rank'
    """

    algorithm: ClassVar[str]

    def __new__(cls: type[S], *values: object, **settings: object) -> S:
        """Raise on an unknown setting with a hint, before the constructor raises without one."""
        names = [field.name for field in dataclasses.fields(cls)]
        refuse_unknown(cls.__name__, settings, names)
        return object.__new__(cls)

    def changed(self: S, changes: Mapping[str, object]) -> S:
        """Return a checked copy with some settings, of known names, changed."""
        new = dataclasses.replace(self, **changes)
        new.validate()
        return new


def refuse_unknown(algorithm: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise on a setting that an algorithm does not have.

    `algorithm`: its name, or that of its `Settings`, for the message; `given`, `known`: names of
    settings.
    """
    names = sorted(known)
    for name in given:
        if name in names:
            continue
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        has = f"Its settings are {', '.join(names)}" if names else "It has none"
        raise ValueError(f"{algorithm} has no setting {name!r}: {hint}{has}")


def name_of(algorithm: str | Settings | AlgorithmSpec) -> str:
    """Return the name of an algorithm that is given by name, by settings or by its record."""
    if isinstance(algorithm, Settings):
        return algorithm.algorithm
    return algorithm.name if isinstance(algorithm, AlgorithmSpec) else algorithm


def spec_of(algorithm: str | Settings | AlgorithmSpec) -> AlgorithmSpec:
    """Return the record of an algorithm that is given by name, by settings or by its record.

    Raises ValueError if it is none of these; UnknownNameError if it is not registered; close
    matches are listed.
    """
    if isinstance(algorithm, AlgorithmSpec):
        return algorithm
    if not isinstance(algorithm, str | Settings):
        raise ValueError(
            f"algorithm must be the name of one, its settings or its record, got {algorithm!r}"
        )
    return get_algorithm(name_of(algorithm))


def known_settings(algorithm: str | Settings | AlgorithmSpec) -> set[str] | None:
    """Return the names of an algorithm's settings, or ``None`` if it accepts any.

    `algorithm`: registered, or a record. The names are those of its `Settings`, or, if the class
    or function has none, those of its keyword-only parameters.
    """
    target = spec_of(algorithm).load()
    settings = _settings_of(target)
    if settings is not None:
        return {field.name for field in dataclasses.fields(settings)}
    if inspect.isfunction(target):
        taken = inspect.signature(target).parameters.values()
        if any(each.kind is each.VAR_KEYWORD for each in taken):
            return None
        return {each.name for each in taken if each.kind is each.KEYWORD_ONLY}
    names: set[str] = set()
    for base in getattr(target, "__mro__", ()):
        if "__init__" not in vars(base):
            continue
        given = inspect.signature(base.__init__).parameters.values()
        names |= {each.name for each in given if each.kind is each.KEYWORD_ONLY}
        if all(each.kind is not each.VAR_KEYWORD for each in given):
            return names
    return None


def _settings_of(target: Any) -> Settings | None:
    """Return the settings of a class, or what a function that makes the search has by default."""
    settings = getattr(target, "settings", None)
    if inspect.isfunction(target) and "settings" in inspect.signature(target).parameters:
        settings = inspect.signature(target).parameters["settings"].default
    return settings if isinstance(settings, Settings) else None


def prepared(
    algorithm: str | Settings | AlgorithmSpec, params: Mapping[str, object]
) -> Callable[..., Search]:
    """Return a function of a problem and a random state that starts a search with these settings.

    `algorithm`: which one; `params`: settings by name, which override those of a `Settings`. Raises
    ValueError if a setting is unknown or out of range.
    """
    spec = spec_of(algorithm)
    target = spec.load()
    accepted, settings = known_settings(spec), _settings_of(target)
    if accepted is not None:
        refuse_unknown(spec.name, params, accepted)
    if settings is None:
        return partial(target, **params)
    chosen = algorithm if isinstance(algorithm, Settings) else settings
    return partial(target, settings=chosen.changed(params))
