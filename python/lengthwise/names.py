"""Experiments and trials by what a user calls them, and the names of files after them."""
from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import grpc

from lengthwise._proto import experiment_service_pb2, specification_pb2
from lengthwise.connection import Connection
from lengthwise.errors import LengthwiseError, NotFoundError, UsageError
from lengthwise.suggestion import suggestion

_PREFIX = "experiments/"
_MOST_NAMED = 5


class Match(Enum):
    """How a name that a user gave stands for what was found. Other experiments may make a guess stand for another one."""

    # The full name; of a trial also its index.
    FULL_NAME = 1
    # The name of a specification that only one experiment has.
    ONLY_OF_SPECIFICATION = 2
    # The beginning of a name, or the newest of several experiments of a specification.
    GUESS = 3


def refused_guess(action: str, call: str) -> UsageError:
    """The error of an action that would change something. `call` is the call with the full name."""
    return UsageError(f"{action} needs the full name: {call}")


def short_name(name: str) -> str:
    """ "table1-2" of "experiments/table1-2"."""
    return name.rpartition("/")[2]


def label(component: specification_pb2.Component) -> str:
    """Name in tables."""
    return component.label or component.name


def one_or_several(names: str | Sequence[str]) -> list[str]:
    """A single name, which is a sequence of letters too, as a list of one."""
    return [names] if isinstance(names, str) else list(names)


def file_name(name: str) -> str:
    """The short name, if it is valid as a file name; LengthwiseError otherwise."""
    short = short_name(name)
    # A first dot hides a file, a first hyphen makes it an option.
    if short.isascii() and short.isprintable() and short[:1] not in ("", ".", "-"):
        return short
    raise LengthwiseError(
        f'the server names "{_escape(name)}", which no file is called after; is it a lengthwise_server?',
        code=grpc.StatusCode.FAILED_PRECONDITION,
    )


def _escape(text: str) -> str:
    """Escapes text to one line of ASCII."""
    return text.encode("unicode_escape").decode("ascii").replace('"', '\\"')


def _split(text: str) -> tuple[str, str]:
    """Experiment and trial of "experiments/E/trials/T" and its short forms; the trial is empty if there is none."""
    text = text.removeprefix(_PREFIX)
    parts = text.split("/")
    if len(parts) == 3 and parts[1] == "trials":
        return parts[0], parts[2]
    return (parts[0], parts[1]) if len(parts) == 2 else (text, "")


def names_trial(text: str) -> bool:
    """True for "EXPERIMENT/TRIAL", false for "EXPERIMENT"."""
    return bool(_split(text)[1])


def _begins(name: str, prefix: str) -> bool:
    """True if `prefix` begins `name` and cuts no number: "one-1" never stands for "one-10"."""
    return name.startswith(prefix) and not (prefix[-1:].isdigit() and name[len(prefix) :][:1].isdigit())


def list_trials(connection: Connection, experiment: str, filter: str = "") -> list[experiment_service_pb2.Trial]:
    """Trials of the experiment with this full name, in grid order."""
    found: list[experiment_service_pb2.Trial] = []
    token = ""
    while True:
        page = connection.call(
            "ExperimentService/ListTrials",
            experiment_service_pb2.ListTrialsRequest(parent=experiment, page_size=1000, page_token=token, filter=filter),
            experiment_service_pb2.ListTrialsResponse,
        )
        found += page.trials
        token = page.next_page_token
        if not token:
            return found


def find_trial(connection: Connection, text: str) -> experiment_service_pb2.Trial:
    """Finds a trial by "EXPERIMENT/TRIAL". TRIAL is its id, a unique prefix of it, or its index in the grid.

    NotFoundError if there is none. UsageError if a name is missing.
    """
    return match_trial(connection, text)[0]


def match_trial(connection: Connection, text: str) -> tuple[experiment_service_pb2.Trial, Match]:
    """find_trial, and how the text stands for the trial."""
    experiment_text, name = _split(text)
    experiment, match = match_experiment(connection, experiment_text)
    if not name:
        raise UsageError(f'"{text}" is an experiment; name a trial of it, such as {short_name(experiment.name)}/0')
    try:
        exact = connection.call(
            "ExperimentService/GetTrial",
            experiment_service_pb2.GetTrialRequest(name=f"{experiment.name}/trials/{name}"),
            experiment_service_pb2.Trial,
        )
        return exact, match
    except LengthwiseError as error:
        if error.code not in (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT):
            raise
    trials = list_trials(connection, experiment.name)
    for trial in trials:
        if name.isascii() and name.isdigit() and trial.index == int(name):
            return trial, match
    beginning = [trial for trial in trials if _begins(short_name(trial.name), name)]
    if len(beginning) == 1:
        return beginning[0], Match.GUESS
    known = [short_name(trial.name) for trial in trials]
    raise _not_found(f'there is no trial "{name}" in {short_name(experiment.name)}{suggestion(name, known)}')


def list_experiments(
    connection: Connection, owner: str = "", limit: int | None = None
) -> list[experiment_service_pb2.Experiment]:
    """Newest first; of everybody, or of one owner."""
    found: list[experiment_service_pb2.Experiment] = []
    token = ""
    while True:
        page = connection.call(
            "ExperimentService/ListExperiments",
            experiment_service_pb2.ListExperimentsRequest(
                page_size=min(limit or 1000, 1000), page_token=token, owner=owner
            ),
            experiment_service_pb2.ListExperimentsResponse,
        )
        found += page.experiments
        token = page.next_page_token
        if not token or (limit is not None and len(found) >= limit):
            return found[:limit]


def find_experiment(connection: Connection, text: str) -> experiment_service_pb2.Experiment:
    """By its name ("quickstart-3", "experiments/quickstart-3") or its beginning; or the newest of a specification's name.

    NotFoundError if there is none, or if several begin like this. UsageError for an empty name.
    """
    return match_experiment(connection, text)[0]


def match_experiment(connection: Connection, text: str) -> tuple[experiment_service_pb2.Experiment, Match]:
    """find_experiment, and how the text stands for the experiment."""
    name = text.removeprefix(_PREFIX)
    if not name:
        # The empty name is a prefix of every name, so an unset variable would choose a server's only experiment.
        raise UsageError("the name of the experiment is empty; `lengthwise list` shows the names")
    try:
        exact = connection.call(
            "ExperimentService/GetExperiment",
            experiment_service_pb2.GetExperimentRequest(name=_PREFIX + name),
            experiment_service_pb2.Experiment,
        )
        return exact, Match.FULL_NAME
    except LengthwiseError as error:
        if error.code not in (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT):
            raise
    experiments = list_experiments(connection)
    if not experiments:
        raise _not_found(f'there is no experiment "{name}"; this server has none yet')
    of_specification = [experiment for experiment in experiments if experiment.specification.name == name]
    if of_specification:
        # The newest is the first.
        return of_specification[0], Match.ONLY_OF_SPECIFICATION if len(of_specification) == 1 else Match.GUESS
    beginning = [experiment for experiment in experiments if _begins(short_name(experiment.name), name)]
    if len(beginning) == 1:
        return beginning[0], Match.GUESS
    if beginning:
        names = [short_name(experiment.name) for experiment in beginning]
        more = ", ..." if len(names) > _MOST_NAMED else ""
        raise _not_found(f'"{name}" matches several experiments: {", ".join(names[:_MOST_NAMED])}{more}')
    known = [short_name(experiment.name) for experiment in experiments]
    raise _not_found(f'there is no experiment "{name}"{suggestion(name, known)}')


def _not_found(message: str) -> NotFoundError:
    return NotFoundError(message, code=grpc.StatusCode.NOT_FOUND)
