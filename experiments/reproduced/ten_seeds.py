"""Ten seeds of four encodings, on tasks of Ruoss et al."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

import filed
from filed import Row
from table1_short import TITLES, column_of, no_input, style_of

# Of `lengthwise publish ten_seeds`, as far as the trials have ended; and where each was trained, of those whose it is known.
FILED = filed.RESULTS / "ten_seeds.csv"
MACHINES = filed.RESULTS / "ten_seeds_machines.csv"
PICTURE = filed.HERE / "ten_seeds.svg"
TRIALS = 160
TRIAL = ["task", "encoding", "weight_seed"]
COLUMNS = [*TRIAL, "step", "final", "length", "seen", "accuracy"]


def trial_of(row: Row) -> tuple[str, str, str]:
    return row["task"], row["encoding"], row["weight_seed"]


def collect(trials: dict[str, Row], measured: Sequence[Row], machine: str) -> str:
    """Adds those whose task, encoding and seed are not there yet."""
    rows, facts = filed.read_csv(FILED), filed.read_csv(MACHINES)
    known = set(map(trial_of, rows))
    new = [row for row in measured if trial_of(row) not in known]
    filed.write_csv(FILED, COLUMNS, [{column: row[column] for column in COLUMNS} for row in [*rows, *new]])
    for name, row in {row["trial"]: row for row in new}.items():
        facts.append({**dict(zip(TRIAL, trial_of(row), strict=True)), **filed.facts_of(trials[name], machine)})
    filed.write_csv(MACHINES, list(facts[0]), facts)
    return f"{FILED.stem}: {len({row['trial'] for row in new})} new trials"


# By task and encoding: by seed, then by "seen" and "unseen", the mean accuracy over these lengths at each step.
Curves = dict[tuple[str, str], dict[str, dict[str, dict[int, float]]]]


def curves_of(final: bool) -> Curves:
    """Of evaluations during training, or of the final ones, of trials that have ended."""
    rows = [row for row in filed.read_csv(FILED) if (row["final"] == "true") == final]
    curves: Curves = {}
    for (trial, seen, step), found in filed.grouped(rows, lambda row: (trial_of(row), row["seen"], int(row["step"]))).items():
        by_side = curves.setdefault(trial[:2], {}).setdefault(trial[2], {"seen": {}, "unseen": {}})
        by_side["seen" if seen == "true" else "unseen"][step] = statistics.fmean(float(row["accuracy"]) for row in found)
    return curves


def share_interval(passed: int, of: int) -> tuple[float, float]:
    """Wilson's interval of a share at 95 %."""
    z, share = 1.959964, passed / of
    middle, half = share + z**2 / (2 * of), z * math.sqrt(share * (1 - share) / of + z**2 / (4 * of**2))
    return max(0.0, (middle - half) / (1 + z**2 / of)), min(1.0, (middle + half) / (1 + z**2 / of))


# The runs of benchmarks/README.md with the setting and the seeds of one row.
TWICE = (
    " Randomized Relative was trained twice with the same seeds: until 2026-11-29 with AVX2, and on 2026-11-30 with AVX-512. The row has the"
    " latter, which are filed. The former, which are not, have 96.5 ± 5.2 % on unseen lengths, the lowest 83.0 %, and 9 of 10 are above 90 %"
    " ({:.0f} to {:.0f} %)."
)


def table() -> list[str]:
    """What README.md and the page have: how many trials have ended, and a line for task and encoding."""
    finals = curves_of(final=True)
    ended = sum(map(len, finals.values()))
    heads = ["task (chance)", "encoding", "seeds", "seen, %", "unseen, %", "seeds above 90 % on unseen lengths"]
    rows = []
    for (task, encoding), seeds in finals.items():
        seen, unseen = ([next(iter(one[side].values())) for one in seeds.values()] for side in ("seen", "unseen"))
        passed = sum(score > 0.9 for score in unseen)
        low, high = share_interval(passed, len(unseen))
        label, chance = TITLES[task]
        mean, what = no_input(label, chance, range(25, 101, 5))
        row = [
            f"{label} ({chance:g} %{'' if mean == chance else f'; {what} on unseen lengths'})",
            column_of(encoding)["label"],
            str(len(seeds)),
            filed.spread(seen),
            filed.spread(unseen),
            f"{passed} of {len(unseen)} ({100 * low:.0f} to {100 * high:.0f} %)",
        ]
        rows.append(row)
    missing = TRIALS - ended
    rest = ""
    if missing:
        there = "; ".join(
            f"{TITLES[task][0]} with {', '.join(column_of(encoding)['label'] for of, encoding in finals if of == task)}"
            for task in dict.fromkeys(task for task, _ in finals)
        )
        rest = (
            f": {there}. The other {missing} would take about {missing * 6 / 60:.0f} more hours of one core, by our estimate of six"
            " minutes each"
        )
    return [
        f"{ended} of {TRIALS} trials have ended{rest}.",
        "",
        *filed.markdown("llrrrl", heads, rows),
        "",
        (
            "Seen: lengths 5 to 20, unseen: 25 to 100. ±: standard deviation over seeds. Brackets: Wilson's 95 % interval of the share. No"
            " trial is selected: there is one learning rate, and the last step counts. The setting itself had been tried before, with one"
            " seed and 3,000 steps." + TWICE.format(*(100 * bound for bound in share_interval(9, 10)))
        ),
    ]


def page() -> list[str]:
    facts = filed.read_csv(MACHINES)
    remarks = (filed.HERE / "remarks/ten_seeds.md").read_text(encoding="utf-8").rstrip()
    return [
        f"# {title()}",
        (
            "Tasks of Ruoss et al. on a small network, trained for 20,000 steps on CPUs. Specification: [ten_seeds.yaml](ten_seeds.yaml),"
            " which lists how it differs from the paper's protocol. The times of the first 30 trials were not filed. Every run of the table:"
            " [results/ten_seeds.csv](results/ten_seeds.csv)."
        ),
        "",
        *table(),
        "",
        f"![Accuracy on seen and unseen lengths over training]({PICTURE.name})",
        "",
        f"{len(facts)} trials were filed with their machine: {filed.hours_of(facts)}. {filed.machines(facts)}",
        "",
        remarks.format(*map(last_steps, ("randomized_sin_cos", "randomized_relative"))),
        "",
        (
            "**The other runs of Randomized Relative** compare two precisions. [benchmarks/README.md](../../benchmarks/README.md#on-a-gpu) has"
            " their means: in bfloat16, too, 9 of 10 are above 90 %. Network, training and final evaluation are those of this page."
        ),
    ]


def title() -> str:
    """ "Ten seeds of Even Pairs"."""
    return f"Ten seeds of {', '.join(dict.fromkeys(TITLES[task][0] for task, _ in curves_of(final=True)))}"


def last_steps(encoding: str) -> str:
    """ "6, 5, 3, 5, 5 and 4": at the last six evaluations during training, how many seeds of an encoding are above 90 % on unseen
    lengths of Even Pairs.
    """
    seeds = [one["unseen"] for one in curves_of(final=False)["even_pairs", encoding].values()]
    *most, last = (str(sum(one[step] > 0.9 for one in seeds)) for step in sorted(seeds[0])[-6:])
    return f"{', '.join(most)} and {last}"


def draw(curves: Curves) -> Any:
    """Seen lengths above, unseen lengths below, a column a task: means over seeds with a band of one standard deviation."""
    from lengthwise.plots import drawing, panels
    from lengthwise.plots.picture import Axis, Panel, Picture, Reference, Series

    tasks = list(dict.fromkeys(task for task, _ in curves))
    counts = sorted({len(seeds) for seeds in curves.values()})
    picture = Picture(x=Axis("training step", ticks="counts"), y=panels.accuracy_axis("accuracy"), columns=len(tasks))
    picture.row_titles = ["seen lengths", "unseen lengths"]
    picture.caption = (
        f"{sum(map(len, curves.values()))} of {TRIALS} trials. Lines: means over {' or '.join(map(str, counts))} seeds. Seen:"
        " lengths 10 and 20; unseen: 40, 60, 80 and 100, with 100 sequences and one draw of randomized positions a length, the same for"
        " all seeds."
    )
    picture.band_caption = "Bands: one standard deviation over seeds to both sides, cut at 100 %."
    for side, lengths in (("seen", (10, 20)), ("unseen", (40, 60, 80, 100))):
        for task in tasks:
            chance, what = no_input(*TITLES[task], lengths)
            panel = Panel(TITLES[task][0] if side == "seen" else "", references=[Reference(chance / 100, what)])
            for (of, encoding), seeds in curves.items():
                if of != task:
                    continue
                steps = sorted(set.intersection(*(set(one[side]) for one in seeds.values())))
                values = [[one[side][step] for one in seeds.values()] for step in steps]
                means = [statistics.fmean(found) for found in values]
                deviations = [statistics.stdev(found) if len(found) > 1 else 0.0 for found in values]
                low, high = ([min(mean + sign * one, 1) for mean, one in zip(means, deviations)] for sign in (-1, 1))
                column = column_of(encoding)
                panel.series.append(Series(column["label"], steps, means, low, high, style_of(column)))
            picture.panels.append(panel)
    panels.set_step_axis(picture)
    return drawing.draw(picture)
