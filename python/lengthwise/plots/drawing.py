"""Draws a Picture with matplotlib: panels in a grid, below them one legend for all, below that the caption."""
from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Union

import matplotlib
import numpy
from matplotlib import ticker
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis as MatplotlibAxis
from matplotlib.figure import Figure, FigureBase
from matplotlib.font_manager import FontProperties
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.textpath import text_to_path
from numpy.typing import NDArray

from lengthwise.errors import UsageError
from lengthwise.plots import style
from lengthwise.plots.picture import Axis, HeatMap, Panel, Picture, Series

# Axes that draw() accepts: one, a row, or a grid from Figure.subplots.
AxesLike = Union[Axes, Sequence[Axes], NDArray[Any]]

# Pixels to the inch, where a size is given in pixels.
_PIXELS = 100
# Inches.
_LEGEND_LINE = 0.15
_CAPTION_LINE = 0.13
_TITLE = 0.26
_PANEL_TITLE = 0.2
_TICKS = 0.2
_LABEL = 0.2
_EDGE = 0.08
_LEAST_PANEL = (0.55, 0.45)
_SAMPLE = 0.36
_COLUMN_GAP = 0.2
_MANY_POINTS = 100


@dataclass(frozen=True)
class Size:
    """In pixels; 0 stands for what suits the figure."""

    width: int = 0
    height: int = 0


def text_width(text: str, points: float) -> float:
    """Inches."""
    properties = FontProperties(family="sans-serif", size=points)
    return float(text_to_path.get_text_width_height_descent(text, properties, ismath=False)[0]) / 72


def wrap(text: str, width: float, points: float) -> list[str]:
    """Lines of at most `width` inches, broken at spaces, but not between a number and its per cent sign."""
    lines: list[str] = []
    for word in re.findall(r"\S+(?: %\S*)?", text):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, points) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def tick_label(value: float, largest: float) -> str:
    """ "0", "500", "2M", "0.02", "1e-05"; on an axis whose largest tick has five digits or more also "5k"."""
    magnitude = abs(value)
    if magnitude >= 999_999.5:
        return f"{value / 1e6:.6g}M"
    if magnitude >= 999.5 and largest >= 9_999.5:
        return f"{value / 1e3:.6g}k"
    return f"{value:.4g}"


class _NumberFormatter(ticker.Formatter):
    def format_ticks(self, values: Sequence[float]) -> list[str]:
        largest = max((abs(float(value)) for value in values), default=0.0)
        return [tick_label(value, largest) for value in values]

    def __call__(self, x: float, pos: int | None = None) -> str:
        return tick_label(x, x)


def set_ticks(axis: MatplotlibAxis, described: Axis, most: int) -> None:
    """Round values, as many as there is room for and at most `most`."""
    axis.set_minor_locator(ticker.NullLocator())
    if described.ticks == "none":
        axis.set_major_locator(ticker.NullLocator())
        return
    low, high = sorted(axis.get_view_interval())
    locator: ticker.Locator
    if described.scale == "log2":
        locator = ticker.LogLocator(base=2, numticks=most)
        axis.set_major_formatter(ticker.FuncFormatter(lambda x, _: f"{x:.0f}" if x >= 1 else f"{x:.4g}"))
    elif described.scale == "log10":
        few = low > 0 and high / low < 10 ** (most / 3)
        locator = ticker.LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,), numticks=max(most, 2))
        axis.set_major_formatter(_NumberFormatter())
    else:
        whole = described.ticks == "counts"
        # The view of an axis of percentages is a little wider than its range.
        intervals = most if described.ticks == "percent" else most - 1
        locator = ticker.MaxNLocator(max(intervals, 1), steps=[1, 2, 5, 10], integer=whole, min_n_ticks=1 if whole else 2)
        axis.set_major_formatter(_NumberFormatter())
    if described.ticks == "percent":
        axis.set_major_formatter(ticker.FuncFormatter(lambda x, _: f"{100 * x:.4g} %"))
    axis.set_major_locator(locator)


def _draw_series(axes: Axes, series: Series, place: int) -> None:
    look, name = series.style, series.name or None
    if series.kind == "bars":
        widths = numpy.diff(series.x)
        width = 0.8 * float(widths.min()) if len(widths) else 0.8
        axes.bar(series.x, series.y, width=width, color=look.hex_color, alpha=0.55, label=name)
        return
    options: dict[str, Any] = {"color": look.hex_color}
    if series.kind == "scatter":
        # The activations of many tokens, or a point for each model.
        many = len(series.x) > _MANY_POINTS
        size = {"markersize": 1.7, "markeredgewidth": 0.5} if many else {"markersize": 3.5}
        if series.faint:
            size = {"markersize": 2.5, "alpha": 0.6}
        # Faint points lie behind everything, the others in their order.
        options |= {"linestyle": "none", "zorder": 1.8 if series.faint else 2.5, **look.points(), **size}
    elif series.faint:
        options |= {"linestyle": look.line()["linestyle"], "linewidth": 0.6, "alpha": 0.45, "zorder": 1.9}
    else:
        if len(series.low) and list(series.low) != list(series.high):
            axes.fill_between(series.x, series.low, series.high, color=look.hex_color, alpha=0.15, linewidth=0)
        # About ten markers a line, and those of several lines beside each other.
        every = max(1, math.ceil(len(series.x) / 10))
        options |= {"markevery": (place * every // 3 % every, every), "zorder": 2.2, **look.line()}
    axes.plot(series.x, series.y, label=name, **options)


def _draw_map(axes: Axes, heat: HeatMap, highest: float) -> AxesImage:
    side = heat.values.shape[0] * heat.tokens_per_cell
    image = axes.imshow(
        heat.values, extent=(0, side, side, 0), vmin=0, vmax=highest, interpolation="nearest", aspect="equal"
    )
    axes.grid(False)
    tokens = heat.tokens or side
    axes.set_xlim(0, tokens)
    axes.set_ylim(tokens, 0)
    if 0 < heat.first_output < tokens:
        axes.axhline(heat.first_output, color="white", linewidth=0.6)
        axes.axvline(heat.first_output, color="white", linewidth=0.6)
    return image


def _set_axis(axes: Axes, which: str, described: Axis, most: int) -> None:
    axis: MatplotlibAxis = getattr(axes, f"{which}axis")
    if described.scale != "linear":
        getattr(axes, f"set_{which}scale")("log", base=2 if described.scale == "log2" else 10)
    if described.range is not None:
        low, high = described.range
        if described.ticks == "percent" and which == "y" and described.scale == "linear":
            # A line at 0 or 100 % is seen whole.
            low, high = low - 0.02 * (high - low), high + 0.03 * (high - low)
        elif described.scale == "linear":
            # Nor is a marker at the end cut in half.
            high += 0.015 * (high - low)
        getattr(axes, f"set_{which}lim")(low, high)
    set_ticks(axis, described, most)


def _draw_panel(axes: Axes, panel: Panel, picture: Picture, most_x: int, most_y: int) -> AxesImage | None:
    image = None
    if panel.map is not None:
        image = _draw_map(axes, panel.map, picture.map_maximum)
        set_ticks(axes.xaxis, Axis(ticks="counts"), most_x)
        set_ticks(axes.yaxis, Axis(ticks="counts"), most_x)
    else:
        if panel.shaded is not None:
            axes.axvspan(*panel.shaded, color=style.SHADE, linewidth=0, zorder=0.5, label="_shaded")
        for reference in panel.references:
            axes.axhline(reference.y, **style.REFERENCE, zorder=1.5, label="_" + reference.label)
        place = 0
        for series in panel.series:
            _draw_series(axes, series, place)
            place += series.kind == "line" and not series.faint
        _set_axis(axes, "x", picture.x, most_x)
        _set_axis(axes, "y", picture.y, most_y)
        if picture.is_scatter:
            axes.set_box_aspect(1)
    if panel.title:
        axes.set_title(panel.title)
    if panel.draw is not None:
        panel.draw(axes)
    return image


def _legend_entries(picture: Picture) -> list[tuple[str, Artist]]:
    entries: dict[str, Artist] = {}
    references: dict[str, Artist] = {}
    shaded = False
    for panel in picture.panels:
        for series in panel.series:
            if not series.name or series.name in entries:
                continue
            look = series.style
            handle: Artist
            if series.kind == "bars":
                handle = Patch(color=look.hex_color, alpha=0.55)
            elif series.kind == "scatter":
                handle = Line2D([], [], **{**look.line(), "linestyle": "none"})
            elif series.faint:
                handle = Line2D([], [], **{**look.line(), "marker": None}, linewidth=0.6, alpha=0.7)
            else:
                handle = Line2D([], [], **look.line())
            entries[series.name] = handle
        shaded |= panel.shaded is not None
        for reference in panel.references:
            references.setdefault(reference.label, Line2D([], [], **style.REFERENCE))
    if shaded and picture.shaded_label:
        entries[picture.shaded_label] = Patch(color=style.SHADE)
    # Panels have guesses of their own: one entry says what the line is.
    if len(references) > 1 and all(label.startswith("random guess") for label in references):
        references = {"random guess": next(iter(references.values()))}
    return [*entries.items(), *references.items()]


def _legend_columns(names: Sequence[str], width: float, points: float) -> int:
    """As many as fit `width` inches, with entries in rows of equal columns."""
    for columns in range(len(names), 1, -1):
        # matplotlib fills columns first, the longer ones first.
        rows, longer = divmod(len(names), columns)
        counts = [rows + (column < longer) for column in range(columns)]
        total, start = 0.0, 0
        for count in counts:
            total += max(text_width(name, points) for name in names[start : start + count]) + _SAMPLE + _COLUMN_GAP
            start += count
        if total - _COLUMN_GAP <= width:
            return columns
    return 1


def _natural_width(picture: Picture) -> float:
    single = float(matplotlib.rcParams["figure.figsize"][0])
    if picture.has_maps or picture.is_scatter:
        left = 0.6 + (0.3 if picture.row_titles else 0)
        right = 0.8 if picture.has_maps else 0.1
        side = 2.6 if len(picture.panels) == 1 else 1.25 if picture.columns > 2 else 1.9
        return max(4.0, left + right + picture.columns * (side + 0.1))
    return {1: single, 2: 6.0, 3: 7.0}.get(picture.columns, 8.5)


def _panel_height(picture: Picture, width: float) -> float:
    across = (width - (1.4 if picture.has_maps else 0.7)) / picture.columns - 0.1
    if picture.has_maps or picture.is_scatter:
        return max(across, 0.3)
    return min(across, 4.0) * (0.52 if len(picture.panels) == 1 else 0.62)


def draw(picture: Picture, axes: AxesLike | None = None, size: Size | None = None, *, decorated: bool = True) -> Figure:
    """On a new figure, in the style of the style sheet; or on the caller's axes, one a panel, in the caller's style and with
    a legend on the last. Without `decorated` there are no title and no caption, as a paper has them below the figure.

    UsageError: not as many axes as panels, or a size that leaves no room for the panels.
    """
    if not picture.panels:
        raise UsageError(f"the figure {picture.kind} has nothing to draw")
    if axes is not None:
        return _draw_on(picture, axes)
    with style.context():
        return _draw_new(picture, size or Size(), decorated)


def _draw_on(picture: Picture, axes: AxesLike) -> Figure:
    given: list[Axes] = [axes] if isinstance(axes, Axes) else list(numpy.ravel(numpy.asarray(axes, dtype=object)))
    if not all(isinstance(one, Axes) for one in given):
        raise UsageError(f"ax: got {axes!r}, expected Axes of matplotlib, or a list of them")
    if len(given) != len(picture.panels):
        needed = "1 panel" if len(picture.panels) == 1 else f"{len(picture.panels)} panels"
        raise UsageError(f"the figure {picture.kind} has {needed} here, and {len(given)} axes were given")
    # A "$" in a user's label is a "$".
    with matplotlib.rc_context({"text.parse_math": False}):
        for one, panel in zip(given, picture.panels):
            _draw_panel(one, panel, picture, 6, 6)
            one.set_xlabel(picture.x.label)
            one.set_ylabel(picture.y.label)
        entries = _legend_entries(picture)
        if len(entries) > 1:
            given[-1].legend([handle for _, handle in entries], [name for name, _ in entries])
    figure = given[0].get_figure(root=True)
    assert figure is not None
    return figure


def _draw_new(picture: Picture, size: Size, decorated: bool) -> Figure:
    rows = math.ceil(len(picture.panels) / picture.columns)
    small = float(matplotlib.rcParams["legend.fontsize"])
    width = size.width / _PIXELS if size.width else _natural_width(picture)
    entries = _legend_entries(picture)
    legend_columns = _legend_columns([name for name, _ in entries], width - 2 * _EDGE, small) if entries else 0
    legend_height = math.ceil(len(entries) / legend_columns) * _LEGEND_LINE + _EDGE / 2 if entries else 0.0
    caption = f"{picture.caption} {picture.band_caption}" if decorated else ""
    caption_lines = wrap(caption, width - 2 * _EDGE, small)
    footer = legend_height + len(caption_lines) * _CAPTION_LINE + (_EDGE if caption_lines else 0)
    title_size = float(matplotlib.rcParams["figure.titlesize"])
    title = wrap(picture.title, width - 2 * _EDGE, title_size) if decorated else []
    panel_titles = [_panel_title(panel.title, width, picture) for panel in picture.panels]
    # Number of lines of the highest title in each row of panels.
    title_lines = sum(
        max(one.count("\n") + bool(one) for one in panel_titles[row * picture.columns : (row + 1) * picture.columns])
        for row in range(rows)
    )
    labelled_rows = 0 if picture.is_scatter else 1 if _shares_x(picture) else rows
    fixed = (
        footer + len(title) * _TITLE + (_LABEL if picture.x.label else 0) + 2 * _EDGE
        + title_lines * _PANEL_TITLE + labelled_rows * _TICKS + rows * _EDGE
    )  # fmt: skip
    height = size.height / _PIXELS if size.height else fixed + rows * _panel_height(picture, width)
    least_width = 0.8 + picture.columns * _LEAST_PANEL[0] + (0.8 if picture.has_maps else 0)
    least_height = fixed + rows * _LEAST_PANEL[1]
    if width < least_width or height < least_height:
        raise UsageError(
            f"the figure does not fit: it needs at least {math.ceil(_PIXELS * least_width)} pixels of width and, that wide, "
            f"{math.ceil(_PIXELS * least_height)} of height; leave --width and --height out for what suits it"
        )
    figure = style.new_figure(width, height, dpi=_PIXELS if size.width or size.height else None)
    body: FigureBase = figure
    if footer > 0:
        both: Any = figure.subfigures(2, 1, height_ratios=[height - footer, footer])
        body, below = both
        if entries:
            below.legend(
                [handle for _, handle in entries], [name for name, _ in entries], loc="upper left", ncols=legend_columns,
                bbox_to_anchor=(_EDGE / width, 1.0), borderaxespad=0, borderpad=0,
            )  # fmt: skip
        if caption_lines:
            below.text(
                _EDGE / width, _EDGE / 2 / footer, "\n".join(caption_lines), fontsize=small, va="bottom",
                linespacing=_CAPTION_LINE * 72 / small / 1.2,
            )  # fmt: skip
    if title:
        body.suptitle("\n".join(title))
    _draw_body(body, picture, rows, width, (height - fixed) / rows)
    return figure


def _panel_title(title: str, width: float, picture: Picture) -> str:
    """Broken into lines that do not reach the title beside it."""
    across = (width - (1.4 if picture.has_maps else 0.7)) / picture.columns
    return "\n".join(wrap(title, across, float(matplotlib.rcParams["axes.titlesize"])))


def _shares_x(picture: Picture) -> bool:
    """True if the panels of a column share their x axis, so that one panel can carry the labels."""
    if picture.has_maps:
        return len({panel.map.tokens for panel in picture.panels if panel.map is not None}) == 1
    return picture.x.range is not None


def _draw_body(body: FigureBase, picture: Picture, rows: int, width: float, panel_height: float) -> None:
    single = len(picture.panels) == 1
    across = width / picture.columns
    most_x = max(3, min(9, int(across / (0.35 if picture.has_maps else 0.42))))
    all_axes: list[Axes] = []
    image: AxesImage | None = None
    grid = body.add_gridspec(rows, picture.columns)
    for i, panel in enumerate(picture.panels):
        row, column = divmod(i, picture.columns)
        axes = body.add_subplot(grid[row, column])
        all_axes.append(axes)
        image = _draw_panel(axes, panel, picture, most_x, 6) or image
        axes.set_title(_panel_title(panel.title, width, picture))
        if picture.has_maps:
            axes.tick_params(labelsize=6)
            axes.spines[["top", "right"]].set_visible(True)
        if not single:
            # Tick labels are those of the outer panels if all have one range.
            last_in_column = i + picture.columns >= len(picture.panels)
            axes.tick_params(
                labelbottom=last_in_column or not _shares_x(picture),
                labelleft=column == 0 or (picture.y.range is None and not picture.has_maps),
            )
        if column == 0 and row < len(picture.row_titles):
            # Broken into lines that are no longer than the panel is high.
            size = float(matplotlib.rcParams["axes.labelsize"])
            parts = picture.row_titles[row].split("\n")
            axes.set_ylabel("\n".join(line for part in parts for line in wrap(part, panel_height, size)))
    if single and not picture.row_titles:
        all_axes[0].set_xlabel(picture.x.label)
        all_axes[0].set_ylabel(picture.y.label)
    else:
        if picture.x.label:
            body.supxlabel(picture.x.label)
        if picture.y.label:
            body.supylabel(picture.y.label)
    if image is not None:
        body.colorbar(image, ax=all_axes, label=picture.map_label, aspect=30, shrink=min(1.0, 2.0 / rows), anchor=(0, 1))
