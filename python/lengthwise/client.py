"""The way to a server."""
from __future__ import annotations

import functools
import json
import os
import uuid
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from lengthwise import connection, names, programs
from lengthwise._proto import experiment_service_pb2, specification_pb2
from lengthwise.arguments import check_arguments
from lengthwise.connection import Connection, Settings
from lengthwise.errors import LengthwiseError, UnavailableError, UsageError
from lengthwise.experiment import Experiment
from lengthwise.given_specification import checked_specification
from lengthwise.trial import Trial
from lengthwise.user_file import read_user_file, user_path

# As the server's answer has them.
_MOST_IDS = 1000
# By the suffix of a specification's file.
FORMATS = {
    ".yaml": specification_pb2.SpecificationText.YAML,
    ".yml": specification_pb2.SpecificationText.YAML,
    ".json": specification_pb2.SpecificationText.JSON,
    ".textproto": specification_pb2.SpecificationText.TEXT_PROTO,
    ".txtpb": specification_pb2.SpecificationText.TEXT_PROTO,
}


def checked_data_dir(given: str | os.PathLike[str]) -> str:
    """The absolute path of a data directory that a caller names."""
    if os.fspath(given) == "":
        raise UsageError('data_dir: got "", expected a directory')
    return str(Path(user_path(given)).resolve())


def _read(specification: str | os.PathLike[str] | Mapping[str, Any]) -> tuple[str, bytes | None]:
    """As the program names it, "-" for a dictionary; and its text, None for the name of one that is installed."""
    specification = checked_specification(specification)
    if isinstance(specification, dict):
        return "-", json.dumps(specification).encode()
    path = user_path(specification)
    if Path(path).suffix in FORMATS:
        try:
            return path, read_user_file(path)
        except OSError as error:
            raise LengthwiseError(f"cannot read {path}: {error.strerror}") from error
    if not programs.has_program():
        raise LengthwiseError(f"{path}: a specification's file ends in one of {', '.join(FORMATS)}")
    return path, None


def _ask(command: str, path: str, text: bytes | None, options: Sequence[str]) -> list[dict[str, Any]]:
    """What a command tells of a specification, whose files it reads: beside `path`, or of a dictionary here."""
    # After "--", because a path such as "-mine.yaml" looks like an option.
    written, told = programs.ask([command, *options, "--", path], text if path == "-" else None, alone=True)
    programs.warn_of(told, stacklevel=4)
    found: list[dict[str, Any]] = json.loads(written)
    return found


@check_arguments
class Client:
    """A connection to a server, made when the first call is. Thread-safe.

    Missing arguments come from the environment ($LENGTHWISE_SERVER, ...) and the command line's configuration file, which
    `lengthwise` reads: where only this package is installed, `server` must be given. Calls raise LengthwiseError.
    """

    def __init__(
        self,
        server: str | None = None,
        *,
        data_dir: str | os.PathLike[str] | None = None,
        token_file: str | os.PathLike[str] | None = None,
        tls_ca: str | os.PathLike[str] | None = None,
        tls_certificate: str | os.PathLike[str] | None = None,
        tls_key: str | os.PathLike[str] | None = None,
        tls_server_name: str | None = None,
        timeout: float = 60,
    ) -> None:
        """`server` is HOST:PORT, `tls_ca` a PEM file or "system"; `timeout` is of one call, in seconds.

        `data_dir` asks the server of this directory of `run` or `lengthwise run` instead, and goes with `timeout` alone.
        If another process uses the directory, that is its server, as long as it runs. Otherwise it is a private server,
        which runs until the client is closed or gone, and with it everything that it returned.
        """

        given = {
            "server": server,
            "token_file": user_path(token_file),
            "tls_ca": user_path(tls_ca),
            "tls_certificate": user_path(tls_certificate),
            "tls_key": user_path(tls_key),
            "tls_server_name": tls_server_name,
        }
        if data_dir is None:
            warn = functools.partial(warnings.warn, stacklevel=5)
            self._connection = Connection(connection.resolve(given), timeout, warn=warn)
            return
        if any(given.values()):
            raise LengthwiseError("data_dir is for a private server; leave the settings of another server out")
        directory = checked_data_dir(data_dir)
        held, found = programs.hold_server(directory)

        def ended() -> str:
            return held.ended().replace("; repeat the command", "; make another Client")

        self._connection = Connection(Settings(found["server"]), timeout, held.close, ended=ended, data_dir=directory)

    @property
    def server(self) -> str:
        return self._connection.settings.server

    def close(self) -> None:
        """Ends the connection and every watch over it."""
        self._connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def submit(
        self, specification: str | os.PathLike[str] | Mapping[str, Any], *, request_id: str | None = None, owner: str = ""
    ) -> Experiment:
        """Submits a specification: the path of a file (YAML, JSON or text format), the name of an installed one
        ("quickstart"), or a dictionary like one. Values of a dictionary may also be NumPy arrays and scalars, pandas series,
        ranges, sets and paths.

        If its tasks name files of examples, or its networks files, the program `lengthwise` checks them, uploads what the
        server does not have, and submits it. A dictionary's are in the current directory.

        With the same `request_id` the call may be repeated: it returns what the first one created. After an
        UnavailableError the client repeats it once. All mistakes of a specification are in the `violations` of the error.
        """
        path, text = _read(specification)
        # As on the command line without a token.
        if not owner and not self._connection.settings.token_file:
            owner = os.environ.get("USER", "")
        request_id = request_id or uuid.uuid4().hex
        created = self._create(path, text, request_id=request_id, owner=owner)
        if created is not None:
            return Experiment(self._connection, created.experiment)
        options = ["--output=events", f"--request_id={request_id}", *([f"--owner={owner}"] if owner else [])]
        (submitted,) = _ask("submit", path, text, [*options, *self._connection.options()])
        return Experiment(self._connection, names.get_experiment(self._connection, submitted["name"]))

    def validate(self, specification: str | os.PathLike[str] | Mapping[str, Any]) -> list[str]:
        """Checks a specification; returns the ids of the trials that it would make, at most the first 1,000."""
        path, text = _read(specification)
        checked = self._create(path, text, validate_only=True)
        if checked is not None:
            return list(checked.trial_ids)
        return [one["trial"] for one in _ask("validate", path, text, ["--output=json"])[:_MOST_IDS]]

    def _create(
        self, path: str, text: bytes | None, **fields: Any
    ) -> experiment_service_pb2.CreateExperimentResponse | None:
        """None for what the program must read first: an installed specification, or one that names files."""
        if text is None:
            return None
        # YAML, which JSON is, too: with the conveniences of specifications.
        form = FORMATS.get(Path(path).suffix, specification_pb2.SpecificationText.YAML)
        given = specification_pb2.SpecificationText(format=form, text=text)
        request = experiment_service_pb2.CreateExperimentRequest(specification_text=given, **fields)
        call = functools.partial(self._connection.call, request, experiment_service_pb2.CreateExperimentResponse)
        try:
            try:
                return call()
            except UnavailableError:
                if not request.request_id:
                    raise
                # The server may have created it, and the answer was lost.
                return call()
        except LengthwiseError as error:
            if any("nothing is known of the file" in violation.description for violation in error.violations):
                return None
            raise

    def experiment(self, name: str) -> Experiment:
        """By its name ("quickstart-3", "experiments/quickstart-3") or its beginning; or a specification's newest.

        Calls that change the experiment need its full name, or the name of a specification that only it has; `delete` needs
        the full name.
        """
        found = names.find(self._connection, name, names.EXPERIMENT)
        return Experiment(self._connection, found.experiment, found.match)

    def trial(self, name: str) -> Trial:
        """ "experiments/E/trials/T" or "E/T". T is the trial's id, the beginning of one, or an index in the grid."""
        found = names.find(self._connection, name, names.TRIAL)
        return Trial(self._connection, found.trial, found.match)

    def experiments(self, *, owner: str = "", limit: int | None = None) -> list[Experiment]:
        """Newest first; of everybody, or of one owner."""
        messages = names.list_experiments(self._connection, owner, limit)
        return [Experiment(self._connection, message) for message in messages]
