"""Arrays for NumPy, one .npz file a trial:
  loss_steps [S], losses [S], training_accuracies [S], gradient_norms [S], training_lengths [S], mean_losses [S] since the
  previous point
  final_lengths [L], final_accuracies [L], final_losses [L]
  interval_steps [E], interval_lengths [K], interval_accuracies [E, K]
  final_M [L], interval_M [E, K] of each other metric M, such as digits_accuracy; not a number where an evaluation lacks it
  training_set_accuracy [1], of the final evaluation
  sequence_accuracies_N [sequences], sequence_losses_N [sequences], of length N
  of text wrong_answers_N [W], the sequences whose digits are not all right, wrong_answer_carries_N [W], 1 where there is a
  carry into the first wrong place, and wrong_places_N [K, 2], sequence and place of each wrong digit
  noise_deviations [D], noise_accuracies [D], noise_losses [D]
  attention_length_N [layers, heads, tokens, tokens], rows are queries, of a sample of length N, with
  attention_length_N_tokens [tokens] and attention_length_N_positions [tokens]; attention_length_N_sequence_S of further
  sequences of the length, S from 2; attention_input_K likewise, of the K-th of evaluation.attention_inputs
  projection_length_N [depths, sequences, tokens, 2] and projection_length_N_explained_variance [depths, 2]
The file omits measurements that the trial did not record.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy
from numpy.typing import NDArray

from lengthwise import queries
from lengthwise._proto import event_pb2, experiment_service_pb2
from lengthwise.errors import NotFoundError, damaged
from lengthwise.events import AttentionMap, Projection, name_of, to_attention_maps, to_projection
from lengthwise.exports.exporter import Exporter
from lengthwise.names import short_name
from lengthwise.trial_history import TrialHistory, fetch_history

Arrays = dict[str, NDArray[Any]]
_INTEGER, _FLOAT, _DOUBLE = "<i8", "<f4", "<f8"


class NpzExporter(Exporter):
    """Exports one NumPy archive per trial with measurements, "{trial}.npz" for an experiment."""

    def add_trial(self, trial: experiment_service_pb2.Trial) -> None:
        history = fetch_history(self.connection, trial.name)
        arrays: dict[str, Any] = {**_losses(history.points), **_evaluations(history.evaluations), **_scores(history)}
        maps = to_attention_maps(queries.attention_maps(self.connection, trial.name), short_name(trial.name))
        arrays.update(_attention(maps))
        for projection in queries.projections(self.connection, trial.name):
            arrays.update(_projection(to_projection(projection)))
        if not arrays:
            state = name_of(event_pb2.TrialState.DESCRIPTOR, trial.state)
            raise NotFoundError(f"{short_name(trial.name)} is {state} and has no measurements yet")
        with self.output.open(f"{short_name(trial.name)}.npz" if self.subject.whole_experiment else "") as file:
            numpy.savez(file, **arrays)


def _losses(points: event_pb2.TrainingPoints) -> Arrays:
    if not points.steps:
        return {}
    return {
        "loss_steps": numpy.array(points.steps, _INTEGER),
        "losses": numpy.array(points.losses, _FLOAT),
        "training_accuracies": numpy.array(points.accuracies, _FLOAT),
        "gradient_norms": numpy.array(points.gradient_norms, _FLOAT),
        "training_lengths": numpy.array(points.lengths, _INTEGER),
        "mean_losses": numpy.array(points.mean_losses, _FLOAT),
    }


def _evaluations(evaluations: Iterable[event_pb2.Event]) -> Arrays:
    arrays: Arrays = {}
    intervals: list[event_pb2.Event] = []
    for evaluation in evaluations:
        measured = evaluation.length_accuracies
        if not measured.final:
            # All evaluations of a trial have the same lengths.
            if not intervals or intervals[0].length_accuracies.lengths == measured.lengths:
                intervals.append(evaluation)
            continue
        arrays["final_lengths"] = numpy.array(measured.lengths, _INTEGER)
        arrays["final_accuracies"] = numpy.array(measured.accuracies, _DOUBLE)
        if len(measured.losses) == len(measured.lengths):
            arrays["final_losses"] = numpy.array(measured.losses, _DOUBLE)
        for metric in measured.metrics:
            arrays[f"final_{metric.name}"] = numpy.array(metric.values, _DOUBLE)
        if measured.HasField("training_accuracy"):
            arrays["training_set_accuracy"] = numpy.array([measured.training_accuracy], _DOUBLE)
    if not intervals:
        return arrays
    lengths = intervals[0].length_accuracies.lengths
    arrays["interval_steps"] = numpy.array([one.step for one in intervals], _INTEGER)
    arrays["interval_lengths"] = numpy.array(lengths, _INTEGER)
    arrays["interval_accuracies"] = numpy.array([one.length_accuracies.accuracies for one in intervals], _DOUBLE)
    for name in sorted({metric.name for one in intervals for metric in one.length_accuracies.metrics}):
        values = numpy.full((len(intervals), len(lengths)), numpy.nan, _DOUBLE)
        for row, one in enumerate(intervals):
            for metric in one.length_accuracies.metrics:
                if metric.name == name:
                    values[row] = metric.values
        arrays[f"interval_{name}"] = values
    return arrays


def _scores(history: TrialHistory) -> Arrays:
    arrays: Arrays = {}
    for length, scores in history.sequence_scores.items():
        arrays[f"sequence_accuracies_{length}"] = numpy.array(scores.accuracies, _FLOAT)
        arrays[f"sequence_losses_{length}"] = numpy.array(scores.losses, _FLOAT)
        answers = scores.wrong_answers
        if answers:
            places = [(answer.sequence, place) for answer in answers for place in answer.places]
            arrays[f"wrong_answers_{length}"] = numpy.array([answer.sequence for answer in answers], _INTEGER)
            arrays[f"wrong_answer_carries_{length}"] = numpy.array([answer.carry_into_first for answer in answers], _INTEGER)
            arrays[f"wrong_places_{length}"] = numpy.array(places, _INTEGER).reshape(-1, 2)
    noise = history.noise_accuracies
    if noise.deviations:
        arrays["noise_deviations"] = numpy.array(noise.deviations, _DOUBLE)
        arrays["noise_accuracies"] = numpy.array(noise.accuracies, _DOUBLE)
        arrays["noise_losses"] = numpy.array(noise.losses, _DOUBLE)
    return arrays


def _attention(maps: Iterable[AttentionMap]) -> Arrays:
    arrays: Arrays = {}
    for one in maps:
        name = f"attention_input_{one.input_number}" if one.input_number > 0 else f"attention_length_{one.length}"
        if one.sequence > 0:
            name += f"_sequence_{one.sequence + 1}"
        arrays[name] = one.probabilities
        arrays[f"{name}_tokens"] = one.tokens.astype(_INTEGER)
        arrays[f"{name}_positions"] = one.positions
    return arrays


def _projection(projection: Projection) -> Arrays:
    name = f"projection_length_{projection.length}"
    if len(projection.explained_variance) != len(projection.coordinates):
        raise damaged("a projection is damaged: its size is not that of its shape")
    return {name: projection.coordinates, f"{name}_explained_variance": projection.explained_variance}
