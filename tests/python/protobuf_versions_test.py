"""Runs the Python client's tests with the first and the last protobuf release that its package allows."""
import os
import pathlib
import re
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).parent
ROOT = pathlib.Path.cwd()  # the runfiles of the Bazel test
VERSIONS = re.findall(r"^protobuf==([\d.]+) ", (HERE / "protobuf_versions.txt").read_text(), re.M)


def directory_of(version: str) -> pathlib.Path:
    """The folder into which tests/run.sh installs it."""
    return pathlib.Path(sys.prefix) / f"protobuf-{version}"


class ProtobufVersionsTest(unittest.TestCase):
    def test_the_versions_are_the_ends_of_the_range(self):
        (first, end), = re.findall(r'"protobuf>=([\d.]+),<(\d+)"', (ROOT / "python/pyproject.toml").read_text())
        self.assertEqual(VERSIONS[0], first)
        self.assertEqual(int(VERSIONS[1].split(".")[0]), int(end) - 1)

    def run_with(self, version: str) -> None:
        directory = directory_of(version)
        if not directory.is_dir():
            self.skipTest(f"there is no {directory}; tests/run.sh installs it")
        environment = {**os.environ, "PYTHONPATH": str(directory)}
        environment.pop("XML_OUTPUT_FILE", None)
        seen = [sys.executable, "-c", "import google.protobuf as p; print(p.__version__)"]
        self.assertEqual(subprocess.check_output(seen, env=environment, text=True).strip(), version)
        tests = [sys.executable, "-B", "-W", "error:.*rotobuf:UserWarning", HERE / "run_modules.py", "python_client_test"]
        done = subprocess.run(tests, env=environment, capture_output=True, text=True, timeout=600, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stderr, r"Ran \d\d tests")

    def test_the_first_version(self):
        self.run_with(VERSIONS[0])

    def test_the_last_version(self):
        self.run_with(VERSIONS[1])


if __name__ == "__main__":
    unittest.main()
