#!/usr/bin/env python3
"""Tabulates results of tests/gpu/lease.sh: model-steps a second of each program, or the time of each kernel of a step.

  benchmarks/gpu_tables.py steps.jsonl | kernels.csv
"""
from __future__ import annotations

import collections
import csv
import json
import pathlib
import sys


def print_rates(lines: list[str]) -> None:
    """Prints a row for each precision, length and pack: each program's model-steps a second, and its ratio to ours."""
    rates: dict[tuple[str, str, int], dict[str, float]] = collections.defaultdict(dict)
    for line in lines:
        try:
            result = json.loads(line)
        except json.JSONDecodeError:
            continue  # a message of a library, or the last line of a program that was stopped
        drawn = result["shortest"] != result["length"]
        length = f"{result['shortest']}..{result['length']}" if drawn else str(result["length"])
        seconds = result["step_seconds_mean" if drawn else "step_seconds_median"]
        # One word where --kernels decided for all of them.
        named = f", {result['kernels']} kernels" if result.get("kernels") in ("fused", "plain") else ""
        rates[result["precision"], length, result["pack"]][result["program"] + named] = result["pack"] / seconds
    programs = sorted({name for row in rates.values() for name in row}, key=lambda name: (name != "lengthwise", name))
    print("| precision | length | models | " + " | ".join(programs) + " |")
    print("| --- " * (3 + len(programs)) + "|")
    for (precision, length, pack), row in rates.items():
        cells = []
        for name in programs:
            ratio = f" ({row[name] / row['lengthwise']:.2f} x)" if name in row and "lengthwise" in row else ""
            cells.append(f"{row[name]:.0f}{'' if name == 'lengthwise' else ratio}" if name in row else "")
        print(f"| {precision} | {length} | {pack} | " + " | ".join(cells) + " |")


def print_kernels(lines: list[str]) -> None:
    """Prints the launches and the time of each kernel, by Nsight Compute's gpu__time_duration.sum, in nanoseconds."""
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        print("Nsight Compute counted nothing: no kernel was found, or its counters are not readable here")
        return
    times: dict[str, list[float]] = collections.defaultdict(list)
    for row in csv.DictReader(lines[start:]):
        times[row["Kernel Name"].partition("(")[0][:90]].append(float(row["Metric Value"].replace(",", "")))
    print("| kernel | launches | ms |\n| --- | ---: | ---: |")
    for name in sorted(times, key=lambda name: -sum(times[name])):
        print(f"| {name} | {len(times[name])} | {sum(times[name]) / 1e6:.3f} |")


def main() -> None:
    path = pathlib.Path(sys.argv[1])
    (print_kernels if path.suffix == ".csv" else print_rates)(path.read_text().splitlines())


if __name__ == "__main__":
    main()
