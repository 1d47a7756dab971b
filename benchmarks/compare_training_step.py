#!/usr/bin/env python3
"""Runs benchmarks/training_step and a PyTorch script alternately and prints medians, spread and ratios.

Alternately, because a machine's speed drifts: both see the same minutes. A run's figure is the median of its steps; printed
are the median of the runs and their range. `--clock cpu` compares processor time instead of wall time, for machines that
other programs use as well (with one thread; idle OpenMP threads count as busy).

  bazel build //benchmarks:training_step
  benchmarks/compare_training_step.py --python ENVIRONMENT/bin/python --encodings none randomized_relative --lengths 40

A pack of P models is compared with ensembles of P models (pytorch_ensemble_step.py, jax_ensemble_step.py), never with one.
On a GPU, with one length and with lengths drawn as training draws them:

  benchmarks/compare_training_step.py --device cuda --packs 1 10 30 --lengths 20 40 1..40 --encodings randomized_relative \
      --modes max-autotune jax --precisions float32 bfloat16 --steps 200 --rounds 3 --python ENVIRONMENT/bin/python

ENVIRONMENT is a Python environment that imports torch, and jax for --modes jax. Another PyTorch script of one model with the
same options and JSON keys can be given by --peer.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent


def measure(command, threads):
    """Runs a program and returns the JSON lines that it prints; with --roofline there is one."""
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
    command = [str(part) for part in command]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if result.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{result.stderr[-2000:]}")
    return [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]


def row(name, seconds, ours):
    """Formats one model's share of a step's time. `ours` is our median; None for our own row."""
    median = statistics.median(seconds)
    spread = f"{1e3 * min(seconds):8.3g} .. {1e3 * max(seconds):8.3g}"
    ratio = "" if ours is None else f"{median / ours:5.2f} x"
    return f"    {name:<30}{1e3 * median:9.4g} ms  {spread}  {1 / median:10.1f} model-steps/s  {ratio}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=ROOT / "bazel-bin/benchmarks/training_step")
    parser.add_argument("--peer", default=ROOT / "benchmarks/pytorch_step.py",
                        help="script of the PyTorch peer; without --packs")
    parser.add_argument("--python", default="python3", help="Python with PyTorch, and with JAX for --modes jax")
    parser.add_argument("--modes", nargs="+", default=["eager", "compile"],
                        choices=["eager", "sdpa", "compile", "max-autotune", "jax"],
                        help="PyTorch modes. Without --packs also sdpa; with --packs also max-autotune, and jax instead of "
                             "PyTorch")
    parser.add_argument("--encodings", nargs="+",
                        default=["none", "sin_cos", "rope", "alibi", "relative", "randomized_relative"])
    parser.add_argument("--lengths", nargs="+", default=["10", "20", "40"],
                        help="length, such as 40, or range, such as 1..40, to draw each step's length")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=10, help="measured steps of a round, after the warm-up")
    parser.add_argument("--clock", default="wall", choices=["wall", "cpu"])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--packs", nargs="+", type=int,
                        help="pack sizes, compared with ensembles of equal size")
    parser.add_argument("--precisions", nargs="+", default=["float32"], choices=["float32", "bfloat16"])
    options = parser.parse_args()
    wrong = set(options.modes) & ({"sdpa"} if options.packs else {"max-autotune", "jax"})
    if wrong:
        parser.error(f"--modes {' '.join(sorted(wrong))}: {'not' if options.packs else 'only'} with --packs")

    # The language model's program has no --device.
    device = ["--device", options.device] if options.device != "cpu" else []
    roofline = measure([options.program, "--roofline", *device, "--threads", options.threads], options.threads)[-1]
    load = os.getloadavg()[0]
    print(f"{options.threads} threads, {options.rounds} rounds of {options.steps} steps, {options.clock} time; "
          f"load average before: {load:.1f}")
    print("roofline: " + ", ".join(f"{name} {value:.3g}" for name, value in roofline.items()))
    for encoding in options.encodings:
        for precision in options.precisions:
            compare_packs(options, encoding, precision) if options.packs else compare(options, encoding, precision)


def seconds_of(options, result):
    # Steps of different lengths have no typical duration, so their mean counts.
    several = result.get("shortest", result["length"]) != result["length"]
    return result[f"{'step' if options.clock == 'wall' else 'cpu'}_seconds_{'mean' if several else 'median'}"]


def common_options(options, encoding, precision):
    # The language model's programs accept only the first two options.
    return ["--encoding", encoding, "--steps", options.steps,
            *(["--device", options.device] if options.device != "cpu" else []),
            *(["--precision", precision] if precision != "float32" else [])]


def compare(options, encoding, precision):
    """Compares one model here and in PyTorch, alternately, one length after another."""
    for length in options.lengths:
        common = [*common_options(options, encoding, precision), "--length", length]
        commands = {"lengthwise": [options.program, *common, "--threads", options.threads]}
        for mode in options.modes:
            commands[f"pytorch {mode}"] = [options.python, options.peer, *common, "--mode", mode]
        seconds = {name: [] for name in commands}
        for _ in range(options.rounds):
            for name, command in commands.items():
                seconds[name].append(seconds_of(options, measure(command, options.threads)[-1]))
        print(f"  {encoding}, length {length}, {precision}")
        print_rows(seconds, 1)


def compare_packs(options, encoding, precision):
    """Compares packs here with ensembles of as many models, alternately. Each program measures all packs and lengths in
    one run.
    """
    common = [*common_options(options, encoding, precision), "--lengths", *options.lengths, "--packs", *options.packs]
    commands = {"lengthwise": [options.program, *common, "--threads", options.threads]}
    for mode in options.modes:
        commands["jax" if mode == "jax" else f"pytorch {mode}"] = [
            options.python, ROOT / "benchmarks/jax_ensemble_step.py", *common] if mode == "jax" else [
            options.python, ROOT / "benchmarks/pytorch_ensemble_step.py", *common, "--mode", mode]
    seconds = {}  # by (lengths, pack), then by name
    for _ in range(options.rounds):
        for name, command in commands.items():
            for result in measure(command, options.threads):
                case = (result["shortest"], result["length"]), result["pack"]
                seconds.setdefault(case, {}).setdefault(name, []).append(seconds_of(options, result))
    for ((shortest, longest), pack), values in seconds.items():
        length = longest if shortest == longest else f"{shortest}..{longest}"
        print(f"  {encoding}, length {length}, {precision}, {pack} models at once, a model's share of a step")
        print_rows(values, pack)


def print_rows(seconds, models):
    ours = statistics.median(seconds["lengthwise"]) / models
    for name, values in seconds.items():
        print(row(name, [value / models for value in values], None if name == "lengthwise" else ours), flush=True)


if __name__ == "__main__":
    main()
