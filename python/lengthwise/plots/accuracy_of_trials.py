"""Accuracy by length of every single trial, to show the effect of the seeds (Zhou et al. 2024, Figures 10 and 11)."""
from __future__ import annotations

import math
from collections.abc import Sequence

import numpy

from lengthwise.plots import panels
from lengthwise.plots.data import PlottedExperiment, Trial, experiment_names
from lengthwise.plots.groups import best_trial, final_key, final_score, group_trials, seeds_of, tasks_of
from lengthwise.plots.metrics import by_length, choose_metric, common, is_accuracy
from lengthwise.plots.options import Options
from lengthwise.plots.picture import Axis, Panel, Picture
from lengthwise.plots.series_style import SeriesStyle, numbered_style

# Black: no other group has it, unless there are many.
_BEST_TRIAL = SeriesStyle(color=6, marker=0)


def _spread(experiment: PlottedExperiment, trials: Sequence[Trial]) -> tuple[float, float] | None:
    """Standard deviations between weight seeds and between data seeds, by an analysis of variance: of the means over the
    other seeds, less what interaction and chance explain. None unless every weight seed has the same data seeds, at least
    two of each.
    """
    known = {seeds_of(trial): value for trial in trials if (value := final_score(experiment, trial)) is not None}
    weights, data = dict.fromkeys(weight for weight, _ in known), sorted({data for _, data in known})
    if min(len(weights), len(data)) < 2 or len(known) < len(weights) * len(data):
        return None
    scores = numpy.array([[known[weight, seed] for seed in data] for weight in weights])
    of_weights, of_data = scores.mean(axis=1), scores.mean(axis=0)
    rest = scores - of_weights[:, None] - of_data[None, :] + scores.mean()
    chance = float((rest**2).sum()) / ((len(of_weights) - 1) * (len(of_data) - 1))
    between_weights = float(of_weights.var(ddof=1)) - chance / len(of_data)
    between_data = float(of_data.var(ddof=1)) - chance / len(of_weights)
    return math.sqrt(max(between_weights, 0)), math.sqrt(max(between_data, 0))


def picture(experiments: Sequence[PlottedExperiment], options: Options) -> Picture:
    groups = group_trials(experiments)
    tasks = tasks_of(groups)
    shown = choose_metric(experiments, tasks, "", intervals=False)
    result = Picture("accuracy_of_trials", y=shown.axis)
    titles = (task.experiment.catalogue.axis_title(task.task) for task in tasks)
    result.x = Axis(common(titles, "input length"), ticks="counts")
    spreads: list[str] = []
    shades: set[panels.Shade] = set()
    for group in groups:
        trials = group.at_best_rate()
        if not trials:
            continue
        weights, data = (sorted(set(of_trials)) for of_trials in zip(*map(seeds_of, trials)))
        varies_both = min(len(weights), len(data)) > 1 and len(trials) > len(weights)
        finals = group.experiment.final_evaluations()
        panel = Panel(f"{panels.task_title(group)}, {group.name}" if len(tasks) > 1 else group.name)
        best = best_trial(trials, final_key(group.experiment))
        for trial in trials:
            if trial.name not in finals or not finals[trial.name].lengths:
                continue
            curve = by_length(finals[trial.name], shown.name)
            if trial is best and len(trials) > 1:
                panel.series.append(panels.line(curve, _BEST_TRIAL, "the best"))
            if varies_both:
                name = f"weight seed {trial.specification.weight_seed}"
                # Any colour but that of the best trial, then other dashes.
                number = weights.index(trial.specification.weight_seed)
                style = numbered_style(number + number // _BEST_TRIAL.color)
            else:
                name, style = "a trial", SeriesStyle()
            panel.series.append(panels.line(curve, style, name, faint=True))
        if not panel.series:
            continue
        if varies_both and (spread := _spread(group.experiment, trials)) is not None:
            of_weights, of_data = (f"{one:.3g}" if shown.is_median else f"{100 * one:.1f} points" for one in spread)
            spreads.append(f"{panel.title}: {of_weights} between weight seeds, {of_data} between data seeds")
        panels.shade_seen(panel, [group], shades)
        result.panels.append(panel)
    if not result.panels:
        raise panels.no_final_evaluation(experiments)
    panels.arrange_panels(result, "one a task and encoding", "choose some with --task or --encoding")
    result.title = f"Every trial's {result.y.label} by {result.x.label}: {experiment_names(experiments)}"
    axis = common((task.experiment.catalogue.axis(task.task) for task in tasks), "length")
    result.shaded_label = panels.seen_label(shades, axis) if any(shade.trained for shade in shades) else "seen in training"
    panels.set_length_axis(result, tasks)
    if not is_accuracy(shown.name):
        panels.set_loss_axis(result)
    result.caption = f"Thin lines: trials. The best one has {panels.choice_of(groups)}."
    if spreads:
        by_seed = "; ".join(spreads)
        panels.add_sentence(
            result, f"Standard deviations of the mean on {panels.unseen_of(groups)}, by an analysis of variance: {by_seed}."
        )
    panels.add_sentence(result, panels.missing_trials(experiments))
    return result
