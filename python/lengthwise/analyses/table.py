"""Rows of an analysis, one for each set of trials: as a table for people, and as records for programs."""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy

from lengthwise.analyses.measures import sample_deviation
from lengthwise.analyses.trial_sets import TrialSet, share_labels
from lengthwise.rendering import Align, Records, Table, Value, format_count, format_exact
from lengthwise.rendering import Column as TableColumn

NONE = "–"


@dataclass(frozen=True)
class Column:
    # In records; empty: in tables alone.
    name: str = ""
    # In tables; empty: in records alone.
    header: str = ""
    rule_before: bool = False


@dataclass(frozen=True)
class Cell:
    value: Value = None
    text: str = ""


@dataclass
class AnalysisTable:
    """Begins each row with what its set is: in records experiment, task, network, encoding and learning rate, in tables the
    encoding and what else differs between rows.
    """

    columns: Sequence[Column]
    rows: list[tuple[TrialSet, list[Cell]]] = field(default_factory=list)
    # For records alone, of an analysis whose records are others than its table's rows: then no row is a record.
    record_rows: list[tuple[TrialSet, list[Cell]]] = field(default_factory=list)

    def add_row(self, one: TrialSet, cells: Sequence[Cell]) -> None:
        self.rows.append((one, list(cells)))

    def add_record(self, one: TrialSet, cells: Sequence[Cell]) -> None:
        self.record_rows.append((one, list(cells)))

    def as_table(self) -> Table:
        sets = [one for one, _ in self.rows]
        names = [(TableColumn("encoding", shrinks_to=12), [one.encoding for one in sets])]
        if len({one.network for one in sets}) > 1:
            names.insert(0, (TableColumn("network", shrinks_to=8), [one.network for one in sets]))
        if len({one.task for one in sets}) > 1:
            names.insert(0, (TableColumn("task", shrinks_to=8), [one.task for one in sets]))
        if share_labels(sets):
            names.insert(0, (TableColumn("experiment", shrinks_to=12), [one.experiment for one in sets]))
        if len({one.learning_rate for one in sets}) > 1:
            names.append((TableColumn("rate", Align.RIGHT), [format_exact(one.learning_rate) for one in sets]))
        shown = [i for i, column in enumerate(self.columns) if column.header]
        table = Table([
            *(column for column, _ in names),
            *(TableColumn(self.columns[i].header, Align.RIGHT, self.columns[i].rule_before) for i in shown),
        ])  # fmt: skip
        for number, (_, cells) in enumerate(self.rows):
            table.add_row([*(texts[number] for _, texts in names), *(cells[i].text for i in shown)])
        return table

    def as_records(self) -> Records:
        named = [i for i, column in enumerate(self.columns) if column.name]
        columns = ["experiment", "task", "network", "encoding", "learning_rate", *(self.columns[i].name for i in named)]
        return Records(
            columns,
            [
                [one.experiment, *one.labels, *(cells[i].value for i in named)]
                for one, cells in self.record_rows or self.rows
            ],
        )


def number_cell(value: float | None, decimals: int) -> Cell:
    """ "–", and no value, if there is none."""
    if value is None or math.isnan(value):
        return Cell(None, NONE)
    return Cell(float(value), f"{value:.{decimals}f}")


def count_cell(value: int) -> Cell:
    return Cell(int(value), format_count(value))


def mean_cells(values: Sequence[float], decimals: int) -> list[Cell]:
    """ "0.836 ± 0.018", whose value is the mean, and the standard deviation, which is for records alone."""
    deviation = number_cell(sample_deviation(values), decimals)
    mean = number_cell(float(numpy.mean(values)) if len(values) else None, decimals)
    text = f"{mean.text} ± {deviation.text}" if len(values) > 1 else mean.text
    return [Cell(mean.value, text), deviation]


def percent_cell(value: float | None) -> Cell:
    """Cell of a share from 0 to 1, shown in per cent."""
    return number_cell(None, 1) if value is None else Cell(value, f"{100 * value:.1f}")


def accuracy_cells(values: Sequence[float]) -> list[Cell]:
    """Mean and standard deviation of accuracies from 0 to 1, in tables in per cent."""
    if not len(values):
        return [Cell(None, NONE), Cell(None, NONE)]
    mean, deviation = float(numpy.mean(values)), sample_deviation(values)
    text = f"{100 * mean:.1f}" + ("" if deviation is None else f" ± {100 * deviation:.1f}")
    return [Cell(mean, text), number_cell(deviation, 3)]


def loss_cells(values: Sequence[float]) -> list[Cell]:
    """Mean and standard deviation of losses, which have many sizes, with three digits."""
    if not len(values):
        return [Cell(None, NONE), Cell(None, NONE)]
    mean, deviation = float(numpy.mean(values)), sample_deviation(values)
    text = f"{mean:.3g}" + ("" if deviation is None else f" ± {deviation:.3g}")
    return [Cell(mean, text), Cell(deviation, NONE if deviation is None else f"{deviation:.3g}")]


def probability_text(value: float) -> str:
    """ "0.35", "0.004", "< 0.001"."""
    return "< 0.001" if value < 0.001 else f"{value:.{3 if value < 0.1 else 2}f}"


def probability_cell(value: float | None) -> Cell:
    return Cell(None, NONE) if value is None or math.isnan(value) else Cell(value, probability_text(value))
