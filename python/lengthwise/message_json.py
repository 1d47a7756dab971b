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


def as_dictionary(message: Message) -> dict[str, Any]:
    """In the order of the fields, and maps in that of their keys, whatever order they have in memory. 5 is not 5.0."""
    found: dict[str, Any] = _whole(plain_dictionary(message))
    return _sort_maps(message, found)


def _whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < _LARGEST_WITHOUT_EXPONENT:
        return int(value)
    if isinstance(value, dict):
        return {key: _whole(one) for key, one in value.items()}
    return [_whole(one) for one in value] if isinstance(value, list) else value


def _sort_maps(message: Message, found: dict[str, Any]) -> dict[str, Any]:
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            found[field.name] = dict(sorted(found[field.name].items()))
        elif isinstance(found[field.name], list) and not isinstance(value, Message):
            for one, of_one in zip(value, found[field.name]):
                _sort_maps(one, of_one)
        elif isinstance(value, Message) and isinstance(found[field.name], dict):
            _sort_maps(value, found[field.name])
    return found
