"""Charts and the heat map: what figures of lengthwise.plots show, for an experiment and for a trial alone."""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import grpc

from lengthwise import plots, trial_history
from lengthwise.connection import Connection
from lengthwise.errors import LengthwiseError, NotFoundError
from lengthwise.names import label, short_name
from lengthwise.plots.data import PlottedExperiment, Trial, TrialFilter, keep
from lengthwise.plots.groups import TrialGroup, best_rate, final_key, group_trials, tasks_of
from lengthwise.plots.metrics import main_metric
from lengthwise.plots.options import Options
from lengthwise.plots.panels import set_loss_axis, task_title
from lengthwise.plots.picture import Axis, Panel, Picture, Series

# Levels of colour of a heat map; web.css has a class for each.
LEVELS = 20


def choose(experiment: PlottedExperiment, filter: TrialFilter, seeds: Sequence[range]) -> PlottedExperiment:
    """The experiment with the chosen trials; `seeds` are those of weights. NotFoundError if there is none."""
    chosen = experiment.copy()
    keep([chosen], filter)
    if seeds:
        chosen.choose([one for one in chosen.trials if any(one.specification.weight_seed in span for span in seeds)])
        if not chosen.trials:
            raise NotFoundError("no chosen trial has one of these seeds", code=grpc.StatusCode.NOT_FOUND)
    return chosen


def loss_over_time(connection: Connection, trial: Trial) -> Picture:
    """Every recorded point of one trial by the time at which it was sent; the figure of this name needs evaluations."""
    history = trial_history.fetch_history(connection, trial.name)
    times = [time.seconds + time.nanos / 1e9 for time in history.times]
    points = [(time - times[0], loss) for time, loss in zip(times, history.points.losses) if math.isfinite(loss)]
    result = Picture("loss_over_time", f"Training loss: {short_name(trial.name)}")
    result.x.label, result.y = "seconds since the first point", Axis("loss")
    result.caption = "Points are sent in batches, so several have one time. Interruptions show as gaps."
    result.panels = [Panel(series=[Series("loss", [x for x, _ in points], [y for _, y in points])])]
    set_loss_axis(result)
    return result


@dataclass(frozen=True)
class HeatCell:
    text: str
    # From 0, the worst, to LEVELS.
    level: int


@dataclass(frozen=True)
class HeatMap:
    title: str
    axis_title: str
    # Each with whether training showed it.
    lengths: list[tuple[int, bool]]
    # The line's name, and a cell for each length; None where nothing was evaluated.
    rows: list[tuple[str, list[HeatCell | None]]]


@dataclass(frozen=True)
class HeatMaps:
    # Of the evaluations; the last one is that of the end.
    steps: list[int]
    step: int
    maps: list[HeatMap] = field(default_factory=list)


def heat_maps(experiment: PlottedExperiment, wanted_step: int | None) -> HeatMaps:
    """At the last evaluation up to a step, or at the end: the numbers of accuracy_over_steps and accuracy_by_length."""
    experiment.evaluations(intervals=True)  # read once for all tasks
    groups = group_trials([experiment])
    # Of each line the learning rate that `results` shows, at every step.
    rates = [best_rate(group, final_key(experiment)) or group.trials for group in groups]
    experiment = experiment.copy()
    experiment.choose([trial for trials in rates for trial in trials])
    by_task = [(one, _lines_by_step(choose(experiment, TrialFilter([label(one.task)]), []))) for one in tasks_of(groups)]
    steps = sorted({step for _, lines in by_task for step in lines})
    if not steps:
        return HeatMaps([], 0)
    step = max([one for one in steps if wanted_step is None or one <= wanted_step], default=steps[0])
    names = list(dict.fromkeys(group.name for group in groups))
    maps = [
        _heat_map(task, [(name, lines[step].get(name, {})) for name in names], main_metric(task) == "accuracy")
        for task, lines in by_task
        if step in lines
    ]
    return HeatMaps(steps, step, maps)


def _lines_by_step(experiment: PlottedExperiment) -> dict[int, dict[str, dict[float, float]]]:
    """Of one task: by step and line, scores by length."""
    found: dict[int, dict[str, dict[float, float]]] = {}
    during = [one.accuracies for one in experiment.evaluations(intervals=True) if not one.accuracies.final]
    for length in sorted({length for measured in during for length in measured.lengths}):
        try:
            drawn = plots.describe("accuracy_over_steps", [experiment], Options(length=length)).panels[0].series
        except LengthwiseError as error:
            if error.code is not grpc.StatusCode.FAILED_PRECONDITION:
                raise
            continue  # no value at this length is finite
        for series in drawn:
            for step, score in zip(series.x, series.y) if series.name else ():
                found.setdefault(int(step), {}).setdefault(series.name, {})[length] = score
    if experiment.evaluations():
        ended = plots.describe("accuracy_by_length", [experiment]).panels[0].series
        lines = {series.name: dict(zip(series.x, series.y)) for series in ended if series.name}
        found[experiment.trials[0].specification.training.steps] = lines
    return found


def _heat_map(task: TrialGroup, rows: list[tuple[str, dict[float, float]]], is_accuracy: bool) -> HeatMap:
    values = [value for _, curve in rows for value in curve.values()]
    # Losses differ by powers of ten.
    logarithms = [math.log(value) for value in values if value > 0]
    lowest, highest = min(logarithms, default=0.0), max(logarithms, default=1.0)

    def cell(value: float | None) -> HeatCell | None:
        if value is None:
            return None
        if is_accuracy:
            return HeatCell(f"{100 * value:.1f}", round(LEVELS * min(max(value, 0), 1)))
        place = (highest - math.log(value)) / (highest - lowest) if value > 0 and highest > lowest else 1.0
        return HeatCell(f"{value:.3g}", round(LEVELS * place))

    lengths = sorted({length for _, curve in rows for length in curve})
    seen_up_to = task.trials[0].specification.evaluation.seen_up_to
    return HeatMap(
        task_title(task),
        task.experiment.catalogue.axis_title(task.task),
        [(int(length), length <= seen_up_to) for length in lengths],
        [(name, [cell(curve.get(length)) for length in lengths]) for name, curve in rows],
    )
