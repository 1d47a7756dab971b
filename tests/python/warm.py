"""Starts a Python that has imported what a test's many processes need, and stands for it."""
import pathlib
import subprocess
import sys
import time
import unittest

SCRIPT = "models/python_network/testing/warm_python.py"
TORCH = ["torch"]
# What `lengthwise plot`, `analyze`, `export`, `report` and `results` import when they are asked for.
OF_COMMANDS = [
    "lengthwise.analyses.report", "lengthwise.command_line", "lengthwise.comparison_display", "lengthwise.exports",
    "lengthwise.plots.drawing", "lengthwise.report", "matplotlib.backends.backend_svg",
]  # fmt: skip
# The environment in which the command line starts Python has these.
SETTINGS = {"MPLBACKEND": "agg", "PYTHONSAFEPATH": "1", "PYTHONUTF8": "1"}


def start(
    python: str, root: pathlib.Path, program: pathlib.Path, environment: dict[str, str], modules: list[str]
) -> subprocess.Popen[bytes] | None:
    """Writes `program`, which serves until the returned process is killed. Returns None if a module cannot be imported."""
    # Bazel sets PYTHON_RUNFILES, which the command line takes from the environment of the Pythons that it starts: with it, this
    # one would stand for none of them.
    own = {name: value for name, value in environment.items() if name != "PYTHON_RUNFILES"}
    process = subprocess.Popen(
        [python, "-B", root / SCRIPT, program, *modules], env=own, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    while not program.exists():
        if process.poll() is not None:
            return None
        time.sleep(0.01)
    return process


def environment(case: type[unittest.TestCase]) -> dict[str, str]:
    """The environment in which a copy of a Python with their imports runs the commands, until the tests of `case` end."""
    import service  # installs the package; run_documented.py has its own

    program = service.new_directory() / "python"
    process = start(sys.executable, service.ROOT, program, service.ENVIRONMENT | SETTINGS, OF_COMMANDS)
    case.addClassCleanup(process.wait)
    case.addClassCleanup(process.kill)
    return service.ENVIRONMENT | {"LENGTHWISE_PYTHON": str(program)}
