"""The table of an experiment's results: accuracy by length, or loss for tasks that are compared by loss.

Lengths seen in training are separated from unseen lengths. The numbers and the words above them are the server's.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from lengthwise.queries import Summary
from lengthwise.rendering import Align, Cell, Column, Table, format_exact

# A point of the grid, seeds aside: trials that differ only in their seeds.
Row = Summary.Cell
Score = Callable[[Row], float | None]


def rows_of(summary: Summary) -> list[Row]:
    """Those with a trial that succeeded, in the order of the grid."""
    return [cell for cell in summary.cells if cell.trials.succeeded]


def caption_of(summary: Summary) -> str:
    """ "Token accuracy by input length, per cent (...). Random guess: 20 % (bucket_sort)."."""
    heading = summary.heading
    return " ".join(filter(None, [f"{heading.caption}.", heading.random_guess]))


def score_of(row: Row, side: str, by_loss: bool) -> float | None:
    """Over the "seen" or the "unseen" lengths: the mean accuracy, or the median over trials of mean losses; None without a
    trial.
    """
    if by_loss:
        losses: Summary.Quantiles = getattr(row, f"{side}_loss")
        return losses.median if losses.trials else None
    return _mean(getattr(row, f"{side}_accuracy"))


def mean_of(summary: Summary, side: str) -> Score:
    return lambda row: score_of(row, side, summary.heading.compared_by_loss)


def unseen_deviation(summary: Summary, row: Row) -> float | None:
    """Standard deviation over the trials of their mean accuracies; None for fewer than two, and of losses."""
    return None if summary.heading.compared_by_loss else _deviation(row.unseen_accuracy)


def format_score(summary: Summary, score: float | None) -> str:
    """As tables print it: per cent, or a loss with three digits."""
    return _loss(score) if summary.heading.compared_by_loss else _percent(score)


def format_row(row: Row, side: str, by_loss: bool) -> str:
    """Its score_of: "87.9", "87.9 ± 3.2", a loss with three digits, or "–"."""
    score = score_of(row, side, by_loss)
    if by_loss:
        return _loss(score)
    deviation = _deviation(getattr(row, f"{side}_accuracy"))
    return _percent(score) + ("" if deviation is None else f" ± {_percent(deviation)}")


def _mean(statistic: Summary.Statistic) -> float | None:
    return statistic.mean if statistic.trials else None


def _deviation(statistic: Summary.Statistic) -> float | None:
    return statistic.deviation if statistic.trials > 1 else None


def _loss(loss: float | None) -> str:
    return "–" if loss is None else f"{loss:.3g}"


def _percent(fraction: float | None) -> str:
    return "–" if fraction is None else f"{100 * fraction:.1f}"


def _scores(summary: Summary, row: Row) -> dict[int, float | None]:
    """By length: mean over the trials of the accuracy, 0 to 1, or median of the loss."""
    losses = [loss.median if loss.trials else None for loss in row.losses]
    return dict(zip(row.lengths, losses if summary.heading.compared_by_loss else row.mean_accuracies))


def group_lengths(lengths: Sequence[int], most: int) -> list[list[int]]:
    """Cuts lengths into at most `most` groups of nearly equal size; of equal size where a number of groups between half of
    `most` and `most` allows it.
    """
    count = len(lengths)
    most = min(max(most, 1), count)
    groups = next((n for n in range(most, 0, -1) if 2 * n >= most and count % n == 0), most)
    return [list(lengths[count * g // groups : count * (g + 1) // groups]) for g in range(groups)]


def _group_mean(by_length: dict[int, float | None], lengths: Sequence[int]) -> float | None:
    """Over the lengths of one group of what stands in the table."""
    scores = [by_length[length] for length in lengths if length in by_length]
    if not scores or None in scores:
        return None
    return sum(score for score in scores if score is not None) / len(scores)


def _names(rows: Sequence[Row]) -> list[tuple[Column, list[str], int]]:
    """Columns that say what a row is, by the properties in which rows differ; each with a text for each row and the room
    that it takes.
    """
    texts = {name: [str(getattr(row, name)) for row in rows] for name in ("task", "network", "encoding", "learning_rate")}
    wanted = [name for name, of_rows in texts.items() if len(set(of_rows)) > 1]
    # A row needs a name.
    names = [
        (Column(name), texts[name], max(len(text.encode()) for text in texts[name]) + (0 if name == "encoding" else 2))
        for name in texts
        if name != "learning_rate" and (name in wanted or (name == "encoding" and not wanted))
    ]
    trained = [row.training_accuracy for row in rows]
    if "learning_rate" in wanted:
        names.append((Column("rate", Align.RIGHT), [format_exact(row.learning_rate) for row in rows], 9))
    if any(row.trials.succeeded > 1 for row in rows):
        names.append((Column("trials", Align.RIGHT), [str(row.trials.succeeded) for row in rows], 8))
    if any(one.trials for one in trained):
        column = Column("training set", Align.RIGHT, rule_before=True)
        names.append((column, [_percent(_mean(one)) for one in trained], 15))
    if any(one.trials > 1 for one in trained):
        names.append((Column("±", Align.RIGHT), [_percent(_deviation(one)) for one in trained], 6))
    return names


def as_table(summary: Summary, width: int) -> Table:
    """Scores; as many lengths (or groups of them, averaged) as fit `width`, at least one seen and one unseen group. The best
    mean of a task is marked. Columns that tell no rows apart are left out; the encoding's stays where it is the only one.
    """
    rows, heading = rows_of(summary), summary.heading
    if not rows:
        return Table([])
    names, is_loss = _names(rows), heading.compared_by_loss
    lengths = sorted({length for row in rows for length in row.lengths})
    seen = [length for length in lengths if length <= heading.seen_up_to]
    unseen = [length for length in lengths if length > heading.seen_up_to]
    several_trials = any(row.trials.succeeded > 1 for row in rows)
    with_deviation = several_trials and bool(unseen) and not is_loss
    # Room for groups of lengths beside names and means: seven columns each ("16–20" and two spaces; the longest group name
    # decides). A loss is "1.23e-05".
    score_width = 10 if is_loss else 0
    group_width = max(score_width, 3 + 2 * len(str(lengths[-1] if lengths else 1)))
    means = 2 * score_width if is_loss else 25 if several_trials else 18
    room = max(2, (width - sum(taken for _, _, taken in names) - means) // group_width)
    # Seen and unseen share the room by their numbers of lengths, between a quarter and a half for the seen.
    seen_room = 0
    if seen:
        share = len(seen) / len(lengths)
        seen_room = min(max(1, math.floor(room * min(max(share, 0.25), 0.5) + 0.5)), 5)

    columns = [column for column, _, _ in names]
    # For each column, the lengths that it averages, or the score that is a mean of all.
    values: list[list[int] | Score] = []

    def add_side(side: list[int], most: int, mean: Score, title: str, alone: str) -> None:
        if not side:
            return
        of_side = group_lengths(side, most)
        title = title if len(of_side) > 1 else alone
        # One group is the mean, which is not said twice.
        for number, group in enumerate(of_side):
            values.append(group if len(of_side) > 1 else mean)
            name = str(group[0]) if len(group) == 1 else f"{group[0]}–{group[-1]}"
            columns.append(Column(name, Align.RIGHT, rule_before=number == 0, group=title))
        if len(of_side) > 1:
            values.append(mean)
            columns.append(Column("mean", Align.RIGHT, group=title))

    # A narrow column, if all of them are of training.
    alone = "seen" if heading.seen == "seen in training" else heading.seen
    add_side(seen, seen_room, mean_of(summary, "seen"), heading.seen, alone)
    add_side(unseen, max(1, room - seen_room), mean_of(summary, "unseen"), heading.unseen, heading.unseen)
    if with_deviation:
        columns.append(Column("±", Align.RIGHT, group=columns[-1].group))
    table = Table(columns)
    for number, row in enumerate(rows):
        cells, by_length = [Cell(texts[number]) for _, texts, _ in names], _scores(summary, row)
        for value in values:
            if isinstance(value, list):
                cells.append(Cell(format_score(summary, _group_mean(by_length, value))))
            else:
                cells.append(Cell(format_score(summary, value(row)), best=_is_best(summary, row, value)))
        if with_deviation:
            cells.append(Cell(_percent(unseen_deviation(summary, row))))
        table.add_row(cells)
    return table


def _is_best(summary: Summary, row: Row, value: Score) -> bool:
    """True if the row has the best value of its task."""
    rows, own = rows_of(summary), value(row)
    if len(rows) < 2 or own is None:
        return False
    beside = [score for score in (value(other) for other in rows if other.task == row.task) if score is not None]
    return own == (min(beside) if summary.heading.compared_by_loss else max(beside))
