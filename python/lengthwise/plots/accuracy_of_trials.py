"""Accuracy by length of every single trial, to show the effect of the seeds (Zhou et al. 2024, Figures 10 and 11)."""
from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from lengthwise.plots.data import PlottedExperiment, experiment_names
from lengthwise.plots.groups import (
    SeedGroup,
    TrialScore,
    best_rate,
    best_trial,
    final_evaluations,
    final_score,
    group_trials,
    of_task,
    tasks_of,
)
from lengthwise.plots.metrics import by_length
from lengthwise.plots.options import Options
from lengthwise.plots.panels import (
    accuracy_axis,
    add_sentence,
    arrange_panels,
    line,
    missing_trials,
    no_final_evaluation,
    set_length_axis,
    task_title,
    training_lengths,
)
from lengthwise.plots.picture import Axis, Panel, Picture
from lengthwise.plots.series_style import SeriesStyle

# Black: no other group has it, unless there are many.
_BEST_TRIAL = SeriesStyle(color=6, marker=0)


@dataclass
class _SeedGrid:
    """Trials by seeds: every weight seed with every data seed, or pairs of both."""

    weights: list[int]
    data: list[int]
    trials: int
    # Trials by weight seed.
    scores: dict[int, list[float]] = field(default_factory=dict)

    @property
    def varies_both(self) -> bool:
        return len(self.weights) > 1 and len(self.data) > 1 and self.trials > len(self.weights)

    def spread(self) -> str:
        """Standard deviations between and within weight seeds, as text."""
        between = statistics.pstdev([statistics.fmean(scores) for scores in self.scores.values()])
        within = math.sqrt(statistics.fmean([statistics.pvariance(scores) for scores in self.scores.values()]))
        return f"{100 * between:.1f} points between weight seeds, {100 * within:.1f} between data seeds"


def _grid_of(seeds: SeedGroup, score: TrialScore) -> _SeedGrid:
    specifications = [trial.specification for trial in seeds.trials]
    weights = sorted({one.weight_seed for one in specifications})
    grid = _SeedGrid(weights, sorted({one.data_seed for one in specifications}), len(specifications))
    for trial in seeds.trials:
        value = score(trial)
        if value is not None:
            grid.scores.setdefault(trial.specification.weight_seed, []).append(value)
    return grid


def picture(experiments: Sequence[PlottedExperiment], options: Options) -> Picture:
    groups = group_trials(experiments)
    several_tasks = len(tasks_of(groups)) > 1
    result = Picture("accuracy_of_trials", y=accuracy_axis(""))
    spreads: list[str] = []
    for group in groups:
        result.x = Axis(group.experiment.catalogue.axis_title(group.task), ticks="counts")
        result.y.label = group.experiment.catalogue.accuracy_title(group.task)
        score = final_score(group.experiment)
        seeds = best_rate(group, score)
        if seeds is None:
            continue
        grid = _grid_of(seeds, score)
        finals = final_evaluations(group.experiment)
        panel = Panel(f"{task_title(group)}, {group.name}" if several_tasks else group.name)
        best = best_trial(seeds.trials, score)
        for trial in seeds.trials:
            if trial.name not in finals or not finals[trial.name].lengths:
                continue
            curve = by_length(finals[trial.name], "accuracy")
            if trial is best and len(seeds.trials) > 1:
                panel.series.append(line(curve, _BEST_TRIAL, "the best"))
            if grid.varies_both:
                number = grid.weights.index(trial.specification.weight_seed)
                name, style = f"weight seed {trial.specification.weight_seed}", SeriesStyle(number, number)
            else:
                name, style = "a trial", SeriesStyle()
            panel.series.append(line(curve, style, name, faint=True))
        if not panel.series:
            continue
        if grid.varies_both:
            spreads.append(f"{panel.title}: {grid.spread()}")
        panel.shaded = training_lengths(of_task(groups, group.task))
        result.panels.append(panel)
    if not result.panels:
        raise no_final_evaluation(experiments)
    arrange_panels(result, "one a task and encoding", "choose some with --task or --encoding")
    result.title = f"Every trial's {result.y.label} by {result.x.label}: {experiment_names(experiments)}"
    result.shaded_label = "seen in training"
    set_length_axis(result)
    result.caption = "A thin line a trial; the best has the highest mean on what was not seen."
    if spreads:
        add_sentence(result, f"Standard deviation of that mean: {'; '.join(spreads)}.")
    add_sentence(result, missing_trials(experiments))
    return result
