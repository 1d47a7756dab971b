"""Table 1 of Ruoss et al. with fewer steps, and what else pages need of that table: titles, chance and colours."""

from __future__ import annotations

import functools
import itertools
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import filed
from filed import Row, Source

# It shows an effect and reproduces no cell.
SHORT = Source(
    "randomized_pe_table_1",
    "Table 1 of the randomized positional encodings with 0.3 % of its steps",
    "reproduced/table1_short.yaml",
    "table1_short",
    component="encoding",
    place="length",
    measure="accuracy",
    ending="_short",
)
PUBLISHED_TABLE = filed.read_published(SHORT.table)
COLUMNS = {column["key"]: column for column in PUBLISHED_TABLE["columns"]}
# Label and chance, in per cent, of the tasks of Ruoss et al.
TITLES = {row["key"]: (row["label"], float(row["random_accuracy_percent"])) for row in PUBLISHED_TABLE["rows"]}
PICTURE = filed.HERE / "table1_short.svg"
# Its trials' longest training sequences.
SEEN_UP_TO = 40
# Their sequences of each evaluated length.
SEQUENCES = 128
# A trial with a lower accuracy on seen lengths has not learned the task.
LEARNED = 0.9
# The task in whose answer the place of a symbol alone tells more than a uniform guess.
BY_PLACE = "Bucket Sort"


def column_of(label: str) -> dict[str, Any]:
    """The table's column with this encoding of ours."""
    encoding = {"name": label.removeprefix("randomized_"), "randomized": label.startswith("randomized_")}
    return next(
        column
        for column in COLUMNS.values()
        if encoding.items() <= {"randomized": False, **column["encoding"]}.items()
    )


def style_of(column: dict[str, Any]) -> Any:
    """As the encoding has it in all figures."""
    from lengthwise.plots.series_style import encoding_style

    return encoding_style(column["encoding"]["name"], column["encoding"].get("randomized", False))


@functools.cache
def by_place(length: int) -> float:
    """Accuracy in Bucket Sort of the best answer that reads no input: at each place of the sorted list, the symbol that is there
    most often. The k-th is one of the first i symbols if k or more elements are, and their number is binomial.
    """
    symbols = 5
    # For i from 0 to all symbols and k from 0: the probability that k or more elements are of the first i symbols.
    at_least = [[0.0] * (length + 1)]
    for share in (i / symbols for i in range(1, symbols)):
        counts = [math.comb(length, k) * share**k * (1 - share) ** (length - k) for k in range(length + 1)]
        at_least.append(list(itertools.accumulate(reversed(counts)))[::-1])
    at_least.append([1.0] * (length + 1))
    return statistics.fmean(
        max(more[k] - fewer[k] for fewer, more in itertools.pairwise(at_least)) for k in range(1, length + 1)
    )


def by_frequency(length: int) -> float:
    """The expected share of the more frequent of two symbols in a random string."""
    return sum(max(k, length - k) * math.comb(length, k) for k in range(length + 1)) / (length * 2**length)


def no_input(task: str, chance: float, lengths: Iterable[int]) -> tuple[float, str]:
    """The mean accuracy, in per cent, of the best answer that we know without reading the input, and what it is."""
    if task != BY_PLACE:
        return chance, f"random guess {chance:g} %"
    mean = 100 * statistics.fmean(map(by_place, lengths))
    return mean, f"by place {mean:.0f} %"


@dataclass(frozen=True)
class ShortTrial:
    """One trial of SHORT: its accuracies by length, and the published mean over unseen lengths, in per cent."""

    accuracies: dict[int, float]
    printed: float
    chance: float

    @property
    def unseen(self) -> float:
        """The mean over unseen lengths, as the paper's tables."""
        return statistics.mean(value for length, value in self.accuracies.items() if length > SEEN_UP_TO)

    @property
    def unseen_lengths(self) -> list[int]:
        return [length for length in self.accuracies if length > SEEN_UP_TO]

    def answers_as(self, other: ShortTrial) -> bool:
        """The same accuracies at all unseen lengths: of models that give every input one answer."""
        return all(self.accuracies[length] == other.accuracies.get(length) for length in self.unseen_lengths)

    @property
    def learned(self) -> bool:
        return statistics.mean(value for length, value in self.accuracies.items() if length <= SEEN_UP_TO) >= LEARNED


# Trials of a task, by its label and by the keys of the published table's columns.
Rows = dict[str, dict[str, ShortTrial]]


def rows_of(raw: Sequence[Row]) -> Rows:
    """The tasks for which trials are there, in the order of the published table."""
    printed = {(cell["row"], cell["column"]): float(cell["value"]) for cell in PUBLISHED_TABLE["cells"]}
    rows: Rows = {}
    for row in PUBLISHED_TABLE["rows"]:
        for column in PUBLISHED_TABLE["columns"]:
            accuracies = {
                int(one["length"]): float(one["accuracy"])
                for one in raw
                if one["task"] == row["key"] and filed.matches(one["encoding"], column["encoding"])
            }
            if accuracies:
                trial = ShortTrial(accuracies, printed[row["key"], column["key"]], row["random_accuracy_percent"])
                rows.setdefault(row["label"], {})[column["key"]] = trial
    return rows


def table(rows: Rows, steps: str) -> list[str]:
    """A line for each task, "printed / ours" for each encoding; a star where the task is not learned, a dagger where two trials
    give the same answers.
    """
    first = next(iter(next(iter(rows.values())).values()))
    columns = [key for key in COLUMNS if any(key in trials for trials in rows.values())]
    heads = [f"accuracy on unseen lengths, %: printed, 2,000,000 steps / ours, {steps}", "chance"]
    lines = []
    for label, trials in rows.items():
        texts = []
        for trial in map(trials.__getitem__, columns):
            star = "" if trial.learned else "*"
            if any(trial is not other and trial.answers_as(other) for other in trials.values()):
                star += "†"
            texts.append(f"{trial.printed:.1f} / {100 * trial.unseen:.1f}{star}")
        mean, what = no_input(label, trial.chance, trial.unseen_lengths)
        chance = f"{trial.chance:g}" if mean == trial.chance else f"{trial.chance:g}; {what.removesuffix(' %')}"
        lines.append([label, chance, *texts])
    answers = SEQUENCES * len(first.unseen_lengths)
    places = [100 * by_place(length) for length in first.unseen_lengths]
    frequent = 100 * statistics.fmean(map(by_frequency, first.unseen_lengths))
    *most, last = (str(length) for length in first.accuracies if length <= SEEN_UP_TO)
    return [
        *filed.markdown("lr" + "r" * len(columns), heads + [COLUMNS[key]["label"] for key in columns], lines),
        "",
        (
            f"Ours are of {answers:,} inputs, {SEQUENCES} at each of {len(first.unseen_lengths)} lengths. With plain positions and one"
            f" answer of one symbol an input, two standard errors are at most {100 / math.sqrt(answers):.1f} points. With randomized"
            f" positions, the {SEQUENCES} inputs of a length share one draw of positions, so they are not independent."
        ),
        "",
        (
            f"Chance is that of a uniform guess. In {BY_PLACE}, an answer by place alone reads no input: it gives each place of the sorted"
            f" list the symbol that is there most often. It has {min(places):.0f} to {max(places):.0f} % by length. In Reverse String, Duplicate"
            f" String and Odds First, the string's more frequent symbol at every place has {frequent:.1f} %. In Modular Arithmetic, 0 is"
            " the answer to 30 to 32 % of the inputs (of 4,000 each from `lengthwise sample modular_arithmetic_brackets`, at lengths 55,"
            " 300 and 500), so an accuracy near 32 % needs no learning there."
        ),
        "",
        f"\\* Below {100 * LEARNED:g} % after {steps} steps on seen lengths, too, in the mean over {', '.join(most)} and {last}.",
        "",
        "† The same accuracy as another trial of the row at every unseen length, as of two that give every input one answer.",
    ]


def page(raw: Sequence[Row], rows: Rows, steps: str) -> list[str]:
    return [
        f"# {SHORT.title}",
        (
            "Not reproduced cells: the paper trains two million steps and prints the maximum, on these same test lengths, of three learning"
            " rates and ten seeds; here each number is one trial at a learning rate of 3e-4, scored on every 27th length with"
            f" {SEQUENCES} sequences instead of 500. Network, batch, training lengths and the range of unseen lengths (41 to 500) are the"
            f" paper's. Specification: [{SHORT.specification}](../{SHORT.specification})."
        ),
        filed.training_of(raw),
        "",
        *table(rows, steps),
        "",
        f"![Accuracy by length]({PICTURE.name})",
    ]


def draw(rows: Rows, steps: str) -> Any:
    """Lengthwise's own figure of accuracy by length, from the results that are kept."""
    from lengthwise.plots import drawing, panels
    from lengthwise.plots.picture import Axis, Panel, Picture, Reference, Series
    from lengthwise.plots.style import REFERENCE

    def draw_by_place(axes: Any) -> None:
        axes.plot(range(1, 501), list(map(by_place, range(1, 501))), **REFERENCE)

    picture = Picture(x=Axis("input length", ticks="counts"), y=panels.accuracy_axis("accuracy"))
    picture.caption = (
        f"One trial a line: {steps} steps, {SEQUENCES} sequences and one draw of randomized positions a length. Dotted in {BY_PLACE}:"
        " the best answer by place alone, which reads no input. Two standard errors of a point are at most"
        f" {100 / math.sqrt(SEQUENCES):.0f} points with plain positions and one answer of one symbol."
    )
    picture.shaded_label = f"seen in training: lengths 1 to {SEEN_UP_TO}"
    for label, trials in rows.items():
        panel = Panel(label, shaded=(1, SEEN_UP_TO))
        if label == BY_PLACE:
            panel.draw = draw_by_place
        else:
            chance = next(iter(trials.values())).chance / 100
            panel.references.append(Reference(chance, f"random guess {chance:.0%}"))
        for key, trial in trials.items():
            lengths, accuracies = zip(*trial.accuracies.items(), strict=True)
            panel.series.append(Series(COLUMNS[key]["label"], lengths, accuracies, style=style_of(COLUMNS[key])))
        picture.panels.append(panel)
    panels.arrange_panels(picture)
    panels.set_length_axis(picture)
    return drawing.draw(picture)
