"""Reads figures' data from the server, in few calls, each made when a figure first needs its answer."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from lengthwise import names, queries
from lengthwise._proto import event_pb2, experiment_service_pb2
from lengthwise.connection import Connection
from lengthwise.errors import NotFoundError
from lengthwise.events import AttentionMap, Projection, to_attention_maps, to_projection
from lengthwise.names import label, short_name
from lengthwise.plots import catalogue
from lengthwise.plots.catalogue import Catalogue
from lengthwise.queries import Evaluation, LossCurve
from lengthwise.rendering import format_exact
from lengthwise.suggestion import suggestion

Trial = experiment_service_pb2.Trial
T = TypeVar("T")

# Points of a loss curve: enough for a wide picture. The server averages the points between.
LOSS_POINTS = 1000


def has_ended(trial: Trial) -> bool:
    return trial.state in (event_pb2.SUCCEEDED, event_pb2.FAILED, event_pb2.CANCELLED)


@dataclass(frozen=True)
class TrialFilter:
    """Selects the trials to draw: each sequence that is not empty must contain the trial's label."""

    tasks: Sequence[str] = ()
    networks: Sequence[str] = ()
    encodings: Sequence[str] = ()
    learning_rates: Sequence[float] = ()
    # By id, the beginning of one, or index.
    trials: Sequence[str] = ()


class Plottable(Protocol):
    """An experiment of the client, or one that figures read already."""

    def _plotted(self) -> PlottedExperiment: ...


def read_with(experiments: Sequence[Plottable], select: str) -> list[PlottedExperiment]:
    """`select`: the rule of their choices; empty: each has its own."""
    plotted = [one._plotted() for one in experiments]
    return [replace(one, select=select) for one in plotted] if select else plotted


@dataclass(eq=False)
class PlottedExperiment:
    """An experiment as figures read it. What is not set is asked of `connection`, once, when it is first read; a test or a
    script without a server sets it.
    """

    # "quickstart-1".
    name: str
    # The trials drawn, in grid order. Evaluations that are read without any are those of all.
    trials: list[Trial] = field(default_factory=list)
    connection: Connection | None = None
    catalogue: Catalogue = field(default_factory=Catalogue)
    # Final evaluations; those with the ones that were made during training.
    finals: list[Evaluation] | None = None
    all_evaluations: list[Evaluation] | None = None
    curves: list[LossCurve] | None = None
    # By the trial's full name.
    maps: dict[str, list[AttentionMap]] = field(default_factory=dict)
    projected: dict[str, list[Projection]] = field(default_factory=dict)
    recorded: list[event_pb2.Event] | None = None
    # Rule of choices, "seen" or "unseen"; empty: that of each trial (evaluation.select).
    select: str = ""
    # Evaluations and what final_evaluations has made of so many of them.
    _finals_by_trial: tuple[list[Evaluation], int, dict[str, event_pb2.LengthAccuracies]] = field(
        default_factory=lambda: ([], 0, {}), repr=False
    )

    @property
    def full_name(self) -> str:
        return f"experiments/{self.name}"

    def _plotted(self) -> PlottedExperiment:
        return self

    def copy(self) -> PlottedExperiment:
        """To leave trials out of; what has been read is shared."""
        return replace(self, trials=list(self.trials))

    def choose(self, trials: list[Trial]) -> None:
        """Leaves out all other trials, and what has been read of them."""
        self.trials = trials
        names = set(self._trial_names())
        for answers in ("finals", "all_evaluations", "curves", "recorded"):
            if (read := getattr(self, answers)) is not None:
                setattr(self, answers, [one for one in read if one.trial in names])

    @property
    def query_name(self) -> str:
        """One trial alone is asked for by its own name."""
        return self.trials[0].name if len(self.trials) == 1 else self.full_name

    def _read(self, name: str, query: Callable[[Connection], list[T]]) -> list[T]:
        """The field `name`, which `query` reads of the server if nothing has set it."""
        if getattr(self, name) is None and self.connection is not None:
            setattr(self, name, query(self.connection))
        found: list[T] | None = getattr(self, name)
        return found or []

    def _trial_names(self) -> list[str]:
        return [trial.name for trial in self.trials]

    def evaluations(self, intervals: bool = False) -> list[Evaluation]:
        """The final ones; with `intervals` also those made during training."""
        if not intervals and self.finals is None and self.all_evaluations is not None:
            self.finals = [one for one in self.all_evaluations if one.accuracies.final]
        return self._read(
            "all_evaluations" if intervals else "finals",
            lambda server: queries.length_accuracies(server, self.query_name, self._trial_names() or None, intervals),
        )

    def final_evaluations(self) -> dict[str, event_pb2.LengthAccuracies]:
        """The last full evaluation of each trial that has one, by the trial's name."""
        read = self.evaluations()
        known, size, _ = self._finals_by_trial
        if read is not known or len(read) != size:
            found = {one.trial: one.accuracies for one in read if one.accuracies.final}
            self._finals_by_trial = read, len(read), found
        return self._finals_by_trial[2]

    def loss_curves(self) -> list[LossCurve]:
        """Loss curves, each of at most LOSS_POINTS points."""
        return self._read(
            "curves", lambda server: queries.loss_curves(server, self.query_name, self._trial_names(), LOSS_POINTS)
        )

    def attention_maps(self, trial: str) -> list[AttentionMap]:
        """Attention maps of the trial with this full name."""
        if trial not in self.maps and self.connection is not None:
            self.maps[trial] = to_attention_maps(queries.attention_maps(self.connection, trial), short_name(trial))
        return self.maps.get(trial, [])

    def projections(self, trial: str) -> list[Projection]:
        if trial not in self.projected and self.connection is not None:
            self.projected[trial] = list(map(to_projection, queries.projections(self.connection, trial)))
        return self.projected.get(trial, [])

    def analyses(self) -> list[event_pb2.Event]:
        """Recorded events for analyses: scores of single sequences, accuracies under noise, errors of answers."""
        names = set(self._trial_names())
        return self._read(
            "recorded",
            lambda server: [event for event in queries.analyses(server, self.query_name) if event.trial in names],
        )


def fetch(
    connection: Connection, wanted: Sequence[str], filter: TrialFilter | None = None, select: str = ""
) -> list[PlottedExperiment]:
    """Each of `wanted` is an experiment, or "EXPERIMENT/TRIAL": then the experiment with this trial alone. NotFoundError: no
    such experiment or trial, or a label in the filter that no trial has, with what was probably meant.
    """
    chosen = filter or TrialFilter()
    known = catalogue.fetch(connection)
    experiments: dict[str, PlottedExperiment] = {}
    for name in wanted:
        asked = names.find(connection, name)
        experiment = asked.experiment.name
        if asked.HasField("trial"):
            trials = [asked.trial]
        elif chosen.trials:
            trials = [names.find(connection, f"{short_name(experiment)}/{one}", names.TRIAL).trial for one in chosen.trials]
        else:
            trials = names.list_trials(connection, experiment)
        # An experiment of which several trials are named is one, and a trial that is named twice, too.
        plotted = experiments.setdefault(
            experiment,
            PlottedExperiment(short_name(experiment), connection=connection, catalogue=known, select=select),
        )
        there = {trial.name for trial in plotted.trials}
        plotted.trials += [trial for trial in trials if trial.name not in there]
    found = list(experiments.values())
    keep(found, chosen)
    return found


def keep(experiments: Sequence[PlottedExperiment], filter: TrialFilter) -> None:
    """Leaves in the experiments the trials that the filter's labels name; `filter.trials` is not read."""
    rates = [format_exact(rate) for rate in filter.learning_rates]
    kinds: list[tuple[str, Sequence[str], Callable[[Trial], str]]] = [
        ("task", filter.tasks, lambda trial: label(trial.specification.task)),
        ("network", filter.networks, lambda trial: label(trial.specification.network)),
        ("encoding", filter.encodings, lambda trial: label(trial.specification.encoding)),
        ("learning rate", rates, lambda trial: format_exact(trial.specification.learning_rate)),
    ]
    names_text = experiment_names(experiments)
    for kind, wanted, name_of in kinds:
        if not wanted:
            continue
        there = {name_of(trial) for experiment in experiments for trial in experiment.trials}
        for one in wanted:
            if one not in there:
                raise NotFoundError(f'{names_text} has no {kind} "{one}"{suggestion(one, sorted(there))}')
        for experiment in experiments:
            experiment.choose([trial for trial in experiment.trials if name_of(trial) in wanted])
    if not any(experiment.trials for experiment in experiments):
        raise NotFoundError(
            f"no trial of {names_text} has all of the wanted task, network, encoding and learning rate together"
        )


def experiment_names(experiments: Sequence[PlottedExperiment]) -> str:
    """ "quickstart-1", "a-1 and b-1", "a-1, b-1 and c-1"."""
    all_names = [experiment.name for experiment in experiments]
    return " and ".join([", ".join(all_names[:-1]), all_names[-1]]) if len(all_names) > 1 else "".join(all_names)
