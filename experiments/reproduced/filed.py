"""Results that are filed as CSV, and what pages say of them and of published tables."""

from __future__ import annotations

import argparse
import csv
import datetime
import hashlib
import json
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
Key = TypeVar("Key")
Row = dict[str, str]
HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
PUBLISHED = HERE.parent / "published"
README = HERE.parent.parent / "README.md"


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
    # Of the results' file, where the table has several.
    ending: str = ""

    @property
    def file(self) -> Path:
        """Has a row for each trial and scale or length."""
        return RESULTS / f"{self.table}{self.ending}.csv"


def read_csv(path: Path) -> list[Row]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def read_filed(path: Path) -> list[Row]:
    """None where nothing is filed yet."""
    return read_csv(path) if path.exists() else []


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Row]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read_json(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def read_published(table: str) -> dict[str, Any]:
    return read_json(PUBLISHED / f"{table}.json")


def read_site(site: Path) -> tuple[str, dict[str, Row], list[Row]]:
    """What a folder of `lengthwise publish` is about, its trials that have succeeded, by name, and their evaluations."""
    trials = {row["trial"]: row for row in read_csv(site / "trials.csv") if row["state"] == "SUCCEEDED"}
    measured = [row for row in read_csv(site / "length_accuracies.csv") if row["trial"] in trials]
    return str(read_json(site / "specification.json")["name"]), trials, measured


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


def grouped(items: Iterable[T], key: Callable[[T], Key]) -> dict[Key, list[T]]:
    found: dict[Key, list[T]] = {}
    for one in items:
        found.setdefault(key(one), []).append(one)
    return found


def matches(component: str, published: dict[str, Any]) -> bool:
    """The trial's network or encoding has every parameter that the published row or column names."""
    ours = json.loads(component)
    return all(ours.get(name) == value for name, value in published.items())


def span(values: Iterable[str], separator: str = ", ") -> str:
    return separator.join(sorted(set(values)))


def hours_of(trials: Iterable[Row]) -> str:
    """ "at most 5.2 hours of training": see remarks.md. What is filed may be an estimate that is longer than the run was."""
    hours = bound = 0.0
    for row in trials:
        seconds = float(row["training_seconds"])
        started, ended = (datetime.datetime.fromisoformat(row[name]) for name in ("started", "ended"))
        # Start and end are whole minutes.
        longest = (ended - started).total_seconds() + 120
        hours += min(seconds, longest) / 3600
        bound = max(bound, seconds - longest)
    text = f"{hours:.1f} hours" if hours >= 0.1 else f"{60 * hours:.0f} minutes"
    return f"{'at most ' if bound > 0 else ''}{text} of training"


def days(raw: Sequence[Row]) -> str:
    """ "2026-11-23 to 2026-11-25"."""
    return span((found(row["ended"] for row in raw)[:10] for found in (min, max)), " to ")


def machines(raw: Sequence[Row]) -> str:
    return (
        f"Machine: {span((row['machine'] for row in raw), '; ')} ({span(row['instruction_set'] for row in raw)}); revision"
        f" {span(row['revision'][:7] + '-modified' * row['revision'].endswith('-modified') for row in raw)}."
    )


def within(distances: Iterable[float]) -> tuple[int, int, float]:
    """How many of these distances are within one and within two standard deviations, and the largest."""
    sizes = list(map(abs, distances))
    return sum(one <= 1 for one in sizes), sum(one <= 2 for one in sizes), max(sizes)


def trials_of(raw: Iterable[Row]) -> list[Row]:
    """A row of each."""
    return list({row["trial"]: row for row in raw}.values())


def training_of(raw: Sequence[Row]) -> str:
    trials = trials_of(raw)
    return f"{len(trials)} trials, {hours_of(trials)}, ended {days(raw)}. {machines(raw)}"


def spread(scores: Sequence[float]) -> str:
    """ "97.1 ± 2.0": mean and standard deviation over seeds, in per cent."""
    deviation = f" ± {100 * statistics.stdev(scores):.1f}" if len(scores) > 1 else ""
    return f"{100 * statistics.fmean(scores):.1f}{deviation}"


def markdown(align: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table; `align` has "l" or "r" for each column."""
    rule = ["---:" if one == "r" else "---" for one in align]
    return ["|" + "|".join(f" {cell} " if cell else " " for cell in row) + "|" for row in (heads, rule, *rows)]


def with_results(document: Path, text: str, begin: str, results: Sequence[str]) -> str:
    """The document's text with these results after the line `begin`."""
    before, found, rest = text.partition(begin + "\n")
    if not found:
        raise SystemExit(f"{document} has no line {begin}: the results have no place")
    _, end, after = rest.partition("<!-- end -->\n")
    return "\n".join([before + begin, *results, end]) + after


def drawn_from(shown: object) -> str:
    """Names the results that a picture shows."""
    return "results " + hashlib.sha256(repr(shown).encode()).hexdigest()


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
Drawn = dict[Path, tuple[object, Callable[[], Any]]]


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
            shown, draw = drawn[path]
            draw().savefig(path, metadata={"Date": None, "Description": drawn_from(shown)})
    return 1 if stale and check else 0
