"""The newest stored model of each trial, byte for byte as the server has it."""
from __future__ import annotations

from lengthwise._proto import experiment_service_pb2
from lengthwise.exports.exporter import Exporter
from lengthwise.models import download_model
from lengthwise.names import short_name


class SafetensorsExporter(Exporter):
    """Exports one model file per trial with a stored model, "{trial}.safetensors" for an experiment."""

    def add_trial(self, trial: experiment_service_pb2.Trial) -> None:
        name = f"{short_name(trial.name)}.safetensors" if self.subject.whole_experiment else ""
        with self.output.open(name) as file:
            for part in download_model(self.connection, trial.name):
                file.write(part)
