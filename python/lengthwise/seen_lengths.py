"""Lengths that results count as seen, and those that training showed.

A length counts as seen if it is not above Evaluation.seen_up_to. Training may show other lengths: training.lengths may begin
above 1, a file may lack examples of some lengths, and a specification may set seen_up_to.
"""
from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from lengthwise._proto import specification_pb2

# The longest length of a specification that a server accepts (specification/checks.h).
LONGEST = 100_000


@dataclass(frozen=True)
class SeenLengths:
    # Lengths from 1 to this one count as seen.
    up_to: int
    # Lengths in training; None if unknown, or if the axis is not training.lengths. If tasks differ in it (their files do),
    # those of any task; and those of all tasks.
    trained: frozenset[int] | None = None
    common: frozenset[int] = frozenset()

    def all_trained(self, lengths: Iterable[float]) -> bool:
        """True if training ended at `up_to`, and showed those of `lengths` that count as seen, as far as is known."""
        if self.trained is None:
            return True
        return max(self.trained) == self.up_to and all(one in self.common for one in lengths if one <= self.up_to)

    @property
    def differs(self) -> bool:
        """True if tasks were trained on different lengths."""
        return self.trained is not None and self.trained != self.common

    @property
    def went_beyond(self) -> bool:
        """True if training showed lengths that do not count as seen."""
        return self.trained is not None and max(self.trained) > self.up_to

    def in_training(self, length: int) -> bool:
        """True if training had sequences of the length. If that is unknown, True if the length counts as seen."""
        return length <= self.up_to if self.trained is None else length in self.trained

    @property
    def has_gaps(self) -> bool:
        """True if training had a shorter and a longer length than one that it had not."""
        return self.trained is not None and len(self.trained) <= max(self.trained) - min(self.trained)

    def trained_numbers(self) -> str:
        """ "10 to 20", "8". `trained` is not None."""
        assert self.trained is not None
        first, last = min(self.trained), max(self.trained)
        return str(last) if first == last else f"{first} to {last}"


def seen_lengths(
    evaluation: specification_pb2.Evaluation,
    training: specification_pb2.Training,
    tasks: Iterable[specification_pb2.Component],
    has_own_axis: bool,
) -> SeenLengths:
    """`has_own_axis`: the tasks have the fact "seen_up_to" of the catalogue, so that lengths are not training.lengths."""
    lengths = training.lengths
    if has_own_axis or not 1 <= lengths.max <= LONGEST:
        return SeenLengths(evaluation.seen_up_to)
    of_range = frozenset(range(max(1, lengths.min), lengths.max + 1))
    of_tasks = set()
    for task in tasks:
        runs = example_runs(task, "training")
        of_tasks.add(of_range if runs is None else frozenset(n for run, _ in runs for n in run if n in of_range))
    of_any = frozenset[int]().union(*of_tasks)
    return SeenLengths(evaluation.seen_up_to, of_any or None, of_any.intersection(*of_tasks))


def unseen_lengths(seen: Iterable[SeenLengths], otherwise: str = "lengths not seen in training") -> str:
    """ "lengths above 40", or "lengths that do not count as seen" if that differs between trials, where training of some
    trials showed such lengths; `otherwise` where it showed none.
    """
    found = set(seen)
    if not any(one.went_beyond for one in found):
        return otherwise
    limits = {one.up_to for one in found}
    return f"lengths above {limits.pop()}" if len(limits) == 1 else "lengths that do not count as seen"


def example_runs(task: specification_pb2.Component, part: str) -> list[tuple[range, int]] | None:
    """Runs of lengths of a file's "training" or "test" examples, each with its number of examples of one length. None if the
    task has no file, or none that a server accepts.
    """
    contents = task.parameters["contents"].string_value if "contents" in task.parameters else ""
    if not contents:
        return None
    runs = [_run(text) for text in json.loads(contents)[part]["lengths"].split(",")]
    return runs if all(run for run, _ in runs) and sum(run.stop - run.start for run, _ in runs) <= LONGEST else None


def _run(text: str) -> tuple[range, int]:
    """Of "5x100" or "6-20x10"."""
    ends, _, examples = text.partition("x")
    first, _, last = ends.partition("-")
    return range(int(first), int(last or first) + 1), int(examples)
