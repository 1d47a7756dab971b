"""Specifications that name files of examples or of networks: checked by the program `lengthwise`, which reads them."""
from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lengthwise import programs
from lengthwise._proto import experiment_service_pb2
from lengthwise.connection import Connection
from lengthwise.errors import LengthwiseError

_PART_BYTES = 1 << 20


@dataclass(frozen=True)
class ExampleFile:
    """A file that was checked when its bytes had this hash."""

    path: Path
    sha256: str


def names_files(error: LengthwiseError) -> bool:
    """True if the server refused a specification because it does not have the files named there."""
    return any("nothing is known of the file" in violation.description for violation in error.violations)


def resolve(text: bytes, path: Path | None, archives: str) -> tuple[bytes, list[ExampleFile]]:
    """The specification as JSON with what its files hold, and these files, which are beside `path` or, without it, here.
    Those of networks are archives in the directory `archives`.
    """
    # After "--", because a path such as "-mine.yaml" looks like an option.
    resolved, told = programs.ask(["validate", "--resolved", "--archives", archives, "--", str(path or "-")], text)
    programs.warn_of(told, stacklevel=5)
    tasks: list[dict[str, Any]] = [task.get("parameters", {}) for task in json.loads(resolved)["tasks"]]
    directory = path.parent if path else Path()
    files = {
        task[f"{name}_sha256"]: directory / Path(task[name]).expanduser()
        for task in tasks
        for name in ("train", "test")
        if task.get(f"{name}_sha256")
    }
    files |= {archive.name: archive for archive in Path(archives).iterdir()}
    return resolved, [ExampleFile(file, sha256) for sha256, file in files.items()]


def upload(connection: Connection, file: ExampleFile) -> None:
    """Nothing is stored if the file changed since it was checked."""

    def requests() -> Iterator[experiment_service_pb2.UploadDataRequest]:
        with file.path.open("rb") as opened:
            header = experiment_service_pb2.UploadDataRequest.Header(
                sha256=file.sha256, size_bytes=file.path.stat().st_size
            )
            yield experiment_service_pb2.UploadDataRequest(header=header)
            while part := opened.read(_PART_BYTES):
                yield experiment_service_pb2.UploadDataRequest(data=part)

    connection.send(
        requests, experiment_service_pb2.UploadDataRequest, experiment_service_pb2.UploadDataResponse
    )
