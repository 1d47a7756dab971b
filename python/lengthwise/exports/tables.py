"""Tidy tables for spreadsheets, pandas and R: one observation a row, and with each what tells the trials apart.

So no table needs another.
"""
from __future__ import annotations

import io
import json
from collections.abc import Iterable
from typing import BinaryIO

import numpy
from google.protobuf.timestamp_pb2 import Timestamp

from lengthwise._proto import event_pb2, experiment_service_pb2
from lengthwise.events import accuracy_rows, metrics_of, name_of, score_or_none, to_datetime
from lengthwise.exports.exporter import Exporter
from lengthwise.names import label
from lengthwise.rendering import Value, write_csv_rows
from lengthwise.trial_history import TrialHistory, fetch_history

# Columns and what they mean. The first ones of every table: the trial and its point of the grid.
TRIAL_KEY = {
    "trial": "the trial's name, unique on its server",
    "task": "label of the task",
    "network": "label of the network",
    "encoding": "label of the positional encoding",
    "learning_rate": "learning rate",
    "weight_seed": "seed of the initial weights",
    "data_seed": "seed of the training samples",
}
# One row a trial: state, scores, times.
TRIALS = {
    "index": "place in the grid, from 0",
    "state": "QUEUED, RUNNING, SUCCEEDED, FAILED or CANCELLED",
    "reason": "why it is in this state",
    "attempts": "leases so far",
    "worker": "the last worker",
    "steps": "training steps of the specification",
    "training_steps": "steps that were made; fewer where a target stopped training",
    "stop_reason": "why training stopped before the last step",
    "seen_up_to": "the longest input length that training had",
    "seen_accuracy": "mean final accuracy over lengths up to seen_up_to, 0 to 1",
    "unseen_accuracy": "mean final accuracy over lengths above seen_up_to, 0 to 1",
    "training_accuracy": "final accuracy on examples of the trial's own training set, 0 to 1; empty unless "
    "evaluation.training_examples asks for it",
    "training_seconds": "wall-clock seconds of training, over all attempts",
    "evaluation_seconds": "wall-clock seconds of the last evaluation",
    "device": "cpu, or the GPU's name",
    "program_version": "version of the worker",
    "create_time": "when it was submitted, UTC",
    "start_time": "when it was first leased, UTC",
    "end_time": "when it ended, UTC",
    "validation_accuracy": "mean accuracy over the lengths of evaluation.validation, 0 to 1; empty without it",
    "validation_loss": "mean loss over them",
    "instruction_set": "of the worker's processor",
    "threads": "that trained it",
    "source_revision": "of the worker",
}
LOSSES = {
    "step": "training steps done",
    "loss": "mean over the step's batch, before its update: soft-max cross-entropy, nats; of a regression the mean squared "
    "error",
    "accuracy": "on the step's batch, 0 to 1: share of output tokens that are right; of a regression of outputs that are "
    "close to their targets",
    "gradient_norm": "norm of the gradient before clipping",
    "length": "input length of the step's batch",
    "time": "when the point was sent, UTC",
    "mean_loss": "mean of the losses of all steps since the previous point",
}
ACCURACIES = {
    "step": "training steps done",
    "final": "true: the full evaluation after training; false: one during it",
    "length": "input length, or what the task has in its place: scale, vectors, digits",
    "seen": "true: not above evaluation.seen_up_to, by default the longest length in training",
    "accuracy": "over the length's sequences, 0 to 1: what the task's catalogue entry says, such as token accuracy, or "
    "exact match of text; of a regression the share of sequences whose outputs are all close to their targets",
    "loss": "mean over them: soft-max cross-entropy, nats; of a regression the mean squared error",
    "sequences": "sequences evaluated of this length; in histories of version 0.2.0, the most at any length",
    "training_seconds": "wall-clock seconds of training up to this step",
}
# One row for each standard deviation of the noise.
NOISE = {
    "deviation": "standard deviation of the Gaussian noise on the token embeddings (evaluation.embedding_noise)",
    "accuracy": "final accuracy under this noise, mean over the lengths, 0 to 1",
    "loss": "final loss under this noise, mean over the lengths",
}

# The largest integer that every tool reads as a number.
_LARGEST_INTEGER = 2**63 - 1


def short_floats(values: Iterable[float]) -> list[float]:
    """Converts float32 to the doubles with the fewest digits that read back as the same float32."""
    return [float(text) for text in numpy.fromiter(values, numpy.float32).astype(str)]


def _seed(seed: int) -> Value:
    return str(seed) if seed > _LARGEST_INTEGER else seed


def _utc_text(time: Timestamp) -> str:
    whole = to_datetime(Timestamp(seconds=time.seconds))
    return f"{whole:%Y-%m-%dT%H:%M:%S}.{time.nanos // 1_000_000:03}Z"


def trial_key(trial: experiment_service_pb2.Trial) -> list[Value]:
    """The values of TRIAL_KEY."""
    specification = trial.specification
    return [
        trial.name, label(specification.task), label(specification.network), label(specification.encoding),
        specification.learning_rate, _seed(specification.weight_seed), _seed(specification.data_seed),
    ]  # fmt: skip


def _last(history: TrialHistory, name: str) -> float | None:
    """Of the last full evaluation that measured it."""
    finals = [one.length_accuracies for one in history.evaluations if one.length_accuracies.final]
    return next((getattr(one, name) for one in reversed(finals) if one.HasField(name)), None)


def trial_row(trial: experiment_service_pb2.Trial, history: TrialHistory) -> list[Value]:
    """The values of TRIALS."""
    specification, outcome, provenance = trial.specification, trial.outcome, trial.outcome.provenance
    known: dict[str, Value] = {
        "state": name_of(event_pb2.TrialState.DESCRIPTOR, trial.state),
        "attempts": trial.attempt,
        "steps": specification.training.steps,
        "seen_up_to": specification.evaluation.seen_up_to,
    }
    known |= {name: getattr(trial, name) for name in ("index", "reason", "worker")}
    known |= {name: _last(history, name) for name in ("training_accuracy", "validation_accuracy", "validation_loss")}
    times = [name for name in ("create_time", "start_time", "end_time") if trial.HasField(name)]
    known |= {name: _utc_text(getattr(trial, name)) for name in times}
    known |= {name: getattr(provenance, name) or None for name in ("instruction_set", "threads", "source_revision")}
    if trial.HasField("outcome"):
        names = "training_steps", "stop_reason", "training_seconds", "evaluation_seconds"
        known |= {name: getattr(outcome, name) for name in names}
        known |= {name: score_or_none(getattr(outcome, name)) for name in ("seen_accuracy", "unseen_accuracy")}
        known |= {name: getattr(provenance, name) for name in ("device", "program_version")}
    return [known.get(name) for name in TRIALS]


class CsvExporter(Exporter):
    """trials.csv, loss_curves.csv, length_accuracies.csv, noise_accuracies.csv if a trial was evaluated under noise, and
    columns.json, which explains their columns.
    """

    def begin(self) -> None:
        self._trials = self._open_table("trials.csv", TRIALS)
        self._losses = self._open_table("loss_curves.csv", LOSSES)
        self._noise: BinaryIO | None = None
        # Written last: their columns are known when all of them are.
        self._evaluations: list[tuple[experiment_service_pb2.Trial, list[event_pb2.Event]]] = []

    def _open_table(self, name: str, columns: dict[str, str]) -> BinaryIO:
        file = self.open(name)
        _write_rows(file, [[*TRIAL_KEY, *columns]])
        return file

    def add_trial(self, trial: experiment_service_pb2.Trial) -> None:
        history = fetch_history(self.connection, trial.name)
        key = trial_key(trial)
        _write_rows(self._trials, [[*key, *trial_row(trial, history)]])
        points = history.points
        columns = zip(
            points.steps, short_floats(points.losses), short_floats(points.accuracies), short_floats(points.gradient_norms),
            points.lengths, map(_utc_text, history.times), short_floats(points.mean_losses), strict=True,
        )  # fmt: skip
        _write_rows(self._losses, ([*key, *row] for row in columns))
        noise = history.noise_accuracies
        if noise.deviations:
            if self._noise is None:
                self._noise = self._open_table("noise_accuracies.csv", NOISE)
            of_noise = zip(noise.deviations, noise.accuracies, noise.losses, strict=True)
            _write_rows(self._noise, ([*key, *row] for row in of_noise))
        self._evaluations.append((trial, history.evaluations))

    def finish(self) -> None:
        metrics = metrics_of(one.length_accuracies for _, of_trial in self._evaluations for one in of_trial)
        columns = ACCURACIES | {
            metric: f"another measure of the same sequences: {metric.replace('_', ' ')}, a fraction and not a percentage"
            for metric in metrics
        }
        file = self._open_table("length_accuracies.csv", columns)
        for trial, evaluations in self._evaluations:
            key = trial_key(trial)
            seen_up_to = trial.specification.evaluation.seen_up_to
            for one in evaluations:
                rows = accuracy_rows(one.step, one.length_accuracies, seen_up_to, metrics)
                _write_rows(file, ([*key, *row] for row in rows))
        meanings = {
            "trials.csv": TRIAL_KEY | TRIALS,
            "loss_curves.csv": TRIAL_KEY | LOSSES,
            "length_accuracies.csv": TRIAL_KEY | columns,
        }
        if self._noise is not None:
            meanings["noise_accuracies.csv"] = TRIAL_KEY | NOISE
        self.output.write("columns.json", json.dumps(meanings, indent=1, ensure_ascii=False) + "\n")


def _write_rows(file: BinaryIO, rows: Iterable[list[Value]]) -> None:
    text = io.StringIO()
    write_csv_rows(rows, text)
    file.write(text.getvalue().encode())
