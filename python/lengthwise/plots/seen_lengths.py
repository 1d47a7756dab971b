"""Lengths that results count as seen, and those that training showed, in the words of figures.

A length counts as seen if it is not above Evaluation.seen_up_to. Training may show other lengths (Trial.trained_lengths).
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lengthwise._proto import experiment_service_pb2


@dataclass(frozen=True)
class SeenLengths:
    # Lengths from 1 to this one count as seen.
    up_to: int
    # Lengths in training: the first and the last of each range. Empty if the axis is not training.lengths.
    trained: tuple[tuple[int, int], ...] = ()

    @classmethod
    def by(cls, trial: experiment_service_pb2.Trial) -> SeenLengths:
        ranges = tuple((one.min, one.max) for one in trial.trained_lengths)
        return cls(trial.specification.evaluation.seen_up_to, ranges)

    def all_trained(self, lengths: Iterable[float]) -> bool:
        """True if training ended at `up_to`, and showed those of `lengths` that count as seen, as far as is known."""
        if not self.trained:
            return True
        return self.trained[-1][1] == self.up_to and all(self.in_training(one) for one in lengths if one <= self.up_to)

    def in_training(self, length: float) -> bool:
        """True if training had sequences of the length. If that is unknown, True if the length counts as seen."""
        return any(first <= length <= last for first, last in self.trained or [(1, self.up_to)])

    def trained_numbers(self) -> str:
        """ "10 to 20", "8", "some of 1 to 9"."""
        first, last = self.trained[0][0], self.trained[-1][1]
        some = "some of " if len(self.trained) > 1 else ""
        return some + (str(last) if first == last else f"{first} to {last}")


def unseen_lengths(seen: Iterable[SeenLengths], otherwise: str = "lengths not seen in training") -> str:
    """ "lengths above 40", or "lengths that do not count as seen" if that differs between trials, where training of some
    trials showed such lengths; `otherwise` where it showed none.
    """
    found = set(seen)
    if not any(one.trained and one.trained[-1][1] > one.up_to for one in found):
        return otherwise
    limits = {one.up_to for one in found}
    return f"lengths above {limits.pop()}" if len(limits) == 1 else "lengths that do not count as seen"
