"""Compares an experiment's specification with the protocol of a published table.

Both are resolved by the server (CatalogueService.ResolveSpecification), so that every default is filled in by the one
resolver there is. What is trained and scored is compared field by field: a field that is not named below is compared under
its path, so that a new field of the API is not forgotten.

Only a field that the paper prints (lengthwise.printed) can differ from the paper. Any other field is open: where the trials
differ from the table's protocol, which then is ours, they have their own value, not another than the paper's.
"""
from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message

from lengthwise._proto import catalogue_service_pb2, specification_pb2
from lengthwise.connection import Connection
from lengthwise.printed import Printed
from lengthwise.published import (
    PublishedColumn,
    PublishedRow,
    PublishedTable,
    Quantity,
    Substitute,
    depends_on_max_position,
    drawn_by,
    network_with,
    parameter_of,
    steps_per_epoch,
    unseen_lengths,
)
from lengthwise.rendering import format_count, format_exact, format_integers

Component = specification_pb2.Component
Specification = specification_pb2.ExperimentSpecification

# Says neither what is trained nor how it is scored: how often something is recorded on the way, and seeds, which no two
# implementations share.
_IGNORED = {
    "training.schedule_seed", "training.report_every_steps", "training.checkpoint_every_steps",
    "training.checkpoint_every_seconds", "training.epochs",
    # Told with the steps or epochs, which they limit.
    "training.stop_after_seconds", "training.stop_at_accuracy",
    "evaluation.every_steps", "evaluation.interval_lengths", "evaluation.interval_sequences",
    "evaluation.attention_lengths", "evaluation.attention_inputs", "evaluation.attention_sequences",
    "evaluation.projection", "evaluation.sequence_scores", "evaluation.answers", "evaluation.embedding_noise",
    "evaluation.seed",
    # Compared as "scored lengths".
    "evaluation.lengths", "evaluation.seen_up_to",
    # Told with the statistic of a cell.
    "evaluation.select", "evaluation.validation.lengths", "evaluation.validation.sequences",
    # Compared if the table has accuracies on training sets.
    "evaluation.training_examples",
}  # fmt: skip

# Memory for time, and a seed.
_IGNORED_PARAMETERS = {"networks.recompute_activations", "tasks.puzzle_seed"}
# Without influence on positions that are not drawn.
_OF_DRAWN_POSITIONS = {"sorted", "randomized_at_evaluation", "draws", "distances"}

# As people call them, in the order in which they are told.
_NAMES = {
    "training.steps": "steps",
    "training.epochs": "epochs",
    "training.examples": "training examples",
    "training.without_replacement": "examples without replacement",
    "training.data_set_seed": "data sets",
    "training.batch_size": "batch size",
    "training.lengths": "training lengths",
    "training.packing.tokens": "tokens of a sequence",
    "training.packing.answers_only": "packing answers_only",
    "training.packing.attend_across": "packing attend_across",
    "training.packing.reset_positions": "packing reset_positions",
    "evaluation.lengths": "scored lengths",
    "evaluation.sequences": "sequences per length",
    "evaluation.training_examples": "scored training examples",
    "learning_rates": "learning rates",
    "seeds": "seeds",
    "tasks": "task",
    "networks": "network",
    "encodings": "encodings'",
    "training.optimizer": "optimizer",
    "training.schedule": "schedule",
    "training.clipping": "clipping of gradients",
    "training.clip_norm": "clipping norm",
    "training.precision": "precision",
}
# Of tables that score puzzles, whose "lengths" are numbers of vectors.
_NAMES_OF_PUZZLES = {
    "evaluation.lengths": "scored numbers of vectors",
    "evaluation.sequences": "puzzles per number of vectors",
}
# Tasks or encodings of a table in one sentence.
_MOST_NAMED = 5

_ORDER = {path: index for index, path in enumerate(_NAMES)}


@dataclass(frozen=True)
class Difference:
    """A field that the paper prints, with another value here."""

    # "steps".
    what: str
    # "3,000".
    here: str
    # "2,000,000".
    published: str
    # "training.steps"; "networks.blocks".
    path: str = ""


@dataclass(frozen=True)
class OpenField:
    """A field whose value the paper does not print."""

    what: str
    here: str
    # Source of our value.
    note: str
    path: str = ""


@dataclass
class ProtocolComparison:
    """Empty `differences`: trained and scored as printed, in every field that the paper gives."""

    differences: list[Difference] = field(default_factory=list)
    open_fields: list[OpenField] = field(default_factory=list)
    # Tasks, networks and encodings of the experiment that the table does not have: "encodings learn_0.3, learn_0.4".
    outside: list[str] = field(default_factory=list)
    # Substitute for private material of the paper's authors.
    substitutes: list[Substitute] = field(default_factory=list)
    # The experiment's own replacement for such material, by name: "people.json". Only its author knows the contents.
    brought: list[tuple[Substitute, str]] = field(default_factory=list)


def resolve(connection: Connection, specification: Mapping[str, Any] | str) -> Specification:
    """A specification as a user would write it, a dictionary or YAML, with every default filled in."""
    text = specification if isinstance(specification, str) else json.dumps(specification)
    request = catalogue_service_pb2.ResolveSpecificationRequest(
        specification_text=specification_pb2.SpecificationText(
            format=specification_pb2.SpecificationText.YAML, text=text.encode()
        )
    )
    return connection.call(request, catalogue_service_pb2.ResolveSpecificationResponse).specification


def resolve_protocol(connection: Connection, table: PublishedTable) -> Specification:
    """The specification of the table's own trials."""
    return resolve(connection, {"name": "paper", **table.protocol})


def format_parameter(component: Component, name: str) -> str:
    value = parameter_of(component, name)
    # A network's default of d_ff depends on its width.
    if name == "d_ff" and value == 0:
        width = parameter_of(component, "d_model")
        if isinstance(width, float):
            value = width if component.name == "positional_attention" else 4 * width
    return "none" if value is None else _scalar(value)


def flatten(path: str, message: Message, ignored: Collection[str] = _IGNORED) -> dict[str, str]:
    """The fields of training or evaluation by path, as text; a component's parameters below its own path."""
    fields: dict[str, str] = {}
    for descriptor in message.DESCRIPTOR.fields:
        name = f"{path}.{descriptor.name}"
        value = getattr(message, descriptor.name)
        if name in ignored or (name == "training.data_set_seed" and not message.HasField(descriptor.name)):
            continue
        if isinstance(value, Component):
            fields[name] = value.name
            fields.update({f"{name}.{one}": format_parameter(value, one) for one in value.parameters})
        elif isinstance(value, specification_pb2.LengthRange):
            fields[name] = f"{value.min}..{value.max}"
        elif isinstance(value, specification_pb2.Packing):
            if message.HasField(descriptor.name):
                fields.update(_packing(name, value))
        elif isinstance(value, Message):
            if message.HasField(descriptor.name):
                fields.update(flatten(name, value, ignored))
        elif isinstance(value, Sequence) and not isinstance(value, str):
            fields[name] = _several(value)
        else:
            fields[name] = _scalar(value)
    return fields


def _packing(path: str, packing: specification_pb2.Packing) -> dict[str, str]:
    fields = flatten(path, packing)
    # By its default it depends on another field.
    if not packing.HasField("reset_positions"):
        fields[f"{path}.reset_positions"] = _scalar(not packing.attend_across)
    return fields


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return format_count(value)
    if isinstance(value, float):
        return format_exact(value)
    return str(value)


def _several(values: Sequence[Any]) -> str:
    """Nothing for none."""
    if values and all(isinstance(value, int) for value in values):
        return format_integers(values)
    texts = [str(value).strip().replace("\n", " ") if isinstance(value, Message) else _scalar(value) for value in values]
    return ", ".join(texts)


def _said(path: str, fields: dict[str, str]) -> str:
    if path == "training.examples" and fields.get(path) == "0":
        return "new ones at every step"
    return fields.get(path) or "none"


def _epochs(training: specification_pb2.Training) -> str:
    """ "4,000"; "15 + 55/63"; "none, 1,000 steps"."""
    steps = steps_per_epoch(training)
    if steps == 0:
        return f"none, {format_count(training.steps)} steps"
    epochs, rest = divmod(training.steps, steps)
    parts = ([format_count(epochs)] if epochs or not rest else []) + ([f"{rest}/{steps}"] if rest else [])
    return " + ".join(parts)


def _duration(training: specification_pb2.Training, in_epochs: bool) -> str:
    """Steps or epochs; "at most 50,000, until 3600 s or accuracy 0.9" if training may stop early."""
    planned = _epochs(training) if in_epochs else format_count(training.steps)
    stops = [f"{format_exact(training.stop_after_seconds)} s"] if training.stop_after_seconds > 0 else []
    stops += [f"accuracy {format_exact(training.stop_at_accuracy)}"] if training.stop_at_accuracy > 0 else []
    return f"at most {planned}, until {' or '.join(stops)}" if stops else planned


def _rates(specification: Specification) -> str:
    return ", ".join(format_exact(rate) for rate in sorted(set(specification.learning_rates)))


def seed_count(specification: Specification) -> int:
    """Pairs of a weight seed and a data seed."""
    if specification.weight_seeds:
        return len(specification.weight_seeds) * len(specification.data_seeds)
    return max(1, len(specification.seeds))


class _Comparison:
    """One table's protocol against one experiment's specification, both resolved."""

    def __init__(self, here: Specification, paper: Specification, table: PublishedTable) -> None:
        self.here, self.paper, self.table = here, paper, table
        self.printed = Printed(table)
        self.result = ProtocolComparison()
        self._said: set[tuple[str, str, str]] = set()

    def add(self, path: str, here: str, published: str, what: str = "", of: Component | None = None) -> None:
        """A difference from a field that the paper prints, or an open field; once. `of`: the paper's component."""
        what = what or _NAMES.get(path) or path.rpartition(".")[2]
        if path == "evaluation.sequences" and self.table.quantity is Quantity.LOSS:
            what = "sequences per scale"
        # The parameters of an open schedule are open.
        always = next((one for one in (path, path.rpartition(".")[0]) if self.printed.names_always(one)), None)
        if always is not None:
            if always != path and here == published:
                return
            # One entry for the same parameter of several networks or encodings.
            axis, _, parameter = path.partition(".")
            what = f"{axis} {parameter}" if parameter and axis in ("tasks", "networks", "encodings") else what
            self._open(OpenField(what, here, self.printed.note(always, of), path))
        elif here == published or here == self._text(path, of):
            return
        elif not self.printed.is_printed(path, of):
            self._open(OpenField(what, here, self.printed.note(path, of), path))
        elif (what, here, published) not in self._said:
            self._said.add((what, here, published))
            self.result.differences.append(Difference(what, here, self._text(path, of) or published, path))

    def _open(self, field_: OpenField) -> None:
        if (field_.what, field_.here) not in {(one.what, one.here) for one in self.result.open_fields}:
            self.result.open_fields.append(field_)

    def _text(self, path: str, of: Component | None) -> str | None:
        value = self.printed.text_value(path, of)
        if value is None:
            return None
        return format_count(int(value)) if path == "training.epochs" else _scalar(value)

    def run(self) -> ProtocolComparison:
        self._fields()
        self.add("learning_rates", _rates(self.here), _rates(self.paper))
        self._tasks()
        self._networks()
        self._encodings()
        self._seeds()
        for one in self.table.substitutes:
            brought = self._brought(one)
            if brought:
                self.result.brought.append((one, brought))
            else:
                self.result.substitutes.append(one)
        self.result.differences.sort(key=lambda difference: _rank(difference.path))
        self.result.open_fields.sort(key=lambda open_field: _rank(open_field.path))
        return self.result

    def _brought(self, substitute: Substitute) -> str:
        """The experiment's own replacements for `substitute`, comma-separated; empty if a task names none."""
        name = substitute.unless_task_has
        named = [parameter_of(task, name) if name else None for task in self.here.tasks]
        return ", ".join(dict.fromkeys(map(str, named))) if all(named) else ""

    def _fields(self) -> None:
        here, paper = (flatten("training", one.training) for one in (self.here, self.paper))
        for fields, one in ((here, self.here.training), (paper, self.paper.training)):
            duration = _duration(one, self.printed.in_epochs)
            del fields["training.steps"]
            fields["training.epochs" if self.printed.in_epochs else "training.steps"] = duration
            if self.printed.is_printed("training.clipping"):
                fields["training.clipping"] = "yes" if one.clip_norm > 0 else "none"
            # Its value says nothing, as that of other seeds.
            if one.examples > 0:
                fields["training.data_set_seed"] = "one for all trials" if one.HasField("data_set_seed") else "by data seed"
        # Fields without influence on a measurement of time.
        if not self.table.is_time:
            here.update(flatten("evaluation", self.here.evaluation))
            paper.update(flatten("evaluation", self.paper.evaluation))
            # A column's length is evaluated, or its cells are empty.
            if self.table.quantity is Quantity.UNSEEN_ACCURACY and not self.table.has_length_accuracies:
                here["evaluation.lengths"] = format_integers(unseen_lengths(self.here))
                paper["evaluation.lengths"] = format_integers(unseen_lengths(self.paper))
        if Quantity.TRAINING_ACCURACY in self.table.quantities:
            here["evaluation.training_examples"] = format_count(self.here.evaluation.training_examples)
            paper["evaluation.training_examples"] = format_count(self.paper.evaluation.training_examples)
        if not (self.here.training.HasField("packing") and self.paper.training.HasField("packing")):
            here, paper = ({path: one[path] for path in one if ".packing." not in path} for one in (here, paper))
        for path in {**paper, **here}:
            component, _, parameter = path.rpartition(".")
            if component in ("training.optimizer", "training.schedule"):
                # Parameters of another optimizer say nothing; its name does.
                if here[component] == paper[component]:
                    what = f"{_NAMES[component]} {parameter}"
                    of = getattr(self.paper.training, component.partition(".")[2])
                    self.add(path, here.get(path, "none"), paper.get(path, "none"), what, of)
            else:
                what = _NAMES_OF_PUZZLES.get(path, "") if self.table.scored == "puzzles" else ""
                self.add(path, _said(path, here), _said(path, paper), what)

    def _outside(self, axis: str, outside: Sequence[Component], published: Iterable[str]) -> None:
        """Handles components that the table lacks: it skips them, or reports a difference if there are no others."""
        names = list(dict.fromkeys(published))
        # A label may be the name of one that the table has.
        labels = ", ".join(one.name if not one.label or one.label in names else one.label for one in outside)
        if len(outside) == len(getattr(self.here, axis)):
            more = ", ..." if len(names) > _MOST_NAMED else ""
            self.add(axis, labels, ", ".join(names[:_MOST_NAMED]) + more, axis)
        elif outside:
            self.result.outside.append(f"{axis if len(outside) > 1 else axis[:-1]} {labels}")

    def _parameters(
        self, axis: str, what: str, here: Component, paper: Component, ignored: Iterable[str] = (), where: str = ""
    ) -> None:
        for name in sorted(paper.parameters):
            path = f"{axis}.{name}"
            if name not in ignored and name in here.parameters and path not in _IGNORED_PARAMETERS:
                values = format_parameter(here, name), format_parameter(paper, name)
                self.add(path, *values, f"{what} {name}{where}", paper)

    def _tasks(self) -> None:
        in_table = {row.task for row in self.table.rows}
        outside = [task for task in self.here.tasks if task.name not in in_table]
        self._outside("tasks", outside, (row.task for row in self.table.rows))
        for task in self.here.tasks:
            for paper in self.paper.tasks:
                if task.name == paper.name and task.name in in_table:
                    # A task's own replacement is distinguished from a substitute.
                    brought = {one.unless_task_has for one in self.table.substitutes}
                    self._parameters("tasks", "task", task, paper, brought)

    def _rows_of(self, network: Component) -> list[PublishedRow]:
        return [row for row in self.table.rows if row.matches_network(network)]

    def _networks(self) -> None:
        names = {paper.name for paper in self.paper.networks}
        attentions = {column.attention for column in self.table.columns}
        inside = [
            network
            for network in self.here.networks
            if self._rows_of(network) and (parameter_of(network, "attention") or "softmax") in attentions
        ]
        # If the table has some of them, the others are left out; if it has none, they give the reason.
        compared = inside or list(self.here.networks)
        # A table's columns say which attention is whose.
        ignored = ("attention",) if inside else ()
        found = len(self.result.differences)
        for network in compared:
            papers: Sequence[Component] = self.paper.networks
            if network.name not in names:
                self.add("networks", network.name, ", ".join(sorted(names)))
                if network.name != self.printed.text_value("networks"):
                    continue
                # The text's network has the sizes of the released code's.
                papers = [Component(name=network.name, parameters=one.parameters) for one in papers]
            paper = _nearest(network, papers, ignored)
            what = f"network {network.label or network.name}" if len(compared) > 1 else "network"
            self._with_encodings(network, paper, what, ignored)
        if inside:
            self._outside("networks", [network for network in self.here.networks if network not in inside], ())
        elif len(self.result.differences) == found:
            # The table has the released code's network where this is the text's.
            labels = ", ".join(network.label or network.name for network in self.here.networks)
            self.result.outside.append(f"{'networks' if len(self.here.networks) > 1 else 'network'} {labels}")

    def _with_encodings(self, network: Component, paper: Component, what: str, ignored: Collection[str]) -> None:
        """Compares a network as its trials have it: overrides for an encoding replace its parameters."""
        encodings = [encoding for encoding in self.here.encodings if self._columns_of(encoding)] or self.here.encodings
        overrides = {
            one.encoding: one.network.parameters
            for one in self.here.network_overrides
            if one.network.label == network.label
        }
        for encoding in encodings:
            changed = set(overrides.get(encoding.label, {}))
            plain = set(network.parameters) - changed
            of_encoding = network_with(self.here, network, encoding)
            self._parameters("networks", what, of_encoding, paper, {*ignored, *changed})
            self._parameters("networks", what, of_encoding, paper, {*ignored, *plain}, f" with encoding {encoding.label}")

    def _columns_of(self, encoding: Component) -> list[str]:
        return [
            column.key
            for column in self.table.columns
            for network in self.here.networks
            if column.matches(network, encoding)
        ]

    def _encodings(self) -> None:
        outside = []
        for encoding in self.here.encodings:
            same = [paper for paper in self.paper.encodings if paper.name == encoding.name]
            if not same or not self._columns_of(encoding):
                outside.append(encoding)
                continue
            if self.printed.names_always("encodings"):
                self.add("encodings", encoding.label or encoding.name, "", "encodings")
            ignored = set() if drawn_by(encoding) else set(_OF_DRAWN_POSITIONS)
            if not depends_on_max_position(encoding):
                ignored.add("max_position")
            self._parameters("encodings", "encodings'", encoding, _nearest(encoding, same, ignored), ignored)
        names = [name for column in self.table.columns for name in _encodings_of(column)]
        self._outside("encodings", outside, names)
        # The best of several encodings is another number where only some were run.
        for column in self.table.columns:
            inside = {encoding.name for encoding in self.here.encodings if encoding not in outside}
            run = [shown for name, shown in zip(column.encodings, _encodings_of(column)) if name in inside]
            if run and len(column.encodings) > 1:
                self.add("encodings", ", ".join(run), ", ".join(_encodings_of(column)), "best encoding of")

    def _seeds(self) -> None:
        """Compares the number of seeds with the paper's for the rows of the experiment's networks."""
        expected: set[int] = set()
        for network in self.here.networks:
            rows = [row for row in self._rows_of(network) if row.network] or [PublishedRow("", "")]
            expected |= {row.seeds or seed_count(self.paper) for row in rows}
        if seed_count(self.here) not in expected or self.printed.names_always("seeds"):
            published = " or ".join(format_count(count) for count in sorted(expected))
            self.add("seeds", format_count(seed_count(self.here)), published)


def _encodings_of(column: PublishedColumn) -> list[str]:
    """ "randomized_rope", "learned stddev=0.2": as labels of encodings are made."""
    wanted = dict(column.parameters or {})
    is_subset = wanted.pop("randomized", False)
    drawn = wanted.pop("positions", "randomized" if is_subset else "")
    prefix = f"{drawn}_" if drawn else ""
    more = [f" {name}={_scalar(value)}" for name, value in wanted.items() if value != (name in ("sorted", "trained"))]
    return [prefix + name + "".join(more) for name in column.encodings or ["any"]]


def _nearest(component: Component, papers: Sequence[Component], ignored: Iterable[str]) -> Component:
    """The paper's component of the same name and choice of positions that differs in the fewest parameters, the first of
    several.
    """

    def distance(paper: Component) -> tuple[bool, int]:
        names = set(paper.parameters) & set(component.parameters) - set(ignored)
        differing = sum(format_parameter(component, name) != format_parameter(paper, name) for name in names)
        return drawn_by(paper) != drawn_by(component), differing

    return min((paper for paper in papers if paper.name == component.name), key=distance)


def _rank(path: str) -> tuple[int, str]:
    """In the order of _NAMES; a component's parameters after it; what has no name at the end."""
    while path and path not in _ORDER:
        path = path.rpartition(".")[0]
    return _ORDER.get(path, len(_ORDER)), path


def compare(here: Specification, paper: Specification, table: PublishedTable) -> ProtocolComparison:
    """`here` and `paper` (resolve_protocol) have every default filled in."""
    return _Comparison(here, paper, table).run()
