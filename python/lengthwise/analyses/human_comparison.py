"""Models' answers to single puzzles beside people's (Ito et al., Figure 6)."""
from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy

from lengthwise import programs
from lengthwise.analyses.ground_truth import check_puzzles
from lengthwise.analyses.measures import Correlation, cosine_similarity, spearman_correlation
from lengthwise.analyses.recorded import scores_of
from lengthwise.analyses.trial_sets import Subject, Trial, TrialSet, by_seed
from lengthwise.errors import LengthwiseError, refused
from lengthwise.names import short_name
from lengthwise.published import parameter_of

# The validation puzzles of each condition (from 1), in the order in which they are evaluated.
PuzzlesByCondition = dict[int, list[str]]


@dataclass(eq=False)
class HumanComparison:
    of: TrialSet
    models: int = 0
    # In the order in which the models saw them.
    puzzles: list[str] = field(default_factory=list)
    # For each puzzle, the share of models that solve it, and of people.
    model_accuracies: list[float] = field(default_factory=list)
    human_accuracies: list[float] = field(default_factory=list)

    @property
    def cosine(self) -> float | None:
        """Cosine of the two lists of accuracies; None if one is all zeros."""
        if not any(self.model_accuracies) or not any(self.human_accuracies):
            return None
        return cosine_similarity(self.model_accuracies, self.human_accuracies)

    @property
    def ranks(self) -> Correlation | None:
        return spearman_correlation(self.model_accuracies, self.human_accuracies)

    @property
    def composite(self) -> float | None:
        """The mean of cosine and rank correlation (Figure 6C)."""
        return None if self.cosine is None or self.ranks is None else (self.cosine + self.ranks.coefficient) / 2


def validation_puzzles(trial: Trial) -> PuzzlesByCondition:
    """Validation puzzles from `lengthwise sample`, which are the worker's own. FAILED_PRECONDITION if it fails."""
    check_puzzles(trial)
    task = trial.specification.task
    command = ["sample", task.name, "--validation", "--count", "10000000", "--output", "csv"]
    for name in task.parameters:
        value = parameter_of(task, name)
        text = str(value).lower() if isinstance(value, bool) else f"{value:.17g}" if isinstance(value, float) else value
        command += ["--set", f"{name}={text}"]
    try:
        made, _ = programs.ask(command)
    except LengthwiseError as error:
        raise refused(
            f"the validation puzzles of {short_name(trial.name)} cannot be generated here: {error}; this command needs the "
            "same puzzle files as the worker"
        ) from None
    found: PuzzlesByCondition = {}
    for row in csv.DictReader(io.StringIO(made.decode())):
        found.setdefault(int(row["condition"]), []).append(row["puzzle"])
    return found


def compare(
    subject: Subject,
    humans: Mapping[str, float],
    puzzles_of: Callable[[Trial], PuzzlesByCondition] = validation_puzzles,
) -> list[HumanComparison]:
    """Compares models and people on the validation puzzles that both have solved: a row for each set of trials.

    `humans`: people's accuracies by puzzle. FAILED_PRECONDITION if no trial has scores of single sequences (with advice to
    record them), the task has no puzzles, or no puzzle is in both.
    """
    scores = scores_of(subject.experiments)
    # Trials of one task have the same validation puzzles, whatever their seeds.
    made: dict[bytes, PuzzlesByCondition] = {}
    rows = []
    for one in subject.sets:
        row = HumanComparison(one)
        solved: dict[str, list[float]] = {}
        for trial, recorded in by_seed(one.trials, lambda trial: scores.sequences.get(trial.name)):
            if one.training not in made:
                made[one.training] = puzzles_of(trial)
            row.models += 1
            for condition, of_condition in sorted(recorded.items()):
                for puzzle, accuracy in zip(made[one.training].get(condition, []), of_condition.accuracies):
                    if puzzle in humans:
                        solved.setdefault(puzzle, []).append(accuracy)
        row.puzzles = list(solved)
        row.model_accuracies = [float(numpy.mean(values)) for values in solved.values()]
        row.human_accuracies = [humans[puzzle] for puzzle in solved]
        if row.models > 0:
            rows.append(row)
    if not rows:
        raise refused(
            "no trial has scores of single puzzles; set evaluation.sequence_scores, or evaluate stored models with "
            "`lengthwise evaluate TRIAL --sequence_scores`"
        )
    if not any(row.puzzles for row in rows):
        raise refused(
            "none of the validation puzzles is in the file of people's answers; validate on these: `tasks: {name: "
            "latin_square, validation_file: NAME}`, with the file in the worker's LENGTHWISE_PUZZLE_DIR"
        )
    return rows
