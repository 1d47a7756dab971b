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

import functools
import json
import sys
from pathlib import Path

import filed
import positional_attention as paper
import table1_short
import ten_seeds
from filed import Source
from table1_short import SHORT

# README.md holds its results after this line.
README_BEGIN = "<!-- reproduced/ten_seeds.yaml: written by experiments/reproduced/make_page.py -->"
TRIAL_COLUMNS = ["steps", "training_seconds", "started", "ended", "machine", "instruction_set", "threads", "revision"]


def collect(site: Path, machine: str) -> str:
    """Adds the trials that have succeeded of a folder that `lengthwise publish` wrote; returns what it is about."""
    name, trials, measured = filed.read_site(site)
    if name == ten_seeds.FILED.stem:
        return ten_seeds.collect(trials, measured, machine)
    source = next((source for source in (*paper.SOURCES, SHORT, paper.OTHERS) if source.experiment == name), None)
    if source is None:
        raise SystemExit(f"{site}: no table of this page is made of experiments called {name}")
    # With its network or encoding, whose label hides parameters, a trial's name says everything about it, and its seed: no
    # seed counts twice, whichever server trained it.
    key = "trial", source.component, source.place
    rows = {tuple(row[column] for column in key): row for row in filed.read_filed(source.file)}
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
            **filed.facts_of(trial, machine),
        }
        # A trial collected before stays: another machine may have trained it.
        rows.setdefault(tuple(row[column] for column in key), row)
    filed.write_csv(
        source.file,
        ["experiment", "trial", "task", source.component, source.place, source.measure, *TRIAL_COLUMNS],
        sorted(rows.values(), key=lambda row: (row["trial"], int(row[source.place]))),
    )
    return f"{source.title}: {len({row[:2] for row in rows})} trials"


TEXT = """# Published numbers, trained again
Each page below sets a paper's numbers (as printed in its tables, or from its authors' result files where the paper has plots) beside the
ones that Lengthwise trained from scratch with all epochs and runs that the paper prints (batches are those of its released code). For Table
1 the positional-attention paper prints no sizes, steps or runs; ours are those of Figure 5. Its stars have no self-connections because the
printed numbers suggest it, so the agreement of their cells is no independent evidence. The networks of all counted cells of that table give every number of
a list the same answer; the best such answer, which needs no training, is within two standard errors of the print in {untrained} cells, so
agreement there shows little. A cell counts once it has all its runs. [results/](reproduced/results) holds every run as CSV.

{table}

{counts} If nothing but chance differed, about 68 % of independent cells would be within one and 95 % within two.

Two more pages reproduce no cell, but train what a paper trains on a smaller scale:
[{ten_seeds}](reproduced/ten_seeds.md) of Ruoss et al., and
[their Table 1 with 0.3 % of its steps](reproduced/randomized_pe_table_1_short.md).

34 of 64 planned cells have all their runs: half of the positional-attention paper's Table 1, two cells of Figure 4 at n = 2 and eight of
Figure 3 at 5,000 vectors. The other 30, of the same two figures, are 150 trials of about half an hour: about 80 more hours of one core. Why
these 34 were trained first was not recorded. [missing.sh](reproduced/missing.sh) trains what else these pages name as missing, at a low
priority, and resumes after an interruption.

Training seconds are wall-clock time, so programs that ran beside a training lengthen them. A checkpoint has no clock: after a resume, the
time of earlier steps is an estimate at the later speed. A trial that has more seconds than passed between its start and its end counts with
the latter. For example, seeds 8 and 9 of Figure 4 have more than four hours each, but took about 70 minutes.

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
The models, logs and hashes of these runs are not kept: a filed run is checked by training it again. "-modified" marks a program with changes
that were not committed; of trials that ended before 2026-11-30 18:00, it was not filed whether it had any.
"""


def pages(found: dict[Source, list[paper.Cell]]) -> dict[Path, str]:
    """REPRODUCED.md, and the page of each table."""
    texts, rows = {}, []
    for source, cells in found.items():
        own = paper.page_of(source, cells)
        texts[filed.HERE / f"{source.table}.md"] = "\n".join(own).rstrip() + "\n"
        link = f"[{source.title}](reproduced/{source.table}.md)"
        rows.append(paper.distances_row(link, [cell for cell in cells if cell.complete]))
    every = [cell for cells in found.values() for cell in cells]
    heads = ["published", "cells with all runs", "within one standard error", "within two", "the farthest, in standard errors"]
    texts[filed.HERE.parent / "REPRODUCED.md"] = TEXT.format(
        untrained=paper.untrained(every),
        table="\n".join(filed.markdown("lrrrr", heads, rows)),
        counts=paper.if_drawn_a_run(cell for cell in every if cell.complete and cell.draw_error),
        ten_seeds=ten_seeds.title(),
    )
    return texts


def main() -> int:
    check = filed.only_checks(__doc__, collect)
    found = {source: paper.cells_of(source, filed.read_filed(source.file)) for source in paper.SOURCES}
    short_raw = filed.read_filed(SHORT.file)
    short = table1_short.rows_of(short_raw)
    steps = filed.span(f"{int(row['steps']):,}" for row in short_raw)
    curves = ten_seeds.curves_of(final=False)
    results = [*ten_seeds.table(), "", *paper.retrained(cell for cells in found.values() for cell in cells)]
    texts = pages(found) | {
        filed.HERE / f"{SHORT.table}_short.md": "\n".join(table1_short.page(short_raw, short, steps)) + "\n",
        ten_seeds.PICTURE.with_suffix(".md"): "\n".join(ten_seeds.page()) + "\n",
        filed.README: filed.with_results(filed.README, filed.README.read_text(encoding="utf-8"), README_BEGIN, results),
    }
    drawn: filed.Drawn = {
        table1_short.PICTURE: ((short, steps), lambda: table1_short.draw(short, steps)),
        ten_seeds.PICTURE: (curves, lambda: ten_seeds.draw(curves)),
    }
    for source, cells in found.items():
        rows = paper.complete_rows(cells)
        drawn[filed.HERE / f"{source.table}.svg"] = paper.drawn_cells(rows), functools.partial(paper.draw, rows)
    return filed.write_stale(texts, drawn, check)


if __name__ == "__main__":
    sys.exit(main())
