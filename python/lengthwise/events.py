"""The facts of an experiment's log, as `Experiment.watch` gives them, and what trials record."""
from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Union

import numpy
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.timestamp_pb2 import Timestamp
from numpy.typing import NDArray

from lengthwise._proto import event_pb2
from lengthwise.errors import damaged


def to_datetime(time: Timestamp) -> datetime:
    """In UTC."""
    try:
        return datetime.fromtimestamp(time.seconds + time.nanos / 1e9, tz=timezone.utc)
    except (ValueError, OverflowError, OSError):
        raise damaged(f"an answer of the server has a time of {time.seconds} seconds, which no calendar has") from None


def name_of(kind: EnumTypeWrapper, number: int) -> str:
    """The name of an enum's value, or its number if only a later release knows it."""
    return kind.Name(number) if number in kind.values() else str(number)


def _shaped(data: bytes, shape: tuple[int, ...], what: str) -> NDArray[numpy.float32]:
    try:
        if min(shape) < 0:  # which NumPy would infer
            raise ValueError("a size is negative")
        return numpy.frombuffer(data, "<f4").reshape(shape)
    except ValueError as error:
        raise damaged(f"{what} do not have the size of their shape: {error}") from None


@dataclass(frozen=True)
class Fact:
    """Common fields of all events. Events with arrays are equal only to themselves; compare their positions."""

    trial: str
    # Number in the server's log.
    position: int
    # The attempt that produced it: 1 for the first lease of the trial, 0 before.
    attempt: int
    # The training step to which it belongs.
    step: int
    time: datetime


@dataclass(frozen=True)
class StateChange(Fact):
    """A trial changed its state."""

    # "QUEUED", "RUNNING", "SUCCEEDED", "FAILED" or "CANCELLED".
    old: str
    new: str
    reason: str
    worker: str
    actor: str
    # If `new` is "RUNNING": measurements of this trial after this step are repeated.
    resumed_from_step: int


@dataclass(frozen=True, eq=False)
class TrainingPoints(Fact):
    """Points of the loss curve, in columns of equal length."""

    steps: NDArray[numpy.int64]
    losses: NDArray[numpy.float32]
    accuracies: NDArray[numpy.float32]
    gradient_norms: NDArray[numpy.float32]
    lengths: NDArray[numpy.int32]
    # Mean of the losses of all steps since the previous point; in an old history, `losses`.
    mean_losses: NDArray[numpy.float32]


@dataclass(frozen=True, eq=False)
class LengthAccuracies(Fact):
    """An evaluation: accuracy by input length."""

    # The full evaluation after the last step.
    final: bool
    lengths: NDArray[numpy.int32]
    accuracies: NDArray[numpy.float64]
    losses: NDArray[numpy.float64]
    # Number of sequences of each length; in an old history, the largest of these numbers everywhere.
    sequence_counts: NDArray[numpy.int32]
    # The largest of them.
    sequences: int
    training_seconds: float
    # Mean accuracies over the lengths up to Trial.seen_up_to, and over the longer ones; None if there are none.
    seen_accuracy: float | None
    unseen_accuracy: float | None
    # On examples of the trial's own data set; None unless evaluation.training_examples asks for it.
    training_accuracy: float | None
    # Over the lengths of evaluation.validation; None without it.
    validation_accuracy: float | None
    # Other measures of the same sequences by their names, such as "digits_accuracy"; one value a length.
    metrics: dict[str, NDArray[numpy.float64]]


@dataclass(frozen=True)
class Checkpoint(Fact):
    """The trial can be resumed from here."""

    sha256: str
    size_bytes: int


@dataclass(frozen=True)
class Outcome(Fact):
    """End of an attempt."""

    # "COMPLETED", "FAILED_PERMANENTLY", "FAILED_TEMPORARILY" or "OUT_OF_MEMORY".
    kind: str
    reason: str
    # None if there are no such lengths.
    seen_accuracy: float | None
    unseen_accuracy: float | None
    training_seconds: float
    training_steps: int


@dataclass(frozen=True)
class LogLine(Fact):
    """A line of a worker's log."""

    # "INFO", "WARNING" or "ERROR".
    severity: str
    text: str


@dataclass(frozen=True)
class Progress:
    """Progress of a running trial: sent live, not stored."""

    trial: str
    # "TRAINING" or "EVALUATING".
    phase: str
    done: int
    total: int
    steps_per_second: float
    # None before the attempt's first step.
    loss: float | None
    # None if unknown.
    seconds_left: float | None


Event = Union[StateChange, TrainingPoints, LengthAccuracies, Checkpoint, Outcome, LogLine, Progress]


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """Attention probabilities of one sequence."""

    # Input length.
    length: int
    # The sequence was one of evaluation.attention_inputs, and which, from 1; 0 for a sample of the task.
    input_number: int
    # Number of the evaluation sequence of this length, from 0.
    sequence: int
    tokens: NDArray[numpy.int32]
    # For a regression, the model's inputs where tokens are -1; otherwise empty.
    numbers: NDArray[numpy.float64]
    positions: NDArray[Any]  # int64, or float64 if the encoding chooses real numbers
    # [layers, heads, tokens, tokens]; rows are queries.
    probabilities: NDArray[numpy.float32]


@dataclass(frozen=True)
class Answer:
    """What a model answered to one input, as text."""

    # Input length.
    length: int
    # Number of the evaluation sequence of this length, from 0.
    sequence: int
    # Of evaluation.attention_inputs, from 1; 0 for an evaluation sequence.
    input_number: int
    input: str
    # Symbols without an end token. `expected` is empty for an input of the user's.
    expected: list[str]
    given: list[str]
    # Indices of the symbols that are wrong, missing or too many, ascending.
    wrong: list[int]
    # Between symbols: nothing or a space.
    separator: str


@dataclass(frozen=True, eq=False)
class Projection:
    """Activations on their two main directions (proto/event.proto, Projection)."""

    fitted_length: int
    length: int
    # [depths, sequences, tokens, 2].
    coordinates: NDArray[numpy.float32]
    # [depths, 2].
    explained_variance: NDArray[numpy.float64]


@dataclass(frozen=True)
class WrongAnswer:
    """An answer to a text task with a wrong digit."""

    # Number of the evaluation sequence of this length, from 0.
    sequence: int
    # Places of the wrong or missing digits, ascending; 0 is the least significant. Empty if digits are too many.
    places: list[int]
    # There is a carry into the first of them.
    carry_into_first: bool


@dataclass(frozen=True, eq=False)
class SequenceScores:
    """Scores of the evaluation sequences of a length, in order."""

    accuracies: NDArray[numpy.float32]
    losses: NDArray[numpy.float32]
    # Text tasks only; by ascending sequence.
    wrong_answers: list[WrongAnswer]


def sequence_counts(measured: event_pb2.LengthAccuracies) -> list[int]:
    """The number of sequences of each length; in an old history, the largest of these numbers for each."""
    return list(measured.sequence_counts) or [measured.sequences] * len(measured.lengths)


def _score(accuracy: float) -> float | None:
    return None if accuracy < 0 else accuracy


def to_event(event: event_pb2.Event) -> Event | None:
    """None for a kind of fact that this version does not know, and for attention maps and projections."""
    fact = {
        "trial": event.trial,
        "position": event.position,
        "attempt": event.attempt,
        "step": event.step,
        "time": to_datetime(event.time),
    }
    return _to_event(event, fact)


def _to_event(event: event_pb2.Event, fact: dict[str, object]) -> Event | None:
    kind = event.WhichOneof("fact")
    if kind == "state_change":
        change = event.state_change
        return StateChange(
            **fact,  # type: ignore[arg-type]
            # A word of Python.
            old=name_of(event_pb2.TrialState, getattr(change, "from")),
            new=name_of(event_pb2.TrialState, change.to),
            reason=change.reason,
            worker=change.worker,
            actor=change.actor,
            resumed_from_step=change.resumed_from_step,
        )
    if kind == "training_points":
        points = event.training_points
        return TrainingPoints(
            **fact,  # type: ignore[arg-type]
            steps=numpy.array(points.steps, numpy.int64),
            losses=numpy.array(points.losses, numpy.float32),
            accuracies=numpy.array(points.accuracies, numpy.float32),
            gradient_norms=numpy.array(points.gradient_norms, numpy.float32),
            lengths=numpy.array(points.lengths, numpy.int32),
            mean_losses=numpy.array(points.mean_losses or points.losses, numpy.float32),
        )
    if kind == "length_accuracies":
        measured = event.length_accuracies
        return LengthAccuracies(
            **fact,  # type: ignore[arg-type]
            final=measured.final,
            lengths=numpy.array(measured.lengths, numpy.int32),
            accuracies=numpy.array(measured.accuracies, numpy.float64),
            losses=numpy.array(measured.losses, numpy.float64),
            sequence_counts=numpy.array(sequence_counts(measured), numpy.int32),
            sequences=measured.sequences,
            training_seconds=measured.training_seconds,
            seen_accuracy=measured.seen_accuracy if measured.HasField("seen_accuracy") else None,
            unseen_accuracy=measured.unseen_accuracy if measured.HasField("unseen_accuracy") else None,
            training_accuracy=measured.training_accuracy if measured.HasField("training_accuracy") else None,
            validation_accuracy=measured.validation_accuracy if measured.HasField("validation_accuracy") else None,
            metrics={metric.name: numpy.array(metric.values, numpy.float64) for metric in measured.metrics},
        )
    if kind == "checkpoint":
        return Checkpoint(
            **fact,  # type: ignore[arg-type]
            sha256=event.checkpoint.sha256,
            size_bytes=event.checkpoint.size_bytes,
        )
    if kind == "outcome":
        outcome = event.outcome
        return Outcome(
            **fact,  # type: ignore[arg-type]
            kind=name_of(event_pb2.Outcome.Kind, outcome.kind),
            reason=outcome.reason,
            seen_accuracy=_score(outcome.seen_accuracy),
            unseen_accuracy=_score(outcome.unseen_accuracy),
            training_seconds=outcome.training_seconds,
            training_steps=outcome.training_steps,
        )
    if kind == "log_line":
        return LogLine(
            **fact,  # type: ignore[arg-type]
            severity=name_of(event_pb2.LogLine.Severity, event.log_line.severity),
            text=event.log_line.text,
        )
    return None


def to_progress(progress: event_pb2.TrialProgress) -> Progress:
    return Progress(
        trial=progress.trial,
        phase=name_of(event_pb2.TrialProgress.Phase, progress.phase),
        done=progress.done,
        total=progress.total,
        steps_per_second=progress.steps_per_second,
        loss=None if math.isnan(progress.loss) else progress.loss,
        seconds_left=progress.seconds_left or None,
    )


def to_attention_maps(parts: Iterable[event_pb2.AttentionMap], trial: str) -> list[AttentionMap]:
    """Long maps come in parts, in the order of layers and right after each other. Errors name the trial."""
    what = f"the attention maps of {trial}"
    maps: list[AttentionMap] = []
    for part in parts:
        tokens = len(part.tokens)
        shape = part.layers, part.heads, tokens, tokens
        probabilities = _shaped(part.probabilities, shape, what)
        if part.first_layer > 0 and maps:
            last = maps.pop()
            if last.probabilities.shape[1:] != probabilities.shape[1:]:
                raise damaged(f"{what} do not have the size of their shape: their parts differ")
            probabilities = numpy.concatenate([last.probabilities, probabilities])
        maps.append(
            AttentionMap(
                length=part.length,
                input_number=part.input_number,
                sequence=part.sequence,
                tokens=numpy.array(part.tokens, numpy.int32),
                numbers=numpy.array(part.numbers, numpy.float64),
                positions=numpy.array(part.real_positions or part.positions, "f8" if part.real_positions else "i8"),
                probabilities=probabilities,
            )
        )
    return maps


def to_projection(projection: event_pb2.Projection) -> Projection:
    return Projection(
        fitted_length=projection.fitted_length,
        length=projection.length,
        coordinates=_shaped(
            projection.coordinates, (projection.depths, projection.sequences, projection.tokens, 2), "projections"
        ),
        explained_variance=numpy.array(projection.explained_variance, numpy.float64)[
            : len(projection.explained_variance) // 2 * 2
        ].reshape(-1, 2),
    )


def to_answer(answer: event_pb2.Answer) -> Answer:
    return Answer(
        answer.length, answer.sequence, answer.input_number, answer.input,
        list(answer.expected), list(answer.given), list(answer.wrong), answer.separator,
    )  # fmt: skip


def to_sequence_scores(scores: event_pb2.SequenceScores) -> SequenceScores:
    return SequenceScores(
        accuracies=numpy.array(scores.accuracies, numpy.float32),
        losses=numpy.array(scores.losses, numpy.float32),
        wrong_answers=[
            WrongAnswer(answer.sequence, list(answer.places), answer.carry_into_first)
            for answer in scores.wrong_answers
        ],
    )
