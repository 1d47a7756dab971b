"""Figures of digit errors in the answers of text tasks (Zhou et al. 2024, Figures 9 and F.10 to F.12)."""
from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy

from lengthwise._proto import event_pb2
from lengthwise.analyses.recorded import scores_of
from lengthwise.errors import refused
from lengthwise.plots.data import PlottedExperiment, experiment_names
from lengthwise.plots.groups import group_trials, tasks_of
from lengthwise.plots.options import Options
from lengthwise.plots.panels import arrange_panels, line, refuse_best, task_panels
from lengthwise.plots.picture import Axis, Picture


def _sum(columns: Sequence[Sequence[int]]) -> list[float]:
    """Sums lists of counts whose lengths differ, index by index."""
    total = numpy.zeros(max(map(len, columns), default=0))
    for column in columns:
        total[: len(column)] += column
    return [float(value) for value in total]


def _shares(counts: Sequence[float], first: int, of: float) -> dict[float, float]:
    """Shares of `of` by index, for `counts` from index `first`."""
    return {float(i): counts[i] / of for i in range(first, len(counts))} if of > 0 else {}


def _picture(experiments: Sequence[PlottedExperiment], options: Options, of_places: bool) -> Picture:
    refuse_best(options)
    recorded = scores_of(experiments).errors
    names = experiment_names(experiments)
    if not recorded:
        raise refused(
            f"no trial of {names} has recorded what is wrong with its answers; trials on text do at the end of training"
        )
    groups = group_trials(experiments)
    tasks = tasks_of(groups)
    catalogue = tasks[0].experiment.catalogue
    # Answers of a user's files are of symbols, the last of which is not the least significant.
    of_sums = all(catalogue.axis(task.task) == "digits" for task in tasks)
    symbol = "digit" if of_sums else "symbol"
    common = set.intersection(*(set(by_size) for by_size in recorded.values()))
    if not options.length and not common:
        what = "number of digits" if of_sums else "length"
        raise refused(f"the trials of {names} have no {what} in common; choose one with --length")
    # The longest that all trials have.
    size = options.length or max(common)
    errors = {trial: by_size[size] for trial, by_size in recorded.items() if size in by_size}
    at_size = catalogue.length_title(tasks[0].task, size)
    if not errors:
        there = ", ".join(map(str, sorted({one for by_size in recorded.values() for one in by_size})))
        raise refused(
            f"no answers at {at_size} are recorded; there are those at {f'{there} digits' if of_sums else f'length {there}'}"
        )
    if of_places:
        result = Picture("error_places", f"Where {symbol}s are wrong at {at_size}: {names}")
        result.x.label = f"place of the {symbol}, 0 for the {'least significant' if of_sums else 'last'}"
        result.y = Axis("share of answers wrong at this place", ticks="percent")
    else:
        result = Picture("error_counts", f"How many {symbol}s are wrong at {at_size}: {names}")
        result.x.label = f"wrong {symbol}s"
        result.y = Axis("share of the wrong answers", ticks="percent")
    result.x.ticks = "counts"
    carries: list[str] = []
    for panel, _, of_this in task_panels(result, groups):
        for group in of_this:
            found = [errors[trial.name] for trial in group.at_best_rate() if trial.name in errors]

            def shares(some: Sequence[event_pb2.AnswerErrors]) -> dict[float, float]:
                if of_places:
                    # Counts by earlier workers end at the last place that is wrong in some answer.
                    filled = [list(one.wrong_by_place) + [0] * (size - len(one.wrong_by_place)) * of_sums for one in some]
                    return _shares(_sum(filled), 0, sum(one.answers for one in some))
                wrong = sum(sum(one.answers_by_wrong_digits[1:]) for one in some)
                return _shares(_sum([one.answers_by_wrong_digits for one in some]), 1, wrong)

            pooled = shares(found)
            if not pooled:
                continue
            if options.seeds == "all" and len(found) > 1:
                panel.series += [line(curve, group.style, faint=True) for one in found if (curve := shares([one]))]
            panel.series.append(line(pooled, group.style, group.name))
            with_carry = sum(one.first_wrong_with_carry for one in found)
            wrong = with_carry + sum(one.first_wrong_without_carry for one in found)
            if wrong > 0:
                carries.append(f"{100 * with_carry / wrong:.0f} % ({panel.title}, {group.name})")
    if not result.panels and not of_places:
        raise refused(f"no {symbol} of any answer at {at_size} is wrong")
    if not result.panels:
        raise refused(
            f"no trial with the learning rate of the highest accuracy has recorded what is wrong with answers at {at_size}"
        )
    if not any(any(series.y) for panel in result.panels for series in panel.series):
        raise refused(f"no {symbol} of any answer at {at_size} is wrong")
    arrange_panels(result)
    result.y.range = (0.0, max(y for panel in result.panels for series in panel.series for y in series.y))
    result.caption = "All seeds together."
    if options.seeds == "all":
        result.caption = "Thick lines: all seeds together. Thin lines: single seeds."
    if of_places:
        result.caption += " No answer is wrong at further places."
    if carries:
        result.caption += f" Share of the least significant wrong digits with a carry into them: {', '.join(carries)}."
    return result


# Share of all answers that are wrong at each place.
error_places = partial(_picture, of_places=True)
# Distribution of the number of wrong digits among wrong answers.
error_counts = partial(_picture, of_places=False)
