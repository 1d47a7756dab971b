"""Tables of vectors that encodings add to the features of tokens, by position: those of fixed encodings, and those that
models learned.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy
import safetensors.numpy
from numpy.typing import NDArray

from lengthwise._proto import specification_pb2
from lengthwise.analyses.trial_sets import Subject, Trial
from lengthwise.errors import UsageError, refused
from lengthwise.models import download_model
from lengthwise.names import label
from lengthwise.plots.catalogue import Catalogue
from lengthwise.published import drawn_by, parameter_of

Table = NDArray[numpy.float64]
WITH_FIXED_TABLES = ("sin_cos", "sin_cos_2d")


def sinusoids(positions: NDArray[Any], d: int, interleaved: bool) -> Table:
    """[positions, d]: of frequency f = 10000^(-2 f / d) sine and cosine side by side, or all sines before all cosines."""
    angles = numpy.outer(positions, 10000.0 ** (-2 * numpy.arange(d // 2) / d))
    sines, cosines = numpy.sin(angles), numpy.cos(angles)
    if interleaved:
        return numpy.stack([sines, cosines], axis=2).reshape(len(angles), d)
    return numpy.concatenate([sines, cosines], axis=1)


@dataclass(frozen=True)
class FixedEncoding:
    """An encoding that adds the same vectors in every model."""

    name: str
    interleaved: bool = False
    # Cells of a row of the grid, of sin_cos_2d.
    columns: int = 4

    def table(self, rows: int, width: int) -> Table:
        """[rows, width], the vector of position p in row p; `width` is even, of sin_cos_2d a multiple of four."""
        positions = numpy.arange(rows)
        if self.name == "sin_cos":
            return sinusoids(positions, width, self.interleaved)
        half = width // 2
        return numpy.concatenate(
            [sinusoids(positions % self.columns, half, True), sinusoids(positions // self.columns, half, True)], axis=1
        )


def fixed_encoding(component: specification_pb2.Component, catalogue: Catalogue) -> FixedEncoding | None:
    """None for an encoding that has no such table: it is another, or its positions are drawn. Parameters that the component
    does not set have the catalogue's defaults.
    """
    entry = catalogue.encodings.get(component.name)
    if component.name not in WITH_FIXED_TABLES or entry is None or drawn_by(component):
        return None
    whole = specification_pb2.Component(name=component.name)
    for parameter in entry.parameters:
        whole.parameters[parameter.name].CopyFrom(parameter.default_value)
    for name, value in component.parameters.items():
        whole.parameters[name].CopyFrom(value)
    return FixedEncoding(
        component.name,
        interleaved=bool(parameter_of(whole, "interleaved")),
        columns=int(parameter_of(whole, "columns") or 0),
    )


def find_fixed(subject: Subject, reference: str) -> FixedEncoding:
    """By the label of an encoding of these trials, or a name of the catalogue, which then has its default parameters.

    UsageError for what has no fixed table.
    """
    component = specification_pb2.Component(name=reference)
    for experiment in subject.experiments:
        for trial in experiment.trials:
            if label(trial.specification.encoding) == reference:
                component = trial.specification.encoding
    found = fixed_encoding(component, subject.experiments[0].catalogue)
    if found is None:
        raise UsageError(
            f'--reference: "{reference}" is no encoding with a fixed table; give {" or ".join(WITH_FIXED_TABLES)}, or the '
            "label of one in the experiment"
        )
    return found


def stored_tables(subject: Subject, trial: Trial) -> list[Table]:
    """The tables [rows, width] of a trial's stored model: one, or one for each block, in their order; none for an encoding
    without tables. NOT_FOUND: no model is stored. FAILED_PRECONDITION if the experiment was given without a server.
    """
    connection = subject.experiment_of(trial).connection
    if connection is None:
        raise refused(f"{subject.names} is not of a server, which would have its models")
    tensors = safetensors.numpy.load(b"".join(download_model(connection, trial.name)))
    named = sorted(
        (name for name in tensors if name.startswith("parameters/") and name.endswith("encoding.table")), key=_block_of
    )
    return [tensors[name].astype(float) for name in named if tensors[name].ndim == 2]


def _block_of(name: str) -> tuple[int, str]:
    """ "parameters/encoding.table" or "parameters/blocks.10.encoding.table"."""
    digits = [part for part in name.split(".") if part.isdigit()]
    return int(digits[0]) if digits else -1, name
