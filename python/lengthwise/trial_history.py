"""All measurements of a trial, from the event log: nothing averaged or left out."""
from __future__ import annotations

from dataclasses import dataclass, field

from google.protobuf.timestamp_pb2 import Timestamp

from lengthwise._proto import event_pb2
from lengthwise.connection import Connection
from lengthwise.queries import check_columns, check_evaluation, check_points, stored_events


@dataclass
class TrialHistory:
    # The whole loss curve, all columns as long as `steps`,
    points: event_pb2.TrainingPoints = field(default_factory=event_pb2.TrainingPoints)
    # and when each point was sent.
    times: list[Timestamp] = field(default_factory=list)
    # Evaluations during training in order, then the full one at the end: events with length_accuracies.
    evaluations: list[event_pb2.Event] = field(default_factory=list)
    # Scores of single sequences of the final evaluation, by ascending length, and its accuracies under noise. Empty unless
    # requested.
    sequence_scores: dict[int, event_pb2.SequenceScores] = field(default_factory=dict)
    noise_accuracies: event_pb2.NoiseAccuracies = field(default_factory=event_pb2.NoiseAccuracies)


def fetch_history(connection: Connection, trial: str) -> TrialHistory:
    """History of the trial with this name. DATA_LOSS for columns of different lengths."""
    history = TrialHistory()
    for event in stored_events(connection, trial, omit_attention_maps=True):
        if event.HasField("length_accuracies"):
            check_evaluation(event.length_accuracies, trial)
            history.evaluations.append(event)
        elif event.HasField("sequence_scores"):
            history.sequence_scores[event.sequence_scores.length] = event.sequence_scores
        elif event.HasField("noise_accuracies"):
            noise = event.noise_accuracies
            problem = f"the accuracies of {trial} under noise are damaged"
            check_columns(problem, noise.deviations, noise.accuracies, noise.losses)
            history.noise_accuracies = noise
        elif event.HasField("training_points"):
            points = event.training_points
            check_points(points, trial)
            history.points.MergeFrom(points)
            history.times += [event.time] * len(points.steps)
    history.sequence_scores = dict(sorted(history.sequence_scores.items()))
    return history
