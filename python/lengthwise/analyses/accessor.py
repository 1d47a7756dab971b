"""`experiment.analyze.t_test(reference="rope")` and its sisters."""
from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lengthwise.analyses import latin_square, report
from lengthwise.analyses.trial_sets import Subject, subject_of
from lengthwise.arguments import check_arguments
from lengthwise.plots.data import PlottedExperiment, of_experiments

if TYPE_CHECKING:
    import pandas

    from lengthwise.experiment import Experiment


@check_arguments
class Analyses:
    """Analyses of one or more experiments. Each method returns a frame with a row for each set of trials that differ only in
    their seeds, or several rows for such a set. `frame.attrs` has "caption" and "remarks", which explain the numbers and
    name the statistical test and its number of pairs. LengthwiseError says what to record if something is missing.
    """

    def __init__(self, experiments: Sequence[Experiment | PlottedExperiment]) -> None:
        self._experiments = experiments

    def _subject(self) -> Subject:
        return subject_of(of_experiments(self._experiments))

    def attention(self, reference: str, measure: str = "cosine", compare: str = "") -> pandas.DataFrame:
        """Similarity of attention maps to those of the encoding `reference`: the "cosine" of all probabilities, or "js", the
        Jensen-Shannon divergence. `compare`: adds a published table such as "lst_pe_init/table_3".
        """
        published = report.find_cosines(compare, measure) if compare else None
        return report.attention(self._subject(), reference, measure, published).frame()

    def attention_matrix(self, measure: str = "cosine") -> pandas.DataFrame:
        """Similarity of the attention maps of every two encodings: a row for each pair."""
        return report.attention_matrix(self._subject(), measure).frame()

    def ground_truth(self) -> pandas.DataFrame:
        """Share of attention on the cells that determine a puzzle's answer, by layer and number of vectors."""
        return report.ground_truth(self._subject()).frame()

    def encodings(self, reference: str) -> pandas.DataFrame:
        """Distance of learned position tables from a fixed encoding: a label, "sin_cos" or "sin_cos_2d"."""
        return report.encodings(self._subject(), reference).frame()

    def noise(self) -> pandas.DataFrame:
        """Accuracy when noise is added to the embeddings of tokens, by its standard deviation."""
        return report.noise(self._subject()).frame()

    def humans(self, file: str | os.PathLike[str]) -> pandas.DataFrame:
        """Puzzle by puzzle beside people's accuracies: {"puzzles": [{"puzzle": ..., "human_accuracy": ...}, ...]}."""
        return report.humans(self._subject(), latin_square.read_human_accuracies(file)).frame()

    def carries(self, length: int | None = None) -> pandas.DataFrame:
        """Errors of sums with and without a carry: a row for each place. `length`: digits, by default the largest that all
        sets have.
        """
        return report.carries(self._subject(), length or 0).frame()

    def carry_chains(self, length: int | None = None) -> pandas.DataFrame:
        """Accuracy of digits by length of the carry chain into them: a row for each length of chain, with its base rate.
        `length`: digits, by default the largest that all sets have.
        """
        return report.carry_chains(self._subject(), length or 0).frame()

    def speed(self, accuracy: float = 0.9) -> pandas.DataFrame:
        """Steps per second, and seconds of training until the accuracy on unseen lengths is above `accuracy`, 0 to 1."""
        return report.speed(self._subject(), accuracy).frame()

    def loss_ratios(self, reference: str, compare: str = "") -> pandas.DataFrame:
        """Ratio of the losses of the network `reference` to the others', by scale beyond the range of training.
        `compare`: adds a published table such as "positional_attention/figure_2".
        """
        published = report.find_losses(compare) if compare else None
        return report.loss_ratios(self._subject(), reference, published).frame()

    def t_test(self, reference: str, length: int | None = None) -> pandas.DataFrame:
        """Paired t-tests of each encoding against `reference`, seed by seed. Tested is the mean over the lengths that
        training did not show, or the score at one evaluated `length`. "adjusted_p_value" is Holm's, for the number of
        encodings.
        """
        return report.t_test(self._subject(), reference, length or 0).frame()
