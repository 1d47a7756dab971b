"""Rows of an analysis, one for each set of trials: as a table for people, and as records for programs."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy

from lengthwise.analyses.measures import sample_deviation
from lengthwise.analyses.trial_sets import TrialSet, share_labels
from lengthwise.rendering import Align, Column, Records, Table, Value, format_count, format_exact

NONE = "–"
Row = TypeVar("Row")


@dataclass(frozen=True)
class Cell:
    value: Value = None
    text: str = ""


class AnalysisTable(Generic[Row]):
    """Begins each row with what its set is: in records experiment, task, network, encoding and learning rate, in tables the
    encoding and what else differs between rows.
    """

    def __init__(
        self, rows: Sequence[Row], set_of: Callable[[Row], TrialSet], record_columns: Sequence[str] = ()
    ) -> None:
        """`record_columns`: names of the columns of records, if these are others than the table's rows: then no row is a
        record.
        """
        self._rows = rows
        self._sets = [set_of(row) for row in rows]
        # Each with its name in records, and a cell for each row.
        self._columns: list[tuple[str, Column, list[Cell]]] = []
        self._record_columns = record_columns
        self._records: list[tuple[TrialSet, Sequence[Value]]] = []

    def add(self, name: str, header: str, cell: Callable[[Row], Cell], *, rule: bool = False) -> None:
        """A column. Without a `name` in tables alone, without a `header` in records alone. `rule`: with one before it."""
        self._columns.append((name, Column(header, Align.RIGHT, rule), list(map(cell, self._rows))))

    def add_means(self, name: str, header: str, cells: Callable[[Row], Sequence[Cell]], *, rule: bool = False) -> None:
        """A column of means, and in records one of standard deviations."""
        self.add(name, header, lambda row: cells(row)[0], rule=rule)
        self.add(f"{name}_deviation", "", lambda row: cells(row)[1])

    def add_record(self, one: TrialSet, values: Sequence[Value]) -> None:
        self._records.append((one, values))

    def as_table(self) -> Table:
        sets = self._sets
        names = [(Column("encoding", shrinks_to=12), [one.encoding for one in sets])]
        if len({one.network for one in sets}) > 1:
            names.insert(0, (Column("network", shrinks_to=8), [one.network for one in sets]))
        if len({one.task for one in sets}) > 1:
            names.insert(0, (Column("task", shrinks_to=8), [one.task for one in sets]))
        if share_labels(sets):
            names.insert(0, (Column("experiment", shrinks_to=12), [one.experiment.name for one in sets]))
        if len({one.learning_rate for one in sets}) > 1:
            names.append((Column("rate", Align.RIGHT), [format_exact(one.learning_rate) for one in sets]))
        names += [(column, [cell.text for cell in cells]) for _, column, cells in self._columns if column.header]
        table = Table([column for column, _ in names])
        for number in range(len(sets)):
            table.add_row([texts[number] for _, texts in names])
        return table

    def as_records(self) -> Records:
        named = {name: cells for name, _, cells in self._columns if name}
        names = self._record_columns or list(named)
        of_rows = [(one, [cells[number].value for cells in named.values()]) for number, one in enumerate(self._sets)]
        records = self._records if self._record_columns else of_rows
        return Records(
            ["experiment", "task", "network", "encoding", "learning_rate", *names],
            [[one.experiment.name, *one.labels, *values] for one, values in records],
        )


def _cell(value: float | None, text: Callable[[float], str]) -> Cell:
    """ "–", and no value, if there is none."""
    return Cell(None, NONE) if value is None or math.isnan(value) else Cell(float(value), text(value))


def _mean_cells(values: Sequence[float], text: Callable[[float], str]) -> list[Cell]:
    """ "0.836 ± 0.018", whose value is the mean, and the standard deviation, which is for records alone."""
    mean, deviation = _cell(float(numpy.mean(values)) if len(values) else None, text), _cell(sample_deviation(values), text)
    return [Cell(mean.value, f"{mean.text} ± {deviation.text}" if len(values) > 1 else mean.text), deviation]


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


def number_cell(value: float | None, decimals: int) -> Cell:
    return _cell(value, f"{{:.{decimals}f}}".format)


def count_cell(value: int) -> Cell:
    return Cell(int(value), format_count(value))


def percent_cell(value: float | None) -> Cell:
    """Cell of a share from 0 to 1, shown in per cent."""
    return _cell(value, _percent)


def mean_cells(values: Sequence[float], decimals: int) -> list[Cell]:
    return _mean_cells(values, f"{{:.{decimals}f}}".format)


def accuracy_cells(values: Sequence[float]) -> list[Cell]:
    """Mean and standard deviation of accuracies from 0 to 1, in tables in per cent."""
    return _mean_cells(values, _percent)


def loss_cells(values: Sequence[float]) -> list[Cell]:
    """Mean and standard deviation of losses, which have many sizes, with three digits."""
    return _mean_cells(values, "{:.3g}".format)


def probability_cell(value: float | None) -> Cell:
    """ "0.35", "0.004", "< 0.001"."""
    return _cell(value, lambda p: "< 0.001" if p < 0.001 else f"{p:.{3 if p < 0.1 else 2}f}")
