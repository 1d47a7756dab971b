"""Loss or accuracy on the training batches over the steps (Zhou et al. 2024, Figures 6, F.2, F.3 and G.2 to G.10)."""
from __future__ import annotations

import math
from collections.abc import Sequence

import numpy

from lengthwise.errors import UsageError, refused
from lengthwise.plots import panels
from lengthwise.plots.accuracy_over_time import scale_time
from lengthwise.plots.data import PlottedExperiment, Trial, experiment_names
from lengthwise.plots.groups import Key, TrialGroup, best_rate, group_trials, tasks_of
from lengthwise.plots.metrics import common
from lengthwise.plots.options import Options
from lengthwise.plots.picture import Axis, Picture, Series
from lengthwise.queries import has_time

# By trial.
_Curves = dict[str, dict[float, float]]


def _curves_of(experiment: PlottedExperiment, metric: str) -> _Curves:
    found: _Curves = {}
    for curve in experiment.loss_curves():
        points = curve.points
        # Servers of earlier releases know the losses of single batches alone.
        values = points.accuracies if metric == "accuracy" else points.mean_losses or points.losses
        finite = {float(step): value for step, value in zip(points.steps, values) if math.isfinite(value)}
        if finite:
            found[curve.trial] = finite
    return found


def _loss_title(task: TrialGroup) -> str:
    title = task.experiment.catalogue.loss_title(task.task)
    return f"{title}, nats" if title == "cross-entropy" else title


def _running_mean(curve: panels.Curve, window: int) -> dict[float, float]:
    """Over as many points on both sides, fewer towards the ends."""
    steps, values = list(curve), list(curve.values())
    result = {}
    for i, step in enumerate(steps):
        reach = min(window // 2, i, len(values) - 1 - i)
        result[step] = math.fsum(values[i - reach : i + reach + 1]) / (2 * reach + 1)
    return result


def _shown_rate(group: TrialGroup, losses: _Curves) -> list[Trial]:
    """Orders by accuracy if trials have been evaluated, otherwise by loss."""

    def last_loss(trial: Trial) -> Key | None:
        return (-next(reversed(losses[trial.name].values())),) if trial.name in losses else None

    return group.at_best_rate() or best_rate(group, last_loss)


class _Clock:
    """How long each trial had trained: known at its evaluations, in proportion to the steps between them."""

    def __init__(self, experiments: Sequence[PlottedExperiment]) -> None:
        self._known: dict[str, dict[int, float]] = {}
        for one in (one for experiment in experiments for one in experiment.evaluations(intervals=True)):
            if has_time(one.step, one.accuracies):
                self._known.setdefault(one.trial, {0: 0.0})[one.step] = one.accuracies.training_seconds

    def known(self, curves: _Curves) -> _Curves:
        """Without what came after a trial's last evaluation."""
        last = {trial: max(times) for trial, times in self._known.items()}
        early = {
            trial: {step: value for step, value in curve.items() if step <= last.get(trial, -1)}
            for trial, curve in curves.items()
        }
        return {trial: curve for trial, curve in early.items() if curve}

    def seconds(self, steps: Sequence[float], trials: Sequence[str]) -> list[float]:
        """The mean over the trials."""
        known = [sorted(self._known[trial].items()) for trial in trials]
        of_trials = [numpy.interp(steps, [step for step, _ in one], [second for _, second in one]) for one in known]
        return [float(second) for second in numpy.mean(of_trials, axis=0)]


def loss_over_time(experiments: Sequence[PlottedExperiment], options: Options) -> Picture:
    return picture(experiments, options, _Clock(experiments))


def picture(experiments: Sequence[PlottedExperiment], options: Options, clock: _Clock | None = None) -> Picture:
    """By step; with a clock, by seconds of training."""
    if options.metric not in ("", "loss", "accuracy"):
        raise UsageError(f'--metric: training does not record "{options.metric}"; there are loss, accuracy')
    panels.refuse_best(options)
    of_accuracy = options.metric == "accuracy"
    names = experiment_names(experiments)
    groups = group_trials(experiments)
    losses = {experiment.name: _curves_of(experiment, "loss") for experiment in experiments}
    shown = {one.name: _curves_of(one, "accuracy") for one in experiments} if of_accuracy else losses
    if clock:
        losses, shown = ({name: clock.known(one) for name, one in both.items()} for both in (losses, shown))
    name = "loss_over_time" if clock else "loss"
    result = Picture(name, f"{'Accuracy in training' if of_accuracy else 'Training loss'}: {names}")
    result.x.label = "training step"
    result.y = panels.accuracy_axis("correct outputs of the training batches") if of_accuracy else Axis()
    averaging = panels.Averaging()
    widest = 1

    if not of_accuracy:
        result.y.label = common((_loss_title(task) for task in tasks_of(groups)), "loss")
    for panel, _, of_this in panels.task_panels(result, groups):
        trials: list[list[str]] = []  # of each line
        for group in of_this:
            of_trials = shown[group.experiment.name]
            curves = []
            chosen = _shown_rate(group, losses[group.experiment.name])
            drawn = [trial.name for trial in chosen if trial.name in of_trials]
            for trial in drawn:
                # The loss of a step depends on its length as much as on what was learned, which hides a mean over seeds. A
                # single trial's is shown as it was, so that a sudden transition is.
                # Without --smooth, an odd number of points, about a tenth.
                points = len(of_trials[trial]) if options.seeds != "all" else 1
                window = (options.smooth or points // 10) | 1
                widest = max(widest, window)
                curves.append(_running_mean(of_trials[trial], window))
            if not curves:
                continue
            averaging.count(len(curves), len(group.rates))
            if options.seeds == "all":
                panel.series += [panels.line(curve, group.style, group.name, faint=True) for curve in curves]
                trials += [[trial] for trial in drawn]
                continue
            band = panels.mean(curves)
            if band.x:
                panel.series.append(Series(group.name, band.x, band.y, band.low, band.high, group.style))
                trials.append(drawn)
        if clock:
            for series, of_series in zip(panel.series, trials):
                series.x = clock.seconds(series.x, of_series)
    if not result.panels:
        if clock and any(map(PlottedExperiment.loss_curves, experiments)):
            raise refused(
                f"no evaluation of {names} says yet how long training had taken (evaluation.every_steps makes them earlier)"
            )
        raise refused(
            f"no trial of {names} has recorded a loss yet (training.report_every_steps sets how often one does)"
        )
    panels.arrange_panels(result)
    if clock:
        scale_time(result)
    else:
        panels.set_step_axis(result)
    if not of_accuracy:
        panels.set_loss_axis(result)
    what = "Accuracy" if of_accuracy else "Mean loss since the previous point"
    if options.seeds == "all":
        result.caption = f"{what} on the training batches, one line per trial."
        averaging.seeds.clear()
    else:
        result.caption = f"{what} on the training batches, up to the step that all seeds have reached."
    if clock:
        panels.add_sentence(result, "Time is known at evaluations, and in proportion to the steps between them.")
    if widest > 1:
        running = f"Running mean over up to {widest} recorded points"
        panels.add_sentence(result, f"{running}, because every step has another length.")
    averaging.describe(
        f"{panels.choice_of(groups)}, or the lowest loss where nothing is evaluated yet",
        result,
    )
    return result
