"""Text of others, fit to be printed: it cannot move a cursor, colour, clear or reorder a terminal.

As platform/printable_text.h has it.
"""
from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import MutableMapping
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


# Of a type of parts, the bytes of some that need no change.
_Known = defaultdict[type[Message], set[bytes]]
# Of each type. Parts that have more forms are hardly alike.
_MOST_KNOWN = 200


def make_printable(message: Message) -> None:
    """Replaces every string of a message, and of the messages in it, by its printable_text. Bytes stay."""
    _make_printable(message, defaultdict(set))


def _make_printable(message: Message, known: _Known) -> None:
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_STRING:
            if not isinstance(value, str):
                value[:] = map(printable_text, value)
            elif not value.isprintable():  # faster than a search, and true of no control
                setattr(message, field.name, printable_text(value))
        elif field.message_type is None:
            continue
        elif isinstance(value, Message):
            _change_part(value, known)
        elif isinstance(value, MutableMapping):
            _change_map(value, known)
        else:
            for one in value:
                _make_printable(one, known)


def _change_part(part: Message, known: _Known) -> None:
    """Parts are often alike, such as the networks of thousands of trials, and going through them is slow."""
    alike = known[type(part)]
    if len(alike) == _MOST_KNOWN:
        _make_printable(part, known)
    elif part.SerializeToString() not in alike:
        _make_printable(part, known)
        alike.add(part.SerializeToString())


def _change_map(entries: MutableMapping[Any, Any], known: _Known) -> None:
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
