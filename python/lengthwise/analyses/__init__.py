"""Queries on what is stored of trials: attention maps, models, scores. On NumPy and SciPy.

`experiment.analyze` has them as pandas frames, `lengthwise analyze` prints them, and figures of lengthwise.plots draw them.
Trials that differ in nothing but their seeds make a row (trial_sets.TrialSet).
"""
from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas

    from lengthwise.analyses.trial_sets import Subject
    from lengthwise.experiment import Experiment
    from lengthwise.plots.data import PlottedExperiment


class Analyses:
    """Of experiments that are analysed as one. Each method returns a frame with a row for each set of trials that differ in
    nothing but their seeds, or for a part of such a row; `frame.attrs` has "caption" and "remarks": what the numbers are,
    and which test was made of how many pairs. LengthwiseError says what to record where something is missing.
    """

    def __init__(self, experiments: Sequence[Experiment | PlottedExperiment]) -> None:
        self._experiments = experiments

    def _subject(self) -> Subject:
        from lengthwise.analyses.trial_sets import subject_of
        from lengthwise.plots.data import of_experiments

        return subject_of(of_experiments(self._experiments))

    def attention(self, reference: str, measure: str = "cosine", compare: str = "") -> pandas.DataFrame:
        """How alike attention maps are to those of the encoding `reference`: the "cosine" of all probabilities, or "js", the
        Jensen-Shannon divergence. `compare`: beside a published table such as "lst_pe_init/table_3".
        """
        from lengthwise.analyses import report

        published = report.find_cosines(compare, measure) if compare else None
        return report.attention(self._subject(), reference, measure, published).frame()

    def attention_matrix(self, measure: str = "cosine") -> pandas.DataFrame:
        """How alike the attention maps of any two encodings are: a row for each pair."""
        from lengthwise.analyses import report

        return report.attention_matrix(self._subject(), measure).frame()

    def ground_truth(self) -> pandas.DataFrame:
        """How much of attention goes to what the answers of puzzles depend on, by layer and number of vectors."""
        from lengthwise.analyses import report

        return report.ground_truth(self._subject()).frame()

    def encodings(self, reference: str) -> pandas.DataFrame:
        """How far learned tables of positions are from a fixed encoding's: a label, or "sin_cos" or "sin_cos_2d"."""
        from lengthwise.analyses import report

        return report.encodings(self._subject(), reference).frame()

    def noise(self) -> pandas.DataFrame:
        """Accuracy when noise is added to the embeddings of tokens, by its standard deviation."""
        from lengthwise.analyses import report

        return report.noise(self._subject()).frame()

    def humans(self, file: str | os.PathLike[str]) -> pandas.DataFrame:
        """Puzzle by puzzle beside people's accuracies: {"puzzles": [{"puzzle": ..., "human_accuracy": ...}, ...]}."""
        from lengthwise.analyses import latin_square, report

        return report.humans(self._subject(), latin_square.read_human_accuracies(file)).frame()

    def carries(self, length: int = 0) -> pandas.DataFrame:
        """Whether sums go wrong where a carry comes in: a row for each place. `length`: digits; 0: the largest that all
        have.
        """
        from lengthwise.analyses import report

        return report.carries(self._subject(), length).frame()

    def speed(self, accuracy: float = 0.9) -> pandas.DataFrame:
        """Steps a second, and seconds of training until the accuracy on unseen lengths is above `accuracy`, 0 to 1."""
        from lengthwise.analyses import report

        return report.speed(self._subject(), accuracy).frame()

    def loss_ratios(self, reference: str, compare: str = "") -> pandas.DataFrame:
        """How many times larger the losses of the network `reference` are than the others', by scale beyond training's.
        `compare`: beside a published table such as "positional_attention/figure_2".
        """
        from lengthwise.analyses import report

        published = report.find_losses(compare) if compare else None
        return report.loss_ratios(self._subject(), reference, published).frame()

    def t_test(self, reference: str) -> pandas.DataFrame:
        """Whether encodings differ from `reference`, seed by seed: paired t-tests."""
        from lengthwise.analyses import report

        return report.t_test(self._subject(), reference).frame()
