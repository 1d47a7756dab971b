"""Text of others, fit to be printed: it cannot move a cursor, colour, clear or reorder a terminal.

As platform/printable_text.h has it.
"""
from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Callable

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


# Of a type of parts, the bytes of some that need no change.
_Known = defaultdict[type[Message], set[bytes]]
# Of each type. Parts that have more forms are hardly alike.
_MOST_KNOWN = 200
# Makes a field of a message printable.
_Change = Callable[[Message, str, _Known], None]


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


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


@functools.cache
def _changes(described: Descriptor) -> list[tuple[_Change, str]]:
    """For the fields that may have text: an answer may have thousands of messages whose numbers need no look."""
    found: list[tuple[_Change, str]] = []
    for field in described.fields:
        if field.type == FieldDescriptor.TYPE_STRING:
            found.append((_change_text, field.name))
        elif field.message_type is None or not _may_have_text(field.message_type):
            continue
        else:
            found.append((_change_map if _is_map(field) else _change_part, field.name))
    return found


def _change_text(message: Message, name: str, known: _Known) -> None:
    text = getattr(message, name)
    if not isinstance(text, str):
        text[:] = map(printable_text, text)
    elif not text.isprintable():  # faster than a search, and true of no control
        setattr(message, name, printable_text(text))


def _change_part(message: Message, name: str, known: _Known) -> None:
    """Parts are often alike, such as the networks of thousands of trials, and going through them is slow."""
    part = getattr(message, name)
    if not isinstance(part, Message):
        for one in part:
            _make_printable(one, known)
    elif message.HasField(name):
        alike = known[type(part)]
        if len(alike) == _MOST_KNOWN:
            _make_printable(part, known)
        elif part.SerializeToString() not in alike:
            _make_printable(part, known)
            alike.add(part.SerializeToString())


def _change_map(message: Message, name: str, known: _Known) -> None:
    entries = getattr(message, name)
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
    _make_printable(message, defaultdict(set))


def _make_printable(message: Message, known: _Known) -> None:
    for change, name in _changes(message.DESCRIPTOR):
        change(message, name, known)
