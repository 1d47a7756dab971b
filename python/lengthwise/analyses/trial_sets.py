"""Input of analyses: sets of trials that differ only in their seeds, with their final accuracies."""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from lengthwise._proto import event_pb2, experiment_service_pb2, specification_pb2
from lengthwise.errors import UsageError, damaged, refused
from lengthwise.names import label
from lengthwise.plots.data import PlottedExperiment, experiment_names
from lengthwise.plots.groups import choose, final_key, final_score, seeds_of
from lengthwise.plots.seen_lengths import SeenLengths, unseen_lengths
from lengthwise.rendering import format_integers
from lengthwise.suggestion import suggestion

Trial = experiment_service_pb2.Trial
# Weight and data seed: what pairs the trials of two sets.
Seeds = tuple[int, int]

T = TypeVar("T")


@dataclass(eq=False)
class TrialSet:
    """The trials that a row of an analysis sums up: of the same labels, trained and encoded alike, all SUCCEEDED.

    Trials of one label that were trained with other parameters are another set. Its experiment tells the two apart: no
    experiment has two sets of the same labels and learning rate.
    """

    # The first trial's.
    experiment: PlottedExperiment
    task: str
    network: str
    encoding: str
    learning_rate: float
    # Serialized task, network and training: sets with the same bytes were trained alike.
    training: bytes
    # In the order of the experiments and their grids. A model that was evaluated again is there twice.
    trials: list[Trial] = field(default_factory=list)

    @property
    def labels(self) -> tuple[str, str, str, float]:
        return self.task, self.network, self.encoding, self.learning_rate

    @property
    def specification(self) -> specification_pb2.TrialSpecification:
        """The first trial's."""
        return self.trials[0].specification

    @property
    def by_loss(self) -> bool:
        """True if the task is compared by its losses."""
        return self.experiment.catalogue.compared_by_loss(self.specification.task)


@dataclass(frozen=True)
class Subject:
    """Experiments that are analysed together."""

    experiments: Sequence[PlottedExperiment]
    # In the order of the experiments and their grids; not empty.
    sets: Sequence[TrialSet]
    # By the trial's full name, of the final evaluation: the mean over the lengths that training did not show, over all where
    # it showed all. For tasks that are compared by loss the negative of that mean of losses.
    accuracies: dict[str, float]

    @property
    def names(self) -> str:
        """ "a-1", "a-1 and b-1", "a-1, b-1 and c-1"."""
        return experiment_names(self.experiments)

    def final_evaluations(self) -> dict[str, event_pb2.LengthAccuracies]:
        """By the trial's full name."""
        return {name: one for experiment in self.experiments for name, one in experiment.final_evaluations().items()}

    @functools.cached_property
    def by_loss(self) -> bool:
        """True if the tasks are compared by their losses. FAILED_PRECONDITION if some are and some are not."""
        found = {one.by_loss for one in self.sets}
        if len(found) > 1:
            raise refused(
                f"some tasks of {self.names} are compared by accuracies and some by losses; choose some with --task"
            )
        return found == {True}

    def unseen(self, otherwise: str) -> str:
        """Of the trials' lengths those that do not count as seen: see unseen_lengths."""
        return unseen_lengths((SeenLengths.by(trial) for one in self.experiments for trial in one.trials), otherwise)

    def experiment_of(self, trial: Trial) -> PlottedExperiment:
        for one in self.experiments:
            if trial.name.startswith(f"{one.full_name}/"):
                return one
        raise damaged(f"{trial.name} is a trial of no experiment that was asked for")

    def best_rate(self, sets: Iterable[TrialSet]) -> TrialSet | None:
        """Of sets that differ in their learning rates; the first if none has been evaluated."""
        sets = list(sets)
        keys = [[final_key(self.experiment_of(trial))(trial) for trial in one.trials] for one in sets]
        ranked = ((one, one.learning_rate, [key for key in found if key is not None]) for one, found in zip(sets, keys))
        return choose(ranked) or next(iter(sets), None)

    def accuracies_of(self, one: TrialSet) -> list[float]:
        """One for each seed."""
        return list(self.accuracies_by_seed(one).values())

    def accuracies_by_seed(self, one: TrialSet) -> dict[Seeds, float]:
        known = by_seed(one.trials, lambda trial: self.accuracies.get(trial.name))
        return {seeds_of(trial): accuracy for trial, accuracy in known}


def by_seed(trials: Sequence[Trial], value_of: Callable[[Trial], T | None]) -> list[tuple[Trial, T]]:
    """The first trial of each seed that has a value, with it: a model that was evaluated again counts once."""
    found: dict[Seeds, tuple[Trial, T]] = {}
    for trial in trials:
        if seeds_of(trial) not in found and (value := value_of(trial)) is not None:
            found[seeds_of(trial)] = trial, value
    return list(found.values())


def share_labels(sets: Sequence[TrialSet]) -> bool:
    """True if two sets have the same labels and learning rate, so that only their experiments distinguish them."""
    distinct = list(dict.fromkeys(sets))
    return len({one.labels for one in distinct}) < len(distinct)


def reference_of(one: TrialSet, reference: str, sets: Sequence[TrialSet]) -> TrialSet | None:
    """The set of the encoding `reference` that was trained as `one`; None if there is none."""
    for other in sets:
        if (other.encoding, other.training, other.learning_rate) == (reference, one.training, one.learning_rate):
            return other
    return None


def check_reference(reference: str, what: str, names: Sequence[str]) -> None:
    """UsageError, with the accepted names, if `reference` is not in `names`. `what`: their kind, "encoding"."""
    if reference in names:
        return
    distinct = list(dict.fromkeys(names))
    meant = suggestion(reference, distinct)
    there = "" if meant.startswith("; accepted") else f"; there are {', '.join(distinct)}"
    raise UsageError(f'--reference: no trial that succeeded has the {what} "{reference}"{meant}{there}')


def training_of(specification: specification_pb2.TrialSpecification, with_network: bool = True) -> bytes:
    """The same bytes for trials of one task, and network, that were trained alike."""
    trained = specification_pb2.TrialSpecification(task=specification.task, training=specification.training)
    if with_network:
        trained.network.CopyFrom(specification.network)
    # No model depends on how often something was written down.
    trained.training.ClearField("report_every_steps")
    trained.training.ClearField("checkpoint_every_steps")
    trained.training.ClearField("checkpoint_every_seconds")
    return trained.SerializeToString(deterministic=True)


def sets_of_trials(experiments: Sequence[PlottedExperiment]) -> list[TrialSet]:
    sets: dict[tuple[object, ...], TrialSet] = {}
    for experiment in experiments:
        for trial in experiment.trials:
            if trial.state != event_pb2.SUCCEEDED:
                continue
            one, training = trial.specification, training_of(trial.specification)
            labels = label(one.task), label(one.network), label(one.encoding), one.learning_rate
            key = (labels, training, one.encoding.SerializeToString(deterministic=True))
            sets.setdefault(key, TrialSet(experiment, *labels, training)).trials.append(trial)
    return list(sets.values())


def subject_of(experiments: Sequence[PlottedExperiment]) -> Subject:
    """FAILED_PRECONDITION if no trial has succeeded."""
    scores = {trial.name: final_score(experiment, trial) for experiment in experiments for trial in experiment.trials}
    accuracies = {name: score for name, score in scores.items() if score is not None}
    subject = Subject(experiments, sets_of_trials(experiments), accuracies)
    if not subject.sets:
        raise refused(f"no trial of {subject.names} has succeeded yet: nothing to analyze")
    return subject


def at_length(subject: Subject, length: int) -> Subject:
    """The same trials with their scores at one evaluated length, whether or not training showed it. UsageError if no trial
    was evaluated at it.
    """
    scores: dict[str, float] = {}
    evaluated: set[int] = set()
    for name, measured in subject.final_evaluations().items():
        evaluated.update(measured.lengths)
        values = [-loss for loss in measured.losses] if subject.by_loss else measured.accuracies
        if length in measured.lengths:
            scores[name] = values[list(measured.lengths).index(length)]
    if not scores:
        accepted = format_integers(sorted(evaluated))
        raise UsageError(f"--length: no trial of {subject.names} was evaluated at {length}; accepted: {accepted}")
    return replace(subject, accuracies=scores)
