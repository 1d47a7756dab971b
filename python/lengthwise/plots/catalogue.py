"""Names of tasks and encodings in figures: the titles and facts of the server's catalogue."""
from __future__ import annotations

from dataclasses import dataclass, field

from google.protobuf import struct_pb2

from lengthwise._proto import catalogue_service_pb2, specification_pb2
from lengthwise.connection import Connection
from lengthwise.names import label
from lengthwise.published import drawn_by

Component = specification_pb2.Component
Entry = catalogue_service_pb2.CatalogueEntry


def metric_title(metric: str) -> str:
    """ "strict closeness accuracy" of "strict_closeness_accuracy"."""
    return metric.replace("_", " ")


@dataclass
class Catalogue:
    """Without entries: names are titles, and tasks are of strings."""

    tasks: dict[str, Entry] = field(default_factory=dict)
    encodings: dict[str, Entry] = field(default_factory=dict)

    def _fact(self, task: Component, name: str, default: str) -> str:
        entry = self.tasks.get(task.name)
        return entry.facts.get(name, default) if entry is not None else default

    def task_title(self, task: Component) -> str:
        """The catalogue's title for a default label; a label that the user chose unchanged."""
        entry = self.tasks.get(task.name)
        return entry.title if entry is not None and label(task) == task.name and entry.title else label(task)

    def encoding_title(self, encoding: Component) -> str:
        """ "RoPE", "Randomized RoPE", "Uniform reals RoPE max_position=4096"; a label that somebody chose."""
        own = label(encoding)
        entry = self.encodings.get(encoding.name)
        if entry is None or not entry.title:
            return own
        drawn, _, rest = own.partition(encoding.name)
        if drawn not in ("", "randomized_", f"{drawn_by(encoding)}_"):
            return own
        # The server's suffix that distinguishes components: "_max_position=4096".
        if own != drawn + encoding.name and not (rest.startswith("_") and "=" in rest):
            return own
        return drawn.replace("_", " ").capitalize() + entry.title + (f" {rest[1:]}" if rest else "")

    def axis_title(self, task: Component) -> str:
        """Axis label for evaluation lengths: "input length", "number of digits"."""
        return self._fact(task, "axis_title", "input length")

    def axis(self, task: Component) -> str:
        """The same in a word: "length", "digits"."""
        return self._fact(task, "axis", "length")

    def axis_values(self, task: Component) -> str:
        """Several values of the axis: "lengths", "numbers of digits"."""
        axis = self.axis(task)
        return f"numbers of {axis}" if axis.endswith("s") else f"{axis}s"

    def own_axis(self, task: Component) -> str | None:
        """Name of one value of the axis, "scale"; None if the axis is the length of training."""
        return self.axis(task) if self._fact(task, "seen_up_to", "") else None

    def length_title(self, task: Component, length: int) -> str:
        """ "length 40", "30 digits"."""
        axis = self.axis(task)
        # "digits" are counted, a "scale" is not.
        if axis.endswith("s"):
            return f"{length} {axis[:-1] if length == 1 else axis}"
        return f"{axis} {length}"

    def compared_by_loss(self, task: Component) -> bool:
        return self._fact(task, "compared_by_loss", "false") == "true"

    def loss_title(self, task: Component) -> str:
        return self._fact(task, "loss_title", "cross-entropy")

    def accuracy_title(self, task: Component) -> str:
        return self._fact(task, "accuracy_title", "token accuracy")

    def has_output_tokens(self, task: Component) -> bool:
        """True if sequences have output tokens after the input."""
        return self._fact(task, "kind", "transduction") == "transduction"

    def random_accuracy(self, task: Component) -> float | None:
        """Accuracy of guessing, 0 to 1. None if unknown: for losses, and with parameters other than the paper's."""
        entry = self.tasks.get(task.name)
        if entry is None or self.compared_by_loss(task) or "random_accuracy" not in entry.facts:
            return None
        for parameter in entry.parameters:
            if parameter.name in task.parameters:
                given: struct_pb2.Value = task.parameters[parameter.name]
                if given != parameter.default_value:
                    return None
        return float(entry.facts["random_accuracy"])


def fetch(connection: Connection) -> Catalogue:
    kinds = catalogue_service_pb2
    entries = connection.call(kinds.ListCatalogueEntriesRequest(), kinds.ListCatalogueEntriesResponse).entries
    return Catalogue(
        {entry.name: entry for entry in entries if entry.kind == kinds.TASK},
        {entry.name: entry for entry in entries if entry.kind == kinds.ENCODING},
    )
