"""Models as the server stores them."""
from __future__ import annotations

import hashlib
from collections.abc import Iterator

from lengthwise._proto import event_pb2, experiment_service_pb2
from lengthwise.connection import Connection
from lengthwise.errors import damaged


def download_model(connection: Connection, trial: str) -> Iterator[bytes]:
    """The newest stored model of a trial's name, in parts: a safetensors file of the tensors "parameters/{name}", and of the
    optimizer's moments where they were kept. Of "{trial}/network", the archive of its network's files. After the last part
    DATA_LOSS, where its SHA-256 is not the server's.
    """
    checkpoint = event_pb2.Checkpoint()
    digest = hashlib.sha256()
    size = 0
    request = experiment_service_pb2.DownloadModelRequest(name=trial)
    for response in connection.stream(request, experiment_service_pb2.DownloadModelResponse):
        if response.HasField("checkpoint"):
            checkpoint = response.checkpoint
        digest.update(response.data)
        size += len(response.data)
        yield response.data
    if size != checkpoint.size_bytes or digest.hexdigest() != checkpoint.sha256:
        raise damaged(
            f"the model of {trial} was damaged on its way from {connection.settings.server}: its SHA-256 is another; "
            "try again"
        )
