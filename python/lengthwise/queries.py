"""Queries of the server's measurements, one function each. `name` is an experiment's or a trial's full name."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import closing
from typing import TypeVar

import grpc

from lengthwise._proto import event_pb2, experiment_service_pb2
from lengthwise.connection import Connection
from lengthwise.errors import LengthwiseError, damaged

Summary = experiment_service_pb2.SummarizeExperimentResponse
Evaluation = experiment_service_pb2.QueryLengthAccuraciesResponse.Evaluation
LossCurve = experiment_service_pb2.QueryLossCurvesResponse.Curve

OfTrial = TypeVar("OfTrial", Evaluation, LossCurve)
# Of a trial or a configuration: the highest is chosen.
Rank = tuple[float, float, float]


def check_columns(problem: str, *columns: Sized) -> None:
    """DATA_LOSS for columns of different lengths: what reads them goes through all at once."""
    if len({len(column) for column in columns}) > 1:
        raise damaged(problem)


def check_evaluation(measured: event_pb2.LengthAccuracies, trial: str) -> None:
    # Earlier releases have no losses, or no numbers of sequences.
    columns = [measured.losses or measured.lengths, measured.sequence_counts or measured.lengths, measured.accuracies]
    columns += [metric.values for metric in measured.metrics]
    check_columns(f"an evaluation of {trial} is damaged", measured.lengths, *columns)


def check_points(points: event_pb2.TrainingPoints, trial: str) -> None:
    """Adds the mean losses that earlier releases do not have."""
    if len(points.mean_losses) == 0:
        points.mean_losses[:] = points.losses
    columns = points.losses, points.mean_losses, points.accuracies, points.gradient_norms, points.lengths
    check_columns(f"the loss curve of {trial} is damaged", points.steps, *columns)


def _per_trial(trials: Sequence[str] | None, name: str, query: Callable[[str], Iterable[OfTrial]]) -> list[OfTrial]:
    """What the answer for `name` has of `trials`, None: all. If it is too large for the server, each trial is asked for."""
    try:
        answers = [query(name)]
    except LengthwiseError as error:
        if error.code is not grpc.StatusCode.RESOURCE_EXHAUSTED or trials is None or len(trials) < 2:
            raise
        answers = [query(one) for one in trials]
    wanted = trials and set(trials)
    return [one for answer in answers for one in answer if wanted is None or one.trial in wanted]


def summary(connection: Connection, experiment: str, with_lengths: bool = False, select: str = "") -> Summary:
    """Statistics over the seeds of each cell; `with_lengths`: also at each length. `select`: "seen", "unseen" or, for the
    specification's rule, empty.
    """
    request = experiment_service_pb2.SummarizeExperimentRequest(
        name=experiment, omit_lengths=not with_lengths, select=select
    )
    return connection.call(request, Summary)


def unended_trials(counts: experiment_service_pb2.TrialCounts) -> int:
    return counts.queued + counts.running


def ended_trials(counts: experiment_service_pb2.TrialCounts) -> int:
    return counts.succeeded + counts.failed + counts.cancelled


def rank(score: float, loss: float, rate: float = 0) -> Rank:
    """By the rule of Evaluation.select: the highest score, then the lowest loss, then the lowest learning rate."""
    return score, -math.inf if math.isnan(loss) else -loss, -rate


def length_accuracies(
    connection: Connection, name: str, trials: Sequence[str] | None, intervals: bool = False
) -> list[Evaluation]:
    """The final evaluations of `trials`, None: of all of `name`; with `intervals` also those made during training."""

    def query(one: str) -> Iterable[Evaluation]:
        request = experiment_service_pb2.QueryLengthAccuraciesRequest(name=one, include_intervals=intervals)
        return connection.call(request, experiment_service_pb2.QueryLengthAccuraciesResponse).evaluations

    found = _per_trial(trials, name, query)
    for one in found:
        check_evaluation(one.accuracies, one.trial)
    return found


def mean(measured: event_pb2.LengthAccuracies, side: str, by_loss: bool) -> float | None:
    """The server's mean accuracy or loss over the "seen" or the "unseen" lengths; None without such lengths."""
    field = f"{side}_{'loss' if by_loss else 'accuracy'}"
    value: float = getattr(measured, field)
    return value if measured.HasField(field) else None


def has_time(step: int, measured: event_pb2.LengthAccuracies) -> bool:
    """False if it is not known how long training had taken: an attempt that resumed and trained no step does not know."""
    return measured.training_seconds > 0 or step == 0


def seconds_to(evaluations: Iterable[Evaluation], reached: Callable[[event_pb2.LengthAccuracies], bool]) -> dict[str, float]:
    """By trial, the seconds of training at the first evaluation of which `reached` is true. Those without a time do not
    count.
    """
    found: dict[str, float] = {}
    for one in evaluations:
        if has_time(one.step, one.accuracies) and reached(one.accuracies):
            found[one.trial] = min(found.get(one.trial, math.inf), one.accuracies.training_seconds)
    return found


def loss_curves(connection: Connection, name: str, trials: Sequence[str], max_points: int) -> list[LossCurve]:
    """Loss curves of `trials`, some of those of `name`, with at most `max_points` points each."""

    def query(one: str) -> Iterable[LossCurve]:
        request = experiment_service_pb2.QueryLossCurvesRequest(name=one, max_points=max_points)
        return connection.call(request, experiment_service_pb2.QueryLossCurvesResponse).curves

    found = _per_trial(trials, name, query)
    for one in found:
        check_points(one.points, one.trial)
    return found


def attention_maps(connection: Connection, trial: str, length: int = 0) -> Iterator[event_pb2.AttentionMap]:
    """Maps of a trial in their parts; `length` other than 0: those of one input length."""
    request = experiment_service_pb2.QueryAttentionMapsRequest(name=trial, length=length)
    return connection.stream(request, event_pb2.AttentionMap)


def projections(connection: Connection, trial: str) -> Iterator[event_pb2.Projection]:
    return connection.stream(experiment_service_pb2.QueryProjectionsRequest(name=trial), event_pb2.Projection)


def analyses(connection: Connection, name: str) -> Iterator[event_pb2.Event]:
    """Scores of single sequences, accuracies under noise, and what is wrong with answers."""
    return connection.stream(experiment_service_pb2.QueryAnalysesRequest(name=name), event_pb2.Event)


def stored_events(connection: Connection, name: str, **options: bool) -> Iterator[event_pb2.Event]:
    """The log so far. `options`: fields of WatchExperimentRequest."""
    request = experiment_service_pb2.WatchExperimentRequest(name=name, **options)
    answers = connection.stream(request, experiment_service_pb2.WatchExperimentResponse)
    with closing(answers):
        for answer in answers:
            yield from answer.events
            if answer.caught_up:
                return  # what comes from now on is not asked for
