"""Options of a figure."""
from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from lengthwise.arguments import Count, check_value
from lengthwise.commands import DEFINITIONS
from lengthwise.errors import UsageError

# What the command says of them.
_DEFINED: dict[str, dict[str, Any]] = {one["usage"].split()[0].lstrip("-"): one for one in DEFINITIONS["plot"]["options"]}


@dataclass(frozen=True)
class Options:
    """A figure takes those of its entry in FIGURES; the others keep their defaults. UsageError for other values."""

    metric: str = ""
    length: Count | None = None
    layer: Count | None = None
    head: Count | None = None
    sequence: Count = 1
    parameter: str = ""
    splits: bool = False
    reference: str = ""
    seeds: str = ""
    together: bool = False
    smooth: Count | None = None
    select: str = ""
    threshold: float = 0.9
    people: str | os.PathLike[str] = ""

    def __post_init__(self) -> None:
        for one in fields(self):
            value, accepted = getattr(self, one.name), _DEFINED[one.name].get("choices")
            if accepted and value not in ("", *accepted):
                expected = ", ".join(f'"{name}"' for name in accepted[:-1]) + f' or "{accepted[-1]}"'
                raise UsageError(f"{one.name}: got {value!r}, expected {expected}")
            check_value(one.name, str(one.type), value)


OPTIONS = {one.name: one for one in fields(Options)}


def describe_options(names: Iterable[str]) -> str:
    """A line for each option, for docstrings."""
    return "\n".join(f"{name}: {_DEFINED[name]['help']}" for name in names)


Options.__doc__ = f"{Options.__doc__}\n\n{describe_options(OPTIONS)}"
