"""Summary of an experiment: accuracy by length, or loss for tasks that are compared by loss.

Lengths seen in training are separated from unseen lengths.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lengthwise import queries
from lengthwise._proto import experiment_service_pb2, specification_pb2
from lengthwise.connection import Connection
from lengthwise.queries import Summary
from lengthwise.rendering import Align, Cell, Column, Group, Table, format_count, format_exact
from lengthwise.seen_lengths import SeenLengths, example_runs, seen_lengths


@dataclass(frozen=True)
class AccuracyRow:
    """A point of the grid, seeds aside: the trials that differ only in their seeds, averaged. None: there are none."""

    task: str
    network: str
    encoding: str
    learning_rate: float
    # Trials averaged.
    trials: int
    # By length: mean over the trials of the accuracy, 0 to 1, or median of the loss.
    scores: dict[int, float | None]
    # Means over the lengths of `scores`, or medians over the trials of such means of losses.
    seen: float | None
    unseen: float | None
    # Standard deviation over the trials of their mean accuracies over the unseen lengths; None for fewer than two, and of
    # losses.
    unseen_deviation: float | None
    # Mean and standard deviation over the trials of the accuracy on examples of their own data sets; None if none, or
    # fewer than two, scored any (evaluation.training_examples).
    training: float | None
    training_deviation: float | None


Score = Callable[[AccuracyRow], float | None]


@dataclass(frozen=True)
class AccuracySummary:
    # In the order of the grid. Only trials that succeeded count.
    rows: list[AccuracyRow] = field(default_factory=list)
    # Names of the lengths.
    axis: str = "length"
    axis_title: str = "input length"
    # True if scores are losses, where lower is better; and the scores' name.
    is_loss: bool = False
    score_title: str = "token accuracy"
    # Lengths up to seen.up_to count as seen (evaluation.seen_up_to); 0 if none does.
    seen: SeenLengths = SeenLengths(0)
    # Evaluated lengths, ascending.
    lengths: list[int] = field(default_factory=list)
    # Sequences per length. With `fewer_sequences`, some lengths have fewer, because a test file does.
    sequences: int = 0
    fewer_sequences: bool = False

    @property
    def _counts_one_thing(self) -> bool:
        return self.axis in ("length", "scale")

    def _what_is_seen(self) -> str:
        """ "trained on lengths up to 20", "trained on up to 5 digits", "trained on lengths 10 to 20", "trained on lengths 1
        to 500; up to 40 count as seen".
        """
        most = self.seen.up_to
        if most == 0 and self.seen.trained is None:
            return "none of them seen in training"
        if not self.seen.all_trained(self.lengths):
            return f"trained on {self._trained_lengths()}; up to {most} count as seen"
        if self.seen.trained is not None and min(self.seen.trained) > 1:
            return f"trained on {self._trained_lengths()}"
        if not self._counts_one_thing:
            return f"trained on up to {most} {self.axis}"
        return f"trained on {self.axis} 1" if most == 1 else f"trained on {self.axis}s up to {most}"

    def _trained_lengths(self) -> str:
        """ "lengths 10 to 20", "length 8", "2 to 5 digits", "some of the lengths 1 to 9", "different lengths by task"."""
        seen = self.seen
        # Gaps between evaluated lengths, and differences elsewhere, do not matter.
        all_trained = seen.all_trained(self.lengths)
        if seen.differs and not all_trained:
            return f"different {f'{self.axis}s' if self._counts_one_thing else f'numbers of {self.axis}'} by task"
        numbers = seen.trained_numbers()
        some = seen.has_gaps and not all_trained
        if not self._counts_one_thing:
            return f"{'some of ' if some else ''}{numbers} {self.axis}"
        return f"{'some of the ' if some else ''}{self.axis}{'' if numbers.isdigit() else 's'} {numbers}"

    def caption(self) -> str:
        """ "Token accuracy by input length, per cent (200 sequences per length; trained on lengths up to 20)"."""
        statistic = ", median over trials (" if self.is_loss else ", per cent ("
        most = "up to " if self.fewer_sequences else ""
        sequences = f"{most}{format_count(self.sequences)} sequence{'' if self.sequences == 1 else 's'}"
        per = self.axis if self._counts_one_thing else self.axis_title
        title = self.score_title[:1].upper() + self.score_title[1:]
        has_deviations = any((row.unseen_deviation, row.training_deviation) != (None, None) for row in self.rows)
        deviations = "; ±: standard deviation over trials" if has_deviations else ""
        return f"{title} by {self.axis_title}{statistic}{sequences} per {per}; {self._what_is_seen()}{deviations})"

    def format_score(self, score: float | None) -> str:
        """As tables print it: per cent, or a loss with three digits."""
        if not self.is_loss:
            return _percent(score)
        return "–" if score is None else f"{score:.3g}"


def _percent(fraction: float | None) -> str:
    return "–" if fraction is None else f"{100 * fraction:.1f}"


def _evaluated_sequences(specification: specification_pb2.ExperimentSpecification, lengths: Sequence[int]) -> list[int]:
    """The numbers of sequences that were evaluated at the lengths, ascending. A worker evaluates all examples of a length
    if a test file has fewer than requested.
    """
    requested = specification.evaluation.sequences
    counts = set()
    for task in specification.tasks:
        runs = example_runs(task, "test")
        if runs is None:
            counts.add(requested)
            continue
        counts.update(min(requested, examples) for run, examples in runs if any(length in run for length in lengths))
    return sorted(counts or {requested})


def summarize(
    specification: specification_pb2.ExperimentSpecification, summary: Summary, facts: dict[str, str]
) -> AccuracySummary:
    """From an experiment's specification, as the server keeps it, the server's summary, and the catalogue's facts about a
    task of the experiment: all are of one kind.
    """
    loss_title = queries.loss_title(facts)
    is_loss = loss_title != ""

    def mean(statistic: Summary.Statistic) -> float | None:
        return statistic.mean if statistic.trials > 0 else None

    def deviation(statistic: Summary.Statistic) -> float | None:
        return statistic.deviation if statistic.trials > 1 else None

    def median(quantiles: Summary.Quantiles) -> float | None:
        return quantiles.median if quantiles.trials > 0 else None

    rows = []
    for cell in summary.cells:
        if cell.trials.succeeded == 0:
            continue
        scores = [median(loss) for loss in cell.losses] if is_loss else list(cell.mean_accuracies)
        rows.append(
            AccuracyRow(
                task=cell.task,
                network=cell.network,
                encoding=cell.encoding,
                learning_rate=cell.learning_rate,
                trials=cell.trials.succeeded,
                scores=dict(zip(cell.lengths, scores)),
                seen=median(cell.seen_loss) if is_loss else mean(cell.seen_accuracy),
                unseen=median(cell.unseen_loss) if is_loss else mean(cell.unseen_accuracy),
                unseen_deviation=None if is_loss else deviation(cell.unseen_accuracy),
                training=mean(cell.training_accuracy),
                training_deviation=deviation(cell.training_accuracy),
            )
        )
    defaults = AccuracySummary()
    lengths = sorted({length for row in rows for length in row.scores})
    sequences = _evaluated_sequences(specification, lengths)
    has_own_axis = "seen_up_to" in facts
    seen = seen_lengths(specification.evaluation, specification.training, specification.tasks, has_own_axis)
    return AccuracySummary(
        rows=rows,
        axis=facts.get("axis", defaults.axis),
        axis_title=facts.get("axis_title", defaults.axis_title),
        is_loss=is_loss,
        score_title=loss_title or facts.get("accuracy_title", defaults.score_title),
        seen=seen,
        lengths=lengths,
        sequences=sequences[-1],
        fewer_sequences=len(sequences) > 1,
    )


def fetch(connection: Connection, experiment: experiment_service_pb2.Experiment) -> AccuracySummary:
    summary = queries.summary(connection, experiment.name, with_lengths=True)
    # All tasks of a specification are of one kind.
    tasks = experiment.specification.tasks
    facts = queries.task_facts(connection, tasks[0].name) if tasks else {}
    return summarize(experiment.specification, summary, facts)


def group_lengths(lengths: Sequence[int], most: int) -> list[list[int]]:
    """Cuts lengths into at most `most` groups of nearly equal size; of equal size where a number of groups between half of
    `most` and `most` allows it.
    """
    count = len(lengths)
    most = min(max(most, 1), count)
    groups = next((n for n in range(most, 0, -1) if 2 * n >= most and count % n == 0), most)
    return [list(lengths[count * g // groups : count * (g + 1) // groups]) for g in range(groups)]


def _group_mean(row: AccuracyRow, lengths: Sequence[int]) -> float | None:
    """Over the lengths of one group of what stands in the table."""
    scores = [row.scores[length] for length in lengths if length in row.scores]
    if not scores or None in scores:
        return None
    return sum(score for score in scores if score is not None) / len(scores)


def _group_name(lengths: Sequence[int]) -> str:
    return str(lengths[0]) if len(lengths) == 1 else f"{lengths[0]}–{lengths[-1]}"


@dataclass(frozen=True)
class _Name:
    """A column that says what a row is, with the room that it takes."""

    column: Column
    text: Callable[[AccuracyRow], str]
    width: int


def _names(rows: Sequence[AccuracyRow]) -> list[_Name]:
    """Name columns for the properties in which rows differ."""

    def differs(value: Callable[[AccuracyRow], object]) -> bool:
        return len({value(row) for row in rows}) > 1

    def longest(value: Callable[[AccuracyRow], str]) -> int:
        return max(len(value(row).encode()) for row in rows)

    names: list[_Name] = []
    if differs(lambda row: row.task):
        names.append(_Name(Column("task"), lambda row: row.task, longest(lambda row: row.task) + 2))
    if differs(lambda row: row.network):
        names.append(_Name(Column("network"), lambda row: row.network, longest(lambda row: row.network) + 2))
    rates = differs(lambda row: row.learning_rate)
    # A row needs a name.
    if differs(lambda row: row.encoding) or not (names or rates):
        names.append(_Name(Column("encoding"), lambda row: row.encoding, longest(lambda row: row.encoding)))
    if rates:
        names.append(_Name(Column("rate", Align.RIGHT), lambda row: format_exact(row.learning_rate), 9))
    if any(row.trials > 1 for row in rows):
        names.append(_Name(Column("trials", Align.RIGHT), lambda row: str(row.trials), 8))
    if any(row.training is not None for row in rows):
        column = Column("training set", Align.RIGHT, rule_before=True)
        names.append(_Name(column, lambda row: _percent(row.training), 15))
    if any(row.training_deviation is not None for row in rows):
        names.append(_Name(Column("±", Align.RIGHT), lambda row: _percent(row.training_deviation), 6))
    return names


def _rounded(value: float) -> int:
    """Halves up, of what is not negative."""
    return math.floor(value + 0.5)


def as_table(summary: AccuracySummary, width: int) -> Table:
    """Scores; as many lengths (or groups of them, averaged) as fit `width`, at least one seen and one unseen group. The best
    mean of a task is marked. Columns that tell no rows apart are left out; the encoding's stays where it is the only one.
    """
    rows = summary.rows
    if not rows:
        return Table([])
    names = _names(rows)
    up_to = summary.seen.up_to
    seen = [length for length in summary.lengths if length <= up_to]
    unseen = [length for length in summary.lengths if length > up_to]
    several_trials = any(row.trials > 1 for row in rows)
    with_deviation = several_trials and bool(unseen) and not summary.is_loss
    # Room for groups of lengths beside names and means: seven columns each ("16–20" and two spaces; the longest group name
    # decides). A loss is "1.23e-05".
    score_width = 10 if summary.is_loss else 0
    group_width = max(score_width, 3 + 2 * len(str(summary.lengths[-1] if summary.lengths else 1)))
    means = 2 * score_width if summary.is_loss else 25 if several_trials else 18
    room = max(2, (width - sum(name.width for name in names) - means) // group_width)
    # Seen and unseen share the room by their numbers of lengths, between a quarter and a half for the seen.
    seen_room = 0
    if seen:
        share = len(seen) / len(summary.lengths)
        seen_room = min(max(1, _rounded(room * min(max(share, 0.25), 0.5))), 5)

    columns = [name.column for name in names]
    groups: list[Group] = []
    # For each column, the lengths that it averages, or the score that is a mean of all.
    values: list[list[int] | Score] = []

    def add_side(lengths: list[int], most: int, mean: Score, heading: str, alone: str) -> None:
        if not lengths:
            return
        first = len(columns)
        of_side = group_lengths(lengths, most)
        # One group is the mean, which is not said twice.
        for number, group in enumerate(of_side):
            values.append(group if len(of_side) > 1 else mean)
            columns.append(Column(_group_name(group), Align.RIGHT, rule_before=number == 0))
        if len(of_side) > 1:
            values.append(mean)
            columns.append(Column("mean", Align.RIGHT))
        more = int(with_deviation and lengths is unseen)
        groups.append(Group(heading if len(of_side) > 1 else alone, first, len(columns) - 1 + more))

    of_training = summary.seen.all_trained(summary.lengths)
    seen_headings = ("seen in training", "seen") if of_training else (f"up to {up_to}",) * 2
    add_side(seen, seen_room, lambda row: row.seen, *seen_headings)
    unseen_heading = f"above {up_to}" if summary.seen.went_beyond else "not seen"
    add_side(unseen, max(1, room - seen_room), lambda row: row.unseen, unseen_heading, unseen_heading)
    if with_deviation:
        columns.append(Column("±", Align.RIGHT))
    table = Table(columns, groups)
    for row in rows:
        cells = [Cell(name.text(row)) for name in names]
        for value in values:
            if isinstance(value, list):
                cells.append(Cell(summary.format_score(_group_mean(row, value))))
            else:
                cells.append(Cell(summary.format_score(value(row)), best=_is_best(summary, row, value)))
        if with_deviation:
            cells.append(Cell(_percent(row.unseen_deviation)))
        table.add_row(cells)
    return table


def _is_best(summary: AccuracySummary, row: AccuracyRow, value: Score) -> bool:
    """True if the row has the best value of its task."""
    own = value(row)
    if len(summary.rows) < 2 or own is None:
        return False
    beside = [score for score in (value(other) for other in summary.rows if other.task == row.task) if score is not None]
    return own == (min(beside) if summary.is_loss else max(beside))
