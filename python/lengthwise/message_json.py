"""Messages as people read their JSON."""
from __future__ import annotations

from typing import Any

from google.protobuf.json_format import Error, MessageToDict
from google.protobuf.message import Message

from lengthwise.errors import damaged

_LARGEST_WITHOUT_EXPONENT = 1e15


def plain_dictionary(message: Message) -> dict[str, Any]:
    """As protobuf's JSON has it. DATA_LOSS for what JSON does not have, such as an infinite parameter."""
    try:
        found: dict[str, Any] = MessageToDict(message, preserving_proto_field_name=True)
    except Error as error:
        raise damaged(f"an answer of the server has no JSON: {error}") from None
    return found


def as_dictionary(specification: Message) -> dict[str, Any]:
    """In the order of the fields, and the map "parameters" in that of its keys, whatever order it has in memory. 5 is not
    5.0.
    """
    found: dict[str, Any] = _tidy(plain_dictionary(specification))
    return found


def _tidy(value: Any, name: str = "") -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < _LARGEST_WITHOUT_EXPONENT:
        return int(value)
    if isinstance(value, dict):
        return {key: _tidy(value[key], key) for key in (sorted(value) if name == "parameters" else value)}
    return [_tidy(one) for one in value] if isinstance(value, list) else value
