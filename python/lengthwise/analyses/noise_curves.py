"""Accuracy by the noise on the embeddings of tokens (Ito et al., Figure 5)."""
from __future__ import annotations

from dataclasses import dataclass, field

import numpy

from lengthwise.analyses.recorded import scores_of
from lengthwise.analyses.trial_sets import Subject, TrialSet, by_seed
from lengthwise.errors import refused


@dataclass(eq=False)
class NoiseCurve:
    of: TrialSet
    # By the noise's standard deviation, 0 for none, ascending: mean accuracy over all lengths of each model.
    accuracies: dict[float, list[float]] = field(default_factory=dict)

    def averages(self) -> list[float]:
        """Mean of each model over the deviations above 0 (Figures 5D and E)."""
        under_noise = [values for deviation, values in self.accuracies.items() if deviation > 0]
        return [float(numpy.mean(of_model)) for of_model in zip(*under_noise)]


def curves(subject: Subject) -> list[NoiseCurve]:
    """One curve for each set with a trial that was evaluated under noise. FAILED_PRECONDITION with advice if there is none.
    """
    scores, plain = scores_of(subject.experiments), subject.final_evaluations()
    found = []
    for one in subject.sets:
        values: dict[float, list[float]] = {}
        for trial, noise in by_seed(one.trials, lambda trial: scores.noise.get(trial.name)):
            for deviation, accuracy in zip(noise.deviations, noise.accuracies):
                values.setdefault(deviation, []).append(accuracy)
            if trial.name in plain and plain[trial.name].accuracies:
                values.setdefault(0.0, []).append(float(numpy.mean(plain[trial.name].accuracies)))
        if values:
            found.append(NoiseCurve(one, dict(sorted(values.items()))))
    if not found:
        raise refused(
            f"no trial of {subject.names} was evaluated under noise; set evaluation.embedding_noise, or evaluate stored "
            "models with `lengthwise evaluate TRIAL --embedding_noise 0.02,0.04,0.06,0.08,0.1`"
        )
    return found
