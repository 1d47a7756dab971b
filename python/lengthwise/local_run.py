"""`lengthwise run` from Python."""
from __future__ import annotations

import operator
import os
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from lengthwise import names
from lengthwise._proto import experiment_service_pb2, specification_pb2
from lengthwise.client import Client
from lengthwise.errors import UsageError
from lengthwise.experiment import Experiment
from lengthwise.private_service import PrivateService, data_directory, default_data_directory, worker_count

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

    It does what `lengthwise run` does, in the same directory: `data_dir`, by default ~/.local/share/lengthwise/runs. An
    interrupted experiment of the same specification resumes, unless `fresh` is set. `workers` processes, by default one per
    core or one for a GPU, train on `device` ("auto", "cpu", "cuda", "cuda:N") with `threads` threads each. `progress` is a
    function, which is called with the experiment whenever a trial has begun or ended.

    Look at `experiment.counts`: trials may have failed. The private server runs, for reading results, until the experiment
    and its trials are garbage-collected; meanwhile other processes can read the directory, but not train in it. Ctrl-C and
    errors stop the workers, which store checkpoints, and the server. If a worker ends while others run, these go on, and a
    warning says so. UsageError for a wrong argument, before anything is submitted.
    """
    _check_arguments(device, workers, threads, progress)
    directory = data_directory(default_data_directory() if data_dir is None else data_dir)
    # Its server creates the database, without which a client refuses the directory.
    service = PrivateService.acquire(directory, trains=True)
    try:
        client = Client(data_dir=directory)
    finally:
        service.release()
    try:
        experiment = _find_or_submit(client, specification, fresh)
        count = worker_count(device, threads, max(experiment.counts.unended, 1)) if workers is None else workers
        with client.private_service.workers(count, device, threads, experiment.name) as check:
            told = None
            while True:
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


def _check_arguments(device: object, workers: object, threads: object, progress: object) -> None:
    """Raises UsageError for an argument that workers, or this process, could use only after the submission."""
    if not isinstance(device, str) or not re.fullmatch(r"auto|cpu|cuda(:\d+)?", device, re.ASCII):
        raise UsageError(f'device: got {device!r}, expected "auto", "cpu", "cuda" or "cuda:N"')
    for name, value in (("workers", workers), ("threads", threads)):
        if name == "workers" and value is None:
            continue
        try:
            count = operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            count = 0
        if count < 1:
            raise UsageError(f"{name}: got {value!r}, expected 1 or more")
    if progress is not None and not callable(progress):
        raise UsageError(
            f"progress: got {progress!r}, expected a function that is called with the experiment; leave it out to be told "
            "nothing"
        )


def _find_or_submit(
    client: Client, specification: str | os.PathLike[str] | Mapping[str, Any], fresh: bool
) -> Experiment:
    """The newest interrupted experiment of the same specification, whatever its priority, or a new one."""

    def key(message: experiment_service_pb2.Experiment) -> specification_pb2.ExperimentSpecification:
        compared = specification_pb2.ExperimentSpecification()
        compared.CopyFrom(message.specification)
        compared.ClearField("priority")
        return compared

    if not fresh:
        wanted = key(client._create(specification, "", "", validate_only=True).experiment)
        for message in names.list_experiments(client._connection):
            if message.trials.queued + message.trials.running > 0 and key(message) == wanted:
                return Experiment(client._connection, message)
    return client.submit(specification)
