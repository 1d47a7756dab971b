"""Options, timing and output shared by pytorch_ensemble_step.py and jax_ensemble_step.py.

A peer gives `run` a function that builds an ensemble for a case. The ensemble is a function that starts one training
step of all models at a length and returns a function that reads the losses. Reading waits for the step. As in a pack
of ours, the device has the next step before the host reads.
"""
from __future__ import annotations

import argparse
import dataclasses
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence

ENCODINGS = ["none", "sin_cos", "rope", "alibi", "relative"]
BATCH, MAX_POSITION, LEARNING_RATE, CLIP_NORM = 128, 2048, 3e-4, 1.0

Losses = Callable[[], Sequence[float]]
Step = Callable[[int], Losses]


@dataclasses.dataclass(frozen=True)
class Case:
    """One measurement. `shortest` equals `longest` unless each step draws its length."""

    encoding: str  # a key of ENCODINGS
    randomized: bool
    device: str  # "cpu" or "cuda"
    precision: str  # precision of products: "float32" or "bfloat16"; "float64" in tests
    mode: str
    pack: int
    shortest: int
    longest: int


def length_range(text: str) -> tuple[int, int]:
    """Parses "40" as (40, 40) and "1..40" as (1, 40)."""
    first, dots, last = text.partition("..")
    try:
        shortest, longest = int(first), int(last if dots else first)
    except ValueError:
        shortest = longest = 0
    if not 1 <= shortest <= longest:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a length, such as 40, nor a range, such as 1..40")
    return shortest, longest


def parse_options(description: str | None, modes: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoding", default="randomized_relative",
                        choices=ENCODINGS + [f"randomized_{name}" for name in ENCODINGS[1:]])
    parser.add_argument("--mode", default=modes[0], choices=modes)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--precision", nargs="+", default=["float32"], choices=["float32", "bfloat16"],
                        help="precision of products")
    parser.add_argument("--packs", nargs="+", type=int, default=[1], help="ensemble sizes")
    parser.add_argument("--lengths", nargs="+", type=length_range, default=[(40, 40)],
                        help="input lengths, half of the tokens: 40, or 1..40 to draw each step's length")
    parser.add_argument("--steps", type=int, default=20, help="measured steps, after compilation")
    return parser.parse_args()


def run(program: str, options: argparse.Namespace, build: Callable[[Case], Step]) -> None:
    """Measures all cases and prints a line of JSON for each. Exits with 1 if one failed, such as for lack of memory."""
    failed = False
    for precision in options.precision:
        for shortest, longest in options.lengths:
            for pack in options.packs:
                encoding = options.encoding.removeprefix("randomized_")
                case = Case(encoding, encoding != options.encoding, options.device, precision, options.mode, pack,
                            shortest, longest)
                try:
                    measured = measure(build(case), case, options.steps)
                except RuntimeError as error:
                    print(f"{case} failed: {error}", file=sys.stderr, flush=True)
                    failed = True
                    continue
                print(json.dumps({
                    "program": program, "encoding": options.encoding, "length": longest, "shortest": shortest,
                    "device": case.device, "precision": precision, "pack": pack, **measured}), flush=True)
    if failed:
        raise SystemExit(1)


def measure(step: Step, case: Case, steps: int) -> dict[str, float]:
    preparation = time.perf_counter()
    # At a length's second step everything is compiled and recorded; the third step is typical.
    for length in range(case.shortest, case.longest + 1):
        for _ in range(3):
            unread = step(length)
            unread()
    preparation = time.perf_counter() - preparation
    draws = random.Random(0)
    wall, cpu = [], []
    unread = step(case.longest)
    for _ in range(steps):
        length = draws.randint(case.shortest, case.longest)
        start, cpu_start = time.perf_counter(), time.process_time()
        following = step(length)
        unread()
        unread = following
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - cpu_start)
    return {
        "step_seconds_median": statistics.median(wall), "step_seconds_mean": statistics.mean(wall),
        "step_seconds_min": min(wall), "cpu_seconds_median": statistics.median(cpu),
        "cpu_seconds_mean": statistics.mean(cpu), "preparation_seconds": preparation, "loss": float(unread()[0])}
