"""Code shared by figures with one panel per task."""
from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy
from numpy.typing import NDArray

from lengthwise._proto import event_pb2
from lengthwise.errors import LengthwiseError, UsageError, refused
from lengthwise.events import sequence_counts
from lengthwise.plots.catalogue import Component
from lengthwise.plots.data import PlottedExperiment, Trial, experiment_names, has_ended
from lengthwise.plots.groups import TrialGroup, of_task, rule_of, tasks_of
from lengthwise.plots.options import Options
from lengthwise.plots.picture import Axis, Panel, Picture, Reference, Series
from lengthwise.plots.seen_lengths import SeenLengths, unseen_lengths
from lengthwise.plots.series_style import SeriesStyle
from lengthwise.rendering import counted, format_count

_MOST_PANELS = 16
# Limits of a logarithmic axis of losses.
_MOST_DECADES = 7

# y by x.
Curve = Mapping[float, float]


@dataclass(frozen=True)
class Band:
    """A line of averages with the band around it."""

    x: list[float]
    y: list[float]
    low: list[float]
    high: list[float]


def _band(curves: Sequence[Curve], middle_low_high: Callable[[NDArray[numpy.float64]], Iterable[NDArray[Any]]]) -> Band:
    """Of the curves' values, a row each, at the x's of the one that ends first, as far as all curves reach: no step in an
    average comes from a curve that begins or ends. Between its points a curve is straight.
    """
    filled = [curve for curve in curves if curve]
    if not filled:
        return Band([], [], [], [])
    begin = max(min(curve) for curve in filled)
    xs = sorted(x for x in min(filled, key=lambda curve: max(curve)) if x >= begin)
    rows = []
    for curve in filled:
        known, values = list(curve), list(curve.values())
        if known != xs:
            known.sort()
            values = numpy.interp(xs, known, [curve[x] for x in known]).tolist()
        rows.append(values)
    return Band(xs, *(values.tolist() for values in middle_low_high(numpy.array(rows))))


def mean(curves: Sequence[Curve]) -> Band:
    """With the lowest and the highest."""
    return _band(curves, lambda values: (values.mean(axis=0), values.min(axis=0), values.max(axis=0)))


def median(curves: Sequence[Curve]) -> Band:
    """With the 10th and the 90th percentile."""
    return _band(curves, lambda values: numpy.quantile(values, [0.5, 0.1, 0.9], axis=0))


def guess_references(experiment: PlottedExperiment, task: Component) -> list[Reference]:
    """ "random guess 20 %"; none for a task whose guessing accuracy is not known or nothing."""
    accuracy = experiment.catalogue.random_accuracy(task)
    # No line to compare with if no guess is right.
    return [Reference(accuracy, f"random guess {100 * accuracy:.3g} %")] if accuracy else []


def add_guess(panel: Panel, group: TrialGroup) -> None:
    panel.references += guess_references(group.experiment, group.task)


def _seen_by(groups: Iterable[TrialGroup]) -> set[SeenLengths]:
    # The trials of a group differ in nothing but seeds and rates.
    return {SeenLengths.by(group.trials[0]) for group in groups if group.trials}


def unseen_of(groups: Iterable[TrialGroup], lengths: str = "lengths not seen in training") -> str:
    """Of the trials' lengths those that do not count as seen: see unseen_lengths."""
    groups = list(groups)
    # Puzzles were not seen at any number of vectors.
    own_axis = any(group.experiment.catalogue.own_axis(group.task) for group in groups)
    return unseen_lengths(_seen_by(groups), "what training did not show" if own_axis else lengths)


def choice_of(groups: Iterable[TrialGroup], during_training: bool = False) -> str:
    """ "the highest mean accuracy on lengths seen in training": by what rates and seeds are chosen. `during_training`: at
    the last evaluation during training, which has no validation sequences.
    """
    groups = list(groups)
    trials = [(group.experiment, group.trials[0]) for group in groups if group.trials]
    rules = {rule_of(experiment, trial) for experiment, trial in trials}
    if rules == {"unseen"}:
        where = unseen_of(groups)
    elif not during_training and all(trial.specification.evaluation.HasField("validation") for _, trial in trials):
        where = "the validation sequences"
    else:
        exact = all(one.trained in ((), ((1, one.up_to),)) for one in _seen_by(groups))
        where = "lengths seen in training" if exact else "lengths that count as seen"
    by_loss = any(group.experiment.catalogue.compared_by_loss(group.task) for group in groups)
    measure = "lowest mean error" if by_loss else "highest mean accuracy"
    found = f"the {measure} on {where if len(rules) == 1 else 'what evaluation.select names'}"
    return f"{found} at the last evaluation during training" if during_training else found


@dataclass(frozen=True)
class Shade:
    """The shaded lengths of a panel: those that count as seen, as in tables."""

    first: int
    last: int
    # "10 to 20", "some of 1 to 9", "different lengths": of training, if it ended elsewhere or did not show all that count as
    # seen, or if trials differ in it.
    trained: str = ""


def shade_seen(panel: Panel, groups: Sequence[TrialGroup], shades: set[Shade]) -> None:
    """Shades the lengths that count as seen and adds them to `shades`, if these are the same for all trials of these groups.
    Does nothing if they are not, and for puzzles, of which training shows none of the evaluation's. `panel` has its series.
    """
    found = _seen_by(groups)
    if len({one.up_to for one in found}) != 1:
        return
    seen, *others = found
    if seen.up_to < 1:
        return
    lengths = [x for series in panel.series for x in series.x]
    if all(one.all_trained(lengths) for one in found):
        shade = Shade(max(one.trained[0][0] if one.trained else 1 for one in found), seen.up_to)
    elif others:
        shade = Shade(1, seen.up_to, "different lengths")
    else:
        shade = Shade(1, seen.up_to, seen.trained_numbers())
    panel.shaded = (shade.first, shade.last)
    shades.add(shade)


def seen_label(shades: Collection[Shade], axis: str) -> str:
    """Explains the shaded parts of all panels."""
    # "digits" are counted, a "length" is not.
    counted = axis.endswith("s")
    several = axis if counted else f"{axis}s"
    if len(shades) != 1:
        return f"{several} {'that count as seen' if any(shade.trained for shade in shades) else 'seen in training'}"
    (shade,) = shades
    label = "counted as seen: " if shade.trained else "seen in training: "
    if counted:
        label += f"{shade.first} to {shade.last} {axis}"
    elif shade.first == shade.last:
        label += f"{axis} {shade.last}"
    else:
        label += f"{several} {shade.first} to {shade.last}"
    return f"{label} (trained on {shade.trained})" if shade.trained else label


def accuracy_axis(title: str) -> Axis:
    """From 0 to 100 %."""
    return Axis(title, ticks="percent", range=(0.0, 1.0))


def set_step_axis(picture: Picture) -> None:
    """From 0 to the last step that is drawn."""
    steps = [series.x[-1] for panel in picture.panels for series in panel.series if len(series.x)]
    picture.x.range = (0, max([1.0, *steps]))


def set_length_axis(picture: Picture, groups: Iterable[TrialGroup] = ()) -> None:
    """Fits the axis to the data. It starts at 0, which reads better, if that makes little difference. Scales and other
    values of an axis of the tasks' own are single points, none of which is 0: each has half a unit on both sides.
    """
    points = [x for panel in picture.panels for series in panel.series for x in series.x]
    shortest, longest = min(points), max(points)
    if any(group.experiment.catalogue.own_axis(group.task) for group in groups):
        picture.x.range = (shortest - 0.5, longest + 0.5)
        for panel in picture.panels:
            panel.shaded = panel.shaded and (panel.shaded[0] - 0.5, panel.shaded[1] + 0.5)
        return
    if shortest < 0.15 * longest:
        shortest = 0
    if shortest == longest:
        shortest = longest - 1
    picture.x.range = (shortest, longest)
    for panel in picture.panels:
        if panel.shaded is not None and panel.shaded[0] <= 1:
            panel.shaded = (shortest, panel.shaded[1])


def set_loss_axis(picture: Picture) -> None:
    """Sets the y axis of panels that show only losses: logarithmic if they differ by much, and then over a few powers of ten
    at most. A loss of exactly 0 is drawn at its lower end.
    """
    all_series = [series for panel in picture.panels for series in panel.series]
    values = [value for series in all_series for value in (*series.y, *series.low, *series.high)]
    highest = max(values, default=0.0)
    lowest = min((value for value in values if value > 0), default=math.inf)
    if highest <= 10 * lowest:
        picture.y.range = (0, highest * 1.05 if highest > 0 else 1)
        return
    picture.y.scale = "log10"
    lowest = max(lowest, highest * 10**-_MOST_DECADES) / 1.2
    picture.y.range = (lowest, highest * 1.2)
    for series in all_series:
        series.y = [max(value, lowest) for value in series.y]
        series.low = [max(value, lowest) for value in series.low]
        series.high = [max(value, lowest) for value in series.high]


def task_panels(
    picture: Picture, groups: Sequence[TrialGroup]
) -> Iterator[tuple[Panel, TrialGroup, list[TrialGroup]]]:
    """A panel for each task, with one of the task's groups, and all of them. Panels to which the loop adds no series are not
    the picture's.
    """
    for task in tasks_of(groups):
        panel = Panel(task_title(task))
        yield panel, task, of_task(groups, task.task)
        if panel.series:
            picture.panels.append(panel)


def arrange_panels(picture: Picture, what: str = "one a task", how: str = "choose some with --task") -> None:
    """Sets the columns of the grid: 1, 2, 3, 2 (four panels), 3, ... at most 4. UsageError: too many panels."""
    panels = len(picture.panels)
    if panels > _MOST_PANELS:
        raise UsageError(f"a picture has room for {_MOST_PANELS} panels, {what}, and these are {panels}; {how}")
    if panels <= 3:
        picture.columns = max(1, panels)
    else:
        picture.columns = 2 if panels == 4 else 3 if panels <= 6 or panels == 9 else 4


def not_recorded(
    experiments: Sequence[PlottedExperiment],
    asked_for: Callable[[Trial], object],
    done: str,
    how: str,
    at_the_end: bool = False,
) -> LengthwiseError:
    """`done`: what no trial has done if some were asked for it; `how`: what there is none of, and how it is asked for.
    `at_the_end`: it is done after the last evaluation, and the retention deletes what it gave.
    """
    names = experiment_names(experiments)
    asked = [trial for experiment in experiments for trial in experiment.trials if asked_for(trial)]
    if not asked:
        return refused(f"{names} has no {how} records them")
    if all(map(has_ended, asked)):
        deleted = "; the retention deletes what was recorded" if at_the_end else ""
        return refused(f"no trial of {names} has {done}, and all have ended{deleted}")
    return refused(f"no trial of {names} has {done} yet{'; that is done after the last evaluation' if at_the_end else ''}")


def no_interval_evaluation(experiments: Sequence[PlottedExperiment]) -> LengthwiseError:
    how = "evaluations during training; evaluation.every_steps in its specification"
    every_steps = attrgetter("specification.evaluation.every_steps")
    return not_recorded(experiments, every_steps, "been evaluated during training", how)


def no_final_evaluation(experiments: Sequence[PlottedExperiment]) -> LengthwiseError:
    # `show` takes a --data_dir as figures do, and `watch` does not.
    show = f"`lengthwise show {experiments[0].name if experiments else 'NAME'}`, with the same --server or --data_dir,"
    states = {trial.state for experiment in experiments for trial in experiment.trials}
    if states and states <= {event_pb2.FAILED, event_pb2.CANCELLED}:
        return refused(f"no trial of {experiment_names(experiments)} succeeded; {show} says why")
    return refused(
        f"no trial of {experiment_names(experiments)} has been evaluated in full yet; that is done at the end of training "
        f"({show} shows how far they are)"
    )


def missing_trials(experiments: Sequence[PlottedExperiment]) -> str:
    """ "2 of 6 trials have no final evaluation."; empty if all have."""
    trials = evaluated = 0
    for experiment in experiments:
        finals = experiment.final_evaluations()
        trials += len(experiment.trials)
        evaluated += sum(trial.name in finals for trial in experiment.trials)
    missing = trials - evaluated
    if missing == 0:
        return ""
    return f"{missing} of {counted(trials, 'trial')} {'has' if missing == 1 else 'have'} no final evaluation."


def at_most(counts: Collection[int], what: str) -> str:
    """ "5 seeds"; "up to 5 seeds" if the counts differ."""
    most = max(counts)
    return ("" if min(counts) == most else "up to ") + counted(most, what)


def between(numbers: Iterable[int], what: str) -> str:
    """ "100 steps", "5 to 480 steps"; empty if there is none but 0, which stands for not known."""
    known = set(numbers) - {0}
    if not known:
        return ""
    lowest, highest = min(known), max(known)
    return f"{'' if lowest == highest else f'{format_count(lowest)} to '}{counted(highest, what)}"


def sequences_of(evaluations: Iterable[event_pb2.LengthAccuracies]) -> str:
    """How many sequences a length has, as `between`."""
    return between((count for one in evaluations for count in sequence_counts(one)), "sequence")


@dataclass
class Averaging:
    """The averaging used; `describe` appends it to the captions."""

    several_rates: bool = False
    is_median: bool = False
    # Numbers of seeds of the lines.
    seeds: set[int] = field(default_factory=set)

    @property
    def has_means(self) -> bool:
        """True if a line averages several seeds."""
        return max(self.seeds, default=1) > 1

    def band(self, curves: Sequence[Curve]) -> Band:
        return median(curves) if self.is_median else mean(curves)

    def count(self, seeds: int, rates: int) -> None:
        self.seeds.add(seeds)
        self.several_rates |= rates > 1

    def describe(self, best_by: str, picture: Picture) -> None:
        if self.has_means:
            add_sentence(picture, f"{'Median' if self.is_median else 'Mean'} over {at_most(self.seeds, 'seed')}.")
            picture.band_caption = (
                "Bands: 10th to 90th percentile of the seeds."
                if self.is_median
                else "Bands: from the lowest to the highest seed."
            )
        if self.several_rates:
            add_sentence(picture, f"Each line has the learning rate with {best_by}.")


def refuse_best(options: Options) -> None:
    if options.seeds == "best":
        raise UsageError("--seeds best is for the figure accuracy_by_length; this one shows the mean, or all")


def add_sentence(picture: Picture, sentence: str) -> None:
    picture.caption = f"{picture.caption} {sentence}".strip()


def capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


def line(curve: Curve, style: SeriesStyle, name: str = "", *, faint: bool = False) -> Series:
    """One trial's, without a band."""
    return Series(name, list(curve), list(curve.values()), style=style, faint=faint)


def task_title(group: TrialGroup) -> str:
    return group.experiment.catalogue.task_title(group.task)
