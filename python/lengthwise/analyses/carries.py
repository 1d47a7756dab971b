"""Errors of sums by carry (Zhou et al. 2024, Figure 9) and by length of the carry chain, beside the base rate.

Only the least significant wrong digit of an answer counts: more significant ones may be wrong because of it.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy
from numpy.typing import NDArray

from lengthwise.analyses.measures import share_interval
from lengthwise.analyses.recorded import scores_of
from lengthwise.analyses.trial_sets import Subject, TrialSet, by_seed
from lengthwise.errors import UsageError, damaged, refused
from lengthwise.published import parameter_of

Array = NDArray[numpy.float64]
T = TypeVar("T")
# The greatest length of a specification.
_MOST_DIGITS = 100_000


def carry_probabilities(digits: int, leading_zeros: bool) -> Array:
    """[digits + 1]: how likely there is a carry into each place, 0 the least significant, of two random operands. Digits are
    uniform from 0 to 9; the most significant of two or more from 1 to 9 unless `leading_zeros`.
    """
    found = numpy.zeros(digits + 1)
    for place in range(digits):
        choices = range(1, 10) if place == digits - 1 > 0 and not leading_zeros else range(10)
        sums = numpy.add.outer(choices, choices)
        found[place + 1] = (sums > 9).mean() + (sums == 9).mean() * found[place]
    return found


@dataclass(eq=False)
class CarryErrors:
    """Errors of one set at one number of digits, all seeds together."""

    of: TrialSet
    digits: int
    models: int
    answers: int
    # By place, 0 the least significant; of a group, by its places alone: answers whose least significant wrong digit is
    # there, with a carry into it, without,
    with_carry: Array
    without_carry: Array
    # and the probability of a carry into it for random operands.
    base_rate: Array

    @property
    def errors(self) -> int:
        return int(self.with_carry.sum() + self.without_carry.sum())

    @property
    def share(self) -> float | None:
        """Share of the errors that have a carry; None without errors."""
        return float(self.with_carry.sum()) / self.errors if self.errors else None

    @property
    def expected(self) -> float | None:
        """The share expected if carries had no effect: the mean of the base rate over the places of the errors."""
        return float((self.with_carry + self.without_carry) @ self.base_rate) / self.errors if self.errors else None

    def interval(self) -> tuple[float, float] | None:
        """Confidence interval of the share."""
        return share_interval(int(self.with_carry.sum()), self.errors) if self.errors else None

    def groups(self, most: int) -> dict[float, CarryErrors]:
        """The places into which a carry may come in at most so many groups of nearly equal size, by their middles."""
        places = numpy.arange(1, self.digits + 1)
        return {
            float(group.mean()): replace(
                self,
                with_carry=self.with_carry[group],
                without_carry=self.without_carry[group],
                base_rate=self.base_rate[group],
            )
            for group in numpy.array_split(places, min(most, len(places)))
        }

    def p_value(self) -> float | None:
        """Two-sided, of as many carries at these places where they make no difference: their number is then a sum of
        independent binomial counts, one a place with its base rate. Twice the smaller tail, at most 1; a tail below 1e-12 is
        not exact.
        """
        if not self.errors:
            return None
        import scipy.signal
        import scipy.stats

        # scipy.stats.poisson_binom is quadratic in the errors.
        law: Array = numpy.ones(1)
        for errors, base_rate in zip((self.with_carry + self.without_carry).astype(int), self.base_rate):
            of_place = scipy.stats.binom.pmf(numpy.arange(errors + 1), errors, base_rate)
            law = numpy.maximum(scipy.signal.fftconvolve(law, of_place), 0)
        count = int(self.with_carry.sum())
        return float(min(1.0, 2 * min(law[: count + 1].sum(), law[count:].sum())))

    def accuracies(self) -> tuple[Array, Array]:
        """By place, of the answers that are right up to it: the share whose digit there is right, among those with a carry
        into it and those without. How many have one is not stored of right answers: the base rate says it. Not a number
        where nobody has one.
        """
        before = numpy.concatenate([[0.0], numpy.cumsum(self.with_carry + self.without_carry)[:-1]])
        reached = self.answers - before
        with numpy.errstate(divide="ignore", invalid="ignore"):
            with_carry = 1 - self.with_carry / (reached * self.base_rate)
            without = 1 - self.without_carry / (reached * (1 - self.base_rate))
        with_carry[reached * self.base_rate == 0] = numpy.nan
        return numpy.clip(with_carry, 0, 1), numpy.clip(without, 0, 1)


def _of_sums(
    subject: Subject, recorded: Mapping[str, Mapping[int, T]], digits: int, missing: str
) -> tuple[int, list[tuple[TrialSet, list[T]]]]:
    """Selects from `recorded`, by trial and number of digits, the records of each set at `digits`; 0: the largest that all
    sets have. FAILED_PRECONDITION with `missing` if there are none; UsageError for a number that no set has.
    """
    found: list[tuple[TrialSet, list[Mapping[int, T]]]] = []
    for one in subject.sets:
        if one.specification.task.name == "decimal_addition":
            of_seeds = by_seed(one.trials, lambda trial: recorded.get(trial.name))
            if of_seeds:
                found.append((one, [by_size for _, by_size in of_seeds]))
    if not found:
        raise refused(missing)
    sizes = [set(by_size) for _, of_set in found for by_size in of_set]
    common = set.intersection(*sizes)
    if digits == 0 and not common:
        raise refused("the trials have no number of digits in common; choose one with --length")
    size = digits or max(common)
    if not 0 < size <= _MOST_DIGITS:
        raise damaged(f"the server's answers are to sums of {size} digits, which no task has")
    rows = [(one, [by_size[size] for by_size in of_set if size in by_size]) for one, of_set in found]
    rows = [(one, of_size) for one, of_size in rows if of_size]
    if not rows:
        there = sorted(set().union(*sizes))
        raise UsageError(f"no answers at {size} digits are recorded; there are those at {', '.join(map(str, there))} digits")
    return size, rows


def measure(subject: Subject, digits: int = 0) -> list[CarryErrors]:
    """One for each set that has scores of single answers to sums, at this number of digits; 0: the largest that all sets
    have.

    FAILED_PRECONDITION where none has, and how to record them; UsageError for a number of digits that none has.
    """
    missing = (
        f"no trial of {subject.names} has scores of single answers to sums; set evaluation.sequence_scores, or evaluate "
        "stored models with `lengthwise evaluate TRIAL --sequence_scores`"
    )
    size, of_sets = _of_sums(subject, scores_of(subject.experiments).sequences, digits, missing)
    rows = []
    for one, of_size in of_sets:
        counts = numpy.zeros((2, size + 1))
        for recorded in of_size:
            for answer in recorded.wrong_answers:
                # No place if there are too many digits.
                if answer.places and 0 <= answer.places[0] <= size:
                    counts[int(answer.carry_into_first), answer.places[0]] += 1
        answers = sum(len(recorded.accuracies) for recorded in of_size)
        base = carry_probabilities(size, bool(parameter_of(one.specification.task, "leading_zeros")))
        rows.append(CarryErrors(one, size, len(of_size), answers, counts[1], counts[0], base))
    return rows


@dataclass(eq=False)
class CarryChains:
    """Digits of one set at one number of digits, all seeds together, by length of the carry chain; 0: no carry."""

    of: TrialSet
    digits: int
    models: int
    # Places of the answers up to and with the least significant wrong one, and such wrong ones.
    places: Array
    wrong: Array

    @property
    def base_rate(self) -> Array:
        """The share of these places."""
        share: Array = self.places / self.places.sum()
        return share

    def accuracy(self, distance: int) -> float | None:
        """The share whose digit is right; None without such places."""
        return 1 - float(self.wrong[distance] / self.places[distance]) if self.places[distance] else None

    def interval(self, distance: int) -> tuple[float, float]:
        """Confidence interval of the accuracy."""
        return share_interval(int(self.places[distance] - self.wrong[distance]), int(self.places[distance]))


def measure_chains(subject: Subject, digits: int = 0) -> list[CarryChains]:
    """One for each set of sums, at this number of digits; 0: the largest that all sets have. Errors are those of measure().
    """
    recorded = {
        trial: known
        for trial, by_size in scores_of(subject.experiments).errors.items()
        if (known := {size: errors for size, errors in by_size.items() if errors.places_by_carry})
    }
    missing = (
        f"no trial of {subject.names} has recorded how far carries came; the final evaluation of sums does, with workers of "
        "this version: `lengthwise evaluate TRIAL` evaluates stored models again"
    )
    size, of_sets = _of_sums(subject, recorded, digits, missing)
    rows = []
    for one, of_size in of_sets:
        counts = numpy.zeros((2, max(len(errors.places_by_carry) for errors in of_size)))
        for errors in of_size:
            counts[0, : len(errors.places_by_carry)] += errors.places_by_carry
            counts[1, : len(errors.wrong_by_carry)] += errors.wrong_by_carry
        rows.append(CarryChains(one, size, len(of_size), *counts))
    return rows
