"""Bound of the probability that a test sample is in training's range (positional attention, appendix D, Figure 29)."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy

from lengthwise.errors import UsageError, refused
from lengthwise.plots.data import PlottedExperiment
from lengthwise.plots.options import Options
from lengthwise.plots.picture import Axis, Panel, Picture, Series
from lengthwise.plots.series_style import numbered_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The paper's.
SIZES = (2, 4, 8, 16, 32)
# Of a specification that a server accepts (specification/checks.h).
_LARGEST_SIZE = 100_000
_LARGEST_SCALE = 10


def domain_bound(n: int, scale: float, *, printed: bool = False) -> float:
    """Upper bound of the probability that `n` numbers, drawn at `scale`, all lie within the range of training: equation 11,
    and 12 for two numbers. Equation 12 as `printed` lacks a factor of 4 in its second part and is no bound; it is left here
    to be compared. UsageError for fewer than 2 numbers, or a scale that is not finite and above 1.
    """
    if n < 2 or not (scale > 1 and math.isfinite(scale)):
        raise UsageError(f"the bound is for 2 numbers or more and a finite scale above 1, not for {n} and {scale:g}")
    c = float(scale)
    # One of the two bounds of the sample's range lies in training's range (equation 8); or none (equation 10).
    one_inside = 3 * (1 - c ** (1 - n)) + 1
    if n == 2:
        none_inside = (1 if printed else 4) * math.log((c + 1) ** 2 / (4 * c))
        return min((one_inside + none_inside) / (2 * (c * c - 1)), 1.0)
    none_inside = 2 - 4 * (2 / (1 + c)) ** (n - 2) + 2 * c ** (2 - n)
    return min((one_inside / 2 + none_inside / (n - 2)) / ((n - 1) * (c * c - 1)), 1.0)


def picture(experiments: Sequence[PlottedExperiment], options: Options) -> Picture:
    """The contours over numbers and scale, with a mark where trials of the experiments are evaluated."""
    marks: set[tuple[float, int]] = set()
    for experiment in experiments:
        for trial in experiment.trials:
            if experiment.catalogue.axis(trial.specification.task) != "scale":
                continue
            n = trial.specification.training.lengths.max
            scales = [length for length in trial.specification.evaluation.lengths if length > 1]
            marks.update((float(scale), n) for scale in scales if 2 <= n <= _LARGEST_SIZE)
    if not marks:
        names = ", ".join(experiment.name for experiment in experiments)
        raise refused(f"no trial of {names} is evaluated on vectors of numbers at a scale above 1")
    largest_scale = max([_LARGEST_SCALE, *(scale for scale, _ in marks)])
    sizes = sorted({*SIZES, *(n for _, n in marks)})
    across, up = numpy.linspace(1.05, largest_scale + 0.2, 120), numpy.arange(min(sizes), max(sizes) + 1)
    grid = numpy.array([[domain_bound(int(n), float(scale)) for scale in across] for n in up])

    def draw(axes: Axes) -> None:
        levels = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1]
        shades = [1e-6, *levels]
        axes.contourf(across, up, grid, levels=shades, cmap="Blues", norm="log", alpha=0.7, zorder=0.6)
        lines = axes.contour(across, up, grid, levels=levels, colors="black", linewidths=0.6, zorder=1)
        axes.clabel(lines, fmt=lambda value: f"{value:g}", fontsize=6)
        axes.set_yticks(sizes, [str(size) for size in sizes])

    result = Picture("domain_bound", "Upper bound on the probability that a test sample lies within the training range")
    result.x = Axis("scale of the numbers", range=(1, largest_scale + 0.2))
    result.y = Axis("numbers in a vector", scale="log2", range=(min(sizes), max(sizes)))
    x, y = zip(*sorted(marks))
    evaluated = Series("evaluated", list(x), list(y), style=numbered_style(1), kind="scatter")
    result.panels = [Panel(series=[evaluated], draw=draw)]
    highest = max(domain_bound(n, scale) for scale, n in marks)
    result.caption = (
        "The bound of equations 11 and 12 (12 with a factor that the paper's print lacks). At the evaluated points it is at "
        f"most {highest:.2g}."
    )
    return result
