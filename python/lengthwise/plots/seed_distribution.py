"""Scores of all seeds, and the share of seeds above a threshold: length generalisation is often bimodal over seeds, which a
mean hides.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lengthwise.analyses.measures import share_interval
from lengthwise.plots import panels
from lengthwise.plots.data import PlottedExperiment, experiment_names
from lengthwise.plots.groups import final_score, group_trials, tasks_of
from lengthwise.plots.metrics import choose_metric, is_accuracy
from lengthwise.plots.options import Options
from lengthwise.plots.picture import Axis, Picture, Reference, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Points of a column lie this far beside its middle, by the golden ratio, so that equal scores stay apart.
_WIDTH, _GOLDEN = 0.5, (math.sqrt(5) - 1) / 2


def picture(experiments: Sequence[PlottedExperiment], options: Options) -> Picture:
    groups = group_trials(experiments)
    shown = choose_metric(experiments, tasks_of(groups), "", intervals=False)
    result = Picture("seed_distribution", f"Scores of all seeds: {experiment_names(experiments)}", y=shown.axis)
    result.x = Axis(ticks="none")
    result.y.label += f" on {panels.unseen_of(groups)}"
    several_rates = False
    for panel, task, of_this in panels.task_panels(result, groups):
        labels: list[str] = []
        for group in of_this:
            found = [final_score(group.experiment, trial) for trial in group.at_best_rate()]
            scores = [abs(score) for score in found if score is not None]
            if not scores:
                continue
            several_rates |= len(group.rates) > 1
            passed = sum((score > options.threshold) != shown.is_median for score in scores)
            low, high = share_interval(passed, len(scores))
            x = [len(labels) + _WIDTH * (i * _GOLDEN % 1 - 0.5) for i in range(len(scores))]
            panel.series.append(Series(group.name, x, scores, style=group.style, kind="scatter"))
            labels.append(f"{passed} of {len(scores)}\n{100 * low:.0f} to {100 * high:.0f} %")

        def label(axes: Axes, labels: list[str] = labels) -> None:
            axes.set_xticks(range(len(labels)), labels)
            axes.set_xlim(-0.6, len(labels) - 0.4)
            axes.set_aspect("auto")

        panel.draw = label
        panel.references.append(Reference(options.threshold, f"threshold {_as_text(options.threshold, shown.is_median)}"))
        if not shown.is_median:
            panels.add_guess(panel, task)
    if not result.panels:
        raise panels.no_final_evaluation(experiments)
    panels.arrange_panels(result)
    if not is_accuracy(shown.name):
        panels.set_loss_axis(result)
    side = "below" if shown.is_median else "above"
    result.caption = (
        f"Points: seeds. Below each column: how many are {side} {_as_text(options.threshold, shown.is_median)}, and "
        "Wilson's 95 % interval of their share."
    )
    if several_rates:
        panels.add_sentence(result, f"Each encoding has the learning rate with {panels.choice_of(groups)}.")
    panels.add_sentence(result, panels.missing_trials(experiments))
    return result


def _as_text(threshold: float, is_loss: bool) -> str:
    return f"{threshold:g}" if is_loss else f"{100 * threshold:g} %"
