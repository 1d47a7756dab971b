"""The program `lengthwise`, which knows settings, private servers and workers. A wheel has it (deploy/wheel.sh)."""
from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import grpc

from lengthwise import errors
from lengthwise.errors import FieldViolation, LengthwiseError
from lengthwise.printable import printable_text

_DIRECTORY = Path(__file__).resolve().parent / "_programs"
# Time for workers to hand over checkpoints, and for their server to end.
_GRACE_SECONDS = 45.0
# How the line of an error begins (--output events).
_ERROR = b'{"error"'
_EXIT_CODES = {2: grpc.StatusCode.INVALID_ARGUMENT, 3: grpc.StatusCode.UNAVAILABLE, 130: grpc.StatusCode.CANCELLED}


def find_program() -> str:
    """The path of `lengthwise`: $LENGTHWISE_CLIENT_BINARY, or the program in this package, or the one on the PATH."""
    if given := os.environ.get("LENGTHWISE_CLIENT_BINARY", ""):
        return given
    packaged = _DIRECTORY / "bin" / "lengthwise"
    if packaged.is_file():
        return str(packaged)
    if found := shutil.which("lengthwise"):
        return found
    raise LengthwiseError(
        "cannot find `lengthwise`: it is not on the PATH; build it with `bazel build //client:lengthwise` and set "
        "LENGTHWISE_CLIENT_BINARY to its path"
    )


def has_program() -> bool:
    try:
        return bool(find_program())
    except LengthwiseError:
        return False


def start() -> NoReturn:
    """Becomes the program whose name this process was started by: the commands of an environment's bin begin here."""
    name = Path(sys.argv[0]).name
    path = _DIRECTORY / "bin" / name
    if not path.is_file():
        raise SystemExit(f"{name}: there is no {path}; install Lengthwise again")
    # The command line runs its Python half here, in the environment that has it.
    os.environ.setdefault("LENGTHWISE_PYTHON", sys.executable)
    os.execv(path, [str(path), *sys.argv[1:]])


def _split(told: str) -> tuple[str, str]:
    """Of what a command told on standard error: what precedes its error, and the error, or nothing."""
    before, *error = re.split(r"^lengthwise: ", told, maxsplit=1, flags=re.MULTILINE)
    return before, "".join(error).strip()


def failure(told: str, exit_code: int, written: bytes = b"") -> LengthwiseError:
    """The error that a command told. `written`: the end of its output, which has the error's code with --output events."""
    code = json.loads(written)["error"] if written.startswith(_ERROR) else ""
    message = printable_text(_split(told)[1] or f"`lengthwise` ended with the code {exit_code}")
    status = grpc.StatusCode.__members__.get(code) or _EXIT_CODES.get(exit_code, grpc.StatusCode.UNKNOWN)
    return errors.with_code(status, message, _violations(message))


def _violations(message: str) -> tuple[FieldViolation, ...]:
    """The mistakes in "mine.json is not valid:" and indented lines such as "mine.jsonl:2: target: got 1, ..."; none in an
    error of another form.
    """
    head, *lines = message.split("\n")
    violations = []
    for line in lines if head.endswith(" is not valid:") else []:
        field, separator, description = line.strip().partition(": ")
        violations.append(FieldViolation(field, description) if separator else FieldViolation("", field))
    return tuple(violations)


def warn_of(told: str, stacklevel: int) -> None:
    """Passes on the warnings that a command told."""
    for text in re.split(r"^warning: ", _split(told)[0], flags=re.MULTILINE)[1:]:
        warnings.warn(printable_text(text.rstrip()), stacklevel=stacklevel + 1)


def ask(arguments: Sequence[str], text: bytes | None = None, *, alone: bool = False) -> tuple[bytes, str]:
    """What a command writes to standard output, and to standard error. `alone`: its settings are the arguments alone."""
    environment = {name: value for name, value in os.environ.items() if not (alone and name.startswith("LENGTHWISE_"))}
    environment |= {"LENGTHWISE_CONFIG": ""} if alone else {}
    command = [find_program(), *arguments]
    try:
        done = subprocess.run(command, input=text or b"", capture_output=True, check=False, env=environment)
    except OSError as error:
        raise LengthwiseError(f"cannot run {find_program()}: {error.strerror}") from None
    told = done.stderr.decode(errors="replace")
    if done.returncode != 0:
        raise failure(told, done.returncode, done.stdout)
    return done.stdout, told


def settings_of(listed: bytes) -> dict[str, str]:
    """Of what `lengthwise config --output json` writes."""
    return {one["setting"]: one["value"] for one in json.loads(listed)}


def settings(given: Mapping[str, str]) -> dict[str, str]:
    """The settings of the command line, where it is given these options."""
    return settings_of(ask(["config", "--output=json", *(f"--{name}={value}" for name, value in given.items())])[0])


class Followed:
    """A `lengthwise` command that runs beside this process, and ends with it."""

    def __init__(self, arguments: Sequence[str], text: bytes = b"") -> None:
        """`text` is its standard input, which then stays open."""
        self._parent = os.getpid()
        self._lock = threading.Lock()
        self._told = ""
        self._error: LengthwiseError | None = None
        try:
            self._process = subprocess.Popen(
                [find_program(), *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                # Ctrl-C is for this process, which then ends the command in order.
                start_new_session=True,
            )
        except OSError as error:
            raise LengthwiseError(f"cannot run {find_program()}: {error.strerror}") from None
        assert self._process.stdin is not None
        self._reader = threading.Thread(target=self._read_told, daemon=True)
        self._reader.start()
        if text:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(text + b"\0")

    def _read_told(self) -> None:
        assert self._process.stderr is not None
        while text := self._process.stderr.read(1 << 16):
            with self._lock:
                self._told += text.decode(errors="replace")

    def read_line(self) -> bytes:
        """The next line of its output. LengthwiseError if it has ended instead."""
        assert self._process.stdout is not None
        line: bytes = self._process.stdout.readline()
        if not line or line.startswith(_ERROR):
            raise self.error(line)
        return line

    def wait(self, seconds: float) -> bool:
        """True if it has ended by then."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def take_warnings(self, stacklevel: int) -> None:
        """Passes on what it has warned of."""
        with self._lock:
            told = self._told
            if not told.endswith("\n") or _split(told)[1]:
                return
            self._told = ""
        warn_of(told, stacklevel + 1)

    def error(self, line: bytes = b"") -> LengthwiseError:
        """Why it has ended, or ends now. `line`: the last one of its output, if that was read."""
        code = self._process.wait()
        self._reader.join()
        if self._error is None:
            assert self._process.stdout is not None
            self._error = failure(self._told, code, line or self._process.stdout.read())
        return self._error

    def check(self) -> None:
        """Raises the error with which it has ended. That trials failed is none."""
        code = self._process.wait()
        self._reader.join()
        if code not in (0, 1) or _split(self._told)[1]:
            raise self.error()

    def ended(self) -> str:
        """Why it has ended; empty if it runs."""
        return str(self.error()) if self.wait(0.5) else ""

    def close(self) -> None:
        """Ends it as Ctrl-C does. Kills it if the wait for its end is interrupted, or long."""
        if os.getpid() != self._parent:  # the file is a fork's
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self.wait(_GRACE_SECONDS)
        finally:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
            self._reader.join()
            for output in (self._process.stdout, self._process.stderr):
                assert output is not None
                output.close()


def hold_server(data_dir: str) -> tuple[Followed, dict[str, Any]]:
    """Keeps the server of a data directory, which it starts if there is none; and the settings of that server."""
    held = Followed(["config", "--output=json", "--until_eof", f"--data_dir={data_dir}"])
    listed = b""
    try:
        while not listed.endswith(b"]\n"):
            listed += held.read_line()
    except BaseException:
        held.close()
        raise
    return held, settings_of(listed)
