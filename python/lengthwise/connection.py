"""Calls of the server's API as functions of messages: the one place that knows of gRPC."""
from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import socket
import time
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Any, Protocol, TypeVar

import grpc
from google.protobuf.message import Message

from lengthwise import errors, programs
from lengthwise.errors import LengthwiseError
from lengthwise.printable import make_printable
from lengthwise.user_file import read_user_file

# As rpc/transport.h has them. Answers may hold a million accuracies.
_MAX_ANSWER_BYTES = 64 << 20
_PING_MS = 20_000
# A call that the server refuses with a retry delay is repeated for this long.
_PATIENCE_SECONDS = 60.0

ResponseT = TypeVar("ResponseT", bound=Message)
AnswerT = TypeVar("AnswerT", bound=Message, covariant=True)


class Stream(Protocol[AnswerT]):
    """A call that is answered by many messages."""

    def __iter__(self) -> Iterator[AnswerT]: ...

    def cancel(self) -> bool: ...


@dataclass(frozen=True)
class Settings:
    """Address and credentials of a server. Paths and names as in the configuration file; empty: not set."""

    server: str
    token_file: str = ""
    tls_ca: str = ""
    tls_certificate: str = ""
    tls_key: str = ""
    tls_server_name: str = ""


def resolve(arguments: Mapping[str, Any]) -> Settings:
    """The settings as the command line has them: `arguments` that are None or empty are not given.

    Without the program `lengthwise` they are the arguments alone, which then have the server.
    """
    names = [field.name for field in fields(Settings)]
    given = {name: str(arguments[name]) for name in names if arguments.get(name)}
    if "server" not in given or programs.has_program():
        found = programs.settings(given)
        given = {name: found[name] for name in names}
    server = given["server"]
    if not is_socket(server) and not addresses_of(server):
        raise LengthwiseError(
            f'the server "{server}" is not HOST:PORT, such as 127.0.0.1:7070, or a comma-separated list of them'
        )
    return Settings(**given)


def is_socket(server: str) -> bool:
    """True for the Unix socket of a private server, which only its user can open."""
    return server.startswith("unix:/")


def addresses_of(server: str) -> list[tuple[str, str]]:
    """Host and port of each HOST:PORT of a list; empty if one of them has another form."""
    addresses = []
    for address in server.split(","):
        host, _, port = address.strip().rpartition(":")
        if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
            return []
        addresses.append((host, port))
    return addresses


def is_loopback_host(host: str) -> bool:
    """True for a name or an address, an IPv6 address with or without brackets, of this machine alone."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_loopback(server: str) -> bool:
    """True if every HOST:PORT of the list names this machine."""
    addresses = addresses_of(server)
    return bool(addresses) and all(is_loopback_host(host) for host, _ in addresses)


def target_of(server: str, warn: Callable[[str], None] | None = None) -> str:
    """gRPC target: a single HOST:PORT unchanged; for several, the IP addresses of the hosts known now.

    gRPC looks a single host name up at each connection, and has no list of names. `warn` is called for each address
    whose host is unknown.
    """
    addresses = addresses_of(server)
    if is_socket(server) or len(addresses) == 1:
        return server.strip()
    numbers: dict[socket.AddressFamily, list[str]] = {socket.AF_INET: [], socket.AF_INET6: []}
    unknown = []
    for host, port in addresses:
        for family in numbers:
            try:
                found = socket.getaddrinfo(host.strip("[]"), None, family, socket.SOCK_STREAM)
            except OSError:
                continue
            bracketed = "[{}]" if family == socket.AF_INET6 else "{}"
            numbers[family] += [f"{bracketed.format(one[4][0])}:{port}" for one in found]
            break
        else:
            unknown.append(f"{host}:{port}")
    # Resolvers repeat an address that stands in several lines of /etc/hosts.
    ipv4, ipv6 = (list(dict.fromkeys(known)) for known in numbers.values())
    if not ipv4 and not ipv6:
        raise LengthwiseError(f"none of the hosts of {server} is known; check the names, or give IP addresses")
    if ipv4 and ipv6:
        raise LengthwiseError(
            f"{server} has IPv4 addresses ({', '.join(ipv4)}) and IPv6 addresses ({', '.join(ipv6)}); give addresses "
            "of one kind"
        )
    if warn is not None:
        for address in unknown:
            warn(
                f"the server address {address} is left out until the next start, because its host is unknown; check "
                "the name, or give an IP address"
            )
    return "ipv4:" + ",".join(ipv4) if ipv4 else "ipv6:" + ",".join(ipv6)


def read_token(path: str) -> str:
    """The token in a file that only its owner may read."""
    try:
        content = read_user_file(path)
        if os.stat(path).st_mode & 0o077:
            raise LengthwiseError(f"other users may read the token file {path}; run `chmod 600 {path}`")
    except OSError as error:
        raise LengthwiseError(f"cannot read the token file {path}: {error.strerror}") from error
    text = content.decode("ascii", errors="replace").strip()
    if not re.fullmatch(r"lw_[!-~]+|ey[\w-]+\.[\w-]+\.[\w-]+", text, re.ASCII):
        raise LengthwiseError(
            f"the token file {path} holds no token such as lw_... or a JWT; ask an administrator for one"
        )
    return text


def _read(path: str, what: str) -> bytes:
    try:
        return read_user_file(path)
    except OSError as error:
        raise LengthwiseError(f"cannot read {what} {path}: {error.strerror}") from error


def _channel(settings: Settings, warn: Callable[[str], None] | None) -> grpc.Channel:
    options: list[tuple[str, int | str]] = [
        ("grpc.max_receive_message_length", _MAX_ANSWER_BYTES),
        # Only identity: grpcio before 1.85 decompresses a message before it checks its size.
        ("grpc.compression_enabled_algorithms_bitset", 1),
        ("grpc.keepalive_time_ms", _PING_MS),
        ("grpc.keepalive_timeout_ms", _PING_MS),
        # After a lost connection, try again soon: a restarted server is back within seconds.
        ("grpc.initial_reconnect_backoff_ms", 200),
        ("grpc.max_reconnect_backoff_ms", 3000),
        # Timeout of one attempt to connect: the first of several addresses may not answer.
        ("grpc.min_reconnect_backoff_ms", 5000),
        # A new client does not wait because an old one failed to connect a moment ago.
        ("grpc.use_local_subchannel_pool", 1),
        # A proxy for the outside world is not for a server in the house.
        ("grpc.enable_http_proxy", 0),
    ]
    if bool(settings.tls_certificate) != bool(settings.tls_key):
        raise LengthwiseError("tls_certificate and tls_key go together; set both")
    target = target_of(settings.server, warn)
    server_name = settings.tls_server_name
    if target != settings.server:
        # Without this, gRPC would use the whole address list as the server's name. With TLS, gRPC also compares the
        # authority with the certificate.
        host, port = addresses_of(settings.server)[0]
        named = settings.tls_ca and server_name
        options.append(("grpc.default_authority", server_name if named else f"{host}:{port}"))
        server_name = server_name or host.strip("[]")
    if server_name and settings.tls_ca:
        options.append(("grpc.ssl_target_name_override", server_name))
    if not settings.tls_ca:
        if settings.tls_certificate:
            raise LengthwiseError("tls_certificate needs tls_ca, the authority of the server's certificate; set it")
        if settings.token_file and not is_loopback(settings.server):
            raise LengthwiseError(
                f"the token of {settings.token_file} is not sent to {settings.server} in plain text; set tls_ca, the "
                "authority of the server's certificate, or go through a tunnel to 127.0.0.1"
            )
        return grpc.insecure_channel(target, options)
    credentials = grpc.ssl_channel_credentials(
        root_certificates=None if settings.tls_ca == "system" else _read(settings.tls_ca, "tls_ca"),
        private_key=_read(settings.tls_key, "tls_key") if settings.tls_key else None,
        certificate_chain=_read(settings.tls_certificate, "tls_certificate") if settings.tls_certificate else None,
    )
    return grpc.secure_channel(target, credentials, options)


def _read_printable(response: type[ResponseT], data: bytes) -> ResponseT:
    """Parses an answer and escapes its text, which may be another user's."""
    message = response.FromString(data)
    make_printable(message)
    return message


def _method_of(request: type[Message]) -> str:
    """ "/lengthwise.v1.ExperimentService/GetTrial" for GetTrialRequest: a file of the API has one service."""
    (service,) = request.DESCRIPTOR.file.services_by_name.values()
    return f"/{service.full_name}/{request.DESCRIPTOR.name.removesuffix('Request')}"


@contextlib.contextmanager
def _open_channel() -> Iterator[None]:
    """Calls over a closed channel are a ValueError of gRPC's."""
    try:
        yield
    except ValueError as error:
        raise errors.refused(f"this client is closed; make another Client ({error})") from None


class Connection:
    """Thread-safe. Calls raise LengthwiseError. Control characters in the text of answers are written out."""

    def __init__(
        self,
        settings: Settings,
        timeout: float,
        release: Callable[[], None] | None = None,
        warn: Callable[[str], None] | None = None,
        ended: Callable[[], str] | None = None,
        data_dir: str = "",
    ) -> None:
        """`release` is called once: when the connection is closed or garbage-collected.

        `warn` takes warnings that do not prevent a connection, such as an unknown host of several. `ended` says why the
        server will not come back, or nothing if it may. `data_dir`: the directory whose server it is.
        """
        self.settings = settings
        self._ended = ended
        self.data_dir = data_dir
        self._release = None if release is None else weakref.finalize(self, release)
        self._timeout = timeout
        if settings.token_file:
            read_token(settings.token_file)
        self._channel = _channel(settings, warn)

    def options(self) -> list[str]:
        """Of a command that asks the same server."""
        return [f"--{name}={value}" for name, value in asdict(self.settings).items() if value]

    def close(self) -> None:
        self._channel.close()
        if self._release is not None:
            self._release()

    def _metadata(self) -> tuple[tuple[str, str | bytes], ...]:
        # Read for each call: that is how a token is renewed.
        if not self.settings.token_file:
            return ()
        return (("authorization", "Bearer " + read_token(self.settings.token_file)),)

    def failure(self, error: grpc.RpcError) -> LengthwiseError:
        """The error of a call."""
        failure = errors.from_rpc(error, self.settings.server)
        if isinstance(failure, errors.UnavailableError) and self._ended is not None and (reason := self._ended()):
            # Not UNAVAILABLE, after which callers try again.
            return errors.refused(reason)
        return failure

    def _pause(self, error: grpc.RpcError, end: float) -> None:
        """Sleeps for the delay that the server asks for. Raises if it asks for none, or for one beyond `end`."""
        failure = self.failure(error)
        if failure.retry_delay <= 0 or time.monotonic() + failure.retry_delay > end:
            raise failure from None
        time.sleep(failure.retry_delay)

    def _stub(
        self, kind: str, request: type[Message], response: type[Message], raw: bool = False
    ) -> Callable[..., Any]:
        stub: Callable[..., Any] = getattr(self._channel, kind)(
            _method_of(request),
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=response.FromString if raw else partial(_read_printable, response),
        )
        return stub

    def call(self, request: Message, response: type[ResponseT], raw: bool = False) -> ResponseT:
        """The answer of the method that takes this request, which is repeated while the server refuses it for now. `raw`:
        the caller makes its text printable.
        """
        stub: Callable[..., ResponseT | None] = self._stub("unary_unary", type(request), response, raw)
        end = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                with _open_channel():
                    answer = stub(request, timeout=self._timeout, metadata=self._metadata())
            except grpc.RpcError as error:
                self._pause(error, end)
                continue
            if answer is None:
                raise errors.damaged(f"the server at {self.settings.server} answered without a message")
            return answer

    def open(self, request: Message, response: type[ResponseT], timeout: float | None = None) -> Stream[ResponseT]:
        """The answers to the request, whose errors are grpc's."""
        stub = self._stub("unary_stream", type(request), response)
        with _open_channel():
            stream: Stream[ResponseT] = stub(request, timeout=timeout, metadata=self._metadata())
        return stream

    def stream(self, request: Message, response: type[ResponseT]) -> Generator[ResponseT, None, None]:
        """All answers of one call; refused before the first it is repeated."""
        end = time.monotonic() + _PATIENCE_SECONDS
        begun = False
        while True:
            answers = self.open(request, response)
            try:
                for answer in answers:
                    begun = True
                    yield answer
                return
            except grpc.RpcError as error:
                if begun:
                    raise self.failure(error) from None
                self._pause(error, end)
            finally:
                answers.cancel()  # if the reader stopped before the end
