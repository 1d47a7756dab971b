"""Results by what is swept: a parameter of the encodings (Ruoss et al. 2023, Figure 3), the number of training examples or
the length of the vectors (positional attention, Figures 3, 4 and 12 to 21), the learning rate (Zhou et al. 2024, F.17).
"""
from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

import numpy

from lengthwise import queries
from lengthwise.errors import UsageError, refused
from lengthwise.names import label
from lengthwise.plots import panels
from lengthwise.plots.catalogue import Component
from lengthwise.plots.data import PlottedExperiment, Trial, experiment_names
from lengthwise.plots.groups import TrialGroup, group_trials, tasks_of
from lengthwise.plots.metrics import choose_metric
from lengthwise.plots.options import Options
from lengthwise.plots.picture import Panel, Picture, Reference, Series
from lengthwise.plots.series_style import SeriesStyle, numbered_style
from lengthwise.protocol import format_parameter
from lengthwise.published import depends_on_max_position, drawn_by

# Swept parameters of training: name for the user, axis label, and value of a trial.
_OF_TRAINING: dict[str, tuple[str, Callable[[Trial], float]]] = {
    "examples": ("training examples", lambda trial: trial.specification.training.examples),
    "length": ("length of the vectors, n", lambda trial: trial.specification.training.lengths.max),
    "learning_rate": ("learning rate", lambda trial: trial.specification.learning_rate),
}
_SPLITS = ("training", "validation: seen in training", "test: not seen in training")


def _number_of(encoding: Component, parameter: str) -> float | None:
    """None if the encoding has no such number, or makes no use of it: positions that are not drawn have no number to be
    drawn from.
    """
    if parameter not in encoding.parameters:
        return None
    value = encoding.parameters[parameter]
    if value.WhichOneof("kind") != "number_value":
        return None
    unused = parameter == "max_position" and not depends_on_max_position(encoding)
    return None if unused else value.number_value


def _differing(groups: Sequence[TrialGroup]) -> list[str]:
    """The parameters whose values differ between encodings, and what differs between trainings."""
    values: dict[str, set[float]] = {}
    for group in groups:
        for name in sorted(group.encoding.parameters):
            number = _number_of(group.encoding, name)
            if number is not None:
                values.setdefault(name, set()).add(number)
    for name, (_, of_trial) in _OF_TRAINING.items():
        values[name] = {of_trial(trial) for group in groups for trial in group.trials}
    return sorted(name for name, found in values.items() if len(found) > 1)


def _kind_of(encoding: Component) -> str:
    return f"{drawn_by(encoding)}_{encoding.name}".lstrip("_")


def _others(groups: Sequence[TrialGroup], parameter: str) -> dict[str, str]:
    """By label, an encoding's parameters that differ from others' of its kind, but `parameter`: "base 100, slope 2"."""
    texts: dict[str, dict[str, dict[str, str]]] = {}
    for group in groups:
        if _number_of(group.encoding, parameter) is not None:
            own = {
                name: format_parameter(group.encoding, name)
                for name in sorted(group.encoding.parameters)
                if name not in (parameter, "positions", "randomized")
            }
            texts.setdefault(_kind_of(group.encoding), {})[label(group.encoding)] = own
    found: dict[str, str] = {}
    for of_kind in texts.values():
        for encoding, own in of_kind.items():
            differing = [name for name in own if len({other.get(name) for other in of_kind.values()}) > 1]
            found[encoding] = ", ".join(f"{name} {own[name]}" for name in differing)
    return found


def picture(experiments: Sequence[PlottedExperiment], options: Options) -> Picture:
    groups = group_trials(experiments)
    differing = _differing(groups)
    wanted = options.parameter.removeprefix("training.")
    parameter = wanted or next(
        (name for name in ("max_position", "examples", "length", "learning_rate", *differing) if name in differing), ""
    )
    if parameter not in differing:
        names = experiment_names(experiments)
        raise refused(
            f"the encodings of {names} do not differ in {parameter or 'a number'}; a sweep has one encoding several times, "
            "as in `encodings: [{name: relative, randomized: true, max_position: 1024}, {name: relative, randomized: true, "
            "max_position: 2048}]`, or experiments that differ in training.examples or training.lengths"
        )
    if options.splits and options.length:
        raise UsageError("--splits shows training, validation and test, and --length one length; choose one")
    if parameter in _OF_TRAINING:
        return _of_training(experiments, groups, parameter, options)
    if options.splits or options.length:
        option = "--splits" if options.splits else "--length"
        raise UsageError(f"{option} is for sweeps of training examples, lengths and learning rates")
    return _of_encodings(experiments, groups, parameter)


def _of_encodings(experiments: Sequence[PlottedExperiment], groups: Sequence[TrialGroup], parameter: str) -> Picture:
    # By experiment, network, kind of encoding and task: the first group, and by value of the parameter the accuracies, or
    # losses, of all trials.
    lines: dict[tuple[str, str, str, str], tuple[TrialGroup, dict[float, list[float]]]] = {}
    shown = choose_metric(experiments, tasks_of(groups), "", intervals=False)
    best = min if shown.is_median else max
    # Encodings that differ in another parameter too are lines of their own.
    others = _others(groups, parameter)
    for group in groups:
        value = _number_of(group.encoding, parameter)
        if value is None:
            continue
        kind = ", ".join(filter(None, [_kind_of(group.encoding), others[label(group.encoding)]]))
        key = (group.experiment.name, label(group.network), kind, label(group.task))
        _, of_line = lines.setdefault(key, (group, {}))
        finals = group.experiment.final_evaluations()
        for trial in group.trials:
            final = finals.get(trial.name)
            measure = None if final is None else queries.mean(final, "unseen", shown.is_median)
            if measure is not None:
                of_line.setdefault(value, []).append(measure)
    drawn = [(key, *line) for key, line in lines.items() if line[1]]
    if not drawn:
        raise panels.no_final_evaluation(experiments)
    what = "Error" if shown.is_median else "Accuracy"
    result = Picture("length_sweep", f"{what} by {parameter}: {experiment_names(experiments)}", y=shown.axis)
    result.x.label = "number of positions drawn from, L (max_position)" if parameter == "max_position" else parameter
    result.y.label += f" on {panels.unseen_of(groups, 'lengths not seen')}"
    panel = Panel()
    guesses: dict[float, str] = {}
    best_ones: list[Series] = []
    networks, kinds = {network for _, network, _, _ in lines}, {kind for _, _, kind, _ in lines}
    for number, ((_, network, kind, _), group, measures) in enumerate(drawn):
        name = panels.task_title(group)
        if len(networks) > 1:
            name += f", {network}"
        if len(kinds) > 1:
            name += f", {kind}"
        if len(experiments) > 1:
            name = f"{group.experiment.name}: {name}"
        points = [(value, measure) for value, found in measures.items() for measure in found]
        style = numbered_style(number)
        if len(points) > len(measures):
            open_style = SeriesStyle(style.color, style.marker, 1)
            x, y = zip(*points)
            panel.series.append(Series("", x, y, style=open_style, kind="scatter", faint=True))
        values = sorted(measures)
        best_ones.append(Series(name, values, [best(measures[value]) for value in values], style=style))
        guesses.update({guess.y: guess.label for guess in panels.guess_references(group.experiment, group.task)})
    panel.series += best_ones
    panel.references = [Reference(y, text) for y, text in sorted(guesses.items())]
    result.panels = [panel]
    _set_swept_axis(result)
    if shown.is_median:
        panels.set_loss_axis(result)
    if len(panel.series) > len(best_ones):
        extreme = "lowest" if shown.is_median else "highest"
        result.caption = f"Lines: the {extreme} over all seeds and learning rates. Points: every trial."
    panels.add_sentence(result, panels.missing_trials(experiments))
    return result


def _set_swept_axis(result: Picture) -> None:
    """Sets a logarithmic axis, base 2, that fits the data."""
    values = [x for panel in result.panels for series in panel.series for x in series.x]
    lowest, largest = min(values), max(values)
    if lowest > 0 and largest > lowest:
        result.x.scale = "log2"
        result.x.range = (lowest / 1.1, largest * 1.1)


def _of_training(
    experiments: Sequence[PlottedExperiment], groups: Sequence[TrialGroup], parameter: str, options: Options
) -> Picture:
    """Medians over seeds, at the learning rate that is best on what training did not show, a panel a task."""
    title, value_of = _OF_TRAINING[parameter]
    catalogue = groups[0].experiment.catalogue
    shown = choose_metric(experiments, tasks_of(groups), "", intervals=False)
    is_loss, what = shown.is_median, shown.axis.label
    result = Picture("length_sweep", f"{panels.capitalized(what)} by {title}: {experiment_names(experiments)}")
    result.x.label = title
    result.y = shown.axis
    networks = {label(group.network) for group in groups}
    encodings = {catalogue.encoding_title(group.encoding) for group in groups}
    of_experiments = [{value_of(trial) for trial in experiment.trials} for experiment in experiments]
    # The experiments are what is swept: no two have trials of one value.
    is_swept = sum(map(len, of_experiments)) == len(set().union(*of_experiments))
    # Numbers of seeds of the points.
    counts: set[int] = set()
    # A name's colour is the same in all panels.
    numbers: dict[str, int] = {}
    tasks = tasks_of(groups)
    for task in tasks:
        for split in _SPLITS if options.splits else _SPLITS[2:]:
            # By line, then by value: a measure of every seed.
            lines: dict[str, dict[float, list[float]]] = {}
            for group in groups:
                if label(group.task) != label(task.task):
                    continue
                name = catalogue.encoding_title(group.encoding)
                if len(networks) > 1:
                    network = label(group.network)
                    name = f"{network}, {name}" if len(encodings) > 1 else network
                if not is_swept:
                    name = f"{group.experiment.name}: {name}"
                for trial in group.trials if parameter == "learning_rate" else group.at_best_rate():
                    measure = _measure(group, trial, split, is_loss, options.length)
                    if measure is not None:
                        lines.setdefault(name, {}).setdefault(float(value_of(trial)), []).append(measure)
            panel = Panel(panels.task_title(task))
            if options.splits:
                panel.title = split if task is tasks[0] else ""
            for name, by_value in lines.items():
                values = sorted(by_value)
                counts.update(map(len, by_value.values()))
                low, high = ([float(numpy.quantile(by_value[value], q)) for value in values] for q in (0.1, 0.9))
                middle = [statistics.median(by_value[value]) for value in values]
                style = numbered_style(numbers.setdefault(name, len(numbers)))
                panel.series.append(Series(name, values, middle, low, high, style))
            if panel.series or options.splits:
                result.panels.append(panel)
    if not any(panel.series for panel in result.panels):
        raise panels.no_final_evaluation(experiments)
    panels.arrange_panels(result)
    if options.splits:
        result.columns = len(_SPLITS)
    if options.splits and len(tasks) > 1:
        result.row_titles = [panels.task_title(task) for task in tasks]
    if is_loss:
        panels.set_loss_axis(result)
    if parameter == "length":
        _set_swept_axis(result)
    else:
        values = [x for panel in result.panels for series in panel.series for x in series.x]
        result.x.range = (0, max(values))
        if parameter == "learning_rate":
            result.x.scale, result.x.range = "log10", (min(values) / 1.2, max(values) * 1.2)
    result.caption = panels.missing_trials(experiments)
    shown_of = panels.capitalized(what)
    if options.length:
        panels.add_sentence(result, f"{shown_of} at {catalogue.length_title(groups[0].task, options.length)}.")
    elif not options.splits:
        panels.add_sentence(result, f"{shown_of} on {panels.unseen_of(groups, 'what training did not show')}.")
    if max(counts, default=1) > 1:
        panels.add_sentence(result, f"Median over {panels.at_most(counts, 'seed')}.")
        result.band_caption = "Bands: 10th to 90th percentile of the seeds."
    return result


def _measure(group: TrialGroup, trial: Trial, split: str, is_loss: bool, at_length: int | None) -> float | None:
    if split == _SPLITS[0]:
        return _training_measure(group.experiment, trial, is_loss)
    measured = group.experiment.final_evaluations().get(trial.name)
    if measured is None:
        return None
    if not at_length:
        return queries.mean(measured, "unseen" if split == _SPLITS[2] else "seen", is_loss)
    values = measured.losses if is_loss else measured.accuracies
    return next((value for length, value in zip(measured.lengths, values) if length == at_length), None)


def _training_measure(experiment: PlottedExperiment, trial: Trial, is_loss: bool) -> float | None:
    """Mean of the last twentieth of the recorded points."""
    for curve in experiment.loss_curves():
        if curve.trial == trial.name:
            values = list(curve.points.losses if is_loss else curve.points.accuracies)
            return statistics.fmean(values[-max(1, len(values) // 20) :]) if values else None
    return None
