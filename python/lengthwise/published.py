"""Tables that papers print, as data: what experiments/published/README.md describes."""
from __future__ import annotations

import functools
import importlib.resources
import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, TypeVar, Union

from lengthwise._proto import specification_pb2
from lengthwise.errors import UsageError
from lengthwise.suggestion import suggestion

Component = specification_pb2.Component
Parameter = Union[bool, float, str]
T = TypeVar("T")


class Statistic(Enum):
    """Statistic over the trials of one cell."""

    # The best trial.
    MAXIMUM = "maximum"
    # Mean and standard deviation over the seeds of the configuration (learning rate, and where a column has several,
    # encoding) with the highest mean.
    MEAN_AT_BEST_RATE = "mean_at_best_rate"
    # Mean and standard deviation over all trials.
    MEAN_OF_ALL = "mean_of_all"
    # Median over the seeds of the configuration with the lowest.
    MEDIAN = "median"


class Quantity(Enum):
    """Quantity that a table's numbers measure."""

    # Per cent.
    UNSEEN_ACCURACY = "unseen_accuracy"
    # Per cent, on examples of the trial's own data set.
    TRAINING_ACCURACY = "training_accuracy"
    TRAINING_HOURS = "training_hours"
    STEPS_PER_SECOND = "steps_per_second"
    # Mean squared error.
    LOSS = "loss"
    # 0 to 1; of `lengthwise analyze attention`.
    ATTENTION_COSINE = "attention_cosine"


def parameter_of(component: Component, name: str) -> Parameter | None:
    """A parameter's value; None if the component has no such parameter."""
    if name not in component.parameters:
        return None
    value = component.parameters[name]
    kind = value.WhichOneof("kind")
    if kind == "bool_value":
        return value.bool_value
    return value.number_value if kind == "number_value" else value.string_value


def drawn_by(encoding: Component) -> str:
    """How positions are drawn, as labels begin: "randomized", "uniform_reals". Empty if they are counted."""
    return str(parameter_of(encoding, "positions") or ("randomized" if parameter_of(encoding, "randomized") else ""))


def depends_on_max_position(encoding: Component) -> bool:
    """True if it limits positions, or is the size of a table: elsewhere it has no effect."""
    return encoding.name == "learned" or drawn_by(encoding) not in ("", "shift", "augmented")


def network_with(
    specification: specification_pb2.ExperimentSpecification, network: Component, encoding: Component
) -> Component:
    """The network as the trials with the encoding have it, of a resolved specification."""
    changed = Component()
    changed.CopyFrom(network)
    for one in specification.network_overrides:
        if (one.network.label, one.encoding) == (network.label, encoding.label):
            for name, value in one.network.parameters.items():
                changed.parameters[name].CopyFrom(value)
    return changed


def _has(component: Component, wanted: Mapping[str, Parameter]) -> bool:
    """True if the parameters have these values. An absent flag is false, except `sorted` and `trained`."""
    for name, value in wanted.items():
        own = parameter_of(component, name)
        if own is None and isinstance(value, bool):
            own = name in ("sorted", "trained")
        if own != value or isinstance(own, bool) != isinstance(value, bool):
            return False
    return True


def split(component: Mapping[str, Any]) -> tuple[str, dict[str, Parameter]]:
    """{"name": ..., and parameters}."""
    return component.get("name", ""), {name: value for name, value in component.items() if name != "name"}


@dataclass(frozen=True)
class PublishedValue:
    value: float
    deviation: float | None = None
    # 10th and 90th percentile of the trials whose median `value` is.
    p10: float | None = None
    p90: float | None = None


@dataclass(frozen=True)
class PublishedColumn:
    key: str
    label: str
    statistic: Statistic
    # An encoding of one of these names (empty: any) with these parameters.
    encodings: Sequence[str] = ()
    parameters: Mapping[str, Parameter] | None = None
    # The network's attention.
    attention: str = "softmax"
    # Length on the tasks' axis at which losses or accuracies are taken; 0: mean over the unseen lengths.
    length: int = 0

    def matches(self, network: Component, encoding: Component) -> bool:
        if (parameter_of(network, "attention") or "softmax") != self.attention:
            return False
        if self.encodings and encoding.name not in self.encodings:
            return False
        # Positions are drawn only where the column says so.
        chosen = self.parameters or {}
        if parameter_of(encoding, "positions") != chosen.get("positions"):
            return False
        return _has(encoding, {"randomized": False, **chosen})


@dataclass(frozen=True)
class PublishedRow:
    # Name in the catalogue.
    task: str
    label: str
    level: str = ""
    permutation_invariant: bool = False
    random_accuracy: float = 0
    # A network of this name (empty: any) with these parameters.
    network: str = ""
    network_parameters: Mapping[str, Parameter] | None = None
    # Set only where they differ from the protocol.
    seeds: int | None = None
    quantity: Quantity | None = None

    def matches(self, task: Component, network: Component) -> bool:
        return task.name == self.task and self.matches_network(network)

    def matches_network(self, network: Component) -> bool:
        return (not self.network or network.name == self.network) and _has(network, self.network_parameters or {})


# Components by axis: "tasks", "networks" (with what an override changes for the encoding) and "encodings".
Trial = Mapping[str, Component]
# A condition on trials: by path ("encodings", its name; "networks.dropout"; "training.batch_size"), the value or, as a
# list, the values.
Condition = Mapping[str, Union[Parameter, Sequence[Parameter]]]


# What trials do where the authors' code and the paper's text differ.
SIDES = ("text", "code", "neither")


def steps_per_epoch(training: specification_pb2.Training) -> int:
    """Of a resolved specification; 0 if training has no epochs. A batch has examples of one length."""
    lengths = training.lengths.max - training.lengths.min + 1
    if training.HasField("packing") or training.batch_size < 1 or not 1 <= lengths <= training.examples:
        return 0
    # If the lengths do not divide the examples, the shortest have one more.
    each, more = divmod(training.examples, lengths)
    size = training.batch_size
    return more * -(-(each + 1) // size) + (lengths - more) * -(-each // size)


def epochs(training: specification_pb2.Training) -> float | None:
    """Passes over the data set; None if training has none."""
    steps = steps_per_epoch(training)
    return training.steps / steps if steps else None


def unseen_lengths(specification: specification_pb2.ExperimentSpecification) -> list[int]:
    """Those over which accuracies are averaged as unseen, ascending."""
    evaluation = specification.evaluation
    seen = evaluation.seen_up_to if evaluation.HasField("seen_up_to") else specification.training.lengths.max
    return sorted({length for length in evaluation.lengths if length > seen})


def _value_at(specification: specification_pb2.ExperimentSpecification, trial: Trial, path: str) -> Parameter | None:
    axis, _, name = path.partition(".")
    if axis in trial:
        return parameter_of(trial[axis], name) if name else trial[axis].name
    if path == "epochs":
        return epochs(specification.training)
    if path == "scored_from":
        return next(iter(unseen_lengths(specification)), None)
    value: Any = specification
    for part in path.split("."):
        value = getattr(value, part)
    if isinstance(value, (bool, int, float, str)):
        return value
    # Several learning rates are none of the paper's or the code's.
    return value[0] if len(value) == 1 else None


def _fulfils(specification: specification_pb2.ExperimentSpecification, trial: Trial, condition: Condition) -> bool:
    for path, wanted in condition.items():
        own = _value_at(specification, trial, path)
        values = [wanted] if isinstance(wanted, (bool, int, float, str)) else wanted
        if not any(own == value and isinstance(own, bool) == isinstance(value, bool) for value in values):
            return False
    return True


@dataclass(frozen=True)
class Substitute:
    """Our substitute for material of the paper that is not available here."""

    what: str
    # "{tasks.validation_puzzles} generated": values of the trials in braces, by path.
    here: str
    published: str
    # With this parameter of its tasks set, an experiment has the real thing.
    unless_task_has: str = ""

    def described(self, specification: specification_pb2.ExperimentSpecification, tasks: Sequence[Component]) -> str:
        """`here` with the values of trials on those of `tasks` that do not bring the real thing."""

        def values(match: re.Match[str]) -> str:
            found = [_value_at(specification, {"tasks": task}, match[1]) for task in without]
            return " or ".join(dict.fromkeys(f"{one:,.10g}" if isinstance(one, (int, float)) else str(one) for one in found))

        without = [task for task in tasks if not (self.unless_task_has and parameter_of(task, self.unless_task_has))]
        return re.sub(r"\{([a-z_.]+)\}", values, self.here)


@dataclass(frozen=True)
class CodeDifference:
    """Behaviour of the authors' released code where it differs from the paper's text or the text is silent.

    Whether trials do as the text, as the code or as neither follows from their own fields and parameters, however these were
    set.
    """

    # "trains with dropout of 0.1"; {encodings} stands for the labels of the trials' encodings.
    code: str
    # "the text names none"; empty: the text does not say.
    text: str = ""
    # What all trials have, "text", "code" or "neither", where no parameter chooses.
    here: str = ""
    # Trials that it concerns; empty: all.
    about: Condition | None = None
    # Trials that do as the code, and as the text. Others do as neither.
    code_if: Condition | None = None
    text_if: Condition | None = None
    # Keys of the columns concerned, where it does not concern all; for a sentence about columns.
    columns: Sequence[str] = ()
    # The text may mean what the code does.
    either: bool = False

    def __post_init__(self) -> None:
        if (self.here not in SIDES) == (self.code_if is None):
            raise ValueError(f"\"{self.code}\" must have either code_if or `here` as one of {', '.join(SIDES)}")

    def side(self, specification: specification_pb2.ExperimentSpecification, trial: Trial) -> str | None:
        """ "text", "code" or "neither"; None if it does not concern the trial."""
        if not _fulfils(specification, trial, self.about or {}):
            return None
        if self.code_if is None:
            return self.here
        if _fulfils(specification, trial, self.code_if):
            return "code"
        return "text" if self.text_if and _fulfils(specification, trial, self.text_if) else "neither"


@dataclass(frozen=True)
class CodeReading:
    """Which side of a difference the trials of an experiment take."""

    difference: CodeDifference
    # All that it concerns, in the experiment's order.
    concerned: Sequence[Trial]
    # The same by side.
    trials: Mapping[str, Sequence[Trial]]

    @property
    def side(self) -> str:
        """ "text", "code", "neither", or "mixed"."""
        return next(iter(self.trials)) if len(self.trials) == 1 else "mixed"

    @property
    def replaces_text(self) -> bool:
        """Some trials do as the code, and the text says otherwise."""
        return bool(self.difference.text) and not self.difference.either and "code" in self.trials

    @property
    def sentence(self) -> str:
        """ "trains with dropout of 0.1 (the text names none)"."""
        labels = ", ".join(_labels(self.concerned, ["encodings"]))
        return f"{self.difference.code.replace('{encodings}', labels)} ({self.difference.text or 'the text does not say'})"

    def labels(self) -> dict[str, list[str]]:
        """By side, the labels that tell its trials from those of other sides."""
        for axes in (["encodings"], ["networks"], ["tasks"], ["networks", "encodings"]):
            found = {side: _labels(trials, axes) for side, trials in self.trials.items()}
            names = [name for labels in found.values() for name in labels]
            if len(names) == len(set(names)):
                return found
        return found


def _labels(trials: Sequence[Trial], axes: Sequence[str]) -> list[str]:
    names = (" with ".join(trial[axis].label or trial[axis].name for axis in axes) for trial in trials)
    return list(dict.fromkeys(names))


@dataclass(frozen=True)
class PublishedGain:
    """A number of the paper's text that follows from its table: the best of some columns less the best of others, by row."""

    # "the best randomized encoding less the best other".
    what: str
    # Columns' keys.
    of: Sequence[str]
    less: Sequence[str]
    # Over all rows, as the text has them.
    mean: float
    largest: float | None = None


@dataclass(frozen=True)
class PublishedTable:
    # "randomized_pe/table_1".
    key: str
    citation: str
    # "Table 1".
    table: str
    title: str
    aggregation: str
    quantity: Quantity
    rows: Sequence[PublishedRow]
    columns: Sequence[PublishedColumn]
    # By row and column.
    cells: Mapping[tuple[int, int], PublishedValue]
    # The specification of the table's own trials, without a name, as a user would write it.
    protocol: Mapping[str, Any]
    # Fields that the paper leaves open for this table alone ("training.batch_size"), with the source of our value.
    unknown: Mapping[str, str]
    substitutes: Sequence[Substitute]
    # Known differences in the authors' code.
    released_code: Sequence[CodeDifference]
    notes: Sequence[str]
    # "puzzles" where all that is evaluated is unseen and the axis is not length.
    scored: str = "lengths"
    gains: Sequence[PublishedGain] = ()
    # Numbers of the paper's text, as the file has them; empty: none. Of the table's models over others ("than"), until an
    # "accuracy" from 0 to 1 is reached: how many "times" sooner.
    speedup: Mapping[str, Any] = field(default_factory=dict)
    # Of two networks' losses over the tasks: "smallest", "mean", "largest".
    loss_ratio: Mapping[str, Any] = field(default_factory=dict)
    # Spearman's rank correlation "rho" of the table's values and another "table"'s, by column.
    correlation: Mapping[str, Any] = field(default_factory=dict)
    # Values of the text that differ from the protocol's, for this table alone; lengthwise.printed reads them.
    text: Sequence[Mapping[str, Any]] = ()

    @property
    def silent(self) -> list[tuple[str, str]]:
        """What the paper does not say and no field of a specification holds, and what Lengthwise does."""
        paper = papers().get(self.key.partition("/")[0], {})
        return [(one["what"], one["here"]) for one in paper.get("silent", [])]

    @property
    def is_time(self) -> bool:
        """True if the numbers measure training time alone, which no evaluation changes."""
        return self.quantity in (Quantity.TRAINING_HOURS, Quantity.STEPS_PER_SECOND)

    def quantity_of(self, row: int) -> Quantity:
        return self.rows[row].quantity or self.quantity

    def places(self, task: Component, network: Component, encoding: Component) -> list[tuple[int, int]]:
        """The rows and columns that such trials belong to: a table may have a row twice, and columns of the same trials."""
        rows = [r for r, row in enumerate(self.rows) if row.matches(task, network)]
        columns = [c for c, column in enumerate(self.columns) if column.matches(network, encoding)]
        return list(itertools.product(rows, columns))

    def _trials(
        self, specification: specification_pb2.ExperimentSpecification, columns: Sequence[PublishedColumn]
    ) -> list[Trial]:
        """Combinations of a resolved specification's components that belong to cells of these columns."""
        return [
            {
                "tasks": task,
                "networks": network_with(specification, network, encoding),
                "encodings": encoding,
            }
            for task, network, encoding in itertools.product(
                specification.tasks, specification.networks, specification.encodings
            )
            if any(row.matches(task, network) for row in self.rows)
            and any(column.matches(network, encoding) for column in columns)
        ]

    def code_readings(
        self, specification: specification_pb2.ExperimentSpecification, column: PublishedColumn | None = None
    ) -> list[CodeReading]:
        """The sides that the table's trials of an experiment take, or those of one column; nothing that concerns none."""
        found = []
        trials = self._trials(specification, self.columns if column is None else [column])
        for difference in self.released_code:
            sides = [(trial, difference.side(specification, trial)) for trial in trials]
            by_side = {side: [trial for trial, own in sides if own == side] for side in SIDES}
            if any(by_side.values()):
                concerned = [trial for trial, side in sides if side is not None]
                found.append(CodeReading(difference, concerned, {side: of for side, of in by_side.items() if of}))
        return found

    def columns_by_code(self, specification: specification_pb2.ExperimentSpecification) -> dict[str, list[str]]:
        """By the keys of columns that the released code treats otherwise: the sides of their trials."""
        found: dict[str, list[str]] = {}
        for column in self.columns:
            readings = self.code_readings(specification, column)
            sides = {side for one in readings if column.key in one.difference.columns for side in one.trials}
            if sides:
                found[column.key] = [side for side in SIDES if side in sides]
        return found

    @property
    def quantities(self) -> set[Quantity]:
        return {self.quantity_of(row) for row in range(len(self.rows))}

    @property
    def has_length_accuracies(self) -> bool:
        return self.quantity is Quantity.UNSEEN_ACCURACY and any(column.length > 0 for column in self.columns)

    @property
    def paper(self) -> str:
        """ "Ruoss et al. 2023 (ACL)"."""
        return self.citation.partition(",")[0]


def _read(kind: Callable[..., T], object_: Mapping[str, Any], **others: Any) -> T:
    """A dataclass of what the object has of its fields, but for the values in `others`."""
    names = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    return kind(**{**{name: value for name, value in object_.items() if name in names}, **others})


def _column(object_: Mapping[str, Any], comparison: Mapping[str, Any]) -> PublishedColumn:
    name, parameters = split(object_["encoding"])
    encodings = object_.get("encodings") or [name] * bool(name)
    statistic = Statistic(object_.get("statistic") or comparison["statistic"])
    return _read(PublishedColumn, object_, statistic=statistic, encodings=encodings, parameters=parameters)


def _row(object_: Mapping[str, Any], paper: Mapping[str, Any]) -> PublishedRow:
    network, parameters = split(object_.get("network", {}))
    return _read(
        PublishedRow,
        object_,
        task=object_.get("task", object_["key"]),
        random_accuracy=float(object_.get("random_accuracy_percent", 0)),
        network=network or paper.get("network", ""),
        network_parameters=parameters,
        quantity=Quantity(object_["quantity"]) if "quantity" in object_ else None,
    )


# Beside the tables: what each paper prints of its protocol. lengthwise.printed reads it.
PAPERS_FILE = "papers.json"


@functools.lru_cache(maxsize=1)
def papers() -> Mapping[str, Any]:
    """PAPERS_FILE, by paper."""
    file = importlib.resources.files("lengthwise") / "_published" / PAPERS_FILE
    found: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def parse(name: str, text: str) -> PublishedTable:
    """From a file's name without its ending, and what it holds. ValueError says what is wrong with it."""
    try:
        file = json.loads(text)
        paper = file["paper"]
        if not name.startswith(paper + "_"):
            raise ValueError(f"its name must begin with its paper, {paper}")
        comparison = file["comparison"]
        rows = {row["key"]: index for index, row in enumerate(file["rows"])}
        columns = {column["key"]: index for index, column in enumerate(file["columns"])}
        cells: dict[tuple[int, int], PublishedValue] = {}
        for cell in file["cells"]:
            for key, keys in ((cell["row"], rows), (cell["column"], columns)):
                if key not in keys:
                    raise ValueError(f'a cell names "{key}", which is not in the table')
            cells[rows[cell["row"]], columns[cell["column"]]] = PublishedValue(
                float(cell["value"]), cell.get("std"), cell.get("p10"), cell.get("p90")
            )
        gains = [PublishedGain(**gain) for gain in file.get("gains", [])]
        released_code = [CodeDifference(**one) for one in file.get("released_code", [])]
        named = [("gain", key) for gain in gains for key in (*gain.of, *gain.less)]
        for what, key in named + [("difference of released code", key) for one in released_code for key in one.columns]:
            if key not in columns:
                raise ValueError(f'a {what} names "{key}", which is not a column')
        return _read(
            PublishedTable,
            {"unknown": {}, **file},
            key=f"{paper}/{name[len(paper) + 1:]}",
            quantity=Quantity(comparison["quantity"]),
            rows=[_row(row, papers().get(paper, {})) for row in file["rows"]],
            columns=[_column(column, comparison) for column in file["columns"]],
            cells=cells,
            substitutes=[Substitute(**substitute) for substitute in file.get("substitutes", [])],
            released_code=released_code,
            scored=comparison.get("scored", "lengths"),
            gains=gains,
        )
    except KeyError as error:
        raise ValueError(f"{name}.json: has no {error}") from None
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name}.json: {error}") from None


def tables() -> list[PublishedTable]:
    """All that come with this package, sorted by key."""
    folder = importlib.resources.files("lengthwise") / "_published"
    files = [file for file in folder.iterdir() if file.name.endswith(".json") and file.name != PAPERS_FILE]
    found = [parse(file.name.removesuffix(".json"), file.read_text(encoding="utf-8")) for file in files]
    return sorted(found, key=lambda table: table.key)


def find(key: str) -> PublishedTable:
    """The table of a key such as "randomized_pe/table_1"."""
    folder = importlib.resources.files("lengthwise") / "_published"
    name = key.replace("/", "_", 1)
    file = folder / f"{name}.json"
    if key.count("/") == 1 and file.is_file():
        return parse(name, file.read_text(encoding="utf-8"))
    keys = [table.key for table in tables()]
    raise UsageError(
        f'unknown published table "{key}"{suggestion(key, keys)}; `lengthwise results --compare list` prints them'
    )
