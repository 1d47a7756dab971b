#!/usr/bin/env python3
"""Writes the results of quick experiments into the README.md of their folder, and keeps their pictures.

    experiments/quick_pages.py                  # from the results kept in experiments/*/results
    experiments/quick_pages.py --add SITE --machine "AMD EPYC, one thread a trial"
                                                # first keeps the ended trials of a folder of `lengthwise publish`
    experiments/quick_pages.py --check          # fails where a README.md or a picture is not what the results make

A README.md gets the results of the experiment NAME between the lines "<!-- results of NAME -->" and "<!-- end -->". With "<!--
results of NAME beside PAPER/TABLE -->" it gets the paper's numbers, too; "by loss" is for tasks that are compared by it. Its
picture is the published one; "drawn as FIGURE ..." names others, which quick_run.sh draws. The losses of `reference_code` stand
beside those of the authors' code, in a table here and in a sentence of the first page.
"""

from __future__ import annotations

import itertools
import re
import statistics
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "reproduced"))

import filed
from filed import Row, spread
from table1_short import TITLES

BEGIN = re.compile(r"^(<!-- results of (\w+)(?: by (loss))?(?: beside ([\w/]+))?(?: drawn as ([\w ]+))? -->)$", re.MULTILINE)
BY_LENGTH = "accuracy_by_length"
COLUMNS = ["trial", "task", "network", "encoding", "length", "seen"]
# On examples of training, where no length says that (evaluation.training_examples).
ON_TRAINING = "training_accuracy"
TRAINING = 0  # its place among lengths
OF_TRIAL = ["training_seconds", "started", "ended", "machine", "instruction_set", "revision"]


# Trains as the released code, a run of which with each encoding is stored with the golden values.
REFERENCE = "reference_code"
REFERENCE_RUNS = HERE.parent / "tests/golden/randomized_positional_encodings/training_curve.json"
REFERENCE_LABELS = {"rotary": "rope", "noisy_sin_cos": "randomized_sin_cos"}
REFERENCE_COLUMNS = ["trial", "encoding", "step", "loss", "accuracy"]


def place_of(name: str) -> tuple[Path, str, list[str]]:
    """The folder whose README.md has the results of an experiment, what they are measured by, and the figures that it shows."""
    for path in HERE.glob("*/README.md"):
        for _, of, measure, _, figures in BEGIN.findall(path.read_text(encoding="utf-8")):
            if of == name:
                return path.parent, measure or "accuracy", (figures or BY_LENGTH).split()
    raise SystemExit(f"no experiments/*/README.md has a line <!-- results of {name} -->")


def raw_file(name: str) -> Path:
    return place_of(name)[0] / "results" / f"{name}.csv"


def pictures_of(name: str) -> dict[str, Path]:
    """By figure."""
    folder, _, figures = place_of(name)
    return {one: folder / "pictures" / f"{name}{'' if one == BY_LENGTH else f'_{one}'}.svg" for one in figures}


def collect(site: Path, machine: str) -> str:
    """Keeps the final accuracies of the trials that have succeeded, and the pictures, in place of those kept before."""
    name, trials, measured = filed.read_site(site)
    if name == REFERENCE:
        return collect_losses(site, trials, measured, machine)
    rows = []
    columns = [*COLUMNS, place_of(name)[1]]
    of_trial = [ON_TRAINING] if any(one[ON_TRAINING] for one in trials.values()) else []
    for one in measured:
        if one["final"] == "true":
            trial = trials[one["trial"]]
            kept = {column: one[column] for column in columns} | {column: trial[column] for column in of_trial}
            rows.append({**kept, **filed.facts_of(trial, machine), "trial": one["trial"].split("/")[-1]})
    raw_file(name).parent.mkdir(exist_ok=True)
    filed.write_csv(raw_file(name), [*columns, *of_trial, *OF_TRIAL], rows)
    shown = filed.drawn_from(filed.read_csv(raw_file(name)))
    for figure, path in pictures_of(name).items():
        path.parent.mkdir(exist_ok=True)
        drawn = (site / "figures" / f"{figure}.svg").read_text(encoding="utf-8")
        path.write_text(f"{drawn}<!-- {shown} -->\n", encoding="utf-8")
    return f"{name}: {len(trials)} trials"


def collect_losses(site: Path, trials: dict[str, Row], measured: Sequence[Row], machine: str) -> str:
    """Keeps these trials' losses at the first step and, as the mean over fifty, at those of the authors' code; and the accuracies."""
    accuracies = {row["trial"]: row["accuracy"] for row in measured if row["final"] == "true"}
    losses: dict[str, dict[int, float]] = {name: {} for name in trials}
    for one in filed.read_csv(site / "loss_curves.csv"):
        if one["trial"] in losses:
            losses[one["trial"]][int(one["step"])] = float(one["loss"])
    rows = []
    steps = [1, *map(int, reference_runs()["none"]["loss"])]
    for name, of_trial in losses.items():
        facts = filed.facts_of(trials[name], machine)
        for last in steps:
            loss = statistics.fmean(of_trial[step] for step in range(max(1, last - 49), last + 1))
            own = {"trial": name.split("/")[-1], "encoding": trials[name]["encoding"], "accuracy": accuracies[name]}
            rows.append({**own, "step": str(last), "loss": f"{loss:.6f}", **facts})
    filed.write_csv(raw_file(REFERENCE), [*REFERENCE_COLUMNS, *OF_TRIAL], rows)
    return f"{REFERENCE}: {len(trials)} trials"


def reference_runs() -> dict[str, dict[str, Any]]:
    """By our label of the encoding."""
    runs = filed.read_json(REFERENCE_RUNS)["runs"]
    return {REFERENCE_LABELS.get(run["encoding"], run["encoding"]): run for run in runs}


def printed_in(table: str) -> dict[tuple[str, str], str]:
    """What the paper prints, by task and by the label of the encoding here."""
    published = filed.read_published(table.replace("/", "_", 1))
    labels = {}
    for column in published["columns"]:
        encoding = column["encoding"]
        drawn = ("randomized_" if encoding.get("sorted", True) else "unsorted_") if encoding.get("randomized") else ""
        labels[column["key"]] = drawn + encoding.get("name", "")
    found: dict[tuple[str, str], str] = {}
    for cell in published["cells"]:
        deviation = f" ± {cell['std']:.1f}" if "std" in cell else ""
        # The first of several columns of one encoding.
        found.setdefault((cell["row"], labels[cell["column"]]), f"{cell['value']:.1f}{deviation}")
    return found


def extremes(losses: Sequence[float]) -> str:
    return " to ".join(f"{loss:.3g}" for loss in (min(losses), max(losses)))


# Of a task, network and encoding: by trial, the accuracy or loss at each length.
Trials = dict[str, dict[int, float]]


def means(trials: Trials, lengths: Sequence[int]) -> list[float]:
    return [statistics.fmean(one[length] for length in lengths) for one in trials.values()]


def results(name: str, raw: Sequence[Row], measure: str, table: str) -> list[str]:
    """What stands between the two lines of a README.md. `table`: "PAPER/TABLE" of the paper's numbers, or empty."""
    if not raw:
        return ["It was not trained in full yet, so there is no table."]
    seen = sorted({int(row["length"]) for row in raw if row["seen"] == "true"})
    unseen = sorted({int(row["length"]) for row in raw if row["seen"] != "true"})
    lines: dict[tuple[str, str, str], Trials] = {}
    for row in raw:
        trials = lines.setdefault((row["task"], row["network"], row["encoding"]), {})
        trials.setdefault(row["trial"], {})[int(row["length"])] = float(row[measure])
        if ON_TRAINING in row:
            trials[row["trial"]][TRAINING] = float(row[ON_TRAINING])
    by_loss = measure == "loss"
    printed = printed_in(table) if table else {}
    single = max(map(len, lines.values())) == 1
    has_best = not (by_loss or printed or single)
    if by_loss:
        told = "Mean squared error, the mean over scales, from the lowest to the highest seed,"
    else:
        told = f"Mean accuracy in per cent{' of single trials' if single else ', ± the standard deviation over seeds,'}"
    place = "scale" if by_loss else "length"
    if seen:
        ends = " to ".join(map(str, dict.fromkeys((seen[0], seen[-1]))))
        where = f"{place}s seen ({ends}) and not seen ({unseen[0]} to {unseen[-1]}) in training"
    else:
        where = f"the training set and on sequences not seen in training ({place}s {unseen[0]} to {unseen[-1]})"
    chosen = " Best seed: the highest of the means on unseen lengths, chosen by these themselves." if has_best else ""
    # Columns of means over these lengths.
    shown = {"seen" if seen else "training set": seen or [TRAINING], "unseen": unseen}
    if by_loss:
        shown[f"scale {unseen[0]}"] = unseen[:1]
    shown[f"{place} {unseen[-1]}"] = unseen[-1:]
    heads, rows = list(shown), []
    if printed or has_best:
        heads.insert(2, "paper" if printed else "best seed, unseen")
    for (task, network, encoding), trials in lines.items():
        chance = f" ({TITLES[task][1]:g} %)" if task in TITLES else ""
        name_of = network if encoding in ("none", "one_hot", "own") else f"{network}, {encoding}"
        cells = [(extremes if by_loss else spread)(means(trials, lengths)) for lengths in shown.values()]
        if printed or has_best:
            cells.insert(2, printed.get((task, encoding), "") if printed else f"{100 * max(means(trials, unseen)):.1f}")
        rows.append([f"{task}{chance}", name_of, str(len(trials)), *cells])
    lines_of_page = [
        f"{told} on {where}.{chosen} {filed.training_of(raw)}",
        "",
        *filed.markdown("ll" + "r" * (len(heads) + 1), ["task (chance)", "network", "seeds", *heads], rows),
    ]
    for figure, path in pictures_of(name).items():
        lines_of_page += ["", f"![{figure.replace('_', ' ').capitalize()}](pictures/{path.name})"]
    return lines_of_page


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
        # By encoding and step: their loss less our mean, in standard deviations.
        self.distances = {}
        for encoding, step in itertools.product(self.runs, self.steps):
            theirs, mean, deviation = self.cell(encoding, step)
            self.distances[encoding, step] = (theirs - mean) / deviation

    def cell(self, encoding: str, step: str) -> tuple[float, float, float]:
        """Their loss, and the mean and the standard deviation of ours."""
        ours = self.ours[encoding, step]
        return float(self.runs[encoding]["loss"][step]), statistics.fmean(ours), statistics.stdev(ours)

    def closeness(self) -> str:
        one, two, _ = filed.within(self.distances.values())
        of = len(self.distances)
        return f"Of these {of} losses, {one} lie within one standard deviation between {self.seeds} seeds, and {two} within two"

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

    def table(self) -> list[str]:
        rows = []
        for encoding in self.runs:
            cells = ["{:.3f} / {:.3f} ± {:.3f}".format(*self.cell(encoding, step)) for step in self.steps]
            rows.append([encoding.replace("_", "\\_"), *cells])
        heads = ["encoding", *(f"step {step}" for step in self.steps)]
        ours = self.ours["none", "1"]
        first = (
            f"The run of their code with `none` began at {self.runs['none']['first_loss']:.2f}, seeds here between {min(ours):.2f} and"
            f" {max(ours):.2f}."
        )
        others = ", ".join(f"{encoding} at step {step}" for (encoding, step), one in self.distances.items() if abs(one) > 2)
        return [
            *filed.markdown("l" + "r" * len(self.steps), heads, rows),
            "",
            f"{self.closeness()}; the others: {others}. {first} {self.accuracies()}",
            "",
            filed.training_of(self.raw),
        ]

    def sentence(self) -> list[str]:
        """For the first page."""
        return [f"{self.closeness()}; the {len(self.steps)} losses of a run are not independent. {self.accuracies()}"]


def publish_again(name: str) -> None:
    raise SystemExit(f"a picture of {name} shows other results: `lengthwise publish {name} -o SITE`, and --add SITE")


def main() -> int:
    check = filed.only_checks(__doc__, collect)
    texts: dict[Path, str] = {}
    drawn: filed.Drawn = {}
    for readme in [filed.README, *sorted(HERE.glob("*/README.md"))]:
        texts[readme] = readme.read_text(encoding="utf-8")
        for begin, name, measure, table, _ in BEGIN.findall(texts[readme]):
            raw = filed.read_filed(raw_file(name))
            if name == REFERENCE:
                losses = Losses(raw)
                lines = losses.sentence() if readme == filed.README else losses.table()
            else:
                lines = results(name, raw, measure or "accuracy", table)
                for picture in pictures_of(name).values() if raw else ():
                    drawn[picture] = raw, partial(publish_again, name)
            texts[readme] = filed.with_results(readme, texts[readme], begin, lines)
    return filed.write_stale(texts, drawn, check)


if __name__ == "__main__":
    sys.exit(main())
