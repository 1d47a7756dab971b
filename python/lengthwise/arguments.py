"""Checks arguments of the package's calls by their annotations, so that a wrong one is no error of some library."""
from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Iterator
from numbers import Integral, Real
from typing import Any, SupportsIndex, TypeVar, cast

from lengthwise.errors import UsageError

_Class = TypeVar("_Class", bound=type)
_Function = TypeVar("_Function", bound=Callable[..., Any])
Count = int


def _is(*kinds: type) -> Callable[[object], bool]:
    """True is a whole number for Python, but none that a caller means. NumPy's numbers are."""
    return lambda value: isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))


def _are(kind: type) -> Callable[[object], bool]:
    """One, or several. An iterator's values would be gone after a look at them."""
    return lambda value: _is(kind)(value) or (
        isinstance(value, Iterable)
        and not isinstance(value, (str, bytes))
        and (isinstance(value, Iterator) or all(map(_is(kind), value)))
    )


# By annotation: which values are accepted.
_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "bool": (_is(bool), "True or False"),
    "int": (_is(Integral), "a whole number"),
    "Count": (lambda value: _is(Integral)(value) and value >= 1, "a whole number from 1"),
    "float": (_is(Real), "a number"),
    "str": (_is(str), "text"),
    "str | SupportsIndex": (_is(str, SupportsIndex), "text or a whole number"),
    "str | os.PathLike[str]": (_is(str, os.PathLike), "the path of a file"),
    "str | Sequence[str]": (_are(str), "text or a list of texts"),
    "float | Iterable[float]": (_are(Real), "a number or a list of numbers"),
    "Callable[[Experiment], None]": (
        callable,
        "a function that is called with the experiment; leave it out for a bar in notebooks and terminals",
    ),
}


def check_value(name: str, annotation: str, value: object) -> None:
    """UsageError if the value is none that the annotation means. Other annotations than those of _KINDS mean all values."""
    accepts, expected = _KINDS.get(annotation.removesuffix(" | None"), (lambda _: True, ""))
    if not (accepts(value) or (value is None and annotation.endswith(" | None"))):
        raise UsageError(f"{name}: got {value!r}, expected {expected}")


def checked(function: _Function) -> _Function:
    """Makes a function check its arguments."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        for name, value in signature.bind(*given, **named).arguments.items():
            check_value(name, str(signature.parameters[name].annotation), value)
        return function(*given, **named)

    return cast(_Function, call)


def check_arguments(kind: _Class) -> _Class:
    """Makes the public methods of a class check their arguments."""
    for name, method in list(vars(kind).items()):
        if inspect.isfunction(method) and not name.startswith("_"):
            setattr(kind, name, checked(method))
    return kind
