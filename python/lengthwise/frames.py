"""From answers of the server to pandas frames: one observation a row, with what tells the trials apart."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas

from lengthwise import queries
from lengthwise._proto import experiment_service_pb2
from lengthwise.connection import Connection
from lengthwise.events import accuracy_rows, metrics_of
from lengthwise.names import label

Trial = experiment_service_pb2.Trial

KEY = ["trial", "task", "network", "encoding", "learning_rate", "weight_seed", "data_seed"]
LOSSES = ["step", "loss", "accuracy", "gradient_norm", "length", "mean_loss"]
ACCURACIES = ["step", "final", "length", "seen", "accuracy", "loss", "sequences", "training_seconds"]
ANSWER_ERRORS = [
    "length", "answers", "wrong_by_place", "answers_by_wrong_digits", "first_wrong_with_carry",
    "first_wrong_without_carry",
]  # fmt: skip
TRIALS = [
    "index", "state", "reason", "attempts", "worker", "seen_accuracy", "unseen_accuracy", "training_seconds",
    "create_time", "start_time", "end_time", "seen_loss", "unseen_loss",
]  # fmt: skip

SUMMED_UP = ["unseen_accuracy", "seen_accuracy", "training_accuracy"]
# Of tasks that are compared by loss.
SUMMED_UP_LOSSES = ["unseen_loss", "seen_loss"]
# Columns of `summary` for a first look, with those of the tasks' measure.
FIRST_LOOK = ["task", "network", "encoding", "learning_rate", "succeeded"]
ACCURACIES_OF_CELL = ["seen_accuracy", "unseen_accuracy", "unseen_accuracy_deviation"]
LOSSES_OF_CELL = ["seen_loss", "unseen_loss", "unseen_loss_low", "unseen_loss_high"]


def row_html(facts: dict[str, Any]) -> str:
    """A table of one row for notebooks; None is an empty cell, and texts are escaped."""
    return pandas.DataFrame([{name: "" if value is None else value for name, value in facts.items()}]).to_html(index=False)


def key(trial: Trial) -> list[Any]:
    """Its columns KEY."""
    of = trial.specification
    names = label(of.task), label(of.network), label(of.encoding)
    return [trial.name, *names, of.learning_rate, of.weight_seed, of.data_seed]


def losses(connection: Connection, name: str, trials: Sequence[Trial], max_points: int) -> pandas.DataFrame:
    """Loss curves. `name` is an experiment or a trial, and `trials` are its trials."""
    keys = {trial.name: key(trial) for trial in trials}
    rows: list[list[Any]] = []
    for curve in queries.loss_curves(connection, name, list(keys), max_points):
        points = curve.points
        columns = points.steps, points.losses, points.accuracies, points.gradient_norms, points.lengths, points.mean_losses
        rows += [[*keys[curve.trial], *values] for values in zip(*columns)]
    return pandas.DataFrame(rows, columns=KEY + LOSSES)


def accuracies(connection: Connection, name: str, trials: Sequence[Trial], intervals: bool) -> pandas.DataFrame:
    """Accuracies by length; other metrics have a column each after ACCURACIES. `name` and `trials` as for losses."""
    keys = {trial.name: (key(trial), trial.specification.evaluation.seen_up_to) for trial in trials}
    found = queries.length_accuracies(connection, name, list(keys), intervals)
    metrics = metrics_of(one.accuracies for one in found)
    rows: list[list[Any]] = []
    for one in found:
        of_trial, seen_up_to = keys[one.trial]
        rows += [[*of_trial, *row] for row in accuracy_rows(one.step, one.accuracies, seen_up_to, metrics)]
    return pandas.DataFrame(rows, columns=KEY + ACCURACIES + metrics)


def seconds_to_accuracy(
    connection: Connection, name: str, all_trials: Sequence[Trial], accuracy: float
) -> pandas.DataFrame:
    """One row a trial. `name` as for losses."""
    found = pandas.DataFrame([key(trial) for trial in all_trials], columns=KEY)
    measured = queries.length_accuracies(connection, name, [trial.name for trial in all_trials], intervals=True)
    seconds = queries.seconds_to(measured, lambda one: one.HasField("unseen_accuracy") and one.unseen_accuracy > accuracy)
    found["seconds"] = found["trial"].map(seconds).astype(float)
    return found


def answer_errors(connection: Connection, name: str, trials: Sequence[Trial]) -> pandas.DataFrame:
    """Errors of text answers. A later evaluation replaces an earlier one. `name` and `trials` as for losses."""
    keys = {trial.name: key(trial) for trial in trials}
    rows: dict[tuple[str, int], list[Any]] = {}
    for event in queries.analyses(connection, name):
        if not event.HasField("answer_errors") or event.trial not in keys:
            continue
        errors = event.answer_errors
        rows[event.trial, errors.length] = [
            *keys[event.trial], errors.length, errors.answers, list(errors.wrong_by_place),
            list(errors.answers_by_wrong_digits), errors.first_wrong_with_carry, errors.first_wrong_without_carry,
        ]  # fmt: skip
    return pandas.DataFrame(list(rows.values()), columns=KEY + ANSWER_ERRORS)


def _mean_losses(connection: Connection, name: str, trials: Sequence[str]) -> dict[str, tuple[float | None, ...]]:
    """Mean final losses over the lengths up to seen_up_to, and over the longer ones, by trial; empty unless the task is
    compared by loss.
    """
    if not queries.summary(connection, name).heading.compared_by_loss:
        return {}
    measured = queries.length_accuracies(connection, name, trials)
    return {one.trial: tuple(queries.mean(one.accuracies, side, True) for side in ("seen", "unseen")) for one in measured}


def trials(connection: Connection, name: str, rows: Sequence[Sequence[Any]]) -> pandas.DataFrame:
    """One row a trial: of each the columns up to "end_time". `name` as for losses."""
    losses = _mean_losses(connection, name, [row[0] for row in rows])
    return pandas.DataFrame([[*row, *losses.get(row[0], (None, None))] for row in rows], columns=KEY + TRIALS)


def summary(response: experiment_service_pb2.SummarizeExperimentResponse) -> pandas.DataFrame:
    """One row a cell: trials that differ only in seeds."""
    columns = list(_cell(experiment_service_pb2.SummarizeExperimentResponse.Cell()))
    return pandas.DataFrame([_cell(cell) for cell in response.cells], columns=columns)


def _cell(cell: experiment_service_pb2.SummarizeExperimentResponse.Cell) -> dict[str, Any]:
    counts = cell.trials
    row: dict[str, Any] = {name: getattr(cell, name) for name in ("task", "network", "encoding", "learning_rate")}
    row |= {name: getattr(counts, name) for name in ("succeeded", "failed", "cancelled")}
    row["unended"] = queries.unended_trials(counts)
    for name in SUMMED_UP:
        one = getattr(cell, name)
        row[name] = one.mean if one.trials else None
        row[f"{name}_deviation"] = one.deviation if one.trials > 1 else None
        row |= {f"{name}_{end}": getattr(one, end) if one.trials else None for end in ("min", "max")}
    for name in ("training_seconds", "steps_per_second"):
        row[name] = getattr(cell, name).mean if getattr(cell, name).trials else None
    row["best_trial"] = cell.best_trial
    for name in SUMMED_UP_LOSSES:
        one = getattr(cell, name)
        row[name] = one.median if one.trials else None
        row |= {f"{name}_{end}": getattr(one, end) if one.trials else None for end in ("low", "high")}
    return row
