"""Runs the work of throughput.cc through MLflow, to compare line by line.

Starts its own tracking server on loopback (SQLite, the default of `mlflow server`). Each part takes at most
--seconds. Prints rates in the same units.
"""

import argparse
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

os.environ["MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"] = "true"
try:
    import mlflow
    from mlflow.entities import Metric
    from mlflow.tracking import MlflowClient
except ImportError:
    print("mlflow: not installed for this Python, so this part is skipped; README.md explains how to install it")
    sys.exit(0)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start_server(directory, port):
    command = [
        sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port),
        "--backend-store-uri", f"sqlite:///{directory}/mlflow.db",
        "--default-artifact-root", f"{directory}/artifacts", "--workers", "2",
    ]
    # Jobs are not needed here and would only take processor time.
    environment = dict(os.environ, MLFLOW_SERVER_ENABLE_JOB_EXECUTION="false")
    with open(pathlib.Path(directory) / "server.log", "w") as log:
        return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment,
                                start_new_session=True)


def wait_until_ready(server, directory, port):
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    sys.exit("mlflow server did not start:\n"
             + (pathlib.Path(directory) / "server.log").read_text())


def stop_server(server):
    """Stops the server's whole process group."""
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(server.pid, signal_number)
            server.wait(5)
            time.sleep(0.5)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass


def points_per_second(client, run, seconds, batch):
    done = 0
    start = time.monotonic()
    while time.monotonic() - start < seconds:
        now = int(time.time() * 1000)
        metrics = [Metric("loss", 1.0 / (step + 1), now, step) for step in range(done, done + batch)]
        client.log_batch(run, metrics=metrics)
        done += batch
    return done / (time.monotonic() - start), done


def runs_per_second(client, experiment, seconds):
    """Creates and ends runs with accuracies at 20 lengths."""
    runs = []
    start = time.monotonic()
    while time.monotonic() - start < seconds:
        run = client.create_run(experiment).info.run_id
        now = int(time.time() * 1000)
        client.log_batch(run, metrics=[Metric(f"accuracy_{n}", 1.0 / n, now, 0) for n in range(1, 21)])
        client.set_terminated(run)
        runs.append(run)
    return len(runs) / (time.monotonic() - start), runs


def create_seconds(client, experiment, count):
    times = []
    for _ in range(count):
        start = time.monotonic()
        client.create_run(experiment)
        times.append(time.monotonic() - start)
    return statistics.median(times)


def list_seconds(client, experiment):
    start = time.monotonic()
    listed = 0
    token = None
    while True:
        page = client.search_runs([experiment], max_results=1000, page_token=token)
        listed += len(page)
        token = page.token
        if not token:
            return time.monotonic() - start, listed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=8, help="duration of each part")
    arguments = parser.parse_args()
    # Turns SIGTERM into an exit, so that the server does not outlive this program.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.stdout.reconfigure(line_buffering=True)
    directory = tempfile.mkdtemp(prefix="mlflow_comparison.")
    port = free_port()
    server = start_server(directory, port)
    try:
        wait_until_ready(server, directory, port)
        client = MlflowClient(f"http://127.0.0.1:{port}")
        experiment = client.create_experiment("comparison")
        run = client.create_run(experiment).info.run_id
        name = f"mlflow {mlflow.__version__}"
        rate, done = points_per_second(client, run, arguments.seconds, 1000)
        print(f"{name}: points stored, batches of 1,000    {rate:12.0f} /s   ({done})")
        rate, done = points_per_second(client, run, arguments.seconds / 2, 1)
        print(f"{name}: points stored, one by one          {rate:12.0f} /s   ({done})")
        rate, runs = runs_per_second(client, experiment, arguments.seconds)
        print(f"{name}: empty runs to their end            {rate:12.1f} /s   ({len(runs)})")
        median = create_seconds(client, experiment, 30)
        print(f"{name}: create one run                     {1e3 * median:12.1f} ms   "
              f"(330 of them: {330 * median:.1f} s)")
        seconds, listed = list_seconds(client, experiment)
        print(f"{name}: list {listed} runs with their metrics {1e3 * seconds:9.1f} ms")
    finally:
        stop_server(server)
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
