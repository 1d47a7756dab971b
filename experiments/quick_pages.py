#!/usr/bin/env python3
"""Writes the results of quick experiments into the README.md of their folder, and keeps their pictures.

    experiments/quick_pages.py                  # from the results kept in experiments/*/results
    experiments/quick_pages.py --add SITE --machine "AMD EPYC, one thread a trial"
                                                # first keeps the ended trials of a folder of `lengthwise publish`
    experiments/quick_pages.py --check          # fails where a README.md or a picture is not what the results make

A README.md gets the results of the experiment NAME between the lines "<!-- results of NAME -->" and "<!-- end -->". Its picture is the
published one. The losses of `reference_code` stand beside those of the authors' code, in a table here and in a sentence of the first page.
"""

from __future__ import annotations

import itertools
import json
import re
import statistics
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "reproduced"))

from make_page import (
    README,
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


# Trains as the released code, a run of which with each encoding is stored with the golden values.
REFERENCE = "reference_code"
REFERENCE_RUNS = HERE.parent / "tests/golden/randomized_positional_encodings/training_curve.json"
REFERENCE_LABELS = {"rotary": "rope", "noisy_sin_cos": "randomized_sin_cos"}
REFERENCE_COLUMNS = ["trial", "encoding", "step", "loss", "accuracy"]


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
    if name == REFERENCE:
        return collect_losses(site, trials, machine)
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


def collect_losses(site: Path, trials: dict[str, Row], machine: str) -> str:
    """Keeps these trials' losses at the first step and, as the mean over fifty, at those of the authors' code; and the accuracies."""
    accuracies = {row["trial"]: row["accuracy"] for row in read_csv(site / "length_accuracies.csv") if row["final"] == "true"}
    losses: dict[str, dict[int, float]] = {name: {} for name in trials}
    for one in read_csv(site / "loss_curves.csv"):
        if one["trial"] in losses:
            losses[one["trial"]][int(one["step"])] = float(one["loss"])
    rows = []
    steps = [1, *map(int, reference_runs()["none"]["loss"])]
    for name, of_trial in losses.items():
        facts = facts_of(trials[name], machine)
        for last in steps:
            loss = statistics.fmean(of_trial[step] for step in range(max(1, last - 49), last + 1))
            own = {"trial": name.split("/")[-1], "encoding": trials[name]["encoding"], "accuracy": accuracies[name]}
            rows.append({**own, "step": str(last), "loss": f"{loss:.6f}", **facts})
    write_csv(raw_file(readme_of(REFERENCE), REFERENCE), [*REFERENCE_COLUMNS, *OF_TRIAL], rows)
    return f"{REFERENCE}: {len(trials)} trials"


def reference_runs() -> dict[str, dict[str, Any]]:
    """By our label of the encoding."""
    runs = json.loads(REFERENCE_RUNS.read_text(encoding="utf-8"))["runs"]
    return {REFERENCE_LABELS.get(run["encoding"], run["encoding"]): run for run in runs}


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


class Losses:
    """Of the authors' code, one run with each encoding, and of ours, each with a step's mean and deviation over seeds."""

    def __init__(self, raw: Sequence[Row]) -> None:
        self.raw = raw
        self.runs = reference_runs()
        self.steps = list(self.runs["none"]["loss"])
        self.ours: dict[tuple[str, str], list[float]] = {}
        for row in raw:
            self.ours.setdefault((row["encoding"], row["step"]), []).append(float(row["loss"]))
        self.seeds = len(self.ours["none", "1"])
        self.far = []
        self.near = 0
        for encoding, step in itertools.product(self.runs, self.steps):
            theirs, mean, deviation = self.cell(encoding, step)
            self.near += abs(theirs - mean) <= deviation
            if abs(theirs - mean) > 2 * deviation:
                self.far.append((encoding, step))

    def cell(self, encoding: str, step: str) -> tuple[float, float, float]:
        """Their loss, and the mean and the standard deviation of ours."""
        ours = self.ours[encoding, step]
        return float(self.runs[encoding]["loss"][step]), statistics.fmean(ours), statistics.stdev(ours)

    def closeness(self) -> str:
        of = len(self.runs) * len(self.steps)
        return (
            f"Of these {of} losses, {self.near} lie within one standard deviation between {self.seeds} seeds, and"
            f" {of - len(self.far)} within two"
        )

    def accuracies(self) -> str:
        """Says where the authors' accuracy after training is outside the range of ours."""
        outside = []
        for encoding, run in self.runs.items():
            ours = [100 * float(row["accuracy"]) for row in self.raw if row["encoding"] == encoding]
            theirs = 100 * run["eval_accuracy"]
            if not min(ours) <= theirs <= max(ours):
                outside.append(f"{encoding} (theirs {theirs:.1f} %, here {min(ours):.1f} to {max(ours):.1f} %)")
        exceptions = f", except for {', '.join(outside)}" if outside else ""
        return f"The accuracies of their code are inside the range of the {self.seeds} seeds{exceptions}."

    def first(self) -> str:
        ours = self.ours["none", "1"]
        return f"The run of their code with `none` began at {self.runs['none']['first_loss']:.2f}, seeds here between {min(ours):.2f} and {max(ours):.2f}."

    def table(self) -> list[str]:
        lines = [
            f"| encoding | {' | '.join(f'step {step}' for step in self.steps)} |",
            f"| --- |{' ---: |' * len(self.steps)}",
        ]
        for encoding in self.runs:
            cells = []
            for step in self.steps:
                theirs, mean, deviation = self.cell(encoding, step)
                cells.append(f"{theirs:.3f} / {mean:.3f} ± {deviation:.3f}")
            lines.append(f"| {encoding.replace('_', chr(92) + '_')} | {' | '.join(cells)} |")
        trials = list({row["trial"]: row for row in self.raw}.values())
        others = ", ".join(f"{encoding} at step {step}" for encoding, step in self.far)
        return [
            *lines,
            "",
            f"{self.closeness()}; the others: {others}. {self.first()} {self.accuracies()}",
            "",
            f"{len(trials)} trials, {hours_of(trials)}, ended {days(self.raw)}. {machines(self.raw)}",
        ]

    def sentence(self) -> list[str]:
        """For the first page."""
        return [f"{self.closeness()}; the {len(self.steps)} losses of a run are not independent. {self.accuracies()}"]


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
    for readme in [README, *sorted(HERE.glob("*/README.md"))]:
        texts[readme] = readme.read_text(encoding="utf-8")
        for block in BLOCK.finditer(texts[readme]):
            name = block["name"]
            path = raw_file(readme_of(name), name)
            raw = read_csv(path) if path.exists() else []
            if name == REFERENCE:
                losses = Losses(raw)
                made_lines = losses.sentence() if readme == README else losses.table()
            else:
                made_lines = results(name, raw)
                if raw:
                    drawn[picture_of(name)] = raw, partial(publish_again, name)
            made = "\n".join([block["begin"] + "\n".join(made_lines), block["end"]])
            texts[readme] = texts[readme].replace(block[0], made)
    return write_stale(texts, drawn, check)


if __name__ == "__main__":
    sys.exit(main())
