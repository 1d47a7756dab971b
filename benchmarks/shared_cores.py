#!/usr/bin/env python3
"""Measures what sharing the cores costs a default worker, with the trial of experiments/quickstart.yaml.

  bazel build //server:lengthwise_server //worker:lengthwise_worker //client:lengthwise
  benchmarks/shared_cores.py

Workers take turns: each scenario has its own workers, and the workers of all other scenarios are stopped (SIGSTOP).
A scenario and its reference therefore run under the same conditions. Prints training steps per second, medians of
the rounds, and the ratios that have a lower bound:

  idle       default worker over one whose threads always spin (OMP_WAIT_POLICY=ACTIVE, or that of --before);  0.95
  busy       default worker over one with --threads 1, beside one busy loop a CPU, and beside ten;                 0.8
  two        two default workers together over one alone;                                                          0.9

Ratios need an idle machine; the load average is printed. Takes about six minutes, because a default worker first
tries how many threads are fastest. --short runs one round of short turns as a smoke test. Exits 1 if a ratio is
below its bound, except with --short.
"""
from __future__ import annotations

import argparse
import contextlib
import dataclasses
import datetime
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = ROOT / "bazel-bin"
START_TIMEOUT = 120.0
# Ends the busy loops even if this program is killed.
LOAD_TIMEOUT = 60


@dataclasses.dataclass(frozen=True)
class Programs:
    """The programs of one build. A worker needs a server of its own release."""

    worker: pathlib.Path = BIN / "worker/lengthwise_worker"
    server: pathlib.Path = BIN / "server/lengthwise_server"
    client: pathlib.Path = BIN / "client/lengthwise"

    @classmethod
    def of(cls, directory: pathlib.Path) -> Programs:
        """Returns the installed programs of a folder."""
        return cls(directory / "lengthwise_worker", directory / "lengthwise_server", directory / "lengthwise")


@dataclasses.dataclass(frozen=True)
class Scenario:
    """Workers that train at the same time, beside busy loops."""

    name: str
    workers: int = 1
    busy_loops: int = 0
    flags: tuple[str, ...] = ()
    programs: Programs = Programs()
    environment: tuple[tuple[str, str], ...] = ()


def endless_quickstart() -> str:
    """Returns the quickstart with one encoding, endless and without evaluations, for any number of workers."""
    text = (ROOT / "experiments/quickstart.yaml").read_text()
    for line, replacement in [
        ("  steps: 2000\n", "  steps: 1000000000\n"),
        ("  every_steps: 500\n", "  every_steps: 1000000000\n"),
        ("  - {name: sin_cos, randomized: true, max_position: 2048}\n", ""),
        ("seeds: 0\n", "seeds: 0..31\n"),
    ]:
        if text.count(line) != 1:
            raise SystemExit(f"experiments/quickstart.yaml has no line {line.strip()!r}")
        text = text.replace(line, replacement)
    return text


class Worker:
    """A worker process, stopped except during its turns."""

    def __init__(self, scenario: Scenario, number: int, server: str, directory: pathlib.Path) -> None:
        self.log = directory / f"worker-{number}.log"
        command = [str(scenario.programs.worker), "--server", server, "--device", "cpu", "--worker_id", f"worker-{number}",
                   "--metrics_listen", "127.0.0.1:0", "--exit_with_parent", *scenario.flags]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, env={**os.environ, **dict(scenario.environment)})

    def steps(self) -> float:
        address = re.search(r"metrics on (http://\S+)", self.log.read_text())
        if address is None:
            return 0
        with urllib.request.urlopen(address[1], timeout=30) as reply:
            count = re.search(r"^lengthwise_worker_steps_total\S* (\S+)$", reply.read().decode(), re.MULTILINE)
        return float(count[1]) if count else 0

    def wait_until_it_trains(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT
        while self.steps() == 0:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"a worker did not train; its log:\n{self.log.read_text()}")
            time.sleep(0.05)

    def end(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def busy_loops(count: int) -> Iterator[None]:
    loops = [subprocess.Popen(["timeout", str(LOAD_TIMEOUT), sys.executable, "-c", "while True: pass"])
             for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.terminate()
        for loop in loops:
            loop.wait()


def take_turn(scenario: Scenario, workers: list[Worker], settle: float, seconds: float) -> float:
    """Returns the steps per second of all workers of the scenario together."""
    with busy_loops(scenario.busy_loops):
        for worker in workers:
            worker.process.send_signal(signal.SIGCONT)
        try:
            time.sleep(settle)
            rate = 0.0
            begins = [(worker.steps(), time.monotonic()) for worker in workers]
            time.sleep(seconds)
            for worker, (steps, begin) in zip(workers, begins, strict=True):
                rate += (worker.steps() - steps) / (time.monotonic() - begin)
        finally:
            for worker in workers:
                worker.process.send_signal(signal.SIGSTOP)
    return rate


@contextlib.contextmanager
def serve(programs: Programs, directory: pathlib.Path) -> Iterator[str]:
    """Starts a server with the endless quickstart and yields its address."""
    directory.mkdir()
    ready = directory / "ready"
    with (directory / "server.log").open("w") as log:
        server = subprocess.Popen(
            [programs.server, "--data_dir", directory / "data", "--listen", "127.0.0.1:0", "--metrics_listen",
             "127.0.0.1:0", "--ready_file", ready, "--exit_with_parent",
             # Stopped workers send no heartbeats.
             "--lease_duration", "1h"], stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + START_TIMEOUT
        while not ready.exists() or not ready.read_text().endswith("\n"):
            if server.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"the server did not start; its log:\n{(directory / 'server.log').read_text()}")
            time.sleep(0.05)
        address = ready.read_text().splitlines()[0]
        (directory / "endless.yaml").write_text(endless_quickstart())
        subprocess.run([programs.client, "submit", directory / "endless.yaml", "--server", address],
                       check=True, stdout=subprocess.DEVNULL)
        yield address
    finally:
        server.terminate()
        server.wait()


def measure(scenarios: list[Scenario], rounds: int, settle: float, seconds: float) -> dict[str, list[float]]:
    """Returns for each scenario its rates, one for each round."""
    rates: dict[str, list[float]] = {scenario.name: [] for scenario in scenarios}
    with contextlib.ExitStack() as stack:
        directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        os.environ["LENGTHWISE_CONFIG"] = ""
        addresses: dict[Programs, str] = {}
        workers: dict[str, list[Worker]] = {}
        for scenario in scenarios:
            workers[scenario.name] = []
            if scenario.programs not in addresses:
                place = directory / f"server-{len(addresses)}"
                addresses[scenario.programs] = stack.enter_context(serve(scenario.programs, place))
            for _ in range(scenario.workers):
                worker = Worker(scenario, sum(map(len, workers.values())), addresses[scenario.programs], directory)
                stack.callback(worker.end)
                workers[scenario.name].append(worker)
                worker.wait_until_it_trains()
                worker.process.send_signal(signal.SIGSTOP)
        for number in range(rounds):
            for scenario in scenarios:
                rate = take_turn(scenario, workers[scenario.name], settle, seconds)
                rates[scenario.name].append(rate)
                print(f"round {number + 1}  {scenario.name:<34} {rate:8.1f} steps/s   load {os.getloadavg()[0]:.1f}",
                      flush=True)
    return rates


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=pathlib.Path, help="folder of another build's installed programs, whose worker "
                        "the default one is compared with on idle cores; default: the same worker with "
                        "OMP_WAIT_POLICY=ACTIVE")
    parser.add_argument("--programs", type=pathlib.Path, help="folder of installed programs; default: bazel-bin")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of turns; default %(default)s")
    parser.add_argument("--settle", type=float, default=12, help="seconds of a turn before measuring; default %(default)s")
    parser.add_argument("--seconds", type=float, default=4, help="measured seconds of a turn; default %(default)s")
    parser.add_argument("--short", action="store_true", help="one round of turns of half a second")
    options = parser.parse_args()
    cpus = len(os.sched_getaffinity(0))
    single = ("--threads", "1")
    before = (Scenario("idle, before", programs=Programs.of(options.before)) if options.before
              else Scenario("idle, always spinning", environment=(("OMP_WAIT_POLICY", "ACTIVE"),)))
    scenarios = [
        before,
        Scenario("idle, default"),
        Scenario("idle, two default workers", workers=2),
        Scenario(f"{cpus} busy loops, --threads 1", busy_loops=cpus, flags=single),
        Scenario(f"{cpus} busy loops, default", busy_loops=cpus),
        Scenario("10 busy loops, --threads 1", busy_loops=10, flags=single),
        Scenario("10 busy loops, default", busy_loops=10),
    ]
    print(f"{datetime.datetime.now(datetime.UTC):%Y-%m-%dT%H:%MZ}, {cpus} CPUs, load {os.getloadavg()[0]:.1f}")
    if options.short:
        options.rounds, options.settle, options.seconds = 1, 0.5, 0.5
    if options.programs:
        installed = Programs.of(options.programs)
        scenarios = [dataclasses.replace(one, programs=installed) if one.programs == Programs() else one
                     for one in scenarios]
    rates = measure(scenarios, options.rounds, options.settle, options.seconds)
    print()
    for name, values in rates.items():
        print(f"{name:<34} {statistics.median(values):8.1f} steps/s ({min(values):.1f} to {max(values):.1f})")
    print()
    missed = False
    for name, reference, bar in [
        ("idle, default", before.name, 0.95),
        ("idle, two default workers", "idle, default", 0.9),
        (f"{cpus} busy loops, default", f"{cpus} busy loops, --threads 1", 0.8),
        ("10 busy loops, default", "10 busy loops, --threads 1", 0.8),
    ]:
        # Compares within each round, because other programs come and go between rounds.
        ratios = [value / of for value, of in zip(rates[name], rates[reference], strict=True) if of > 0]
        ratio = statistics.median(ratios) if ratios else 0.0
        missed = missed or ratio < bar
        print(f"{name} over {reference}: {ratio:.2f} (at least {bar})")
    return 1 if missed and not options.short else 0


if __name__ == "__main__":
    sys.exit(main())
