"""Attention of models compared with the ground truth: for puzzles, the cells of the rows and columns that determine the
target cell (Ito et al., section 2.1).

Only the attention of the target cell's token counts. The ground truth follows from the task's rules, without any model;
attention_similarity compares with the maps of models with another encoding instead.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

from lengthwise import events
from lengthwise.analyses import latin_square
from lengthwise.analyses.recorded import HOW_TO_RECORD_MAPS, maps_of
from lengthwise.analyses.trial_sets import Subject, Trial, TrialSet, by_seed
from lengthwise.errors import refused
from lengthwise.names import short_name

Array = NDArray[numpy.float64]
_TASK = "latin_square"


@dataclass
class AttentionShares:
    """Share of the target cell's attention on the cells that determine it."""

    # Per model.
    puzzles: int
    # The share under uniform attention, 0 to 1, over all cells and over the clues alone: means over the puzzles.
    even: float
    clues: float
    # [layers, models]: mean over the puzzles and heads, 0 to 1.
    by_layer: Array


@dataclass(eq=False)
class GroundTruthAttention:
    of: TrialSet
    models: int
    # Ground truth, [cells, cells]: row a is the mean over the puzzles with target a, where the cells that determine it share
    # the attention equally; 0 if no puzzle has this target.
    truth: Array
    # [layers, cells, cells]: the attention of a, the mean over heads and models.
    layers: Array
    all: AttentionShares
    # By number of vectors, the length of a map.
    by_length: dict[int, AttentionShares]

    @property
    def cells(self) -> int:
        return len(self.truth)


@dataclass(frozen=True, eq=False)
class _Puzzle:
    """The map of one puzzle."""

    length: int
    asked: int
    # Cells that determine the one that is asked for.
    settling: list[int]
    # Cells with a symbol.
    clues: list[int]
    # [layers, cells]: what the cell that is asked for attends to, the mean over heads.
    attention: Array

    @property
    def truth(self) -> Array:
        """[cells]: what it would attend to, all of `settling` equally."""
        return numpy.isin(range(latin_square.CELLS), self.settling) / len(self.settling)

    @property
    def look(self) -> tuple[int, ...]:
        """What the maps of other seeds have in common with this one."""
        return self.length, self.asked, len(self.attention), *self.settling


def check_puzzles(trial: Trial) -> None:
    """FAILED_PRECONDITION for a trial of a task that has no puzzles."""
    if trial.specification.task.name != _TASK:
        raise refused(f"{short_name(trial.name)} learns {trial.specification.task.name}, which has no puzzles")


def _puzzles_of(trial: Trial, maps: Sequence[events.AttentionMap]) -> list[_Puzzle] | None:
    """None without maps."""
    found = []
    for one in maps:
        if one.probabilities.shape[0] != maps[0].probabilities.shape[0]:
            raise refused(f"maps of {short_name(trial.name)} differ in their layers")
        try:
            evidence = latin_square.evidence_of(one.tokens.tolist())
        except ValueError as error:
            raise refused(f"a map of {short_name(trial.name)}: {error}") from None
        attention = one.probabilities[:, :, evidence.asked, :].astype(float).mean(axis=1)
        clues = numpy.flatnonzero((one.tokens != latin_square.BLANK) & (one.tokens != latin_square.TARGET)).tolist()
        found.append(_Puzzle(one.length, evidence.asked, list(evidence.cells), clues, attention))
    return found or None


def _by_target(puzzles: Sequence[_Puzzle], values: Sequence[Array]) -> Array:
    """[..., cells, cells]: row a is the mean of the `values`, [..., cells], of the puzzles with target a; 0 without any."""
    sums = numpy.zeros((*values[0].shape[:-1], latin_square.CELLS, latin_square.CELLS))
    for one, value in zip(puzzles, values):
        sums[..., one.asked, :] += value
    asked = numpy.bincount([one.asked for one in puzzles], minlength=latin_square.CELLS)
    return sums / numpy.maximum(asked, 1)[:, None]


def _shares(models: Sequence[Sequence[_Puzzle]]) -> AttentionShares:
    """Over the puzzles, the same of every model."""
    shares = [numpy.mean([one.attention[:, one.settling].sum(axis=1) for one in puzzles], axis=0) for puzzles in models]
    return AttentionShares(
        puzzles=len(models[0]),
        even=float(numpy.mean([len(one.settling) / latin_square.CELLS for one in models[0]])),
        clues=float(numpy.mean([numpy.isin(one.clues, one.settling).mean() for one in models[0]])),
        by_layer=numpy.stack(shares, axis=1),
    )


def compare(subject: Subject) -> list[GroundTruthAttention]:
    """One for each set of puzzles with maps, in their order. FAILED_PRECONDITION: no trial learned puzzles, or none has
    maps, and how to record them; models of a set have different maps.
    """
    rows = []
    sets = [one for one in subject.sets if one.specification.task.name == _TASK]
    if not sets:
        check_puzzles(subject.sets[-1].trials[0])
    for one in sets:
        models: list[list[_Puzzle]] = []
        for trial, puzzles in by_seed(one.trials, lambda trial: _puzzles_of(trial, maps_of(subject, trial))):
            models.append(puzzles)
            if [puzzle.look for puzzle in puzzles] != [puzzle.look for puzzle in models[0]]:
                raise refused(
                    f"the maps of {short_name(trial.name)} are of other puzzles or layers than those of other seeds of "
                    f"{one.encoding}: record the same of all"
                )
        if not models:
            continue
        lengths = sorted({puzzle.length for puzzle in models[0]})
        rows.append(
            GroundTruthAttention(
                of=one,
                models=len(models),
                truth=_by_target(models[0], [puzzle.truth for puzzle in models[0]]),
                layers=numpy.mean([_by_target(of, [puzzle.attention for puzzle in of]) for of in models], axis=0),
                all=_shares(models),
                by_length={n: _shares([[puzzle for puzzle in of if puzzle.length == n] for of in models]) for n in lengths},
            )
        )
    if not rows:
        raise refused(f"no trial that has succeeded has attention maps; {HOW_TO_RECORD_MAPS}")
    return rows
