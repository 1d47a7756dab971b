"""`lengthwise web`: experiments in a browser."""
from __future__ import annotations

import argparse
import gc
import logging
import secrets
import socket
from typing import TYPE_CHECKING
from urllib.parse import quote

from lengthwise.command_line import SUCCESS, Output
from lengthwise.errors import LengthwiseError, UsageError

if TYPE_CHECKING:
    from lengthwise.connection import Connection

_DEFAULT = "127.0.0.1:7080"


def _connection(arguments: argparse.Namespace) -> Connection:
    if arguments.data_dir:
        from lengthwise.client import Client

        # The client lives as long as its connection, whose end stops a private server.
        return Client(data_dir=arguments.data_dir)._connection
    from lengthwise.connection import Connection, resolve

    return Connection(resolve(vars(arguments)), timeout=60)


def _listen(address: str) -> socket.socket:
    host, port = _split(address or _DEFAULT)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in [port] if address else [port, 0]:
        listener = socket.socket(family)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, number))
            return listener
        except OSError as error:
            listener.close()
            reason = error.strerror
    raise LengthwiseError(f"cannot listen at {address or _DEFAULT}: {reason}; choose another with --listen HOST:PORT")


def _split(address: str) -> tuple[str, int]:
    from lengthwise.connection import addresses_of

    addresses = addresses_of(address)
    if len(addresses) != 1:
        raise UsageError(f'--listen: got "{address}", expected HOST:PORT, such as {_DEFAULT}')
    host, port = addresses[0]
    return host.strip("[]"), int(port)


def run(arguments: argparse.Namespace, output: Output) -> int:
    import uvicorn

    from lengthwise.connection import is_loopback_host
    from lengthwise.web import access
    from lengthwise.web.pages import Site
    from lengthwise.web.source import Source

    if bool(arguments.certificate) != bool(arguments.key):
        raise UsageError("--certificate and --key go together")
    host, _ = _split(arguments.listen or _DEFAULT)
    secure = bool(arguments.certificate)
    if not is_loopback_host(host) and not secure and not arguments.insecure_plain_text:
        raise UsageError(
            f"--listen {arguments.listen} is for other machines, and whoever reads the traffic would have the token: add "
            "--certificate and --key, or --insecure_plain_text"
        )
    site = Site(Source(lambda: _connection(arguments)))
    listener = _listen(arguments.listen)
    port = listener.getsockname()[1]
    token = secrets.token_urlsafe(24)
    application = access.Access(site.application(), token, access.known_hosts(host), port, secure)
    config = uvicorn.Config(
        application, log_level="error", access_log=False, server_header=False, lifespan="off", ws="none",
        timeout_graceful_shutdown=1, ssl_certfile=arguments.certificate or None, ssl_keyfile=arguments.key or None,
    )  # fmt: skip
    try:
        config.load()
    except OSError as error:
        raise UsageError(
            f"--certificate {arguments.certificate} and --key {arguments.key}: {error.strerror or error}; expected PEM "
            "files of a certificate and its key"
        ) from error
    shown = f"[{host}]" if ":" in host else host
    path = f"/experiments/{quote(arguments.show)}" if arguments.show else "/"
    address = f"http{'s' if secure else ''}://{shown}:{port}{path}?token={token}"
    listener.listen(128)
    # Garbage is looked for in the middle of a chart, and never in what was imported.
    gc.freeze()
    output.out.write(f"{address}    read-only; Ctrl-C ends it\n")
    output.out.flush()

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            # Requests that it cuts off are no errors.
            logging.disable()
            site.stop()
            await super().shutdown(sockets)

    Server(config).run(sockets=[listener])
    return SUCCESS
