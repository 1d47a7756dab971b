"""Figures of experiments, drawn by matplotlib.

FIGURES is the list of them: `lengthwise plot` and `experiment.plot` have what stands there. A figure is a function from
experiments and options to a Picture (plots/picture.py); its module is imported when the figure is drawn.
"""
from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, cast

from lengthwise.errors import UsageError
from lengthwise.plots.options import Options
from lengthwise.suggestion import suggestion

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lengthwise.experiment import Experiment
    from lengthwise.plots.data import PlottedExperiment
    from lengthwise.plots.drawing import AxesLike, Size
    from lengthwise.plots.picture import Picture

# Endings of pictures, and of files of what they show.
FORMATS = (".svg", ".pdf", ".png")
DATA_FORMATS = (".csv", ".json")

__all__ = ["FIGURES", "FigureKind", "Options", "describe", "draw", "register"]


@dataclass(frozen=True)
class FigureKind:
    name: str
    # A line of the command's help.
    description: str
    # Names of the fields of Options that it takes.
    options: tuple[str, ...]
    # "lengthwise.plots.loss:picture": a function of (experiments, options) that returns a Picture.
    function: str
    # The option without which there is nothing to draw; empty: none.
    required: str = ""

    def picture(self, experiments: Sequence[PlottedExperiment], options: Options) -> Picture:
        module, _, function = self.function.partition(":")
        return cast("Picture", getattr(importlib.import_module(module), function)(experiments, options))


# By name; in the order of the command's help.
FIGURES: dict[str, FigureKind] = {}


# What options are that figures cannot be drawn without.
_REQUIRED = {
    "reference": "the encoding that the others are compared with",
    "people": "a file of people's answers (`lengthwise analyze humans --help`)",
}


def register(name: str, description: str, function: str, options: Iterable[str] = (), required: str = "") -> None:
    """Adds a figure to the list."""
    FIGURES[name] = FigureKind(name, description, tuple(options), function, required)


_HERE = "lengthwise.plots"

register(
    "accuracy_by_length",
    "accuracy at each length after training, a panel a task",
    f"{_HERE}.accuracy_by_length:picture",
    ["metric", "seeds", "together"],
)
register(
    "accuracy_of_trials",
    "the same of every single trial, to see what seeds make of it",
    f"{_HERE}.accuracy_of_trials:picture",
)
register(
    "error_places",
    "where digits of answers are wrong; of text",
    f"{_HERE}.answer_errors:places_picture",
    ["length", "seeds"],
)
register(
    "error_counts",
    "how many digits of wrong answers are wrong; of text",
    f"{_HERE}.answer_errors:counts_picture",
    ["length", "seeds"],
)
register("loss", "training loss over the steps", f"{_HERE}.loss:picture", ["metric", "seeds", "smooth"])
register(
    "attention",
    "which token looks at which; needs evaluation.attention_lengths",
    f"{_HERE}.attention:picture",
    ["length", "layer", "head", "sequence"],
)
register("projection", "activations in two dimensions; needs evaluation.projection", f"{_HERE}.projection:picture")
register(
    "length_sweep",
    "results by a parameter of encodings, training examples, length or rate",
    f"{_HERE}.length_sweep:picture",
    ["length", "parameter", "splits"],
)
register(
    "accuracy_over_steps",
    "accuracy at single lengths over training's steps, of every trial",
    f"{_HERE}.accuracy_over_steps:picture",
    ["length", "metric"],
)
register(
    "accuracy_over_epochs",
    "mean accuracy over epochs, of every trial; needs evaluation.every_steps",
    f"{_HERE}.accuracy_over_steps:epochs_picture",
    ["metric"],
)
register(
    "accuracy_over_time",
    "accuracy over training's wall clock; needs evaluation.every_steps",
    f"{_HERE}.accuracy_over_time:picture",
)
register("noise", "accuracy under noise; needs evaluation.embedding_noise", f"{_HERE}.analysis_figures:noise")
register(
    "attention_ground_truth",
    "attention beside the cells that puzzles' answers depend on",
    f"{_HERE}.analysis_figures:attention_ground_truth",
)
register(
    "attention_similarity",
    "accuracy by the likeness of attention to --reference's",
    f"{_HERE}.analysis_figures:attention_similarities",
    ["reference"],
    required="reference",
)
register(
    "encoding_distance",
    "accuracy by the distance of learned tables from --reference's",
    f"{_HERE}.analysis_figures:encoding_distances",
    ["reference"],
    required="reference",
)
register(
    "noise_average",
    "accuracy averaged over the noise, a bar for each encoding",
    f"{_HERE}.analysis_figures:noise_average",
)
register(
    "attention_matrix",
    "the likeness of attention between any two encodings",
    f"{_HERE}.analysis_figures:attention_matrix",
)
register(
    "human_scores",
    "how alike models and people are, puzzle by puzzle; needs --people",
    f"{_HERE}.analysis_figures:human_scores",
    ["people"],
    required="people",
)
register(
    "human_scatter",
    "accuracy of models by people's, a point a puzzle; needs --people",
    f"{_HERE}.analysis_figures:human_scatter",
    ["people"],
    required="people",
)
register(
    "error_carries",
    "errors with a carry into the wrong digit, beside chance; of sums",
    f"{_HERE}.analysis_figures:error_carries",
    ["length"],
)
register(
    "domain_bound",
    "how likely vectors of evaluation lie within the range of training, at most",
    f"{_HERE}.domain_bound:picture",
)


def find(name: str) -> FigureKind:
    """UsageError with what was probably meant."""
    if name in FIGURES:
        return FIGURES[name]
    if not name:
        raise UsageError(f"say what to draw: --figure {'|'.join(FIGURES)}")
    raise UsageError(f'unknown figure "{name}"{suggestion(name, list(FIGURES))}')


def check_options(kind: FigureKind, options: Options) -> None:
    """UsageError for an option that the figure does not take, and where the one is missing that it needs."""
    if kind.required and not getattr(options, kind.required):
        raise UsageError(f"the figure {kind.name} needs --{kind.required}, {_REQUIRED[kind.required]}")
    for one in fields(Options):
        if one.name in kind.options or getattr(options, one.name) == one.default:
            continue
        takers = [figure.name for figure in FIGURES.values() if one.name in figure.options]
        if len(takers) == 1:
            raise UsageError(f"--{one.name} is for the figure {takers[0]} alone")
        raise UsageError(f"--{one.name} is for the figures {', '.join(takers[:-1])} and {takers[-1]}")


def describe(
    name: str, experiments: Sequence[Experiment | PlottedExperiment], options: Options | None = None, **more: Any
) -> Picture:
    """What the figure shows, before it is drawn."""
    from lengthwise.plots import data

    kind = find(name)
    chosen = replace(options or Options(), **more)
    check_options(kind, chosen)
    return kind.picture(data.of_experiments(experiments), chosen)


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
