"""Specifications from Python, with plain numbers, lists and texts in place of NumPy's, pandas' and others'."""
from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, SupportsIndex

from lengthwise.errors import FieldViolation, UsageError


def checked_specification(given: object) -> str | os.PathLike[str] | dict[str, Any]:
    """The path or name that was given, or a copy of a dictionary that json.dumps accepts.

    UsageError for anything else; it names the fields of all values that JSON does not have.
    """
    if isinstance(given, (str, os.PathLike)):
        return given
    if not isinstance(given, Mapping):
        raise UsageError(
            f"specification: got a value of type {_type(given)}, expected the path of a file, the name of an installed "
            "specification or a dictionary"
        )
    mistakes: list[FieldViolation] = []
    try:
        plain: dict[str, Any] = _plain(given, "", mistakes)
    except RecursionError:
        raise UsageError("the specification contains itself, or is nested too deeply") from None
    if mistakes:
        raise UsageError("\n".join(map(str, mistakes)), violations=tuple(mistakes))
    return plain


def _plain(value: Any, path: str, mistakes: list[FieldViolation]) -> Any:
    """`path`: the field, as in "training.lengths[2]". Appends to `mistakes`."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            mistakes.append(FieldViolation(path, f"got {value}, expected a finite number"))
        return float(value)
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                mistakes.append(FieldViolation(path, f"got the key {key!r} of type {_type(key)}, expected a name"))
        return {str(key): _plain(one, f"{path}.{key}" if path else str(key), mistakes) for key, one in value.items()}
    if isinstance(value, os.PathLike) and isinstance(name := os.fspath(value), str):
        return name
    # NumPy's arrays and scalars, pandas' series and tensors. A few scalars return themselves.
    if type(plain := python_value(value)) is not type(value):
        return _plain(plain, path, mistakes)
    if isinstance(value, SupportsIndex):
        return operator.index(value)
    if isinstance(value, (set, frozenset)):
        # Its order may change from run to run, and with it that of the grid.
        try:
            return sorted(_plain(one, path, mistakes) for one in value)
        except TypeError:
            mistakes.append(FieldViolation(path, "got a set of values that have no order, expected a list"))
            return None
    # Bytes iterate as numbers, and tables as the names of their columns.
    if isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray)) and not hasattr(value, "keys"):
        return [_plain(one, f"{path}[{index}]", mistakes) for index, one in enumerate(value)]
    expected = "text, a number, true or false, or a list or dictionary of these"
    mistakes.append(FieldViolation(path, f"got a value of type {_type(value)}, expected {expected}"))
    return None


def python_value(value: Any) -> Any:
    """`value.tolist()`, where there is one. Of float32, numbers with the fewest digits that read back as the same float32,
    so that numpy.float32(1e-3) means 0.001.
    """
    if not hasattr(value, "tolist"):
        return value
    # pandas and PyTorch have NumPy's names.
    kind = str(getattr(value, "dtype", "")).rpartition(".")[2].lower()
    if kind not in ("float16", "float32"):
        return value.tolist()
    import numpy

    return _shortest(value.tolist(), getattr(numpy, kind))


def _shortest(value: Any, short: Callable[[float], object]) -> Any:
    if isinstance(value, list):
        return [_shortest(one, short) for one in value]
    return float(str(short(value))) if isinstance(value, float) else value


def _type(value: object) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
