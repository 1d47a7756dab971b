#!/usr/bin/env python3
"""Measures `lengthwise web` with a real server and Debian's Chromium, and prints the figures of docs/web.md. Takes about twenty
minutes of an idle machine with two cores; --parts measures some lines alone.

    SERVER=... CLIENT=... WORKER=... PYTHONPATH=tests/python:tests/web python benchmarks/web.py
"""
import argparse
import contextlib
import datetime
import hashlib
import http.client
import importlib.metadata
import os
import pathlib
import random
import re
import signal
import socket
import statistics
import subprocess
import threading
import time
import urllib.request

import chromium
import service
from lengthwise._proto import event_pb2
from service import ENVIRONMENT, ROOT, lengthwise, specification
from web_test import Web

PAGE_PACKAGES = ("starlette", "uvicorn", "youplot")
TICKS = os.sysconf("SC_CLK_TCK")
FIRST_CHART = "document.querySelector('figure.chart')"
ALL = (
    "[...document.querySelectorAll('figure.chart')].every((one) => one.picture)"
    " && [...document.querySelectorAll('[data-lazy]')].every((one) => one.innerHTML)"
)


def needed(packages) -> set[str]:
    """With all that they need and that is installed."""
    found: set[str] = set()
    waiting = list(packages)
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            if name not in found:
                needs = importlib.metadata.requires(name) or []
                found.add(name)
                waiting += [re.match(r"[\w.-]+", one)[0] for one in needs if "extra ==" not in one]
    return found


def installed_mb() -> float:
    pinned = re.findall(r"^([\w.-]+)==", (ROOT / "python/requirements.in").read_text(), re.MULTILINE)
    packages = needed(PAGE_PACKAGES) - needed(set(pinned) - set(PAGE_PACKAGES))
    files = [file.locate() for package in packages for file in importlib.metadata.files(package) or []]
    return sum(os.path.getsize(file) for file in files if os.path.isfile(file)) / 1e6


def resident_mb(process) -> float:
    return int(pathlib.Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def fields_of(process) -> list[str]:
    """/proc's numbers from the state on."""
    return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()


def tab_mb(page: chromium.Page) -> float:
    """Of the largest process that shows pages."""
    sizes = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if fields_of(folder.name)[3] == str(page.browser.process.pid) and b"--type=renderer" in (folder / "cmdline").read_bytes():
                sizes.append(resident_mb(folder.name))
    return max(sizes)


def processor_seconds(process: int) -> float:
    return sum(map(int, fields_of(process)[11:13])) / TICKS


class PackWorker(service.Worker):
    """Leases packs, so that many trials are one call."""

    max_pack_size = 30

    def send_point(self, lease, trial, sequence: int, step: int) -> None:
        points = event_pb2.TrainingPoints(steps=[step], losses=[1 / step], accuracies=[0.5], gradient_norms=[1], lengths=[2])
        self._send(lease, trial, sequence, [event_pb2.Event(step=step, training_points=points)])

    def send_curve(self, lease, trial, count: int) -> int:
        """A loss curve of so many points. Returns the number of the next event."""
        sequence = 1
        for first in range(1, count + 1, 1000):
            steps = range(first, min(first + 1000, count + 1))
            points = event_pb2.TrainingPoints(
                steps=steps, losses=[1 / step for step in steps], accuracies=[0.5] * len(steps),
                gradient_norms=[1] * len(steps), lengths=[2] * len(steps),
            )  # fmt: skip
            self._send(lease, trial, sequence, [event_pb2.Event(step=steps[-1], training_points=points)])
            sequence += 1
        return sequence

    def beat(self, leases, step: int) -> None:
        progress = [
            event_pb2.TrialProgress(trial=trial.trial, attempt=trial.attempt, phase="TRAINING", done=step, total=100_000,
                                    steps_per_second=10, loss=1, seconds_left=9)
            for lease in leases for trial in lease.trials
        ]  # fmt: skip
        self.hold(leases)
        self.call(progress=progress)


def finish(worker: PackWorker, lease) -> None:
    model = service.Numbers(0).model()
    checkpoint = event_pb2.Checkpoint(sha256=hashlib.sha256(model).hexdigest(), size_bytes=len(model))
    for trial in lease.trials:
        worker._upload(lease, trial, model, checkpoint)
        lengths = list(range(1, 41))
        measured = event_pb2.LengthAccuracies(final=True, lengths=lengths, accuracies=[1 / n for n in lengths],
                                              losses=[0.5] * 40, sequences=10, training_seconds=1)  # fmt: skip
        outcome = event_pb2.Outcome(kind="COMPLETED", training_seconds=1, training_steps=200, seen_accuracy=1, unseen_accuracy=0.5)
        worker._send(lease, trial, 1, [
            event_pb2.Event(step=200, training_points=event_pb2.TrainingPoints(
                steps=range(1, 21), losses=[1.0] * 20, accuracies=[0.5] * 20, gradient_norms=[1] * 20, lengths=[2] * 20)),
            event_pb2.Event(step=200, checkpoint=checkpoint),
            event_pb2.Event(step=200, length_accuracies=measured),
            event_pb2.Event(step=200, outcome=outcome),
        ])  # fmt: skip


class Benchmark:
    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.server = service.Server(lease_duration="10m")
        self.client = lengthwise.Client(self.server.address)
        self.worker = PackWorker(self.server)

    def row(self, what: str, measured: str, wanted: str) -> None:
        print(f"| {what} | {measured} | {wanted} |", flush=True)

    def web(self) -> Web:
        return Web(["--server", self.server.address])

    def first_view(self, path: str, ready: list[str]) -> tuple[list[float], float]:
        """Seconds from the address to the first contents and to each of `ready`, and the tab's memory: the medians of three
        times with a new browser and a new process that serves the page.
        """
        seconds, sizes = [], []
        for _ in range(3):
            with self.web() as web, chromium.Page(web.address(path), 1280, 900) as page:
                times = []
                for one in ready:
                    page.wait_for(one)
                    times.append(page.evaluate("performance.now()") / 1000)
                paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000
                seconds.append([paint, *times])
                sizes.append(tab_mb(page))
        return [statistics.median(one) for one in zip(*seconds)], statistics.median(sizes)

    def measure_installed(self) -> None:
        self.row("installed beside the rest of the package", f"{installed_mb():.1f} MB", "40 MB")

    def measure_views(self) -> None:
        trials = self.given.trials
        many = self.client.submit(specification("many", encodings=["none", "sin_cos", "rope"], seeds=list(range(trials // 3))))
        while lease := self.worker.acquire():
            finish(self.worker, lease)
        (paint, chart, all_of_it), size = self.first_view(f"/experiments/{many.id}", [f"{FIRST_CHART}.picture", ALL])
        self.row(f"first view of {trials:,} simulated trials: tables and the chart of accuracies", f"{paint:.2f} s, {chart:.2f} s", "1 s")
        self.row("what is below, loaded after it", f"{all_of_it:.2f} s", "")
        self.row("memory of the tab's process", f"{size:.0f} MB", "300 MB")

    def training_trial(self, name: str, points: int):
        """A trial with a loss curve: it, its lease, its page, and the number of its next event."""
        one = self.client.submit(specification(name, encodings="none", seeds=0, training={
            "steps": 100_000, "batch_size": 4, "lengths": "1..4", "report_every_steps": 1}))  # fmt: skip
        lease = self.worker.acquire()
        following = self.worker.send_curve(lease, lease.trials[0], points)
        (trial,) = one.trials()
        return trial, lease, f"/experiments/{one.id}/trials/{trial.id}", following

    def measure_points(self) -> None:
        chances = random.Random(1)
        for points in (200, 20_000):
            trial, lease, path, sequence = self.training_trial(f"long{points}", points)
            if points == 20_000:
                drawn = f"{FIRST_CHART}.dataset.points === '{points}'"
                (paint, chart), size = self.first_view(f"{path}?by=loss_over_time", [drawn])
                self.row(f"first view of {points:,} loss points: the page, all points", f"{paint:.2f} s, {chart:.2f} s", "1 s")
                self.row("memory of the tab's process", f"{size:.0f} MB", "300 MB")
            delays = []
            with self.web() as web, chromium.Page(web.address(path), 1280) as page:
                page.wait_for(ALL)
                for step in range(points + 1, points + 31):
                    began = time.monotonic()
                    self.worker.send_point(lease, lease.trials[0], sequence, step)
                    page.wait_for(f"{FIRST_CHART}.dataset.last === '{step}'")
                    delays.append(time.monotonic() - began)
                    sequence += 1
                    # Points come at any time between two refreshes.
                    time.sleep(chances.uniform(0, 2))
            self.row(f"point {points + 1:,} to {points + 30:,} of a curve in the page: median, longest",
                     f"{statistics.median(delays):.2f} s, {max(delays):.2f} s", "1 s")  # fmt: skip
            trial.cancel()

    @contextlib.contextmanager
    def training(self):
        """Many trials that report every second. Yields their experiment."""
        experiment = self.client.submit(specification(
            "training", encodings="none", seeds=list(range(self.given.training)),
            training={"steps": 100_000, "batch_size": 4, "lengths": "1..4", "report_every_steps": 10}))  # fmt: skip
        leases = []
        while one := self.worker.acquire():
            leases.append(one)
        stop = threading.Event()
        self.rounds = 0

        def train() -> None:
            began, step = time.monotonic(), 0
            while not stop.wait(max(0, began + self.rounds - time.monotonic())):
                step += 10
                self.worker.beat(leases, step)
                for one in leases:
                    for trial in one.trials:
                        self.worker.send_point(one, trial, step // 10, step)
                self.rounds += 1

        thread = service.in_background(train)
        try:
            yield experiment
        finally:
            stop.set()
            thread.join()

    @contextlib.contextmanager
    def tabs(self, experiment):
        """The page, and many clients that ask for what the open tabs of page.js ask for. Yields the page."""
        with self.web() as web:

            def look() -> None:
                cookie = {"Cookie": f"lengthwise_{web.port}={web.token}"}
                events = http.client.HTTPConnection("127.0.0.1", web.port)
                # Ends with the page.
                with contextlib.suppress(OSError, http.client.HTTPException):
                    events.request("GET", f"/experiments/{experiment.id}/events", headers=cookie)
                    messages = events.getresponse()
                    while line := messages.readline():
                        if b'"points"' in line:
                            web.ask(f"/experiments/{experiment.id}/figures/loss.json", **{"X-Refresh": "1"})

            web.text(f"/experiments/{experiment.id}")
            threads = [service.in_background(look) for _ in range(self.given.tabs)]
            yield web
        for one in threads:
            one.join()

    def measure_tabs(self) -> None:
        seconds = self.given.seconds
        with self.training() as experiment, self.tabs(experiment) as web:
            time.sleep(seconds)
            before, rounds = processor_seconds(web.process.pid), self.rounds
            time.sleep(seconds)
            share = (processor_seconds(web.process.pid) - before) / seconds
            each = seconds / (self.rounds - rounds)
            running = experiment.refresh().counts.running
            what = f"{self.given.tabs} clients that ask as tabs do, on {running} simulated trials that report every {each:.1f} s: of a core, memory"
            self.row(what, f"{100 * share:.1f} %, {resident_mb(web.process.pid):.0f} MB", "5 %, 200 MB")
            self.measure_training(web)

    def speed(self, port: int) -> float:
        """Steps a second of the real worker with this port of metrics, during the next seconds."""

        def steps() -> float:
            metrics = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=service.DEADLINE).read().decode()
            return float(re.search(r"^lengthwise_worker_steps_total\S* (\S+)", metrics, re.MULTILINE)[1])

        time.sleep(1)  # what came while the page was stopped
        began, before = time.monotonic(), steps()
        time.sleep(self.given.slice)
        after = steps()
        if after == before:
            raise SystemExit("the worker trains nothing")
        return (after - before) / (time.monotonic() - began)

    def measure_training(self, web: Web) -> None:
        """One training, while the page is stopped and continued in turns: short ones, so that a change of the machine's speed
        falls on both. The tabs wait for a page that is stopped.
        """
        self.client.submit(specification(
            "timed", encodings="sin_cos", seeds=0, networks={"name": "encoder", "blocks": 2, "heads": 8, "d_model": 64},
            training={"steps": 100_000_000, "batch_size": 64, "lengths": "1..20", "report_every_steps": 20}))  # fmt: skip
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [os.environ["WORKER"], "--server", self.server.address, "--threads", "1", "--worker_id", "timed",
                   "--metrics_listen", f"127.0.0.1:{port}", "--exit_with_parent"]  # fmt: skip
        worker = subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.DEVNULL)
        slower = []
        try:
            time.sleep(20)  # its start, and the recording of its first steps
            for pair in range(self.given.pairs):
                speeds = {}
                for awake in (False, True) if pair % 2 else (True, False):
                    web.process.send_signal(signal.SIGCONT if awake else signal.SIGSTOP)
                    speeds[awake] = self.speed(port)
                slower.append(100 * (speeds[False] / speeds[True] - 1))
        finally:
            web.process.send_signal(signal.SIGCONT)
            worker.terminate()
            worker.wait()
        error = statistics.stdev(slower) / len(slower) ** 0.5
        what = f"a training beside them, {len(slower)} times {self.given.slice:g} s with and without"
        self.row(what, f"{statistics.mean(slower):+.1f} ± {error:.1f} % longer", "2 %")


PARTS = ("installed", "views", "points", "tabs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--trials", type=int, default=6000)
    parser.add_argument("--training", type=int, default=300)
    parser.add_argument("--tabs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--slice", type=float, default=4)
    given = parser.parse_args()
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())[1]
    load = os.getloadavg()[0]
    print(f"The figures are of {datetime.date.today()}, on {os.cpu_count()} cores of an {model}, with a load of {load:.1f} before.\n")
    print("| | measured | at most |\n| --- | ---: | ---: |", flush=True)
    benchmark = Benchmark(given)
    for part in given.parts:
        getattr(benchmark, f"measure_{part}")()
    benchmark.server.kill()


if __name__ == "__main__":
    main()
