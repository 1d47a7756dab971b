#!/usr/bin/env python3
"""Writes the results of quick experiments into the README.md of their folder, and keeps their pictures.

    experiments/quick_pages.py                  # from the results kept in experiments/*/results
    experiments/quick_pages.py --add SITE --machine "AMD EPYC, one thread a trial"
                                                # first keeps the ended trials of a folder of `lengthwise publish`
    experiments/quick_pages.py --check          # fails where a README.md or a picture is not what the results make

A README.md gets the results of the experiment NAME between the lines "<!-- results of NAME -->" and "<!-- end -->". Its picture is the
published one.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "reproduced"))

from make_page import (
    Drawn,
    Row,
    days,
    drawn_from,
    facts_of,
    hours_of,
    machines,
    only_checks,
    read_csv,
    task_titles,
    write_csv,
    write_stale,
)

BLOCK = re.compile(r"(?P<begin><!-- results of (?P<name>\w+) -->\n).*?(?P<end><!-- end -->\n)", re.DOTALL)
COLUMNS = ["trial", "task", "network", "encoding", "length", "seen", "accuracy"]
OF_TRIAL = ["training_seconds", "started", "ended", "machine", "instruction_set", "revision"]


def readme_of(name: str) -> Path:
    for path in HERE.glob("*/README.md"):
        if f"<!-- results of {name} -->\n" in path.read_text(encoding="utf-8"):
            return path
    raise SystemExit(f"no experiments/*/README.md has a line <!-- results of {name} -->")


def raw_file(readme: Path, name: str) -> Path:
    return readme.parent / "results" / f"{name}.csv"


def picture_of(name: str) -> Path:
    return readme_of(name).parent / "pictures" / f"{name}.svg"


def collect(site: Path, machine: str) -> str:
    """Keeps the final accuracies of the trials that have succeeded, and the picture, in place of those kept before."""
    name = json.loads((site / "specification.json").read_text(encoding="utf-8"))["name"]
    trials = {row["trial"]: row for row in read_csv(site / "trials.csv") if row["state"] == "SUCCEEDED"}
    rows = []
    for one in read_csv(site / "length_accuracies.csv"):
        if one["final"] != "true" or one["trial"] not in trials:
            continue
        trial = trials[one["trial"]]
        kept = {column: one[column] for column in COLUMNS} | {
            "trial": one["trial"].split("/")[-1],
            **facts_of(trial, machine),
        }
        rows.append(kept)
    path = raw_file(readme_of(name), name)
    path.parent.mkdir(exist_ok=True)
    write_csv(path, [*COLUMNS, *OF_TRIAL], rows)
    keep_picture(site, name)
    return f"{name}: {len(trials)} trials"


# By network and encoding: by trial, the accuracy at each length.
Lines = dict[tuple[str, str], dict[str, dict[int, float]]]


def lines_of(raw: Sequence[Row], task: str) -> Lines:
    lines: Lines = {}
    for row in raw:
        if row["task"] == task:
            trials = lines.setdefault((row["network"], row["encoding"]), {})
            trials.setdefault(row["trial"], {})[int(row["length"])] = float(row["accuracy"])
    return lines


def title(network: str, encoding: str) -> str:
    return network if encoding in ("none", "own") else f"{network}, {encoding}"


def spread(scores: Sequence[float]) -> str:
    """ "97.1 ± 2.0": mean and standard deviation over seeds, in per cent."""
    deviation = f" ± {100 * statistics.stdev(scores):.1f}" if len(scores) > 1 else ""
    return f"{100 * statistics.fmean(scores):.1f}{deviation}"


def results(name: str, raw: Sequence[Row]) -> list[str]:
    """What stands between the two lines of a README.md."""
    if not raw:
        return ["It was not trained in full yet, so there is no table."]
    seen = sorted({int(row["length"]) for row in raw if row["seen"] == "true"})
    unseen = sorted({int(row["length"]) for row in raw if row["seen"] != "true"})
    trials = list({row["trial"]: row for row in raw}.values())
    lines = [
        (
            f"Mean accuracy in per cent, ± the standard deviation over seeds, on lengths seen ({seen[0]} to {seen[-1]}) and not seen"
            f" ({unseen[0]} to {unseen[-1]}) in training. {len(trials)} trials, {hours_of(trials)}, ended {days(raw)}. {machines(raw)}"
        ),
        "",
        f"| task (chance) | network | seeds | seen | unseen | best seed, unseen | length {unseen[-1]} |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    chances = {task: f" ({chance:g} %)" for task, (_, chance) in task_titles().items()}
    for task in dict.fromkeys(row["task"] for row in raw):
        for (network, encoding), of_trials in lines_of(raw, task).items():
            means = [
                [statistics.fmean(one[length] for length in lengths) for one in of_trials.values()]
                for lengths in (seen, unseen, unseen[-1:])
            ]
            cells = [spread(means[0]), spread(means[1]), f"{100 * max(means[1]):.1f}", spread(means[2])]
            lines.append(f"| {task}{chances.get(task, '')} | {title(network, encoding)} | {len(of_trials)} | {' | '.join(cells)} |")
    return [*lines, "", f"![Accuracy by length](pictures/{name}.svg)"]


def keep_picture(site: Path, name: str) -> None:
    """Keeps the published picture, with the name of the results that it shows."""
    path = picture_of(name)
    path.parent.mkdir(exist_ok=True)
    drawn = (site / "figures" / "accuracy_by_length.svg").read_text(encoding="utf-8")
    path.write_text(f"{drawn}<!-- {drawn_from(read_csv(raw_file(readme_of(name), name)))} -->\n", encoding="utf-8")


def publish_again(name: str) -> None:
    raise SystemExit(f"{picture_of(name)} shows other results: `lengthwise publish {name} -o SITE`, and --add SITE")


def main() -> int:
    check = only_checks(__doc__, collect)
    texts: dict[Path, str] = {}
    drawn: Drawn = {}
    for readme in sorted(HERE.glob("*/README.md")):
        texts[readme] = readme.read_text(encoding="utf-8")
        for block in BLOCK.finditer(texts[readme]):
            name = block["name"]
            path = raw_file(readme, name)
            raw = read_csv(path) if path.exists() else []
            made = "\n".join([block["begin"] + "\n".join(results(name, raw)), block["end"]])
            texts[readme] = texts[readme].replace(block[0], made)
            if raw:
                drawn[picture_of(name)] = raw, partial(publish_again, name)
    return write_stale(texts, drawn, check)


if __name__ == "__main__":
    sys.exit(main())
