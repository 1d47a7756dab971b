"""Every command of the command line with the real programs and the Python package as pip installs it."""
import os
import subprocess
import unittest

import service

WORKER = os.environ.get("WORKER", "worker/lengthwise_worker")


class EveryCommandTest(unittest.TestCase):
    def test_every_command_of_the_help_works(self):
        done = subprocess.run(
            ["tests/end_to_end/every_command.sh", service.CLIENT, str(service.ROOT / service.SERVER),
             str(service.ROOT / WORKER)],
            env={**service.ENVIRONMENT, "HOME": str(service.new_directory())},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main()
