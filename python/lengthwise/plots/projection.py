"""Activations in two dimensions (Ruoss et al. 2023, Figure 5)."""
from __future__ import annotations

from collections.abc import Sequence

from lengthwise.errors import UsageError
from lengthwise.events import Projection
from lengthwise.plots.data import PlottedExperiment, Trial, experiment_names
from lengthwise.plots.groups import best_trials, group_trials
from lengthwise.plots.options import Options
from lengthwise.plots.panels import choice_of, not_recorded, task_title
from lengthwise.plots.picture import Axis, Panel, Picture, Series
from lengthwise.plots.series_style import SeriesStyle

_MOST_ROWS = 12
# Points of one length in one panel; more hide each other and make the SVG slow to show.
_MOST_POINTS = 1500
# Blue for the fitted length; others have open markers, which do not cover it.
_FITTED = SeriesStyle(0, 0)
_OTHERS = (SeriesStyle(4, 2, 1), SeriesStyle(2, 1, 1), SeriesStyle(3, 3, 1), SeriesStyle(1, 4, 1))


def _records_projections(trial: Trial) -> bool:
    return trial.specification.evaluation.HasField("projection")


def _shown_sequences(projection: Projection) -> int:
    """Number of whole sequences drawn."""
    _, sequences, tokens, _ = projection.coordinates.shape
    return max(1, min(_MOST_POINTS // max(int(tokens), 1), int(sequences)))


def _series(projection: Projection, depth: int, style: SeriesStyle) -> Series:
    points = projection.coordinates[depth, : _shown_sequences(projection)].reshape(-1, 2)
    name = f"length {projection.length}"
    if projection.length == projection.fitted_length:
        name += ", on which the components were fitted"
    return Series(name, points[:, 0].tolist(), points[:, 1].tolist(), style=style, kind="scatter")


def _panel_title(projection: Projection, depth: int) -> str:
    title = "embedding" if depth == 0 else f"after block {depth}"
    if len(projection.explained_variance) > depth:
        first, second = projection.explained_variance[depth]
        title += f" ({100 * first:.0f} + {100 * second:.0f} %)"
    return title


def picture(experiments: Sequence[PlottedExperiment], options: Options) -> Picture:
    result = Picture("projection", x=Axis("first principal component", ticks="none"))
    result.y = Axis("second principal component", ticks="none")
    styles: dict[int, SeriesStyle] = {}  # of lengths that were not fitted
    tasks: list[str] = []
    depths = 0
    chosen = thinned = False
    for group, trial in best_trials(group_trials(experiments), _records_projections):
        projections = group.experiment.projections(trial.name)
        if not projections:
            continue
        for projection in projections:
            depths = depths or projection.coordinates.shape[0]
            if projection.coordinates.shape[0] != depths:
                raise UsageError("the networks have different numbers of blocks; choose one with --network")
            if projection.length != projection.fitted_length:
                styles.setdefault(projection.length, _OTHERS[len(styles) % len(_OTHERS)])
            thinned |= _shown_sequences(projection) < projection.coordinates.shape[1]
        # The fitted length last, on top.
        in_order = sorted(projections, key=lambda one: one.length == one.fitted_length)
        for depth in range(depths):
            panel = Panel(_panel_title(projections[0], depth))
            for projection in in_order:
                fitted = projection.length == projection.fitted_length
                panel.series.append(_series(projection, depth, _FITTED if fitted else styles[projection.length]))
            result.panels.append(panel)
        chosen |= len(group.trials) > 1
        tasks.append(task_title(group))
        result.row_titles.append(group.name)
    if not result.panels:
        how = "projections; evaluation.projection in its specification, such as {lengths: [40, 150]},"
        raise not_recorded(experiments, _records_projections, "recorded projections", how, at_the_end=True)
    if len(result.row_titles) > _MOST_ROWS:
        raise UsageError(
            f"a picture has room for {_MOST_ROWS} rows, one an encoding and task, and these are {len(result.row_titles)}; "
            "choose some with --task or --encoding"
        )
    result.columns = depths
    result.title = f"Activations projected onto two components: {experiment_names(experiments)}"
    if len(set(tasks)) == 1:
        result.title += f", {tasks[0]}"
    else:
        result.row_titles = [f"{name}\n{task}" for name, task in zip(result.row_titles, tasks)]
    remarks = [
        "Each point is an input token of a sequence. In brackets: the components' shares of the variance at the fitted "
        "length."
    ]
    if chosen:
        remarks.append(f"For each encoding: the trial with {choice_of(group_trials(experiments))}.")
    if thinned:
        remarks.append(f"At most {_MOST_POINTS} tokens per length are drawn, those of the first sequences.")
    result.caption = " ".join(remarks)
    return result
