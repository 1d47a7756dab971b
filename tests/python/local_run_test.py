"""lengthwise.run: a whole experiment with a server and workers of the Python process, which leaves no process behind.
"""
import fcntl
import gc
import json
import os
import pathlib
import re
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

from lengthwise import local_run, names, private_service, programs
from lengthwise.usable_cpus import count_usable_cpus

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


def shared_cases(name: str):
    return json.loads((service.ROOT / f"tests/shared_cases/{name}.json").read_text())


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

    def test_published_trial_is_trained_again_to_the_bit(self):
        encodings = ["none", {"name": "sin_cos", "randomized": True, "max_position": 64}]
        experiment = lengthwise.run(
            specification("first", encodings=encodings), data_dir=self.directory / "first", device="cpu", workers=1
        )
        site = experiment.export("site", self.directory / "site")
        name = experiment.trials()[1].id
        again = lengthwise.run(site / f"trials/{name}.json", data_dir=self.directory / "again", device="cpu", workers=1)
        model = again.trials()[0].export("safetensors", self.directory / "again.safetensors")
        self.assertEqual(model.read_bytes(), (site / f"models/{name}.safetensors").read_bytes())
        self.assertNotEqual(model.read_bytes(), (site / f"models/{experiment.trials()[0].id}.safetensors").read_bytes())

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
        with self.assertRaisesRegex(lengthwise.LengthwiseError, '^fresh: got the name of an experiment, "more-1", expected'):
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
        call = f'lengthwise.run("done-1", data_dir="{data}")'
        self.assertIn(f"done-3 trains the specification of done-1 again, which has ended; {call} returns", warning)
        self.assertEqual(told[0].filename, __file__)

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
        self.assertEqual(processes(self.mark), [])
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

    def test_directory_that_is_gone_is_reported(self):
        script = self.start_script("lost", FOR_EVER)
        self.wait_for_training().rename(self.directory / "moved")
        _, error = script.communicate(timeout=service.DEADLINE)
        self.assertRegex(error, r"exited with code 1; its log .*/data/logs/.* is gone: its directory was deleted or moved")
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

    def test_resumes_the_cases_of_both_languages(self):
        cases = shared_cases("resumed_runs")
        server = service.Server()
        self.addCleanup(server.kill)
        with lengthwise.Client(server.address) as client:
            first = client.submit(cases["specification"])
            for case in cases["changes"]:
                changed = cases["specification"] | case["change"]
                found = local_run._find_or_submit(client, changed, False, self.directory)
                self.assertEqual(found.name == first.name, case["resumes"], case["name"])

    def test_resumes_what_an_older_release_stored(self):
        client_binary = str(service.ROOT / service.CLIENT)
        examples = self.directory / "mine.jsonl"
        inputs = [[i % 3, i // 3 % 3, i // 9 % 3, i // 27] for i in range(81)]
        examples.write_text("".join(json.dumps({"input": one, "target": one[::-1]}) + "\n" for one in inputs))
        path = self.directory / "mine.json"
        task = {"name": "examples", "train": "mine.jsonl", "held_out": 0.2}
        path.write_text(json.dumps(specification("old", tasks=task, evaluation={})))
        server = service.Server()
        self.addCleanup(server.kill)
        list_experiments = names.list_experiments

        def list_as_stored_by_an_older_release(connection):
            found = list_experiments(connection)
            for message in found:
                specification = message.specification
                contents = specification.tasks[0].parameters["contents"]
                parts = json.loads(contents.string_value)
                del parts["training"]["longest_by_length"]  # new after release 0.2.0
                contents.string_value = json.dumps(parts)
                # As if the field did not exist.
                specification.training.ClearField("checkpoint_every_seconds")
                specification.priority = 7
            return found

        with mock.patch.dict(os.environ, {"LENGTHWISE_CLIENT_BINARY": client_binary}), mock.patch.object(
            names, "list_experiments", list_as_stored_by_an_older_release
        ):
            with lengthwise.Client(server.address) as client:
                first = local_run._find_or_submit(client, path, False, self.directory)
                self.assertEqual(local_run._find_or_submit(client, path, False, self.directory).name, first.name)
                path.write_text(json.dumps(specification("old", steps=21, tasks=task, evaluation={})))
                self.assertNotEqual(local_run._find_or_submit(client, path, False, self.directory).name, first.name)


class UsableCpusTest(unittest.TestCase):
    def test_cases_of_both_languages(self):
        for case in shared_cases("usable_cpus"):
            root = service.new_directory()
            for name, text in case["files"].items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            cpus = count_usable_cpus(case["affinity"], str(root), case["environment"])
            self.assertEqual(cpus, case["cpus"], case["name"])
            self.assertEqual(count_usable_cpus(1, str(root), case["environment"]), 1, case["name"])

    def test_affinity_limits(self):
        before = os.sched_getaffinity(0)
        self.addCleanup(os.sched_setaffinity, 0, before)
        os.sched_setaffinity(0, {min(before)})
        self.assertEqual(count_usable_cpus(), 1)

    def test_workers_fit_the_usable_cpus(self):
        with mock.patch.object(private_service, "count_usable_cpus", return_value=6):
            self.assertEqual([private_service.worker_count("cpu", 4, trials) for trials in (1, 100)], [1, 1])
            self.assertEqual([private_service.worker_count("cpu", 2, trials) for trials in (1, 100)], [1, 3])
            self.assertEqual(private_service.worker_count("cuda", 1, 100), 1)
        with mock.patch.object(private_service, "count_usable_cpus", return_value=200):
            self.assertEqual(private_service.worker_count("cpu", 1, 1000), 64)
        with mock.patch.dict(os.environ, {"SLURM_CPUS_PER_TASK": "1"}):
            self.assertEqual(private_service.worker_count("cpu", 1, 100), 1)


if __name__ == "__main__":
    unittest.main()
