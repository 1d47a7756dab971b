"""Event files for TensorBoard: one run, which is a directory, for each trial, with the scalars
  training/loss, training/mean_loss, training/accuracy, training/gradient_norm: each point of the loss curve
  evaluation/seen_accuracy, evaluation/unseen_accuracy: each evaluation in training
  evaluation/accuracy_at_length/0010, ...: each of its lengths
  final/seen_accuracy, final/unseen_accuracy: after the last step
  final/accuracy_by_length, final/loss_by_length, whose "step" is the length
  evaluation/M_at_length/0010, final/M_by_length of each other metric M, such as digits_accuracy
and with its point of the grid as hyper-parameters.
"""
from __future__ import annotations

from typing import BinaryIO

from google.protobuf.timestamp_pb2 import Timestamp

from lengthwise._proto import event_pb2, experiment_service_pb2
from lengthwise.errors import LengthwiseError
from lengthwise.exports.exporter import Exporter
from lengthwise.names import label, short_name
from lengthwise.trial_history import fetch_history

try:
    from tensorboard.compat.proto import event_pb2 as tensorboard_event_pb2  # type: ignore[import-untyped]
    from tensorboard.compat.proto import summary_pb2
    from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2  # type: ignore[import-untyped]
    from tensorboard.summary.writer.record_writer import RecordWriter  # type: ignore[import-untyped]
except ImportError as missing:
    raise LengthwiseError(f"this export needs TensorBoard ({missing}); run `pip install tensorboard`") from missing


def _seconds(time: Timestamp) -> float:
    return time.seconds + 1e-9 * time.nanos


class _EventFile:
    """Written to a given file: TensorBoard's EventFileWriter names one after the time, the host and the process."""

    def __init__(self, file: BinaryIO) -> None:
        self._writer = RecordWriter(file)
        self._write(tensorboard_event_pb2.Event(file_version="brain.Event:2"))

    def scalar(self, tag: str, step: int, time: float, value: float) -> None:
        summary = summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag=tag, simple_value=value)])
        self._write(tensorboard_event_pb2.Event(wall_time=time, step=step, summary=summary))

    def session(self, tag: str, time: float, data: plugin_data_pb2.HParamsPluginData) -> None:
        data.version = metadata.PLUGIN_DATA_VERSION
        plugin_data = summary_pb2.SummaryMetadata.PluginData(
            plugin_name=metadata.PLUGIN_NAME, content=data.SerializeToString(deterministic=True)
        )
        value = summary_pb2.Summary.Value(
            tag=tag, metadata=summary_pb2.SummaryMetadata(plugin_data=plugin_data), tensor=metadata.NULL_TENSOR
        )
        self._write(tensorboard_event_pb2.Event(wall_time=time, summary=summary_pb2.Summary(value=[value])))

    def _write(self, event: tensorboard_event_pb2.Event) -> None:
        self._writer.write(event.SerializeToString(deterministic=True))


class TensorboardExporter(Exporter):
    def add_trial(self, trial: experiment_service_pb2.Trial) -> None:
        history = fetch_history(self.connection, trial.name)
        name = f"{short_name(trial.name)}/events.out.tfevents.{trial.create_time.seconds:010}.lengthwise"
        with self.output.open(name) as file:
            events = _EventFile(file)
            events.session(metadata.SESSION_START_INFO_TAG, _seconds(trial.start_time), _session_start(trial))
            points = history.points
            for i, (step, time) in enumerate(zip(points.steps, map(_seconds, history.times), strict=True)):
                events.scalar("training/loss", step, time, points.losses[i])
                events.scalar("training/mean_loss", step, time, points.mean_losses[i])
                events.scalar("training/accuracy", step, time, points.accuracies[i])
                events.scalar("training/gradient_norm", step, time, points.gradient_norms[i])
            for evaluation in history.evaluations:
                _write_evaluation(evaluation, events)
            if trial.HasField("end_time"):
                events.session(metadata.SESSION_END_INFO_TAG, _seconds(trial.end_time), _session_end(trial))


def _session_start(trial: experiment_service_pb2.Trial) -> plugin_data_pb2.HParamsPluginData:
    data = plugin_data_pb2.HParamsPluginData()
    start = data.session_start_info
    start.group_name = short_name(trial.name)
    start.start_time_secs = _seconds(trial.start_time)
    specification = trial.specification
    for name in ("task", "network", "encoding"):
        start.hparams[name].string_value = label(getattr(specification, name))
    for name in ("learning_rate", "weight_seed", "data_seed"):
        start.hparams[name].number_value = getattr(specification, name)
    for name in ("steps", "batch_size"):
        start.hparams[name].number_value = getattr(specification.training, name)
    return data


def _session_end(trial: experiment_service_pb2.Trial) -> plugin_data_pb2.HParamsPluginData:
    data = plugin_data_pb2.HParamsPluginData()
    succeeded = trial.state == event_pb2.SUCCEEDED
    data.session_end_info.status = api_pb2.STATUS_SUCCESS if succeeded else api_pb2.STATUS_FAILURE
    data.session_end_info.end_time_secs = _seconds(trial.end_time)
    return data


def _write_evaluation(evaluation: event_pb2.Event, events: _EventFile) -> None:
    measured = evaluation.length_accuracies
    time = _seconds(evaluation.time)
    group = "final" if measured.final else "evaluation"
    for name in ("seen_accuracy", "unseen_accuracy"):
        if measured.HasField(name):
            events.scalar(f"{group}/{name}", evaluation.step, time, getattr(measured, name))
    for i, length in enumerate(measured.lengths):
        values = {metric.name: metric.values[i] for metric in measured.metrics} | {"accuracy": measured.accuracies[i]}
        if measured.final and i < len(measured.losses):
            values["loss"] = measured.losses[i]
        for name, value in values.items():
            if measured.final:
                events.scalar(f"final/{name}_by_length", length, time, value)
            else:
                # In the order of the lengths, which TensorBoard sorts as text.
                events.scalar(f"evaluation/{name}_at_length/{length:04}", evaluation.step, time, value)
