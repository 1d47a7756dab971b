"""Attacks `lengthwise run`: stops and kills it again and again at random moments of training, and compares every number that
was measured, and the model, with those of a run that nobody disturbed.

$INTERRUPTIONS is their number at least; $SEED chooses the moments.
"""
import json
import os
import random
import signal
import subprocess
import time
import unittest
from unittest import mock

import pandas
import service

lengthwise = service.lengthwise

INTERRUPTIONS = int(os.environ.get("INTERRUPTIONS", "3"))
SEED = os.environ.get("SEED", "59")
WORKER = os.environ.get("WORKER", "worker/lengthwise_worker")
PROGRAMS = {
    "LENGTHWISE_SERVER_BINARY": str(service.ROOT / service.SERVER),
    "LENGTHWISE_WORKER_BINARY": str(service.ROOT / WORKER),
}
SIGNALS = (signal.SIGINT, signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)


class InterruptedRunsTest(unittest.TestCase):
    def setUp(self):
        environment = mock.patch.dict(os.environ, PROGRAMS)
        environment.start()
        self.addCleanup(environment.stop)
        self.random = random.Random(SEED)

    def run_of(self, directory, what):
        with (directory / "output").open("wb") as output:
            return subprocess.Popen(
                [str(service.ROOT / service.CLIENT), "run", what, "--data_dir", str(directory / "data"), "--device", "cpu",
                 "--workers", "1", "--threads", "1"],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                env={**service.ENVIRONMENT, **PROGRAMS, "HOME": str(directory)},
            )  # fmt: skip

    def interrupt_until_it_ends(self, directory, specification):
        """Returns how often the run was interrupted while it trained."""
        interrupted = 0
        what = specification
        while True:
            run = self.run_of(directory, what)
            end = time.monotonic() + service.DEADLINE
            while not any(word in (directory / "output").read_text() for word in ("started on", "resumed from step")):
                if run.poll() is not None:
                    break
                self.assertLess(time.monotonic(), end, (directory / "output").read_text())
                time.sleep(0.005)
            try:
                run.wait(timeout=self.random.uniform(0, 1.5))
            except subprocess.TimeoutExpired:
                run.send_signal(SIGNALS[interrupted % len(SIGNALS)])
                interrupted += 1
            code = run.wait(timeout=service.DEADLINE)
            if code == 0:
                return interrupted
            self.assertIn(code, (130, 128 + signal.SIGTERM, 128 + signal.SIGHUP, -signal.SIGKILL),
                          (directory / "output").read_text())  # fmt: skip
            what = "attacked-1"

    def measured(self, directory):
        with lengthwise.Client(data_dir=directory / "data") as client:
            experiment = client.experiment("attacked-1")
            self.assertEqual(experiment.counts.succeeded, 1)
            trial = experiment.trials()[0]
            times = ["training_seconds"]
            return trial.losses(), trial.accuracies(intervals=True).drop(columns=times), trial.model_bytes(), trial.attempt

    def test_interruptions_leave_no_different_number(self):
        interrupted = attempts = seed = 0
        while interrupted < INTERRUPTIONS:
            found = []
            for disturbed in (False, True):
                directory = service.new_directory()
                specification = directory / "attacked.json"
                training = {"steps": 3000, "batch_size": 4, "lengths": "1..4", "report_every_steps": 7,
                            "checkpoint_every_steps": 50}  # fmt: skip
                specification.write_text(
                    json.dumps(service.specification("attacked", training=training, encodings=["sin_cos"], seeds=[seed]))
                )
                if disturbed:
                    interrupted += self.interrupt_until_it_ends(directory, str(specification))
                else:
                    self.assertEqual(self.run_of(directory, str(specification)).wait(timeout=300), 0)
                found.append(self.measured(directory))
            (losses, accuracies, model, _), (other_losses, other_accuracies, other_model, attempt) = found
            pandas.testing.assert_frame_equal(losses, other_losses, check_exact=True)
            pandas.testing.assert_frame_equal(accuracies, other_accuracies, check_exact=True)
            self.assertEqual(model, other_model)
            attempts += attempt
            seed += 1
        self.assertGreater(attempts, seed, "nothing was resumed")


if __name__ == "__main__":
    unittest.main()
