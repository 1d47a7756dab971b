"""Tables and figures of the positional-attention paper: their cells, what tells them from ours, and their pages."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import filed
from filed import Row, Source

# A cell counts as reproduced only with this many runs, the paper's.
RUNS = 10
# The error of the best answer that is the same for all tokens and all orders of a vector's numbers, over our 1,000 test vectors
# and over 100,000 others. From the latter, the relative standard error that a draw of 1,000 vectors adds to the error of networks
# that answer all tokens alike, as graph networks do; it is not known for other networks. `bazel test
# //tasks/numeric:algorithmic_test` computes all three.
DRAWS = filed.RESULTS / "test_draws.csv"
# Standard error of a median over that of a mean, of normal values.
MEDIAN_ERROR = 1.2533
# Draws of test vectors whose spread a difference has: ours, and the paper's. If it drew vectors for each run, as the released code
# of its other figures does, the median over its runs has only a share of a draw's spread.
ONE_DRAW = 2
DRAW_A_RUN = 1 + MEDIAN_ERROR**2 / RUNS
# Standard deviations from the 10th to the 90th percentile of normal values.
P10_TO_P90 = 2.5631
# Of one core, by run: two stars with self-connections took 2,399 and 2,421 s (two cores of an Intel Xeon, 2026-11-30), and sorting
# took 3.2 hours for its 20 runs.
STAR_HOURS = 0.67
OTHERS_HOURS = 0.16

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
OTHERS = Source(
    "positional_attention_table_1", "Table 1 on other vectors", "reproduced/table1_gcn.yaml", "table1_gcn_others", ending="_others"
)


def median_error(p10: float, p90: float) -> float:
    """Standard error of the logarithm of a median of RUNS runs with these percentiles."""
    return MEDIAN_ERROR * math.log(p90 / p10) / P10_TO_P90 / math.sqrt(RUNS)


@dataclass(frozen=True)
class Cell:
    """A published number and the runs that were trained for it."""

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
    # Expected over drawn: how much larger the error of common answers is on other vectors than on ours; 1 if it is not known.
    redraw: float

    @property
    def complete(self) -> bool:
        return len(self.losses) >= RUNS

    @property
    def median(self) -> float:
        return statistics.median(self.losses)

    @property
    def range(self) -> tuple[float, float]:
        """10th and 90th percentile of our runs."""
        deciles = statistics.quantiles(self.losses, n=10, method="inclusive")
        return deciles[0], deciles[-1]

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


def cells_of(source: Source, raw: Sequence[Row]) -> list[Cell]:
    """Cells for which at least one run is there, in the order of the table."""
    published = filed.read_published(source.table)
    rows = {row["key"]: row for row in published["rows"]}
    columns = {column["key"]: column for column in published["columns"]}
    draws = {
        (row["task"], row["scale"]): [float(row[column]) for column in ("ours", "expected", "relative_error")]
        for row in filed.read_csv(DRAWS)
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
                and filed.matches(one["network"], row["network"])
            ]
            for runs in (raw, filed.read_filed(OTHERS.file) if source.table == OTHERS.table else ())
        )
        if losses:
            printed_range = (cell["p10"], cell["p90"]) if "p10" in cell else None
            draw, common, redraw = 0.0, 0.0, 1.0
            if row["network"]["name"] == "graph_network":
                common, expected, draw = draws[row["task"], str(column["length"])]
                redraw = expected / common
            value = float(cell["value"])
            cells.append(Cell(row["label"], column["label"], value, printed_range, losses, others, draw, common, redraw))
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


def complete_rows(cells: Iterable[Cell]) -> dict[str, list[Cell]]:
    """The rows of a table that have all runs in every cell, by label."""
    rows = filed.grouped(cells, lambda cell: cell.row_label)
    return {label: cells for label, cells in rows.items() if all(cell.complete for cell in cells)}


def closeness(found: Sequence[float]) -> str:
    """ "20 of 34 are within one standard error and 32 within two; the largest is 3.4", of distances in standard errors."""
    one, two, farthest = filed.within(found)
    return f"{one} of {len(found)} are within one standard error and {two} within two; the largest is {farthest:.1f}"


def distances(cells: Sequence[Cell]) -> str:
    """How far prints and medians are apart, for all complete cells together."""
    complete = [cell for cell in cells if cell.complete]
    text = f"Of the differences between print and median, {closeness([cell.distance() for cell in complete])}."
    if all(cell.draw_error for cell in complete):
        measured = sum(cell.measured_on_others for cell in complete)
        how = f" ({measured} measured, the others estimated)" if measured else ", by an estimate"
        text += f" On other vectors{how}, {closeness([cell.distance_on_others() for cell in complete])}."
    return text


def distances_row(title: str, cells: Sequence[Cell]) -> list[str]:
    """A row: how many cells there are, and how far from the print in standard errors."""
    one, two, farthest = filed.within(cell.distance() for cell in cells)
    return [title, str(len(cells)), str(one), str(two), f"{farthest:.1f}"]


def if_drawn_a_run(table: Iterable[Cell]) -> str:
    """What the counts of Table 1's cells assume, and what they would be otherwise."""
    cells = list(table)
    measured = sum(cell.measured_on_others for cell in cells)
    return (
        "For Table 1 these counts assume that the paper tested all its runs on one draw of vectors, as we did. If it drew vectors for each"
        f" run, as its code does for other figures, {closeness([cell.distance(DRAW_A_RUN) for cell in cells])}. Of our medians on 100,000"
        f" other vectors ({measured} measured, {len(cells) - measured} estimated),"
        f" {closeness([cell.distance_on_others(DRAW_A_RUN) for cell in cells])}."
    )


def page_of(source: Source, cells: Sequence[Cell]) -> list[str]:
    """The page of one table: every cell, their picture, and what there is to say about them."""
    published, raw = filed.read_published(source.table), filed.read_filed(source.file)
    file = f"results/{source.file.name}"
    # Stars with and without self-connections have trials of one name.
    trials = {(row["experiment"], row["trial"], row[source.component]): row for row in raw}
    drawn = any(cell.draw_error for cell in cells)
    heads = ["", "scale", "printed", "ours", "difference", "in standard errors"]
    if drawn:
        heads += ["ours on other vectors", "difference", "in standard errors"]
    lines = [
        f"# {source.title}",
        (
            f"{published['title']}: {published['units']}, {published['aggregation']}. Specification:"
            f" [{source.specification}](../{source.specification}). Every run: [{file}]({file})."
            " [What a standard error is](../REPRODUCED.md#what-the-numbers-are)."
        ),
        (
            f"{sum(cell.complete for cell in cells)} of {len(published['cells'])} cells with all {RUNS} runs; {len(trials)} trials of"
            f" {filed.span(row['steps'] for row in raw)} steps, {filed.hours_of(trials.values())}, ended {filed.days(raw)}."
        ),
        filed.machines(raw),
        "",
        distances(cells),
        "",
        f"![Ours over printed errors]({source.table}.svg)",
        "",
    ]
    rows = []
    for cell in cells:
        columns = [
            cell.row_label,
            cell.column_label,
            with_range(cell.printed, cell.printed_range),
            with_range(cell.median, cell.range),
            *apart(cell.median, cell.printed, cell.distance()),
        ]
        if drawn:
            others = cell.median_on_others
            told = "" if cell.measured_on_others else "≈ "
            columns += [told + number(others), *apart(others, cell.printed, cell.distance_on_others())]
        rows.append([*columns, f"{len(cell.losses)}{'' if cell.complete else ', not counted yet'}"])
    remarks = (filed.HERE / "remarks" / f"{source.table}.md").read_text(encoding="utf-8")
    before = 100 * statistics.fmean(abs(cell.median / cell.printed - 1) for cell in cells)
    after = 100 * statistics.fmean(abs(cell.median_on_others / cell.printed - 1) for cell in cells)
    by_scale = filed.grouped(cells, lambda cell: cell.column_label)
    ratios = [cell.median / cell.printed for cell in by_scale["c = 3"]]
    two = [200 * cell.standard_error() for cell in cells]
    fields = {
        "before": f"{before:.1f}",
        "after": f"{after:.1f}",
        "stars": stars(raw, cells),
        "untrained": untrained(cells),
        "by_scale": ", ".join(f"{untrained(of_scale)} at {scale}" for scale, of_scale in by_scale.items()),
        "two": f"{min(two):.0f} to {max(two):.0f}",
        "draws": "\n".join(draws_table()),
        "others": others_text(cells) if drawn else "",
        "repeats": repeats(),
        "ratios": f"{min(ratios):.2f} to {max(ratios):.2f}",
        "by_repeats": by_repeats(ratios),
    }
    lines += [*filed.markdown("ll" + "r" * (len(heads) - 1), [*heads, "runs"], rows), "", remarks.format(**fields)]
    return lines + sizes_section(cells) if source is SOURCES[0] else lines


def apart(ours: float, printed: float, distance: float) -> list[str]:
    return [f"{100 * (ours / printed - 1):+.0f} %", f"{distance:+.1f}"]


def stars(raw: Sequence[Row], cells: Sequence[Cell]) -> str:
    """What runs of cumulative sums on a star with self-connections had as errors."""
    star = {"graph": "star", "self_connections": True}.items()
    own = [row for row in raw if star <= {"self_connections": True, **json.loads(row["network"])}.items()]
    if not own:
        return ""
    printed = {cell.column_label: cell.printed for cell in cells if cell.row_label == "Cumulative Sum, GCN on a star graph"}
    told, inside = [], []
    for scale, rows in filed.grouped(own, lambda row: f"c = {row['scale']}").items():
        losses = [float(row["loss"]) for row in rows]
        told.append(f"{number(min(losses))} to {number(max(losses))} at {scale} ({number(printed[scale])})")
        if min(losses) <= printed[scale] <= max(losses):
            inside.append(scale)
    missing = RUNS - len(losses)
    rest = f" {missing} more would take about {missing * STAR_HOURS:.1f} hours of one core (`missing.sh stars`)."
    return (
        f"{len(losses)} such runs of cumulative sums had errors of {', '.join(told[:-1])} and {told[-1]}; in brackets, the print. It is"
        f" within the range of these runs at {', '.join(inside) or 'no scale'}.{rest if missing > 0 else ''}"
    )


def others_text(cells: Sequence[Cell]) -> str:
    """What was measured on other vectors and what is an estimate, and how far sorting is from the print on these."""
    raw = filed.read_filed(OTHERS.file)
    trials = filed.trials_of(raw)
    sorting = [cell for cell in cells if cell.row_label.startswith("Sorting") and cell.column_label != "c = 1"]
    graphs = {cell.row_label.removeprefix("Sorting, ") for cell in sorting if cell.measured_on_others}
    missing = 2 * RUNS - len(trials)
    lines = ["Values with ≈ are such estimates: the models of these runs are not kept."]
    if graphs:
        file = f"results/{OTHERS.file.name}"
        off = [100 * (cell.median * cell.redraw / cell.median_on_others - 1) for cell in sorting if cell.measured_on_others]
        lines[0] += (
            f" Sorting with {filed.span(graphs, ' and with ')} was trained again, {RUNS} runs each, and tested on 100,000 other vectors:"
            f" values without ≈ are their medians ([{file}]({file}); {filed.hours_of(trials)}, ended {filed.days(raw)}."
            f" {filed.machines(raw)[:-1]}). There the estimates would have been off by {min(off):+.1f} to {max(off):+.1f} %."
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
    cell, before, after = max(zip(sorting, low, redrawn, strict=True), key=lambda one: abs(one[2]))
    lines.append(
        f"In sorting, our medians are below the print in {sum(one < 0 for one in low)} of {len(low)} cells from c = 2 on, by up to"
        f" {-100 * min(low):.0f} %. On other vectors they {'are' if len(graphs) == 2 else 'would be'} {100 * min(near):+.0f} to"
        f" {100 * max(near):+.0f} % from it at c = 2 to 5. The farthest is then {cell.row_label.removeprefix('Sorting, ')} at"
        f" {cell.column_label}, with {100 * after:+.0f} % instead of {100 * before:+.0f} %."
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
    draws, rows = filed.read_csv(DRAWS), []
    scales = dict.fromkeys(f"c = {row['scale']}" for row in draws)
    for task, title in (("cumulative_sum", "sums"), ("sorting", "sorting")):
        for column, vectors in (("ours", "our 1,000 vectors"), ("expected", "100,000 others")):
            values = (number(float(row[column]), 4) for row in draws if row["task"] == task)
            rows.append([f"{title}, {vectors}", *values])
    return filed.markdown("l" + "r" * len(scales), ["error of the best common answer", *scales], rows)


def untrained(cells: Iterable[Cell]) -> str:
    """ "11 of 24": in how many cells the best common answer is within two standard errors of the print."""
    near = [
        abs(math.log(cell.common_error / cell.printed)) <= 2 * math.sqrt(cell.untrained_variance())
        for cell in cells
        if cell.common_error
    ]
    return f"{sum(near)} of {len(near)}"


# The figures of the positional-attention paper that repeat one setting.
REPEATED = {"Figure 5": "figure_5", "Figure 3": "figure_3_30000", "Figure 4": "figure_4_8", "Figure 9": "figure_9"}


def repeated() -> dict[str, dict[str, Any]]:
    """Their cells, by figure."""
    cells = {}
    for figure, name in REPEATED.items():
        published = filed.read_published(f"positional_attention_{name}")["cells"]
        (cells[figure],) = (cell for cell in published if (cell["row"], cell["column"]) == ("cumulative_sum__positional", "c3"))
    return cells


def by_repeats(ratios: Sequence[float]) -> str:
    """These distances from the print, in standard deviations of a difference between two medians as far apart as the repeats are."""
    deviation = math.sqrt(2) * statistics.stdev(math.log(cell["value"]) for cell in repeated().values())
    *most, last = (f"{math.log(ratio) / deviation:+.1f}" for ratio in ratios)
    return f"{', '.join(most)} and {last}" if most else last


def repeats() -> str:
    """How far the medians are apart that these figures have, and how far our rule for standard errors expects them to be."""
    cells = repeated()
    medians = [float(cell["value"]) for cell in cells.values()]
    errors = [median_error(cell["p10"], cell["p90"]) for cell in cells.values()]
    *most, last = (f"{cell['value']:.5f} ({figure})" for figure, cell in cells.items())
    return (
        f"Their medians of ten runs are {', '.join(most)} and {last}. The largest is {max(medians) / min(medians):.1f} times the"
        f" smallest; the logarithms have a standard deviation of {statistics.stdev(map(math.log, medians)):.2f}. Our rule for standard"
        f" errors, which has the spread over runs alone, expects {min(errors):.2f} to {max(errors):.2f} for one of them, and"
        f" {math.sqrt(statistics.fmean(one**2 for one in errors)):.2f} in the root mean square."
    )


# Written by `lengthwise results gcn_sizes --output csv`: Table 1's sorting on the complete graph, with networks of other sizes.
SIZES = filed.RESULTS / "gcn_sizes.csv"
SIZE_LABELS = {
    "gcn_d32": "4 blocks, d_model 32",
    "gcn_b2": "2 blocks, d_model 64",
    "gcn_b8": "8 blocks, d_model 64",
    "gcn_d128": "4 blocks, d_model 128",
}


def sizes_section(cells: Sequence[Cell]) -> list[str]:
    """How far the size of the networks, which the paper leaves open, moves the row that agrees least; seed by seed."""
    shown = [cell for cell in cells if cell.row_label == "Sorting, GCN on a complete graph"]
    rows = [
        ["printed", *(number(cell.printed) for cell in shown)],
        [f"4 blocks, d_model 64: the table above, {RUNS} runs", *(number(cell.median, 4) for cell in shown)],
    ]
    # Runs are in the order of their seeds.
    by_size = {"4 blocks, d_model 64": [cell.losses[:2] for cell in shown]}
    for network, label in SIZE_LABELS.items():
        own = [row for row in filed.read_csv(SIZES) if row["network"] == network and row["final"] == "true"]
        by_size[label] = [
            [float(row["loss"]) for row in own if f"c = {row['length']}" == cell.column_label] for cell in shown
        ]
    for label, columns in by_size.items():
        rows.append([f"{label}, seeds 0 and 1", *(" and ".join(number(loss, 4) for loss in losses) for losses in columns)])
    title = "## Sorting on the complete graph, with networks of other sizes"
    return [title, "", *filed.markdown("l" + "r" * len(shown), ["", *(cell.column_label for cell in shown)], rows)]


def retrained(cells: Iterable[Cell]) -> list[str]:
    """What README.md has of the positional-attention paper: cells with a protocol and a spread in the print, and the others."""
    complete = [cell for cell in cells if cell.complete]
    table = [cell for cell in complete if cell.printed_range is None]
    figures = [cell for cell in complete if cell.printed_range is not None]
    by_star = filed.grouped(table, lambda cell: "on a star" in cell.row_label)
    groups = {
        "Figures 3 and 4, of which protocol and spread are known": figures,
        "Table 1, graph networks on complete graphs, whose sizes, steps and runs are not printed": by_star.get(False, []),
        "Table 1, graph networks on stars, for which we also chose the variant that fits the print": by_star.get(True, []),
    }
    rows = [distances_row(title, group) for title, group in groups.items() if group]
    return [
        (
            "Cells of the positional-attention paper (Back de Luca et al. 2024) were retrained with ten runs each. The table counts by how"
            " many standard errors our medians differ from the print. If nothing but chance differed, about 68 % of independent cells would"
            " be within one and 95 % within two:"
        ),
        "",
        *filed.markdown("lrrrr", ["cells", "number", "within one", "within two", "farthest"], rows),
        "",
        (
            f"{if_drawn_a_run(table)} These networks answer all"
            " numbers of a list alike. The best such answer needs no training, and is within two standard errors of the print in"
            f" {untrained(table)} cells. [Every cell](experiments/REPRODUCED.md)."
        ),
    ]


def drawn_cells(rows: dict[str, list[Cell]]) -> object:
    return [(label, cell.printed, cell.losses, cell.standard_error()) for label, cells in rows.items() for cell in cells]


def draw(rows: dict[str, list[Cell]]) -> Any:
    """A panel a row: ours / printed, with bars from the 10th to the 90th percentile of our runs. Around 1, two standard errors of
    the difference. Logarithmic, so that half and twice the print are as far from it.
    """
    from lengthwise.plots import style
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    wide = any(cell.standard_error() > 0.25 for cells in rows.values() for cell in cells)
    figure = style.new_figure(3 * len(rows) + 0.6, 2.6)
    with style.context():
        panels = figure.subplots(1, len(rows), squeeze=False, sharey=True)
        for panel, (label, cells) in zip(panels[0], rows.items(), strict=True):
            places = range(len(cells))
            medians = [cell.median / cell.printed for cell in cells]
            below = [(cell.median - cell.range[0]) / cell.printed for cell in cells]
            above = [(cell.range[1] - cell.median) / cell.printed for cell in cells]
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
    return figure
