"""Two experiments side by side, and how they differ."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from google.protobuf.message import Message

from lengthwise._proto import experiment_service_pb2, specification_pb2
from lengthwise.accuracy_table import format_row, score_of
from lengthwise.protocol import flatten, format_parameter
from lengthwise.rendering import BOLD, DIM, Align, Cell, Column, Records, Table, Value, format_exact

Component = specification_pb2.Component
Specification = specification_pb2.ExperimentSpecification
SummaryCell = experiment_service_pb2.SummarizeExperimentResponse.Cell
Heading = experiment_service_pb2.SummarizeExperimentResponse.Heading

_AXES = ("tasks", "networks", "encodings")


def _labels(one: Specification, axis: str) -> list[str]:
    return [component.label for component in getattr(one, axis)]


def _components(axis: str, one: Specification, other: Specification) -> dict[str, str]:
    """Names and parameters of the components whose label is also in `other`."""
    fields: dict[str, str] = {}
    for component in getattr(one, axis):
        if component.label in _labels(other, axis):
            path = f"{axis}.{component.label}"
            fields[path] = component.name
            fields.update({f"{path}.{name}": format_parameter(component, name) for name in component.parameters})
    return fields


def _overrides(one: Specification) -> dict[str, str]:
    return {
        f"networks.{override.network.label}.{name} with {override.encoding}": format_parameter(override.network, name)
        for override in one.network_overrides
        for name in override.network.parameters
    }


def _seeds(seeds: Sequence[int]) -> str:
    if len(seeds) <= 8:
        return ", ".join(map(str, seeds))
    return f"{len(seeds)} seeds, {seeds[0]} to {seeds[-1]}"


def _set(path: str, message: Message) -> dict[str, str]:
    # How often points are recorded follows the steps, and decides no result.
    return {name: value for name, value in flatten(path, message, ("training.report_every_steps",)).items() if value}


def _fields(one: Specification, other: Specification) -> dict[str, str]:
    components = {path: text for axis in _AXES for path, text in _components(axis, one, other).items()}
    return {
        **components,
        **_overrides(one),
        **_set("training", one.training),
        **_set("evaluation", one.evaluation),
        "learning_rates": ", ".join(map(format_exact, one.learning_rates)),
        **{name: _seeds(getattr(one, name)) for name in ("seeds", "weight_seeds", "data_seeds")},
        "compatibility": one.compatibility,
        "evaluated_trial": one.evaluated_trial,
    }


def differences(first: Specification, second: Specification) -> list[tuple[str, str, str]]:
    """Every field that decides results ("training.steps", "encodings.LABEL.max_position") and has two values, of two
    specifications as the server keeps them; with both, empty where there is no such field.

    Of components, those with a label that both have; `unshared` names the others.
    """
    one, two = _fields(first, second), _fields(second, first)
    return [
        (path, one.get(path, ""), two.get(path, ""))
        for path in sorted({*one, *two})
        if one.get(path, "") != two.get(path, "")
    ]


def unshared(one: Specification, other: Specification) -> list[str]:
    """ "encodings none, rope": components of `one` with labels that `other` has not."""
    found = []
    for axis in _AXES:
        others = _labels(other, axis)
        labels = [label for label in _labels(one, axis) if label not in others]
        if labels:
            found.append(f"{axis if len(labels) > 1 else axis[:-1]} {', '.join(labels)}")
    return found


def sentences(first: Specification, second: Specification, names: tuple[str, str]) -> list[str]:
    """How two experiments of these names differ."""
    parts = [
        f"{field} {there or 'none'} ({names[0]}: {here or 'none'})" for field, here, there in differences(first, second)
    ]
    of_one = zip(names, (unshared(first, second), unshared(second, first)))
    only = [f"Only in {name}: {'; '.join(labels)}." for name, labels in of_one if labels]
    if parts:
        return [f"How {names[1]} differs: {'; '.join(parts)}.", *only]
    if not only:
        return ["Both were trained and scored alike."]
    if any(set(_labels(first, axis)).isdisjoint(_labels(second, axis)) for axis in _AXES):
        return ["They have no trials with the same labels.", *only]
    return ["What both have was trained and scored alike.", *only]


@dataclass
class CellPair:
    """Cells of the same task, network, encoding and learning rate."""

    key: tuple[str, str, str, float]
    # None if the experiment has no such cell.
    first: SummaryCell | None = None
    second: SummaryCell | None = None

    def difference(self, by_loss: bool = False) -> float | None:
        """Of the scores on unseen lengths, second minus first; None unless both have one."""
        first, second = _unseen(self.first, by_loss), _unseen(self.second, by_loss)
        return None if first is None or second is None else second - first


def _unseen(cell: SummaryCell | None, by_loss: bool) -> float | None:
    return None if cell is None else score_of(cell, "unseen", by_loss)


def match(first: Iterable[SummaryCell], second: Iterable[SummaryCell]) -> list[CellPair]:
    """In the order of the first experiment's grid, then what only the second has."""
    pairs: dict[tuple[str, str, str, float], CellPair] = {}
    for name, cells in (("first", first), ("second", second)):
        for cell in cells:
            key = (cell.task, cell.network, cell.encoding, cell.learning_rate)
            setattr(pairs.setdefault(key, CellPair(key)), name, cell)
    return list(pairs.values())


def _statistic(cell: SummaryCell | None, by_loss: bool) -> tuple[str, str]:
    """The value on unseen lengths and the number of its trials; empty if there is none."""
    if cell is None or _unseen(cell, by_loss) is None:
        return "", ""
    trials = cell.unseen_loss.trials if by_loss else cell.unseen_accuracy.trials
    return format_row(cell, "unseen", by_loss), str(trials)


def _difference(pair: CellPair, by_loss: tuple[bool, bool]) -> str:
    if by_loss[0] != by_loss[1]:
        return ""
    difference = pair.difference(by_loss[0])
    if difference is None:
        return ""
    size = f"{abs(difference):.3g}" if by_loss[0] else f"{abs(100 * difference):.1f}"
    return f"{'−' if difference < 0 else '+'}{size}"


def heading(headings: Iterable[Heading]) -> str:
    """ "mean unseen accuracy", "median unseen mean squared error", of the experiments' headings."""
    kinds = [f"median unseen {one.score_title}" if one.compared_by_loss else "mean unseen accuracy" for one in headings]
    return " against ".join(dict.fromkeys(reversed(kinds)))


def as_table(
    pairs: Sequence[CellPair], first: str, second: str, by_loss: tuple[bool, bool] = (False, False)
) -> Table:
    """`by_loss`: of each experiment, True if its tasks are compared by loss, which all of them are or none."""
    networks = len({pair.key[1] for pair in pairs}) > 1
    rates = len({pair.key[3] for pair in pairs}) > 1
    columns = [Column("task", shrinks_to=8)]
    columns += [Column("network", shrinks_to=8)] * networks + [Column("encoding", shrinks_to=12)]
    columns += [Column("rate", Align.RIGHT)] * rates
    for name, losses in zip((first, second), by_loss):
        unseen = "unseen" if losses else "unseen %"
        columns += [Column(unseen, Align.RIGHT, rule_before=True, group=name), Column("n", Align.RIGHT, group=name)]
    columns.append(Column("Δ", Align.RIGHT, rule_before=True))
    table = Table(columns)
    for pair in pairs:
        task, network, encoding, rate = pair.key
        cells: list[Cell | str] = [task, *([network] * networks), encoding, *([format_exact(rate)] * rates)]
        for cell, losses in zip((pair.first, pair.second), by_loss):
            value, trials = _statistic(cell, losses)
            cells += [Cell(value, BOLD), Cell(trials, DIM)]
        cells.append(_difference(pair, by_loss))
        table.add_row(cells)
    return table


def as_records(pairs: Sequence[CellPair]) -> Records:
    """Mean accuracies, and the median losses of tasks that are compared by loss."""
    records = Records([
        "task", "network", "encoding", "learning_rate", "first_unseen", "first_deviation", "first_trials",
        "second_unseen", "second_deviation", "second_trials", "difference", "first_unseen_loss", "second_unseen_loss",
        "loss_difference",
    ])  # fmt: skip
    for pair in pairs:
        row: list[Value] = list(pair.key)
        for cell in (pair.first, pair.second):
            trials = cell.unseen_accuracy.trials if cell is not None else 0
            deviation = cell.unseen_accuracy.deviation if cell is not None and trials > 1 else None
            row += [_unseen(cell, False), deviation, trials]
        row.append(pair.difference())
        row += [_unseen(cell, True) for cell in (pair.first, pair.second)]
        records.rows.append([*row, pair.difference(by_loss=True)])
    return records
