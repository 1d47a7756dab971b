"""Paired t-tests between encodings that were trained with the same seeds (Ito et al., section 3: fifteen seeds).
"""
from __future__ import annotations

from dataclasses import dataclass

from lengthwise.analyses.measures import PairedTest, paired_t_test
from lengthwise.analyses.trial_sets import Subject, TrialSet, cannot, check_reference, reference_of


@dataclass(eq=False)
class SeedComparison:
    of: TrialSet
    # Accuracies of the seeds that both have, in the same order.
    own: list[float]
    reference: list[float]
    # Positive if the reference is better; None for fewer than two pairs, or if all differences are the same.
    test: PairedTest | None


def compare(subject: Subject, reference: str) -> list[SeedComparison]:
    """A row for each set but the reference's own that has a reference of its task, network, training and learning rate.

    UsageError for an unknown reference; FAILED_PRECONDITION where no set shares a seed with it.
    """
    check_reference(reference, "encoding", [one.encoding for one in subject.sets])
    comparisons = []
    for one in subject.sets:
        partner = reference_of(one, reference, subject.sets)
        if partner is None or partner is one:
            continue
        own, others = subject.accuracies_by_seed(one), subject.accuracies_by_seed(partner)
        both = sorted(own.keys() & others.keys())
        if both:
            values, of_reference = [own[seeds] for seeds in both], [others[seeds] for seeds in both]
            comparisons.append(SeedComparison(one, values, of_reference, paired_t_test(of_reference, values)))
    if not comparisons:
        raise cannot(
            f"no other encoding was evaluated with a seed of {reference}; a paired test needs trials with the same task, "
            "network, training, learning rate and seeds"
        )
    return comparisons
