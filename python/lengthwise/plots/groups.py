"""Groups the trials of experiments into the lines of a figure."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from lengthwise import queries
from lengthwise._proto import event_pb2
from lengthwise.errors import NothingChoosesError
from lengthwise.names import label
from lengthwise.plots.catalogue import Component
from lengthwise.plots.data import PlottedExperiment, Trial
from lengthwise.plots.series_style import CHOICES, SeriesStyle, apart, encoding_style, numbered_style, styled_name
from lengthwise.published import drawn_by

T = TypeVar("T")
# By which choices rank a trial, the highest first: a score, then the loss with its sign changed. Empty if the rule of the
# choice has no score of it.
Key = tuple[float, ...]


@dataclass(eq=False)
class TrialGroup:
    """Trials that differ in nothing but seeds and learning rates: a line of a figure."""

    experiment: PlottedExperiment
    task: Component
    network: Component
    encoding: Component
    # Distinguishes the groups of a task: the encoding, preceded by network and experiment if there are several.
    name: str
    # The same for this name in all tasks.
    style: SeriesStyle
    # By learning rate: trials that differ in nothing but seeds.
    rates: dict[float, list[Trial]] = field(default_factory=dict)

    @property
    def trials(self) -> list[Trial]:
        return [trial for seeds in self.rates.values() for trial in seeds]

    def at_best_rate(self) -> list[Trial]:
        """Those of the learning rate to show by the final evaluations; none if no trial has one."""
        return best_rate(self, final_key(self.experiment))


def _styled(network: Component, encoding: Component) -> tuple[str, str]:
    """What has the style, and the network whose encoding it is; "" if it is the network itself."""
    name = styled_name(network, encoding.name)
    return name, label(network) if name == encoding.name else ""


def _set_styles(groups: Sequence[TrialGroup]) -> None:
    """An encoding, or a network with a style of its own, has its colour of all figures, unless several experiments have it,
    or several networks have the encoding: then lines are numbered in the order of the grids. Choices of positions have
    colours of their own, but a plain and a randomized encoding of one name share one. Where others would share a colour, the
    first in the list of fixed places keeps it.
    """
    contexts: dict[tuple[str, str], set[str]] = {}
    for one in groups:
        name, within = _styled(one.network, one.encoding)
        contexts.setdefault((name, drawn_by(one.encoding)), set()).add(f"{one.experiment.name}/{within}")
    in_one_context = all(len(found) == 1 for found in contexts.values())
    alike: dict[tuple[str, str, str], list[str]] = {}
    numbers: dict[tuple[str, str, int], int] = {}
    looks: list[tuple[str, int, str]] = []
    for one in groups:
        (name, within), drawn = _styled(one.network, one.encoding), drawn_by(one.encoding)
        context = f"{one.experiment.name}/{within}"
        own = label(one.encoding) if within else f"{label(one.network)}/{label(one.encoding)}"
        beside = alike.setdefault((context, name, drawn), [])
        if own not in beside:
            beside.append(own)
        variant = beside.index(own) * (len(CHOICES) if drawn else 1) + CHOICES.get(drawn, 0)
        if in_one_context:
            one.style = encoding_style(name, bool(drawn), variant)
            looks.append((name, variant, drawn if variant else ""))
        else:
            style = numbered_style(numbers.setdefault((context, name, variant), len(numbers)))
            one.style = replace(style, dashes=style.dashes + bool(drawn))
    wanted = {look: one.style.color for look, one in zip(looks, groups)}
    colors = apart(dict(sorted(wanted.items(), key=lambda look: (look[0][1] > 0, look[1]))))
    for look, one in zip(looks, groups):
        one.style = replace(one.style, color=colors[look])


def group_trials(experiments: Sequence[PlottedExperiment]) -> list[TrialGroup]:
    """In the order of the experiments and their grids."""
    groups: dict[tuple[str, str, str, str], TrialGroup] = {}
    for experiment in experiments:
        for trial in experiment.trials:
            specification = trial.specification
            task, network, encoding = specification.task, specification.network, specification.encoding
            key = (experiment.name, label(task), label(network), label(encoding))
            if key not in groups:
                name = experiment.catalogue.encoding_title(encoding)
                groups[key] = TrialGroup(experiment, task, network, encoding, name, SeriesStyle())
            groups[key].rates.setdefault(specification.learning_rate, []).append(trial)
    _set_styles(list(groups.values()))
    several_networks = len({network for _, _, network, _ in groups}) > 1
    for (_, _, own, _), group in groups.items():
        if several_networks:
            group.name = f"{own}, {group.name}"
        if len(experiments) > 1:
            group.name = f"{group.experiment.name}: {group.name}"
    return list(groups.values())


def seeds_of(trial: Trial) -> tuple[int, int]:
    """Weight and data seed."""
    return trial.specification.weight_seed, trial.specification.data_seed


def tasks_of(groups: Iterable[TrialGroup]) -> list[TrialGroup]:
    """A group of each task, by label, in their order: the panels of a figure."""
    first: dict[str, TrialGroup] = {}
    for group in groups:
        first.setdefault(label(group.task), group)
    return list(first.values())


def of_task(groups: Iterable[TrialGroup], task: Component) -> list[TrialGroup]:
    return [group for group in groups if label(group.task) == label(task)]


def joined(groups: Sequence[TrialGroup]) -> list[TrialGroup]:
    """The groups of all tasks as those of one panel: encodings keep their colours, tasks differ by dashes. If two lines
    would look alike, such as an encoding's and its randomized form's, all are numbered.
    """
    tasks = [label(group.task) for group in tasks_of(groups)]
    if len(tasks) < 2:
        return list(groups)
    styles = [replace(group.style, dashes=tasks.index(label(group.task))) for group in groups]
    if len({str(style.line()) for style in styles}) < len(styles):
        styles = [numbered_style(number) for number in range(len(groups))]
    return [
        replace(group, name=f"{group.experiment.catalogue.task_title(group.task)}, {group.name}", style=style)
        for group, style in zip(groups, styles)
    ]


def rule_of(experiment: PlottedExperiment, trial: Trial) -> str:
    """ "seen" or "unseen": by which scores it is chosen (Evaluation.select)."""
    return experiment.select or trial.specification.evaluation.select or "seen"


def choice_key(experiment: PlottedExperiment, trial: Trial, measured: event_pb2.LengthAccuracies) -> Key | None:
    """By the rule of the experiment, as the server chooses (SummarizeExperiment). None without a score."""
    by_loss = experiment.catalogue.compared_by_loss(trial.specification.task)
    rule = rule_of(experiment, trial)
    if rule == "seen" and measured.HasField("validation_accuracy"):
        accuracy, loss = measured.validation_accuracy, measured.validation_loss
    elif rule == "unseen" and measured.HasField("unseen_accuracy"):
        accuracy, loss = measured.unseen_accuracy, measured.unseen_loss
    elif measured.HasField("seen_accuracy"):
        accuracy, loss = measured.seen_accuracy, measured.seen_loss
    else:
        return () if measured.lengths else None
    score = -loss if by_loss else accuracy
    return None if math.isnan(score) else queries.rank(score, loss)[:2]


def choose(candidates: Iterable[tuple[T, float, Sequence[Key]]]) -> T | None:
    """Of candidates with their learning rate and their trials' keys, the one with the highest mean score, then the lowest
    loss, then the lowest rate; the first of equal ones. None if none has a key. NothingChoosesError if the rule has no
    score.
    """
    found = [(one, rate, keys) for one, rate, keys in candidates if keys]
    if len(found) < 2:
        return found[0][0] if found else None
    if not all(key for _, _, keys in found for key in keys):
        raise NothingChoosesError

    def rank(candidate: tuple[T, float, Sequence[Key]]) -> tuple[float, ...]:
        _, rate, keys = candidate
        return *(math.fsum(column) / len(column) for column in zip(*keys)), -rate

    return max(found, key=rank)[0]


def best_rate(group: TrialGroup, key_of: Callable[[Trial], Key | None]) -> list[Trial]:
    """The trials of the learning rate to show. None of them if no trial has a key."""
    keys = [[key for key in map(key_of, seeds) if key is not None] for seeds in group.rates.values()]
    return choose((seeds, rate, of_rate) for (rate, seeds), of_rate in zip(group.rates.items(), keys)) or []


def best_trial(trials: Iterable[Trial], key_of: Callable[[Trial], Key | None]) -> Trial | None:
    return choose(
        (trial, trial.specification.learning_rate, [key]) for trial in trials if (key := key_of(trial)) is not None
    )


def best_trials(groups: Iterable[TrialGroup], wanted: Callable[[Trial], bool]) -> list[tuple[TrialGroup, Trial]]:
    """The best wanted trial of each group by its final evaluation. Groups without a wanted trial are left out."""
    chosen = []
    for group in groups:
        best = best_trial(filter(wanted, group.trials), final_key(group.experiment))
        if best is not None:
            chosen.append((group, best))
    return chosen


def final_score(experiment: PlottedExperiment, trial: Trial) -> float | None:
    """By its final evaluation, higher is better: mean accuracy over the unseen lengths, over all if none is unseen; the
    negative of such a mean of losses for tasks that are compared by them.
    """
    measured = experiment.final_evaluations().get(trial.name)
    if measured is None:
        return None
    by_loss = experiment.catalogue.compared_by_loss(trial.specification.task)
    # If no length is unseen, all are seen.
    found = [queries.mean(measured, side, by_loss) for side in ("unseen", "seen")]
    score = next((one for one in found if one is not None), None)
    return -score if by_loss and score is not None else score


def final_key(experiment: PlottedExperiment) -> Callable[[Trial], Key | None]:
    """Ranks trials by their final evaluation."""
    finals = experiment.final_evaluations()
    return lambda trial: choice_key(experiment, trial, finals[trial.name]) if trial.name in finals else None
