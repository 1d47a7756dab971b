"""A static site about an experiment, for any web server: index.html with the results, the trials and the commands that train
them again; report.html and figures/; the specification, and one of each trial in trials/; logs/, models/, the tables of the
format csv, and SHA256SUMS.

All numbers of index.html are means over what length_accuracies.csv holds.
"""
from __future__ import annotations

import json
from functools import partial
from typing import Any

import grpc

from lengthwise import accuracy_table, events, queries, report
from lengthwise._proto import event_pb2, experiment_service_pb2, specification_pb2
from lengthwise.errors import LengthwiseError, UsageError
from lengthwise.exports.tables import CsvExporter
from lengthwise.message_json import as_dictionary
from lengthwise.models import download_model
from lengthwise.names import short_name
from lengthwise.plots.groups import group_trials
from lengthwise.plots.panels import choice_of
from lengthwise.queries import Summary
from lengthwise.rendering import format_exact
from lengthwise.version import __version__

Trial = experiment_service_pb2.Trial
_SUMS = "SHA256SUMS"
_STATE_NAME = partial(events.name_of, event_pb2.TrialState.DESCRIPTOR)


def alone(experiment: str, trial: Trial) -> dict[str, Any]:
    """A specification of this trial alone, every default filled in: it trains the same model."""
    one = trial.specification
    return as_dictionary(
        specification_pb2.ExperimentSpecification(
            name=experiment,
            tasks=[one.task],
            networks=[one.network],
            encodings=[one.encoding],
            learning_rates=[one.learning_rate],
            weight_seeds=[one.weight_seed],
            data_seeds=[one.data_seed],
            training=one.training,
            evaluation=one.evaluation,
            keep=one.keep,
        )
    )


class SiteExporter(CsvExporter):
    def begin(self) -> None:
        if not self.subject.whole_experiment:
            raise UsageError("a site is about a whole experiment; name it without a trial")
        super().begin()

    def add_trial(self, trial: Trial) -> None:
        super().add_trial(trial)
        name = short_name(trial.name)
        if not trial.specification.evaluated_trial:
            self._write_json(f"trials/{name}.json", alone(self.subject.experiment.specification.name, trial))
        self.output.write(f"logs/{name}.txt", "".join(f"{line}\n" for line in self._log(trial)))
        try:
            with self.output.open(f"models/{name}.safetensors") as file:
                for part in download_model(self.connection, trial.name):
                    file.write(part)
        except LengthwiseError as error:
            if error.code is not grpc.StatusCode.NOT_FOUND:
                raise

    def _write_json(self, name: str, value: object) -> None:
        self.output.write(name, json.dumps(value, indent=1, ensure_ascii=False) + "\n")

    def _log(self, trial: Trial) -> list[str]:
        """What happened to the trial, and what its worker wrote."""
        lines = []
        for event in queries.stored_events(self.connection, trial.name, log_only=True):
            change, text = event.state_change, event.log_line.text
            if event.HasField("state_change"):
                text = " ".join(filter(None, [_STATE_NAME(change.to), change.worker, change.reason]))
            lines.append(f"{events.to_datetime(event.time):%Y-%m-%d %H:%M:%S} step {event.step}: {text}")
        return lines

    def finish(self) -> None:
        super().finish()
        data = report.fetch(self.connection, self.subject.experiment, select=self.select)
        self._write_json("specification.json", as_dictionary(data.experiment.specification))
        # The same results give the same files.
        self.output.write("report.html", report.render(data, dated=False))
        figures, undrawn = report.figure_files(data.plotted)
        for name, (picture, numbers) in figures.items():
            self.output.write(f"figures/{name}.svg", picture)
            self.output.write(f"figures/{name}.csv", numbers)
        # All that SHA256SUMS and the page name is on the disk.
        self.close()
        sums = {name: self.output.sha256(name) for name in self.output.files()}
        by_loss = data.summary.heading.compared_by_loss
        measured = ((trial.name, one.length_accuracies) for trial, of_trial in self._evaluations for one in of_trial)
        finals = {name: one for name, one in measured if one.final}
        page = report.template("site.html").render(
            name=short_name(self.subject.experiment.name),
            description=data.experiment.specification.description,
            version=__version__,
            measure="loss, median" if by_loss else "accuracy in per cent, mean ± standard deviation",
            guess=data.summary.heading.random_guess,
            results=_results(data.summary),
            trials=[_row(trial, data.summary, finals, sums) for trial in self.subject.trials],
            evaluated=short_name(data.experiment.specification.evaluated_trial),
            has_files=any(
                parameter in one.parameters
                for one in (*data.experiment.specification.tasks, *data.experiment.specification.networks)
                for parameter in ("contents", "file_sha256")
            ),
            figures=list(figures),
            choice=choice_of(group_trials([data.plotted])),
            undrawn=undrawn,
            sums=sums,
        )
        self.output.write("index.html", page)
        sums["index.html"] = self.output.sha256("index.html")
        self.output.write(_SUMS, "".join(f"{digest}  {name}\n" for name, digest in sorted(sums.items())))


def _results(summary: Summary) -> list[list[str]]:
    """A row for trials that differ only in their seeds: labels, number of trials, seen and unseen scores."""
    return [
        [
            row.task, row.network, row.encoding, format_exact(row.learning_rate), str(row.trials.succeeded),
            *(accuracy_table.format_row(row, side, summary.heading.compared_by_loss) for side in ("seen", "unseen")),
        ]
        for row in accuracy_table.rows_of(summary)
    ]  # fmt: skip


def _row(
    trial: Trial, summary: Summary, finals: dict[str, event_pb2.LengthAccuracies], sums: dict[str, str]
) -> dict[str, str]:
    name, provenance = short_name(trial.name), trial.outcome.provenance

    def score(side: str) -> str:
        final, by_loss = finals.get(trial.name), summary.heading.compared_by_loss
        mean = None if final is None else queries.mean(final, side, by_loss)
        return accuracy_table.format_score(summary, mean)

    return {
        "name": name,
        "state": _STATE_NAME(trial.state),
        "seen": score("seen"),
        "unseen": score("unseen"),
        "steps": str(trial.outcome.training_steps),
        "program": " ".join(filter(None, [provenance.program_version, provenance.source_revision])),
        "machine": " ".join(filter(None, [provenance.device, provenance.instruction_set])),
        "specification": f"trials/{name}.json" if f"trials/{name}.json" in sums else "",
        "model": f"models/{name}.safetensors" if f"models/{name}.safetensors" in sums else "",
        "sha256": sums.get(f"models/{name}.safetensors", ""),
        "log": f"logs/{name}.txt",
    }
