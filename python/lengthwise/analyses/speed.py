"""Training speed, and time until an accuracy is reached (Ruoss et al. 2023, Figure 2 and its text: 168.4 and 22.1 steps a
second, 90 % reached 35.4 times sooner).
"""
from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

import numpy

from lengthwise import queries
from lengthwise._proto import event_pb2
from lengthwise.analyses.trial_sets import Subject, TrialSet, by_seed
from lengthwise.errors import UsageError, refused


@dataclass(eq=False)
class Speed:
    of: TrialSet
    # For each trained model, steps divided by seconds. Members of a pack count the pack's seconds each.
    steps_per_second: list[float]
    # For each model, seconds of training until an evaluation exceeded the accuracy; infinite if none did.
    seconds: list[float]

    @property
    def models(self) -> int:
        return len(self.seconds)

    @property
    def reached(self) -> int:
        return sum(map(math.isfinite, self.seconds))

    @property
    def median(self) -> float:
        """Seconds of the median model; infinite if at most half of the models reached the accuracy."""
        return float(statistics.median(self.seconds))


def _accuracy(measured: event_pb2.LengthAccuracies) -> float:
    """The mean over the unseen lengths; if no length is unseen, over all."""
    means = (queries.mean(measured, side, by_loss=False) for side in ("unseen", "seen"))
    return next((mean for mean in means if mean is not None), 0.0)


def measure(subject: Subject, accuracy: float) -> list[Speed]:
    """One for each set, in their order. `accuracy`: 0 to 1. FAILED_PRECONDITION for tasks that are compared by loss, which
    are not right or wrong; UsageError for what is no accuracy.
    """
    if not 0 < accuracy < 1:
        raise UsageError(f"--accuracy: got {accuracy:g}, expected a number above 0 and below 1")
    # Of the evaluations during training (evaluation.every_steps) and the final ones.
    evaluations = [one for experiment in subject.experiments for one in experiment.evaluations(intervals=True)]
    seconds_of = queries.seconds_to(evaluations, lambda measured: _accuracy(measured) > accuracy)
    found = []
    for one in subject.sets:
        if one.by_loss:
            continue
        rates, seconds = [], []
        # Those that evaluate others again come last.
        trials = sorted(one.trials, key=lambda trial: bool(trial.specification.evaluated_trial))
        for trial, outcome in by_seed(trials, lambda trial: trial.outcome):
            if outcome.training_seconds > 0:
                rates.append(outcome.training_steps / outcome.training_seconds)
            seconds.append(seconds_of.get(trial.name, math.inf))
        found.append(Speed(one, rates, seconds))
    if not found:
        raise refused(f"the tasks of {subject.names} are compared by their losses: there is no accuracy to be reached")
    return found


def times_faster(one: Speed, others: list[Speed], by: str) -> float | None:
    """Ratio to the slowest of its task. `by`: "steps_per_second" or "seconds". None if either value is unknown."""
    beside = [other for other in others if other.of.task == one.of.task]
    if by == "seconds":
        slowest = max(other.median for other in beside)
        return slowest / one.median if math.isfinite(slowest) and one.median > 0 else None
    means = [float(numpy.mean(other.steps_per_second)) for other in beside if other.steps_per_second]
    return float(numpy.mean(one.steps_per_second)) / min(means) if one.steps_per_second and min(means) > 0 else None
