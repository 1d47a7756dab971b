"""Paired t-tests between encodings that were trained with the same seeds (Ito et al., section 3: fifteen seeds).
"""
from __future__ import annotations

from dataclasses import dataclass

from lengthwise.analyses.measures import PairedTest, holm_adjusted, paired_t_test
from lengthwise.analyses.trial_sets import Subject, TrialSet, check_reference, reference_of
from lengthwise.errors import refused


@dataclass(eq=False)
class SeedComparison:
    of: TrialSet
    # Accuracies of the seeds that both have, in the same order.
    own: list[float]
    reference: list[float]
    # Positive if the reference is better; None for fewer than two pairs, or if all differences are the same.
    test: PairedTest | None
    # Seeds of this encoding and of the reference that the other lacks: they do not count.
    own_unpaired: int
    reference_unpaired: int
    # Number of tests against the same trials of the reference, and this one's p value adjusted for it.
    tests: int = 0
    adjusted_p_value: float | None = None


def compare(subject: Subject, reference: str) -> list[SeedComparison]:
    """A row for each set but the reference's own that has a reference of its task, network, training and learning rate.

    UsageError for an unknown reference; FAILED_PRECONDITION where no set shares a seed with it.
    """
    check_reference(reference, "encoding", [one.encoding for one in subject.sets])
    comparisons = []
    # By the reference's set: the comparisons with a test.
    tested: dict[TrialSet, list[SeedComparison]] = {}
    for one in subject.sets:
        partner = reference_of(one, reference, subject.sets)
        if partner is None or partner is one:
            continue
        own, others = subject.accuracies_by_seed(one), subject.accuracies_by_seed(partner)
        both = sorted(own.keys() & others.keys())
        if both:
            values, of_reference = [own[seeds] for seeds in both], [others[seeds] for seeds in both]
            test = paired_t_test(of_reference, values)
            found = SeedComparison(one, values, of_reference, test, len(own) - len(both), len(others) - len(both))
            comparisons.append(found)
            if test is not None:
                tested.setdefault(partner, []).append(found)
    for family in tested.values():
        p_values = [found.test.p_value for found in family if found.test is not None]
        for found, adjusted in zip(family, holm_adjusted(p_values)):
            found.tests, found.adjusted_p_value = len(family), adjusted
    if not comparisons:
        raise refused(
            f"no other encoding was evaluated with a seed of {reference}; a paired test needs trials with the same task, "
            "network, training, learning rate and seeds"
        )
    return comparisons
