"""Accuracy on unseen lengths over the wall-clock time of training (Ruoss et al. 2023, Figure 2)."""
from __future__ import annotations

from collections.abc import Sequence

from lengthwise.errors import refused
from lengthwise.plots import panels
from lengthwise.plots.accuracy_over_steps import Evaluations, IntervalLine, interval_evaluations, interval_lines
from lengthwise.plots.data import PlottedExperiment, experiment_names
from lengthwise.plots.groups import group_trials, tasks_of
from lengthwise.plots.metrics import common
from lengthwise.plots.options import Options
from lengthwise.plots.picture import Picture, Series
from lengthwise.queries import has_time


def _unseen(of_trial: Evaluations) -> dict[float, float]:
    return {
        float(step): measured.unseen_accuracy
        for step, measured in of_trial.items()
        if measured.HasField("unseen_accuracy") and has_time(step, measured)
    }


def _series(line: IntervalLine, averaging: panels.Averaging) -> Series:
    """Mean over seeds at each step, placed at the mean of the seconds."""
    accuracies, seconds = [], []
    for trial in line.trials:
        of_trial = line.evaluations.get(trial.name, {})
        accuracy = _unseen(of_trial)
        if accuracy:
            accuracies.append(accuracy)
            seconds.append({step: of_trial[int(step)].training_seconds for step in accuracy})
    averaging.count(len(accuracies), len(line.group.rates))
    band = panels.mean(accuracies)
    return Series(line.group.name, panels.mean(seconds).y, band.y, band.low, band.high, line.group.style)


def _none_unseen(experiments: Sequence[PlottedExperiment]) -> Exception:
    evaluations = [
        measured
        for experiment in experiments
        for of_trial in interval_evaluations(experiment).values()
        for measured in of_trial.values()
    ]
    if not evaluations:
        return panels.no_interval_evaluation(experiments)
    if any(measured.HasField("unseen_accuracy") for measured in evaluations):
        return refused(
            f"the evaluations of {experiment_names(experiments)} do not say how long training had taken; workers of an "
            "earlier version made them"
        )
    return refused(
        f"the evaluations during training of {experiment_names(experiments)} have no length above evaluation.seen_up_to: "
        "give longer evaluation.interval_lengths, or a smaller seen_up_to"
    )


def scale_time(result: Picture) -> None:
    """Sets the x axis of seconds of training. Writes them as minutes or hours where that is shorter."""
    longest = max(series.x[-1] for panel in result.panels for series in panel.series)
    unit, name = (3600, "hours") if longest > 3 * 3600 else (60, "minutes") if longest > 600 else (1, "seconds")
    for panel in result.panels:
        for series in panel.series:
            series.x = [x / unit for x in series.x]
    result.x.label = f"training time (wall clock, {name})"
    result.x.range = (0, longest / unit)


def picture(experiments: Sequence[PlottedExperiment], options: Options) -> Picture:
    groups = group_trials(experiments)
    evaluations = {experiment.name: interval_evaluations(experiment) for experiment in experiments}
    names = experiment_names(experiments)
    result = Picture("accuracy_over_time", f"Accuracy over training time: {names}")
    averaging = panels.Averaging()
    titles = [task.experiment.catalogue.accuracy_title(task.task) for task in tasks_of(groups)]
    what = f"on {panels.unseen_of(groups, 'lengths not seen')}"
    result.y = panels.accuracy_axis(f"{common(titles, 'accuracy')} {what}")
    for panel, task, of_this in panels.task_panels(result, groups):
        found = [_series(line, averaging) for line in interval_lines(of_this, evaluations)]
        panel.series += [series for series in found if len(series.x)]
        panels.add_guess(panel, task)
    if not result.panels:
        raise _none_unseen(experiments)
    panels.arrange_panels(result)
    scale_time(result)
    result.caption = (
        "Evaluations do not count as training time. Each member of a pack counts the seconds of the whole pack. Lines end "
        "where the first seed ends."
    )
    sequences = panels.sequences_of(
        measured for of_trials in evaluations.values() for of_trial in of_trials.values() for measured in of_trial.values()
    )
    if sequences:
        panels.add_sentence(result, f"Each evaluation has {sequences} of a length.")
    averaging.describe(panels.choice_of(groups, during_training=True), result)
    return result
