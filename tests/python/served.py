"""What a server adds to trials and evaluations that tests write by hand."""
import math


def set_trained(trial, own_axis=False):
    """Sets trained_lengths from training.lengths."""
    del trial.trained_lengths[:]
    lengths = trial.specification.training.lengths
    if lengths.max and not own_axis:
        trial.trained_lengths.add(min=max(lengths.min, 1), max=lengths.max)


def set_means(measured, seen_up_to):
    """Sets the means over the lengths up to `seen_up_to`, and over the longer ones."""
    for side, is_seen in (("seen", True), ("unseen", False)):
        of_side = [length for length in measured.lengths if (length <= seen_up_to) == is_seen]
        for field, values in (("accuracy", measured.accuracies), ("loss", measured.losses)):
            chosen = [value for length, value in zip(measured.lengths, values) if length in of_side]
            if of_side:
                setattr(measured, f"{side}_{field}", math.fsum(chosen) / len(of_side))
