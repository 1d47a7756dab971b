"""Experiments and trials by what a user calls them, and the names of files after them."""
from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lengthwise._proto import experiment_service_pb2, specification_pb2
from lengthwise.connection import Connection
from lengthwise.errors import refused
from lengthwise.printable import make_printable

# How a text that a user gave stands for what was found.
FULL_NAME = experiment_service_pb2.FindExperimentResponse.FULL_NAME
GUESS = experiment_service_pb2.FindExperimentResponse.GUESS
# What a text may mean.
EXPERIMENT_OR_TRIAL = experiment_service_pb2.FindExperimentRequest.EXPERIMENT_OR_TRIAL
EXPERIMENT = experiment_service_pb2.FindExperimentRequest.EXPERIMENT
TRIAL = experiment_service_pb2.FindExperimentRequest.TRIAL


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
    # One line of ASCII.
    escaped = name.encode("unicode_escape").decode("ascii").replace('"', '\\"')
    raise refused(f'the server names "{escaped}", which no file is called after; is it a lengthwise_server?')


def get_experiment(connection: Connection, name: str) -> experiment_service_pb2.Experiment:
    """With its full name. Without its disk use, which takes long to measure."""
    request = experiment_service_pb2.GetExperimentRequest(name=name, omit_disk_use=True)
    return connection.call(request, experiment_service_pb2.Experiment)


def _listed(connection: Connection, request: Any, response: type[Any], field: str, limit: int | None) -> list[Any]:
    """The entries of all pages, or the first ones. The server reads a page while the one before is made printable."""
    request.page_size = min(limit or 1000, 1000)
    found: list[Any] = []
    with ThreadPoolExecutor(1) as other:
        page = connection.call(request, response, raw=True)
        while True:
            found += getattr(page, field)
            request.page_token = page.next_page_token
            ends = not request.page_token or (limit is not None and len(found) >= limit)
            following = None if ends else other.submit(connection.call, request, response, raw=True)
            make_printable(page)
            if following is None:
                return found[:limit]
            page = following.result()


def list_trials(
    connection: Connection, experiment: str, filter: str = "", limit: int | None = None
) -> list[experiment_service_pb2.Trial]:
    """Trials of the experiment with this full name, in grid order; the first ones, up to `limit`."""
    request = experiment_service_pb2.ListTrialsRequest(parent=experiment, filter=filter)
    return _listed(connection, request, experiment_service_pb2.ListTrialsResponse, "trials", limit)


def list_experiments(
    connection: Connection, owner: str = "", limit: int | None = None
) -> list[experiment_service_pb2.Experiment]:
    """Newest first; of everybody, or of one owner."""
    request = experiment_service_pb2.ListExperimentsRequest(owner=owner)
    return _listed(connection, request, experiment_service_pb2.ListExperimentsResponse, "experiments", limit)


def find(
    connection: Connection, text: str, kind: experiment_service_pb2.FindExperimentRequest.Kind = EXPERIMENT_OR_TRIAL
) -> experiment_service_pb2.FindExperimentResponse:
    """What a user means by a text (FindExperiment). NotFoundError, UsageError."""
    request = experiment_service_pb2.FindExperimentRequest(text=text, kind=kind)
    return connection.call(request, experiment_service_pb2.FindExperimentResponse)


def find_experiment(connection: Connection, text: str) -> experiment_service_pb2.Experiment:
    return find(connection, text, EXPERIMENT).experiment
