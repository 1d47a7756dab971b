"""One JSON document with everything measured:

  {"format": "lengthwise.export.1", "experiment": NAME, "owner": ..., "specification": {...},
   "trials": [{"trial": NAME, ..., the columns of TRIAL_KEY and TRIALS (tables.py), "specification": {...},
               "loss_curve": {"steps": [...], "losses": [...], ...},
               "evaluations": [{"step": 200, "final": true, "lengths": [...], ..., "metrics": {"digits_accuracy": [...]}}],
               "sequence_scores": [{"length": 5, "accuracies": [...], "losses": [...],
                                    "wrong_answers": [{"sequence": 3, "places": [0, 4], "carry_into_first": true}, ...]},
                                   ...],
               "noise_accuracies": {"deviations": [...], "accuracies": [...], "losses": [...]}},
              ...]}

Sequence scores and noise accuracies are there where they were asked for, wrong answers are of text. Specifications are as
protobuf's JSON writes them, with the names of the .proto files; what is not a number is null.
"""
from __future__ import annotations

import json
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from lengthwise._proto import event_pb2, experiment_service_pb2
from lengthwise.events import sequence_counts
from lengthwise.exports.exporter import Exporter
from lengthwise.exports.tables import TRIAL_KEY, TRIALS, short_floats, trial_key, trial_row
from lengthwise.message_json import as_dictionary
from lengthwise.rendering import finite
from lengthwise.trial_history import fetch_history


class JsonExporter(Exporter):
    def begin(self) -> None:
        experiment = self.subject.experiment
        head = {
            "format": "lengthwise.export.1",
            "experiment": experiment.name,
            "owner": experiment.owner,
            "specification": as_dictionary(experiment.specification),
            "trials": [],
        }
        self._file = self.open()
        # The trials come one by one, and the brackets last.
        self._file.write(_text(head).removesuffix("]}").encode())
        self._separator = "\n"

    def add_trial(self, trial: experiment_service_pb2.Trial) -> None:
        history = fetch_history(self.connection, trial.name)
        document: dict[str, Any] = {
            **dict(zip(TRIAL_KEY, trial_key(trial))),
            **dict(zip(TRIALS, trial_row(trial, history))),
            "specification": as_dictionary(trial.specification),
            "loss_curve": _columns(
                history.points, "steps", "losses", "accuracies", "gradient_norms", "lengths", "mean_losses"
            ),
            "evaluations": [_evaluation(one) for one in history.evaluations],
        }
        if history.sequence_scores:
            document["sequence_scores"] = [_sequence_scores(scores) for scores in history.sequence_scores.values()]
        noise = history.noise_accuracies
        if noise.deviations:
            document["noise_accuracies"] = _columns(noise, "deviations", "accuracies", "losses")
        self._file.write((self._separator + _text(document)).encode())
        self._separator = ",\n"

    def finish(self) -> None:
        self._file.write(b"\n]}\n")


def _columns(message: Message, *names: str) -> dict[str, Any]:
    """Several numbers of each of these fields."""
    fields = message.DESCRIPTOR.fields_by_name
    return {
        name: (short_floats if fields[name].type == FieldDescriptor.TYPE_FLOAT else list)(getattr(message, name))
        for name in names
    }


def _evaluation(evaluation: event_pb2.Event) -> dict[str, Any]:
    measured = evaluation.length_accuracies
    return {
        "step": evaluation.step,
        "final": measured.final,
        "sequences": measured.sequences,
        "sequence_counts": sequence_counts(measured),
        "training_seconds": measured.training_seconds,
        **_columns(measured, "lengths", "accuracies", "losses"),
        "metrics": {metric.name: list(metric.values) for metric in measured.metrics},
    }


def _sequence_scores(scores: event_pb2.SequenceScores) -> dict[str, Any]:
    document = {"length": scores.length, **_columns(scores, "accuracies", "losses")}
    if scores.wrong_answers:
        document["wrong_answers"] = [
            {"sequence": answer.sequence, "places": list(answer.places), "carry_into_first": answer.carry_into_first}
            for answer in scores.wrong_answers
        ]
    return document


def _text(document: dict[str, Any]) -> str:
    return json.dumps(finite(document), ensure_ascii=False, separators=(",", ":"))
