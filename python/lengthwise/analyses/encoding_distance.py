"""Distance of learned position tables from a fixed encoding after the best rotation (Ito et al., Figure 10), and similarity
of the encodings themselves.
"""
from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy

from lengthwise.analyses.encoding_tables import FixedEncoding, fixed_encoding, stored_tables
from lengthwise.analyses.measures import cosine_similarity, procrustes_distance
from lengthwise.analyses.trial_sets import Subject, Trial, TrialSet, by_seed
from lengthwise.errors import refused
from lengthwise.names import short_name


@dataclass(eq=False)
class EncodingDistance:
    trial: Trial
    # Between the model's tables and the reference's, block by block: orthogonal Procrustes distance, and cosine without
    # rotation.
    blocks: list[float]
    cosines: list[float]

    @property
    def mean(self) -> float:
        return float(numpy.mean(self.blocks))


@dataclass(eq=False)
class EncodingDistances:
    # Of each set with tables, in their order, one for each model.
    models: dict[TrialSet, list[EncodingDistance]] = field(default_factory=dict)
    # Encodings that learn no table.
    without_tables: list[str] = field(default_factory=list)
    # By label: the cosine of other fixed encodings' tables to the reference's, of as many rows and features.
    fixed: dict[str, float] = field(default_factory=dict)
    # Standard deviation of the cosine, whose mean is 0, of a table of independent draws to the reference's: what a learned
    # one starts from is not stored.
    untrained_cosine: float = 0


def measure(subject: Subject, reference: FixedEncoding) -> EncodingDistances:
    """Downloads the models of the trials whose encoding learns tables. FAILED_PRECONDITION if none does; the download's
    errors.
    """
    distances = EncodingDistances()
    shape = (0, 0)
    for one in subject.sets:
        if one.specification.encoding.name != "learned":
            distances.without_tables.append(one.encoding)
            continue
        for trial, tables in by_seed(one.trials, lambda trial: stored_tables(subject, trial)):
            blocks, cosines = [], []
            for table in tables:
                rows, width = table.shape
                if width % 4 != 0:
                    raise refused(
                        f"{short_name(trial.name)} has vectors of {width} features; fixed encodings have a multiple of four"
                    )
                fixed_table = reference.table(rows, width)
                try:
                    blocks.append(procrustes_distance(table, fixed_table))
                    cosines.append(cosine_similarity(table, fixed_table) if table.any() else math.nan)
                except ValueError as error:
                    raise refused(f"{short_name(trial.name)}: {error}") from None
                shape = rows, width
            if blocks:
                distances.models.setdefault(one, []).append(EncodingDistance(trial, blocks, cosines))
    if not distances.models:
        raise refused("no trial that succeeded has an encoding that learns a table (`learned`)")
    for one in subject.sets:
        fixed = fixed_encoding(one.specification.encoding, one.experiment.catalogue)
        if fixed is not None and fixed != reference:
            distances.fixed[one.encoding] = cosine_similarity(fixed.table(*shape), reference.table(*shape))
    distances.untrained_cosine = 1 / math.sqrt(math.prod(shape))
    return distances
