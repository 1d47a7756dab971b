"""Calls of the server's API as functions of messages: the one place that knows of gRPC."""
from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Generator, Iterator
from typing import Protocol, TypeVar

import grpc
from google.protobuf.message import Message

from lengthwise import errors
from lengthwise.errors import LengthwiseError
from lengthwise.printable import make_printable
from lengthwise.settings import Settings, addresses_of, is_loopback, read_token, target_of
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


def _reader(response: type[ResponseT]) -> Callable[[bytes], ResponseT]:
    """Parses answers and escapes their text, which may be another user's."""

    def read(data: bytes) -> ResponseT:
        message = response.FromString(data)
        make_printable(message)
        return message

    return read


class Connection:
    """Thread-safe. Calls raise LengthwiseError. Control characters in the text of answers are written out."""

    def __init__(
        self,
        settings: Settings,
        timeout: float,
        release: Callable[[], None] | None = None,
        warn: Callable[[str], None] | None = None,
        ended: Callable[[], str] | None = None,
        untrained: Callable[[str], str] | None = None,
    ) -> None:
        """`release` is called once: when the connection is closed or garbage-collected.

        `warn` takes warnings that do not prevent a connection, such as an unknown host of several. `ended` says why the
        server will not come back, or nothing if it may. `untrained` says why no worker trains an experiment, by its full
        name, or nothing if one may.
        """
        self.settings = settings
        self._ended = ended
        self._untrained = untrained
        self._release = None if release is None else weakref.finalize(self, release)
        self._timeout = timeout
        if settings.token_file:
            read_token(settings.token_file)
        self._channel = _channel(settings, warn)

    def close(self) -> None:
        self._channel.close()
        if self._release is not None:
            self._release()

    def untrained(self, experiment: str) -> str:
        """Why no worker trains an experiment of this full name; empty if one may."""
        return "" if self._untrained is None else self._untrained(experiment)

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
            return LengthwiseError(reason, code=grpc.StatusCode.FAILED_PRECONDITION)
        return failure

    def _pause(self, error: grpc.RpcError, end: float) -> None:
        """Sleeps for the delay that the server asks for. Raises if it asks for none, or for one beyond `end`."""
        failure = self.failure(error)
        if failure.retry_delay <= 0 or time.monotonic() + failure.retry_delay > end:
            raise failure from None
        time.sleep(failure.retry_delay)

    def _patiently(self, attempt: Callable[[], ResponseT]) -> ResponseT:
        """Repeats a call while the server refuses it for now."""
        end = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                return attempt()
            except grpc.RpcError as error:
                self._pause(error, end)

    def call(self, method: str, request: Message, response: type[ResponseT], timeout: float | None = None) -> ResponseT:
        """One answer of "ExperimentService/GetTrial"."""
        stub = self._channel.unary_unary(
            f"/lengthwise.v1.{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=_reader(response),
        )
        return self._patiently(lambda: stub(request, timeout=timeout or self._timeout, metadata=self._metadata()))

    def send(
        self, method: str, requests: Callable[[], Iterator[Message]], response: type[ResponseT]
    ) -> ResponseT:
        """Sends a stream of messages and returns the answer. `requests` is called again if the call is repeated."""

        def serialize(message: Message) -> bytes:
            return message.SerializeToString()

        stub = self._channel.stream_unary(
            f"/lengthwise.v1.{method}",
            request_serializer=serialize,
            response_deserializer=_reader(response),
        )
        return self._patiently(lambda: stub(requests(), metadata=self._metadata()))

    def open(
        self, method: str, request: Message, response: type[ResponseT], timeout: float | None = None
    ) -> Stream[ResponseT]:
        """The answers of "ExperimentService/WatchExperiment", whose errors are grpc's."""
        stub = self._channel.unary_stream(
            f"/lengthwise.v1.{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=_reader(response),
        )
        stream: Stream[ResponseT] = stub(request, timeout=timeout, metadata=self._metadata())
        return stream

    def stream(
        self, method: str, request: Message, response: type[ResponseT]
    ) -> Generator[ResponseT, None, None]:
        """All answers of one call; refused before the first it is repeated."""
        end = time.monotonic() + _PATIENCE_SECONDS
        begun = False
        while True:
            answers = self.open(method, request, response)
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
