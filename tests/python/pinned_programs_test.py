"""The programs of the pinned packages start."""
import importlib.metadata
import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile
import unittest

# Has neither --help nor --version.
EXCLUDED = {"pyftmerge"}


def pinned() -> dict[str, str]:
    """Versions by name; tests/python/requirements.txt contains python/requirements.txt."""
    text = pathlib.Path("tests/python/requirements.txt").read_text()
    return dict(re.findall(r"^([\w-]+)==(\S+)", text, re.MULTILINE))


def programs(package: str) -> list[pathlib.Path]:
    scripts = pathlib.Path(sysconfig.get_path("scripts")).resolve()
    files = [pathlib.Path(file.locate()).resolve() for file in importlib.metadata.files(package) or ()]
    return sorted(file for file in files if file.parent == scripts and file.name not in EXCLUDED)


class PinnedProgramsTest(unittest.TestCase):
    def test_every_program_starts(self):
        started = []
        for package, version in pinned().items():
            found = [one.version for one in importlib.metadata.distributions(name=package)]
            if version not in found:
                self.skipTest(f"{sys.executable} does not have {package} {version}; tests/run.sh installs it")
            for program in programs(package):
                with self.subTest(program=program.name):
                    for flag in ("--help", "--version"):
                        # mypyc makes a file, whatever it is asked.
                        with tempfile.TemporaryDirectory() as directory:
                            done = subprocess.run(
                                [program, flag], cwd=directory, capture_output=True, text=True, check=False
                            )
                        if done.returncode == 0:
                            break
                    self.assertEqual(done.returncode, 0, done.stderr)
                    started.append(program.name)
        self.assertIn("tensorboard", started)


if __name__ == "__main__":
    unittest.main()
