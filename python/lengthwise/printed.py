"""What a paper prints of its protocol and what it leaves open, by field: experiments/published/papers.json.

Only the value of a printed field is the paper's. Where the text and the released code contradict each other, the text's
value is kept beside that of the table's protocol.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lengthwise import published
from lengthwise._proto import specification_pb2
from lengthwise.published import Parameter, PublishedTable, parameter_of

Component = specification_pb2.Component

NOT_PRINTED = "not printed"


@dataclass(frozen=True)
class _Of:
    """The components that a statement concerns: of this name (empty: any) and with these parameters."""

    name: str
    parameters: Mapping[str, Parameter]

    def has(self, component: Component | None) -> bool:
        if component is None:
            return not self.name and not self.parameters
        return (not self.name or component.name == self.name) and all(
            parameter_of(component, name) == value for name, value in self.parameters.items()
        )


def _of(object_: Mapping[str, Any]) -> _Of:
    of = object_.get("of", {})
    return _Of(of.get("name", ""), {name: value for name, value in of.items() if name != "name"})


@dataclass(frozen=True)
class _Statement:
    """About fields by path: "training.steps", "networks.blocks"."""

    fields: Sequence[str]
    of: _Of
    # "section 4" of printed fields, the source of our value of open ones.
    note: str
    # An open field that is named even where the trials have the table's own value.
    always: bool = False

    def covers(self, path: str, component: Component | None) -> bool:
        return path in self.fields and self.of.has(component)


@dataclass(frozen=True)
class _TextValue:
    """The text's value of a field of which the table's protocol has the released code's."""

    field: str
    of: _Of
    value: Parameter


class Printed:
    """The fields of one table."""

    def __init__(self, table: PublishedTable) -> None:
        paper = published.papers().get(table.key.partition("/")[0], {})
        self._printed = [_Statement(one["fields"], _of(one), one["where"]) for one in paper.get("printed", [])]
        self._open = [_Statement([path], _Of("", {}), note, True) for path, note in table.unknown.items()]
        self._open += [
            _Statement(one["fields"], _of(one), one["note"], one.get("always", False)) for one in paper.get("open", [])
        ]
        self._text = [_TextValue(one["field"], _of(one), one["value"]) for one in [*table.text, *paper.get("text", [])]]
        self._unknown = set(table.unknown)
        # In the unit in which the paper prints how long its models train.
        self.in_epochs = any("training.epochs" in one.fields for one in self._printed)

    def is_printed(self, path: str, component: Component | None = None) -> bool:
        return path not in self._unknown and any(one.covers(path, component) for one in self._printed)

    def names_always(self, path: str) -> bool:
        """True for an open field that is named whatever the trials have."""
        return any(one.always and path in one.fields for one in self._open)

    def note(self, path: str, component: Component | None = None) -> str:
        """Source of our value of an open field."""
        return next((one.note for one in self._open if one.covers(path, component)), NOT_PRINTED)

    def text_value(self, path: str, component: Component | None = None) -> Parameter | None:
        return next((one.value for one in self._text if one.field == path and one.of.has(component)), None)

    @property
    def fields(self) -> set[str]:
        """All that are said to be printed or open."""
        return {path for one in [*self._printed, *self._open] for path in one.fields}
