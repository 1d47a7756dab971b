"""Maps of the attention between tokens (Ruoss et al. 2023, Figure 6; positional attention, Figures 30 and 31)."""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray

from lengthwise.errors import UsageError
from lengthwise.events import AttentionMap
from lengthwise.names import label
from lengthwise.plots.data import PlottedExperiment, Trial, experiment_names
from lengthwise.plots.groups import TrialGroup, best_trials, group_trials
from lengthwise.plots.options import Options
from lengthwise.plots.panels import choice_of, not_recorded, task_title
from lengthwise.plots.picture import Axis, HeatMap, Panel, Picture

# A figure of the paper that has most: two vectors at eight scales.
_MOST_ROWS = 16
# Rows are put side by side up to this many panels.
_MOST_COLUMNS = 6
# Cells a panel's side; more than it has pixels would be drawn over each other.
_MOST_CELLS = 200


def records_attention(trial: Trial) -> bool:
    evaluation = trial.specification.evaluation
    return bool(evaluation.attention_lengths or evaluation.attention_inputs)


def trials_with_attention(experiments: Sequence[PlottedExperiment]) -> list[tuple[TrialGroup, Trial]]:
    """Trials whose maps are shown: in each group, the best trial that may have maps."""
    return best_trials(group_trials(experiments), records_attention)


def check_map_rows(rows: int) -> None:
    if rows > _MOST_ROWS:
        raise UsageError(
            f"a picture has room for {_MOST_ROWS} rows of maps, and these are {rows}; choose some with --task, --encoding, "
            "--length or --trial"
        )


def heat_map(matrices: NDArray[Any], tokens: Sequence[int], has_outputs: bool) -> HeatMap:
    """The maximum over matrices [some, tokens, tokens], and over the tokens of a cell."""
    count = matrices.shape[-1]
    per_cell = -(-count // _MOST_CELLS)
    side = -(-count // per_cell)
    padded = numpy.zeros((side * per_cell, side * per_cell), matrices.dtype)
    padded[:count, :count] = matrices.max(axis=0)
    cells = padded.reshape(side, per_cell, side, per_cell).max(axis=(1, 3))
    return HeatMap(cells, per_cell, count, first_output(tokens, has_outputs))


def first_output(tokens: Sequence[int], has_outputs: bool) -> int:
    """Input tokens come first, then output places, all the same token that no input has."""
    return list(tokens).index(tokens[-1]) if has_outputs else len(tokens)


@dataclass(frozen=True)
class _Row:
    group: TrialGroup
    trial: Trial
    map: AttentionMap

    def title(self, with_task: bool) -> str:
        name = f"{task_title(self.group)}: {self.group.name}" if with_task else self.group.name
        if self.map.input_number > 0:
            return f"{name}\n{scale_titles(self.trial)[self.map.input_number - 1]}"
        return f"{name}\n{self.group.experiment.catalogue.axis(self.group.task)} {self.map.length}"


def scale_titles(trial: Trial) -> list[str]:
    """Titles of evaluation.attention_inputs: "scale 3" for three times an earlier vector, with that vector's number if there
    are several; "input 2" for a vector that is no multiple of another.
    """
    vectors = [numpy.array(one.numbers) for one in trial.specification.evaluation.attention_inputs]
    # For each input, the first vector that it is a multiple of, and the factor.
    multiples: list[tuple[int, float]] = []
    for i, vector in enumerate(vectors):
        found = (i, 1.0)
        for j in range(i):
            largest = int(numpy.abs(vectors[j]).argmax()) if len(vectors[j]) else 0
            if len(vectors[j]) != len(vector) or not len(vector) or vectors[j][largest] == 0:
                continue
            times = vector[largest] / vectors[j][largest]
            if times != 0 and numpy.allclose(vector, times * vectors[j]):
                found = (j, float(times))
                break
        multiples.append(found)
    bases = [j for i, (j, _) in enumerate(multiples) if i == j]
    alone = {j for j in bases if sum(base == j for base, _ in multiples) == 1}
    titles = []
    for i, (base, times) in enumerate(multiples):
        if base in alone:
            titles.append(f"input {i + 1}")
        else:
            titles.append((f"vector {bases.index(base) + 1}, " if len(bases) > 1 else "") + f"scale {times:.4g}")
    return titles


def _check_number(given: int | None, count: int, what: str) -> None:
    if given is not None and given > count:
        raise UsageError(f"there is no {what} {given}: these networks have {count}")


def picture(experiments: Sequence[PlottedExperiment], options: Options) -> Picture:
    rows: list[_Row] = []
    lengths: set[int] = set()  # that were to be recorded
    for group, trial in trials_with_attention(experiments):
        lengths.update(trial.specification.evaluation.attention_lengths)
        for one in group.experiment.attention_maps(trial.name):
            if options.length in (None, one.length) and one.sequence + 1 == options.sequence:
                rows.append(_Row(group, trial, one))
    if not rows and options.sequence > 1:
        raise UsageError(
            f"there are no attention maps of sequence {options.sequence}; evaluation.attention_sequences sets how many are "
            "recorded per length"
        )
    if not rows:
        if options.length is None or not lengths:
            how = "attention maps; evaluation.attention_lengths in its specification, such as [20, 40],"
            raise not_recorded(experiments, records_attention, "recorded attention", how, at_the_end=True)
        raise UsageError(
            f"there are no attention maps of length {options.length}; recorded: {', '.join(map(str, sorted(lengths)))}"
        )
    check_map_rows(len(rows))
    layers, heads = rows[0].map.probabilities.shape[:2]
    if any(row.map.probabilities.shape[:2] != (layers, heads) for row in rows):
        raise UsageError("the networks have different numbers of layers or heads; choose one with --network")
    _check_number(options.layer, layers, "layer")
    _check_number(options.head, heads, "head")

    side_by_side = options.layer is not None and options.head is None
    maximum = options.head is None and not side_by_side and heads > 1
    result = Picture("attention", x=Axis("key token"), y=Axis("query token"))
    result.map_label = "attention, maximum over heads" if maximum else "attention"
    what = f" of head {options.head}" if options.head else f" of layer {options.layer}" if options.layer else ""
    what = ", maximum over heads" if maximum else what
    result.title = f"Attention{what}: {experiment_names(experiments)}"
    several_tasks = len({label(row.group.task) for row in rows}) > 1
    if not several_tasks:
        result.title += f", {task_title(rows[0].group)}"
    # Title, layer and heads of each column.
    chosen = [options.layer - 1] if options.layer else list(range(layers))
    if side_by_side:
        columns = [(f"head {head + 1}", chosen[0], slice(head, head + 1)) for head in range(heads)]
    else:
        of_heads = slice(options.head - 1, options.head) if options.head else slice(0, heads)
        columns = [(f"layer {layer + 1}", layer, of_heads) for layer in chosen]
    # Several rows side by side, if there are many and they are short; their titles are then those of panels.
    beside = max(1, min(_MOST_COLUMNS // len(columns), math.ceil(len(rows) / (2 * len(columns)))))
    result.columns = beside * len(columns)
    for number, row in enumerate(rows):
        has_outputs = row.group.experiment.catalogue.has_output_tokens(row.group.task)
        for title, layer, of_heads in columns:
            heat = heat_map(row.map.probabilities[layer, of_heads], row.map.tokens.tolist(), has_outputs)
            if beside > 1:
                own = row.title(several_tasks).replace("\n", ", ")
                title = f"{own}, {title}" if len(columns) > 1 else own
            result.panels.append(Panel(title if number == 0 or beside > 1 else "", map=heat))
        if beside == 1:
            result.row_titles.append(row.title(several_tasks))
    maps = [panel.map for panel in result.panels if panel.map is not None]
    # Soft-max gives 1 at most; a scale that ends a little below would only look odd.
    highest = max(float(one.values.max()) for one in maps)
    result.map_maximum = highest if 0 < highest <= 0.9 else 1  # also if a network of a user gives weights that are no number
    remarks = []
    if any(row.group.experiment.catalogue.has_output_tokens(row.group.task) for row in rows):
        remarks.append("White lines: where the input ends and the output begins.")
    if any(len(row.group.trials) > 1 for row in rows):
        remarks.append(f"For each encoding: the trial with {choice_of(row.group for row in rows)}.")
    pooled = max(one.tokens_per_cell for one in maps)
    if pooled > 1:
        remarks.append(f"Long maps: each dot is the largest value of up to {pooled} x {pooled} tokens.")
    result.caption = " ".join(remarks)
    return result
