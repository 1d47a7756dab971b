"""Colours, markers and dashes that distinguish a figure's series. An encoding has the same colour in every figure, unless
another one there, of an earlier place in the list below, has that colour.
"""
from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from lengthwise.plots.catalogue import Component

T = TypeVar("T", bound=Hashable)

# As axes.prop_cycle of the style sheet has them.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "p", "P", "X", "<", ">", "h")
_DASHES: tuple[Any, ...] = ("solid", (0, (4, 2)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)))

# The fixed places of encodings, so that one has the same colour in every figure: those that a paper compares differ.
_ENCODINGS = {
    "none": 6, "sin_cos": 0, "relative": 1, "rope": 2, "alibi": 3, "learned": 4, "fire": 5,
    "kerple_log": 7, "t5": 8, "shaw": 9, "sin_cos_2d": 10, "one_hot": 11, "binary": 12, "formula": 13,
}  # fmt: skip
# Those of networks that are compared as such, whatever their encoding; "python" goes by the module's class, here of those in
# examples/networks.
_NETWORKS = {
    "rnn": 15, "lstm": 16, "stack_rnn": 17, "nondeterministic_stack_rnn": 18, "tape_rnn": 19,
    "looped_encoder": 20, "looped_decoder": 21,
    "Mamba": 22, "DeltaNet": 23, "Cope": 24, "Forgetting": 25, "StickBreaking": 26,
}  # fmt: skip
# Choices of positions, as `drawn_by` names them, by their fixed places among the variants of an encoding. The colours of
# `data` differ from those of the encodings that its papers compare it with.
CHOICES = {"randomized": 0, "uniform_reals": 1, "shift": 2, "data": 3, "augmented": 4, "skips": 5}


@dataclass(frozen=True)
class SeriesStyle:
    """Distinguishes a series by colour, and in print without colours by marker and dashes."""

    color: int = 0
    marker: int = 0
    # Index of a pattern of dashes; 0 is a solid line. Markers of dashed lines are open.
    dashes: int = 0

    @property
    def hex_color(self) -> str:
        return COLORS[self.color % len(COLORS)]

    def line(self) -> dict[str, Any]:
        """Keywords of Axes.plot."""
        return {"color": self.hex_color, "linestyle": _DASHES[self.dashes % len(_DASHES)], **self.points()}

    def points(self) -> dict[str, Any]:
        """Keywords of Axes.plot for markers."""
        return {
            "marker": _MARKERS[self.marker % len(_MARKERS)],
            "markeredgecolor": self.hex_color,
            "markerfacecolor": "white" if self.dashes % 2 else self.hex_color,
        }


def numbered_style(number: int) -> SeriesStyle:
    """The style of series `number`, from 0. The first 28 styles differ."""
    return SeriesStyle(number, number, number // len(COLORS) % len(_DASHES))


def apart(wanted: Mapping[T, int]) -> dict[T, int]:
    """Colours by what has them. The first that wants a colour keeps it; the others get those that are left, if any are."""
    left = list(range(len(COLORS)))
    found: dict[T, int] = {}
    for one, color in wanted.items():
        if color % len(COLORS) in left:
            left.remove(color % len(COLORS))
            found[one] = color
    return {one: found[one] if one in found else left.pop() if left else color for one, color in wanted.items()}


def styled_name(network: Component, encoding: str) -> str:
    """What has the same style in every figure: the encoding, or a network with a style of its own."""
    name = network.name
    if name == "python" and "class" in network.parameters:
        name = network.parameters["class"].string_value
    return name if name in _NETWORKS else encoding


def encoding_style(name: str, randomized: bool = False, variant: int = 0) -> SeriesStyle:
    """The same for a `styled_name` in every figure; a randomized encoding is dashed. `variant` numbers those of one name
    and of other choices of positions, from 0.
    """
    place = (_ENCODINGS | _NETWORKS).get(name, len(_ENCODINGS))
    # Beyond the colours a second pattern of dashes for each of the two kinds.
    second = 2 * (variant // len(COLORS) + place // len(COLORS))
    return SeriesStyle(place + 2 * variant, place + variant, int(randomized) + second)
