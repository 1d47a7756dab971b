"""Figures of the analyses (Ito et al. 2024, relational reasoning on Latin squares, Figures 3 to 6 and 10)."""
from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy

from lengthwise.analyses import attention_similarity as similarity
from lengthwise.analyses import carries, ground_truth, human_comparison, latin_square, noise_curves
from lengthwise.analyses import encoding_distance as distance
from lengthwise.analyses.encoding_tables import find_fixed
from lengthwise.analyses.measures import CONFIDENCE, sample_deviation
from lengthwise.analyses.trial_sets import Subject, Trial, TrialSet, share_labels, subject_of
from lengthwise.errors import UsageError, refused
from lengthwise.names import label
from lengthwise.plots.attention import check_map_rows
from lengthwise.plots.data import PlottedExperiment
from lengthwise.plots.groups import group_trials
from lengthwise.plots.metrics import common
from lengthwise.plots.options import Options
from lengthwise.plots.panels import (
    accuracy_axis,
    add_sentence,
    arrange_panels,
    at_most,
    choice_of,
    guess_references,
    line,
    set_loss_axis,
)
from lengthwise.plots.picture import Axis, HeatMap, Panel, Picture, Series
from lengthwise.plots.series_style import SeriesStyle
from lengthwise.rendering import counted, format_exact

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Bars of which the names have room.
_MOST_BARS = 40
_MOST_NAMES_ACROSS = 8
# Points of a line over the places of digits.
_MOST_GROUPS = 10


def _task_title(one: TrialSet) -> str:
    return one.experiment.catalogue.task_title(one.specification.task)


def names_of(sets: Sequence[TrialSet]) -> list[str]:
    """ "learn_0.2", with what else tells a set from the others of its task."""
    with_experiment = share_labels(sets)
    names = []
    for one in sets:
        others = [other for other in sets if other.task == one.task]
        name = one.experiment.catalogue.encoding_title(one.specification.encoding)
        if any(other.network != one.network for other in others):
            name = f"{one.network}, {name}"
        if any(
            (other.network, other.encoding) == (one.network, one.encoding) and other.learning_rate != one.learning_rate
            for other in others
        ):
            name = f"{name}, {format_exact(one.learning_rate)}"
        names.append(f"{one.experiment.name}: {name}" if with_experiment else name)
    return names


def best_rates(subject: Subject, sets: Sequence[TrialSet]) -> list[TrialSet]:
    """Keeps the chosen learning rate among sets that differ only in it."""
    alike: dict[tuple[str, ...], list[TrialSet]] = {}
    for one in sets:
        alike.setdefault((one.experiment.name, one.task, one.network, one.encoding), []).append(one)
    chosen = set(map(subject.best_rate, alike.values()))
    return [one for one in sets if one in chosen]


class _TaskPanels:
    """One panel a task, in the order in which they come, with a series for each set that is best among learning rates."""

    def __init__(self, subject: Subject, sets: Sequence[TrialSet]) -> None:
        self._subject = subject
        self._chose = best_rates(subject, list(dict.fromkeys(sets)))
        self._chose_rates = len(self._chose) < len(dict.fromkeys(sets))
        self._names = dict(zip(self._chose, names_of(self._chose)))
        # As in other figures of the experiments.
        self._styles = {
            (group.experiment.name, label(group.network), label(group.encoding)): group.style
            for group in group_trials(subject.experiments)
        }
        self._panels: dict[str, Panel] = {}

    def shows(self, one: TrialSet) -> bool:
        return one in self._names

    def add(self, one: TrialSet, series: Series) -> None:
        """`one` is a set that is shown."""
        series.name = self._names[one]
        series.style = self._styles[one.experiment.name, one.network, one.encoding]
        if one.task not in self._panels:
            references = guess_references(one.experiment, one.specification.task)
            self._panels[one.task] = Panel(_task_title(one), references=references)
        self._panels[one.task].series.append(series)

    def move_to(self, picture: Picture) -> None:
        picture.panels = list(self._panels.values())
        arrange_panels(picture)
        if self._chose_rates:
            choice = choice_of(group_trials(self._subject.experiments))
            add_sentence(picture, f"Each encoding has the learning rate with {choice}.")


def _of(measure: Callable[[Subject, Options], Sequence[Any]]) -> Callable[[Callable[..., Picture]], Callable[..., Picture]]:
    """Makes a figure of plots.FIGURES of a function that takes a subject and what `measure` returns of it."""

    def figure(picture_of: Callable[..., Picture]) -> Callable[..., Picture]:
        @functools.wraps(picture_of)
        def draw(experiments: Sequence[PlottedExperiment], options: Options) -> Picture:
            subject = subject_of(experiments)
            return picture_of(subject, *measure(subject, options))

        return draw

    return figure


@_of(lambda subject, _: [noise_curves.curves(subject)])
def noise(subject: Subject, curves: Sequence[noise_curves.NoiseCurve]) -> Picture:
    """Accuracy by the noise's standard deviation, a line for each set: the mean over its models, with a band from the lowest
    to the highest (Figures 5B and C).
    """
    picture = Picture("noise", f"Accuracy under noise: {subject.names}")
    picture.x = Axis("standard deviation of the noise on the embeddings of tokens")
    catalogue = subject.experiments[0].catalogue
    axes = (catalogue.axis_values(trial.specification.task) for curve in curves for trial in curve.of.trials)
    picture.y = accuracy_axis(f"accuracy, mean over all {common(axes, 'lengths')}")
    panels = _TaskPanels(subject, [curve.of for curve in curves])
    # Numbers of models of the points.
    counts: set[int] = set()
    for curve in curves:
        if panels.shows(curve.of):
            values = list(curve.accuracies.values())
            means = [float(numpy.mean(one)) for one in values]
            series = Series("", list(curve.accuracies), means, list(map(min, values)), list(map(max, values)))
            panels.add(curve.of, series)
            counts.update(map(len, values))
    if max(counts, default=1) > 1:
        picture.caption = f"Lines: the mean over {at_most(counts, 'model')}."
        picture.band_caption = "Bands: from the lowest to the highest model."
    panels.move_to(picture)
    return picture


def _draw_models(picture: Picture, subject: Subject, models: Mapping[TrialSet, Sequence[tuple[Trial, float]]]) -> None:
    """A point for each model of each set: its accuracy, or its loss if tasks are compared by it, by a number."""
    panels = _TaskPanels(subject, list(models))
    for one, of_set in models.items():
        scored = [(x, abs(subject.accuracies[trial.name])) for trial, x in of_set if trial.name in subject.accuracies]
        if scored and panels.shows(one):
            panels.add(one, Series(x=[x for x, _ in scored], y=[y for _, y in scored], kind="scatter"))
    panels.move_to(picture)
    points = [x for panel in picture.panels for series in panel.series for x in series.x]
    if points and min(points) < max(points):
        # Room at both ends, so that no point lies on the frame.
        margin = 0.05 * (max(points) - min(points))
        picture.x.range = (min(points) - margin, max(points) + margin)
    where = subject.unseen("what was not seen in training")
    picture.y = Axis(f"loss on {where}") if subject.by_loss else accuracy_axis(f"accuracy on {where}")
    if subject.by_loss:
        set_loss_axis(picture)


@_of(
    lambda subject, options: [
        similarity.compare(subject, options.reference, similarity.AttentionMeasure.COSINE), options.reference
    ]
)  # fmt: skip
def attention_similarity(subject: Subject, comparison: similarity.AttentionComparison, reference: str) -> Picture:
    """A point for each model: its accuracy by the cosine of its attention maps to those of the reference (Figure 4B).
    Without the reference's own models.
    """
    picture = Picture("attention_similarity", f"Attention beside {reference}: {subject.names}")
    picture.x = Axis(f"cosine of attention maps to those of {reference}")
    sequences = counted(comparison.sequences, "sequence")
    picture.caption = f"Points: models, each with its mean over the models of {reference}, {sequences} and all layers."
    _draw_models(picture, subject, {row.of: row.means for row in comparison.rows if row.of.encoding != reference})
    return picture


@_of(lambda subject, options: [distance.measure(subject, find_fixed(subject, options.reference)), options.reference])
def encoding_distance(subject: Subject, distances: distance.EncodingDistances, reference: str) -> Picture:
    """A point for each model: its accuracy by the distance of its first table from the reference's (Figure 10C)."""
    picture = Picture("encoding_distance", f"Learned tables beside {reference}: {subject.names}")
    picture.x = Axis(f"orthogonal Procrustes distance of the first table to {reference}")
    picture.caption = "Points: models."
    models = {one: [(model.trial, model.blocks[0]) for model in of_set] for one, of_set in distances.models.items()}
    _draw_models(picture, subject, models)
    return picture


@_of(lambda subject, _: [ground_truth.compare(subject)])
def attention_ground_truth(subject: Subject, rows: Sequence[ground_truth.GroundTruthAttention]) -> Picture:
    """A row for each set: what the target cell would attend to by the task's rules, and what it attends to in each layer,
    the mean over its models.
    """
    check_map_rows(len(rows))
    if any(len(row.layers) != len(rows[0].layers) for row in rows):
        raise UsageError("the networks have different numbers of layers; choose one with --network")
    picture = Picture("attention_ground_truth", f"Attention beside the ground truth: {subject.names}")
    picture.x, picture.y = Axis("cell attended to"), Axis("target cell")
    picture.columns = len(rows[0].layers) + 1
    picture.map_label, picture.map_maximum = "attention", 0
    several_tasks = len({row.of.task for row in rows}) > 1
    for row, name in zip(rows, names_of([row.of for row in rows])):
        titles = [f"ground truth (even: {100 * row.all.even:.1f} %, clues: {100 * row.all.clues:.1f} %)"]
        titles += [f"layer {i + 1}: {100 * shares.mean():.1f} %" for i, shares in enumerate(row.all.by_layer)]
        for title, values in zip(titles, [row.truth, *row.layers]):
            picture.panels.append(Panel(title, map=HeatMap(values, tokens=row.cells, first_output=row.cells)))
            picture.map_maximum = max(picture.map_maximum, float(values.max()))
        picture.row_titles.append(f"{_task_title(row.of)}: {name}" if several_tasks else name)
    models = " and the models" if any(row.models > 1 for row in rows) else ""
    picture.caption = (
        "What the token of each target cell attends to (cells are numbered row by row), the mean over "
        f"{counted(rows[0].all.puzzles, 'puzzle')}{models}. Ground truth: the other cells of the rows and columns that "
        "determine the target. Per cent: share of the attention on them; even: if all cells had the same attention; clues: "
        "if all cells with a symbol had the same and others none."
    )
    return picture


@_of(lambda subject, _: [similarity.compare_all(subject, similarity.AttentionMeasure.COSINE)])
def attention_matrix(subject: Subject, matrix: similarity.SimilarityMatrix) -> Picture:
    """Similarity of the attention maps of every two encodings (Figure 3B)."""
    names = names_of(matrix.sets)

    def label(axes: Axes) -> None:
        axes.set_xticks([i + 0.5 for i in range(len(names))], names, rotation=90)
        axes.set_yticks([i + 0.5 for i in range(len(names))], names)
        axes.tick_params(length=0)
        if len(names) <= 12:
            middle = float(numpy.nanmax(matrix.values)) / 2
            for i, j in numpy.ndindex(matrix.values.shape):
                if not math.isnan(value := float(matrix.values[i, j])):
                    color = "black" if value > middle else "white"
                    axes.text(j + 0.5, i + 0.5, f"{value:.2f}", ha="center", va="center", color=color, fontsize=5.5)

    picture = Picture("attention_matrix", f"Similarity of attention: {subject.names}")
    picture.map_label = "cosine of attention maps"
    picture.map_maximum = max(float(numpy.nanmax(matrix.values)), 0.01)
    size = len(names)
    picture.panels = [Panel(map=HeatMap(matrix.values, tokens=size, first_output=size), draw=label)]
    picture.caption = (
        f"Mean over pairs of models, {counted(matrix.sequences, 'sequence')} and all layers; on the diagonal, over pairs of "
        "different seeds."
    )
    return picture


def _bars(title: str, names: Sequence[str], values: Sequence[float], deviations: Sequence[float | None]) -> Panel:
    """A bar for each name, with a line of one standard deviation to both sides."""
    if len(names) > _MOST_BARS:
        raise UsageError(
            f"a picture has room for {_MOST_BARS} bars, and these are {len(names)}; choose some with --encoding"
        )
    x = [float(i) for i in range(len(names))]
    low = [value - (deviation or 0) for value, deviation in zip(values, deviations)]
    high = [value + (deviation or 0) for value, deviation in zip(values, deviations)]

    def label(axes: Axes) -> None:
        many = len(names) > _MOST_NAMES_ACROSS
        angle, side, mode = (90, "center", "default") if many else (30, "right", "anchor")
        axes.set_xticks(x, names, rotation=angle, ha=side, rotation_mode=mode)
        axes.set_xlim(-0.6, len(names) - 0.4)
        axes.tick_params(axis="x", length=0)
        for at, value, deviation in zip(x, values, deviations):
            if deviation is not None:
                axes.errorbar([at], [value], [deviation], fmt="none", color="black", linewidth=0.8, capsize=2)

    return Panel(title, [Series(x=x, y=list(values), low=low, high=high, kind="bars")], draw=label)


@_of(lambda subject, _: [noise_curves.curves(subject)])
def noise_average(subject: Subject, curves: Sequence[noise_curves.NoiseCurve]) -> Picture:
    """Accuracy under noise, averaged over its standard deviations, a bar for each encoding (Figures 5D and E)."""
    shown = best_rates(subject, [curve.of for curve in curves])
    curves = [curve for curve in curves if curve.of in shown and curve.averages()]
    if not curves:
        raise UsageError("the noise has no standard deviation above 0; set evaluation.embedding_noise to some")
    picture = Picture("noise_average", f"Average accuracy under noise: {subject.names}")
    picture.y = accuracy_axis("accuracy, mean over noise")
    for task in dict.fromkeys(curve.of.task for curve in curves):
        of_task = [curve for curve in curves if curve.of.task == task]
        averages = [curve.averages() for curve in of_task]
        names, means = names_of([curve.of for curve in of_task]), [float(numpy.mean(one)) for one in averages]
        deviations = [sample_deviation(one) for one in averages]
        picture.panels.append(_bars(_task_title(of_task[0].of), names, means, deviations))
    arrange_panels(picture)
    noise = sorted({one for curve in curves for one in curve.accuracies if one > 0})
    picture.caption = (
        f"Mean over the standard deviations {', '.join(map(format_exact, noise))} of the noise and over "
        f"{at_most([len(curve.averages()) for curve in curves], 'model')}; lines: one standard deviation over the models."
    )
    return picture


def _beside_people(subject: Subject, options: Options) -> Sequence[Any]:
    rows = human_comparison.compare(subject, latin_square.read_human_accuracies(options.people))
    shown = best_rates(subject, [row.of for row in rows])
    return [[row for row in rows if row.of in shown and row.puzzles]]


@_of(_beside_people)
def human_scores(subject: Subject, rows: Sequence[human_comparison.HumanComparison]) -> Picture:
    """Similarity of models and people puzzle by puzzle: cosine, rank correlation and their mean (Figures 6A to C, E to G).
    """
    names = names_of([row.of for row in rows])
    picture = Picture("human_scores", f"Models beside people: {subject.names}", columns=3)
    scores = {
        "cosine": [row.cosine for row in rows],
        "Spearman's rank correlation": [row.ranks.coefficient if row.ranks else None for row in rows],
        "composite": [row.composite for row in rows],
    }
    for title, found in scores.items():
        values = [math.nan if one is None else one for one in found]
        picture.panels.append(_bars(title, names, values, [None] * len(rows)))
    puzzles = max(len(row.puzzles) for row in rows)
    picture.caption = (
        f"Mean accuracies of models and of people on {puzzles:,} puzzles. composite: the mean of cosine and rank "
        "correlation."
    )
    return picture


@_of(_beside_people)
def human_scatter(subject: Subject, rows: Sequence[human_comparison.HumanComparison]) -> Picture:
    """A point for each puzzle: the models' accuracy by people's, a panel for each encoding (Figure 6D)."""
    picture = Picture("human_scatter", f"Models beside people, puzzle by puzzle: {subject.names}")
    picture.x, picture.y = accuracy_axis("people's accuracy"), accuracy_axis("models' accuracy")
    for row, name in zip(rows, names_of([row.of for row in rows])):
        ranks = row.ranks
        title = name if ranks is None else f"{name}: ρ = {ranks.coefficient:.2f}"
        picture.panels.append(
            Panel(title, [Series("", row.human_accuracies, row.model_accuracies, kind="scatter")])
        )
    arrange_panels(picture, "one an encoding", "choose some with --encoding")
    models = at_most([row.models for row in rows], "model")
    picture.caption = f"Points: puzzles, the mean over {models}. ρ: Spearman's rank correlation."
    return picture


@_of(lambda subject, options: [carries.measure(subject, options.length or 0)])
def error_carries(subject: Subject, rows: Sequence[carries.CarryErrors]) -> Picture:
    """Share of the least significant wrong digits that have a carry into them, by place, beside the base rate of random
    operands (Zhou et al. 2024, Figure 9).
    """
    digits = rows[0].digits
    picture = Picture("error_carries", f"Errors with a carry, sums of {digits} digits: {subject.names}")
    picture.x = Axis("place of the digit, 0 for the least significant", ticks="counts", range=(0, digits + 0.5))
    picture.y = accuracy_axis("errors with a carry into the digit")
    panels = _TaskPanels(subject, [row.of for row in rows])
    base_rates: dict[str, Series] = {}
    totals = []
    for row in rows:
        every = row.groups(_MOST_GROUPS)
        shares = {place: share for place, group in every.items() if (share := group.share) is not None}
        if not shares or not panels.shows(row.of):
            continue
        low, high = zip(*(interval for group in every.values() if (interval := group.interval()) is not None))
        series = Series("", list(shares), list(shares.values()), low, high)
        panels.add(row.of, series)
        base_rate = {place: float(group.base_rate.mean()) for place, group in every.items()}
        base_rates.setdefault(row.of.task, line(base_rate, SeriesStyle(6, 6, 1), "random operands", faint=True))
        if row.share is not None and row.expected is not None:
            totals.append(f"{series.name} {100 * row.share:.0f} % (by chance {100 * row.expected:.0f} %)")
    if not base_rates:
        raise refused(f"no digit of any answer at {digits} digits is wrong where a carry may come in")
    panels.move_to(picture)
    for panel, of_task in zip(picture.panels, base_rates.values()):
        panel.references = []
        panel.series.append(of_task)
    add_sentence(picture, "All seeds and neighbouring places together. Only the least significant wrong digit counts.")
    add_sentence(picture, f"Errors with a carry: {', '.join(totals)}.")
    picture.band_caption = f"Bands: {100 * CONFIDENCE:.0f} % intervals."
    return picture


@_of(lambda subject, options: [carries.measure_chains(subject, options.length or 0)])
def carry_chains(subject: Subject, rows: Sequence[carries.CarryChains]) -> Picture:
    """Accuracy of a digit by the length of the carry chain into it, beside the frequency of such chains (Zhou et al. 2024,
    section 3, which finds no effect of carries).
    """
    digits = rows[0].digits
    picture = Picture("carry_chains", f"Accuracy by length of the carry chain, sums of {digits} digits: {subject.names}")
    longest = max(len(row.places) for row in rows) - 1
    picture.x = Axis("places that the carry into the digit has come, 0 for none", ticks="counts", range=(0, longest + 0.5))
    picture.y = accuracy_axis("digits that are right")
    panels = _TaskPanels(subject, [row.of for row in rows])
    places: dict[str, list[carries.Array]] = {}
    for row in rows:
        if panels.shows(row.of):
            known = numpy.flatnonzero(row.places)
            low, high = zip(*map(row.interval, map(int, known)))
            accuracies = 1 - row.wrong[known] / row.places[known]
            panels.add(row.of, Series(x=known.tolist(), y=accuracies.tolist(), low=low, high=high))
            places.setdefault(row.of.task, []).append(numpy.pad(row.places, (0, longest + 1 - len(row.places))))
    panels.move_to(picture)
    for panel, of_task in zip(picture.panels, places.values()):
        panel.references = []
        shares = numpy.sum(of_task, axis=0) / numpy.sum(of_task)
        x = list(map(float, range(longest + 1)))
        panel.series.append(Series("share of all places", x, shares.tolist(), style=SeriesStyle(6, 6, 1), faint=True))
    add_sentence(picture, "All seeds together. Places count up to and including the least significant wrong digit.")
    picture.band_caption = f"Bands: {100 * CONFIDENCE:.0f} % intervals."
    return picture
