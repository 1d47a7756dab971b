"""The scripts of deploy/ explain themselves, and refuse what would destroy something."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

_DEPLOY = pathlib.Path("deploy").absolute()


class DeployScriptsTest(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = pathlib.Path(temporary.name)

    def run_script(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Runs a script of deploy/ in the test's directory, with programs of the system that change nothing."""
        return subprocess.run(
            [str(_DEPLOY / command[0]), *command[1:]],
            cwd=self.directory,
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.directory), **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    @unittest.skipUnless(importlib.util.find_spec("grafana_foundation_sdk"), "tests/run.sh installs grafana-foundation-sdk")
    def test_dashboards_are_generated_from_their_description(self) -> None:
        command = [sys.executable, "-B", str(_DEPLOY / "grafana/dashboards.py"), "--check"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_help_does_nothing_else(self) -> None:
        for script in ("install.sh", "quickstart.sh", "python_environment.sh"):
            for flag in ("-h", "--help"):
                with self.subTest(script=script, flag=flag):
                    done = self.run_script(script, flag)
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    self.assertIn(f"deploy/{script} [", done.stdout)
                    self.assertEqual(os.listdir(self.directory), [])

    def test_unknown_flags_are_refused(self) -> None:
        for script in ("install.sh", "python_environment.sh"):
            with self.subTest(script):
                done = self.run_script(script, "--strictt")
                self.assertEqual(done.returncode, 2)
                self.assertEqual(done.stderr, f"unknown flag --strictt; see deploy/{script} --help\n")

    def test_install_refuses_paths_that_bazel_cannot_take(self) -> None:
        done = self.run_script("install.sh", LIBTORCH_ROOT="my torch")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"the path {self.directory}/my torch has a space", done.stderr)

    def test_install_refuses_an_unknown_torch(self) -> None:
        done = self.run_script("install.sh", LENGTHWISE_TORCH="cuda")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "[install] error: LENGTHWISE_TORCH is cuda; accepted: cpu, gpu\n")

    def test_environment_replaces_no_other_directory(self) -> None:
        (self.directory / "work").write_text("of a month")
        for directory in (".", "work", str(self.directory)):
            with self.subTest(directory):
                done = self.run_script("python_environment.sh", directory)
                self.assertEqual(done.returncode, 1)
                self.assertIn(str(self.directory), done.stderr)
                self.assertIn("is not empty and holds no Python environment", done.stderr)
                self.assertEqual(os.listdir(self.directory), ["work"])

    def make_environment(self) -> subprocess.CompletedProcess[str]:
        """Runs the script in a copy of the checkout. It ends where it would make the environment: Python cannot start."""
        checkout = self.directory / "checkout"
        for folder in ("deploy", "python"):
            (checkout / folder).mkdir(parents=True, exist_ok=True)
        shutil.copy(_DEPLOY / "python_environment.sh", checkout / "deploy")
        (checkout / "python/requirements.txt").write_text("numpy==2.0.0\n")
        return self.run_script(str(checkout / "deploy/python_environment.sh"), "environment", PYTHONHOME="/nonexistent")

    def write_environment(self, **files: str) -> pathlib.Path:
        environment = self.directory / "environment"
        shutil.rmtree(environment, ignore_errors=True)
        environment.mkdir()
        for name, text in files.items():
            (environment / name).write_text(text)
        return environment

    def test_environment_replaces_none_of_the_users(self) -> None:
        venv = {"pyvenv.cfg": "home = /usr/bin\n", "notes": "of a month"}
        for files, refusal in (
            (venv, "holds a Python environment that this script did not make"),
            ({**venv, "requirements": "numpy\n"}, "holds a Python environment that this script did not make"),
            ({"requirements": "numpy\n"}, "is not empty and holds no Python environment"),
        ):
            with self.subTest(sorted(files)):
                environment = self.write_environment(**files)
                done = self.make_environment()
                self.assertEqual(done.returncode, 1)
                self.assertIn(f"{environment} {refusal}", done.stderr)
                self.assertEqual({path.name: path.read_text() for path in environment.iterdir()}, files)

    def test_interrupted_environment_is_replaced(self) -> None:
        self.assertIn("installing the packages", self.make_environment().stdout)
        environment = self.directory / "environment"
        mark = os.listdir(environment)
        (environment / "pyvenv.cfg").write_text("home = /usr/bin\n")
        done = self.make_environment()
        self.assertIn("installing the packages", done.stdout)
        self.assertNotIn("[python] error", done.stderr)
        self.assertEqual(os.listdir(environment), mark)

    def test_environment_of_an_earlier_release_is_replaced(self) -> None:
        environment = self.write_environment(**{"pyvenv.cfg": "home = /usr/bin\n", "requirements": "0123456789abcdef\n"})
        self.assertIn("installing the packages", self.make_environment().stdout)
        self.assertNotIn("pyvenv.cfg", os.listdir(environment))
        self.assertNotIn("requirements", os.listdir(environment))

    @unittest.skipUnless(shutil.which("openssl"), "no openssl is installed")
    def test_certificates_are_made_without_warnings(self) -> None:
        done = self.run_script("certificates.sh")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("Ignoring", done.stdout + done.stderr)
        verified = subprocess.run(
            ["openssl", "verify", "-CAfile", "house-ca.pem", "server.pem", "gpus.pem"], cwd=self.directory, check=False
        )
        self.assertEqual(verified.returncode, 0)

    def test_certificates_replace_no_key(self) -> None:
        (self.directory / "server.key").write_text("of production")
        done = self.run_script("certificates.sh")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{self.directory}/server.key exists", done.stderr)
        self.assertEqual(os.listdir(self.directory), ["server.key"])
        self.assertEqual((self.directory / "server.key").read_text(), "of production")


if __name__ == "__main__":
    unittest.main()
