"""Accuracy over the steps, or epochs, of training: at single lengths of every trial (Zhou et al. 2024, F.4 to F.7 and
F.9), or the mean over all lengths (the validation accuracies of Figures 2B and 8A on Latin squares).
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lengthwise._proto import event_pb2
from lengthwise.errors import NothingChoosesError, UsageError
from lengthwise.plots import panels
from lengthwise.plots.data import PlottedExperiment, Trial, experiment_names
from lengthwise.plots.groups import Key, TrialGroup, best_rate, choice_key, group_trials, of_task, tasks_of
from lengthwise.plots.metrics import ShownMetric, all_by_length, choose_metric, common, is_accuracy, main_metric
from lengthwise.plots.options import Options
from lengthwise.plots.picture import Panel, Picture, Series
from lengthwise.plots.seen_lengths import SeenLengths
from lengthwise.published import steps_per_epoch

# The evaluations of a trial during training, by step.
Evaluations = dict[int, event_pb2.LengthAccuracies]


def interval_evaluations(experiment: PlottedExperiment, with_finals: bool = False) -> dict[str, Evaluations]:
    """Evaluations by trial, in the order of steps. `with_finals` includes the final evaluation if no other has its step."""
    found: dict[str, Evaluations] = {}
    for one in experiment.evaluations(intervals=True):
        if not one.accuracies.final:
            found.setdefault(one.trial, {})[one.step] = one.accuracies
    if with_finals:
        for one in experiment.evaluations(intervals=True):
            if one.accuracies.final and one.trial in found:
                found[one.trial].setdefault(one.step, one.accuracies)
    return {trial: dict(sorted(of_trial.items())) for trial, of_trial in found.items()}


@dataclass(frozen=True)
class IntervalLine:
    """A group's trials with the shown learning rate, chosen at their last evaluations during training."""

    group: TrialGroup
    trials: list[Trial]
    evaluations: dict[str, Evaluations]

    def add_to(
        self, panel: Panel, curve_of: Callable[[Trial, Evaluations], panels.Curve], averaging: panels.Averaging
    ) -> None:
        evaluated = [trial for trial in self.trials if trial.name in self.evaluations]
        curves = [curve for trial in evaluated if (curve := curve_of(trial, self.evaluations[trial.name]))]
        band = averaging.band(curves)
        if not band.x:
            return
        averaging.count(len(curves), len(self.group.rates))
        # The thin lines show the spread.
        if len(curves) > 1:
            panel.series += [panels.line(curve, self.group.style, faint=True) for curve in curves]
        panel.series.append(Series(self.group.name, band.x, band.y, style=self.group.style))


def interval_lines(groups: Sequence[TrialGroup], evaluations: dict[str, dict[str, Evaluations]]) -> list[IntervalLine]:
    """Of the groups that have some. `evaluations`: by experiment and trial."""
    found = []
    for group in groups:
        of_trials = evaluations[group.experiment.name]

        def key_of(trial: Trial, group: TrialGroup = group, of_trials: dict[str, Evaluations] = of_trials) -> Key | None:
            if trial.name not in of_trials:
                return None
            intervals = [one for one in of_trials[trial.name].values() if not one.final]
            return choice_key(group.experiment, trial, intervals[-1])

        try:
            trials = best_rate(group, key_of)
        except NothingChoosesError:
            raise NothingChoosesError("give a seen length in evaluation.interval_lengths") from None
        if not trials and len(group.rates) == 1:  # the last values of all are not finite
            trials = [trial for trial in group.trials if trial.name in of_trials]
        if trials:
            found.append(IntervalLine(group, trials, of_trials))
    return found


def _start(
    kind: str, experiments: Sequence[PlottedExperiment], options: Options
) -> tuple[Picture, list[TrialGroup], ShownMetric, panels.Averaging]:
    groups = group_trials(experiments)
    shown = choose_metric(experiments, tasks_of(groups), options.metric, intervals=True)
    result = Picture(kind, y=shown.axis)
    result.x.label = "training step"
    return result, groups, shown, panels.Averaging(is_median=shown.is_median)


def _tell_left_out(result: Picture, shown: ShownMetric, left_out: set[tuple[str, int]]) -> None:
    """`left_out`: evaluations, by trial and step, that have a value without bound where a line would show it."""
    if left_out:
        have = "1 evaluation has" if len(left_out) == 1 else f"{len(left_out)} evaluations have"
        what = "loss" if shown.name == "loss" else "value"
        panels.add_sentence(result, f"{have} a {what} that is not finite, which is left out.")


def _finish(
    result: Picture, experiments: Sequence[PlottedExperiment], shown: ShownMetric, averaging: panels.Averaging, what: str
) -> None:
    result.title = f"{panels.capitalized(result.y.label)} over {what}: {experiment_names(experiments)}"
    panels.set_step_axis(result)
    if not is_accuracy(shown.name):
        panels.set_loss_axis(result)
    if averaging.has_means:
        average = "median" if averaging.is_median else "mean"
        thick = f"Thick lines: their {average}, up to the step that all have reached."
        panels.add_sentence(result, f"Thin lines: trials. {thick}")
        averaging.seeds.clear()
    averaging.describe(panels.choice_of(group_trials(experiments), during_training=True), result)


def _panel_title(group: TrialGroup, length: int, name_task: bool) -> str:
    """ "30 digits, seen in training"."""
    title = group.experiment.catalogue.length_title(group.task, length)
    seen = SeenLengths.by(group.trials[0])
    if length <= seen.up_to:
        title += ", seen in training" if seen.in_training(length) else ", counted as seen"
    return f"{panels.task_title(group)}, {title}" if name_task else title


def picture(experiments: Sequence[PlottedExperiment], options: Options) -> Picture:
    result, groups, shown, averaging = _start("accuracy_over_steps", experiments, options)
    evaluations = {experiment.name: interval_evaluations(experiment) for experiment in experiments}
    tasks = tasks_of(groups)
    recorded: set[int] = set()
    left_out: set[tuple[str, int]] = set()
    for task in tasks:
        lines = interval_lines(of_task(groups, task.task), evaluations)
        lengths = sorted(
            {
                length
                for one in lines
                for trial in one.trials
                for measured in one.evaluations.get(trial.name, {}).values()
                for length in measured.lengths
            }
        )
        recorded.update(lengths)
        for length in lengths:
            if options.length not in (None, length):
                continue
            panel = Panel(_panel_title(lines[0].group, length, len(tasks) > 1))

            def at_length(trial: Trial, of_trial: Evaluations, length: int = length) -> panels.Curve:
                curves = {step: all_by_length(measured, shown.name) for step, measured in of_trial.items()}
                found = {step: curve[length] for step, curve in curves.items() if length in curve}
                left_out.update((trial.name, step) for step, value in found.items() if not math.isfinite(value))
                return {float(step): value for step, value in found.items() if math.isfinite(value)}

            for one in lines:
                one.add_to(panel, at_length, averaging)
            if panel.series:
                result.panels.append(panel)
    if not result.panels and recorded and options.length not in recorded:
        raise UsageError(
            f"no evaluations during training at length {options.length}; there are those at "
            f"{', '.join(map(str, sorted(recorded)))}"
        )
    if not result.panels:
        raise panels.no_interval_evaluation(experiments)
    panels.arrange_panels(result, "one a task and length", "choose with --task or --length")
    _finish(result, experiments, shown, averaging, "training")
    _tell_left_out(result, shown, left_out)
    return result


def accuracy_over_epochs(experiments: Sequence[PlottedExperiment], options: Options) -> Picture:
    """The mean over all evaluated lengths, by epochs of the stored training set; by steps if training has no epochs."""
    result, groups, shown, averaging = _start("accuracy_over_epochs", experiments, options)
    evaluations = {experiment.name: interval_evaluations(experiment, with_finals=True) for experiment in experiments}
    left_out: set[tuple[str, int]] = set()
    stored = all(steps_per_epoch(group.trials[0].specification.training) > 0 for group in groups)
    for panel, task, of_this in panels.task_panels(result, groups):

        def mean_over_lengths(trial: Trial, of_trial: Evaluations) -> panels.Curve:
            unit = steps_per_epoch(trial.specification.training) if stored else 1
            curve = {}
            for step, measured in of_trial.items():
                values = list(all_by_length(measured, shown.name).values())
                if not all(map(math.isfinite, values)):
                    # A mean over fewer lengths is another quantity.
                    left_out.add((trial.name, step))
                elif values:
                    curve[step / unit] = math.fsum(values) / len(values)
            return curve

        for one in interval_lines(of_this, evaluations):
            one.add_to(panel, mean_over_lengths, averaging)
        if shown.name == main_metric(task):
            panels.add_guess(panel, task)
    if not result.panels:
        raise panels.no_interval_evaluation(experiments)
    panels.arrange_panels(result)
    axes = common((task.experiment.catalogue.axis_values(task.task) for task in tasks_of(groups)), "lengths")
    result.caption = f"Mean over the {axes} that are evaluated during training."
    _finish(result, experiments, shown, averaging, "epochs" if stored else "training")
    _tell_left_out(result, shown, left_out)
    if stored:
        result.x.label = "epoch"
        result.x.range = (0, max(series.x[-1] for panel in result.panels for series in panel.series))
    return result
