"""One format of an export. A new one is a module of this package and its line in FORMATS (__init__.py)."""
from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import BinaryIO

from lengthwise._proto import experiment_service_pb2
from lengthwise.connection import Connection
from lengthwise.exports.output import Output


@dataclass(frozen=True)
class Subject:
    """Subject of an export: an experiment with all its trials, or one of them."""

    experiment: experiment_service_pb2.Experiment
    # In grid order.
    trials: Sequence[experiment_service_pb2.Trial]
    whole_experiment: bool = True


class Exporter:
    """`begin`, `add_trial` for each trial in turn, `finish`. Errors are the server's and those of Output."""

    def __init__(self, connection: Connection, subject: Subject, output: Output, select: str = "") -> None:
        """`select`: rule of choices, "seen" or "unseen"; empty: the specification's, or a paper's beside its table."""
        self.connection = connection
        self.subject = subject
        self.output = output
        self.select = select
        self._files = ExitStack()

    def open(self, name: str = "") -> BinaryIO:
        """A file of the output, for all trials: open until `close`."""
        return self._files.enter_context(self.output.open(name))

    def begin(self) -> None:
        """Before the first trial."""

    def add_trial(self, trial: experiment_service_pb2.Trial) -> None:
        """NOT_FOUND, where the trial has nothing that this format holds, and DATA_LOSS, if what it has is damaged, leave
        the trial out; any other error ends the export.
        """
        raise NotImplementedError

    def finish(self) -> None:
        """Called after the last trial, if any was added."""

    def close(self) -> None:
        """Closes its files, after errors, too."""
        self._files.close()
