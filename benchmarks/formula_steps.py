#!/usr/bin/env python3
"""Compares training steps with an additive encoding and with the same encoding as a formula, alternately.

  bazel build //benchmarks:training_step
  benchmarks/formula_steps.py --lengths 20 40

A round's figure is the median of its steps; printed are the medians of the rounds and their ratio.
"""
import argparse
import statistics

import compare_training_step

# The equivalent formula and its parameters for each built-in encoding.
FORMULAS = {
    "kerple_log": ("-max(r1, 0.01) * log1p(max(r2, 0.01) * abs(q - k))", "r1 per head = 1; r2 per head = 0.5"),
    "alibi": ("-2^(-8 * (h + 1) / H) * abs(q - k)", ""),
    "t5": ("t[where(k > q, 16, 0) + where(abs(q - k) < 8, abs(q - k), "
           "min(15, 8 + floor(8 * log(abs(q - k) / 8) / log(16) + 1e-9)))]", "t[32] per head ~ 0.1"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=compare_training_step.ROOT / "bazel-bin/benchmarks/training_step")
    parser.add_argument("--encodings", nargs="+", default=list(FORMULAS), choices=list(FORMULAS))
    parser.add_argument("--randomized", action="store_true", help="draw positions from 0 .. 2047")
    parser.add_argument("--lengths", nargs="+", default=["40"],
                        help="length, such as 40, or range, such as 1..40, to draw each step's length")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=10, help="measured steps of a round, after the warm-up")
    parser.add_argument("--clock", default="wall", choices=["wall", "cpu"],
                        help="cpu: processor time, for busy machines; with one thread")
    options = parser.parse_args()
    drawn = "randomized_" if options.randomized else ""
    for encoding in options.encodings:
        logits, parameters = FORMULAS[encoding]
        sides = {"built-in": ["--encoding", drawn + encoding],
                 "formula": ["--encoding", drawn + "formula", "--logits", logits, "--formula_parameters", parameters]}
        for length in options.lengths:
            seconds = {side: [] for side in sides}
            for _ in range(options.rounds):
                for side, arguments in sides.items():
                    command = [options.program, *arguments, "--length", length, "--steps", options.steps,
                               "--threads", options.threads]
                    measured = compare_training_step.measure(command, options.threads)[0]
                    seconds[side].append(measured["cpu_seconds_median" if options.clock == "cpu" else "step_seconds_median"])
            ours, theirs = (statistics.median(seconds[side]) for side in ("formula", "built-in"))
            print(f"{drawn}{encoding}, length {length}: {1e3 * theirs:.4g} ms built-in, {1e3 * ours:.4g} ms as a formula, "
                  f"{ours / theirs:.2f} x", flush=True)


if __name__ == "__main__":
    main()
