"""`lengthwise run` from Python."""
from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any

from lengthwise.arguments import Count, checked
from lengthwise.client import Client, checked_data_dir
from lengthwise.errors import LengthwiseError, UsageError
from lengthwise.experiment import Experiment, progress_bar
from lengthwise.given_specification import checked_specification
from lengthwise.programs import Followed
from lengthwise.user_file import user_path

_POLL_SECONDS = 0.2
# Time for the command to end after its server.
_END_SECONDS = 30.0


@checked
def run(
    specification: str | os.PathLike[str] | Mapping[str, Any],
    *,
    data_dir: str | os.PathLike[str] | None = None,
    device: str = "auto",
    workers: Count | None = None,
    threads: Count = 1,
    fresh: bool = False,
    progress: Callable[[Experiment], None] | None = None,
) -> Experiment:
    """Trains a specification on this machine and returns its experiment when all trials have ended.

    It is `lengthwise run`, in the same directory: `data_dir`, by default $LENGTHWISE_RUNS_DIR, `runs_dir` of
    config.yaml or ~/.local/share/lengthwise/runs. An interrupted experiment of the same specification resumes, unless
    `fresh` is set. A finished one is trained again as another experiment, and a warning says so. The name of an experiment
    of the directory ("quickstart-1") trains what is queued in that experiment, for example after `retry` or `extend`.
    `workers` processes train on `device` ("auto", "cpu", "cuda", "cuda:N") with `threads` threads each. The default of
    `workers` is one for a GPU, and otherwise the number of usable CPUs divided by `threads`, at most 64. CPU affinity,
    cgroup quota and Slurm limit the usable CPUs. `progress` is a function, which is called with the experiment whenever a
    trial has begun or ended. Without it, notebooks and terminals show a bar of the trials that have ended.

    Look at `experiment.counts`: trials may have failed. The private server runs, for reading results, until the experiment
    and its trials are garbage-collected; meanwhile other processes can read the directory and train in it. Ctrl-C and
    errors stop the workers, which store checkpoints, and the server. If a worker ends while others run, these go on, and a
    warning says so. UsageError for a wrong argument, before anything is submitted.
    """
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", device, re.ASCII):
        raise UsageError(f'device: got {device!r}, expected "auto", "cpu", "cuda" or "cuda:N"')
    specification = checked_specification(specification)
    arguments = ["run", "--output=events", "--until_eof", f"--device={device}", f"--threads={threads}"]
    arguments += [] if workers is None else [f"--workers={workers}"]
    arguments += ["--fresh"] if fresh else []
    arguments += [] if data_dir is None else [f"--data_dir={checked_data_dir(data_dir)}"]
    if isinstance(specification, dict):
        name, text = "-", json.dumps(specification).encode()
    else:
        name, text = user_path(specification), b""
    # After "--", because a path such as "-mine.yaml" looks like an option.
    with _sigterm_as_exit(), closing(Followed([*arguments, "--", name], text)) as trainer:
        started = json.loads(trainer.read_line())
        client = Client(data_dir=started["data_dir"])
        try:
            experiment = client.experiment(started["experiment"])
            _follow(trainer, experiment, progress)
            return experiment
        except BaseException:
            client.close()
            raise


def _follow(trainer: Followed, experiment: Experiment, progress: Callable[[Experiment], None] | None) -> None:
    told = None
    with progress_bar(experiment, False if progress else None, experiment.counts.total, " trials") as bar:
        while True:
            ended = trainer.wait(_POLL_SECONDS)
            if ended:
                trainer.check()
            trainer.take_warnings(stacklevel=4)
            try:
                experiment.refresh()
            except LengthwiseError:
                # The trainer knows why the server is gone.
                if trainer.wait(_END_SECONDS):
                    raise trainer.error() from None
                raise
            bar.update(experiment.counts.total - experiment.counts.unended - bar.n)
            if progress is not None and experiment.counts != told:
                told = experiment.counts
                progress(experiment)
            if ended:
                return


@contextlib.contextmanager
def _sigterm_as_exit() -> Iterator[None]:
    """Lets SIGTERM unwind the stack, as Ctrl-C does, so that the workers store checkpoints.

    In the main thread, and unless the caller has a handler of its own.
    """
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def leave(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
