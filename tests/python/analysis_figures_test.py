"""Figures of analyses: checks the drawn data, not pixels."""
import math
import unittest

import matplotlib.text
import numpy
import served
from analysis_fixture import EXPERIMENT
from lengthwise import plots
from lengthwise._proto import catalogue_service_pb2, event_pb2, experiment_service_pb2
from lengthwise.analyses import carries, trial_sets
from lengthwise.analyses.attention_similarity import AttentionComparison, AttentionSimilarity, SimilarityMatrix
from lengthwise.analyses.encoding_distance import EncodingDistance, EncodingDistances
from lengthwise.analyses.ground_truth import AttentionShares, GroundTruthAttention
from lengthwise.analyses.human_comparison import HumanComparison
from lengthwise.analyses.noise_curves import NoiseCurve
from lengthwise.errors import LengthwiseError, UsageError
from lengthwise.plots import analysis_figures as figures
from lengthwise.plots import data, domain_bound, drawing
from lengthwise.plots.catalogue import Catalogue
from lengthwise.plots.groups import group_trials
from lengthwise.plots.options import Options


class FiguresTest(unittest.TestCase):
    def setUp(self):
        self.experiment = data.PlottedExperiment(EXPERIMENT, finals=[])
        # Two models of "small", one of "large" and one of "ground", with final accuracies.
        for encoding, seed, accuracy in (("small", 1, 0.9), ("small", 2, 0.7), ("large", 1, 0.3), ("ground", 1, 1.0)):
            self.add(encoding, seed, accuracy)
        task = catalogue_service_pb2.CatalogueEntry(
            kind=catalogue_service_pb2.TASK, name="latin_square", title="Latin Square Task"
        )
        task.facts["random_accuracy"] = "0.25"
        self.experiment.catalogue = Catalogue(tasks={"latin_square": task})

    def add(self, encoding, seed, accuracy, rate=1e-4):
        trial = experiment_service_pb2.Trial(
            name=f"experiments/{EXPERIMENT}/trials/{encoding}{seed}-{rate}", state=event_pb2.SUCCEEDED
        )
        specification = trial.specification
        specification.task.name = "latin_square"
        specification.encoding.name, specification.encoding.label = "learned", encoding
        specification.weight_seed, specification.learning_rate = seed, rate
        self.experiment.trials.append(trial)
        self.experiment.finals.append(
            experiment_service_pb2.QueryLengthAccuraciesResponse.Evaluation(
                trial=trial.name,
                accuracies=event_pb2.LengthAccuracies(final=True, lengths=[1], accuracies=[accuracy]),
            )
        )
        served.set_means(self.experiment.finals[-1].accuracies, seen_up_to=0)

    def subject(self):
        return trial_sets.subject_of([self.experiment])

    def test_noise_is_a_line_for_each_encoding_with_a_band(self):
        subject = self.subject()
        picture = figures.noise.__wrapped__(
            subject,
            [
                NoiseCurve(subject.sets[0], {0: [0.9, 0.7], 0.1: [0.5, 0.4]}),
                NoiseCurve(subject.sets[1], {0: [0.3], 0.1: [0.3]}),
            ],
        )
        (panel,) = picture.panels
        first, second = panel.series
        self.assertEqual(first.name, "small")
        self.assertEqual(first.x, [0, 0.1])
        self.assertAlmostEqual(first.y[1], 0.45, 12)
        self.assertEqual((first.low[1], first.high[1]), (0.4, 0.5))
        self.assertNotEqual(first.style, second.style)
        self.assertEqual(panel.title, "Latin Square Task")
        self.assertEqual([one.y for one in panel.references], [0.25], "four symbols to guess from")
        self.assertIn("up to 2 models", picture.caption)

    def test_only_the_best_learning_rate_is_drawn(self):
        # For "small", rates with means 0.8 (added above) and 0.95; for "large", 0.3 and 0.1.
        self.add("small", 3, 0.95, 0.01)
        self.add("large", 2, 0.1, 0.01)
        self.experiment.select = "unseen"  # no puzzle was seen
        subject = self.subject()
        self.assertEqual(len(subject.sets), 5)
        curves = [NoiseCurve(one, {0: [float(i)]}) for i, one in enumerate(subject.sets)]
        comparison = AttentionComparison(
            [AttentionSimilarity(one, means=[(one.trials[0], float(i))]) for i, one in enumerate(subject.sets)], 4, 2
        )
        noise = figures.noise.__wrapped__(subject, curves)
        similarity = figures.attention_similarity.__wrapped__(subject, comparison, "ground")
        # In the order of the sets: small, large and ground at the first rate, then small and large
        # at the second.
        drawn = [(one.name, one.y[0]) for one in noise.panels[0].series]
        self.assertEqual(drawn, [("large", 1), ("ground", 2), ("small", 3)])
        self.assertEqual([(one.name, one.x[0]) for one in similarity.panels[0].series], [("large", 1), ("small", 3)])
        for picture in (noise, similarity):
            self.assertIn("Each encoding has the learning rate with the highest", picture.caption)

    def test_noise_names_the_axis_and_has_the_colours_of_other_figures(self):
        self.experiment.catalogue.tasks["latin_square"].facts["axis"] = "vectors"
        subject = self.subject()
        picture = figures.noise.__wrapped__(subject, [NoiseCurve(one, {0: [0.5]}) for one in subject.sets])
        self.assertEqual(picture.y.label, "accuracy, mean over all numbers of vectors")
        others = {group.name: group.style for group in group_trials([self.experiment])}
        for series in picture.panels[0].series:
            self.assertEqual(series.style, others[series.name], series.name)

    def test_twelve_series_look_different(self):
        for i in range(12):
            self.add(f"learn_{i}", 1, 0.5)
        subject = self.subject()
        picture = figures.noise.__wrapped__(subject, [NoiseCurve(one, {0: [0.5]}) for one in subject.sets])
        looks = {(one.style.hex_color, one.style.dashes) for one in picture.panels[0].series}
        self.assertEqual(len(looks), 15)

    def test_distances_are_a_point_for_each_model(self):
        subject = self.subject()
        small, large = subject.sets[:2]
        of_small = [EncodingDistance(trial, [first, 9], [0, 0]) for trial, first in zip(small.trials, (1, 2))]
        distances = EncodingDistances({small: of_small, large: [EncodingDistance(large.trials[0], [5, 9], [0, 0])]})
        picture = figures.encoding_distance.__wrapped__(subject, distances, "2d_fixed")
        first, second = picture.panels[0].series
        self.assertEqual((first.kind, first.x, first.y[1]), ("scatter", [1, 2], 0.7))
        self.assertEqual(second.x, [5])
        self.assertIn("2d_fixed", picture.x.label)
        self.assertAlmostEqual(picture.x.range[0], 0.8, 12, "a twentieth beyond the points")
        self.assertAlmostEqual(picture.x.range[1], 5.2, 12)

    def test_ground_truth_precedes_the_layers(self):
        subject = self.subject()

        def row(one, layers):
            maps = numpy.array([[[0.5, 0.5], [0, 0]], [[0.25, 0.75], [0, 0]]])[:layers]
            shares = AttentionShares(3, 0.5, 0.75, numpy.array([[0.5, 0.5], [1, 0.5]])[:layers])
            return GroundTruthAttention(one, 2, numpy.array([[0, 1], [0, 0]]), maps, shares, {})

        picture = figures.attention_ground_truth.__wrapped__(subject, [row(one, 2) for one in subject.sets[:2]])
        self.assertEqual((len(picture.panels), picture.columns), (6, 3))
        self.assertEqual(picture.row_titles, ["small", "large"])
        self.assertEqual(picture.panels[3].title, "ground truth (even: 50.0 %, clues: 75.0 %)")
        self.assertEqual(picture.panels[3].map.values.tolist(), [[0, 1], [0, 0]])
        self.assertEqual(picture.panels[5].title, "layer 2: 75.0 %", "the mean over the models")
        self.assertEqual(picture.panels[5].map.values[0, 1], 0.75)
        self.assertEqual(picture.map_maximum, 1)
        self.assertIn("the mean over 3 puzzles and the models", picture.caption)
        with self.assertRaises(UsageError):
            figures.attention_ground_truth.__wrapped__(subject, [row(subject.sets[0], 2), row(subject.sets[1], 1)])
        with self.assertRaises(UsageError):
            figures.attention_ground_truth.__wrapped__(subject, [row(subject.sets[0], 2)] * 17)

    def test_reference_is_not_compared_with_itself(self):
        subject = self.subject()
        rows = [AttentionSimilarity(one, means=[(trial, 0.8) for trial in one.trials]) for one in subject.sets]
        picture = figures.attention_similarity.__wrapped__(subject, AttentionComparison(rows, 108, 4), "ground")
        first, second = picture.panels[0].series
        self.assertEqual(len(first.x), 2)
        self.assertEqual((second.name, second.x, second.y), ("large", [0.8], [0.3]))

    def test_noise_averages_are_a_bar_for_each_encoding(self):
        subject = self.subject()
        self.experiment.recorded = [
            event_pb2.Event(
                trial=trial.name, noise_accuracies=event_pb2.NoiseAccuracies(deviations=[0.1, 0.2], accuracies=accuracies)
            )
            for trial, accuracies in zip(self.experiment.trials, ([0.8, 0.6], [0.6, 0.4], [0.3, 0.2]))
        ]
        picture = figures.noise_average([self.experiment], Options())
        ((bars,),) = [panel.series for panel in picture.panels]
        self.assertEqual(bars.kind, "bars")
        # The means of 0.7 and 0.5, and one of 0.25. Evaluations without noise do not count.
        numpy.testing.assert_allclose(bars.y, [0.6, 0.25])
        numpy.testing.assert_allclose(bars.high, [0.6 + 0.1 * math.sqrt(2), 0.25])
        self.assertEqual(len(subject.sets), 3)

    def test_human_scores_have_a_panel_for_each_encoding(self):
        subject = self.subject()
        rows = [
            HumanComparison(one, 2, ["a", "b", "c"], [1, 0.5, 0], [1, 0.5, 0.25]) for one in subject.sets[:2]
        ]
        scatter = figures.human_scatter.__wrapped__(subject, rows)
        self.assertEqual([panel.title for panel in scatter.panels], ["small: ρ = 1.00", "large: ρ = 1.00"])
        self.assertEqual(scatter.panels[0].series[0].x, [1, 0.5, 0.25])
        self.assertEqual(scatter.panels[0].series[0].y, [1, 0.5, 0])
        scores = figures.human_scores.__wrapped__(subject, rows)
        cosine = 1.25 / math.sqrt(1.25 * 1.3125)
        self.assertEqual([panel.title for panel in scores.panels], ["cosine", "Spearman's rank correlation", "composite"])
        numpy.testing.assert_allclose([panel.series[0].y[0] for panel in scores.panels], [cosine, 1, (1 + cosine) / 2])
        with self.assertRaisesRegex(UsageError, "human_scores needs --people, a file of people's answers"):
            plots.describe("human_scores", [self.experiment])

    def test_a_matrix_has_the_names_of_its_encodings(self):
        subject = self.subject()
        values = numpy.array([[0.9, 0.5, 0.4], [0.5, numpy.nan, 0.3], [0.4, 0.3, 0.2]])
        matrix = SimilarityMatrix(subject.sets, values, numpy.ones((3, 3), int), 36, 2)
        picture = figures.attention_matrix.__wrapped__(subject, matrix)
        self.assertEqual(picture.map_maximum, 0.9)
        figure = drawing.draw(picture)
        labels = {text.get_text() for text in figure.findobj(matplotlib.text.Text)}
        self.assertLessEqual({"small", "large", "ground", "0.90", "0.30"}, labels)
        self.assertNotIn("nan", labels)

    def test_carries_are_drawn_beside_their_base_rate(self):
        subject = self.subject()
        base = carries.carry_probabilities(2, False)
        row = carries.CarryErrors(subject.sets[0], 2, 2, 20, numpy.array([0, 2, 0.0]), numpy.array([1, 0, 0.0]), base)
        picture = figures.error_carries.__wrapped__(subject, [row])
        small, rate = picture.panels[0].series
        self.assertEqual((small.name, small.x, small.y), ("small", [1], [1]), "two errors at place 1, and none at 2")
        # Wilson's interval for two of two: 2 / (2 + 1.96^2) to 1.
        self.assertAlmostEqual(small.low[0], 2 / (2 + 1.959963984540054**2), 9)
        self.assertEqual((rate.x, rate.y), ([1, 2], base[1:].tolist()))
        self.assertIn("small 67 % (by chance 30 %)", picture.caption)
        # A hundred places in ten groups.
        wide = numpy.zeros(101)
        wide[[1, 10]] = 3, 1
        row = carries.CarryErrors(subject.sets[0], 100, 2, 20, wide, wide[::-1], carries.carry_probabilities(100, False))
        (place, first), *others, (_, last) = row.groups(10).items()
        self.assertEqual((place, first.errors, first.share, len(others)), (5.5, 4, 1, 8))
        self.assertEqual((last.errors, last.share), (3, 0), "those at place 99")

    # Values stated in appendix D and section 6, as in tasks/numeric/value_range_test.cc.
    def test_bound_matches_the_paper(self):
        self.assertLess(domain_bound.domain_bound(8, 3), 0.05)
        self.assertAlmostEqual(domain_bound.domain_bound(8, 10), 0.0034, delta=0.00005)
        self.assertLessEqual(domain_bound.domain_bound(2, 2, printed=True), 0.4375)
        self.assertGreater(domain_bound.domain_bound(2, 2, printed=True), 0.43)
        # The two integrals of appendix D for n = 2, evaluated exactly.
        exact = (1 - math.log(2)) / 2 + math.log(4 / 3) / 4
        self.assertLess(domain_bound.domain_bound(2, 3, printed=True), exact)
        self.assertGreater(domain_bound.domain_bound(2, 3), exact)
        self.assertEqual(domain_bound.domain_bound(2, 1.001), 1)
        for n, scale in ((1, 3), (8, 1), (8, math.nan), (8, math.inf)):
            with self.assertRaises(UsageError):
                domain_bound.domain_bound(n, scale)

    def test_bound_is_drawn_at_evaluated_scales(self):
        with self.assertRaises(LengthwiseError):
            domain_bound.picture([self.experiment], Options())
        self.experiment.catalogue.tasks["latin_square"].facts["axis"] = "scale"
        for trial in self.experiment.trials:
            trial.specification.training.lengths.max = 8
            trial.specification.evaluation.lengths[:] = [1, 2, 3]
        picture = domain_bound.picture([self.experiment], Options())
        (marks,) = picture.panels[0].series
        self.assertEqual((marks.x, marks.y), ([2, 3], [8, 8]))
        self.assertIn(f"at most {domain_bound.domain_bound(8, 2):.2g}", picture.caption)
        drawing.draw(picture)


if __name__ == "__main__":
    unittest.main()
