"""Figures of experiments, drawn by matplotlib.

FIGURES is the list of them: `lengthwise plot` and `experiment.plot` have what stands there. A figure is a function from
experiments and options to a Picture (plots/picture.py); its module is imported when the figure is drawn.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING, cast

from lengthwise.commands import DEFINITIONS
from lengthwise.errors import UsageError
from lengthwise.plots.options import OPTIONS, Options
from lengthwise.plots.picture import FORMATS as FORMATS
from lengthwise.suggestion import suggestion

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lengthwise.plots.data import Plottable, PlottedExperiment
    from lengthwise.plots.drawing import AxesLike, Size
    from lengthwise.plots.picture import Picture

# Endings of files of what a picture shows.
DATA_FORMATS = (".csv", ".json")

__all__ = ["FIGURES", "FigureKind", "Options", "describe", "draw"]


@dataclass(frozen=True)
class FigureKind:
    name: str
    # Names of the fields of Options that it takes.
    options: tuple[str, ...] = ()
    # The module of this package that has a function of the figure's name. Empty: the function `picture` of the module of
    # that name.
    module: str = ""

    @property
    def description(self) -> str:
        """What `experiment.plot` and `lengthwise plot --help` say of it."""
        return cast(str, DEFINITIONS["plot"]["figures"][self.name])

    def picture(self, experiments: Sequence[PlottedExperiment], options: Options) -> Picture:
        drawn = resolve_name(f"lengthwise.plots.{self.module or self.name}:{self.name if self.module else 'picture'}")
        return cast("Picture", drawn(experiments, options))


# Options that every figure takes.
ALWAYS = ("select",)

# Options without which a figure that takes them has nothing to draw.
_REQUIRED = {
    "reference": "the encoding that the others are compared with",
    "people": "a file of people's answers (`lengthwise analyze humans --help`)",
}

# By name; in the order of the command's help.
FIGURES = {
    kind.name: kind
    for kind in (
        FigureKind("accuracy_by_length", ("metric", "seeds", "together")),
        FigureKind("accuracy_of_trials"),
        FigureKind("seed_distribution", ("threshold",)),
        FigureKind("error_places", ("length", "seeds"), "answer_errors"),
        FigureKind("error_counts", ("length", "seeds"), "answer_errors"),
        FigureKind("loss", ("metric", "seeds", "smooth")),
        FigureKind("loss_over_time", ("metric", "seeds", "smooth"), "loss"),
        FigureKind("attention", ("length", "layer", "head", "sequence")),
        FigureKind("projection"),
        FigureKind("length_sweep", ("length", "parameter", "splits")),
        FigureKind("accuracy_over_steps", ("length", "metric")),
        FigureKind("accuracy_over_epochs", ("metric",), "accuracy_over_steps"),
        FigureKind("accuracy_over_time"),
        FigureKind("noise", module="analysis_figures"),
        FigureKind("attention_ground_truth", module="analysis_figures"),
        FigureKind("attention_similarity", ("reference",), "analysis_figures"),
        FigureKind("encoding_distance", ("reference",), "analysis_figures"),
        FigureKind("noise_average", module="analysis_figures"),
        FigureKind("attention_matrix", module="analysis_figures"),
        FigureKind("human_scores", ("people",), "analysis_figures"),
        FigureKind("human_scatter", ("people",), "analysis_figures"),
        FigureKind("error_carries", ("length",), "analysis_figures"),
        FigureKind("carry_chains", ("length",), "analysis_figures"),
        FigureKind("domain_bound"),
    )
}  # fmt: skip


def find(name: str) -> FigureKind:
    """UsageError with what was probably meant."""
    if name in FIGURES:
        return FIGURES[name]
    if not name:
        raise UsageError(f"say what to draw: --figure {'|'.join(FIGURES)}")
    raise UsageError(f'unknown figure "{name}"{suggestion(name, list(FIGURES))}')


def check_options(kind: FigureKind, options: Options) -> None:
    """UsageError for an option that the figure does not accept, or if an option that it needs is missing."""
    for name in kind.options:
        if name in _REQUIRED and not getattr(options, name):
            raise UsageError(f"the figure {kind.name} needs --{name}, {_REQUIRED[name]}")
    for one in OPTIONS.values():
        if one.name in (*kind.options, *ALWAYS) or getattr(options, one.name) == one.default:
            continue
        takers = [figure.name for figure in FIGURES.values() if one.name in figure.options]
        if len(takers) == 1:
            raise UsageError(f"--{one.name} is for the figure {takers[0]} alone")
        raise UsageError(f"--{one.name} is for the figures {', '.join(takers[:-1])} and {takers[-1]}")


def describe(name: str, experiments: Sequence[Plottable], options: Options | None = None) -> Picture:
    """The figure's contents, before drawing."""
    kind = find(name)
    chosen = options or Options()
    check_options(kind, chosen)
    from lengthwise.plots.data import read_with

    return kind.picture(read_with(experiments, chosen.select), chosen)


def draw(
    name: str,
    experiments: Sequence[Plottable],
    options: Options | None = None,
    axes: AxesLike | None = None,
    *,
    title: str | None = None,
    size: Size | None = None,
    decorated: bool = True,
) -> Figure:
    """Draws a figure of FIGURES. `axes`: the caller's, one for each panel; their figure is returned. `title` replaces the
    figure's own; without `decorated` there are neither title nor caption.
    """
    picture = describe(name, experiments, options)
    if title is not None:
        picture.title = title
    from lengthwise.plots import drawing

    return drawing.draw(picture, axes, size, decorated=decorated)
