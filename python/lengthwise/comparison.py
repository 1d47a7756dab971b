"""An experiment beside a table that a paper prints."""
from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lengthwise import protocol, published, queries
from lengthwise._proto import event_pb2, experiment_service_pb2, specification_pb2
from lengthwise.connection import Connection
from lengthwise.errors import NothingChoosesError, UsageError
from lengthwise.names import label, list_trials, short_name
from lengthwise.published import PublishedColumn, PublishedGain, PublishedTable, PublishedValue, Quantity, Statistic
from lengthwise.queries import Evaluation, Summary

SummaryCell = experiment_service_pb2.SummarizeExperimentResponse.Cell
Specification = specification_pb2.ExperimentSpecification
Component = specification_pb2.Component

_SECONDS_PER_HOUR = 3600


@dataclass(frozen=True)
class SeedStatistic:
    """Over the trials of one configuration that have the value: those that differ in their seeds alone."""

    trials: int = 0
    mean: float = 0
    # Sample standard deviation; 0 for a single trial.
    deviation: float = 0
    max: float = 0
    # How a choice by other scores than these ranks the configuration and its best trial, -inf where it has no score of
    # them, and that trial's value.
    score: float = -math.inf
    best_score: float = -math.inf
    best: float | None = None
    # What decides between equal scores: the losses of both, then the learning rate.
    loss: float = 0
    best_loss: float = 0
    rate: float = 0

    def scaled(self, factor: float) -> SeedStatistic:
        return replace(
            self,
            mean=self.mean * factor,
            deviation=self.deviation * factor,
            max=self.max * factor,
            best=None if self.best is None else self.best * factor,
        )


# By a summary's cell, its index, and the length.
LengthStatistics = Mapping[tuple[int, int], SeedStatistic]


@dataclass(frozen=True)
class Measurement:
    value: float
    deviation: float | None
    trials: int


def aggregate(configurations: Sequence[SeedStatistic], statistic: Statistic, select: str = "") -> Measurement | None:
    """One number of a cell's configurations; None while none has a trial. `select` "seen": chosen by their scores.
    NothingChoosesError if they have none.
    """
    with_trials = [one for one in configurations if one.trials > 0]
    if not with_trials:
        return None
    trials = sum(one.trials for one in with_trials)
    choices = trials if statistic is Statistic.MAXIMUM else len(with_trials)
    by_scores = select == "seen" and statistic is not Statistic.MEAN_OF_ALL and choices > 1
    if by_scores and all(one.score == -math.inf for one in with_trials):
        raise NothingChoosesError
    if statistic is Statistic.MAXIMUM:
        best = max(
            with_trials, key=lambda one: queries.rank(one.best_score if by_scores else one.max, one.best_loss, one.rate)
        )
        value = best.best if by_scores else best.max
        return None if value is None else Measurement(value, None, trials)
    if statistic is not Statistic.MEAN_OF_ALL:
        is_median = statistic is Statistic.MEDIAN
        sign = -1 if is_median else 1
        best = max(
            with_trials, key=lambda one: queries.rank(one.score if by_scores else sign * one.mean, one.loss, one.rate)
        )
        return Measurement(best.mean, best.deviation if best.trials > 1 and not is_median else None, best.trials)
    mean = sum(one.mean * one.trials for one in with_trials) / trials
    if trials < 2:
        return Measurement(mean, None, trials)
    # The squares within the configurations and between them.
    squares = sum((one.trials - 1) * one.deviation**2 + one.trials * (one.mean - mean) ** 2 for one in with_trials)
    return Measurement(mean, math.sqrt(squares / (trials - 1)), trials)


def decimals(quantity: Quantity) -> int:
    """Digits behind the point as tables print the quantity."""
    return 2 if quantity is Quantity.TRAINING_HOURS else 1


def rounded(value: float, digits: int) -> float:
    """Halves away from zero, as printed numbers are rounded."""
    unit = 10**digits
    return math.copysign(math.floor(abs(value) * unit + 0.5) / unit, value)


@dataclass
class ComparisonCell:
    # None while no trial of the cell has finished, or if none of them has the value.
    measured: Measurement | None = None
    published: PublishedValue | None = None
    # The best of its row as it is printed; several share it, none has it where the row has a single value, losses or
    # training accuracies.
    best_measured: bool = False
    best_published: bool = False
    # True if a trial of the cell has finished.
    finished: bool = False

    def difference(self, quantity: Quantity) -> float | None:
        """Measured less published, as printed numbers would be subtracted; losses as they are."""
        if self.measured is None or self.published is None:
            return None
        if quantity is Quantity.LOSS:
            return self.measured.value - self.published.value
        digits = decimals(quantity)
        return rounded(rounded(self.measured.value, digits) - rounded(self.published.value, digits), digits)

    @property
    def ratio(self) -> float | None:
        """Measured divided by published; None if published is 0."""
        if self.measured is None or self.published is None or self.published.value == 0:
            return None
        return self.measured.value / self.published.value

    @property
    def within_published(self) -> bool | None:
        """True if measured lies within the paper's 10th to 90th percentiles; None if one of them is not known."""
        if self.measured is None or self.published is None or self.published.p10 is None or self.published.p90 is None:
            return None
        return self.published.p10 <= self.measured.value <= self.published.p90


@dataclass(frozen=True)
class Gain:
    """A number of the paper's text, here and from the paper's cells of the same rows and columns."""

    published: PublishedGain
    # Rows with both columns that gain and columns that are gained upon.
    rows: int
    mean: float
    largest: float
    published_mean: float
    published_largest: float


@dataclass
class Comparison:
    # The experiment's short name.
    experiment: str
    table: PublishedTable
    # By row, then column, of `table`.
    cells: list[list[ComparisonCell]] = field(default_factory=list)
    protocol: protocol.ProtocolComparison = field(default_factory=protocol.ProtocolComparison)
    # The experiment's, as the server keeps it.
    specification: Specification = field(default_factory=Specification)
    # "seen": choices are by the scores of seen lengths; otherwise as the paper's.
    select: str = ""
    # Trials by what became of them here: of the table's cells and with a value,
    counted: int = 0
    # of the table's cells, but not finished (waiting, running, failed or cancelled),
    unfinished: int = 0
    # finished, but evaluated on no length above those of training, or not at the table's,
    without_value: int = 0
    # of no cell of the table.
    elsewhere: int = 0
    # Rows and columns of the table's cells that have trials, with or without a value.
    places: set[tuple[int, int]] = field(default_factory=set)
    # In what the trials of one cell differ, besides their seeds: "learning rate", "encoding".
    varied: list[str] = field(default_factory=list)
    # Steps of a trial here, and of the paper, where times were scaled from one to the other; else 0.
    steps: int = 0
    published_steps: int = 0

    @property
    def cell_count(self) -> int:
        return len(self.table.rows) * len(self.table.columns)

    @property
    def cells_run(self) -> int:
        return sum(cell.measured is not None for row in self.cells for cell in row)

    def row_was_run(self, row: int) -> bool:
        """True if one of its cells has a value."""
        return any(cell.measured is not None for cell in self.cells[row])

    def column_was_run(self, column: int) -> bool:
        """True if one of its cells has a value."""
        return any(row[column].measured is not None for row in self.cells)

    def gains(self) -> list[Gain]:
        """Gains for which a row was run."""
        found = []
        for gain in self.table.gains:
            here: list[float] = []
            published: list[float] = []
            for row in self.cells:
                by_key = {column.key: cell for column, cell in zip(self.table.columns, row)}
                sides = [
                    [
                        (cell.measured.value, cell.published.value)
                        for cell in map(by_key.__getitem__, keys)
                        if cell.measured is not None and cell.published is not None
                    ]
                    for keys in (gain.of, gain.less)
                ]
                if all(sides):
                    for values, i in ((here, 0), (published, 1)):
                        of, less = (max(pair[i] for pair in side) for side in sides)
                        values.append(of - less)
            if here:
                means = statistics.fmean(here), statistics.fmean(published)
                found.append(Gain(gain, len(here), means[0], max(here), means[1], max(published)))
        return found


def _component(axis: Sequence[Component], label: str) -> Component:
    """The component of an axis that trials with this label have."""
    return next((component for component in axis if component.label == label), Component())


def _statistic(message: experiment_service_pb2.SummarizeExperimentResponse.Statistic) -> SeedStatistic:
    return SeedStatistic(message.trials, message.mean, message.deviation, message.max)


def _value(
    index: int, cell: SummaryCell, at_lengths: LengthStatistics, quantity: Quantity, column: PublishedColumn
) -> SeedStatistic:
    """Value of a summary cell for a column; `trials` is 0 if the cell has none."""
    if quantity is Quantity.UNSEEN_ACCURACY:
        if column.length == 0:
            best = cell.best_unseen_accuracy if cell.HasField("best_unseen_accuracy") else None
            return replace(_statistic(cell.unseen_accuracy), best=best)
        return at_lengths.get((index, column.length), SeedStatistic())
    if quantity is Quantity.TRAINING_ACCURACY:
        return _statistic(cell.training_accuracy)
    if quantity is Quantity.TRAINING_HOURS:
        return _statistic(cell.training_seconds)
    if quantity is Quantity.STEPS_PER_SECOND:
        return _statistic(cell.steps_per_second)
    for length, loss in zip(cell.lengths, cell.losses):
        if length == column.length:
            return SeedStatistic(trials=loss.trials, mean=loss.median)
    return SeedStatistic()


def _mark_best(
    columns: Sequence[PublishedColumn], quantity: Quantity, row: Sequence[ComparisonCell], side: str
) -> None:
    """Of the "measured" or the "published" values, among the columns of one statistic: a maximum is not held against a mean.
    """
    sign = -1 if quantity is Quantity.TRAINING_HOURS else 1
    for statistic in set(Statistic) - {Statistic.MEDIAN}:
        cells = [cell for column, cell in zip(columns, row) if column.statistic is statistic and getattr(cell, side)]
        ranks = [sign * rounded(getattr(cell, side).value, decimals(quantity)) for cell in cells]
        for cell, rank in zip(cells, ranks):
            if len(ranks) > 1 and rank == max(ranks):
                setattr(cell, f"best_{side}", True)


def compare(
    table: PublishedTable,
    specification: Specification,
    paper: Specification,
    summary: Summary,
    at_lengths: LengthStatistics | None = None,
    experiment: str = "",
    select: str = "",
) -> Comparison:
    """From an experiment's specification, as the server keeps it, the table's resolved protocol and the summary.

    `at_lengths` is for a table with accuracies at single lengths. UsageError where times cannot be compared: trials stop
    early.
    """
    if table.quantity is Quantity.ATTENTION_COSINE:
        raise UsageError(
            f"{table.key} is about attention maps; `lengthwise analyze attention EXPERIMENT --reference ENCODING --compare "
            f"{table.key}` compares with it"
        )
    comparison = Comparison(
        experiment=experiment,
        table=table,
        protocol=protocol.compare(specification, paper, table),
        specification=specification,
        select=select,
    )
    factor = 1.0 if table.quantity in (Quantity.LOSS, Quantity.STEPS_PER_SECOND) else 100.0
    if table.quantity is Quantity.TRAINING_HOURS:
        training = specification.training
        if training.stop_after_seconds > 0 or training.stop_at_accuracy > 0:
            raise UsageError(
                "trials of this experiment may stop early, so that their times cannot be compared with "
                f"{table.key}; leave stop_after_seconds and stop_at_accuracy out"
            )
        comparison.steps, comparison.published_steps = training.steps, paper.training.steps
        factor = paper.training.steps / training.steps / _SECONDS_PER_HOUR
    values: dict[tuple[int, int], list[SeedStatistic]] = {}
    finished: set[tuple[int, int]] = set()
    # The labels of trials with a value.
    labels: dict[tuple[int, int], list[tuple[str | float, ...]]] = {}
    for index, cell in enumerate(summary.cells):
        task = _component(specification.tasks, cell.task)
        network = _component(specification.networks, cell.network)
        encoding = _component(specification.encodings, cell.encoding)
        places = table.places(task, network, encoding)
        counted = 0
        for r, c in places:
            value = _value(index, cell, at_lengths or {}, table.quantity_of(r), table.columns[c]).scaled(factor)
            if cell.selection.trials > 0:
                value = replace(
                    value,
                    score=cell.selection.mean,
                    best_score=cell.selection.max,
                    loss=cell.selection_loss,
                    best_loss=cell.best_loss,
                )
            value = replace(value, rate=cell.learning_rate)
            counted = max(counted, value.trials)
            values.setdefault((r, c), []).append(value)
            if value.trials > 0:
                labels.setdefault((r, c), []).append((cell.learning_rate, cell.encoding, cell.network, cell.task))
        trials = cell.trials
        unended = queries.unended_trials(trials) + trials.failed + trials.cancelled
        comparison.places.update(places)
        if trials.succeeded:
            finished.update(places)
        if places:
            comparison.unfinished += unended
            comparison.counted += counted
            comparison.without_value += trials.succeeded - counted
        else:
            comparison.elsewhere += unended + trials.succeeded
    for i, axis in enumerate(("learning rate", "encoding", "network", "task")):
        if any(len({one[i] for one in of_cell}) > 1 for of_cell in labels.values()):
            comparison.varied.append(axis)
    for r in range(len(table.rows)):
        cells = [
            ComparisonCell(
                aggregate(values.get((r, c), []), column.statistic, select),
                table.cells.get((r, c)),
                finished=(r, c) in finished,
            )
            for c, column in enumerate(table.columns)
        ]
        comparison.cells.append(cells)
        # Losses of a row are those of ever larger scales: the first would always be the best.
        if table.quantity is not Quantity.LOSS and table.quantity_of(r) is not Quantity.TRAINING_ACCURACY:
            _mark_best(table.columns, table.quantity, cells, "measured")
            _mark_best(table.columns, table.quantity, cells, "published")
    return comparison


def length_statistics(
    table: PublishedTable,
    summary: Summary,
    trials: Sequence[experiment_service_pb2.Trial],
    evaluations: Iterable[Evaluation],
) -> dict[tuple[int, int], SeedStatistic]:
    """Accuracies at the lengths of the table's columns, of the final evaluations of trials that have succeeded.

    A summary has their means alone. Of several evaluations of a trial the last one counts. A trial without an accuracy at a
    length is not one of its trials.
    """
    finals = {one.trial: one.accuracies for one in evaluations if one.accuracies.final}
    cells = {
        (cell.task, cell.network, cell.encoding, cell.learning_rate): index for index, cell in enumerate(summary.cells)
    }
    wanted = {column.length for column in table.columns}
    values: dict[tuple[int, int], dict[str, float]] = {}
    for trial in trials:
        one = trial.specification
        key = (label(one.task), label(one.network), label(one.encoding), one.learning_rate)
        if trial.name not in finals or trial.state != event_pb2.SUCCEEDED or key not in cells:
            continue
        for length, accuracy in zip(finals[trial.name].lengths, finals[trial.name].accuracies):
            if length in wanted and math.isfinite(accuracy):
                values.setdefault((cells[key], length), {})[short_name(trial.name)] = accuracy
    return {
        place: SeedStatistic(
            trials=len(found),
            mean=statistics.fmean(found.values()),
            deviation=statistics.stdev(found.values()) if len(found) > 1 else 0,
            max=max(found.values()),
            best=found.get(summary.cells[place[0]].best_trial),
        )
        for place, found in values.items()
    }


def fetch_all(
    connection: Connection, experiment: experiment_service_pb2.Experiment, select: str = ""
) -> list[Comparison]:
    """Beside each table of the experiment's paper of which a cell was run. NothingChoosesError if there is none for that
    reason alone.
    """
    of_paper = [
        table for table in published.tables() if table.protocol.get("protocol") == experiment.specification.protocol
    ]
    summary = queries.summary(connection, experiment.name, with_lengths=True, select=select) if of_paper else None
    found = []
    unchosen: NothingChoosesError | None = None
    for table in of_paper:
        try:
            comparison = fetch(connection, experiment, table, summary, select)
        except NothingChoosesError as error:
            unchosen = error
            continue
        except UsageError:
            continue  # nobody asked for this table, with which it cannot be compared
        if comparison.cells_run > 0:
            found.append(comparison)
    if unchosen is not None and not found:
        raise unchosen
    return found


def fetch(
    connection: Connection,
    experiment: experiment_service_pb2.Experiment,
    table: PublishedTable,
    summary: Summary | None = None,
    select: str = "",
) -> Comparison:
    """The experiment beside the table, with all that the table needs asked for.

    `summary`, where it is there already, is the experiment's, with its lengths.
    """
    paper = protocol.resolve_protocol(connection, table)
    if summary is None:
        summary = queries.summary(
            connection, experiment.name, with_lengths=table.quantity is Quantity.LOSS, select=select
        )
    at_lengths: dict[tuple[int, int], SeedStatistic] = {}
    if table.has_length_accuracies:
        trials = list_trials(connection, experiment.name)
        evaluations = queries.length_accuracies(connection, experiment.name, [trial.name for trial in trials])
        at_lengths = length_statistics(table, summary, trials, evaluations)
    return compare(table, experiment.specification, paper, summary, at_lengths, short_name(experiment.name), select)
