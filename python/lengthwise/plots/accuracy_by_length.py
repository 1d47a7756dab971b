"""Accuracy by length after training, a panel a task (Ruoss et al. 2023, Figure 4; Zhou et al. 2024, Figures 1 and 3)."""
from __future__ import annotations

from collections.abc import Sequence

from lengthwise._proto import event_pb2
from lengthwise.plots import panels
from lengthwise.plots.data import PlottedExperiment, experiment_names
from lengthwise.plots.groups import best_trial, final_key, group_trials, joined, of_task, tasks_of
from lengthwise.plots.metrics import by_length, choose_metric, common, is_accuracy, main_metric
from lengthwise.plots.options import Options
from lengthwise.plots.picture import Axis, Panel, Picture, Series


def picture(experiments: Sequence[PlottedExperiment], options: Options) -> Picture:
    groups = group_trials(experiments)
    tasks = tasks_of(groups)
    shown = choose_metric(experiments, tasks, options.metric, intervals=False)
    names = experiment_names(experiments)
    result = Picture("accuracy_by_length", f"Accuracy by length: {names}", y=shown.axis)
    result.x = Axis("input length", ticks="counts")
    result.x.label = common((task.experiment.catalogue.axis_title(task.task) for task in tasks), "input length")
    if options.metric or result.x.label != "input length":
        what = result.y.label if options.metric else "accuracy" if is_accuracy(shown.name) else "error"
        result.title = f"{panels.capitalized(what)} by {result.x.label}: {names}"
    averaging = panels.Averaging(is_median=shown.is_median)
    shades: set[panels.Shade] = set()
    drawn: dict[str, event_pb2.LengthAccuracies] = {}
    steps: list[int] = []
    for task in tasks[:1] if options.together else tasks:
        panel = Panel(" and ".join(map(panels.task_title, tasks)) if options.together else panels.task_title(task))
        of_this = joined(groups) if options.together else of_task(groups, task.task)
        for group in of_this:
            seeds = group.at_best_rate()
            finals = group.experiment.final_evaluations()
            curves = {one.name: by_length(finals[one.name], shown.name) for one in seeds if one.name in finals}
            band = averaging.band(list(curves.values()))
            if not band.x:
                continue
            averaging.count(sum(map(bool, curves.values())), len(group.rates))
            drawn.update((name, finals[name]) for name in curves)
            steps += [one.outcome.training_steps for one in seeds if one.name in curves]
            if options.seeds in ("all", "best") and len(curves) > 1:
                panel.series += [panels.line(curve, group.style, faint=True) for curve in curves.values() if curve]
            if options.seeds == "best":
                best = best_trial(seeds, final_key(group.experiment))
                panel.series.append(panels.line(curves[best.name] if best else {}, group.style, group.name))
            elif options.seeds == "all":
                panel.series.append(Series(group.name, band.x, band.y, style=group.style))
            else:
                panel.series.append(Series(group.name, band.x, band.y, band.low, band.high, group.style))
        if not panel.series:
            continue
        panels.shade_seen(panel, of_this, shades)
        if shown.name == main_metric(task):
            panels.add_guess(panel, task)
        result.panels.append(panel)
    if not result.panels:
        raise panels.no_final_evaluation(experiments)
    panels.arrange_panels(result)
    panels.set_length_axis(result, tasks)
    axis = common((task.experiment.catalogue.axis(task.task) for task in tasks), "length")
    result.shaded_label = panels.seen_label(shades, axis)
    if not is_accuracy(shown.name):
        panels.set_loss_axis(result)
    result.caption = panels.missing_trials(experiments)
    for sentence, extent in (
        ("Trials of {}.", panels.between(steps, "step")),
        ("Each trial's points are of {}.", panels.sequences_of(drawn.values())),
    ):
        if extent:
            panels.add_sentence(result, sentence.format(extent))
    choice = panels.choice_of(groups)
    if options.seeds == "best" and averaging.has_means:
        panels.add_sentence(
            result,
            f"Thick lines: of {panels.at_most(averaging.seeds, 'seed')} the one with {choice}. Thin lines: all seeds.",
        )
        averaging.seeds.clear()
    averaging.describe(choice, result)
    if options.seeds == "all":
        result.band_caption = "Thin lines: all seeds." if averaging.has_means else ""
    return result
