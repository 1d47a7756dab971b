"""Lengths that results count as seen, and those that training showed.

A length counts as seen if it is not above Evaluation.seen_up_to. Training may show other lengths: training.lengths may begin
above 1, and a specification may set seen_up_to.
"""
from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from lengthwise._proto import specification_pb2


@dataclass(frozen=True)
class SeenLengths:
    # Lengths from 1 to this one count as seen.
    up_to: int
    # Shortest and longest length in training; None if unknown, or if the axis is not training.lengths.
    trained: tuple[int, int] | None = None

    def all_trained(self, lengths: Iterable[float]) -> bool:
        """True if training ended at `up_to`, and showed those of `lengths` that count as seen, as far as is known."""
        if self.trained is None:
            return True
        first, last = self.trained
        return last == self.up_to and all(length >= first for length in lengths if length <= self.up_to)

    def showed(self, length: int) -> bool:
        """True if the length counts as seen, and training had sequences of it, as far as is known."""
        return length <= self.up_to and (self.trained is None or self.trained[0] <= length <= self.trained[1])


def seen_lengths(
    evaluation: specification_pb2.Evaluation,
    training: specification_pb2.Training,
    tasks: Iterable[specification_pb2.Component],
    has_own_axis: bool,
) -> SeenLengths:
    """`has_own_axis`: the tasks have the fact "seen_up_to" of the catalogue, so that lengths are not training.lengths."""
    lengths = training.lengths
    if has_own_axis or lengths.max < 1:
        return SeenLengths(evaluation.seen_up_to)
    longest = lengths.max
    for task in tasks:
        contents = task.parameters["contents"].string_value if "contents" in task.parameters else ""
        if contents:
            # As the default of seen_up_to: the smallest of the files' longest lengths.
            longest = min(longest, _longest_example(contents, lengths.max))
    return SeenLengths(evaluation.seen_up_to, (lengths.min, longest))


def _longest_example(contents: str, most: int) -> int:
    """Longest length up to `most` of which a file has training examples; `most` if there is none."""
    longest = 0
    # Runs of lengths with their number of examples: "5x100,6-20x10".
    for run in json.loads(contents)["training"]["lengths"].split(","):
        ends = run.partition("x")[0]
        first, _, last = ends.partition("-")
        if int(first) <= most:
            longest = max(longest, min(most, int(last or first)))
    return longest or most
