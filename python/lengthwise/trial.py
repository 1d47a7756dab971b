"""One model, trained and evaluated once."""
from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, TypeVar

import pandas
import safetensors.numpy
from numpy.typing import NDArray

from lengthwise import events, frames, programs, queries
from lengthwise._proto import event_pb2, experiment_service_pb2
from lengthwise.arguments import check_arguments
from lengthwise.connection import Connection, ResponseT
from lengthwise.errors import UsageError
from lengthwise.message_json import plain_dictionary
from lengthwise.models import download_model
from lengthwise.names import FULL_NAME, GUESS, label, short_name
from lengthwise.user_file import check_writable, user_path, write_for_user

Message = TypeVar("Message", experiment_service_pb2.Experiment, experiment_service_pb2.Trial)


@check_arguments
class Snapshot(Generic[Message]):
    """What an experiment and a trial have in common."""

    _message: Message

    def __init__(self, connection: Connection, message: Message, match: int = FULL_NAME) -> None:
        """`match`: how the caller named it. Calls that change something refuse a guess."""
        self._connection = connection
        self._message = message
        self._match = match

    @property
    def name(self) -> str:
        """ "experiments/{experiment}", "experiments/{experiment}/trials/{trial}"."""
        return self._message.name

    @property
    def id(self) -> str:
        return short_name(self.name)

    @property
    def create_time(self) -> datetime:
        return events.to_datetime(self._message.create_time)

    @property
    def end_time(self) -> datetime | None:
        """When it ended; of an experiment, when its last trial did."""
        return events.to_datetime(self._message.end_time) if self._message.HasField("end_time") else None

    @property
    def specification(self) -> dict[str, Any]:
        """With all defaults, as protobuf's JSON has it: all that it is repeated from."""
        return plain_dictionary(self._message.specification)

    def _call(self, method: str, response: type[ResponseT], **fields: Any) -> ResponseT:
        """A call of ExperimentService that is about this one; `fields`: of its request, beside the name."""
        request = getattr(experiment_service_pb2, f"{method}Request")(name=self.name, **fields)
        return self._connection.call(request, response)

    @property
    def _path(self) -> str:
        """ "{experiment}", "{experiment}/{trial}"."""
        return self.name.removeprefix("experiments/").replace("/trials/", "/")

    def _refuse_guess(self, action: str, arguments: str = "", vaguest: int = GUESS - 1) -> None:
        """UsageError for an action that would change something, if it was named more vaguely than that."""
        if not FULL_NAME <= self._match <= vaguest:
            found = f'client.{type(self).__name__.lower()}("{self._path}")'
            raise UsageError(f"{action} needs the full name: {found}.{action}({arguments})")

    def _trials(self) -> list[experiment_service_pb2.Trial]:
        raise NotImplementedError

    def accuracies(self, intervals: bool = False) -> pandas.DataFrame:
        """One row for each trial and length of the final evaluation; `intervals` adds those during training.

        Other metrics than accuracy and loss have columns of their names, such as "digits_accuracy".
        """
        return frames.accuracies(self._connection, self.name, self._trials(), intervals)

    def answer_errors(self) -> pandas.DataFrame:
        """Errors of text answers: a row for each trial and length, with wrong answers by place and by wrong symbols."""
        return frames.answer_errors(self._connection, self.name, self._trials())

    def losses(self, max_points: int = 1000) -> pandas.DataFrame:
        """One row for each point of the loss curves, of which the server averages down to `max_points` a trial."""
        return frames.losses(self._connection, self.name, self._trials(), max_points)


@check_arguments
class Trial(Snapshot[experiment_service_pb2.Trial]):
    """A snapshot of a trial; `refresh` updates it."""

    def __repr__(self) -> str:
        return f"<Trial {self.name}: {self.state}>"

    def _repr_html_(self) -> str:
        """For notebooks."""
        names = ["id", "state", *frames.KEY[1:], "seen_accuracy", "unseen_accuracy", "training_seconds"]
        return frames.row_html({name: getattr(self, name) for name in names})

    def _trials(self) -> list[experiment_service_pb2.Trial]:
        return [self._message]

    @property
    def state(self) -> str:
        """ "QUEUED", "RUNNING", "SUCCEEDED", "FAILED" or "CANCELLED"."""
        return events.name_of(event_pb2.TrialState.DESCRIPTOR, self._message.state)

    @property
    def ended(self) -> bool:
        return self.state not in ("QUEUED", "RUNNING")

    @property
    def reason(self) -> str:
        """Why it is in this state."""
        return self._message.reason

    @property
    def attempt(self) -> int:
        return self._message.attempt

    @property
    def worker(self) -> str:
        return self._message.worker

    @property
    def task(self) -> str:
        return label(self._message.specification.task)

    @property
    def network(self) -> str:
        return label(self._message.specification.network)

    @property
    def encoding(self) -> str:
        return label(self._message.specification.encoding)

    @property
    def learning_rate(self) -> float:
        return self._message.specification.learning_rate

    @property
    def weight_seed(self) -> int:
        return self._message.specification.weight_seed

    @property
    def data_seed(self) -> int:
        return self._message.specification.data_seed

    @property
    def seen_up_to(self) -> int:
        """The longest input length that training had."""
        return self._message.specification.evaluation.seen_up_to

    @property
    def seen_accuracy(self) -> float | None:
        """Mean final accuracy over the lengths up to `seen_up_to`, for a trial that succeeded."""
        return self._score(self._message.outcome.seen_accuracy)

    @property
    def unseen_accuracy(self) -> float | None:
        """The same over the lengths above."""
        return self._score(self._message.outcome.unseen_accuracy)

    def _score(self, accuracy: float) -> float | None:
        return accuracy if self._message.HasField("outcome") and accuracy >= 0 else None

    @property
    def training_seconds(self) -> float | None:
        return self._message.outcome.training_seconds if self._message.HasField("outcome") else None

    @property
    def provenance(self) -> dict[str, Any]:
        """The program, device and instruction set that trained a trial that succeeded, as protobuf's JSON has them."""
        return plain_dictionary(self._message.outcome.provenance)

    @property
    def start_time(self) -> datetime | None:
        return events.to_datetime(self._message.start_time) if self._message.HasField("start_time") else None

    def refresh(self) -> Trial:
        """Reads its state from the server again; returns itself."""
        self._message = self._call("GetTrial", experiment_service_pb2.Trial)
        return self

    def cancel(self, reason: str = "") -> Trial:
        """Cancels the trial, which a worker notices at its next heartbeat; returns itself.

        UsageError if the trial or its experiment was found by the beginning of a name, or the experiment as the newest of
        several with one specification's name.
        """
        self._refuse_guess("cancel")
        self._message = self._call("CancelTrial", experiment_service_pb2.Trial, reason=reason)
        return self

    def retry(self) -> Trial:
        """Requeues the trial if it failed or was cancelled; returns itself.

        On a private server nothing trains it until `lengthwise.run` is called with the experiment's name. UsageError if the
        trial was found as `cancel` refuses.
        """
        self._refuse_guess("retry")
        states = [event_pb2.FAILED, event_pb2.CANCELLED]
        self._call("RetryTrials", experiment_service_pb2.RetryTrialsResponse, states=states)
        return self.refresh()

    def attention_maps(self, length: int = 0) -> list[events.AttentionMap]:
        """The recorded maps, or those of one input length."""
        return events.to_attention_maps(queries.attention_maps(self._connection, self.name, length), self.id)

    def projections(self) -> list[events.Projection]:
        return list(map(events.to_projection, queries.projections(self._connection, self.name)))

    def sequence_scores(self) -> dict[int, events.SequenceScores]:
        """Scores of single sequences by input length, if evaluation.sequence_scores is set."""
        return {
            event.sequence_scores.length: events.to_sequence_scores(event.sequence_scores)
            for event in self._analyses()
            if event.HasField("sequence_scores")
        }

    def answers(self) -> list[events.Answer]:
        """What the model answered to sequences of the final evaluation, if evaluation.answers is set."""
        return [events.to_answer(event.answer) for event in self._analyses() if event.HasField("answer")]

    def errors(self, length: int = 0, count: int = 20) -> list[dict[str, Any]]:
        """Answers with a mistake, as `lengthwise errors` finds them: "length", "sequence" from 1, "input", "expected",
        "given" and "wrong", the indices of the wrong symbols.

        `length`: by default the longest that the trial evaluates.
        """
        return self._ask("errors", f"--count={count}", *([f"--length={length}"] if length else []))

    def predict(self, given: str | Iterable[float]) -> str:
        """What the stored model answers to an input, as `lengthwise predict` shows: text, or a list of tokens or numbers."""
        typed = given if isinstance(given, str) else f"[{', '.join(map(str, given))}]"
        (answer,) = self._ask("predict", f"--input={typed}")
        return str(answer["given"])

    def _ask(self, command: str, *options: str) -> list[dict[str, Any]]:
        """What a command that starts workers in a directory, or waits for those of a server, tells of this trial."""
        connection = self._connection
        if not connection.data_dir:
            self.refresh()  # the command does not know of a closed client
        given = [f"--data_dir={connection.data_dir}"] if connection.data_dir else connection.options()
        told: list[dict[str, Any]] = json.loads(programs.ask([command, self._path, "--output=json", *options, *given])[0])
        return told

    def noise_accuracies(self) -> dict[float, float]:
        """By the standard deviation of evaluation.embedding_noise."""
        return {
            deviation: accuracy
            for event in self._analyses()
            for deviation, accuracy in zip(event.noise_accuracies.deviations, event.noise_accuracies.accuracies)
        }

    def _analyses(self) -> Iterator[event_pb2.Event]:
        return queries.analyses(self._connection, self.name)

    def export(self, format: str, path: str | os.PathLike[str] | None = None, *, force: bool = False) -> Path:
        """Exports this trial alone (`Experiment.export`)."""
        from lengthwise import exports

        subject = exports.find_subject(self._connection, self.name)
        return exports.export_and_warn(self._connection, subject, format, user_path(path), force)

    def model(self) -> dict[str, NDArray[Any]]:
        """The weights of the newest stored model by their names, without the "parameters/" in front.

        NotFoundError: it has stored none yet, or keeps none.
        """
        prefix = "parameters/"
        return {
            name[len(prefix) :]: values
            for name, values in safetensors.numpy.load(self.model_bytes()).items()
            if name.startswith(prefix)
        }

    def model_bytes(self) -> bytes:
        """The newest stored model as a safetensors file, with the optimizer's state if it was kept."""
        return b"".join(download_model(self._connection, self.name))

    def network_files(self) -> dict[str, bytes]:
        """The files of its network `python` by their names, as they were trained. NotFoundError for a built-in network."""
        archive = json.loads(b"".join(download_model(self._connection, f"{self.name}/network")))
        return {
            name: content.encode() if isinstance(content, str) else base64.b64decode(content["base64"])
            for name, content in archive["files"].items()
        }

    def save_model(self, path: str | os.PathLike[str]) -> None:
        """Writes the newest stored model to a file, which is there whole or not at all."""
        target = user_path(path)
        check_writable(target)
        write_for_user(target, download_model(self._connection, self.name))
