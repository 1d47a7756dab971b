"""Errors of the package, with the server's messages."""
from __future__ import annotations

import contextlib
from dataclasses import dataclass

import grpc
from google.protobuf.message import DecodeError

from lengthwise._proto import rpc_details_pb2
from lengthwise.printable import printable_text

_DETAILS = "grpc-status-details-bin"
# How gRPC begins to describe an answer that no Lengthwise server gives, as rpc/status.cc has it.
_FOREIGN = ("No status received", "Stream removed", "Compression algorithm ", "Received http2 header with status")


@dataclass(frozen=True)
class FieldViolation:
    """A mistake in what was sent: the field's path, and what was given and is accepted."""

    field: str
    description: str

    def __str__(self) -> str:
        return f"{self.field}: {self.description}" if self.field else self.description


class LengthwiseError(Exception):
    """A call failed, or cannot be made. `str()` says what to do; `violations` has a specification's mistakes."""

    _CODE = grpc.StatusCode.UNKNOWN

    def __init__(
        self,
        message: str,
        *,
        code: grpc.StatusCode | None = None,
        violations: tuple[FieldViolation, ...] = (),
        retry_delay: float = 0,
    ) -> None:
        super().__init__(message)
        self.code = code or self._CODE
        self.violations = violations
        # Seconds after which the server would take the call; 0 if it did not say.
        self.retry_delay = retry_delay


class NotFoundError(LengthwiseError):
    """There is no such experiment, trial or model."""

    _CODE = grpc.StatusCode.NOT_FOUND


class UnavailableError(LengthwiseError):
    """No server at the address, or the server cannot do it now (it stops, its disk is full): try again later."""

    _CODE = grpc.StatusCode.UNAVAILABLE


class UnreachableError(UnavailableError):
    """No server at the address. `where` says which, and why: the command line adds what it can do about it."""

    def __init__(self, where: str) -> None:
        super().__init__(f"{where}; start `lengthwise_server`, or name another server")
        self.where = where


class UsageError(LengthwiseError):
    """An argument that cannot be meant."""

    _CODE = grpc.StatusCode.INVALID_ARGUMENT


class NothingChoosesError(UsageError):
    """Several learning rates or seeds, and no score of the seen lengths. `how` says what gives one."""

    def __init__(self, how: str = "give evaluation.validation or a seen length in the specification") -> None:
        super().__init__(
            f"nothing chooses between learning rates or seeds: no evaluated length counts as seen; {how}, or choose by the "
            "unseen lengths themselves: --select unseen"
        )


def refused(message: str) -> LengthwiseError:
    """FAILED_PRECONDITION: something outside the call must change first. `message` says what."""
    return LengthwiseError(message, code=grpc.StatusCode.FAILED_PRECONDITION)


def damaged(message: str) -> LengthwiseError:
    """DATA_LOSS: an answer of the server cannot be."""
    return LengthwiseError(message, code=grpc.StatusCode.DATA_LOSS)


def with_code(
    code: grpc.StatusCode, message: str, violations: tuple[FieldViolation, ...] = (), retry_delay: float = 0
) -> LengthwiseError:
    """An error of the class that goes with its code."""
    kind = next((one for one in (UsageError, NotFoundError, UnavailableError) if one._CODE is code), LengthwiseError)
    return kind(message, code=code, violations=violations, retry_delay=retry_delay)


def from_rpc(error: grpc.RpcError, server: str) -> LengthwiseError:
    """The error of a call to `server`."""
    if not isinstance(error, grpc.Call):
        return LengthwiseError(str(error))
    code = error.code()
    message = printable_text(error.details() or f"the server at {server} ended the call with {code.name} and gave no reason")
    violations: list[FieldViolation] = []
    retry_delay = 0.0
    answered = False
    for key, value in error.trailing_metadata() or ():
        if key != _DETAILS or not isinstance(value, bytes):
            continue
        answered = True  # for gRPC's own errors have no details
        # Of damaged details the message remains.
        with contextlib.suppress(DecodeError):
            for detail in rpc_details_pb2.Status.FromString(value).details:
                # The messages are google.rpc's, but under names of this package.
                kind = detail.type_url.rpartition(".")[2]
                if kind == "BadRequest":
                    violations += [
                        FieldViolation(printable_text(violation.field), printable_text(violation.description))
                        for violation in rpc_details_pb2.BadRequest.FromString(detail.value).field_violations
                    ]
                elif kind == "RetryInfo":
                    delay = rpc_details_pb2.RetryInfo.FromString(detail.value).retry_delay
                    retry_delay = delay.seconds + delay.nanos / 1e9
    if violations:
        message = "\n".join(str(violation) for violation in violations)
    if not answered and code is not grpc.StatusCode.RESOURCE_EXHAUSTED and message.startswith(_FOREIGN):
        code, message = grpc.StatusCode.UNAVAILABLE, f"{message}; what answers is no Lengthwise server, but perhaps a proxy"
    if code is grpc.StatusCode.UNAVAILABLE and answered:
        return UnavailableError(message, retry_delay=retry_delay)
    if code is grpc.StatusCode.UNAVAILABLE:
        reason = message.rpartition(": ")[2] if "onnect" in message else message
        return UnreachableError(f"cannot reach a server at {server} ({reason})")
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        message = f"the server at {server} did not answer in time"
    if code is grpc.StatusCode.UNIMPLEMENTED:
        message = (
            f"the server at {server} is of an older release, which does not know this call; upgrade the server, or use a "
            "client of its release (`lengthwise doctor` names both)"
        )
    return with_code(code, message, tuple(violations), retry_delay)
