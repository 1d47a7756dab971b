"""Options of a figure."""
from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any

from lengthwise.arguments import Count, check_value
from lengthwise.errors import UsageError


def _option(default: Any, description: str, accepted: tuple[str, ...] = ()) -> Any:
    """`accepted`: the only values of a text, besides the empty one."""
    return field(default=default, metadata={"description": description, "accepted": accepted})


@dataclass(frozen=True)
class Options:
    """A figure takes those of its entry in FIGURES; the others keep their defaults. UsageError for other values."""

    metric: str = _option("", 'Metric shown instead of accuracy or loss, such as "rounding_accuracy".')
    length: Count | None = _option(
        None, "Only this input length, or number of digits. Default: what the figure shows by itself."
    )
    layer: Count | None = _option(None, "Attention: only this layer, from 1. Default: all layers.")
    head: Count | None = _option(
        None, "Attention: this head, from 1. Default: the maximum over heads or, of one layer, all heads side by side."
    )
    sequence: Count = _option(1, "Attention: which of the sequences of a length, from 1. Default: the first.")
    parameter: str = _option("", "Sweeps: what is swept. Default: what differs.")
    splits: bool = _option(False, "Sweeps: training, validation and test side by side.")
    reference: str = _option("", "The encoding that others are compared with.")
    seeds: str = _option(
        "",
        'Lines of single trials: "mean" hides them, "all" draws every one, "best" the best of the seeds before all others.',
        ("mean", "best", "all"),
    )
    together: bool = _option(
        False,
        "All tasks, such as the formats of an addition, in one panel: encodings keep their colours, tasks differ by dashes.",
    )
    smooth: Count | None = _option(
        None,
        "Losses: recorded points that one drawn point is the mean of, an odd number (an even one counts one more). 1 "
        "averages none. Default: what suits the curve.",
    )
    select: str = _option(
        "",
        'Scores that choose learning rates and best seeds: "seen" lengths (or validation sequences), or "unseen" ones. '
        "Default: the specification's evaluation.select, which is seen.",
        ("seen", "unseen"),
    )
    threshold: float = _option(
        0.9, "Seeds: the accuracy from 0 to 1, or the loss, that a seed must pass to count. Default: 0.9."
    )
    people: str | os.PathLike[str] = _option(
        "", "A file of people's answers to puzzles, as `lengthwise analyze humans` reads it."
    )

    def __post_init__(self) -> None:
        for one in fields(self):
            value, accepted = getattr(self, one.name), one.metadata["accepted"]
            if accepted and value not in ("", *accepted):
                expected = ", ".join(f'"{name}"' for name in accepted[:-1]) + f' or "{accepted[-1]}"'
                raise UsageError(f"{one.name}: got {value!r}, expected {expected}")
            check_value(one.name, str(one.type), value)


OPTIONS = {one.name: one for one in fields(Options)}


def describe_options(names: Iterable[str]) -> str:
    """A line for each option, for docstrings."""
    return "\n".join(f"{name}: {OPTIONS[name].metadata['description']}" for name in names)


Options.__doc__ = f"{Options.__doc__}\n\n{describe_options(OPTIONS)}"
