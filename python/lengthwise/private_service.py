"""A private server and its workers, as child processes; or the server that another process runs on a data directory."""
from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import queue
import shutil
import signal
import subprocess
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from lengthwise import programs, settings
from lengthwise.errors import LengthwiseError, UsageError
from lengthwise.printable import printable_text
from lengthwise.usable_cpus import count_usable_cpus
from lengthwise.user_file import user_path

# Time for a server to get ready, and for a process to stop: a worker finishes its step and hands over its checkpoint.
_START_SECONDS = 30.0
_GRACE_SECONDS = 20.0
# Time for the kernel to start a process.
_SPAWN_SECONDS = 5.0
# Time for another server on the directory to end, or to say its address.
_PATIENCE_SECONDS = 5.0
_LOG_LINES = 12
# Too little for a server to start.
_LITTLE_DISK = 16 << 20
_LONGEST_COMMAND = 80
_MOST_WORKERS = 64


def default_data_directory() -> Path:
    """Data directory of `lengthwise run`: that of the settings."""
    return Path(settings.resolve({}).runs_dir)


def data_directory(data_dir: str | os.PathLike[str]) -> Path:
    """The absolute path of a data directory that a caller names."""
    if os.fspath(data_dir) == "":
        raise UsageError('data_dir: got "", expected a directory')
    return Path(user_path(data_dir)).resolve()


def holds_experiments(data_dir: Path) -> bool:
    """False for a directory in which a private server would create a database and report that it is empty."""
    return (data_dir / "lengthwise.db").exists()


def run_call(experiment: str, data_dir: Path) -> str:
    """The call that trains or returns an experiment of a data directory."""
    return f'lengthwise.run("{experiment.rpartition("/")[2]}", data_dir="{data_dir}")'


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


@dataclass(frozen=True)
class RunningServer:
    """A server that another process runs on a data directory, usually a `lengthwise run`."""

    data_dir: Path
    process: int
    address: str
    # The server has tokens or TLS, so its address is not enough.
    needs_credentials: bool
    # "lengthwise_server (process 12), started by `lengthwise run a.yaml` (process 11)".
    name: str

    def in_use(self) -> LengthwiseError:
        """The error of what needs a server of its own on the directory."""
        if self.needs_credentials:
            return LengthwiseError(
                f"{self.name} is using {self.data_dir}; ask it with Client({self.address!r}, token_file=...) instead of "
                "data_dir"
            )
        return _in_use(self.name, self.data_dir)

    def ended(self) -> str:
        """What to say if the server is stopping or has ended; empty if it serves."""
        holder = _read_holder(self.data_dir / "LOCK")
        if holder is not None and holder[0] == self.process and holder[1]:
            return ""
        return f"the server that this client asked has ended: {self.name}; make another Client"


def _in_use(holder: str, data_dir: Path) -> LengthwiseError:
    return LengthwiseError(
        f"{holder} is using {data_dir}; wait until it ends, or interrupt it with Ctrl-C (a run can be resumed)"
    )


def _is_locked(lock: Path) -> bool:
    """Whether a server holds the directory. The server reports errors other than of permissions."""
    try:
        # O_NONBLOCK: does not wait for the other end of a pipe.
        with open(lock, "a", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK, 0o666)) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise LengthwiseError(
                f"cannot open {lock}: {error.strerror}; copy the directory to a place where you may write, or ask its "
                "owner for a `lengthwise report`"
            ) from error
    return False


def _command(process: int) -> str:
    """The program and arguments of a process; empty if they are unknown, and for a process that has ended."""
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        return ""
    words[0] = words[0].rpartition(b"/")[2]
    command = printable_text(b" ".join(words).decode(errors="replace")).replace("\n", " ")
    return command if len(command) <= _LONGEST_COMMAND else command[:_LONGEST_COMMAND] + "..."


def _read_holder(lock: Path) -> tuple[int, str] | None:
    """The process that holds the lock and what it wrote in the file; None if it did not, or has ended.

    Without the lock, the text may be of an earlier holder.
    """
    try:
        line, line_end, text = lock.read_text(encoding="utf-8").partition("\n")
        number, _, space = line.partition(" ")
        process = int(number)
    except (OSError, ValueError):
        return None
    if not line_end or space != _process_space() or not _command(process):
        return None
    return process, text


def _process_space() -> str:
    """Where process ids mean what they mean here: this machine, since its start, and this container."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot} {os.readlink('/proc/self/ns/pid')}"


def _name_of_server(process: int) -> str:
    name = f"lengthwise_server (process {process})"
    try:
        # "12 (lengthwise_server) S 11 ...". The name may contain anything.
        parent = int(Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(") ")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return name
    # A service manager says nothing about the server.
    command = _command(parent) if parent > 1 else ""
    return f"{name}, started by `{command}` (process {parent})" if command else name


def find_running_server(data_dir: Path) -> RunningServer | None:
    """The server that holds a data directory, or None. Waits for one that is starting or stopping.

    Raises LengthwiseError if the holder does not say its address, if the directory is a backup, or if this user may not
    write in it.
    """
    # A backup that a server of release 0.2.0 has opened, so that it has a lock, is a data directory.
    has = {name: (data_dir / name).exists() for name in ("manifest.json", "lengthwise.db", "LOCK")}
    if has["manifest.json"] and has["lengthwise.db"] and not has["LOCK"]:
        raise LengthwiseError(
            f"{data_dir} is a backup; restore it first: `lengthwise_server --restore {data_dir} --data_dir NEW`"
        )
    lock = data_dir / "LOCK"
    end = time.monotonic() + _PATIENCE_SECONDS
    while _is_locked(lock):
        holder = _read_holder(lock)
        if holder is not None and holder[1]:
            process, text = holder
            address, _, more = text.partition("\n")
            return RunningServer(data_dir, process, address, bool(more), _name_of_server(process))
        if time.monotonic() > end:
            raise _in_use("a `lengthwise run` or a server" if holder is None else _name_of_server(holder[0]), data_dir)
        time.sleep(0.02)
    return None


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
        # Without it, the child takes whoever adopts it for its parent, if this process ends before the child's main.
        environment["LENGTHWISE_PARENT"] = str(os.getpid())
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

    def end(self) -> str:
        """How the process has ended, with the end of its log; empty if it runs."""
        code = None if self._popen is None else self._popen.poll()
        if code is None:
            return ""
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"
        if code == -signal.SIGKILL:
            how += ", often because memory ran out"
        if not self.log.exists():
            return (
                f"the private {self.name} {how}; its log {self.log} is gone: its directory was deleted or moved while "
                "this program used it, and what it held with it"
            )
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_LINES:]
        if lines:
            return "\n  ".join([f"the private {self.name} {how}; the end of its log {self.log}:", *lines])
        # A log on a full disk is empty.
        free = shutil.disk_usage(self.log.parent).free
        return (
            f"the private {self.name} {how}; its log {self.log} is empty, and {free} bytes are free on its file system"
            + ("; free some space" if free < _LITTLE_DISK else "")
        )

    def check(self) -> None:
        """Raises LengthwiseError with the end of the log if the process has ended."""
        if end := self.end():
            raise LengthwiseError(end)

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

    def __init__(self, data_dir: Path, trains: bool) -> None:
        self._key = (os.getpid(), str(data_dir))
        self._users = 0
        self._workers = 0
        # Calls of workers() in progress, by experiment.
        self._trained: Counter[str] = Counter()
        self._data_dir = data_dir
        self._logs = data_dir / "logs"
        program = find_program("lengthwise_server", "server", "LENGTHWISE_SERVER_BINARY")
        # Before the start, which empties the last server's log.
        if running := find_running_server(data_dir):
            raise running.in_use()
        ready = data_dir / f"ready-{os.getpid()}"
        try:
            self._logs.mkdir(parents=True, exist_ok=True)
            ready.unlink(missing_ok=True)
        except OSError as error:
            raise LengthwiseError(f"cannot write in {data_dir}: {error.strerror}; choose another data_dir") from error
        local = "127.0.0.1:0"
        arguments = [program, "--listen", local, "--metrics_listen", local]
        arguments += ["--data_dir", str(data_dir), "--ready_file", str(ready)]
        # Workers end with the process that started them, so none of an earlier run is left.
        arguments += ["--release_leases"] if trains else []
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
    def is_open(cls, data_dir: Path) -> bool:
        """Whether this process runs the service of a directory."""
        with cls._lock:
            return (os.getpid(), str(data_dir)) in cls._open

    @classmethod
    def acquire(cls, data_dir: Path, *, trains: bool = False) -> PrivateService:
        """The service of a directory; `release` gives it back.

        With `trains`, a new server requeues at once the trials of an earlier run that was killed, instead of after 30 s.
        """
        key = (os.getpid(), str(data_dir))
        with cls._lock:
            service = cls._open.get(key)
            if service is None:
                service = cls._open[key] = cls(data_dir, trains)
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

    def untrained(self, experiment: str) -> str:
        """Why no worker trains an experiment of this full name; empty if one does."""
        with self._lock:
            if self._trained[experiment] > 0:
                return ""
        short = experiment.rpartition("/")[2]
        return (
            f"trials of {short} are queued, and this private server has no workers for them; train them with "
            f"{run_call(experiment, self._data_dir)}"
        )

    @contextlib.contextmanager
    def workers(self, count: int, device: str, threads: int, experiment: str) -> Iterator[Callable[[], None]]:
        """Workers for one experiment, which store checkpoints and end with the context.

        Yields a function that raises LengthwiseError if the server or all workers have ended by themselves. It warns of
        a worker that ended while others run.
        """
        program = find_program("lengthwise_worker", "worker", "LENGTHWISE_WORKER_BINARY")
        processes: list[Process] = []
        lost: set[str] = set()

        def check() -> None:
            self._server.check()
            for process in processes:
                if process.name in lost or not (end := process.end()):
                    continue
                lost.add(process.name)
                if len(lost) == len(processes):
                    raise LengthwiseError(end)
                warnings.warn(
                    f"{end}\nThe other workers go on, also with its trials once its lease has expired, after 30 s",
                    stacklevel=3,
                )

        with self._lock:
            self._trained[experiment] += 1
        try:
            for _ in range(count):
                with self._lock:
                    self._workers += 1
                    name = f"worker-{self._workers}"
                arguments = [program, "--server", self.address, "--device", device, "--threads", str(threads)]
                # The server's copy of the experiment's examples.
                data = self._data_dir / "artifacts" / experiment.rpartition("/")[2] / "data"
                arguments += ["--experiment", experiment, "--server_data_dir", str(data)]
                processes.append(Process(name, arguments, self._logs / f"{name}.log"))
                processes[-1].start()
            yield check
        finally:
            with self._lock:
                self._trained[experiment] -= 1
            _stop(processes)


def worker_count(device: str, threads: int, trials: int) -> int:
    """Workers of `lengthwise run`: one for each usable CPU divided by `threads`, no more than trials, at most 64.

    One for a GPU, which trains many trials at once.
    """
    if device != "cpu" and (device != "auto" or Path("/dev/nvidiactl").exists()):
        return 1
    return max(1, min(count_usable_cpus() // threads, trials, _MOST_WORKERS))
