#!/usr/bin/env python3
"""Runs benchmarks/training_step and a PyTorch script alternately and prints medians, spread and ratios.

Alternately, because a machine's speed drifts: both see the same minutes. A run's figure is the median of its steps; printed
are the median of the runs and their range. `--clock cpu` compares processor time instead of wall time, for machines that
other programs use as well (with one thread; idle OpenMP threads count as busy).

  bazel build //benchmarks:training_step
  benchmarks/compare_training_step.py --python ENVIRONMENT/bin/python --encodings none randomized_relative --lengths 40

On a GPU, whole packs beside one PyTorch model, with the lengths drawn as training draws them:

  benchmarks/compare_training_step.py --device cuda --shortest 1 --lengths 40 --encodings randomized_relative \
      --packs 1 10 30 --precisions float32 bfloat16 --steps 200 --python ENVIRONMENT/bin/python

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
    command = [str(part) for part in command]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if result.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{result.stderr[-2000:]}")
    return json.loads(result.stdout.strip().splitlines()[-1])


def row(name, seconds, ours):
    """One model's share of a step's time; `ours` is our fastest median, None for our own rows."""
    median = statistics.median(seconds)
    spread = f"{1e3 * min(seconds):8.3g} .. {1e3 * max(seconds):8.3g}"
    ratio = f"{1 / median:10.1f} model-steps/s" if ours is None else f"{median / ours:5.2f} x"
    return f"    {name:<30}{1e3 * median:9.4g} ms  {spread}  {ratio}"


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
    parser.add_argument("--steps", type=int, default=10, help="in a round, after some that do not count")
    parser.add_argument("--clock", default="wall", choices=["wall", "cpu"])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--shortest", type=int, default=0, help="draw each step's length from here to --lengths")
    parser.add_argument("--packs", nargs="+", type=int, default=[1], help="models that train as one here")
    parser.add_argument("--precisions", nargs="+", default=["float32"], choices=["float32", "bfloat16"])
    options = parser.parse_args()
    # Steps of different lengths have no typical one.
    key = {"wall": "step_seconds_mean" if options.shortest else "step_seconds_median",
           "cpu": "cpu_seconds_mean" if options.shortest else "cpu_seconds_median"}[options.clock]

    roofline = measure([options.program, "--roofline", "--threads", str(options.threads)], options.threads)
    load = os.getloadavg()[0]
    print(f"{options.threads} threads, {options.rounds} rounds of {options.steps} steps, {options.clock} time; "
          f"load average before: {load:.1f}")
    print("roofline: " + ", ".join(f"{name} {value:.3g}" for name, value in roofline.items()))
    for length in options.lengths:
        for encoding in options.encodings:
            common = ["--encoding", encoding, "--length", length, "--steps", options.steps]
            # Programs of other models take the options above alone.
            if options.device != "cpu":
                common += ["--device", options.device]
            if options.shortest:
                common += ["--shortest", options.shortest]
            print(f"  {encoding}, length {f'{options.shortest} to ' if options.shortest else ''}{length}")
            for precision in options.precisions:
                compare(options, key, precision, common)


def compare(options, key, precision, common):
    if precision != "float32":
        common = [*common, "--precision", precision]
    own, peers = {}, {}
    for pack in options.packs:
        several = ["--pack", pack] if pack > 1 else []
        own[f"lengthwise, {pack} as one" if several else "lengthwise"] = (
            pack, [options.program, *common, *several, "--threads", options.threads])
    for mode in options.modes:
        peers[f"pytorch {mode}"] = (1, [options.python, options.peer, *common, "--mode", mode])
    seconds = {name: [] for name in own | peers}
    for _ in range(options.rounds):
        for name, (pack, command) in (own | peers).items():
            seconds[name].append(measure(command, options.threads)[key] / pack)
    if len(options.precisions) > 1:
        print(f"    {precision}")
    ours = min(statistics.median(seconds[name]) for name in own)
    for name, values in seconds.items():
        print(row(name, values, None if name in own else ours), flush=True)


if __name__ == "__main__":
    main()
