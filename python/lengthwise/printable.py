"""Text of others, fit to be printed: it cannot move a cursor, colour, clear or reorder a terminal.

As platform/printable_text.h has it.
"""
from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
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


def _make_map_printable(entries: Any) -> None:
    for key, value in list(entries.items()):
        if isinstance(value, Message):
            make_printable(value)
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
            make_printable(value)
        elif isinstance(value, Mapping):
            _make_map_printable(value)
        else:
            for one in value:
                make_printable(one)
