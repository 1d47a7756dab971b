"""Runs the examples of python/README.md with a real server and worker."""
import contextlib
import os
import re
import subprocess
import sys
import unittest

import service

WORKER = os.environ.get("WORKER", "worker/lengthwise_worker")
README = (service.ROOT / "python/README.md").read_text()


@contextlib.contextmanager
def server_and_worker():
    server = service.Server()
    with open(server.directory / "worker.log", "ab") as log:
        worker = subprocess.Popen([WORKER, "--server", server.address, "--threads", "2"], stdout=log, stderr=log,
                                  env=service.ENVIRONMENT)
        try:
            yield server
        finally:
            worker.kill()
            worker.wait()
            server.kill()


def run_python(arguments, directory, **environment):
    done = subprocess.run(
        [sys.executable, *arguments], cwd=directory, capture_output=True, text=True, timeout=600, check=False,
        env={**service.ENVIRONMENT, "PYTHONPATH": str(service.SITE), **environment},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


class PythonReadmeTest(unittest.TestCase):
    def run_block(self, block, **environment):
        """Runs a block with fewer steps and checks the printed results."""
        directory = service.new_directory()
        quickstart = (service.ROOT / "experiments/quickstart.yaml").read_text()
        (directory / "experiments").mkdir()
        short, cut = re.subn(r"^  steps: \d+", "  steps: 10", quickstart, flags=re.M)
        self.assertEqual(cut, 1)
        (directory / "experiments/quickstart.yaml").write_text(short)
        *lines, last = block.rstrip().split("\n")
        self.assertEqual(last, "experiment.results()")
        lines.append(f'print({last}[["encoding", "succeeded"]].to_csv(index=False), end="")')
        code, printed, error = run_python(["-c", "\n".join(lines)], directory, **environment)
        self.assertEqual((code, printed), (0, "encoding,succeeded\nsin_cos,1\nrandomized_sin_cos,1\n"), error)

    def test_first_lines_give_results(self):
        block, _ = re.findall(r"^```python\n(.*?)^```$", README, re.M | re.S)
        self.assertIn("127.0.0.1:7070", block)
        with server_and_worker() as server:
            self.run_block(block.replace("127.0.0.1:7070", server.address), LENGTHWISE_SERVER=server.address)

    def test_a_run_without_a_server_has_results(self):
        _, block = re.findall(r"^```python\n(.*?)^```$", README, re.M | re.S)
        self.run_block(
            "import lengthwise\n" + block,
            LENGTHWISE_SERVER_BINARY=str(service.ROOT / service.SERVER),
            LENGTHWISE_WORKER_BINARY=str(service.ROOT / WORKER),
        )


if __name__ == "__main__":
    unittest.main()
