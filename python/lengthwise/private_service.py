"""A private server and its workers, as child processes."""
from __future__ import annotations

import contextlib
import fcntl
import os
import queue
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from lengthwise import programs, settings
from lengthwise.errors import LengthwiseError, UsageError

# Time for a server to get ready, and for a process to stop: a worker finishes its step and hands over its checkpoint.
_START_SECONDS = 30.0
_GRACE_SECONDS = 20.0
# Time for the kernel to start a process.
_SPAWN_SECONDS = 5.0
_LOG_LINES = 12


def default_data_directory() -> Path:
    """Data directory of `lengthwise run`: $XDG_DATA_HOME/lengthwise/runs or ~/.local/share/lengthwise/runs."""
    data = os.environ.get("XDG_DATA_HOME", "")
    return (Path(data) if data.startswith("/") else Path.home() / ".local" / "share") / "lengthwise" / "runs"


def data_directory(data_dir: str | os.PathLike[str]) -> Path:
    """The absolute path of a data directory that a caller names."""
    if os.fspath(data_dir) == "":
        raise UsageError('data_dir: got "", expected a directory')
    return Path(data_dir).resolve()


def find_program(name: str, folder: str, variable: str) -> str:
    """The path of `lengthwise_server` or `lengthwise_worker`.

    Tried in this order: the environment variable `variable`, the program in this package, beside the `lengthwise` on the
    PATH, in ../`folder` as in Bazel's output, and the PATH.
    """
    if given := os.environ.get(variable, ""):
        return given
    if packaged := programs.packaged_program(name):
        return str(packaged)
    if client := shutil.which("lengthwise"):
        beside = Path(client).resolve().parent
        for candidate in (beside / name, beside.parent / folder / name):
            if os.access(candidate, os.X_OK) and candidate.is_file():
                return str(candidate)
    if found := shutil.which(name):
        return found
    raise LengthwiseError(
        f"cannot find {name}: it is neither on the PATH nor beside a `lengthwise` that is; build it with `bazel build "
        f"//{folder}:{name}` and set {variable} to its path"
    )


def _refuse_a_directory_in_use(data_dir: Path) -> None:
    """Raises LengthwiseError if another server holds the directory. The server reports other errors."""
    with contextlib.suppress(OSError), (data_dir / "LOCK").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LengthwiseError(
                f"a `lengthwise run` or a server is using {data_dir}; wait until it ends, or interrupt it with Ctrl-C (a "
                "run can be resumed)"
            ) from None


class _Spawner:
    """Starts processes from a thread that lives as long as the interpreter.

    A child with --exit_with_parent is killed when the thread that started it ends, and run() may be called from a
    short-lived thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = 0  # that the thread belongs to; a fork does not inherit it
        self._requests: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()

    def submit(self, spawn: Callable[[], None]) -> None:
        """Runs `spawn` on the thread."""
        with self._lock:
            if self._process != os.getpid():
                self._process = os.getpid()
                self._requests = queue.SimpleQueue()
                threading.Thread(target=self._work, args=(self._requests,), name="lengthwise", daemon=True).start()
        self._requests.put(spawn)

    @staticmethod
    def _work(requests: queue.SimpleQueue[Callable[[], None]]) -> None:
        while True:
            requests.get()()


_spawner = _Spawner()


class Process:
    """A server or a worker, with a log. The caller of start() must call stop(), even after an interrupted start."""

    def __init__(self, name: str, arguments: Sequence[str], log: Path) -> None:
        self.name = name
        self.log = log
        self._arguments = [*arguments, "--exit_with_parent"]
        self._parent = os.getpid()
        self._requested = False
        # Set by the spawner's thread once it has stored the process or its error. Ctrl-C may interrupt this thread anywhere,
        # so the stored values, not local variables, decide what to stop.
        self._spawned = threading.Event()
        self._popen: subprocess.Popen[bytes] | None = None
        self._error: OSError | None = None

    def start(self) -> None:
        self._requested = True
        _spawner.submit(self._spawn)
        self._spawned.wait()
        if self._error is not None:
            raise LengthwiseError(f"cannot start {self._arguments[0]}: {self._error.strerror}") from self._error

    def _spawn(self) -> None:
        # Arguments are complete. The user's settings, which are for another server, must not apply.
        environment = dict(os.environ) | {f"LENGTHWISE_{setting.upper()}": "" for setting in settings.NAMES}
        environment["LENGTHWISE_CONFIG"] = ""
        try:
            with self.log.open("wb") as output:
                # In a new session, because Ctrl-C is for this process, which then stops its children in order.
                self._popen = subprocess.Popen(
                    self._arguments,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env=environment,
                    start_new_session=True,
                )
        except OSError as error:
            self._error = error
        finally:
            self._spawned.set()

    def check(self) -> None:
        """Raises LengthwiseError with the end of the log if the process has ended."""
        code = None if self._popen is None else self._popen.poll()
        if code is None:
            return
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_LINES:]
        raise LengthwiseError("\n  ".join([f"the private {self.name} {how}; the end of its log {self.log}:", *lines]))

    def ask_to_stop(self) -> None:
        if not self._requested or os.getpid() != self._parent:
            return
        # Returns soon, unless Ctrl-C came before the request to the spawner.
        self._spawned.wait(_SPAWN_SECONDS)
        if self._popen is not None and self._popen.poll() is None:
            self._popen.terminate()

    def stop(self, deadline: float) -> None:
        """Waits for the end after ask_to_stop(). Kills the process at the deadline, or if the wait is interrupted."""
        if self._popen is None or os.getpid() != self._parent:
            return
        try:
            self._popen.wait(max(deadline - time.monotonic(), 0.01))
        except subprocess.TimeoutExpired:
            pass
        finally:
            if self._popen.poll() is None:
                self._popen.kill()
                self._popen.wait()


def _stop(processes: Sequence[Process]) -> None:
    deadline = time.monotonic() + _GRACE_SECONDS
    for process in processes:
        process.ask_to_stop()
    with contextlib.ExitStack() as stack:  # stops the others even if one wait is interrupted
        for process in processes:
            stack.callback(process.stop, deadline)


class PrivateService:
    """A server on a data directory. All users of the directory in this process share it, and the last one stops it."""

    # The garbage collector may release one service while another is acquired.
    _lock = threading.RLock()
    _open: ClassVar[dict[tuple[int, str], PrivateService]] = {}

    def __init__(self, data_dir: Path) -> None:
        self._key = (os.getpid(), str(data_dir))
        self._users = 0
        self._workers = 0
        self._logs = data_dir / "logs"
        program = find_program("lengthwise_server", "server", "LENGTHWISE_SERVER_BINARY")
        try:
            self._logs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LengthwiseError(f"cannot make {self._logs}: {error.strerror}; choose another data_dir") from error
        # Asked before the start, which empties the last server's log.
        _refuse_a_directory_in_use(data_dir)
        ready = data_dir / f"ready-{os.getpid()}"
        ready.unlink(missing_ok=True)
        local = "127.0.0.1:0"
        arguments = [program, "--listen", local, "--metrics_listen", local]
        arguments += ["--data_dir", str(data_dir), "--ready_file", str(ready)]
        self._server = Process("server", arguments, self._logs / "server.log")
        try:
            self._server.start()
            self.address = self._await_address(ready)
        except BaseException:
            _stop([self._server])
            raise
        finally:
            ready.unlink(missing_ok=True)

    def _await_address(self, ready: Path) -> str:
        end = time.monotonic() + _START_SECONDS
        while True:
            with contextlib.suppress(FileNotFoundError):
                line, newline, _ = ready.read_text(encoding="utf-8").partition("\n")
                if newline:
                    return line
            self._server.check()
            if time.monotonic() > end:
                raise LengthwiseError(f"the private server was not ready after {_START_SECONDS:.0f} s: {self._server.log}")
            time.sleep(0.005)

    @classmethod
    def acquire(cls, data_dir: Path) -> PrivateService:
        """The service of a directory; `release` gives it back."""
        key = (os.getpid(), str(data_dir))
        with cls._lock:
            service = cls._open.get(key)
            if service is None:
                service = cls._open[key] = cls(data_dir)
            service._users += 1
            return service

    def release(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users > 0:
                return
            self._open.pop(self._key, None)
        self._server.ask_to_stop()
        self._server.stop(time.monotonic() + _GRACE_SECONDS)

    @contextlib.contextmanager
    def workers(self, count: int, device: str, threads: int, experiment: str) -> Iterator[Callable[[], None]]:
        """Workers for one experiment, which store checkpoints and end with the context.

        Yields a function that raises LengthwiseError if one of them, or the server, has ended by itself.
        """
        program = find_program("lengthwise_worker", "worker", "LENGTHWISE_WORKER_BINARY")
        processes: list[Process] = []

        def check() -> None:
            for process in (self._server, *processes):
                process.check()

        try:
            for _ in range(count):
                with self._lock:
                    self._workers += 1
                    name = f"worker-{self._workers}"
                arguments = [program, "--server", self.address, "--device", device, "--threads", str(threads)]
                processes.append(Process(name, [*arguments, "--experiment", experiment], self._logs / f"{name}.log"))
                processes[-1].start()
            yield check
        finally:
            _stop(processes)


def worker_count(device: str, threads: int, trials: int) -> int:
    """Workers of `lengthwise run`: one per core on the CPU; one for a GPU, which trains many trials at once."""
    if device != "cpu" and (device != "auto" or Path("/dev/nvidiactl").exists()):
        return 1
    return max(1, min(len(os.sched_getaffinity(0)) // threads, trials))
