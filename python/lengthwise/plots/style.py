"""Style of figures: the style sheet, colours and markers of series, and output to a file.

Nothing here touches rcParams of the caller, and nothing opens a window: figures are drawn by matplotlib.figure.Figure, never
by pyplot.
"""
from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.style
from matplotlib.figure import Figure

from lengthwise.errors import UsageError
from lengthwise.plots.picture import FORMATS
from lengthwise.user_file import write_for_user

STYLE_SHEET = Path(__file__).with_name("paper.mplstyle")

SHADE = "#ECECEC"
# Keywords for level lines.
REFERENCE: dict[str, Any] = {"color": "#555555", "linestyle": (0, (1, 2)), "linewidth": 1}


@contextmanager
def context() -> Iterator[None]:
    """The style sheet is in force inside, and what was in force before is again after."""
    with matplotlib.rc_context(_sheet()):
        yield


@cache
def _sheet() -> Any:
    sheet = matplotlib.rc_params_from_file(STYLE_SHEET, use_default_template=True)
    # Not a matter of style, and the first look at "backend" imports pyplot.
    return {name: value for name, value in dict.items(sheet) if not name.startswith(("backend", "interactive"))}


class StyledFigure(Figure):
    """A figure that is written in its style, also by its own savefig(), and that a notebook shows without pyplot."""

    def savefig(self, fname: Any, *, transparent: bool | None = None, **more: Any) -> None:
        with context():
            super().savefig(fname, transparent=transparent, **more)

    def _repr_png_(self) -> bytes:
        return render(self, ".png")


def new_figure(width: float | None = None, height: float | None = None, dpi: float | None = None) -> Figure:
    """Empty, in the style, with constrained layout. Inches; by default what the style sheet says. Draw on it inside
    `context()`.
    """
    with context():
        default_width, default_height = matplotlib.rcParams["figure.figsize"]
        size = (width or default_width, height or default_height)
        return StyledFigure(figsize=size, dpi=dpi, layout="constrained")


def settle(figure: Figure) -> None:
    """Lays the figure out once for all files that are written of it, and for good."""
    with context():
        figure.draw_without_rendering()
        figure.set_layout_engine("none")


def render(figure: Figure, suffix: str) -> bytes:
    """The bytes of ".svg", ".pdf" or ".png": the same for the same figure, at any time."""
    of_formats: dict[str, dict[str, Any]] = {
        ".svg": {"Date": None, "Creator": "Lengthwise"},
        ".pdf": {"CreationDate": None, "Creator": "Lengthwise", "Producer": None},
        ".png": {"Software": None},
    }
    buffer = io.BytesIO()
    with context():
        figure.savefig(buffer, format=suffix[1:], metadata=of_formats[suffix], dpi="figure")
    return buffer.getvalue()


def save(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Writes .svg, .pdf or .png; the file is there whole or not at all. UsageError for a name with another ending."""
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        raise UsageError(f'the file is "{target}"; its name must end with .svg, .pdf or .png')
    write_for_user(target, render(figure, target.suffix.lower()))
    return target
