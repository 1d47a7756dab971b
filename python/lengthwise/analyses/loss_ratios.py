"""Ratio of two networks' losses beyond the range of training (positional attention:
"400 to 3,000 times", of the medians of Figure 2, as geometric means over the scales).
"""
from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy

from lengthwise._proto import event_pb2
from lengthwise.analyses.trial_sets import Subject, TrialSet, by_seed, check_reference, training_of
from lengthwise.errors import refused
from lengthwise.published import PublishedTable


@dataclass(eq=False)
class LossRatios:
    of: TrialSet
    reference: TrialSet
    # Median over the models by scale, ascending, at scales unseen in training.
    own: dict[int, float]
    others: dict[int, float]
    models: int
    # The paper's values by scale.
    published: dict[int, float]

    @property
    def ratios(self) -> dict[int, float]:
        """The reference's loss divided by this network's, by scale."""
        return {scale: self.others[scale] / own for scale, own in self.own.items() if own > 0}


def geometric_mean(values: Sequence[float]) -> float:
    return statistics.geometric_mean(values) if values and min(values) > 0 else math.nan


def _medians(finals: Mapping[str, event_pb2.LengthAccuracies], one: TrialSet) -> tuple[dict[int, float], int]:
    """Over the models of different seeds, and how many. `finals`: evaluations by the trial's name."""
    losses: dict[int, list[float]] = {}
    models = by_seed(one.trials, lambda trial: finals.get(trial.name))
    for trial, measured in models:
        for scale, loss in zip(measured.lengths, measured.losses):
            if scale > trial.specification.evaluation.seen_up_to:
                losses.setdefault(scale, []).append(loss)
    return {scale: float(numpy.median(values)) for scale, values in sorted(losses.items())}, len(models)


def published_ratios(table: PublishedTable, one: TrialSet, reference: TrialSet) -> dict[int, float]:
    """By scale; empty if the table does not have both."""

    def losses(of: TrialSet) -> Mapping[int, float]:
        one = of.specification
        places = [place for place in table.places(one.task, one.network, one.encoding) if place in table.cells]
        return {table.columns[place[1]].length: table.cells[place].value for place in reversed(places)}

    own, others = losses(one), losses(reference)
    return {scale: others[scale] / own[scale] for scale in sorted(own.keys() & others.keys()) if own[scale] > 0}


def _partner(one: TrialSet, reference: str, sets: Sequence[TrialSet]) -> TrialSet | None:
    """The set of the network `reference` that was trained as `one`, with the same encoding; None if there is none."""

    def alike(of: TrialSet) -> tuple[str, float, bytes]:
        return of.encoding, of.learning_rate, training_of(of.specification, with_network=False)

    return next((other for other in sets if other.network == reference and alike(other) == alike(one)), None)


def compare(subject: Subject, reference: str, published: PublishedTable | None = None) -> list[LossRatios]:
    """A row for each set of another network that has a set of `reference` with its task, training, encoding and learning
    rate. UsageError for an unknown network; FAILED_PRECONDITION where nothing was evaluated beyond training.
    """
    check_reference(reference, "network", [one.network for one in subject.sets])
    finals, rows = subject.final_evaluations(), []
    for one in subject.sets:
        partner = _partner(one, reference, subject.sets)
        if partner is None or one.network == reference or not one.by_loss:
            continue
        own, models = _medians(finals, one)
        others, _ = _medians(finals, partner)
        both = [scale for scale in own if scale in others]
        if both:
            ratios = published_ratios(published, one, partner) if published else {}
            rows.append(
                LossRatios(
                    one,
                    partner,
                    {scale: own[scale] for scale in both},
                    {scale: others[scale] for scale in both},
                    models,
                    {scale: ratios[scale] for scale in both if scale in ratios},
                )
            )
    if not rows:
        raise refused(
            f"nothing was evaluated beyond training beside {reference}: ratios need trials of a task that is compared by "
            "losses, with another network and the same encoding and learning rate"
        )
    return rows
