"""Metrics of evaluations by name: "accuracy", "loss", and the names of LengthAccuracies.metrics."""
from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lengthwise._proto import event_pb2
from lengthwise.errors import UsageError
from lengthwise.plots.catalogue import metric_title
from lengthwise.plots.data import PlottedExperiment, experiment_names
from lengthwise.plots.groups import TrialGroup
from lengthwise.plots.panels import accuracy_axis
from lengthwise.plots.picture import Axis


def main_metric(group: TrialGroup) -> str:
    """The task's main metric: its loss if results are compared by loss, otherwise its accuracy."""
    return "loss" if group.experiment.catalogue.compared_by_loss(group.task) else "accuracy"


def is_accuracy(metric: str) -> bool:
    """True for a share of correct answers, from 0 to 1; false for an error, where lower is better."""
    return metric.endswith("accuracy")


def all_by_length(measured: event_pb2.LengthAccuracies, metric: str) -> dict[float, float]:
    """Empty if the evaluation does not have the metric. Losses of evaluations during training may have no bound."""
    if metric == "accuracy":
        values: Sequence[float] = measured.accuracies
    elif metric == "loss":
        values = measured.losses
    else:
        values = next((one.values for one in measured.metrics if one.name == metric), [])
    return dict(zip(measured.lengths, values))


def by_length(measured: event_pb2.LengthAccuracies, metric: str) -> dict[float, float]:
    """The finite ones."""
    found = all_by_length(measured, metric)
    if all(map(math.isfinite, found.values())):
        return found
    return {length: value for length, value in found.items() if math.isfinite(value)}


def common(titles: Iterable[str], otherwise: str) -> str:
    """The title that all tasks of a picture share; `otherwise` if they have several or none."""
    found = set(titles)
    return found.pop() if len(found) == 1 else otherwise


@dataclass(frozen=True)
class ShownMetric:
    name: str
    # Called "token accuracy", "mean squared error", "digits accuracy".
    axis: Axis
    # The tasks are compared by their losses, of which medians are shown.
    is_median: bool = False


def _title(group: TrialGroup, metric: str) -> str:
    if metric == "accuracy":
        return group.experiment.catalogue.accuracy_title(group.task)
    return group.experiment.catalogue.loss_title(group.task) if metric == "loss" else metric_title(metric)


def choose_metric(
    experiments: Sequence[PlottedExperiment], tasks: Sequence[TrialGroup], metric: str, intervals: bool
) -> ShownMetric:
    """`metric`, or if empty the tasks' main metric. UsageError if no evaluation of these experiments has
    it, with those there are, and where some tasks are compared by accuracies and some by losses.
    """
    evaluations = [one for each in experiments for one in each.evaluations(intervals)] if metric else []
    others = {one.name for evaluation in evaluations for one in evaluation.accuracies.metrics}
    names = ["accuracy", "loss", *sorted(others)]
    if evaluations and metric not in names:
        raise UsageError(
            f'--metric: no evaluation of {experiment_names(experiments)} has "{metric}"; there are {", ".join(names)}'
        )
    kinds = {main_metric(task) for task in tasks}
    if len(kinds) > 1:
        raise UsageError("one picture shows accuracies or errors, and these experiments have both; plot them one by one")
    name = metric or next(iter(kinds), "accuracy")
    title = common([_title(task, name) for task in tasks], name)
    axis = accuracy_axis(title) if is_accuracy(name) else Axis(title)
    if name.endswith("percentage_error"):
        axis.ticks = "percent"
    return ShownMetric(name, axis, kinds == {"loss"})
