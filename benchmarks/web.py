#!/usr/bin/env python3
"""Measures `lengthwise web` with a real server, trials without training and Debian's Chromium. docs/web.md has the figures.

    SERVER=... CLIENT=... PYTHONPATH=tests/python:tests/web python benchmarks/web.py [--trials N] [--training N] [--tabs N]
"""
import argparse
import hashlib
import http.client
import importlib.metadata
import os
import pathlib
import statistics
import threading
import time

import chromium
import service
from lengthwise._proto import event_pb2
from service import lengthwise, specification
from web_test import Web

PACKAGES = ("starlette", "uvicorn", "anyio", "click", "h11", "idna", "youplot")
TICKS = os.sysconf("SC_CLK_TCK")


def installed_bytes() -> int:
    files = [file.locate() for package in PACKAGES for file in importlib.metadata.files(package) or []]
    return sum(os.path.getsize(file) for file in files if os.path.isfile(file))


def resident_mib(process: int) -> float:
    return int(pathlib.Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def processor_seconds(process: int) -> float:
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


class PackWorker(service.Worker):
    """Leases packs, so that many trials are one call."""

    max_pack_size = 30

    def send_point(self, lease, trial, sequence: int, step: int) -> None:
        points = event_pb2.TrainingPoints(steps=[step], losses=[1 / step], accuracies=[0.5], gradient_norms=[1], lengths=[2])
        self._send(lease, trial, sequence, [event_pb2.Event(step=step, training_points=points)])

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


def view(web: Web, path: str, ready: str) -> tuple[float, float, float]:
    """Seconds to the first paint of the contents and to `ready`, and MiB of the tab's heap. The second visit counts."""
    with chromium.Page(web.address(path), 1280, 900) as page:
        page.wait_for(ready)
        page.open(web.base + path)
        page.wait_for(ready)
        seconds = page.evaluate("performance.now()") / 1000
        paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000
        return paint, seconds, page.evaluate("performance.memory.usedJSHeapSize") / 2**20


def measure_views(server: service.Server, client, worker: PackWorker, trials: int) -> None:
    charts = "[...document.querySelectorAll('figure.chart')].every((one) => one.picture)"
    many = client.submit(specification("many", encodings=["none", "sin_cos", "rope"], seeds=list(range(trials // 3))))
    while lease := worker.acquire():
        finish(worker, lease)
    with Web(["--server", server.address]) as web:
        paint, ready, heap = view(web, f"/experiments/{many.id}", charts)
        print(f"{trials} trials: painted after {paint:.2f} s, charts after {ready:.2f} s, {heap:.0f} MiB in the tab", flush=True)

        long = client.submit(specification("long", encodings="none", seeds=0, training={
            "steps": 20_000, "batch_size": 4, "lengths": "1..4", "report_every_steps": 1}))  # fmt: skip
        lease = worker.acquire()
        for part in range(20):
            steps = range(1000 * part + 1, 1000 * part + 1001)
            points = event_pb2.TrainingPoints(steps=steps, losses=[1 / step for step in steps], accuracies=[0.5] * 1000,
                                              gradient_norms=[1] * 1000, lengths=[2] * 1000)  # fmt: skip
            worker._send(lease, lease.trials[0], part + 1, [event_pb2.Event(step=steps[-1], training_points=points)])
        path = f"/experiments/{long.id}/trials/{long.trials()[0].id}"
        all_points = "document.querySelector('figure.chart').dataset.points === '20000'"
        paint, ready, heap = view(web, f"{path}?by=loss_over_time", all_points)
        print(f"20,000 points: painted after {paint:.2f} s, drawn after {ready:.2f} s, {heap:.0f} MiB in the tab", flush=True)

        delays = []
        with chromium.Page(web.address(path), 1280) as page:
            page.wait_for(charts)
            for step in range(20_001, 20_011):
                began = time.monotonic()
                worker.send_point(lease, lease.trials[0], step - 19_980, step)
                page.wait_for(f"document.querySelector('figure.chart').dataset.last === '{step}'")
                delays.append(time.monotonic() - began)
        print(f"a point is drawn after {statistics.median(delays):.2f} s, at most {max(delays):.2f} s", flush=True)


def measure_tabs(server: service.Server, client, worker: PackWorker, trials: int, tabs: int, seconds: float) -> None:
    training = client.submit(specification("training", encodings="none", seeds=list(range(trials)), training={
        "steps": 100_000, "batch_size": 4, "lengths": "1..4", "report_every_steps": 10}))  # fmt: skip
    leases = []
    while one := worker.acquire():
        leases.append(one)
    stop = threading.Event()

    def train() -> None:
        step = 0
        while not stop.wait(1):
            step += 10
            worker.beat(leases, step)
            for one in leases:
                for trial in one.trials:
                    worker.send_point(one, trial, step // 10, step)

    def look(web: Web) -> None:
        """As page.js does."""
        cookie = {"Cookie": f"lengthwise_{web.port}={web.token}"}
        events = http.client.HTTPConnection("127.0.0.1", web.port)
        events.request("GET", f"/experiments/{training.id}/events", headers=cookie)
        messages = events.getresponse()
        while not stop.is_set() and (line := messages.readline()):
            if b'"points"' in line:
                web.ask(f"/experiments/{training.id}/figures/loss.json", **{"X-Refresh": "1"})

    with Web(["--server", server.address]) as web:
        web.text(f"/experiments/{training.id}")
        for function, arguments in [(train, ()), *[(look, (web,))] * tabs]:
            threading.Thread(target=function, args=arguments, daemon=True).start()
        time.sleep(seconds)
        before = processor_seconds(web.process.pid)
        time.sleep(seconds)
        share = (processor_seconds(web.process.pid) - before) / seconds
        running = training.refresh().counts.running
        memory = resident_mib(web.process.pid)
        print(f"{tabs} tabs on {running} training trials: {100 * share:.1f} % of a core, {memory:.0f} MiB", flush=True)
        stop.set()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=6000, help="0 measures no views")
    parser.add_argument("--training", type=int, default=300)
    parser.add_argument("--tabs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=30)
    given = parser.parse_args()
    print(f"installed: {installed_bytes() / 1e6:.1f} MB ({', '.join(PACKAGES)})", flush=True)
    server = service.Server(lease_duration="10m")
    client = lengthwise.Client(server.address)
    worker = PackWorker(server)
    if given.trials:
        measure_views(server, client, worker, given.trials)
    measure_tabs(server, client, worker, given.training, given.tabs, given.seconds)
    server.kill()


if __name__ == "__main__":
    main()
