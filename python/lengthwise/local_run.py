"""`lengthwise run` from Python."""
from __future__ import annotations

import contextlib
import os
import re
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeGuard

import grpc

from lengthwise import names
from lengthwise._proto import experiment_service_pb2, specification_pb2
from lengthwise.arguments import check_value
from lengthwise.client import FORMATS, Client
from lengthwise.errors import LengthwiseError, NotFoundError, UsageError
from lengthwise.experiment import Experiment, progress_bar
from lengthwise.given_specification import checked_specification
from lengthwise.private_service import (
    PrivateService,
    data_directory,
    default_data_directory,
    holds_experiments,
    run_call,
    worker_count,
)
from lengthwise.programs import ready_specification

_POLL_SECONDS = 0.2


def run(
    specification: str | os.PathLike[str] | Mapping[str, Any],
    *,
    data_dir: str | os.PathLike[str] | None = None,
    device: str = "auto",
    workers: int | None = None,
    threads: int = 1,
    fresh: bool = False,
    progress: Callable[[Experiment], None] | None = None,
) -> Experiment:
    """Trains a specification on this machine and returns its experiment when all trials have ended.

    It does what `lengthwise run` does, in the same directory: `data_dir`, by default $LENGTHWISE_RUNS_DIR, `runs_dir` of
    config.yaml or ~/.local/share/lengthwise/runs. An interrupted experiment of the same specification resumes, unless
    `fresh` is set. A finished one is trained again as another experiment, and a warning says so. The name of an experiment
    of the directory ("quickstart-1") trains what is queued in that experiment, for example after `retry` or `extend`.
    `workers` processes train on `device` ("auto", "cpu", "cuda", "cuda:N") with `threads` threads each. The default of
    `workers` is one for a GPU, and otherwise the number of usable CPUs divided by `threads`, at most 64. CPU affinity,
    cgroup quota and Slurm limit the usable CPUs. `progress` is a function, which is called with the experiment whenever a
    trial has begun or ended. Without it, notebooks and terminals show a bar of the trials that have ended.

    Look at `experiment.counts`: trials may have failed. The private server runs, for reading results, until the experiment
    and its trials are garbage-collected; meanwhile other processes can read the directory, but not train in it. Ctrl-C and
    errors stop the workers, which store checkpoints, and the server. If a worker ends while others run, these go on, and a
    warning says so. UsageError for a wrong argument, before anything is submitted.
    """
    _check_arguments(device, workers, threads, progress)
    # Once, because an iterator in it gives its values only once, and the specification is sent twice.
    specification = checked_specification(specification)
    directory = data_directory(default_data_directory() if data_dir is None else data_dir)
    named = specification if _names_experiment(specification) else ""
    if named and not holds_experiments(directory):
        raise NotFoundError(
            f'"{named}" is neither a file nor an installed specification, and {directory} has no experiments',
            code=grpc.StatusCode.NOT_FOUND,
        )
    if named and fresh:
        raise UsageError(f'fresh: got the name of an experiment, "{named}", expected a specification')
    # Its server creates the database, without which a client refuses the directory.
    service = PrivateService.acquire(directory, trains=True)
    try:
        client = Client(data_dir=directory)
    finally:
        service.release()
    try:
        experiment = _find(client, named, directory) if named else _find_or_submit(client, specification, fresh, directory)
        count = worker_count(device, threads, max(experiment.counts.unended, 1)) if workers is None else workers
        if experiment.ended:
            count = 0
        with (
            _sigterm_as_exit(),
            client.private_service.workers(count, device, threads, experiment.name) as check,
            progress_bar(experiment, False if progress else None, experiment.counts.total, " trials") as bar,
        ):
            told = None
            while True:
                bar.update(experiment.counts.total - experiment.counts.unended - bar.n)
                if progress is not None and experiment.counts != told:
                    told = experiment.counts
                    progress(experiment)
                if experiment.ended:
                    return experiment
                time.sleep(_POLL_SECONDS)
                check()
                experiment.refresh()
    except BaseException:
        client.close()
        raise


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


def _check_arguments(device: object, workers: object, threads: object, progress: object) -> None:
    """Raises UsageError for an argument that workers, or this process, could use only after the submission."""
    if not isinstance(device, str) or not re.fullmatch(r"auto|cpu|cuda(:\d+)?", device, re.ASCII):
        raise UsageError(f'device: got {device!r}, expected "auto", "cpu", "cuda" or "cuda:N"')
    check_value("workers", "Count | None", workers)
    check_value("threads", "Count", threads)
    if progress is not None and not callable(progress):
        raise UsageError(
            f"progress: got {progress!r}, expected a function that is called with the experiment; leave it out for a bar in "
            "notebooks and terminals"
        )


def _names_experiment(specification: object) -> TypeGuard[str]:
    """True for a string that is neither a file, nor a name that only a file can have, nor an installed specification."""
    return (
        isinstance(specification, str)
        and specification != ""
        and "/" not in specification.removeprefix("experiments/")
        and Path(specification).suffix not in FORMATS
        and not Path(specification).is_file()
        and ready_specification(specification) is None
    )


def _find(client: Client, name: str, directory: Path) -> Experiment:
    try:
        return client.experiment(name)
    except NotFoundError as error:
        raise NotFoundError(
            f"{error}; {directory} is asked for it, since there is no file of that name here", code=error.code
        ) from None


def _find_or_submit(
    client: Client, specification: str | os.PathLike[str] | Mapping[str, Any], fresh: bool, directory: Path
) -> Experiment:
    """The newest interrupted experiment of the same specification, whatever its priority, or a new one.

    Warns if the new one repeats an experiment that has ended.
    """
    if fresh:
        return client.submit(specification)
    wanted = _compared(client._create(specification, "", "", validate_only=True).experiment.specification)
    ended = ""
    for message in names.list_experiments(client._connection):
        unended = message.trials.queued + message.trials.running > 0
        # Asks the server only about those that may be the same.
        if message.specification.name != wanted.name or not (unended or (message.trials.succeeded > 0 and not ended)):
            continue
        if _resolved_again(client, message) != wanted:
            continue
        if unended:
            return Experiment(client._connection, message)
        ended = message.name
    experiment = client.submit(specification)
    if ended:
        warnings.warn(
            f"{experiment.id} trains the specification of {names.short_name(ended)} again, which has ended; "
            f"{run_call(ended, directory)} returns that experiment, and fresh=True trains again without this warning",
            stacklevel=3,
        )
    return experiment


def _compared(specification: specification_pb2.ExperimentSpecification) -> specification_pb2.ExperimentSpecification:
    """Without the priority, and without the contents of example files, which later releases describe in more detail.

    The files' hashes remain.
    """
    compared = specification_pb2.ExperimentSpecification()
    compared.CopyFrom(specification)
    compared.ClearField("priority")
    for task in compared.tasks:
        if "contents" in task.parameters:
            del task.parameters["contents"]
    return compared


def _resolved_again(
    client: Client, experiment: experiment_service_pb2.Experiment
) -> specification_pb2.ExperimentSpecification | None:
    """A stored specification with this release's defaults, to compare; None if this release refuses it."""
    try:
        resolved = client._connection.call(
            "ExperimentService/CreateExperiment",
            experiment_service_pb2.CreateExperimentRequest(validate_only=True, specification=experiment.specification),
            experiment_service_pb2.CreateExperimentResponse,
        )
    except LengthwiseError as error:
        if error.code is not grpc.StatusCode.INVALID_ARGUMENT:
            raise
        return None
    return _compared(resolved.experiment.specification)
