"""Every command of the command line with the real programs and the Python package as pip installs it."""
import os
import subprocess
import sys
import unittest

import service
import warm

WORKER = os.environ.get("WORKER", "worker/lengthwise_worker")


class EveryCommandTest(unittest.TestCase):
    def test_every_command_of_the_help_works(self):
        environment = {**service.ENVIRONMENT, "HOME": str(service.new_directory())}
        program = service.new_directory() / "python"
        warmed = warm.start(sys.executable, service.ROOT, program, environment | warm.SETTINGS, warm.OF_COMMANDS)
        self.addCleanup(warmed.wait)
        self.addCleanup(warmed.kill)
        done = subprocess.run(
            ["tests/end_to_end/every_command.sh", service.CLIENT, str(service.ROOT / service.SERVER),
             str(service.ROOT / WORKER)],
            env=environment | {"LENGTHWISE_PYTHON": str(program)},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main()
