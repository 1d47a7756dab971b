"""lengthwise.run: a whole experiment with a server and workers of the Python process, which leaves no process behind.
"""
import fcntl
import gc
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
import unittest
import warnings
from unittest import mock

import service
from service import lengthwise

from lengthwise import programs

WORKER = os.environ.get("WORKER", "worker/lengthwise_worker")
PROGRAMS = {
    "LENGTHWISE_SERVER_BINARY": str(service.ROOT / service.SERVER),
    "LENGTHWISE_WORKER_BINARY": str(service.ROOT / WORKER),
    "LENGTHWISE_CLIENT_BINARY": str(service.ROOT / service.CLIENT),
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
        if marked and "/lengthwise" in command.split(" ", 1)[0]:
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

    def test_published_trial_is_trained_again_to_the_bit(self):
        encodings = ["none", {"name": "sin_cos", "randomized": True, "max_position": 64}]
        experiment = lengthwise.run(
            specification("first", encodings=encodings), data_dir=self.directory / "first", device="cpu", workers=1
        )
        site = experiment.export("site", self.directory / "site")
        other, name = (trial.id for trial in experiment.trials())
        (commands,) = re.findall("<pre>(.*?TRIAL.*?)</pre>", (site / "index.html").read_text(), re.DOTALL)
        program = PROGRAMS["LENGTHWISE_CLIENT_BINARY"]
        for command in commands.replace("TRIAL", name).replace("NAME", "first").splitlines():
            words = [program if word == "lengthwise" else word for word in command.split()]
            done = subprocess.run(
                words, cwd=site, env={**service.ENVIRONMENT, **PROGRAMS, MARK: self.mark}, capture_output=True, text=True
            )
            self.assertEqual(done.returncode, 0, done.stderr)
        page = (site / "index.html").read_text()
        self.assertIn(done.stdout.split()[0], page[page.index(name) :].split("</tr>")[0], "the model's SHA-256")
        self.assertNotEqual(
            (site / "again.safetensors").read_bytes(), (site / f"models/{other}.safetensors").read_bytes()
        )

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
        # It looks for the others and for specifications around its own file.
        (wheel / "bin/lengthwise").unlink()
        shutil.copy(PROGRAMS["LENGTHWISE_CLIENT_BINARY"], wheel / "bin")
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
        specified = {**specification("again"), "seeds": (seed for seed in range(1))}
        again = lengthwise.run(specified, data_dir=self.directory / "data", device="cpu")
        self.assertEqual(again.counts.succeeded, 2)
        self.await_processes("lengthwise_server", 1)
        with lengthwise.Client(data_dir=self.directory / "data") as client:
            self.assertEqual([one.id for one in client.experiments()], ["again-1", "local-1"])
        self.assertEqual(experiment.refresh().id, "local-1")
        del experiment, again, client
        gc.collect()
        self.await_processes("lengthwise_server", 0)

    # //tests/end_to_end:run_test has 104 commands of 8 processes.
    def test_threads_share_one_directory(self):
        data = self.directory / "data"
        lengthwise.run(specification("local"), data_dir=data, device="cpu", workers=1)
        gc.collect()
        failures = []

        def ask():
            for _ in range(24):
                try:
                    with lengthwise.Client(data_dir=data) as client:
                        found = [one.id for one in client.experiments()]
                except lengthwise.LengthwiseError as error:
                    failures.append(str(error))
                else:
                    failures.extend([] if found == ["local-1"] else [str(found)])

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.await_processes("lengthwise_server", 0)

    def test_named_experiment_trains_what_is_queued(self):
        data = self.directory / "data"
        experiment = lengthwise.run(specification("more"), data_dir=data, device="cpu", workers=1)
        self.assertEqual(experiment.extend(seeds=[1]), 2)
        told = f'lengthwise.run("more-1", data_dir="{data}")'
        limit = service.DEADLINE
        for wait in (lambda: experiment.wait(timeout=limit), lambda: list(experiment.watch(timeout=limit))):
            with self.assertRaisesRegex(
                lengthwise.LengthwiseError, f"^trials of more-1 are queued, .* no workers for them; .*{re.escape(told)}$"
            ):
                wait()
        for name in ("more-1", experiment.name, "more"):
            again = lengthwise.run(name, data_dir=data, device="cpu", workers=1)
            self.assertEqual((again.id, again.counts), ("more-1", lengthwise.TrialCounts(0, 0, 4, 0, 0)))
        self.assertEqual(experiment.wait(timeout=limit).counts, again.counts)
        with self.assertRaisesRegex(lengthwise.LengthwiseError, "^--fresh needs the file of a specification, not the name"):
            lengthwise.run("more-1", data_dir=data, fresh=True)
        with self.assertRaisesRegex(lengthwise.NotFoundError, '"other-1".*; .*/data is asked for it, since there is no file'):
            lengthwise.run("other-1", data_dir=data)
        with self.assertRaisesRegex(lengthwise.NotFoundError, '^"more-1" is neither a file nor .*/typo has no experiments$'):
            lengthwise.run("more-1", data_dir=self.directory / "typo")
        self.assertFalse((self.directory / "typo").exists())

    def test_finished_experiment_trains_again_with_a_warning(self):
        data = self.directory / "data"
        lengthwise.run(specification("done"), data_dir=data, device="cpu", workers=1)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            again = lengthwise.run(specification("done", steps=21), data_dir=data, device="cpu", workers=1)
            self.assertEqual((again.id, told), ("done-2", []))
            again = lengthwise.run(specification("done"), data_dir=data, device="cpu", workers=1)
            self.assertEqual(again.id, "done-3")
            lengthwise.run(specification("done"), data_dir=data, device="cpu", workers=1, fresh=True)
        (warning,) = [str(one.message) for one in told]
        call = f"`lengthwise run done-1 --data_dir {data}`"
        self.assertEqual(
            f"done-1 has trained the same specification, and done-3 trains it again; {call} shows the results of the first",
            warning,
        )
        self.assertEqual(told[0].filename, __file__)

    def test_interrupted_run_can_be_resumed(self):
        for _ in range(2):
            script = self.start_script("kept", FOR_EVER)
            self.await_processes("lengthwise_worker", 1)
            script.send_signal(signal.SIGINT)
            _, error = script.communicate(timeout=service.DEADLINE)
            self.assertIn("KeyboardInterrupt", error)
            self.await_processes("lengthwise", 0)
        with lengthwise.Client(data_dir=self.directory / "data") as client:
            self.assertEqual([one.id for one in client.experiments()], ["kept-1"])

    def test_terminated_run_keeps_its_progress(self):
        script = self.start_script("stopped", FOR_EVER)
        try:
            with lengthwise.Client(data_dir=self.wait_for_training()) as client:
                trial = client.experiment("stopped").trial(0)
                end = time.monotonic() + service.DEADLINE
                while trial.losses(max_points=2).empty:
                    self.assertLess(time.monotonic(), end)
                    time.sleep(0.05)
                with self.assertRaisesRegex(lengthwise.NotFoundError, "has stored no checkpoint yet"):
                    trial.model()
        finally:
            script.send_signal(signal.SIGTERM)
            script.communicate(timeout=service.DEADLINE)
        self.assertEqual(script.returncode, 128 + signal.SIGTERM)
        self.await_processes("lengthwise", 0)
        with lengthwise.Client(data_dir=self.directory / "data") as client:
            self.assertTrue(client.experiment("stopped").trial(0).model())

    def wait_for_training(self):
        """The data directory, once its worker has registered."""
        log = self.directory / "data/logs/worker-1.log"
        end = time.monotonic() + service.DEADLINE
        while not (log.exists() and "registered as" in log.read_text()):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        return self.directory / "data"

    def test_a_killed_process_leaves_nothing_running(self):
        script = self.start_script("killed", FOR_EVER)
        self.wait_for_training()
        script.kill()
        script.communicate()
        self.await_processes("lengthwise", 0)

    def test_dead_worker_is_reported_with_its_log(self):
        dying = self.directory / "worker"
        dying.write_text("#!/bin/sh\necho no such device\nexit 3\n")
        dying.chmod(0o755)
        os.environ["LENGTHWISE_WORKER_BINARY"] = str(dying)
        with self.assertRaisesRegex(
            lengthwise.LengthwiseError, r"the private worker-\d exited with code 3; .*worker-\d\.log:\n  no such device"
        ):
            lengthwise.run(specification("dies"), data_dir=self.directory / "data")
        self.await_processes("lengthwise", 0)

    def test_directory_that_is_gone_is_reported(self):
        script = self.start_script("lost", FOR_EVER)
        self.wait_for_training().rename(self.directory / "moved")
        _, error = script.communicate(timeout=service.DEADLINE)
        self.assertRegex(error, r"exited with code 1; its log .*/data/logs/.* is gone\n.*/data is gone: it was deleted or moved")
        self.await_processes("lengthwise", 0)

    def test_wrong_specification_leaves_nothing_running(self):
        with self.assertRaisesRegex(lengthwise.LengthwiseError, "rotery"):
            lengthwise.run(specification("wrong", encodings=["rotery"]), data_dir=self.directory / "data")
        self.await_processes("lengthwise", 0)

    def test_server_of_another_program_is_joined(self):
        server = service.Server()
        self.addCleanup(server.kill)
        experiment = lengthwise.run(specification("twice"), data_dir=server.directory / "data", device="cpu", workers=1)
        self.assertEqual(experiment.counts.succeeded, 2)
        with lengthwise.Client(server.address) as client:
            self.assertEqual(client.experiment("twice").counts.succeeded, 2)

    def test_server_with_tokens_is_reported(self):
        data = self.directory / "data"
        subprocess.run(
            [PROGRAMS["LENGTHWISE_SERVER_BINARY"], "--data_dir", data, "--create_admin_token", self.directory / "token"],
            check=True, capture_output=True,
        )  # fmt: skip
        server = service.Server(data)
        self.addCleanup(server.kill)
        in_use = rf"lengthwise_server \(process \d+\), .* is using .*/data; ask it with --server {server.address} and your"
        with self.assertRaisesRegex(lengthwise.LengthwiseError, in_use):
            lengthwise.run(specification("twice"), data_dir=data)

    def test_client_asks_the_server_of_a_running_run(self):
        script = self.start_script("asked", FOR_EVER)
        self.await_processes("lengthwise_worker", 1)
        with lengthwise.Client(data_dir=self.directory / "data") as client:
            self.assertRegex(client.server, "^unix:/")
            experiment = client.experiment("asked-1")
            self.assertEqual(experiment.counts.unended, 2)
            self.await_processes("lengthwise_server", 1)
            script.kill()
            script.communicate()
            self.await_processes("lengthwise_worker", 0)
            # The client keeps the server.
            self.assertEqual(experiment.refresh().counts.unended, 2)
            with self.assertRaisesRegex(lengthwise.LengthwiseError, "this private server has no workers for them"):
                experiment.wait(timeout=service.DEADLINE)
        self.await_processes("lengthwise", 0)

    def test_client_is_told_that_its_server_ended(self):
        server = service.Server()
        self.addCleanup(server.kill)
        with lengthwise.Client(server.address) as client:
            client.submit(specification("asked"))
        with lengthwise.Client(data_dir=server.directory / "data") as client:
            experiment = client.experiment("asked-1")
            server.kill()
            for ask in (experiment.refresh, lambda: experiment.wait(timeout=service.DEADLINE)):
                with self.assertRaisesRegex(lengthwise.LengthwiseError, "has ended: lengthwise_server .*; make another Client"):
                    ask()

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
        self.await_processes("lengthwise", 0)
        begin = time.monotonic()
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
        worker = PROGRAMS["LENGTHWISE_WORKER_BINARY"]
        first = f"if mkdir {self.directory}/first 2>/dev/null; then kill -9 $$; fi"
        script.write_text(f'#!/bin/sh\n{first}\nexec {worker} "$@"\n')
        script.chmod(0o755)
        os.environ["LENGTHWISE_WORKER_BINARY"] = str(script)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            experiment = lengthwise.run(specification("rest"), data_dir=self.directory / "data", device="cpu", workers=2)
        self.assertEqual(experiment.counts.succeeded, 2)
        self.assertEqual(len(told), 1)
        self.assertRegex(str(told[0].message), r"^the private worker-[12] was killed by signal 9 \(Killed\), often because")

    def test_many_programs_use_one_directory(self):
        data = self.directory / "data"
        lengthwise.run(specification("many"), data_dir=data, device="cpu", workers=1)
        code = f"""
            import threading, lengthwise
            def read():
                for _ in range(3):
                    with lengthwise.Client(data_dir={str(data)!r}) as client:
                        assert client.experiment("many-1").counts.succeeded == 2
                    done.append(1)
            done = []
            threads = [threading.Thread(target=read) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(done) == 12, done
        """
        environment = {**service.ENVIRONMENT, **PROGRAMS, MARK: self.mark, "PYTHONPATH": str(service.SITE)}
        readers = [
            subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], env=environment, stderr=subprocess.PIPE, text=True)
            for _ in range(8)
        ]
        for reader in readers:
            _, error = reader.communicate(timeout=service.DEADLINE)
            self.assertEqual((reader.returncode, error), (0, ""))
        self.await_processes("lengthwise_server", 0)

    def test_client_needs_the_directory_of_a_run(self):
        empty = self.directory / "empty"
        empty.mkdir()
        with self.assertRaisesRegex(lengthwise.LengthwiseError, r"empty holds no experiments \(no lengthwise\.db\); name the"):
            lengthwise.Client(data_dir=empty)
        self.assertEqual(list(empty.iterdir()), [])
        for make in (lengthwise.Client, lambda data_dir: lengthwise.run(specification("none"), data_dir=data_dir)):
            with self.assertRaisesRegex(lengthwise.LengthwiseError, '^data_dir: got "", expected a directory$'):
                make(data_dir="")

    def test_program_is_found(self):
        place = self.directory / "path/lengthwise"
        place.parent.mkdir()
        place.touch(0o755)
        with mock.patch.dict(os.environ, {"PATH": str(place.parent)}, clear=True):
            self.assertEqual(programs.find_program(), str(place))
            os.environ["LENGTHWISE_CLIENT_BINARY"] = "/elsewhere"
            self.assertEqual(programs.find_program(), "/elsewhere")


if __name__ == "__main__":
    unittest.main()
