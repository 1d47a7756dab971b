"""`lengthwise encodings --draw SPEC -o FILE.png`: grids of numbers as a picture. The numbers come in a file of JSON."""
from __future__ import annotations

import argparse
import json
from pathlib import Path

from lengthwise.command_line import SUCCESS, Output

_PANEL_INCHES = 3.0
_MOST_COLUMNS = 4


def run(arguments: argparse.Namespace, output: Output) -> int:
    import numpy
    from matplotlib.ticker import MaxNLocator

    from lengthwise.plots import style

    grids = json.loads(Path(arguments.numbers).read_text(encoding="utf-8"))
    columns = min(len(grids), _MOST_COLUMNS)
    rows = -(-len(grids) // columns)
    with style.context():
        figure = style.new_figure(_PANEL_INCHES * columns, _PANEL_INCHES * rows)
        for number, grid in enumerate(grids, 1):
            axes = figure.add_subplot(rows, columns, number)
            values = numpy.array(grid["values"]).reshape(-1, grid["columns"])
            image = axes.imshow(values, aspect="auto", interpolation="nearest")
            axes.grid(visible=False)
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_locator(MaxNLocator(integer=True))
            axes.set(title=grid["title"], xlabel=grid["column_name"], ylabel=grid["row_name"])
            figure.colorbar(image, ax=axes)
    output.out.write(f"wrote {style.save(figure, arguments.out)}\n")
    return SUCCESS
