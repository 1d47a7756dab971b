#!/usr/bin/env python3
"""Tabulates the results of benchmarks/gpu.sh: model-steps a second of each program, and Nsight Compute's counters by
kernel.

  benchmarks/gpu_tables.py steps.jsonl [kernels.csv]
"""
from __future__ import annotations

import collections
import csv
import json
import pathlib
import statistics
import sys

KERNELS = 6
COUNTERS = {"Duration": "duration", "Compute (SM) Throughput": "SM", "DRAM Throughput": "DRAM",
            "Achieved Occupancy": "occupancy", "Registers Per Thread": "registers"}


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
    """Prints the means of the counters for the kernels that took longest."""
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        print("Nsight Compute counted nothing: no kernel was found, or its counters are not readable here")
        return
    values: dict[str, dict[str, list[float]]] = collections.defaultdict(lambda: collections.defaultdict(list))
    units: dict[str, str] = {}
    for row in csv.DictReader(lines[start:]):
        if row["Metric Name"] in COUNTERS:
            values[row["Kernel Name"]][row["Metric Name"]].append(float(row["Metric Value"].replace(",", "")))
            units[row["Metric Name"]] = row["Metric Unit"]
    longest = sorted(values, key=lambda name: -sum(values[name]["Duration"]))[:KERNELS]
    for name in longest:
        means = [f"{label} {statistics.mean(values[name][counter]):.4g} {units[counter]}"
                 for counter, label in COUNTERS.items() if values[name][counter]]
        print(f"{name.partition('(')[0][:90]}: {len(values[name]['Duration'])} launches, {', '.join(means)}")


def main() -> None:
    print_rates(pathlib.Path(sys.argv[1]).read_text().splitlines())
    if len(sys.argv) > 2:
        print_kernels(pathlib.Path(sys.argv[2]).read_text().splitlines())


if __name__ == "__main__":
    main()
