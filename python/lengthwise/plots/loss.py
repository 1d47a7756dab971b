"""Loss or accuracy on the training batches over the steps (Zhou et al. 2024, Figures 6, F.2, F.3 and G.2 to G.10)."""
from __future__ import annotations

import math
from collections.abc import Sequence

from lengthwise.errors import UsageError
from lengthwise.plots.data import PlottedExperiment, Trial, experiment_names
from lengthwise.plots.groups import SeedGroup, TrialGroup, best_rate, final_key, group_trials, of_task, tasks_of
from lengthwise.plots.metrics import common
from lengthwise.plots.options import Options
from lengthwise.plots.panels import (
    Averaging,
    Curve,
    accuracy_axis,
    add_sentence,
    arrange_panels,
    choice_of,
    line,
    mean,
    precondition,
    refuse_best,
    set_loss_axis,
    set_step_axis,
    task_title,
)
from lengthwise.plots.picture import Axis, Panel, Picture, Series

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


def _window(points: int) -> int:
    """Points of a running mean over a curve of so many: an odd number, about a tenth."""
    return 1 if points < 10 else points // 10 | 1


def _running_mean(curve: Curve, window: int) -> dict[float, float]:
    """Over as many points on both sides, fewer towards the ends."""
    steps, values = list(curve), list(curve.values())
    result = {}
    for i, step in enumerate(steps):
        reach = min(window // 2, i, len(values) - 1 - i)
        result[step] = math.fsum(values[i - reach : i + reach + 1]) / (2 * reach + 1)
    return result


def _shown_rate(group: TrialGroup, losses: _Curves) -> SeedGroup | None:
    """Orders by accuracy if trials have been evaluated, otherwise by loss."""

    def last_loss(trial: Trial) -> float | None:
        return -next(reversed(losses[trial.name].values())) if trial.name in losses else None

    return best_rate(group, final_key(group.experiment)) or best_rate(group, last_loss)


def picture(experiments: Sequence[PlottedExperiment], options: Options) -> Picture:
    if options.metric not in ("", "loss", "accuracy"):
        raise UsageError(f'--metric: training does not record "{options.metric}"; there are loss, accuracy')
    refuse_best(options)
    of_accuracy = options.metric == "accuracy"
    names = experiment_names(experiments)
    groups = group_trials(experiments)
    losses = {experiment.name: _curves_of(experiment, "loss") for experiment in experiments}
    shown = {experiment.name: _curves_of(experiment, options.metric) for experiment in experiments}
    result = Picture("loss", f"{'Accuracy in training' if of_accuracy else 'Training loss'}: {names}")
    result.x.label = "training step"
    result.y = accuracy_axis("correct outputs of the training batches") if of_accuracy else Axis()
    averaging = Averaging()
    widest = 1

    def automatic(curve: Curve) -> int:
        return 1 if options.seeds == "all" else _window(len(curve))

    if not of_accuracy:
        result.y.label = common((_loss_title(task) for task in tasks_of(groups)), "loss")
    for task in tasks_of(groups):
        panel = Panel(task_title(task))
        for group in of_task(groups, task.task):
            seeds = _shown_rate(group, losses[group.experiment.name])
            of_trials = shown[group.experiment.name]
            curves = []
            for trial in seeds.trials if seeds else []:
                if trial.name not in of_trials:
                    continue
                # The loss of a step depends on its length as much as on what was learned, which hides a mean over seeds. A
                # single trial's is shown as it was, so that a sudden transition is.
                window = options.smooth | 1 if options.smooth else automatic(of_trials[trial.name])
                widest = max(widest, window)
                curves.append(_running_mean(of_trials[trial.name], window))
            if not curves:
                continue
            averaging.count(len(curves), len(group.rates))
            if options.seeds == "all":
                panel.series += [line(curve, group.style, group.name, faint=True) for curve in curves]
                continue
            band = mean(curves)
            if band.x:
                panel.series.append(Series(group.name, band.x, band.y, band.low, band.high, group.style))
        if panel.series:
            result.panels.append(panel)
    if not result.panels:
        raise precondition(
            f"no trial of {names} has recorded a loss yet (training.report_every_steps sets how often one does)"
        )
    arrange_panels(result)
    set_step_axis(result)
    if not of_accuracy:
        set_loss_axis(result)
    what = "Accuracy" if of_accuracy else "Mean loss since the previous point"
    if options.seeds == "all":
        result.caption = f"{what} on the training batches, one line per trial."
        averaging.seeds.clear()
    else:
        result.caption = f"{what} on the training batches, up to the step that all seeds have reached."
    if widest > 1:
        add_sentence(result, f"Running mean over up to {widest} recorded points, because every step has another length.")
    averaging.describe(
        f"{choice_of(groups)}, or the lowest loss where nothing is evaluated yet",
        result,
    )
    return result
