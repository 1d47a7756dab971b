"""Similarity of models' attention maps to those of models with another encoding.

Ito et al. (relational reasoning on Latin squares), Table 3 and Figures 3B and 4; Figure 9 for the divergence.
"""
from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import NoReturn

import numpy
from numpy.typing import NDArray

from lengthwise.analyses.measures import cosine_similarity, jensen_shannon_divergence
from lengthwise.analyses.recorded import HOW_TO_RECORD_MAPS, maps_of
from lengthwise.analyses.trial_sets import Subject, Trial, TrialSet, by_seed, check_reference, reference_of
from lengthwise.errors import UsageError, refused
from lengthwise.names import short_name
from lengthwise.plots.groups import seeds_of
from lengthwise.rendering import counted


class AttentionMeasure(Enum):
    # Cosine of the angle between all attention probabilities of two models, one after the other.
    COSINE = "cosine"
    # Jensen-Shannon divergence, nats, of what a token attends to in two models: the mean over tokens, heads, layers and
    # sequences.
    JENSEN_SHANNON = "js"

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        raise UsageError(f'measure: got {value!r}, expected "cosine" or "js"')


@dataclass(frozen=True, eq=False)
class Maps:
    """Maps of one model."""

    # Tokens of the sequences, by length and sequence.
    sequences: list[tuple[int, ...]]
    layers: int
    heads: int
    # [rows, tokens] of each sequence: a row for each layer, head and query.
    rows: list[NDArray[numpy.float32]]

    @cached_property
    def vector(self) -> NDArray[numpy.float64]:
        """All probabilities."""
        return numpy.concatenate([rows.ravel() for rows in self.rows]).astype(float)


def fetch_probabilities(subject: Subject, trial: Trial, kind: AttentionMeasure) -> Maps | None:
    """None if no maps are recorded. FAILED_PRECONDITION if the measure cannot compare them: a network of a user may give
    any weights.
    """
    recorded = maps_of(subject, trial)
    if not recorded:
        return None
    maps = Maps(
        sequences=[tuple(one.tokens.tolist()) for one in recorded],
        layers=recorded[-1].probabilities.shape[0],
        heads=recorded[-1].probabilities.shape[1],
        rows=[one.probabilities.reshape(-1, one.probabilities.shape[-1]) for one in recorded],
    )
    problem = ""
    if not all(numpy.isfinite(rows).all() for rows in maps.rows):
        problem = "are not all finite"
    elif kind is AttentionMeasure.COSINE:
        problem = "" if any(rows.any() for rows in maps.rows) else "are all zero, which has no cosine"
    elif not all((rows >= 0).all() and (rows.sum(axis=-1) > 0).all() for rows in maps.rows):
        problem = "are negative, or all zero for a token, which is no distribution; --measure cosine compares them"
    if problem:
        raise refused(f"the attention weights of {short_name(trial.name)} {problem}")
    return maps


def measure(kind: AttentionMeasure, one: Maps, other: Maps) -> float:
    if kind is AttentionMeasure.COSINE:
        return cosine_similarity(one.vector, other.vector)
    rows = [jensen_shannon_divergence(a, b) for a, b in zip(one.rows, other.rows, strict=True)]
    return float(numpy.concatenate(rows).mean())


def check_alike(maps: Maps, others: Maps, trial: Trial, other_encoding: str) -> None:
    """FAILED_PRECONDITION if the maps are not of the same layers, heads and sequences."""
    if (maps.layers, maps.heads) != (others.layers, others.heads):
        raise refused(
            f"{short_name(trial.name)} has {counted(maps.layers, 'layer')} of {counted(maps.heads, 'head')}, and "
            f"{other_encoding} has {others.layers} of {others.heads}: such maps cannot be compared"
        )
    if maps.sequences != others.sequences:
        raise refused(
            f"the maps of {short_name(trial.name)} are of {len(maps.sequences)} sequences and those of {other_encoding} of "
            f"{len(others.sequences)}, and these are not the same: record both with the same evaluation.attention_lengths, "
            "attention_sequences and seed"
        )


@dataclass(eq=False)
class AttentionSimilarity:
    of: TrialSet
    # One value for each pair of a model of the set and one of the reference; pairs of different seeds if the set is the
    # reference itself. Empty if no reference was trained in the same way.
    pairs: list[float] = field(default_factory=list)
    # Models with maps.
    models: int = 0
    # Mean of each model over its pairs.
    means: list[tuple[Trial, float]] = field(default_factory=list)


@dataclass(eq=False)
class AttentionComparison:
    # One for each set that has maps.
    rows: list[AttentionSimilarity] = field(default_factory=list)
    # Sequences and layers that were compared.
    sequences: int = 0
    layers: int = 0
    # Encodings none of whose trials has maps.
    without_maps: list[str] = field(default_factory=list)


def _models_with_maps(subject: Subject, one: TrialSet, kind: AttentionMeasure) -> list[tuple[Trial, Maps]]:
    return by_seed(one.trials, lambda trial: fetch_probabilities(subject, trial, kind))


def compare(subject: Subject, reference: str, kind: AttentionMeasure) -> AttentionComparison:
    """FAILED_PRECONDITION, saying how to record them, where the reference has no maps or nothing else has, or maps are of
    other sequences than the reference's. UsageError for an unknown reference.
    """
    check_reference(reference, "encoding", [one.encoding for one in subject.sets])
    # The references' maps stay, those of all others come and go: an experiment may have gigabytes.
    references: dict[TrialSet, list[tuple[Trial, Maps]]] = {}
    for one in subject.sets:
        if one.encoding == reference and (found := _models_with_maps(subject, one, kind)):
            for trial, maps in found[1:]:
                check_alike(maps, found[0][1], trial, reference)
            references[one] = found
    if not references:
        raise refused(f"no trial of {reference} has attention maps; {HOW_TO_RECORD_MAPS}")
    comparison = AttentionComparison()
    for one in subject.sets:
        row = AttentionSimilarity(one)
        partner = reference_of(one, reference, subject.sets)
        others = references.get(partner, []) if partner is not None else []
        own = references[one] if one in references else _models_with_maps(subject, one, kind)
        for trial, maps in own:
            row.models += 1
            comparison.sequences, comparison.layers = len(maps.sequences), maps.layers
            values = []
            for other_trial, other in others:
                # Each pair of the reference's own models once.
                if partner is one and seeds_of(other_trial) <= seeds_of(trial):
                    continue
                check_alike(maps, other, trial, reference)
                values.append(measure(kind, maps, other))
            row.pairs += values
            if values:
                row.means.append((trial, float(numpy.mean(values))))
        if row.models > 0:
            comparison.rows.append(row)
        else:
            comparison.without_maps.append(one.encoding)
    if len(comparison.rows) == 1 and len(subject.sets) > 1:
        raise refused(f"only {reference} has attention maps; {HOW_TO_RECORD_MAPS}")
    return comparison


@dataclass(frozen=True, eq=False)
class SimilarityMatrix:
    """Mean similarity of each pair of sets over the pairs of their models; on the diagonal over pairs of different seeds."""

    sets: Sequence[TrialSet]
    # [sets, sets], symmetric; not a number if there is no pair.
    values: NDArray[numpy.float64]
    # [sets, sets]: pairs of models that an entry is the mean of.
    pairs: NDArray[numpy.int64]
    sequences: int
    layers: int


def compare_all(subject: Subject, kind: AttentionMeasure) -> SimilarityMatrix:
    """Every encoding with every other (Figure 3B). Sets without maps are left out; FAILED_PRECONDITION if fewer than two
    have some, or their maps are of different sequences, layers or heads.
    """
    found = {one: models for one in subject.sets if (models := _models_with_maps(subject, one, kind))}
    sets = list(found)
    if len(sets) < 2:
        raise refused(f"fewer than two encodings have attention maps; {HOW_TO_RECORD_MAPS}")
    first = found[sets[0]][0][1]
    for one in sets:
        for trial, maps in found[one]:
            check_alike(maps, first, trial, sets[0].encoding)
    all_maps = [maps for one in sets for _, maps in found[one]]
    owner = numpy.array([i for i, one in enumerate(sets) for _ in found[one]])
    similar = _similarities(all_maps, kind)
    values = numpy.full((len(sets), len(sets)), numpy.nan)
    pairs = numpy.zeros((len(sets), len(sets)), int)
    for i, j in numpy.ndindex(values.shape):
        block = similar[numpy.ix_(owner == i, owner == j)]
        of_pairs = block[numpy.triu_indices(len(block), 1)] if i == j else block.ravel()
        pairs[i, j] = of_pairs.size
        values[i, j] = of_pairs.mean() if of_pairs.size else numpy.nan
    return SimilarityMatrix(sets, values, pairs, len(first.sequences), first.layers)


def _similarities(models: Sequence[Maps], kind: AttentionMeasure) -> NDArray[numpy.float64]:
    """[models, models]: of each pair; what is on the diagonal means nothing."""
    if kind is AttentionMeasure.COSINE:
        # All cosines of unit vectors are one matrix product.
        units = numpy.stack([maps.vector for maps in models])
        units /= numpy.linalg.norm(units, axis=1, keepdims=True)
        cosines: NDArray[numpy.float64] = units @ units.T
        return cosines
    found = numpy.zeros((len(models), len(models)))
    for i, j in itertools.combinations(range(len(models)), 2):
        found[i, j] = found[j, i] = measure(kind, models[i], models[j])
    return found
