"""Tables of `lengthwise analyze` and notebooks: for each analysis, a function from trials to a table with remarks.

Its options are those of the command and of the method of `Analyses`.
"""
from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy

from lengthwise import published as published_tables
from lengthwise.analyses import (
    attention_similarity,
    encoding_distance,
    human_comparison,
    latin_square,
    noise_curves,
    seed_comparison,
)
from lengthwise.analyses import carries as carry_errors
from lengthwise.analyses import ground_truth as ground_truth_attention
from lengthwise.analyses import loss_ratios as ratios
from lengthwise.analyses import speed as speeds
from lengthwise.analyses.attention_similarity import AttentionMeasure
from lengthwise.analyses.encoding_tables import find_fixed
from lengthwise.analyses.measures import CONFIDENCE, PairedTest, spearman_correlation
from lengthwise.analyses.table import (
    AnalysisTable,
    Cell,
    Row,
    accuracy_cells,
    count_cell,
    loss_cells,
    mean_cells,
    number_cell,
    percent_cell,
    probability_cell,
)
from lengthwise.analyses.trial_sets import Subject, TrialSet, at_length
from lengthwise.errors import UsageError
from lengthwise.plots.groups import group_trials
from lengthwise.plots.metrics import common
from lengthwise.plots.panels import choice_of
from lengthwise.plots.seen_lengths import SeenLengths, unseen_lengths
from lengthwise.published import PublishedTable, PublishedValue, Quantity
from lengthwise.rendering import counted, format_exact, format_integers

if TYPE_CHECKING:
    import pandas

_INTERVAL = f"{100 * CONFIDENCE:.0f} % interval"
_WILSON = f"Intervals: Wilson's {100 * CONFIDENCE:.0f} % confidence intervals."


def _add_scores(
    table: AnalysisTable[Row], subject: Subject, scores: Callable[[Row], Sequence[float]], reference: str = ""
) -> None:
    """Accuracies, or losses if the tasks are compared by them: `scores` as Subject.accuracies, which may be those of the
    encoding `reference`.
    """
    name, unit = ("loss", "") if subject.by_loss else ("accuracy", " %")

    def cells(row: Row) -> list[Cell]:
        return loss_cells([-score for score in scores(row)]) if subject.by_loss else accuracy_cells(scores(row))

    table.add_means(f"reference_{name}" if reference else name, (reference or name) + unit, cells)


@dataclass
class AnalysisReport:
    # Explains the numbers: a sentence without its full stop.
    caption: str
    table: AnalysisTable[Any]
    # Sentences.
    remarks: list[str] = field(default_factory=list)
    # Sentences for tables alone and for records alone, such as the unit: tables print per cent where records have fractions.
    of_table: list[str] = field(default_factory=list)
    of_records: list[str] = field(default_factory=list)

    def frame(self) -> pandas.DataFrame:
        """The records, with "caption" and "remarks" in `attrs`."""
        import pandas

        records = self.table.as_records()
        found = pandas.DataFrame(records.rows, columns=list(records.columns))
        found.attrs.update(caption=self.caption, remarks=[*self.remarks, *self.of_records])
        return found


def _tested_score(subject: Subject, length: int) -> str:
    """ "token accuracy, mean over the lengths not seen in training"; "exact match at 12 digits, seen in training" of a
    `length` above 0.
    """
    trials = [(experiment, trial) for experiment in subject.experiments for trial in experiment.trials]
    titles, axes, lengths = set(), set(), set()
    # For each trial, whether each of the lengths counts as seen.
    count_as_seen: list[list[bool]] = []
    seen: list[SeenLengths] = []
    finals = subject.final_evaluations()
    for experiment, trial in trials:
        measured = finals.get(trial.name)
        if trial.name not in subject.accuracies or measured is None:
            continue
        task, catalogue = trial.specification.task, experiment.catalogue
        titles.add(catalogue.loss_title(task) if subject.by_loss else catalogue.accuracy_title(task))
        axes.add(catalogue.axis_values(task))
        lengths.add(catalogue.length_title(task, length))
        seen.append(SeenLengths.by(trial))
        count_as_seen.append([one <= seen[-1].up_to for one in measured.lengths])
    title = common(titles, "loss" if subject.by_loss else "accuracy")
    axis = common(axes, "lengths")
    if length:
        in_training = {one.in_training(length) for one in seen}
        when = "" if len(in_training) != 1 else "seen in training" if in_training.pop() else "not seen in training"
        return ", ".join(filter(None, [f"{title} at {common(lengths, f'length {length}')}", when]))
    if all(map(all, count_as_seen)):
        return f"{title}, mean over all {axis}"
    exception = ", or over all if all count as seen" if any(map(all, count_as_seen)) else ""
    return f"{title}, mean over the {axis} {unseen_lengths(seen).removeprefix('lengths ')}{exception}"


def _best_points(
    subject: Subject, points: Mapping[TrialSet, float]
) -> dict[tuple[str, str, bytes], dict[str, tuple[float, float]]]:
    """By task, network and training, then by encoding: the score (as Subject.accuracies) and the point of the learning rate
    that is chosen.
    """
    alike: dict[tuple[str, str, bytes], dict[str, list[TrialSet]]] = {}
    for one in points:
        if subject.accuracies_of(one):
            alike.setdefault((one.task, one.network, one.training), {}).setdefault(one.encoding, []).append(one)
    return {
        key: {
            encoding: (float(numpy.mean(subject.accuracies_of(best))), points[best])
            for encoding, sets in of_encodings.items()
            if (best := subject.best_rate(sets)) is not None
        }
        for key, of_encodings in alike.items()
    }


def correlation_remarks(subject: Subject, quantity: str, points: Mapping[TrialSet, float]) -> list[str]:
    """Correlation of a quantity with the accuracy over the encodings of one task, network and training, each at its best
    learning rate; none where fewer than three encodings have both.
    """
    sign, score = (-1, "loss") if subject.by_loss else (1, "accuracy")
    best = _best_points(subject, points)
    choice = ""
    if len({one.learning_rate for one in points}) > 1:
        choice = f" Each has the learning rate with {choice_of(group_trials(subject.experiments))}."
    remarks = []
    for (task, network, training), of_encodings in best.items():
        values = [value for _, value in of_encodings.values()]
        found = spearman_correlation(values, [sign * mean for mean, _ in of_encodings.values()])
        if found is None:
            continue
        where = "Over"
        if len(best) > 1:
            experiments = dict.fromkeys(one.experiment.name for one in points if one.training == training)
            where = f"{task}, {network} ({', '.join(experiments)}): over"
        p = "< 0.001" if found.p_value < 0.001 else f"= {found.p_value:.3f}"
        remarks.append(
            f"{where} {found.n} encodings, {quantity} and {score}: Spearman's ρ = {found.coefficient:.2f}, p {p} "
            f"(two-sided, Student's t with {found.n - 2} degree{'' if found.n == 3 else 's'} of freedom).{choice}"
        )
    return remarks


def _published_value(table: PublishedTable, one: TrialSet) -> PublishedValue | None:
    specification = one.specification
    for r, row in enumerate(table.rows):
        if row.task != specification.task.name:
            continue
        for c, column in enumerate(table.columns):
            if (r, c) in table.cells and column.matches(specification.network, specification.encoding):
                return table.cells[r, c]
    return None


def _published_cells(table: PublishedTable, one: TrialSet) -> list[Cell]:
    found = _published_value(table, one)
    value = number_cell(found.value if found else None, 3)
    deviation = number_cell(found.deviation if found else None, 3)
    return [Cell(value.value, f"{value.text} ± {deviation.text}" if deviation.value is not None else value.text), deviation]


def find_cosines(key: str, measure: str) -> PublishedTable:
    """The published table of a key such as "lst_pe_init/table_3". UsageError if it has no such values."""
    table = published_tables.find(key)
    if table.quantity is not Quantity.ATTENTION_COSINE or measure != "cosine":
        raise UsageError(
            f"--compare: {key} has no {'cosines' if measure == 'cosine' else 'divergences'} of attention maps; "
            "lst_pe_init/table_3 has cosines"
        )
    return table


def attention(subject: Subject, reference: str, measure: str = "cosine", compare: str = "") -> AnalysisReport:
    """Similarity of attention maps to those of the encoding `reference`: the "cosine" of all probabilities, or "js", the
    Jensen-Shannon divergence. `compare`: adds a published table such as "lst_pe_init/table_3".
    """
    published = find_cosines(compare, measure) if compare else None
    kind = AttentionMeasure(measure)
    comparison = attention_similarity.compare(subject, reference, kind)
    cosine = kind is AttentionMeasure.COSINE
    name = "cosine" if cosine else "divergence"
    table = AnalysisTable(comparison.rows, lambda row: row.of)
    _add_scores(table, subject, lambda row: subject.accuracies_of(row.of))
    header = "cosine" if cosine else "JS divergence"
    table.add_means(name, header, lambda row: mean_cells(row.pairs, 3 if cosine else 4), rule=True)
    if published:
        table.add_means("published", "paper", lambda row: _published_cells(published, row.of))
    table.add("models", "models", lambda row: count_cell(row.models))
    table.add("pairs", "pairs", lambda row: count_cell(len(row.pairs)))
    what = (
        "Cosine similarity of attention maps to those of"
        if cosine
        else "Jensen-Shannon divergence (nats) of attention maps from those of"
    )
    report = AnalysisReport(
        f"{what} {reference} ({counted(comparison.sequences, 'sequence')}, {counted(comparison.layers, 'layer')}): mean "
        "and standard deviation over pairs of models",
        table,
    )
    others = [row for row in comparison.rows if row.of.encoding != reference and row.pairs]
    points = {row.of: float(numpy.mean(row.pairs)) for row in others}
    report.remarks += correlation_remarks(subject, name, points)
    if published and published.correlation:
        report.remarks += _published_correlation(published, subject, comparison.rows)
    if not all(row.pairs for row in comparison.rows):
        report.remarks.append(
            f"–: no pairs. Models of {reference} are paired with those of its other seeds, models of other encodings with "
            f"those of {reference} that have the same training and learning rate."
        )
    if comparison.without_maps:
        report.remarks.append(f"Without attention maps: {_list(comparison.without_maps)}.")
    if published:
        report.remarks.append(f"Paper: {published.citation}, {published.table}; {published.aggregation}.")
    return report


def _published_correlation(
    table: PublishedTable, subject: Subject, rows: Sequence[attention_similarity.AttentionSimilarity]
) -> list[str]:
    """The same correlation over the table's encodings alone, here and in the paper."""
    other = published_tables.find(table.correlation["table"])
    # The first row only: other rows are other quantities.
    accuracies = {other.columns[c].key: value.value for (r, c), value in other.cells.items() if r == 0}
    printed = [
        (value.value, accuracies[table.columns[c].key])
        for (_, c), value in table.cells.items()
        if table.columns[c].key in accuracies
    ]
    of_table = {
        row.of: float(numpy.mean(row.pairs))
        for row in rows
        if row.pairs and _published_value(table, row.of) is not None
    }
    own_text = ""
    for of_encodings in _best_points(subject, of_table).values():
        found = spearman_correlation([x for _, x in of_encodings.values()], [y for y, _ in of_encodings.values()])
        own_text += "" if found is None else f"ρ = {found.coefficient:.2f} over the {found.n} measured here; "
    in_paper = spearman_correlation([x for x, _ in printed], [y for _, y in printed])
    assert in_paper is not None
    return [
        f"Over the encodings of {table.table}: {own_text}ρ = {in_paper.coefficient:.2f} over the {in_paper.n} that the "
        f"paper prints, with the accuracies of {other.table}. The paper's text says {table.correlation['rho']}."
    ]


def _list(names: Sequence[str]) -> str:
    return ", ".join(sorted(set(names)))


def attention_matrix(subject: Subject, measure: str = "cosine") -> AnalysisReport:
    """Similarity of the attention maps of every two encodings: a column for each in the table, a record for each pair."""
    kind = AttentionMeasure(measure)
    matrix = attention_similarity.compare_all(subject, kind)
    cosine = kind is AttentionMeasure.COSINE
    name = "cosine" if cosine else "divergence"
    table = AnalysisTable(range(len(matrix.sets)), matrix.sets.__getitem__, ["other", name, "pairs"])
    for i, one in enumerate(matrix.sets):
        of_column = [number_cell(value, 3 if cosine else 4) for value in matrix.values[:, i].tolist()]
        table.add("", one.encoding, of_column.__getitem__, rule=i == 0)
    what = "Cosine similarity of attention maps" if cosine else "Jensen-Shannon divergence (nats) of attention maps"
    report = AnalysisReport(
        f"{what} between encodings ({counted(matrix.sequences, 'sequence')}, {counted(matrix.layers, 'layer')}): mean "
        "over pairs of models; on the diagonal, over pairs of different seeds",
        table,
    )
    for one, values, pairs in zip(matrix.sets, matrix.values.tolist(), matrix.pairs.tolist()):
        for record in zip((other.encoding for other in matrix.sets), values, pairs):
            report.table.add_record(one, record)
    return report


def ground_truth(subject: Subject) -> AnalysisReport:
    """Share of attention on the cells that determine a puzzle's answer, by layer and number of vectors."""
    rows = ground_truth_attention.compare(subject)
    layers = max(len(row.layers) for row in rows)
    # In records a row for each layer and length.
    in_records = ["layer", "length", "puzzles", "even_share", "clue_share", "share", "share_deviation", "models"]
    table = AnalysisTable(rows, lambda row: row.of, in_records)
    table.add("", "accuracy %", lambda row: accuracy_cells(subject.accuracies_of(row.of))[0])
    table.add("", "even", lambda row: percent_cell(row.all.even), rule=True)
    table.add("", "clues", lambda row: percent_cell(row.all.clues))
    for i in range(layers):
        shares_of = [accuracy_cells(row.all.by_layer[i])[0] if i < len(row.layers) else number_cell(None, 1) for row in rows]
        table.add("", f"layer {i + 1}", dict(zip(rows, shares_of)).__getitem__, rule=i == 0)
    table.add("", "models", lambda row: count_cell(row.models), rule=True)
    puzzles = max(row.all.puzzles for row in rows)
    report = AnalysisReport(
        f"Share of the target cell's attention on the cells that determine it ({counted(puzzles, 'puzzle')}): mean and "
        "standard deviation over models",
        table,
        of_table=["Shares are in per cent."],
        of_records=["Accuracies and shares are fractions of 1."],
    )
    for row in rows:
        for layer in range(len(row.layers)):
            for length, shares in row.by_length.items():
                share = [cell.value for cell in accuracy_cells(shares.by_layer[layer])]
                chance = [shares.even, shares.clues]
                report.table.add_record(row.of, [layer + 1, length, shares.puzzles, *chance, *share, row.models])
    report.remarks.append(
        "even: the share if all cells had the same attention. clues: if all cells with a symbol had the same and others "
        "none. The cells that determine a target are the other cells of the rows and columns from which the task's rules "
        "deduce it."
    )
    return report


def encodings(subject: Subject, reference: str) -> AnalysisReport:
    """Distance of learned position tables from a fixed encoding: a label, "sin_cos" or "sin_cos_2d"."""
    distances = encoding_distance.measure(subject, find_fixed(subject, reference))
    of_sets = distances.models
    table = AnalysisTable(list(of_sets), lambda one: one)
    _add_scores(table, subject, subject.accuracies_of)
    table.add_means("first_block", "block 1", lambda one: mean_cells([m.blocks[0] for m in of_sets[one]], 2), rule=True)
    table.add_means("all_blocks", "mean of blocks", lambda one: mean_cells([model.mean for model in of_sets[one]], 2))
    table.add("models", "models", lambda one: count_cell(len(of_sets[one])))
    # Cosine of the two tables of block 1, without rotation.
    table.add_means("cosine", "", lambda one: mean_cells([model.cosines[0] for model in of_sets[one]], 2))
    report = AnalysisReport(
        f"Orthogonal Procrustes distance (Frobenius norm) of learned tables to {reference}: mean and standard deviation "
        "over models",
        table,
    )
    points = {one: float(numpy.mean([model.blocks[0] for model in models])) for one, models in of_sets.items()}
    report.remarks += correlation_remarks(subject, "distance in block 1", points)
    if distances.without_tables:
        report.remarks.append(f"Without a learned table: {_list(distances.without_tables)}.")
    of_fixed = "".join(f"{name} {value:.2f}, " for name, value in distances.fixed.items())
    report.remarks.append(
        f"Cosine similarity of other tables to that of {reference}: {of_fixed}learned tables before training 0.00 ± "
        f"{distances.untrained_cosine:.2f} (computed for independent draws, because initial tables are not stored)."
    )
    return report


def noise(subject: Subject) -> AnalysisReport:
    """Accuracy when noise is added to the embeddings of tokens, by its standard deviation."""
    curves = noise_curves.curves(subject)
    deviations = sorted({deviation for curve in curves for deviation in curve.accuracies})
    # Records have a row for each deviation, so that their columns do not depend on the deviations.
    in_records = ["noise", "accuracy", "accuracy_deviation", "models"]
    table = AnalysisTable(curves, lambda curve: curve.of, in_records)
    for deviation in deviations:
        accuracies = {curve: accuracy_cells(curve.accuracies.get(deviation, []))[0] for curve in curves}
        table.add("", format_exact(deviation), accuracies.__getitem__, rule=deviation == 0)
    report = AnalysisReport(
        "Accuracy by the standard deviation of the noise on the token embeddings: mean and standard deviation over models",
        table,
        of_table=["Accuracies are in per cent."],
        of_records=["Accuracies are fractions of 1."],
    )
    for curve in curves:
        for deviation, values in curve.accuracies.items():
            accuracy = [cell.value for cell in accuracy_cells(values)]
            report.table.add_record(curve.of, [deviation, *accuracy, len(values)])
    return report


def humans(subject: Subject, file: str | os.PathLike[str]) -> AnalysisReport:
    """Puzzle by puzzle beside people's accuracies: {"puzzles": [{"puzzle": ..., "human_accuracy": ...}, ...]}."""
    people = latin_square.read_human_accuracies(file)

    def mean(values: Sequence[float]) -> Cell:
        return percent_cell(float(numpy.mean(values)) if values else None)

    table = AnalysisTable(human_comparison.compare(subject, people), lambda row: row.of)
    table.add("accuracy", "models %", lambda row: mean(row.model_accuracies))
    table.add("human_accuracy", "people %", lambda row: mean(row.human_accuracies))
    table.add("cosine", "cosine", lambda row: number_cell(row.cosine, 3), rule=True)
    table.add("spearman", "Spearman's ρ", lambda row: number_cell(row.ranks.coefficient if row.ranks else None, 2))
    table.add("p_value", "p", lambda row: probability_cell(row.ranks.p_value if row.ranks else None))
    table.add("puzzles", "puzzles", lambda row: count_cell(len(row.puzzles)))
    table.add("models", "models", lambda row: count_cell(row.models))
    table.add("composite", "composite", lambda row: number_cell(row.composite, 2))
    report = AnalysisReport("Accuracy of models and of people, puzzle by puzzle", table)
    report.remarks.append(
        "cosine and Spearman's rank correlation ρ are over the puzzles. p is two-sided, from Student's t-distribution with "
        "two degrees of freedom fewer than puzzles. composite: the mean of cosine and ρ."
    )
    return report


def t_test(subject: Subject, reference: str, length: int | None = None) -> AnalysisReport:
    """Paired t-tests of each encoding against `reference`, seed by seed. Tested is the mean over the lengths that training
    did not show, or the score at one evaluated `length`. "adjusted_p_value" is Holm's, for the number of encodings.
    """
    if length:
        subject = at_length(subject, length)
    comparisons = seed_comparison.compare(subject, reference)
    by_loss = subject.by_loss
    several = any(row.tests > 1 for row in comparisons)

    def difference(name: str, other: str = "") -> Callable[[seed_comparison.SeedComparison], Cell]:
        """Of a test, which may be an interval to the `other` number."""

        def text(test: PairedTest) -> str:
            numbers = [getattr(test, one) for one in (name, other) if one]
            return " to ".join(f"{one:.3g}" if by_loss else f"{100 * one:.1f}" for one in numbers)

        return lambda row: Cell(getattr(row.test, name), text(row.test)) if row.test else Cell(None, "–")

    table = AnalysisTable(comparisons, lambda row: row.of)
    _add_scores(table, subject, lambda row: row.own)
    _add_scores(table, subject, lambda row: row.reference, reference)
    table.add("t", "t", lambda row: number_cell(row.test.t if row.test else None, 2), rule=True)
    table.add("degrees_of_freedom", "df", lambda row: count_cell(len(row.own) - 1))
    table.add("p_value", "p", lambda row: probability_cell(row.test.p_value if row.test else None))
    table.add("adjusted_p_value", "Holm's p" if several else "", lambda row: probability_cell(row.adjusted_p_value))
    table.add("pairs", "pairs", lambda row: count_cell(len(row.own)))
    table.add("difference", "difference", difference("difference"), rule=True)
    table.add("difference_low", _INTERVAL, difference("low", "high"))
    table.add("difference_high", "", difference("high"))
    report = AnalysisReport(
        f"Paired t-tests of {reference} against the other encodings, seed by seed: {_tested_score(subject, length or 0)}",
        table,
    )
    if not by_loss:
        report.of_table.append("The difference and its interval are in percentage points.")
        report.of_records.append("Accuracies, the difference and its interval are fractions of 1.")
    what = f"the encoding's loss less {reference}'s" if by_loss else f"{reference} less the encoding"
    report.remarks += [
        f"Student's t-test for related samples; the pairs are the seeds that both have. t is positive where {reference} is "
        "better; p is two-sided.",
        f"difference: {what}, mean over the pairs, with its {100 * CONFIDENCE:.0f} % confidence interval.",
    ]
    if several:
        report.remarks.append(
            f"Holm's p is adjusted for the number of encodings tested against {reference} (Holm's step-down method); p and "
            "the intervals are not."
        )
    if any(len(row.own) > 1 for row in comparisons):
        report.of_table.append("±: standard deviation over the paired seeds.")
    report.remarks += _unpaired_remark(comparisons, reference)
    if any(row.test is None for row in comparisons):
        report.remarks.append("–: a test needs at least two seeds, and differences that are not all the same.")
    return report


def _unpaired_remark(comparisons: Sequence[seed_comparison.SeedComparison], reference: str) -> list[str]:
    """Says which seeds of the tested trials are in no pair, if any."""
    found: dict[str, None] = {}
    for row in comparisons:
        unpaired = [(row.own_unpaired, row.of.encoding), (row.reference_unpaired, reference)]
        parts = [f"{counted(count, 'seed')} of {encoding}" for count, encoding in unpaired if count]
        if parts:
            found[" and ".join(parts)] = None
    if not found:
        return []
    return [
        "Only paired seeds count, so these means may differ from those of `lengthwise results`. Without a pair: "
        f"{'; '.join(found)}."
    ]


def carries(subject: Subject, length: int | None = None) -> AnalysisReport:
    """Errors of sums with and without a carry, by place. `length`: digits, by default the largest that all sets have."""
    rows = carry_errors.measure(subject, length or 0)
    # In records a row for each place.
    in_records = [
        "digits", "place", "base_rate", "first_wrong_with_carry", "first_wrong_without_carry", "accuracy_with_carry",
        "accuracy_without_carry", "answers", "models",
    ]  # fmt: skip
    table = AnalysisTable(rows, lambda row: row.of, in_records)
    table.add("", "answers", lambda row: count_cell(row.answers))
    table.add("", "errors", lambda row: count_cell(row.errors))
    table.add("", "with carry %", lambda row: percent_cell(row.share), rule=True)
    table.add("", _INTERVAL, lambda row: Cell(None, _percents(row.interval())))
    table.add("", "by chance %", lambda row: percent_cell(row.expected))
    table.add("", "p", lambda row: probability_cell(row.p_value()))
    table.add("", "models", lambda row: count_cell(row.models), rule=True)
    report = AnalysisReport(
        f"Wrong answers to sums of {rows[0].digits} digits, and the share of them with a carry into the least significant "
        "wrong digit",
        table,
    )
    for row in rows:
        for place, values in enumerate(zip(row.base_rate, row.with_carry, row.without_carry, *row.accuracies())):
            base_rate, with_carry, without_carry, *right = map(float, values)
            counts = int(with_carry), int(without_carry)
            report.table.add_record(row.of, [row.digits, place, base_rate, *counts, *right, row.answers, row.models])
    report.remarks.append(
        "by chance: the share that random operands would have at the places of the errors. p: two-sided, for the hypothesis "
        f"that carries make no difference (Poisson binomial distribution). {_WILSON}"
    )
    return report


def _percents(interval: tuple[float, float] | None) -> str:
    return f"{100 * interval[0]:.1f} to {100 * interval[1]:.1f}" if interval else "–"


def carry_chains(subject: Subject, length: int | None = None) -> AnalysisReport:
    """Accuracy of digits by length of the carry chain into them, with the chain's base rate. `length`: digits, by default
    the largest that all sets have.
    """
    rows = carry_errors.measure_chains(subject, length or 0)
    # Each with a distance that some carry came.
    chains = [(row, int(distance)) for row in rows for distance in numpy.flatnonzero(row.places)]
    table = AnalysisTable(chains, lambda chain: chain[0].of)
    table.add("digits", "", lambda chain: count_cell(chain[0].digits))
    table.add("distance", "carry from", lambda chain: Cell(chain[1], str(chain[1] or "none")))
    table.add("places", "places", lambda chain: count_cell(int(chain[0].places[chain[1]])))
    table.add("base_rate", "share %", lambda chain: percent_cell(float(chain[0].base_rate[chain[1]])))
    table.add("wrong", "wrong", lambda chain: count_cell(int(chain[0].wrong[chain[1]])), rule=True)
    table.add("accuracy", "right %", lambda chain: percent_cell(chain[0].accuracy(chain[1])))
    intervals = {chain: chain[0].interval(chain[1]) for chain in chains}
    table.add("accuracy_low", _INTERVAL, lambda chain: Cell(intervals[chain][0], _percents(intervals[chain])))
    table.add("accuracy_high", "", lambda chain: Cell(intervals[chain][1]))
    table.add("models", "models", lambda chain: count_cell(chain[0].models), rule=True)
    report = AnalysisReport(
        f"Accuracy of the digits of sums of {rows[0].digits} digits, by how many places the carry into them has come",
        table,
    )
    report.remarks.append(
        "A carry arises where two digits add up to 10 or more, and passes through places whose digits add up to 9. places: "
        "the places of all answers, each answer up to and including its least significant wrong digit. share: the share of "
        f"such places for random operands. {_WILSON}"
    )
    return report


def speed(subject: Subject, accuracy: float = 0.9) -> AnalysisReport:
    """Steps per second, and seconds of training until the accuracy on unseen lengths is above `accuracy`, 0 to 1."""
    rows = speeds.measure(subject, accuracy)
    unseen = subject.unseen("lengths not seen in training")
    tables = [table for table in published_tables.tables() if table.quantity is Quantity.STEPS_PER_SECOND]
    # Those that each row belongs to, with their value.
    printed = {
        row: [(one, value) for one in tables if _trained_as(one, row.of) and (value := _published_value(one, row.of))]
        for row in rows
    }
    table = AnalysisTable(rows, lambda row: row.of)
    table.add_means("steps_per_second", "steps/s", lambda row: mean_cells(row.steps_per_second, 1))
    table.add(
        "times_steps_per_second", "times", lambda row: number_cell(speeds.times_faster(row, rows, "steps_per_second"), 1)
    )
    table.add(
        "published_steps_per_second", "paper", lambda row: number_cell(printed[row][0][1].value if printed[row] else None, 1)
    )
    reached = f"s to {100 * accuracy:.4g} %"
    table.add("seconds", reached, lambda row: number_cell(row.median if math.isfinite(row.median) else None, 1), rule=True)
    table.add("times_sooner", "times sooner", lambda row: number_cell(speeds.times_faster(row, rows, "seconds"), 1))
    table.add("reached", "reached", lambda row: count_cell(row.reached))
    table.add("models", "models", lambda row: count_cell(row.models))
    report = AnalysisReport(
        "Training steps per second (mean and standard deviation over models), and seconds of training until the accuracy "
        f"on {unseen} is above {100 * accuracy:.4g} % (median model); times: speed relative to the slowest encoding "
        "of the task",
        table,
    )
    if any(row.reached < row.models for row in rows):
        report.remarks.append(
            "–: at most half of the models reached the accuracy. evaluation.every_steps sets how often it is measured."
        )
    for found in {one.key: one for of_row in printed.values() for one, _ in of_row}.values():
        if known := found.speedup:
            report.remarks.append(
                f"Paper: {found.citation}, {found.table}: {100 * known['accuracy']:g} % are reached {known['times']} times "
                f"sooner than with {known['than']}."
            )
    report.remarks.append(
        "Each member of a pack counts the seconds of the whole pack. Train models alone to compare their speed."
    )
    return report


def _trained_as(table: PublishedTable, one: TrialSet) -> bool:
    """True if the training lengths are those of the table's own trials."""
    lengths = one.specification.training.lengths
    wanted = table.protocol.get("training", {}).get("lengths", "")
    return bool(f"{lengths.min}..{lengths.max}" == wanted)


def loss_ratios(subject: Subject, reference: str, compare: str = "") -> AnalysisReport:
    """Ratio of the losses of the network `reference` to the others', by scale beyond the range of training. `compare`: adds
    a published table such as "positional_attention/figure_2".
    """
    published = find_losses(compare) if compare else None
    rows = ratios.compare(subject, reference, published)
    # In records a row for each scale.
    in_records = ["scale", "loss", "reference_loss", "ratio", *(["published_ratio"] if published else []), "models"]
    means = {row: ratios.geometric_mean(list(row.ratios.values())) for row in rows}
    of_paper = {row: ratios.geometric_mean(list(row.published.values())) for row in rows}
    table = AnalysisTable(rows, lambda row: row.of, in_records)
    table.add("", "smallest", lambda row: number_cell(min(row.ratios.values(), default=None), 1))
    table.add("", "geometric mean", lambda row: number_cell(means[row], 1))
    table.add("", "largest", lambda row: number_cell(max(row.ratios.values(), default=None), 1))
    if published:
        table.add("", "paper", lambda row: number_cell(of_paper[row], 1), rule=True)
    table.add("", "models", lambda row: count_cell(row.models), rule=True)
    scales = sorted({scale for row in rows for scale in row.own})
    report = AnalysisReport(
        f"Losses of {reference} divided by those of the other networks (medians over models), at the scales "
        f"{format_integers(scales)}, which were not seen in training",
        table,
    )
    for row in rows:
        for scale in row.own:
            beside = [row.published.get(scale)] if published else []
            record = [scale, row.own[scale], row.others[scale], row.ratios.get(scale), *beside, row.models]
            report.table.add_record(row.of, record)
    report.remarks += _range_remark("Here", means.values())
    report.remarks += _range_remark("Paper's table", of_paper.values()) if published else []
    if published and published.loss_ratio:
        known = published.loss_ratio
        report.remarks.append(
            f"Paper's text: {known['smallest']:,} to {known['largest']:,} times, {known['mean']:,} on average "
            f"({published.citation}; geometric means over the scales of its table agree)."
        )
    return report


def _range_remark(where: str, means: Iterable[float]) -> list[str]:
    known = [one for one in means if not math.isnan(one)]
    if not known:
        return []
    return [
        f"{where}: {min(known):,.0f} to {max(known):,.0f} times over {counted(len(known), 'row')}, "
        f"{ratios.geometric_mean(known):,.0f} on average (geometric means)."
    ]


def find_losses(key: str) -> PublishedTable:
    """The published table of a key such as "positional_attention/figure_2". UsageError if it has no losses."""
    table = published_tables.find(key)
    if table.quantity is not Quantity.LOSS:
        raise UsageError(f"--compare: {key} has no losses; positional_attention/figure_2 has some")
    return table
