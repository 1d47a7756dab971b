"""Attention maps as a report's viewer reads them."""
from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any

import numpy
from markupsafe import Markup

from lengthwise.events import AttentionMap
from lengthwise.plots.attention import first_output, trials_with_attention
from lengthwise.plots.data import PlottedExperiment
from lengthwise.plots.groups import TrialGroup


@dataclass(frozen=True)
class MapsForViewer:
    # A JSON array that may stand in a script element.
    json: Markup
    maps: int
    # Maps that would have made the report too large.
    left_out: int


def maps_for_viewer(experiment: PlottedExperiment, max_bytes: int) -> MapsForViewer:
    """Maps of the best trial (choice_of), for each task, network and encoding. Probabilities are rounded to 1/255.
    Takes the first sequence of every length in grid order, then the second of every length, and so on, until the
    probabilities fill `max_bytes`.
    """
    recorded = [
        (group, one)
        for group, trial in trials_with_attention([experiment])
        for one in experiment.attention_maps(trial.name)
    ]
    recorded.sort(key=lambda pair: pair[1].sequence)
    shown: list[dict[str, Any]] = []
    left_out = size = 0
    for group, one in recorded:
        if size + one.probabilities.size > max_bytes:
            left_out += 1
            continue
        size += one.probabilities.size
        shown.append(_as_dictionary(group, one))
    # No text of it may end the script element.
    text = json.dumps(shown, separators=(",", ":")).replace("<", "\\u003c")
    return MapsForViewer(Markup(text), len(shown), left_out)


def _as_dictionary(group: TrialGroup, one: AttentionMap) -> dict[str, Any]:
    catalogue = group.experiment.catalogue
    layers, heads = one.probabilities.shape[:2]
    # A damaged history may have weights that are no numbers.
    rounded = numpy.rint(255 * numpy.nan_to_num(one.probabilities).clip(0, 1)).astype(numpy.uint8)
    found = {
        "model": f"{catalogue.task_title(group.task)}, {group.name}",
        "input": f"input {one.input_number}" if one.input_number else f"{catalogue.axis(group.task)} {one.length}",
        "sequence": one.sequence + 1,
        "tokens": one.tokens.tolist(),
        "first_output": first_output(one.tokens.tolist(), catalogue.has_output_tokens(group.task)),
        "layers": layers,
        "heads": heads,
        "probabilities": base64.b64encode(rounded.tobytes()).decode(),
    }
    if one.numbers.size:
        found["numbers"] = one.numbers.tolist()
    return found
