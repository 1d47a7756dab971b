"""Figures of experiments, drawn by matplotlib.

FIGURES is the list of them: `lengthwise plot` and `experiment.plot` have what stands there. A figure is a function from
experiments and options to a Picture (plots/picture.py); its module is imported when the figure is drawn.
"""
from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from lengthwise.errors import UsageError
from lengthwise.plots.options import OPTIONS, Options
from lengthwise.plots.picture import FORMATS as FORMATS
from lengthwise.suggestion import suggestion

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lengthwise.plots.data import Experiment, PlottedExperiment
    from lengthwise.plots.drawing import AxesLike, Size
    from lengthwise.plots.picture import Picture

# Endings of files of what a picture shows.
DATA_FORMATS = (".csv", ".json")

__all__ = ["FIGURES", "FigureKind", "Options", "describe", "draw"]


@dataclass(frozen=True)
class FigureKind:
    name: str
    # What `experiment.plot` says of it; `lengthwise plot --help` has kFigures of client/commands/plot.cc.
    description: str
    # Names of the fields of Options that it takes.
    options: tuple[str, ...] = ()
    # The module of this package that has a function of the figure's name. Empty: the function `picture` of the module of
    # that name.
    module: str = ""

    def picture(self, experiments: Sequence[PlottedExperiment], options: Options) -> Picture:
        module = importlib.import_module(f"lengthwise.plots.{self.module or self.name}")
        drawn = getattr(module, self.name if self.module else "picture")
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
        FigureKind(
            "accuracy_by_length", "accuracy at each length after training, one panel per task",
            ("metric", "seeds", "together"),
        ),
        FigureKind("accuracy_of_trials", "the same for every trial, to show the effect of seeds"),
        FigureKind("seed_distribution", "scores of all seeds, and the share of seeds above --threshold", ("threshold",)),
        FigureKind("error_places", "positions of wrong digits; needs a task on text", ("length", "seeds"), "answer_errors"),
        FigureKind(
            "error_counts", "number of wrong digits per wrong answer; needs a task on text",
            ("length", "seeds"), "answer_errors",
        ),
        FigureKind("loss", "training loss over the steps", ("metric", "seeds", "smooth")),
        FigureKind(
            "loss_over_time", "training loss over training time; needs evaluation.every_steps",
            ("metric", "seeds", "smooth"), "loss",
        ),
        FigureKind(
            "attention", "attention maps; needs evaluation.attention_lengths", ("length", "layer", "head", "sequence")
        ),
        FigureKind("projection", "activations in two dimensions; needs evaluation.projection"),
        FigureKind(
            "length_sweep", "results by a parameter of encodings, training examples, length or rate",
            ("length", "parameter", "splits"),
        ),
        FigureKind(
            "accuracy_over_steps", "accuracy at single lengths over training steps, for every trial", ("length", "metric")
        ),
        FigureKind(
            "accuracy_over_epochs", "mean accuracy over epochs, for every trial; needs evaluation.every_steps",
            ("metric",), "accuracy_over_steps",
        ),
        FigureKind("accuracy_over_time", "accuracy over training time; needs evaluation.every_steps"),
        FigureKind("noise", "accuracy under noise; needs evaluation.embedding_noise", module="analysis_figures"),
        FigureKind(
            "attention_ground_truth", "attention next to the cells that puzzle answers depend on", module="analysis_figures"
        ),
        FigureKind(
            "attention_similarity", "accuracy by similarity of attention to --reference's",
            ("reference",), "analysis_figures",
        ),
        FigureKind(
            "encoding_distance", "accuracy by distance of learned tables from --reference's",
            ("reference",), "analysis_figures",
        ),
        FigureKind("noise_average", "accuracy averaged over the noise, one bar per encoding", module="analysis_figures"),
        FigureKind("attention_matrix", "similarity of attention for every pair of encodings", module="analysis_figures"),
        FigureKind(
            "human_scores", "similarity of models and people, puzzle by puzzle; needs --people",
            ("people",), "analysis_figures",
        ),
        FigureKind(
            "human_scatter", "accuracy of models by people's, one point per puzzle; needs --people",
            ("people",), "analysis_figures",
        ),
        FigureKind(
            "error_carries", "errors with a carry into the wrong digit, against chance; needs sums",
            ("length",), "analysis_figures",
        ),
        FigureKind(
            "carry_chains", "accuracy of digits by length of the carry chain; needs sums", ("length",), "analysis_figures"
        ),
        FigureKind("domain_bound", "upper bound on the probability that inputs lie within the training range"),
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


def describe(
    name: str, experiments: Sequence[Experiment | PlottedExperiment], options: Options | None = None
) -> Picture:
    """The figure's contents, before drawing."""
    from lengthwise.plots import data

    kind = find(name)
    chosen = options or Options()
    check_options(kind, chosen)
    plotted = data.of_experiments(experiments)
    if chosen.select:
        plotted = [replace(one, select=chosen.select) for one in plotted]
    return kind.picture(plotted, chosen)


def draw(
    name: str,
    experiments: Sequence[Experiment | PlottedExperiment],
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
