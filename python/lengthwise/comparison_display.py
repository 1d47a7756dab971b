"""A comparison with a published table as people and programs read it."""
from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TextIO

from lengthwise.comparison import Comparison, ComparisonCell, Measurement, decimals
from lengthwise.protocol import Difference, ProtocolComparison
from lengthwise.published import (
    CodeReading,
    PublishedColumn,
    PublishedTable,
    PublishedValue,
    Quantity,
    Statistic,
    Substitute,
)
from lengthwise.rendering import (
    BOLD,
    DIM,
    GREEN,
    Align,
    Cell,
    Column,
    Palette,
    Records,
    Table,
    counted,
    escape_latex,
    escape_markdown,
    format_count,
    wrap,
)

_COLUMNS = [
    "task", "level", "permutation_invariant", "random_accuracy", "encoding", "measured", "measured_deviation", "trials",
    "published", "published_deviation", "difference", "best_measured", "best_published", "quantity", "row", "column",
    "published_p10", "published_p90",
]  # fmt: skip


def _statistic(comparison: Comparison, column: PublishedColumn) -> str:
    """What a cell of the column has of its trials."""
    varied, statistic = " and ".join(comparison.varied), column.statistic
    where = ""
    if comparison.select == "seen":
        where = " on seen lengths"
    elif comparison.table.quantity is Quantity.UNSEEN_ACCURACY:
        where = " at that length" if column.length else " on unseen lengths, as in the paper"
    if statistic is Statistic.MAXIMUM:
        return f"the trial that is best{where}"
    if statistic is Statistic.MEDIAN:
        by = "the mean error on seen lengths" if comparison.select == "seen" else "these errors themselves"
        lowest = f"the lowest of the medians over the seeds, by {varied}, chosen by {by}"
        return lowest if varied else "the median over the seeds"
    if statistic is Statistic.MEAN_OF_ALL:
        return "mean and sample standard deviation over all trials"
    best = f" of the {varied} with the highest mean{where}" if varied else ""
    return f"mean and sample standard deviation over the seeds{best}"


def format_quantity(quantity: Quantity, value: float) -> str:
    """With as many digits behind the point as is usual for the quantity; a loss and many hours, which few steps were scaled
    to, with three digits.
    """
    if quantity is Quantity.LOSS or (quantity is Quantity.TRAINING_HOURS and abs(value) >= 10):
        return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
    return f"{value:.{decimals(quantity)}f}"


def records(comparison: Comparison) -> Records:
    """One row a cell of the whole table; values of cells that were not run are absent."""
    table = comparison.table
    found = Records(_COLUMNS)
    for r, row in enumerate(table.rows):
        for c, column in enumerate(table.columns):
            cell = comparison.cells[r][c]
            measured = [getattr(cell.measured, name, None) for name in ("value", "deviation")]
            published = [getattr(cell.published, name, None) for name in ("value", "deviation", "p10", "p90")]
            found.rows.append([
                row.task, row.level, row.permutation_invariant, row.random_accuracy, column.key, *measured,
                cell.measured.trials if cell.measured else 0, *published[:2], cell.difference(table.quantity),
                cell.best_measured, cell.best_published, table.quantity_of(r).value, row.label, column.label, *published[2:],
            ])  # fmt: skip
    return found


def records_of_all(comparisons: Sequence[Comparison]) -> Records:
    """The records of each, after the table's key."""
    return Records(["table", *_COLUMNS], [[one.table.key, *row] for one in comparisons for row in records(one).rows])


def _unseen(comparison: Comparison) -> str:
    """ "unseen lengths", or what is scored instead: "unseen puzzles", "lengths above 40"."""
    one = comparison.specification
    if comparison.table.scored == "lengths" and one.evaluation.HasField("seen_up_to"):
        seen = one.evaluation.seen_up_to
        if seen != one.training.lengths.max:
            return f"lengths above {seen}"
    return f"unseen {comparison.table.scored}"


def _where(comparison: Comparison) -> str:
    """ "on unseen lengths", "at length 10, 50": of accuracies."""
    table = comparison.table
    lengths = sorted({column.length for column in table.columns if column.length > 0})
    return f"at length {', '.join(map(str, lengths))}" if table.has_length_accuracies else f"on {_unseen(comparison)}"


def heading(comparison: Comparison) -> str:
    """ "table1_quick-1 beside Table 1 of Ruoss et al. 2023 (ACL): accuracy on unseen lengths, per cent."."""
    table = comparison.table
    what = {
        Quantity.TRAINING_HOURS: "hours of training",
        Quantity.STEPS_PER_SECOND: "training steps per second",
        Quantity.LOSS: "mean squared error by scale",
    }.get(table.quantity, f"accuracy {_where(comparison)}, per cent")
    return f"{comparison.experiment} beside {table.table} of {table.paper}: {what}."


def _without_value(comparison: Comparison, whole_table: bool) -> str:
    """How many cells have a value; which rows and columns have none, for they have no trial or no trial with one."""
    table = comparison.table
    has = "has" if comparison.cells_run == 1 else "have"
    text = f"{comparison.cells_run} of {counted(comparison.cell_count, 'cell')} {has} a value"
    hidden = False
    axes = (
        ("rows", [row.label for row in table.rows], comparison.row_was_run),
        ("columns", [column.label for column in table.columns], comparison.column_was_run),
    )
    for i, (axis, labels, was_run) in enumerate(axes):
        with_trials = {place[i] for place in comparison.places}
        for why, has_trials in (("without trials", False), ("without a value", True)):
            found = [label for at, label in enumerate(labels) if not was_run(at) and (at in with_trials) == has_trials]
            if found:
                text += f"; {axis} {why}: {', '.join(found)}"
                hidden = True
    if not whole_table and comparison.cells_run > 0 and hidden:
        text += " (--whole_table shows them)"
    return text + "."


# Effect of other trials on one trial's time.
_SHARED_TIME = (
    "trials of a pack count the whole pack's time each, and workers that share a machine slow each other"
)


def _what_is_measured(comparison: Comparison) -> str:
    table = comparison.table
    value = f"a trial's mean accuracy over {_unseen(comparison)}"
    if table.scored == "puzzles":
        value = "a trial's mean accuracy over the numbers of vectors, on puzzles not seen in training"
    if table.has_length_accuracies:
        value = f"a trial's accuracy {_where(comparison)}"
    if table.quantity is Quantity.LOSS:
        value = "a trial's mean squared error at each scale"
    if any(
        row.quantity is Quantity.TRAINING_ACCURACY and comparison.row_was_run(r) for r, row in enumerate(table.rows)
    ):
        value += ", and its accuracy on examples of its own data set"
    if table.quantity is Quantity.TRAINING_HOURS:
        value = (
            f"hours of a trial's training, scaled from {format_count(comparison.steps)} to the paper's "
            f"{format_count(comparison.published_steps)} steps ({_SHARED_TIME})"
        )
    if table.quantity is Quantity.STEPS_PER_SECOND:
        value = f"steps per second of a trial's training ({_SHARED_TIME})"
    statistics = list(dict.fromkeys(_statistic(comparison, column) for column in table.columns))
    trials = [cell.measured.trials for row in comparison.cells for cell in row if cell.measured]
    least, most = min(trials), max(trials)
    per_cell = counted(most, "trial") if least == most else f"{least} to {counted(most, 'trial')}"
    return f"Here: {value}; {', or '.join(statistics)}; {per_cell} in each cell. Paper: {table.aggregation}."


def _why_without_value(table: PublishedTable) -> str:
    if table.is_time:
        return "whose time is not known"
    if table.quantity is Quantity.LOSS:
        return "evaluated at none of the table's scales"
    if table.has_length_accuracies:
        return "not evaluated at that length"
    return f"evaluated on no unseen {table.scored}"


def _left_out(comparison: Comparison) -> str:
    trials = (
        (comparison.unfinished, "without a result"),
        (comparison.without_value, _why_without_value(comparison.table)),
        (comparison.elsewhere, "of no cell of the table"),
    )
    reasons = [f"{counted(count, 'trial')} {why}" for count, why in trials if count]
    return f"Left out: {', '.join(reasons)}." if reasons else ""


def protocol_remarks(comparison: Comparison) -> list[str]:
    """Remarks on differences between the trials' protocol and the table's, and on fields that the paper leaves open."""
    table, found = comparison.table, comparison.protocol
    readings = table.code_readings(comparison.specification)
    remarks = []
    if found.differences:
        parts = [f"{one.what} {one.here} (paper: {one.published})" for one in found.differences]
        remarks.append(f"Not the paper's protocol: {'; '.join(parts)}.")
    else:
        remarks.append(_as_printed(found, readings))
    if found.open_fields:
        notes = dict.fromkeys(one.note for one in found.open_fields)
        parts = [
            ", ".join(f"{one.what} (here {one.here})" for one in found.open_fields if one.note == note) + f": {note}"
            for note in notes
        ]
        remarks.append(f"The paper leaves open: {'; '.join(parts)}.")
    if table.silent and not table.is_time:
        parts = [f"{what} (here {here})" for what, here in table.silent]
        remarks.append(f"The paper does not say {'; '.join(parts)}.")
    for substitute, here in _substitutes(comparison):
        remarks.append(f"Never the paper's: {substitute.what}: {here} (paper: {substitute.published}).")
    for substitute, name in found.brought:
        remarks.append(f"As the experiment says: {substitute.what} of {name} (paper: {substitute.published}).")
    if found.outside:
        remarks.append(f"Not in the table: {'; '.join(found.outside)}.")
    for side, where in _SIDES.items():
        known = [_sentence(reading) for reading in readings if reading.side == side]
        if known:
            remarks.append(f"The released code, where the trials here {where}: {'; '.join(known)}.")
    columns = _columns_run_by_code(comparison)
    by_sides: dict[str, list[str]] = {}
    for column in table.columns:
        if column.key in columns:
            by_sides.setdefault(_as_in(columns[column.key]), []).append(column.label)
    parts = [f"{', '.join(labels)} ({sides})" for sides, labels in by_sides.items()]
    if parts:
        own = "Columns that the released code treats in a way of their own (in brackets, what the trials here are)"
        remarks.append(f"{own}: {'; '.join(parts)}.")
    return remarks


# By CodeReading.side.
_SIDES = {
    "text": "are as in the text",
    "code": "are as in the code",
    "neither": "are as in neither",
    "mixed": "differ from each other",
}


def _as_in(sides: Sequence[str]) -> str:
    """ "as in the code"; "in part as in the text, in part as in neither"."""
    texts = [f"as in {side if side == 'neither' else f'the {side}'}" for side in sides]
    return texts[0] if len(texts) == 1 else ", ".join(f"in part {text}" for text in texts)


def _as_printed(found: ProtocolComparison, readings: Sequence[CodeReading]) -> str:
    """Says what "as printed" leaves out: what nobody but the authors has, and where the code is followed instead."""
    text = "Protocol: as printed"
    if found.open_fields:
        text += ", as far as the paper says"
    if found.outside:
        text += ", for the trials that the table has"
    exceptions = [f"the {one.what}" for one in found.substitutes]
    points = sum(reading.replaces_text for reading in readings)
    if points:
        exceptions.append(f"{counted(points, 'point')} on which trials follow the released code instead of the text")
    if exceptions:
        text += f"; except {', and '.join(exceptions)} (below)"
    return text + "."


def _sentence(reading: CodeReading) -> str:
    """The difference; of trials that differ from each other, which are as what."""
    if reading.side != "mixed":
        return reading.sentence
    sides = "; ".join(f"{_as_in([side])}: {', '.join(labels)}" for side, labels in reading.labels().items())
    return f"{reading.sentence} [{sides}]"


def _substitutes(comparison: Comparison) -> list[tuple[Substitute, str]]:
    """With what its trials on the table's tasks have instead; nothing without such trials."""
    of_table = {row.task for row in comparison.table.rows}
    tasks = [task for task in comparison.specification.tasks if task.name in of_table]
    if not tasks:
        return []
    return [(one, one.described(comparison.specification, tasks)) for one in comparison.protocol.substitutes]


def _columns_run_by_code(comparison: Comparison) -> dict[str, list[str]]:
    """By the key of a column with a value: the sides that its trials take, of published.SIDES."""
    columns = comparison.table.columns_by_code(comparison.specification)
    return {
        column.key: columns[column.key]
        for c, column in enumerate(comparison.table.columns)
        if column.key in columns and comparison.cells and comparison.column_was_run(c)
    }


def _signed(value: float) -> str:
    return ("−" if value < 0 else "+") + f"{abs(value):.1f}"


def gain_remarks(comparison: Comparison) -> list[str]:
    """A single number from the paper's text."""
    found = []
    for gain in comparison.gains():
        printed = gain.published
        text = _signed(printed.mean) + (f" and {_signed(printed.largest)}" if printed.largest is not None else "")
        found.append(
            f"In one number, {printed.what}: here {_signed(gain.mean)} points on average of {counted(gain.rows, 'row')}, at "
            f"most {_signed(gain.largest)} (the paper's same cells: {_signed(gain.published_mean)} and "
            f"{_signed(gain.published_largest)}; its text, of all {len(comparison.table.rows)} rows: {text})."
        )
    return found


def _within_published(comparison: Comparison) -> str:
    """How many medians the paper's own trials include: a ratio alone does not say whether seeds explain it."""
    known = [cell.within_published for row in comparison.cells for cell in row if cell.within_published is not None]
    if not known:
        return ""
    cells = counted(len(known), "cell")
    return (
        f"The median here lies within the 10th to 90th percentiles of the paper's own trials in {sum(known)} of {cells}."
        " These percentiles are wide, so that is no sign that the medians are equal."
    )


def remarks(comparison: Comparison, best_mark: str, whole_table: bool) -> list[str]:
    """Sentences: which cells have a value, which trials it is of, marks, how the protocol differs, the table's notes.

    `best_mark` is the one for the best of a row.
    """
    found = [_without_value(comparison, whole_table)]
    if comparison.cells_run > 0:
        found.append(_what_is_measured(comparison))
        if comparison.table.quantity not in (Quantity.LOSS, Quantity.STEPS_PER_SECOND):
            marks = f"Best of a row: {best_mark}."
            if any(row.permutation_invariant for row in comparison.table.rows):
                marks += " Permutation-invariant, so solvable without positions: †."
            found.append(marks)
    found += [remark for remark in (_within_published(comparison), _left_out(comparison)) if remark]
    found += gain_remarks(comparison)
    found += protocol_remarks(comparison)
    return found + [f"On the published table: {note}" for note in comparison.table.notes]


def _value(value: Measurement | PublishedValue | None, quantity: Quantity) -> str:
    """The value with its deviation, if it has one."""
    if value is None:
        return ""
    text = format_quantity(quantity, value.value)
    return text if value.deviation is None else f"{text} ± {format_quantity(quantity, value.deviation)}"


def _here(cell: ComparisonCell, quantity: Quantity) -> str:
    """A dash if trials have finished, but none has the value."""
    return _value(cell.measured, quantity) or ("–" if cell.finished else "")


def _difference(cell: ComparisonCell, quantity: Quantity) -> str:
    """Losses, of many sizes, are compared by their ratio."""
    if quantity is Quantity.LOSS:
        return "" if cell.ratio is None else f"{cell.ratio:.2g}"
    difference = cell.difference(quantity)
    if difference is None:
        return ""
    return ("−" if difference < 0 else "+") + format_quantity(quantity, abs(difference))


class _Layout:
    """The rows and columns that are shown."""

    def __init__(self, comparison: Comparison, whole_table: bool) -> None:
        self.comparison, self.table = comparison, comparison.table
        self.rows = [r for r in range(len(self.table.rows)) if whole_table or comparison.row_was_run(r)]
        self.columns = [c for c in range(len(self.table.columns)) if whole_table or comparison.column_was_run(c)]
        self._has_levels = any(self.table.rows[r].level for r in self.rows)
        self._has_chance = any(self.table.rows[r].random_accuracy for r in self.rows) and not self.table.is_time

    def _heads(self) -> list[Column]:
        level = [Column("level")] if self._has_levels else []
        return [*level, Column("task", shrinks_to=12), *([Column("chance", Align.RIGHT)] if self._has_chance else [])]

    def _filled(self, rendered: Table, cells_of: Callable[[ComparisonCell], list[Cell]]) -> Table:
        """A level is given only where it differs from the row above, with a rule before it."""
        above = ""
        for r in self.rows:
            row = self.table.rows[r]
            level = "" if row.level == above else row.level
            if level:
                rendered.add_rule()
            above = row.level
            cells: list[Cell | str] = [level] if self._has_levels else []
            cells.append(row.label + (" †" if row.permutation_invariant else ""))
            cells += [f"{row.random_accuracy:g}"] if self._has_chance else []
            for c in self.columns:
                cells += cells_of(self.comparison.cells[r][c])
            rendered.add_row(cells)
        return rendered

    def side_by_side(self, stars: bool) -> Table:
        """Three columns for each encoding. A star marks the best if bold text is not available."""
        heads = self._heads()
        names = "here", "paper", "ratio" if self.table.quantity is Quantity.LOSS else "Δ"
        for label in (self.table.columns[c].label for c in self.columns):
            heads += [Column(name, Align.RIGHT, rule_before=name == "here", group=label) for name in names]
        rendered = Table(heads)

        def mark(text: str, best: bool) -> str:
            # Numbers stay aligned even if one has a star.
            return text + ("*" if best else " ") if stars and text else text

        quantity = self.table.quantity

        def cells(cell: ComparisonCell) -> list[Cell]:
            here = mark(_here(cell, quantity), cell.best_measured)
            paper = mark(_value(cell.published, quantity), cell.best_published)
            return [
                Cell(here, GREEN if cell.best_measured else BOLD, cell.best_measured),
                Cell(paper, best=cell.best_published),
                Cell(_difference(cell, quantity), DIM),
            ]

        return self._filled(rendered, cells)

    def one_cell_each(self) -> Table:
        columns = [Column(self.table.columns[c].label, Align.RIGHT) for c in self.columns]
        quantity = self.table.quantity

        def cells(cell: ComparisonCell) -> list[Cell]:
            here, published = _here(cell, quantity), _value(cell.published, quantity)
            text = " / ".join([here, published, _difference(cell, quantity)])
            if not here:
                text = f"  / {published} /  " if cell.published else ""
            return [Cell(text, best=cell.best_measured)]

        return self._filled(Table(self._heads() + columns), cells)


def write_terminal(comparison: Comparison, whole_table: bool, width: int, palette: Palette, out: TextIO) -> None:
    """As many tables below each other as `width` asks for, the best of a row with a star, then the remarks."""
    out.write(palette(BOLD, heading(comparison)) + "\n")
    layout = _Layout(comparison, whole_table)
    if layout.rows:
        out.write("\n" + layout.side_by_side(stars=True).render(width, palette, in_parts=True))
    out.write("\n")
    for remark in remarks(comparison, "*", whole_table):
        out.write(wrap(remark, width, 2) + "\n")


def write_markdown(comparison: Comparison, whole_table: bool, out: TextIO) -> None:
    """One cell an encoding, "measured / published / difference"."""
    kind = "ratio" if comparison.table.quantity is Quantity.LOSS else "difference"
    out.write(f"**{escape_markdown(heading(comparison))}** Each cell: here / paper / {kind}.\n\n")
    out.write(_Layout(comparison, whole_table).one_cell_each().render_markdown() + "\n")
    for remark in remarks(comparison, "bold", whole_table):
        out.write(f"- {escape_markdown(remark)}\n")


def html_table(comparison: Comparison) -> str:
    """One table element with columns for measured, published and difference."""
    return _Layout(comparison, False).side_by_side(stars=False).render_html()


def write_latex(comparison: Comparison, whole_table: bool, out: TextIO) -> None:
    """A table environment for booktabs, the remarks in its caption."""
    table = _Layout(comparison, whole_table).side_by_side(stars=False)
    out.write(f"\\begin{{table}}\n\\centering\n{table.render_latex()}")
    sentences = [heading(comparison), *remarks(comparison, "bold", whole_table)]
    out.write(f"\\caption{{{' '.join(map(escape_latex, sentences))}}}\n\\end{{table}}\n")


def _told(one: Difference | Substitute, here: str) -> dict[str, str]:
    return {"what": one.what, "here": here, "published": one.published}


def as_dictionary(comparison: Comparison) -> dict[str, object]:
    """{"experiment", "table", "cells": [the records], "differences": [...], ...}."""
    table, found = comparison.table, comparison.protocol
    return {
        "experiment": comparison.experiment,
        "table": table.key,
        "citation": table.citation,
        "aggregation": table.aggregation,
        "cells_run": comparison.cells_run,
        "cell_count": comparison.cell_count,
        "trials_counted": comparison.counted,
        "trials_unfinished": comparison.unfinished,
        "trials_without_value": comparison.without_value,
        "trials_elsewhere": comparison.elsewhere,
        "notes": list(table.notes),
        "compatibility": comparison.specification.compatibility or "paper",
        "differences": [_told(one, one.here) for one in found.differences],
        "left_open": [{"what": one.what, "here": one.here, "note": one.note} for one in found.open_fields],
        "substitutes": [_told(one, here) for one, here in _substitutes(comparison)],
        "brought": [_told(one, name) for one, name in found.brought],
        "not_in_table": found.outside,
        "released_code": [
            {"code": one.sentence, "here": one.side} for one in table.code_readings(comparison.specification)
        ],
        "columns_by_code": _columns_run_by_code(comparison),
        "gains": [
            {
                "what": one.published.what,
                **{name: getattr(one, name) for name in ("rows", "mean", "largest", "published_mean", "published_largest")},
                "printed_mean": one.published.mean,
                "printed_largest": one.published.largest,
            }
            for one in comparison.gains()
        ],
        "cells": records(comparison).as_dictionaries(),
    }


def write_json(document: object, out: TextIO) -> None:
    """Of one `as_dictionary`, or a list of them."""
    out.write(json.dumps(document, ensure_ascii=False, indent=1) + "\n")
