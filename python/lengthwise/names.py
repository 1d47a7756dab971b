"""Experiments by what a user calls them."""
from __future__ import annotations

import grpc

from lengthwise._proto import experiment_service_pb2
from lengthwise.connection import Connection
from lengthwise.errors import LengthwiseError, NotFoundError
from lengthwise.suggestion import suggestion

_PREFIX = "experiments/"
_MOST_NAMED = 5


def short_name(name: str) -> str:
    """ "table1-2" of "experiments/table1-2"."""
    return name.rpartition("/")[2]


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
    """By its name ("quickstart-3", "experiments/quickstart-3") or its beginning; or the newest of a specification's name."""
    name = text.removeprefix(_PREFIX)
    try:
        return connection.call(
            "ExperimentService/GetExperiment",
            experiment_service_pb2.GetExperimentRequest(name=_PREFIX + name),
            experiment_service_pb2.Experiment,
        )
    except LengthwiseError as error:
        if error.code not in (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT):
            raise
    experiments = list_experiments(connection)
    if not experiments:
        raise _not_found(f'there is no experiment "{name}"; this server has none yet')
    for experiment in experiments:
        if experiment.specification.name == name:
            return experiment
    beginning = [experiment for experiment in experiments if short_name(experiment.name).startswith(name)]
    if len(beginning) == 1:
        return beginning[0]
    if beginning:
        names = [short_name(experiment.name) for experiment in beginning]
        more = ", ..." if len(names) > _MOST_NAMED else ""
        raise _not_found(f'"{name}" may be several experiments: {", ".join(names[:_MOST_NAMED])}{more}')
    known = [short_name(experiment.name) for experiment in experiments]
    raise _not_found(f'there is no experiment "{name}"{suggestion(name, known)}')


def _not_found(message: str) -> NotFoundError:
    return NotFoundError(message, code=grpc.StatusCode.NOT_FOUND)
