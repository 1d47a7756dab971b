#!/usr/bin/env python3
"""Writes experiments/REPRODUCED.md, its page of each published table, the results in README.md, and their pictures: published
numbers beside the ones that Lengthwise trained.

    experiments/reproduced/make_page.py             # from the results kept in experiments/reproduced/results
    experiments/reproduced/make_page.py --add SITE --machine "AMD EPYC, one thread a trial"
                                                    # first adds the trials that have ended of a folder of `lengthwise publish`
    experiments/reproduced/make_page.py --check     # fails where pages, README.md or pictures are not what the results make

Drawing pictures needs the Python package of this repository (python/).
"""

from __future__ import annotations

import argparse
import csv
import datetime
import functools
import hashlib
import itertools
import json
import math
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
PAGE = HERE.parent / "REPRODUCED.md"
PUBLISHED = HERE.parent / "published"
README = HERE.parent.parent / "README.md"
SHORT_PICTURE = HERE / "table1_short.svg"
STYLE = HERE.parent.parent / "python/lengthwise/plots/paper.mplstyle"

# A cell counts as reproduced only with this many runs, the paper's.
RUNS = 10
# The error of the best answer that is the same for all tokens and all orders of a vector's numbers, over our 1,000 test vectors
# and over 100,000 others. From the latter, the relative standard error that a draw of 1,000 vectors adds to the error of networks
# that answer all tokens alike, as graph networks do; it is not known for other networks. `bazel test
# //tasks/numeric:algorithmic_test` computes all three.
DRAWS = RESULTS / "test_draws.csv"
# Standard error of a median over that of a mean, of normal values.
MEDIAN_ERROR = 1.2533
# Draws of test vectors whose spread a difference has: ours, and the paper's. If it drew vectors for each run, as the released code
# of its other figures does, the median over its runs has only a share of a draw's spread.
ONE_DRAW = 2
DRAW_A_RUN = 1 + MEDIAN_ERROR**2 / RUNS
# Standard deviations from the 10th to the 90th percentile of normal values.
P10_TO_P90 = 2.5631
# Of one core, by run: a star with self-connections makes 30 steps a second (two cores of an AMD EPYC with AVX2, 2026-11-30), and
# sorting took 3.2 hours for its 20 runs.
STAR_HOURS = 0.55
OTHERS_HOURS = 0.16


@dataclass(frozen=True)
class Source:
    """A published table or figure, and the experiments that train it again."""

    table: str
    title: str
    # The specification, below experiments/.
    specification: str
    # Their name in the specification.
    experiment: str
    # Columns of the results: what differs between the table's columns, where a trial was evaluated, and what was measured.
    component: str = "network"
    place: str = "scale"
    measure: str = "loss"

    @property
    def key(self) -> tuple[str, str, str]:
        """Columns that tell results apart."""
        return "trial", self.component, self.place


SOURCES = [
    Source(
        "positional_attention_table_1",
        "Table 1 of the positional-attention paper: graph convolutions",
        "reproduced/table1_gcn.yaml",
        "table1_gcn",
    ),
    Source(
        "positional_attention_figure_4_2",
        "Figure 4 of the positional-attention paper at n = 2",
        "positional_attention/figure4_length2.yaml",
        "positional_attention_figure4_length2",
    ),
    Source(
        "positional_attention_figure_3_5000",
        "Figure 3 of the positional-attention paper at 5,000 vectors",
        "positional_attention/figure3_5000.yaml",
        "positional_attention_figure3_5000",
    ),
]

# Sorting of Table 1 trained again and tested on 100,000 vectors of another draw: ten runs on two graphs.
OTHERS = Source("positional_attention_table_1", "Table 1 on other vectors", "reproduced/table1_gcn.yaml", "table1_gcn_others")

# Table 1 of Ruoss et al. with fewer steps. It shows an effect and reproduces no cell.
SHORT = Source(
    "randomized_pe_table_1",
    "Table 1 of the randomized positional encodings with 0.3 % of its steps",
    "reproduced/table1_short.yaml",
    "table1_short",
    component="encoding",
    place="length",
    measure="accuracy",
)
# Its trials' longest training sequences.
SEEN_UP_TO = 40
# Their sequences of each evaluated length.
SHORT_SEQUENCES = 128
# A trial with a lower accuracy on seen lengths has not learned the task.
LEARNED = 0.9
# The task in whose answer the place of a symbol alone tells more than a uniform guess.
BY_PLACE = "Bucket Sort"

TRIAL_COLUMNS = ["steps", "training_seconds", "started", "ended", "machine", "instruction_set", "threads", "revision"]

Row = dict[str, str]


def raw_file(source: Source) -> Path:
    ending = {SHORT: "_short", OTHERS: "_others"}.get(source, "")
    return RESULTS / f"{source.table}{ending}.csv"


def read_csv(path: Path) -> list[Row]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def read_raw(source: Source) -> list[Row]:
    """One row for each trial and scale or length."""
    return read_csv(raw_file(source)) if raw_file(source).exists() else []


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Row]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def facts_of(trial: Row, machine: str) -> Row:
    """When, where and with what a trial of a folder of `lengthwise publish` was trained."""
    return {
        "training_seconds": f"{float(trial['training_seconds']):.1f}",
        "started": trial["start_time"][:16].replace("T", " "),
        "ended": trial["end_time"][:16].replace("T", " "),
        "machine": machine,
        "instruction_set": trial["instruction_set"],
        "revision": trial["source_revision"],
    }


def collect(site: Path, machine: str) -> str:
    """Adds the trials that have succeeded of a folder that `lengthwise publish` wrote; returns what it is about."""
    name = json.loads((site / "specification.json").read_text(encoding="utf-8"))["name"]
    trials = {row["trial"]: row for row in read_csv(site / "trials.csv") if row["state"] == "SUCCEEDED"}
    measured = [row for row in read_csv(site / "length_accuracies.csv") if row["trial"] in trials]
    if name == TEN_SEEDS.stem:
        return collect_ten_seeds(trials, measured, machine)
    source = next((source for source in (*SOURCES, SHORT, OTHERS) if source.experiment == name), None)
    if source is None:
        raise SystemExit(f"{site}: no table of this page is made of experiments called {name}")
    # With its network or encoding, whose label hides parameters, a trial's name says everything about it, and its seed: no
    # seed counts twice, whichever server trained it.
    rows = {tuple(row[column] for column in source.key): row for row in read_raw(source)}
    for one in measured:
        if one["final"] != "true":
            continue
        trial = trials[one["trial"]]
        _, experiment, _, short = one["trial"].split("/")
        # Numbers of components are real, as the server's.
        specification = json.loads((site / f"trials/{short}.json").read_text(encoding="utf-8"), parse_int=float)
        component = specification[f"{source.component}s"][0]
        row = {
            "experiment": experiment,
            "trial": short,
            "task": specification["tasks"][0]["name"],
            source.component: json.dumps({"name": component["name"], **component.get("parameters", {})}, sort_keys=True),
            source.place: one["length"],
            source.measure: one[source.measure],
            "steps": trial["steps"],
            "threads": trial["threads"],
            **facts_of(trial, machine),
        }
        # A trial collected before stays: another machine may have trained it.
        rows.setdefault(tuple(row[column] for column in source.key), row)
    write_csv(
        raw_file(source),
        ["experiment", "trial", "task", source.component, source.place, source.measure, *TRIAL_COLUMNS],
        sorted(rows.values(), key=lambda row: (row["trial"], int(row[source.place]))),
    )
    return f"{source.title}: {len({key[:2] for key in rows})} trials"


def median_error(p10: float, p90: float) -> float:
    """Standard error of the logarithm of a median of RUNS runs with these percentiles."""
    return MEDIAN_ERROR * math.log(p90 / p10) / P10_TO_P90 / math.sqrt(RUNS)


@dataclass(frozen=True)
class Cell:
    """A published number and the runs that were trained for it."""

    source: Source
    row_label: str
    column_label: str
    printed: float
    # 10th and 90th percentile of the paper's own runs, where it shows them.
    printed_range: tuple[float, float] | None
    losses: list[float]
    # On other test vectors.
    others: list[float]
    # Relative standard error by a draw of test vectors; 0 if it is not known.
    draw_error: float
    # The error of the best common answer on our test vectors; 0 where networks may do better.
    common_error: float

    @property
    def complete(self) -> bool:
        return len(self.losses) >= RUNS

    @property
    def median(self) -> float:
        return statistics.median(self.losses)

    @property
    def low(self) -> float:
        return statistics.quantiles(self.losses, n=10, method="inclusive")[0]

    @property
    def high(self) -> float:
        return statistics.quantiles(self.losses, n=10, method="inclusive")[-1]

    # Expected over drawn: how much larger the error of common answers is on other vectors than on ours; 1 if it is not known.
    redraw: float

    @property
    def measured_on_others(self) -> bool:
        return len(self.others) >= RUNS

    @property
    def median_on_others(self) -> float:
        """Our median on other test vectors; an estimate where it is not measured, as if it moved with the draw in proportion
        to the error of common answers.
        """
        return statistics.median(self.others) if self.measured_on_others else self.median * self.redraw

    def untrained_variance(self, draws: float = ONE_DRAW) -> float:
        """Of the logarithm of an answer without training / printed: the paper's runs or the rounding of its print, and draws of test
        vectors.
        """
        if self.printed_range is None:
            # Two digits; a rounding is uniform.
            theirs: float = 10 ** (math.floor(math.log10(self.printed)) - 1) / self.printed / math.sqrt(12)
        else:
            theirs = median_error(*self.printed_range)
        return theirs**2 + draws * self.draw_error**2

    def standard_error(self, draws: float = ONE_DRAW) -> float:
        """Of the logarithm of ours / printed, which also has the spread over our runs."""
        ours = MEDIAN_ERROR * statistics.stdev(map(math.log, self.losses)) / math.sqrt(len(self.losses))
        return math.sqrt(ours**2 + self.untrained_variance(draws))

    def distance(self, draws: float = ONE_DRAW) -> float:
        """From the print to our median, in standard errors."""
        return math.log(self.median / self.printed) / self.standard_error(draws)

    def distance_on_others(self, draws: float = ONE_DRAW) -> float:
        """The same of the estimate, which has the paper's draw alone."""
        return math.log(self.median_on_others / self.printed) / self.standard_error(draws - 1)


def matches(component: str, published: dict[str, Any]) -> bool:
    """The trial's network or encoding has every parameter that the published row or column names."""
    ours = json.loads(component)
    return all(ours.get(name) == value for name, value in published.items())


def cells_of(source: Source, published: dict[str, Any], raw: Sequence[Row]) -> list[Cell]:
    """Cells for which at least one run is there, in the order of the table."""
    rows = {row["key"]: row for row in published["rows"]}
    columns = {column["key"]: column for column in published["columns"]}
    draws = {
        (row["task"], row["scale"]): [float(row[column]) for column in ("ours", "expected", "relative_error")]
        for row in read_csv(DRAWS)
    }
    cells = []
    for cell in published["cells"]:
        row, column = rows[cell["row"]], columns[cell["column"]]
        losses, others = (
            [
                float(one["loss"])
                for one in runs
                if one["task"] == row["task"]
                and one["scale"] == str(column["length"])
                and matches(one["network"], row["network"])
            ]
            for runs in (raw, read_raw(OTHERS) if source.table == OTHERS.table else ())
        )
        if losses:
            printed_range = (cell["p10"], cell["p90"]) if "p10" in cell else None
            draw, common, redraw = 0.0, 0.0, 1.0
            if row["network"]["name"] == "graph_network":
                common, expected, draw = draws[row["task"], str(column["length"])]
                redraw = expected / common
            label, scale, value = row["label"], column["label"], float(cell["value"])
            cells.append(Cell(source, label, scale, value, printed_range, losses, others, draw, common, redraw))
    return cells


def number(value: float, digits: int = 3) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.{digits}g}"


def with_range(median: float, percentiles: tuple[float, float] | None) -> str:
    """ "0.00628 (0.00407 to 0.0129)"; with four digits where three hide a difference."""
    if percentiles is None:
        return number(median)
    low, high = percentiles
    digits = 3 if len({number(low), number(median), number(high)}) == 3 else 4
    return f"{number(median, digits)} ({number(low, digits)} to {number(high, digits)})"


def span(values: Iterable[str], separator: str = ", ") -> str:
    return separator.join(sorted(set(values)))


def hours_of(trials: Iterable[Row]) -> str:
    """ "at most 5.2 hours of training": see remarks.md. What is filed may be an estimate that is longer than the run was."""
    hours = bound = 0.0
    for row in trials:
        seconds = float(row["training_seconds"])
        # Start and end are whole minutes.
        longest = _seconds(row["started"], row["ended"]) + 120
        hours += min(seconds, longest) / 3600
        bound = max(bound, seconds - longest)
    return f"{'at most ' if bound > 0 else ''}{hours:.1f} hours of training"


def _seconds(start: str, end: str) -> float:
    return (datetime.datetime.fromisoformat(end) - datetime.datetime.fromisoformat(start)).total_seconds()


def days(raw: Sequence[Row]) -> str:
    """ "2026-11-23 to 2026-11-25"."""
    return span((found(row["ended"] for row in raw)[:10] for found in (min, max)), " to ")


def machines(raw: Sequence[Row]) -> str:
    return (
        f"Machine: {span((row['machine'] for row in raw), '; ')} ({span(row['instruction_set'] for row in raw)}); revision"
        f" {span(row['revision'][:7] for row in raw)}."
    )


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


def no_input(task: str, chance: float, lengths: Iterable[int]) -> tuple[float, str]:
    """The mean accuracy, in per cent, of the best answer that we know without reading the input, and what it is."""
    if task != BY_PLACE:
        return chance, f"random guess {chance:g} %"
    mean = 100 * statistics.fmean(map(by_place, lengths))
    return mean, f"by place {mean:.0f} %"


# Trials of a task, by its label and by the keys of the published table's columns.
ShortRows = dict[str, dict[str, ShortTrial]]


def short_rows(raw: Sequence[Row]) -> ShortRows:
    """The tasks for which trials are there, in the order of the published table."""
    published = read_published(SHORT)
    printed = {(cell["row"], cell["column"]): float(cell["value"]) for cell in published["cells"]}
    rows: ShortRows = {}
    for row in published["rows"]:
        for column in published["columns"]:
            accuracies = {
                int(one["length"]): float(one["accuracy"])
                for one in raw
                if one["task"] == row["key"] and matches(one["encoding"], column["encoding"])
            }
            if accuracies:
                trial = ShortTrial(accuracies, printed[row["key"], column["key"]], row["random_accuracy_percent"])
                rows.setdefault(row["label"], {})[column["key"]] = trial
    return rows


def short_table(raw: Sequence[Row], rows: ShortRows) -> list[str]:
    """A line for each task, "printed / ours" for each encoding; a star where the task is not learned, a dagger where two trials
    give the same answers.
    """
    columns = [
        column for column in read_published(SHORT)["columns"] if any(column["key"] in trials for trials in rows.values())
    ]
    steps = span(f"{int(row['steps']):,}" for row in raw)
    lines = [
        (
            f"| accuracy on unseen lengths, %: printed, 2,000,000 steps / ours, {steps} | chance |"
            f" {' | '.join(column['label'] for column in columns)} |"
        ),
        "| --- | ---: |" + " ---: |" * len(columns),
    ]
    for label, trials in rows.items():
        texts = []
        for column in columns:
            trial = trials.get(column["key"])
            star = "" if trial is None or trial.learned else "*"
            if trial is not None and any(trial is not other and trial.answers_as(other) for other in trials.values()):
                star += "†"
            texts.append("–" if trial is None else f"{trial.printed:.1f} / {100 * trial.unseen:.1f}{star}")
        first = next(iter(trials.values()))
        mean, what = no_input(label, first.chance, first.unseen_lengths)
        chance = f"{first.chance:g}" if mean == first.chance else f"{first.chance:g}; {what.removesuffix(' %')}"
        lines.append(f"| {label} | {chance} | {' | '.join(texts)} |")
    unseen = max((trial.unseen_lengths for trials in rows.values() for trial in trials.values()), key=len)
    answers = SHORT_SEQUENCES * len(unseen)
    places = [100 * by_place(length) for length in unseen]
    lines += [
        "",
        (
            f"Ours are of {answers:,} inputs, {SHORT_SEQUENCES} at each of {len(unseen)} lengths. With plain positions and one answer of one"
            f" symbol an input, two standard errors are at most {100 / math.sqrt(answers):.1f} points. With randomized positions, the"
            f" {SHORT_SEQUENCES} inputs of a length share one draw of positions, so they are not independent."
        ),
        "",
        (
            f"Chance is that of a uniform guess. In {BY_PLACE}, an answer by place alone reads no input: it gives each place of the sorted"
            f" list the symbol that is there most often. It has {min(places):.0f} to {max(places):.0f} % by length. In Modular Arithmetic, 0"
            " is the answer to 30 to 32 % of the inputs (of 4,000 each from `lengthwise sample modular_arithmetic_brackets`, at lengths 55,"
            " 300 and 500), so an accuracy near 32 % needs no learning there."
        ),
    ]
    if not all(trial.learned for trials in rows.values() for trial in trials.values()):
        seen = sorted({length for trials in rows.values() for trial in trials.values() for length in trial.accuracies})
        *most, last = (str(length) for length in seen if length <= SEEN_UP_TO)
        lines += [
            "",
            f"\\* Below {100 * LEARNED:g} % after {steps} steps on seen lengths, too, in the mean over {', '.join(most)} and {last}.",
        ]
    if any("†" in line for line in lines):
        lines += ["", "† The same accuracy as another trial of the row at every unseen length, as of two that give every input one answer."]
    return lines


def short_page(raw: Sequence[Row], table: Sequence[str]) -> list[str]:
    trials = {row["trial"]: row for row in raw}
    return [
        f"# {SHORT.title}",
        (
            "Not reproduced cells: the paper trains two million steps and prints the maximum, on these same test lengths, of three learning"
            " rates and ten seeds; here each number is one trial at a learning rate of 3e-4, scored on every 27th length with"
            f" {SHORT_SEQUENCES} sequences instead of 500. Network, batch, training lengths and the range of unseen lengths (41 to 500) are the paper's."
            f" Specification: [{SHORT.specification}](../{SHORT.specification})."
        ),
        f"{len(trials)} trials, {hours_of(trials.values())}, ended {days(raw)}. {machines(raw)}",
        "",
        *table,
        "",
        f"![Accuracy by length]({SHORT_PICTURE.name})",
    ]


def page_of(source: Source, raw: Sequence[Row], cells: Sequence[Cell]) -> list[str]:
    """The page of one table: every cell, their picture, and what there is to say about them."""
    published = read_published(source)
    # Stars with and without self-connections have trials of one name.
    trials = {(row["experiment"], row["trial"], row[source.component]): row for row in raw}
    drawn = any(cell.draw_error for cell in cells)
    heads = ["scale", "printed", "ours", "difference", "in standard errors"]
    if drawn:
        heads += ["ours on other vectors", "difference", "in standard errors"]
    lines = [
        f"# {source.title}",
        (
            f"{published['title']}: {published['units']}, {published['aggregation']}. Specification:"
            f" [{source.specification}](../{source.specification}). Every run: [results/{raw_file(source).name}]"
            f"(results/{raw_file(source).name}). [What a standard error is](../REPRODUCED.md#what-the-numbers-are)."
        ),
        (
            f"{sum(cell.complete for cell in cells)} of {len(published['cells'])} cells with all {RUNS} runs; {len(trials)} trials of"
            f" {span(row['steps'] for row in raw)} steps, {hours_of(trials.values())}, ended {days(raw)}."
        ),
        machines(raw),
        "",
        distances(cells),
        "",
        f"![Ours over printed errors]({picture_of(source).name})",
        "",
        f"| | {' | '.join(heads)} | runs |",
        "| --- | --- |" + " ---: |" * len(heads),
    ]
    for cell in cells:
        columns = [
            cell.row_label,
            cell.column_label,
            with_range(cell.printed, cell.printed_range),
            with_range(cell.median, (cell.low, cell.high)),
            *apart(cell.median, cell.printed, cell.distance()),
        ]
        if drawn:
            others = cell.median_on_others
            told = "" if cell.measured_on_others else "≈ "
            columns += [told + number(others), *apart(others, cell.printed, cell.distance_on_others())]
        lines.append(f"| {' | '.join(columns)} | {len(cell.losses)}{'' if cell.complete else ', not counted yet'} |")
    remarks = (HERE / "remarks" / f"{source.table}.md").read_text(encoding="utf-8")
    before = 100 * statistics.fmean(abs(cell.median / cell.printed - 1) for cell in cells)
    after = 100 * statistics.fmean(abs(cell.median_on_others / cell.printed - 1) for cell in cells)
    ratios = [cell.median / cell.printed for cell in cells if cell.column_label == "c = 3"]
    two = [200 * cell.standard_error() for cell in cells]
    fields = {
        "before": f"{before:.1f}",
        "after": f"{after:.1f}",
        "stars": stars(raw),
        "untrained": untrained(cells),
        "by_scale": untrained_by_scale(cells),
        "two": f"{min(two):.0f} to {max(two):.0f}",
        "draws": "\n".join(draws_table()),
        "others": others_text(cells) if drawn else "",
        "repeats": repeats(),
        "ratios": f"{min(ratios):.2f} to {max(ratios):.2f}" if ratios else "",
    }
    return [*lines, "", remarks.format(**fields)]


def stars(raw: Sequence[Row]) -> str:
    """What runs of cumulative sums on a star with self-connections had as errors."""
    by_scale: dict[str, list[float]] = {}
    for row in raw:
        network = json.loads(row["network"])
        if network.get("graph") == "star" and network.get("self_connections", True):
            by_scale.setdefault(row["scale"], []).append(float(row["loss"]))
    if not by_scale:
        return ""
    low, high = (number(statistics.median(by_scale[scale]), 2) for scale in ("1", "10"))
    runs = len(by_scale["1"])
    missing = RUNS - runs
    rest = f"{missing} more would take about {missing * STAR_HOURS:.1f} hours of one core (`missing.sh stars`)."
    if runs > 1:
        most, least = number(max(by_scale["1"]), 2), number(min(by_scale["10"]))
        return (
            f"{runs} such runs of cumulative sums had errors of at most {most} at c = 1, in the median {low}, where the paper prints"
            f" 4.0; at c = 10 they had at least {least}, in the median {high} (printed: 460).{f' {rest}' if missing > 0 else ''}"
        )
    return (
        f"One such run of cumulative sums had an error of {low} at c = 1, where the paper prints 4.0, and of {high} at c = 10"
        f" (printed: 460). One run is no proof; {rest}"
    )


def others_text(cells: Sequence[Cell]) -> str:
    """What was measured on other vectors and what is an estimate, and how far sorting is from the print on these."""
    raw = read_raw(OTHERS)
    trials = list({row["trial"]: row for row in raw}.values())
    sorting = [cell for cell in cells if cell.row_label.startswith("Sorting") and cell.column_label != "c = 1"]
    graphs = {cell.row_label.removeprefix("Sorting, ") for cell in sorting if cell.measured_on_others}
    missing = 2 * RUNS - len(trials)
    lines = ["Values with ≈ are such estimates: the models of these runs are not kept."]
    if graphs:
        lines[0] += (
            f" Sorting with {span(graphs, ' and with ')} was trained again, {RUNS} runs each, and tested on 100,000 other vectors:"
            f" values without ≈ are their medians ([results/{raw_file(OTHERS).name}](results/{raw_file(OTHERS).name}); {hours_of(trials)},"
            f" ended {days(raw)}. {machines(raw)[:-1]})."
        )
    if missing:
        lines[0] += (
            " `missing.sh others` trains the sorting half again and tests it on 100,000 vectors:"
            f" {2 * RUNS} trials{f', {len(trials)} of them ended; the rest' if trials else ''} would take about"
            f" {missing * OTHERS_HOURS:.1f} hours of one core."
        )
    low = [cell.median / cell.printed - 1 for cell in sorting]
    redrawn = [cell.median_on_others / cell.printed - 1 for cell in sorting]
    near = [one for cell, one in zip(sorting, redrawn, strict=True) if cell.column_label != "c = 10"]
    farthest = max(range(len(sorting)), key=lambda i: abs(redrawn[i]))
    lines.append(
        f"In sorting, our medians are below the print in {sum(one < 0 for one in low)} of {len(low)} cells from c = 2 on, by up to"
        f" {-100 * min(low):.0f} %. On other vectors they {'are' if len(graphs) == 2 else 'would be'} {100 * min(near):+.0f} to"
        f" {100 * max(near):+.0f} % from it at c = 2 to 5. The farthest is then"
        f" {sorting[farthest].row_label.removeprefix('Sorting, ')} at {sorting[farthest].column_label}, with"
        f" {100 * redrawn[farthest]:+.0f} % instead of {100 * low[farthest]:+.0f} %."
    )
    beyond = [
        f"{cell.row_label} at {cell.column_label} ({distance:+.1f})"
        for cell in cells
        if abs(distance := cell.distance_on_others(DRAW_A_RUN)) > 2
    ]
    errors = [cell.draw_error for cell in cells if cell.row_label.startswith("Sorting")]
    one, less = (
        f"{100 * share * min(errors):.1f} to {100 * share * max(errors):.1f} %" for share in (1, math.sqrt(DRAW_A_RUN - 1))
    )
    lines.append(
        "These standard errors assume that the paper tested its runs on one draw of 1,000 vectors, which adds"
        f" {one} to them in sorting. The released code of its other figures draws new vectors for each run. With ten runs, the paper's"
        f" draws would then add {less}. Of the differences on our vectors,"
        f" {closeness([cell.distance(DRAW_A_RUN) for cell in cells])}. On other vectors,"
        f" {closeness([cell.distance_on_others(DRAW_A_RUN) for cell in cells])}. Beyond two standard errors there:"
        f" {', '.join(beyond) or 'none'}."
    )
    return "\n\n".join(lines)


def draws_table() -> list[str]:
    """The error of common answers on our test vectors and on others."""
    rows = read_csv(DRAWS)
    scales = list(dict.fromkeys(row["scale"] for row in rows))
    lines = [f"| error of the best common answer | {' | '.join(f'c = {c}' for c in scales)} |", "| --- |" + " ---: |" * len(scales)]
    for task, title in (("cumulative_sum", "sums"), ("sorting", "sorting")):
        for column, vectors in (("ours", "our 1,000 vectors"), ("expected", "100,000 others")):
            values = (number(float(row[column]), 4) for row in rows if row["task"] == task)
            lines.append(f"| {title}, {vectors} | {' | '.join(values)} |")
    return lines


def untrained(cells: Iterable[Cell]) -> str:
    """ "11 of 24": in how many cells the best common answer is within two standard errors of the print."""
    near = [
        abs(math.log(cell.common_error / cell.printed)) <= 2 * math.sqrt(cell.untrained_variance())
        for cell in cells
        if cell.common_error
    ]
    return f"{sum(near)} of {len(near)}"


def untrained_by_scale(cells: Sequence[Cell]) -> str:
    """ "4 of 4 at c = 1, 1 of 4 at c = 3"."""
    scales = dict.fromkeys(cell.column_label for cell in cells)
    return ", ".join(f"{untrained(cell for cell in cells if cell.column_label == scale)} at {scale}" for scale in scales)


# The figures of the positional-attention paper that repeat one setting.
REPEATED = {"Figure 5": "figure_5", "Figure 3": "figure_3_30000", "Figure 4": "figure_4_8", "Figure 9": "figure_9"}


def repeats() -> str:
    """How far the medians are apart that these figures have, and how far our rule for standard errors expects them to be."""
    cells = {}
    for figure, name in REPEATED.items():
        published = json.loads((PUBLISHED / f"positional_attention_{name}.json").read_text(encoding="utf-8"))
        (cells[figure],) = (
            cell for cell in published["cells"] if (cell["row"], cell["column"]) == ("cumulative_sum__positional", "c3")
        )
    medians = [float(cell["value"]) for cell in cells.values()]
    errors = [median_error(cell["p10"], cell["p90"]) for cell in cells.values()]
    *most, last = (f"{cell['value']:.5f} ({figure})" for figure, cell in cells.items())
    return (
        f"Their medians of ten runs are {', '.join(most)} and {last}. The largest is {max(medians) / min(medians):.1f} times the"
        f" smallest; the logarithms have a standard deviation of {statistics.stdev(map(math.log, medians)):.2f}. Our rule for standard"
        f" errors, which has the spread over runs alone, expects {min(errors):.2f} to {max(errors):.2f} for one of them, and"
        f" {math.sqrt(statistics.fmean(one**2 for one in errors)):.2f} in the root mean square."
    )


def apart(ours: float, printed: float, distance: float) -> list[str]:
    return [f"{100 * (ours / printed - 1):+.0f} %", f"{distance:+.1f}"]


# Of `lengthwise publish ten_seeds`, as far as the trials have ended; and where each was trained, of those whose it is known.
TEN_SEEDS = RESULTS / "ten_seeds.csv"
TEN_SEEDS_MACHINES = RESULTS / "ten_seeds_machines.csv"
TEN_SEEDS_COLUMNS = ["task", "encoding", "weight_seed", "step", "final", "length", "seen", "accuracy"]
TEN_SEEDS_PICTURE = HERE / "ten_seeds.svg"
TEN_SEEDS_TRIALS = 160
TEN_SEEDS_SPECIFICATION = "reproduced/ten_seeds.yaml"
SEED_COLUMNS = ["task", "encoding", "weight_seed"]


def collect_ten_seeds(trials: dict[str, Row], measured: Sequence[Row], machine: str) -> str:
    """Adds those whose task, encoding and seed are not there yet."""

    def seed(row: Row) -> tuple[str, ...]:
        return tuple(row[column] for column in SEED_COLUMNS)

    filed = read_csv(TEN_SEEDS)
    known = set(map(seed, filed))
    new = [row for row in measured if seed(row) not in known]
    write_csv(TEN_SEEDS, TEN_SEEDS_COLUMNS, [{column: row[column] for column in TEN_SEEDS_COLUMNS} for row in [*filed, *new]])
    facts = read_csv(TEN_SEEDS_MACHINES) if TEN_SEEDS_MACHINES.exists() else []
    for name, row in {row["trial"]: row for row in new}.items():
        facts.append({**dict(zip(SEED_COLUMNS, seed(row), strict=True)), **facts_of(trials[name], machine)})
    if facts:
        write_csv(TEN_SEEDS_MACHINES, list(facts[0]), facts)
    return f"{TEN_SEEDS.stem}: {len({row['trial'] for row in new})} new trials"


# By task and encoding: by seed, then by "seen" and "unseen", the mean accuracy over these lengths at each step.
Curves = dict[tuple[str, str], dict[str, dict[str, dict[int, float]]]]


def ten_seeds(final: bool) -> Curves:
    """Of evaluations during training, or of the final ones, of trials that have ended."""
    rows = read_csv(TEN_SEEDS)
    trials = [(row["task"], row["encoding"], row["weight_seed"]) for row in rows]
    ended = {trial for trial, row in zip(trials, rows, strict=True) if row["final"] == "true"}
    values: dict[tuple[str, str, str, str, int], list[float]] = {}
    for trial, row in zip(trials, rows, strict=True):
        if trial in ended and (row["final"] == "true") == final:
            key = *trial, "seen" if row["seen"] == "true" else "unseen", int(row["step"])
            values.setdefault(key, []).append(float(row["accuracy"]))
    curves: Curves = {}
    for (task, encoding, seed, side, step), found in values.items():
        by_side = curves.setdefault((task, encoding), {}).setdefault(seed, {"seen": {}, "unseen": {}})
        by_side[side][step] = statistics.fmean(found)
    return curves


def share_interval(passed: int, of: int) -> tuple[float, float]:
    """Wilson's interval of a share at 95 %."""
    z, share = 1.959964, passed / of
    middle, half = share + z**2 / (2 * of), z * math.sqrt(share * (1 - share) / of + z**2 / (4 * of**2))
    return max(0.0, (middle - half) / (1 + z**2 / of)), min(1.0, (middle + half) / (1 + z**2 / of))


def task_titles() -> dict[str, tuple[str, float]]:
    """Label and chance, in per cent, of the tasks of Ruoss et al."""
    return {row["key"]: (row["label"], row["random_accuracy_percent"]) for row in read_published(SHORT)["rows"]}


def encoding_title(label: str) -> str:
    """As the paper's table has it."""
    encoding = {"name": label.removeprefix("randomized_"), "randomized": label.startswith("randomized_")}
    return next(
        str(column["label"])
        for column in read_published(SHORT)["columns"]
        if encoding.items() <= {"randomized": False, **column["encoding"]}.items()
    )


def ten_seeds_table() -> list[str]:
    """What README.md and the page have: how many trials have ended, and a line for task and encoding."""
    finals, titles = ten_seeds(final=True), task_titles()
    ended = sum(map(len, finals.values()))
    lines = [
        "| task (chance) | encoding | seeds | seen, % | unseen, % | seeds above 90 % on unseen lengths |",
        "| --- | --- | ---: | ---: | ---: | --- |",
    ]
    for (task, encoding), seeds in finals.items():
        cells = []
        for side in ("seen", "unseen"):
            scores = [100 * next(iter(one[side].values())) for one in seeds.values()]
            deviation = f" ± {statistics.stdev(scores):.1f}" if len(scores) > 1 else ""
            cells.append(f"{statistics.fmean(scores):.1f}{deviation}")
        passed = sum(score > 90 for score in scores)
        low, high = share_interval(passed, len(scores))
        cells.append(f"{passed} of {len(scores)} ({100 * low:.0f} to {100 * high:.0f} %)")
        label, chance = titles[task]
        mean, what = no_input(label, chance, range(25, 101, 5))
        guess = f"{chance:g} %" if mean == chance else f"{chance:g} %; {what} on unseen lengths"
        lines.append(f"| {label} ({guess}) | {encoding_title(encoding)} | {len(seeds)} | {' | '.join(cells)} |")
    missing = TEN_SEEDS_TRIALS - ended
    rest = ""
    if missing:
        there = "; ".join(
            f"{titles[task][0]} with {', '.join(encoding_title(encoding) for of, encoding in finals if of == task)}"
            for task in dict.fromkeys(task for task, _ in finals)
        )
        rest = (
            f": {there}. The other {missing} would take about {missing * 6 / 60:.0f} more hours of one core, by our estimate of six"
            " minutes each"
        )
    elsewhere = ""
    if ("even_pairs", "randomized_relative") not in finals:
        low, high = share_interval(9, 10)
        elsewhere = (
            " Even Pairs with Randomized Relative was trained with ten seeds in another experiment, without evaluations on the way; these"
            f" runs are not filed. They have 96.4 ± 5.2 % on unseen lengths, and 9 of 10 are above 90 % ({100 * low:.0f} to {100 * high:.0f} %)."
        )
    return [
        f"{ended} of {TEN_SEEDS_TRIALS} trials have ended{rest}.{elsewhere}",
        "",
        *lines,
        "",
        (
            "Seen: lengths 5 to 20, unseen: 25 to 100. ±: standard deviation over seeds. Brackets: Wilson's 95 % interval of the share. No"
            " trial is selected: there is one learning rate, and the last step counts. The setting itself had been tried before, with one"
            " seed and 3,000 steps."
        ),
    ]


def ten_seeds_page() -> list[str]:
    facts = read_csv(TEN_SEEDS_MACHINES) if TEN_SEEDS_MACHINES.exists() else []
    remarks = (HERE / "remarks/ten_seeds.md").read_text(encoding="utf-8").rstrip()
    return [
        f"# {ten_seeds_title()}",
        (
            "Tasks of Ruoss et al. on a small network, trained for 20,000 steps on CPUs. Specification: [ten_seeds.yaml](ten_seeds.yaml),"
            " which lists how it differs from the paper's protocol. The times of the first 30 trials were not filed. Every run:"
            " [results/ten_seeds.csv](results/ten_seeds.csv)."
        ),
        "",
        *ten_seeds_table(),
        "",
        f"![Accuracy on seen and unseen lengths over training]({TEN_SEEDS_PICTURE.name})",
        "",
        *([f"{len(facts)} trials were filed with their machine: {hours_of(facts)}. {machines(facts)}", ""] if facts else []),
        remarks.format(last_steps=last_steps()),
        "",
        (
            "**Randomized Relative on Even Pairs** was also trained with ten seeds to compare two precisions."
            " [benchmarks/README.md](../../benchmarks/README.md#on-a-gpu) has the ten means. Network, training and final evaluation are those"
            " of this page."
        ),
    ]


def ten_seeds_title() -> str:
    """ "Ten seeds of Even Pairs"."""
    titles = task_titles()
    return f"Ten seeds of {', '.join(dict.fromkeys(titles[task][0] for task, _ in ten_seeds(final=True)))}"


def last_steps() -> str:
    """ "6, 5, 3, 5, 5 and 4": at the last six evaluations during training, how many seeds of randomized sin/cos are above 90 % on
    unseen lengths of Even Pairs.
    """
    seeds = [one["unseen"] for one in ten_seeds(final=False)["even_pairs", "randomized_sin_cos"].values()]
    *most, last = (str(sum(one[step] > 0.9 for one in seeds)) for step in sorted(seeds[0])[-6:])
    return f"{', '.join(most)} and {last}"


def draw_ten_seeds(curves: Curves) -> None:
    """Seen lengths above, unseen lengths below, a column a task: means over seeds with a band of one standard deviation."""
    from lengthwise.plots import drawing, panels
    from lengthwise.plots.picture import Axis, Panel, Picture, Reference, Series
    from lengthwise.plots.series_style import encoding_style

    tasks, titles = list(dict.fromkeys(task for task, _ in curves)), task_titles()
    counts = sorted({len(seeds) for seeds in curves.values()})
    picture = Picture(x=Axis("training step", ticks="counts"), y=panels.accuracy_axis("accuracy"), columns=len(tasks))
    picture.row_titles = ["seen lengths", "unseen lengths"]
    picture.caption = (
        f"{sum(map(len, curves.values()))} of {TEN_SEEDS_TRIALS} trials. Lines: means over {' or '.join(map(str, counts))} seeds. Seen:"
        " lengths 10 and 20; unseen: 40, 60, 80 and 100, with 100 sequences and one draw of randomized positions a length, the same for"
        " all seeds."
    )
    picture.band_caption = "Bands: one standard deviation over seeds to both sides."
    for side, lengths in (("seen", (10, 20)), ("unseen", (40, 60, 80, 100))):
        for task in tasks:
            chance, what = no_input(*titles[task], lengths)
            panel = Panel(titles[task][0] if side == "seen" else "", references=[Reference(chance / 100, what)])
            for (of, encoding), seeds in curves.items():
                if of != task:
                    continue
                steps = sorted(set.intersection(*(set(one[side]) for one in seeds.values())))
                values = [[one[side][step] for one in seeds.values()] for step in steps]
                means = [statistics.fmean(found) for found in values]
                deviations = [statistics.stdev(found) if len(found) > 1 else 0.0 for found in values]
                low, high = ([mean + sign * one for mean, one in zip(means, deviations)] for sign in (-1, 1))
                style = encoding_style(encoding.removeprefix("randomized_"), encoding.startswith("randomized_"))
                panel.series.append(Series(encoding_title(encoding), steps, means, low, high, style))
            picture.panels.append(panel)
    panels.set_step_axis(picture)
    figure = drawing.draw(picture)
    figure.savefig(TEN_SEEDS_PICTURE, metadata={"Date": None, "Description": drawn_from(curves)})


# Written by `lengthwise results gcn_sizes --output csv`: Table 1's sorting on the complete graph, with networks of other sizes.
SIZES = RESULTS / "gcn_sizes.csv"
SIZE_LABELS = {
    "gcn_d32": "4 blocks, d_model 32",
    "gcn_b2": "2 blocks, d_model 64",
    "gcn_b8": "8 blocks, d_model 64",
    "gcn_d128": "4 blocks, d_model 128",
}


def sizes_section(cells: Sequence[Cell]) -> list[str]:
    """How far the size of the networks, which the paper leaves open, moves the row that agrees least; seed by seed."""
    shown = [cell for cell in cells if cell.row_label == "Sorting, GCN on a complete graph"]
    trials = [row for row in read_csv(SIZES) if row["final"] == "true"]
    lines = [
        "## Sorting on the complete graph, with networks of other sizes",
        "",
        f"| | {' | '.join(cell.column_label for cell in shown)} |",
        "| --- |" + " ---: |" * len(shown),
        f"| printed | {' | '.join(number(cell.printed) for cell in shown)} |",
        f"| 4 blocks, d_model 64: the table above, {RUNS} runs | {' | '.join(number(cell.median) for cell in shown)} |",
    ]
    # Runs are in the order of their seeds.
    by_size = {"4 blocks, d_model 64": [cell.losses[:2] for cell in shown]}
    for network, label in SIZE_LABELS.items():
        own = [row for row in trials if row["network"] == network]
        by_size[label] = [
            [float(row["loss"]) for row in own if f"c = {row['length']}" == cell.column_label] for cell in shown
        ]
    for label, columns in by_size.items():
        values = (" and ".join(map(number, losses)) for losses in columns)
        lines.append(f"| {label}, seeds 0 and 1 | {' | '.join(values)} |")
    return lines + [""]


HEAD = """# Published numbers, trained again
Each page below sets a paper's numbers (as printed in its tables, or from its authors' result files where the paper has plots) beside the
ones that Lengthwise trained from scratch with all steps and runs that the paper prints. For Table 1 the positional-attention paper prints no
sizes, steps or runs; ours are those of Figure 5. Its stars have no self-connections because the printed numbers suggest it, so the agreement
of their cells is no independent evidence. All networks of that table answer every number of a list alike; the best such answer, which needs
no training, is within two standard errors of the print in {untrained} cells, so agreement there shows little. A cell counts once it has all
its runs. [results/](reproduced/results) holds every run as CSV.
"""

RULES = """
## What the numbers are
Numbers are medians over the runs. Brackets hold the 10th and 90th percentiles, for the paper where its figures show them.

The standard error of a difference combines ours and the paper's spread over runs. Where the paper prints no spread, it has the rounding of
the print in its place. For graph networks it also has the draws of 1,000 test vectors, ours and the paper's: networks that give all tokens
one answer have about the vectors' own variance as error, of which 1,000 vectors give the mean with a standard error of 3 to 4 %. Rows share
our draw, so their differences are not independent. For other networks, what the draws add is not known.

## How the pages are made
<!-- not run: it needs a server whose experiments have finished -->
```
lengthwise publish table1_gcn -o site
experiments/reproduced/make_page.py --add site --machine "AMD EPYC, one thread a trial"
```
adds the trials of `site` that have ended, and writes this page, those below it, their pictures and README.md's results again. Do not edit
them: `make_page.py` and [remarks/](reproduced/remarks) are their sources. `tests/run.sh` fails where one of them is not what results/ makes.
The models, logs and hashes of these runs are not kept: a filed run is checked by training it again.
"""


def read_published(source: Source) -> dict[str, Any]:
    published: dict[str, Any] = json.loads((PUBLISHED / f"{source.table}.json").read_text(encoding="utf-8"))
    return published


def complete_rows(cells: Iterable[Cell]) -> dict[str, list[Cell]]:
    """The rows of a table that have all runs in every cell, by label."""
    rows: dict[str, list[Cell]] = {}
    for cell in cells:
        rows.setdefault(cell.row_label, []).append(cell)
    return {label: cells for label, cells in rows.items() if all(cell.complete for cell in cells)}


def closeness(found: Sequence[float]) -> str:
    """ "20 of 34 are within one standard error and 32 within two; the largest is 3.4", of distances in standard errors."""
    within = [sum(abs(one) <= most for one in found) for most in (1, 2)]
    return f"{within[0]} of {len(found)} are within one standard error and {within[1]} within two; the largest is {max(map(abs, found)):.1f}"


def distances(cells: Sequence[Cell]) -> str:
    """How far prints and medians are apart, for all complete cells together."""

    complete = [cell for cell in cells if cell.complete]
    text = f"Of the differences between print and median, {closeness([cell.distance() for cell in complete])}."
    if all(cell.draw_error for cell in complete):
        measured = sum(cell.measured_on_others for cell in complete)
        how = f" ({measured} measured, the others estimated)" if measured else ", by an estimate"
        text += f" On other vectors{how}, {closeness([cell.distance_on_others() for cell in complete])}."
    return text


# README.md holds its results between these lines.
README_BEGIN = f"<!-- {TEN_SEEDS_SPECIFICATION}: written by experiments/reproduced/make_page.py -->"
README_END = "<!-- end -->"


def with_table(text: str, table: Sequence[str]) -> str:
    """README.md with these lines."""
    before, found, rest = text.partition(README_BEGIN + "\n")
    if not found:
        raise SystemExit(f"{README} has no line {README_BEGIN}: the results have no place")
    _, _, after = rest.partition(README_END + "\n")
    return "\n".join([before + README_BEGIN, *table, README_END, ""]) + after


def drawn_from(shown: object) -> str:
    """Names the results that a picture shows."""
    return "results " + hashlib.sha256(repr(shown).encode()).hexdigest()


def drawn_cells(rows: dict[str, list[Cell]]) -> object:
    return [(label, cell.printed, cell.losses, cell.standard_error()) for label, cells in rows.items() for cell in cells]


def picture_of(source: Source) -> Path:
    return HERE / f"{source.table}.svg"


def draw(source: Source, rows: dict[str, list[Cell]]) -> None:
    """A panel a row: ours / printed, with bars from the 10th to the 90th percentile of our runs. Around 1, two standard errors of
    the difference. Logarithmic, so that half and twice the print are as far from it.
    """
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    plt.style.use(STYLE)
    wide = any(cell.standard_error() > 0.25 for cells in rows.values() for cell in cells)
    figure, panels = plt.subplots(
        1, len(rows), squeeze=False, sharey=True, figsize=(3 * len(rows) + 0.6, 2.6), layout="constrained"
    )
    for panel, (label, cells) in zip(panels[0], rows.items(), strict=True):
        places = range(len(cells))
        medians = [cell.median / cell.printed for cell in cells]
        below = [(cell.median - cell.low) / cell.printed for cell in cells]
        above = [(cell.high - cell.median) / cell.printed for cell in cells]
        two = [2 * cell.standard_error() for cell in cells]
        panel.fill_between(
            places,
            [math.exp(-one) for one in two],
            [math.exp(one) for one in two],
            color="0.9",
            label="2 standard errors of the difference",
        )
        panel.axhline(1, color="black", linewidth=0.8, label="printed")
        ours = f"ours: median, 10th to 90th percentile of {RUNS} runs"
        panel.errorbar(places, medians, yerr=(below, above), fmt="o", capsize=3, label=ours)
        panel.margins(x=0.15)
        panel.set_yscale("log")
        panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if wide else (*range(1, 10), 1.1, 1.2, 1.5)))
        panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        panel.yaxis.set_minor_locator(NullLocator())
        panel.set_xticks(list(places), [cell.column_label.removeprefix("c = ").removesuffix(" (validation)") for cell in cells])
        panel.set_xlabel("scale of the numbers (trained on 1)")
        panel.set_title(label.replace(", ", "\n"), fontsize=8)
    panels[0][0].set_ylabel("error: ours / printed")
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3 if len(rows) > 1 else 1)
    figure.savefig(picture_of(source), metadata={"Date": None, "Description": drawn_from(drawn_cells(rows))})


def draw_by_place(axes: Any) -> None:
    """Where other panels have the line of a random guess."""
    from lengthwise.plots.style import REFERENCE

    lengths = range(1, 501)
    axes.plot(lengths, list(map(by_place, lengths)), **REFERENCE)


def draw_short(rows: ShortRows, steps: str) -> None:
    """Lengthwise's own figure of accuracy by length, from the results that are kept."""
    from lengthwise.plots import drawing, panels
    from lengthwise.plots.picture import Axis, Panel, Picture, Reference, Series
    from lengthwise.plots.series_style import encoding_style

    published = read_published(SHORT)
    columns = {column["key"]: column for column in published["columns"]}
    chances = {row["label"]: row["random_accuracy_percent"] / 100 for row in published["rows"]}
    picture = Picture(x=Axis("input length", ticks="counts"), y=panels.accuracy_axis("accuracy"))
    picture.caption = (
        f"One trial a line: {steps} steps, {SHORT_SEQUENCES} sequences and one draw of randomized positions a length. Dotted in {BY_PLACE}:"
        " the best answer by place alone, which reads no input."
    )
    picture.shaded_label = f"seen in training: lengths 1 to {SEEN_UP_TO}"
    for label, trials in rows.items():
        panel = Panel(label, shaded=(1, SEEN_UP_TO))
        if label == BY_PLACE:
            panel.draw = draw_by_place
        else:
            panel.references.append(Reference(chances[label], f"random guess {chances[label]:.0%}"))
        for key, trial in trials.items():
            encoding = columns[key]["encoding"]
            style = encoding_style(encoding["name"], encoding.get("randomized", False))
            lengths, accuracies = zip(*trial.accuracies.items(), strict=True)
            panel.series.append(Series(columns[key]["label"], lengths, accuracies, style=style))
        picture.panels.append(panel)
    panels.arrange_panels(picture)
    panels.set_length_axis(picture)
    figure = drawing.draw(picture)
    figure.savefig(SHORT_PICTURE, metadata={"Date": None, "Description": drawn_from((rows, steps))})


def distances_row(title: str, cells: Sequence[Cell]) -> str:
    """A row: how many cells there are, and how far from the print in standard errors."""
    found = [abs(cell.distance()) for cell in cells]
    within = [sum(one <= most for one in found) for most in (1, 2)]
    return f"| {title} | {len(found)} | {within[0]} | {within[1]} | {max(found):.1f} |"


def if_drawn_a_run(table: Iterable[Cell]) -> str:
    """What the counts of Table 1's cells assume, and what they would be otherwise."""
    return (
        "For Table 1 these counts assume that the paper tested all its runs on one draw of vectors, as we did. If it drew vectors for each"
        f" run, as its code does for other figures, {closeness([cell.distance(DRAW_A_RUN) for cell in table])}."
    )


def pages(found: dict[Source, list[Cell]], short_lines: list[str]) -> dict[Path, str]:
    """REPRODUCED.md, and the page of each table."""
    lines = [
        HEAD.format(untrained=untrained(cell for cells in found.values() for cell in cells)),
        "| published | cells with all runs | within one standard error | within two | the farthest, in standard errors |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    texts = {}
    for source, cells in found.items():
        own = page_of(source, read_raw(source), cells)
        if source is SOURCES[0]:
            own += sizes_section(cells)
        texts[HERE / f"{source.table}.md"] = own
        link = f"[{source.title}](reproduced/{source.table}.md)"
        lines.append(distances_row(link, [cell for cell in cells if cell.complete]))
    texts[raw_file(SHORT).with_suffix(".md")] = short_lines
    texts = {HERE / path.name: "\n".join(own).rstrip() + "\n" for path, own in texts.items()}
    texts[TEN_SEEDS_PICTURE.with_suffix(".md")] = "\n".join(ten_seeds_page()) + "\n"
    table = [cell for cells in found.values() for cell in cells if cell.complete and cell.draw_error]
    lines += [
        "",
        (
            f"{if_drawn_a_run(table)} If nothing but chance differed, about 68 % of independent cells would be within one and 95 % within"
            " two."
        ),
    ]
    planned = PLANNED.format(ten_seeds=ten_seeds_title())
    return texts | {PAGE: "\n".join([*lines, "", planned + RULES]).rstrip() + "\n"}


def retrained(cells: Iterable[Cell]) -> list[str]:
    """What README.md has of the positional-attention paper: cells with a protocol and a spread in the print, and the others."""
    complete = [cell for cell in cells if cell.complete]
    table = [cell for cell in complete if cell.printed_range is None]
    groups = {
        "Figures 3 and 4, of which protocol and spread are known": [cell for cell in complete if cell.printed_range is not None],
        "Table 1, complete graphs, whose sizes, steps and runs are not printed": [c for c in table if "on a star" not in c.row_label],
        "Table 1, stars, for which we also chose the variant that fits the print": [c for c in table if "on a star" in c.row_label],
    }
    lines = [
        (
            "Cells of the positional-attention paper were retrained with ten runs each. The table counts by how many standard errors our"
            " medians differ from the print:"
        ),
        "",
        "| cells | number | within one | within two | farthest |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    lines += [distances_row(title, group) for title, group in groups.items() if group]
    return [
        *lines,
        "",
        (
            f"{if_drawn_a_run(table)} These networks answer all"
            " numbers of a list alike. The best such answer needs no training, and is within two standard errors of the print in"
            f" {untrained(table)} cells. [Every cell]({PAGE.relative_to(README.parent)})."
        ),
    ]


PLANNED = """Two more pages reproduce no cell, but train what a paper trains on a smaller scale:
[{ten_seeds}](reproduced/ten_seeds.md) of Ruoss et al., and
[their Table 1 with 0.3 % of its steps](reproduced/randomized_pe_table_1_short.md).

34 of 64 planned cells have all their runs: half of the positional-attention paper's Table 1, two cells of Figure 4 at n = 2 and eight of
Figure 3 at 5,000 vectors. The other 30, of the same two figures, are 150 trials of about half an hour: about 80 more hours of one core.
[missing.sh](reproduced/missing.sh) trains what else these pages name as missing, at a low priority, and resumes after an interruption.

Training seconds are wall-clock time, so programs that ran beside a training lengthen them. A checkpoint has no clock: after a resume, the
time of earlier steps is an estimate at the later speed. A trial that has more seconds than passed between its start and its end counts with
the latter. For example, seeds 8 and 9 of Figure 4 have more than four hours each, but took about 70 minutes.
"""


def only_checks(description: str | None, collect: Callable[[Path, str], str]) -> bool:
    """Reads the command line of a program that makes pages, and collects what --add names."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--add", type=Path, metavar="SITE", help="add what this folder of `lengthwise publish` has")
    parser.add_argument("--machine", help="where it was trained, for the page")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a page is not up to date")
    arguments = parser.parse_args()
    if arguments.add:
        if not arguments.machine:
            parser.error("--machine is required with --add: the page names the machine that trained")
        print(collect(arguments.add, arguments.machine), file=sys.stderr)
    return bool(arguments.check)


# By the picture's file: what it shows, and what draws it.
Drawn = dict[Path, tuple[object, Callable[[], None]]]


def write_stale(texts: dict[Path, str], drawn: Drawn, check: bool) -> int:
    """Writes the pages and pictures that are not what the results make, or only names them; returns the exit code."""
    there = {path: path.read_text(encoding="utf-8") if path.exists() else "" for path in (*texts, *drawn)}
    stale = [path for path, (shown, _) in drawn.items() if drawn_from(shown) not in there[path]]
    stale += [path for path, text in texts.items() if there[path] != text]
    for path in stale:
        program = Path(sys.argv[0]).name
        print(f"{path} {f'is not what the results make; run {program}' if check else 'written'}", file=sys.stderr)
        if check:
            continue
        if path in texts:
            path.write_text(texts[path], encoding="utf-8")
        else:
            drawn[path][1]()
    return 1 if stale and check else 0


def main() -> int:
    check = only_checks(__doc__, collect)
    found = {source: cells_of(source, read_published(source), read_raw(source)) for source in SOURCES}
    short_raw = read_raw(SHORT)
    short = short_rows(short_raw)
    steps = span(f"{int(row['steps']):,}" for row in short_raw)
    curves = ten_seeds(final=False)
    texts = pages(found, short_page(short_raw, short_table(short_raw, short)))
    texts[README] = with_table(
        README.read_text(encoding="utf-8"),
        [
            *ten_seeds_table(),
            "",
            *retrained(cell for cells in found.values() for cell in cells),
        ],
    )
    drawn: Drawn = {
        SHORT_PICTURE: ((short, steps), lambda: draw_short(short, steps)),
        TEN_SEEDS_PICTURE: (curves, lambda: draw_ten_seeds(curves)),
    }
    for source, cells in found.items():
        rows = complete_rows(cells)
        drawn[picture_of(source)] = drawn_cells(rows), functools.partial(draw, source, rows)
    return write_stale(texts, drawn, check)


if __name__ == "__main__":
    sys.exit(main())
