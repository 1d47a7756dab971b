"""The facts of an experiment's log, as `Experiment.watch` gives them, and what trials record."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timezone
from typing import Any, TypeVar, Union

import numpy
from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from numpy.typing import NDArray

from lengthwise._proto import event_pb2
from lengthwise.errors import damaged

T = TypeVar("T")


def to_datetime(time: Timestamp) -> datetime:
    """In UTC."""
    try:
        return datetime.fromtimestamp(time.seconds + time.nanos / 1e9, tz=timezone.utc)
    except (ValueError, OverflowError, OSError):
        raise damaged(f"an answer of the server has a time of {time.seconds} seconds, which no calendar has") from None


def name_of(kind: EnumDescriptor, number: int) -> str:
    """The name of an enum's value, or its number if only a later release knows it."""
    return kind.values_by_number[number].name if number in kind.values_by_number else str(number)


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


def metrics_of(evaluations: Iterable[event_pb2.LengthAccuracies]) -> list[str]:
    """The names of all other metrics than accuracy and loss."""
    return sorted({metric.name for one in evaluations for metric in one.metrics})


def accuracy_rows(
    step: int, measured: event_pb2.LengthAccuracies, seen_up_to: int, metrics: Sequence[str]
) -> Iterator[list[bool | int | float | None]]:
    """For each length: step, whether the evaluation is final, length, whether it counts as seen, accuracy, loss, number of
    sequences, seconds of training, and these metrics.
    """
    values = {metric.name: metric.values for metric in measured.metrics}
    sequences = sequence_counts(measured)
    for i, length in enumerate(measured.lengths):
        yield [
            step, measured.final, length, length <= seen_up_to, measured.accuracies[i],
            measured.losses[i] if i < len(measured.losses) else None, sequences[i], measured.training_seconds,
            *(values[name][i] if name in values else None for name in metrics),
        ]  # fmt: skip


def score_or_none(accuracy: float) -> float | None:
    """Of an outcome, which has -1 where there is none."""
    return None if accuracy < 0 else accuracy


# Of arrays, by the type of a field's numbers.
_ARRAYS: dict[int, Any] = {
    FieldDescriptor.CPPTYPE_INT32: numpy.int32,
    FieldDescriptor.CPPTYPE_INT64: numpy.int64,
    FieldDescriptor.CPPTYPE_FLOAT: numpy.float32,
    FieldDescriptor.CPPTYPE_DOUBLE: numpy.float64,
}


def _value(message: Message, field: Any) -> Any:
    """Several numbers are an array, an enum's value is its name, and what is optional and absent is None."""
    value = getattr(message, field.name)
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return numpy.array(value, _ARRAYS[field.cpp_type]) if field.cpp_type in _ARRAYS else list(value)
    if field.enum_type is not None:
        return name_of(field.enum_type, value)
    return value if field.containing_oneof is None or message.HasField(field.name) else None


def _read(kind: Callable[..., T], message: Message, **others: Any) -> T:
    """A dataclass of the message's fields of the same names, but for the values in `others`."""
    of_message = message.DESCRIPTOR.fields_by_name
    names = [one.name for one in fields(kind) if one.name not in others]  # type: ignore[arg-type]
    return kind(**others, **{name: _value(message, of_message[name]) for name in names})


# By its field in Event: a fact's class, and the values of what is not a field of the message.
_FACTS: dict[str, tuple[Callable[..., Event], Callable[[Any], dict[str, Any]]]] = {
    "state_change": (
        StateChange,
        lambda change: {
            # A word of Python.
            "old": name_of(event_pb2.TrialState.DESCRIPTOR, getattr(change, "from")),
            "new": name_of(event_pb2.TrialState.DESCRIPTOR, change.to),
        },
    ),
    "training_points": (
        TrainingPoints,
        lambda points: {"mean_losses": numpy.array(points.mean_losses or points.losses, numpy.float32)},
    ),
    "length_accuracies": (
        LengthAccuracies,
        lambda measured: {
            "sequence_counts": numpy.array(sequence_counts(measured), numpy.int32),
            "metrics": {metric.name: numpy.array(metric.values, numpy.float64) for metric in measured.metrics},
        },
    ),
    "checkpoint": (Checkpoint, lambda checkpoint: {}),
    "outcome": (
        Outcome,
        lambda outcome: {
            "seen_accuracy": score_or_none(outcome.seen_accuracy),
            "unseen_accuracy": score_or_none(outcome.unseen_accuracy),
        },
    ),
    "log_line": (LogLine, lambda line: {}),
}


def to_event(event: event_pb2.Event) -> Event | None:
    """None for a kind of fact that this version does not know, and for attention maps and projections."""
    time, name = to_datetime(event.time), event.WhichOneof("fact")
    if name is None or name not in _FACTS:
        return None
    kind, others_of = _FACTS[name]
    message = getattr(event, name)
    return _read(
        kind, message, trial=event.trial, position=event.position, attempt=event.attempt, step=event.step, time=time,
        **others_of(message),
    )  # fmt: skip


def to_progress(progress: event_pb2.TrialProgress) -> Progress:
    loss = None if math.isnan(progress.loss) else progress.loss
    return _read(Progress, progress, loss=loss, seconds_left=progress.seconds_left or None)


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
        positions = numpy.array(part.real_positions or part.positions, "f8" if part.real_positions else "i8")
        maps.append(_read(AttentionMap, part, positions=positions, probabilities=probabilities))
    return maps


def to_projection(projection: event_pb2.Projection) -> Projection:
    shape = projection.depths, projection.sequences, projection.tokens, 2
    variance = numpy.array(projection.explained_variance, numpy.float64)
    return _read(
        Projection,
        projection,
        coordinates=_shaped(projection.coordinates, shape, "projections"),
        explained_variance=variance[: len(variance) // 2 * 2].reshape(-1, 2),
    )


def to_answer(answer: event_pb2.Answer) -> Answer:
    return _read(Answer, answer, wrong=list(answer.wrong))


def to_sequence_scores(scores: event_pb2.SequenceScores) -> SequenceScores:
    wrong = [_read(WrongAnswer, answer, places=list(answer.places)) for answer in scores.wrong_answers]
    return _read(SequenceScores, scores, wrong_answers=wrong)
