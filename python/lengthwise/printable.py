"""Text of others, fit to be printed: it cannot move a cursor, colour, clear or reorder a terminal.

As platform/printable_text.h has it.
"""
from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

# C0 but newlines and tabs, DEL, C1; the marks, separators, embeddings, overrides and isolates of bidirectional text; and
# bytes that were not UTF-8.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_ESCAPED_BYTE = 0xDC00


def _write_out(match: re.Match[str]) -> str:
    code = ord(match[0])
    if _ESCAPED_BYTE <= code <= _ESCAPED_BYTE + 0xFF:
        return f"\\x{code - _ESCAPED_BYTE:02x}"
    return f"\\x{code:02x}" if code <= 0x7F else f"\\u{code:04x}"


def printable_text(text: str) -> str:
    """With every control character written out, such as \\x1b or \\u202e. Newlines and tabs stay."""
    return _CONTROLS.sub(_write_out, text)


# Parts of messages that need no change: their types and bytes.
_Known = set[tuple[type[Message], bytes]]


@functools.cache
def _may_have_text(described: Descriptor) -> bool:
    waiting, found = [described], {described.full_name}
    for one in waiting:
        for field in one.fields:
            if field.type == FieldDescriptor.TYPE_STRING:
                return True
            if field.message_type is not None and field.message_type.full_name not in found:
                found.add(field.message_type.full_name)
                waiting.append(field.message_type)
    return False


def _make_part_printable(part: Message, known: _Known) -> None:
    """Parts of the messages of one answer are often alike, such as the networks of thousands of trials."""
    if _may_have_text(part.DESCRIPTOR) and (type(part), part.SerializeToString()) not in known:
        _make_printable(part, known)
        known.add((type(part), part.SerializeToString()))


def _make_map_printable(entries: Any, known: _Known) -> None:
    for key, value in list(entries.items()):
        if isinstance(value, Message):
            _make_printable(value, known)
        elif isinstance(value, str):
            entries[key] = printable_text(value)
        if isinstance(key, str) and (name := printable_text(key)) != key:
            if isinstance(value, Message):
                entries[name].CopyFrom(value)
            else:
                entries[name] = value
            del entries[key]


def make_printable(message: Message) -> None:
    """Replaces every string of a message, and of the messages in it, by its printable_text. Bytes stay."""
    _make_printable(message, set())


def _make_printable(message: Message, known: _Known) -> None:
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_STRING:
            if isinstance(value, str):
                if _CONTROLS.search(value):
                    setattr(message, field.name, printable_text(value))
                continue
            for index, text in enumerate(value):
                value[index] = printable_text(text)
        elif field.type != FieldDescriptor.TYPE_MESSAGE:
            continue
        elif isinstance(value, Message):
            _make_part_printable(value, known)
        elif isinstance(value, Mapping):
            _make_map_printable(value, known)
        else:
            for one in value:
                _make_printable(one, known)
