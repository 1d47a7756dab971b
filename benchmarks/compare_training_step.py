#!/usr/bin/env python3
"""Runs benchmarks/training_step and a PyTorch script alternately and prints medians, spread and ratios.

Alternately, because a machine's speed drifts: both see the same minutes. A run's figure is the median of its steps; printed
are the median of the runs and their range. `--clock cpu` compares processor time instead of wall time, for machines that
other programs use as well (with one thread; idle OpenMP threads count as busy).

  bazel build //benchmarks:training_step
  benchmarks/compare_training_step.py --python ENVIRONMENT/bin/python --encodings none randomized_relative --lengths 40

ENVIRONMENT is a Python environment that imports torch. Another PyTorch script with the same options and JSON keys can be
given by --peer.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent


def measure(command, threads):
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if result.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{result.stderr[-2000:]}")
    return json.loads(result.stdout.strip().splitlines()[-1])


def row(name, seconds, ours):
    median = statistics.median(seconds)
    spread = f"{1e3 * min(seconds):7.1f} .. {1e3 * max(seconds):7.1f}"
    ratio = "" if name == "lengthwise" else f"{median / ours:5.2f} x"
    return f"    {name:<18}{1e3 * median:8.1f} ms  {spread}  {ratio}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=ROOT / "bazel-bin/benchmarks/training_step")
    parser.add_argument("--peer", default=ROOT / "benchmarks/pytorch_step.py")
    parser.add_argument("--python", default="python3", help="of an environment with PyTorch")
    parser.add_argument("--modes", nargs="+", default=["eager", "compile"], choices=["eager", "sdpa", "compile"])
    parser.add_argument("--encodings", nargs="+",
                        default=["none", "sin_cos", "rope", "alibi", "relative", "randomized_relative"])
    parser.add_argument("--lengths", nargs="+", type=int, default=[10, 20, 40])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=10, help="in a round, after three that do not count")
    parser.add_argument("--clock", default="wall", choices=["wall", "cpu"])
    options = parser.parse_args()
    key = {"wall": "step_seconds_median", "cpu": "cpu_seconds_median"}[options.clock]

    roofline = measure([options.program, "--roofline", "--threads", str(options.threads)], options.threads)
    load = os.getloadavg()[0]
    print(f"{options.threads} threads, {options.rounds} rounds of {options.steps} steps, {options.clock} time; "
          f"load average before: {load:.1f}")
    print("roofline: " + ", ".join(f"{name} {value:.3g}" for name, value in roofline.items()))
    for length in options.lengths:
        for encoding in options.encodings:
            common = ["--encoding", encoding, "--length", str(length), "--steps", str(options.steps)]
            commands = {"lengthwise": [options.program, *common, "--threads", str(options.threads)]}
            for mode in options.modes:
                commands[f"pytorch {mode}"] = [options.python, options.peer, *common, "--mode", mode]
            seconds = {name: [] for name in commands}
            for _ in range(options.rounds):
                for name, command in commands.items():
                    seconds[name].append(measure([str(part) for part in command], options.threads)[key])
            print(f"  {encoding}, length {length}")
            for name, values in seconds.items():
                print(row(name, values, statistics.median(seconds["lengthwise"])), flush=True)


if __name__ == "__main__":
    main()
