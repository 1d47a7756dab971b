"""lengthwise.run: a whole experiment with a server and workers of the Python process, which leaves no process behind.
"""
import fcntl
import gc
import json
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time
import unittest
import warnings
from unittest import mock

import service
from service import lengthwise

from lengthwise import private_service, programs

WORKER = os.environ.get("WORKER", "worker/lengthwise_worker")
PROGRAMS = {
    "LENGTHWISE_SERVER_BINARY": str(service.ROOT / service.SERVER),
    "LENGTHWISE_WORKER_BINARY": str(service.ROOT / WORKER),
}
# An environment variable that every process of a test inherits.
MARK = "LENGTHWISE_TEST_MARK"
FOR_EVER = 1_000_000


def specification(name: str, steps: int = 20, **more) -> dict:
    training = {"steps": steps, "batch_size": 4, "lengths": "1..4", "report_every_steps": 10}
    return service.specification(name, training=training, seeds=[0], **more)


def processes(mark: str) -> list[str]:
    """Returns the command lines of programs with the mark."""
    found = []
    for directory in pathlib.Path("/proc").iterdir():
        try:
            marked = f"{MARK}={mark}".encode() in (directory / "environ").read_bytes().split(b"\0")
            command = (directory / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if marked and "lengthwise_" in command.split(" ", 1)[0]:
            found.append(command)
    return found


class LocalRunTest(unittest.TestCase):
    def setUp(self):
        self.directory = service.new_directory()
        self.mark = str(self.directory)
        environment = mock.patch.dict(os.environ, {**PROGRAMS, MARK: self.mark})
        environment.start()
        self.addCleanup(environment.stop)

    def await_processes(self, name: str, count: int) -> None:
        end = time.monotonic() + service.DEADLINE
        while len([one for one in processes(self.mark) if name in one]) != count:
            self.assertLess(time.monotonic(), end, processes(self.mark))
            time.sleep(0.02)

    def start_script(self, name: str, steps: int) -> subprocess.Popen:
        code = f"""
            import lengthwise
            lengthwise.run({specification(name, steps)!r}, data_dir={str(self.directory / "data")!r}, device="cpu", workers=1)
        """
        return subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code)],
            env={**service.ENVIRONMENT, **PROGRAMS, MARK: self.mark, "PYTHONPATH": str(service.SITE)},
            stderr=subprocess.PIPE,
            text=True,
        )

    def test_wheel_runs_a_named_specification(self):
        # The package's layout, as deploy/wheel.sh creates it.
        wheel = self.directory / "_programs"
        (wheel / "bin").mkdir(parents=True)
        for path in PROGRAMS.values():
            (wheel / "bin" / pathlib.Path(path).name).symlink_to(path)
        file = wheel / "share" / "lengthwise" / "experiments" / "papers" / "tiny.yaml"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(specification("local")))
        nothing = {"PATH": "", **{variable: "" for variable in PROGRAMS}}
        with mock.patch.object(programs, "_DIRECTORY", wheel), mock.patch.dict(os.environ, nothing):
            experiment = lengthwise.run("papers/tiny", data_dir=self.directory / "data", device="cpu", workers=1)
            self.assertEqual(experiment.counts.succeeded, 2)
            with self.assertRaisesRegex(lengthwise.LengthwiseError, "papers/other"):
                lengthwise.run("papers/other", data_dir=self.directory / "data")

    def test_results_can_be_read_afterwards(self):
        told = []
        experiment = lengthwise.run(
            specification("local"), data_dir=self.directory / "data", device="cpu", workers=2,
            progress=lambda now: told.append(now.counts.succeeded),
        )  # fmt: skip
        self.assertEqual(experiment.counts, lengthwise.TrialCounts(0, 0, 2, 0, 0))
        self.assertEqual((told[0], told[-1]), (0, 2))
        self.await_processes("lengthwise_worker", 0)
        self.await_processes("lengthwise_server", 1)
        self.assertEqual(list(experiment.results()["succeeded"]), [1, 1])
        self.assertEqual(len(experiment.trial(0).model()) > 0, True)
        # A second run in the same directory while the first result is open, then reading without a
        # run.
        again = lengthwise.run(specification("again"), data_dir=self.directory / "data", device="cpu")
        self.assertEqual(again.counts.succeeded, 2)
        self.await_processes("lengthwise_server", 1)
        with lengthwise.Client(data_dir=self.directory / "data") as client:
            self.assertEqual([one.id for one in client.experiments()], ["again-1", "local-1"])
        self.assertEqual(experiment.refresh().id, "local-1")
        del experiment, again, client
        gc.collect()
        self.await_processes("lengthwise_server", 0)

    def test_interrupted_run_can_be_resumed(self):
        for _ in range(2):
            script = self.start_script("kept", FOR_EVER)
            self.await_processes("lengthwise_worker", 1)
            script.send_signal(signal.SIGINT)
            _, error = script.communicate(timeout=service.DEADLINE)
            self.assertIn("KeyboardInterrupt", error)
            self.assertEqual(processes(self.mark), [])
        with lengthwise.Client(data_dir=self.directory / "data") as client:
            self.assertEqual([one.id for one in client.experiments()], ["kept-1"])

    def test_a_killed_process_leaves_nothing_running(self):
        script = self.start_script("killed", FOR_EVER)
        log = self.directory / "data/logs/worker-1.log"
        end = time.monotonic() + service.DEADLINE
        while not (log.exists() and "registered as" in log.read_text()):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        script.kill()
        script.communicate()
        self.await_processes("lengthwise_", 0)

    def test_dead_worker_is_reported_with_its_log(self):
        dying = self.directory / "worker"
        dying.write_text("#!/bin/sh\necho no such device\nexit 3\n")
        dying.chmod(0o755)
        os.environ["LENGTHWISE_WORKER_BINARY"] = str(dying)
        with self.assertRaisesRegex(
            lengthwise.LengthwiseError, r"the private worker-\d exited with code 3; .*worker-\d\.log:\n  no such device"
        ):
            lengthwise.run(specification("dies"), data_dir=self.directory / "data")
        self.assertEqual(processes(self.mark), [])

    def test_wrong_specification_leaves_nothing_running(self):
        with self.assertRaisesRegex(lengthwise.LengthwiseError, "rotery"):
            lengthwise.run(specification("wrong", encodings=["rotery"]), data_dir=self.directory / "data")
        self.assertEqual(processes(self.mark), [])

    def test_other_server_on_the_directory_is_reported(self):
        server = service.Server()
        try:
            log = server.directory / "data/logs/server.log"
            log.parent.mkdir()
            log.write_text("of the running server\n")
            in_use = r"lengthwise_server \(process \d+\), started by `.*` \(process \d+\) is using .*/data; wait"
            with self.assertRaisesRegex(lengthwise.LengthwiseError, in_use):
                lengthwise.run(specification("twice"), data_dir=server.directory / "data")
            self.assertEqual(log.read_text(), "of the running server\n")
        finally:
            server.kill()

    def test_server_that_writes_nothing_is_reported(self):
        data = self.directory / "data"
        data.mkdir()
        (data / "lengthwise.db").touch()
        # As a server of an older release does.
        with (data / "LOCK").open("w") as lock, mock.patch.object(private_service, "_PATIENCE_SECONDS", 0.05):
            fcntl.flock(lock, fcntl.LOCK_EX)
            with self.assertRaisesRegex(lengthwise.LengthwiseError, "^a `lengthwise run` or a server is using .*; wait"):
                lengthwise.Client(data_dir=data)

    def test_client_asks_the_server_of_a_running_run(self):
        script = self.start_script("asked", FOR_EVER)
        self.await_processes("lengthwise_worker", 1)
        with lengthwise.Client(data_dir=self.directory / "data") as client:
            experiment = client.experiment("asked-1")
            self.assertEqual(experiment.counts.unended, 2)
            self.await_processes("lengthwise_server", 1)
            script.kill()
            script.communicate()
            self.await_processes("lengthwise_", 0)
            with self.assertRaisesRegex(lengthwise.LengthwiseError, "has ended: lengthwise_server .*; make another Client"):
                experiment.refresh()
            with self.assertRaisesRegex(lengthwise.LengthwiseError, "has ended: lengthwise_server"):
                experiment.wait(timeout=service.DEADLINE)
        with lengthwise.Client(data_dir=self.directory / "data") as client:
            self.assertEqual(client.experiment("asked-1").counts.unended, 2)

    def test_killed_run_resumes_at_once(self):
        script = self.start_script("resumed", FOR_EVER)
        data = self.directory / "data"
        self.await_processes("lengthwise_worker", 1)
        with lengthwise.Client(data_dir=data) as client:
            end = time.monotonic() + service.DEADLINE
            while client.experiment("resumed-1").counts.running == 0:
                self.assertLess(time.monotonic(), end)
                time.sleep(0.02)
        script.kill()
        script.communicate()
        self.await_processes("lengthwise_", 0)
        begin = time.monotonic()
        server = private_service.PrivateService.acquire(data, trains=True)
        self.addCleanup(server.release)
        with lengthwise.Client(data_dir=data) as client:
            while (counts := client.experiment("resumed-1").counts).running > 0:
                time.sleep(0.02)
            self.assertEqual(counts.queued, 2)
        # The lease would have expired after 30 s.
        self.assertLess(time.monotonic() - begin, 25)

    def test_backup_is_refused(self):
        backup = self.directory / "backup"
        backup.mkdir()
        for name in ("lengthwise.db", "manifest.json"):
            (backup / name).touch()
        with self.assertRaisesRegex(lengthwise.LengthwiseError, "backup is a backup; restore it first: `lengthwise_server"):
            lengthwise.Client(data_dir=backup)
        self.assertEqual(len(list(backup.iterdir())), 2)

    def test_other_workers_go_on_without_a_killed_one(self):
        script = self.directory / "worker"
        script.write_text(f"#!/bin/sh\nif mkdir {self.directory}/first 2>/dev/null; then exec sleep 600; fi\nkill -9 $$\n")
        script.chmod(0o755)
        os.environ["LENGTHWISE_WORKER_BINARY"] = str(script)
        data = private_service.PrivateService.acquire(self.directory / "data")
        self.addCleanup(data.release)
        with data.workers(2, "cpu", 1, "experiments/none-1") as check:
            end = time.monotonic() + service.DEADLINE
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                while not told:
                    self.assertLess(time.monotonic(), end)
                    check()
                    time.sleep(0.02)
                check()
            self.assertEqual(len(told), 1)
            self.assertRegex(str(told[0].message), "^the private worker-[12] was killed by SIGKILL, often because")

    def test_client_needs_the_directory_of_a_run(self):
        empty = self.directory / "empty"
        empty.mkdir()
        with self.assertRaisesRegex(lengthwise.LengthwiseError, r"empty holds no experiments \(no lengthwise\.db\); name the"):
            lengthwise.Client(data_dir=empty)
        self.assertEqual(list(empty.iterdir()), [])
        for make in (lengthwise.Client, lambda data_dir: lengthwise.run(specification("none"), data_dir=data_dir)):
            with self.assertRaisesRegex(lengthwise.LengthwiseError, '^data_dir: got "", expected a directory$'):
                make(data_dir="")

    def test_programs_are_found(self):
        places = self.directory / "programs"
        for path in ("client/lengthwise", "server/lengthwise_server", "path/lengthwise_worker"):
            (places / path).parent.mkdir(parents=True, exist_ok=True)
            (places / path).touch(0o755)
        environment = {"PATH": f"{places / 'client'}:{places / 'path'}"}
        with mock.patch.dict(os.environ, environment, clear=True):
            found = private_service.find_program("lengthwise_server", "server", "LENGTHWISE_SERVER_BINARY")
            self.assertEqual(found, str(places / "server/lengthwise_server"))
            found = private_service.find_program("lengthwise_worker", "worker", "LENGTHWISE_WORKER_BINARY")
            self.assertEqual(found, str(places / "path/lengthwise_worker"))
            os.environ["LENGTHWISE_WORKER_BINARY"] = "/elsewhere"
            found = private_service.find_program("lengthwise_worker", "worker", "LENGTHWISE_WORKER_BINARY")
            self.assertEqual(found, "/elsewhere")
            os.environ["PATH"] = ""
            with self.assertRaisesRegex(lengthwise.LengthwiseError, "set LENGTHWISE_SERVER_BINARY to its path"):
                private_service.find_program("lengthwise_server", "server", "LENGTHWISE_SERVER_BINARY")


if __name__ == "__main__":
    unittest.main()
