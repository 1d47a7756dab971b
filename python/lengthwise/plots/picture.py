"""A figure's contents before they are drawn: panels in a grid, each with series or one map.

A figure's function makes a Picture; plots/drawing.py draws it, and `lengthwise plot --data` and `--terminal` write it as
numbers and as text.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from lengthwise.plots.series_style import SeriesStyle

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

# Endings of files.
FORMATS = (".svg", ".pdf", ".png")


@dataclass
class Series:
    # Name in the legend; empty: not in the legend. Series of one name share a style in all panels.
    name: str = ""
    # Lines: ascending. Bars: their centres.
    x: Sequence[float] = ()
    y: Sequence[float] = ()
    # The band around a line; empty if there is none.
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    style: SeriesStyle = field(default_factory=SeriesStyle)
    kind: Literal["line", "scatter", "bars"] = "line"
    # Faint series lie behind the others; faint lines are thin and without markers.
    faint: bool = False


@dataclass
class HeatMap:
    # Square; row 0 is on top.
    values: NDArray[Any]
    # Rows and columns stand for this many tokens each, the last one perhaps for fewer.
    tokens_per_cell: int = 1
    tokens: int = 0
    # The first output token; a line is drawn before it, across and down. `tokens` if there is none.
    first_output: int = 0


@dataclass
class Axis:
    label: str = ""
    scale: Literal["linear", "log10", "log2"] = "linear"
    # counts: whole numbers, with no ticks between them. percent: shares and ratios, written in per cent.
    ticks: Literal["numbers", "counts", "percent", "none"] = "numbers"
    # None: each panel shows what it has.
    range: tuple[float, float] | None = None


@dataclass(frozen=True)
class Reference:
    """A level line across a panel."""

    y: float
    label: str  # "random guess 20 %"


@dataclass
class Panel:
    title: str = ""
    series: list[Series] = field(default_factory=list)
    map: HeatMap | None = None
    # Shaded part of the x axis.
    shaded: tuple[float, float] | None = None
    references: list[Reference] = field(default_factory=list)
    # Draws what series and maps cannot say, such as a contour; called last.
    draw: Callable[[Axes], None] | None = None


@dataclass
class Picture:
    # The name of its figure: "accuracy_by_length".
    kind: str = ""
    title: str = ""
    # Below everything, in small print: what was averaged, what was left out.
    caption: str = ""
    # Appended to the caption if bands are drawn: explains them.
    band_caption: str = ""
    x: Axis = field(default_factory=Axis)
    y: Axis = field(default_factory=Axis)
    columns: int = 1
    # Row by row.
    panels: list[Panel] = field(default_factory=list)
    # One a row of the grid, left of it; or none at all.
    row_titles: list[str] = field(default_factory=list)
    # Meaning of `shaded`: "lengths seen in training".
    shaded_label: str = ""
    # Maps: the value at the bright end of the colours (the dark end is 0), and what is shown.
    map_maximum: float = 1
    map_label: str = ""

    @property
    def has_maps(self) -> bool:
        return any(panel.map is not None for panel in self.panels)

    @property
    def is_scatter(self) -> bool:
        """True if panels are square scatter plots without ticks."""
        return self.x.ticks == "none" and not self.has_maps
