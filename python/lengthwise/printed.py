"""What a paper prints of its protocol and what it leaves open, by field: experiments/published/papers.json.

Only the value of a printed field is the paper's. Where the text and the released code contradict each other, the text's
value is kept beside that of the table's protocol.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lengthwise import published
from lengthwise._proto import specification_pb2
from lengthwise.published import Parameter, PublishedTable, parameter_of, split

Component = specification_pb2.Component

NOT_PRINTED = "not printed"


@dataclass(frozen=True)
class _Statement:
    """About fields by path: "training.steps", "networks.blocks"."""

    fields: Sequence[str]
    # The components that it concerns: with this name and these parameters, by name; empty: any.
    of: Mapping[str, Parameter]
    # "section 4" of printed fields, the source of our value of open ones; or the text's value of a field of which the
    # table's protocol has the released code's.
    told: Any
    # An open field that is named even where the trials have the table's own value.
    always: bool = False

    def covers(self, path: str, component: Component | None) -> bool:
        if path not in self.fields or component is None:
            return path in self.fields and not self.of
        name, parameters = split(self.of)
        return name in ("", component.name) and all(
            parameter_of(component, parameter) == value for parameter, value in parameters.items()
        )


def _statements(objects: Iterable[Mapping[str, Any]], told: str) -> list[_Statement]:
    """`told`: the name of what they say."""
    return [
        _Statement(one.get("fields") or [one["field"]], one.get("of", {}), one[told], one.get("always", False))
        for one in objects
    ]


class Printed:
    """The fields of one table."""

    def __init__(self, table: PublishedTable) -> None:
        paper = published.papers().get(table.key.partition("/")[0], {})
        self._printed = _statements(paper.get("printed", []), "where")
        self._open = [_Statement([path], {}, note, True) for path, note in table.unknown.items()]
        self._open += _statements(paper.get("open", []), "note")
        self._text = _statements([*table.text, *paper.get("text", [])], "value")
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
        return next((one.told for one in self._open if one.covers(path, component)), NOT_PRINTED)

    def text_value(self, path: str, component: Component | None = None) -> Parameter | None:
        return next((one.told for one in self._text if one.covers(path, component)), None)

    @property
    def fields(self) -> set[str]:
        """All that are said to be printed or open."""
        return {path for one in [*self._printed, *self._open] for path in one.fields}
