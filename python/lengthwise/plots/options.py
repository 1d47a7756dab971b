"""Options of a figure."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """A figure takes those of its entry in FIGURES; the others keep their defaults."""

    # Metric shown instead of accuracy or loss, such as "rounding_accuracy".
    metric: str = ""
    # Only this input length, or number of digits; 0: what the figure shows by itself.
    length: int = 0
    # Attention: from 1; 0 for all layers, and for the maximum over heads or, of one layer, all heads side by side.
    layer: int = 0
    head: int = 0
    # Attention: which of the sequences of a length, from 1.
    sequence: int = 1
    # Sweeps: what is swept; empty: what differs.
    parameter: str = ""
    # Sweeps: training, validation and test side by side.
    splits: bool = False
    # The encoding that others are compared with.
    reference: str = ""
    # Lines of single trials: "mean" hides them, "all" draws every one, "best" the best of the seeds before all others.
    seeds: str = ""
    # All tasks, such as the formats of an addition, in one panel: encodings keep their colours, tasks differ by dashes.
    together: bool = False
    # Losses: recorded points that one drawn point is the mean of, an odd number (an even one counts one more); 1: none is
    # averaged; 0: what suits the curve.
    smooth: int = 0
    # A file of people's answers to puzzles, as `lengthwise analyze humans` reads it.
    people: str = ""
