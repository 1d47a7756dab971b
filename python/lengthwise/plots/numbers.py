"""A figure's numbers as CSV and JSON, and a program that draws the figure again."""
from __future__ import annotations

import io
import json
from typing import Any

from lengthwise.plots.picture import Axis, Picture
from lengthwise.rendering import Value, finite, write_csv_rows

_COLUMNS = ("panel", "series", "x", "y", "low", "high")
_MAP_COLUMNS = ("panel", "query", "key", "value")


def to_dictionary(picture: Picture) -> dict[str, Any]:
    """For JSON: everything but what a panel draws by itself; None for numbers that are not finite, which JSON has not.
    `lengthwise plot --terminal` reads it.
    """

    def axis(described: Axis) -> dict[str, Any]:
        return vars(described) | {"range": described.range and list(map(float, described.range))}

    return vars(picture) | {
        "x": axis(picture.x),
        "y": axis(picture.y),
        "map_maximum": float(picture.map_maximum),
        "panels": [
            {
                "title": panel.title,
                "shaded": panel.shaded and list(map(float, panel.shaded)),
                "references": [{"y": float(one.y), "label": one.label} for one in panel.references],
                "series": [
                    {
                        "name": one.name,
                        "kind": one.kind,
                        "faint": one.faint,
                        **{name: finite([*map(float, getattr(one, name))]) for name in ("x", "y", "low", "high")},
                        "style": {"color": one.style.hex_color, "marker": one.style.marker, "dashes": one.style.dashes},
                    }
                    for one in panel.series
                ],
                **({"map": finite(panel.map.values.astype(float).tolist())} if panel.map is not None else {}),
            }
            for panel in picture.panels
        ],
    }


def to_json(picture: Picture) -> str:
    return json.dumps(to_dictionary(picture), ensure_ascii=False, allow_nan=False) + "\n"


def panel_names(picture: Picture) -> list[str]:
    """As people tell them apart: the titles of row and column."""
    names = []
    for i, panel in enumerate(picture.panels):
        row, column = divmod(i, picture.columns)
        title = panel.title or picture.panels[column].title
        parts = [picture.row_titles[row].replace("\n", ", ") if row < len(picture.row_titles) else "", title]
        names.append(", ".join(part for part in parts if part))
    return names


def to_csv(picture: Picture) -> str:
    """A row a point, or a row a cell of a map."""
    rows: list[list[Value]] = [list(_MAP_COLUMNS if picture.has_maps else _COLUMNS)]
    for name, panel in zip(panel_names(picture), picture.panels):
        if panel.map is not None:
            values = panel.map.values
            rows += [
                [name, q * panel.map.tokens_per_cell, k * panel.map.tokens_per_cell, float(values[q, k])]
                for q in range(values.shape[0])
                for k in range(values.shape[1])
            ]
        for series in panel.series:
            lows = series.low if len(series.low) else [None] * len(series.x)
            highs = series.high if len(series.high) else [None] * len(series.x)
            for x, y, low, high in zip(series.x, series.y, lows, highs):
                band: list[Value] = [None if value is None else float(value) for value in (low, high)]
                rows.append([name, series.name, float(x), float(y), *band])
    out = io.StringIO()
    write_csv_rows(rows, out)
    return out.getvalue()


# Users' names are only in the data, where JSON escapes every quotation mark.
_SCRIPT = '''"""Draws a figure of `lengthwise plot` with matplotlib, from the data below: change what you like.

python THIS_FILE [PICTURE.pdf|.svg|.png]
"""
import json
import sys

import matplotlib.pyplot as plt
import numpy

FIGURE = json.loads(r"""
{data}
""")
DASHES = ["solid", (0, (4, 2)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5))]
MARKERS = "os^DvpPX<>h"

panels, columns = FIGURE["panels"], FIGURE["columns"]
rows = -(-len(panels) // columns)
figure, grid = plt.subplots(
    rows, columns, figsize=(max(4.5, 2.4 * columns), 2.4 * rows + 0.8), squeeze=False, layout="constrained"
)
for number, axes in enumerate(grid.flat):
    if number >= len(panels):
        axes.remove()
        continue
    panel = panels[number]
    axes.set_title(panel["title"], parse_math=False)
    if "map" in panel:
        image = axes.imshow(
            numpy.array(panel["map"], float), vmin=0, vmax=FIGURE["map_maximum"] or None, cmap="cividis"
        )
        continue
    if panel["shaded"]:
        axes.axvspan(*panel["shaded"], color="#ECECEC", linewidth=0, zorder=0.5)
    for reference in panel["references"]:
        axes.axhline(reference["y"], color="#555555", linestyle=":", linewidth=1)
    for series in panel["series"]:
        style, name = series["style"], series["name"] or "_nolegend_"
        # None is not a number.
        x, y, low, high = (numpy.array(series[which], float) for which in ("x", "y", "low", "high"))
        faint = series["faint"]
        if series["kind"] == "bars":
            axes.bar(x, y, color=style["color"], label=name)
            continue
        scatter = series["kind"] == "scatter"
        axes.plot(
            x, y, color=style["color"], label=name,
            linestyle="none" if scatter else DASHES[style["dashes"] % len(DASHES)],
            linewidth=0.6 if faint else 1.4, alpha=0.5 if faint else 1,
            marker=None if faint and not scatter else MARKERS[style["marker"] % len(MARKERS)],
            markersize=4, markevery=1 if scatter else max(1, len(x) // 10),
        )
        if len(low):
            axes.fill_between(x, low, high, color=style["color"], alpha=0.15, linewidth=0)
    for which in "xy":
        axis = FIGURE[which]
        if axis["scale"] != "linear":
            getattr(axes, f"set_{which}scale")("log", base=2 if axis["scale"] == "log2" else 10)
        if axis["range"]:
            getattr(axes, f"set_{which}lim")(*axis["range"])
        if axis["ticks"] == "percent":
            getattr(axes, f"{which}axis").set_major_formatter("{x:.0%}")
if any("map" in panel for panel in panels):
    figure.colorbar(image, ax=list(grid.flat)[: len(panels)], label=FIGURE["map_label"])
figure.supxlabel(FIGURE["x"]["label"])
figure.supylabel(FIGURE["y"]["label"])
entries = {}
for axes in figure.axes:
    for handle, name in zip(*axes.get_legend_handles_labels()):
        entries.setdefault(name, handle)
if entries:
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=2, frameon=False)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else f"{FIGURE['kind']}.pdf")
'''


# The first line of every program of to_script.
SCRIPT_TITLE = _SCRIPT.partition("\n")[0]


def to_script(picture: Picture) -> str:
    """A Python program of matplotlib alone that draws the figure from its data."""
    return _SCRIPT.replace("{data}", to_json(picture).rstrip(), 1)
