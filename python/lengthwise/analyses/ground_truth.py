"""Attention of models compared with the ground truth: for puzzles, the cells of the rows and columns that determine the
target cell (Ito et al., section 2.1).

Only the attention of the target cell's token counts. The ground truth follows from the task's rules, without any model;
attention_similarity compares with the maps of models with another encoding instead.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy
from numpy.typing import NDArray

from lengthwise import events
from lengthwise.analyses import latin_square
from lengthwise.analyses.recorded import HOW_TO_RECORD_MAPS, maps_of
from lengthwise.analyses.trial_sets import Subject, Trial, TrialSet, by_seed
from lengthwise.errors import LengthwiseError, refused
from lengthwise.names import short_name

Array = NDArray[numpy.float64]


@dataclass
class AttentionShares:
    """Share of the target cell's attention on the cells that determine it."""

    # Per model.
    puzzles: int
    # The share under uniform attention, 0 to 1: mean over the puzzles.
    even: float
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


@dataclass(eq=False)
class _Model:
    """Sums over the maps of one model."""

    # [cells]: number of puzzles with each target.
    asked: NDArray[numpy.int64]
    truth: Array
    # [layers, cells, cells].
    attention: Array
    # For each puzzle: length, share under uniform attention, share by layer.
    lengths: list[int] = field(default_factory=list)
    even: list[float] = field(default_factory=list)
    shares: list[Array] = field(default_factory=list)


def check_puzzles(trial: Trial) -> None:
    """FAILED_PRECONDITION for a trial of a task that has no puzzles."""
    if trial.specification.task.name != "latin_square":
        raise refused(f"{short_name(trial.name)} learns {trial.specification.task.name}, which has no puzzles")


def _sum_up(trial: Trial, maps: Sequence[events.AttentionMap]) -> _Model | None:
    if not maps:
        return None
    cells, layers = latin_square.CELLS, maps[0].probabilities.shape[0]
    model = _Model(
        asked=numpy.zeros(cells, int),
        truth=numpy.zeros((cells, cells)),
        attention=numpy.zeros((layers, cells, cells)),
    )
    for one in maps:
        if one.probabilities.shape[0] != layers:
            raise refused(f"maps of {short_name(trial.name)} differ in their layers")
        try:
            evidence = latin_square.evidence_of(one.tokens.tolist())
        except ValueError as error:
            raise refused(f"a map of {short_name(trial.name)}: {error}") from None
        settling = list(evidence.cells)
        # [layers, cells], the mean over heads.
        attention = one.probabilities[:, :, evidence.asked, :].astype(float).mean(axis=1)
        model.asked[evidence.asked] += 1
        model.truth[evidence.asked, settling] += 1 / len(settling)
        model.attention[:, evidence.asked] += attention
        model.lengths.append(one.length)
        model.even.append(len(settling) / cells)
        model.shares.append(attention[:, settling].sum(axis=1))
    return model


def _shares(models: Sequence[_Model], length: int | None = None) -> AttentionShares:
    """Shares over the puzzles of this length, or of all lengths."""

    def chosen(model: _Model) -> list[int]:
        return [i for i, one in enumerate(model.lengths) if length in (None, one)]

    first = chosen(models[0])
    return AttentionShares(
        puzzles=len(first),
        even=float(numpy.mean([models[0].even[i] for i in first])),
        by_layer=numpy.stack([numpy.mean([one.shares[i] for i in chosen(one)], axis=0) for one in models], axis=1),
    )


def compare(subject: Subject) -> list[GroundTruthAttention]:
    """One for each set of puzzles with maps, in their order. FAILED_PRECONDITION: no trial learned puzzles, or none has
    maps, and how to record them; models of a set have different maps.
    """
    rows = []
    without_puzzles = None
    with_puzzles = False
    for one in subject.sets:
        try:
            check_puzzles(one.trials[0])
        except LengthwiseError as error:
            without_puzzles = error
            continue
        with_puzzles = True
        models: list[_Model] = []
        for trial, model in by_seed(one.trials, lambda trial: _sum_up(trial, maps_of(subject, trial))):
            if models and not (
                model.attention.shape == models[0].attention.shape
                and numpy.array_equal(model.truth, models[0].truth)
            ):
                raise refused(
                    f"the maps of {short_name(trial.name)} are of other puzzles or layers than those of other seeds of "
                    f"{one.encoding}: record the same of all"
                )
            models.append(model)
        if not models:
            continue
        asked = numpy.maximum(models[0].asked, 1)[:, None]
        rows.append(
            GroundTruthAttention(
                of=one,
                models=len(models),
                truth=models[0].truth / asked,
                layers=numpy.mean([model.attention / asked for model in models], axis=0),
                all=_shares(models),
                by_length={length: _shares(models, length) for length in sorted(set(models[0].lengths))},
            )
        )
    if rows:
        return rows
    if not with_puzzles and without_puzzles is not None:
        raise without_puzzles
    raise refused(f"no trial that has succeeded has attention maps; {HOW_TO_RECORD_MAPS}")
