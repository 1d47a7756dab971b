"""Recordings of trials beside accuracies: attention maps, scores and errors of answers, accuracies under noise."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lengthwise._proto import event_pb2
from lengthwise.analyses.trial_sets import Subject, Trial
from lengthwise.events import AttentionMap
from lengthwise.plots.data import PlottedExperiment

# Advice at the end of an error message.
HOW_TO_RECORD_MAPS = (
    "record them with evaluation.attention_lengths and evaluation.attention_sequences, or of models that are stored with "
    "`lengthwise evaluate TRIAL --attention_lengths LIST --attention_sequences N`"
)


def maps_of(subject: Subject, trial: Trial) -> list[AttentionMap]:
    """Attention maps of evaluation sequences, by length and sequence; empty if none were recorded. The experiment does not
    cache them, because those of all trials may be gigabytes.
    """
    experiment = subject.experiment_of(trial)
    has = trial.name in experiment.maps
    recorded = experiment.attention_maps(trial.name)
    if not has:
        experiment.maps.pop(trial.name, None)
    return [one for one in recorded if one.input_number == 0]


@dataclass(frozen=True)
class RecordedScores:
    """The newest of each kind, by the trial's full name; of sequences also by length."""

    noise: dict[str, event_pb2.NoiseAccuracies] = field(default_factory=dict)
    sequences: dict[str, dict[int, event_pb2.SequenceScores]] = field(default_factory=dict)
    # Errors of text answers.
    errors: dict[str, dict[int, event_pb2.AnswerErrors]] = field(default_factory=dict)


def scores_of(experiments: Sequence[PlottedExperiment]) -> RecordedScores:
    scores = RecordedScores()
    for event in (event for experiment in experiments for event in experiment.analyses()):
        if event.HasField("noise_accuracies"):
            scores.noise[event.trial] = event.noise_accuracies
        elif event.HasField("sequence_scores"):
            of_trial = scores.sequences.setdefault(event.trial, {})
            of_trial[event.sequence_scores.length] = event.sequence_scores
        elif event.HasField("answer_errors"):
            scores.errors.setdefault(event.trial, {})[event.answer_errors.length] = event.answer_errors
    return scores
