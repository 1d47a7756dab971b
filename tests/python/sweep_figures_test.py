"""Scores by a number in which trials or experiments differ."""
import unittest

import numpy
from figure_fixture import FigureCase, add, add_curve, evaluation, make_trial, plotted, setUpModule
from lengthwise._proto import experiment_service_pb2


class LengthSweepTest(FigureCase):
    def sweep_trial(self, max_position, seed):
        trial = make_trial("relative", True, seed=seed)
        trial.specification.encoding.parameters["max_position"].number_value = max_position
        trial.specification.encoding.label = f"relative_{max_position}"
        trial.name += f"-{max_position}"
        return trial

    def test_draws_the_best_and_all_trials(self):
        experiment = plotted()
        for positions, seed, unseen in [(2048, 0, 0.5), (2048, 1, 0.7), (1024, 0, 0.9), (1024, 1, 0.6)]:
            add(experiment, self.sweep_trial(positions, seed), [1, 1, unseen])
        # It draws no positions, so it is not part of the sweep.
        add(experiment, make_trial("relative"), [1, 1, 1])
        picture = self.figure("length_sweep", experiment)
        (panel,) = picture.panels
        points, line = panel.series
        self.assertTrue(points.faint)
        self.assertEqual(len(points.x), 4)
        self.assertEqual((line.name, line.x, line.y), ("Bucket Sort", [1024, 2048], [0.9, 0.7]))
        self.assertEqual(picture.x.scale, "log2")
        self.assertIn("Points: every trial.", picture.caption)
        experiment.trials = [trial for trial in experiment.trials if trial.specification.weight_seed == 0]
        self.assertNotIn("Points", self.figure("length_sweep", experiment).caption)

    def test_positions_that_are_shifted_have_no_number(self):
        experiment = plotted()
        for choice, positions in (("skips", 1024), ("skips", 2048), ("shift", 1024), ("augmented", 2048)):
            trial = self.sweep_trial(positions, 0)
            trial.specification.encoding.parameters["positions"].string_value = choice
            trial.specification.encoding.label = f"{choice}_{positions}"
            trial.name += choice
            add(experiment, trial, [1, 1, 0.5])
        (panel,) = self.figure("length_sweep", experiment).panels
        self.assertEqual([one.x for one in panel.series if not one.faint], [[1024, 2048]])

    def test_explains_sweeps(self):
        experiment = plotted()
        add(experiment, self.sweep_trial(2048, 0), [1, 1, 0.5])
        self.assertIn("encodings: [{name:", self.message("length_sweep", experiment))
        self.assertIn("do not differ in slope", self.message("length_sweep", experiment, parameter="slope"))

    def of_examples(self):
        """Two experiments of positional attention that differ in their training examples: two networks, three seeds."""
        experiments = []
        for examples, errors in [(5000, [4.0, 5.0, 9.0]), (10_000, [1.0, 2.0, 3.0])]:
            experiment = plotted(f"figure3_{examples}-1")
            for network in ("positional", "standard"):
                for seed, error in enumerate(errors):
                    trial = make_trial("one_hot", seed=seed, experiment=experiment.name, task="cumulative_sum")
                    trial.name += network
                    trial.specification.network.label = network
                    trial.specification.training.examples = examples
                    trial.specification.evaluation.seen_up_to = 1
                    experiment.trials.append(trial)
                    test = error * (10 if network == "standard" else 1)
                    experiment.finals.append(evaluation(trial, [1, 3], [0, 0], losses=[error / 100, test]))
                    add_curve(experiment, trial, [9.0] * 19 + [error / 1000])
            experiments.append(experiment)
        return experiments

    def test_error_by_examples_is_a_median_with_a_band(self):
        picture = self.figure("length_sweep", *self.of_examples())
        (panel,) = picture.panels
        self.assertEqual((panel.title, picture.x.label, picture.y.label), (
            "Cumulative Sum", "training examples", "mean squared error"
        ))  # fmt: skip
        positional, standard = panel.series
        self.assertEqual((positional.name, positional.x, positional.y), ("positional", [5000, 10_000], [5, 2]))
        self.assertEqual(standard.y, [50, 20])
        self.assertAlmostEqual(positional.low[0], 4.2)  # the 10th percentile of 4, 5 and 9
        self.assertAlmostEqual(positional.high[0], 8.2)
        self.assertIn("Median over 3 seeds.", picture.caption)

    def test_networks_and_other_numbers_have_lines_of_their_own(self):
        experiment = plotted()
        for network, theta, unseen in [("small", 1, 0.2), ("large", 1, 0.9), ("large", 2, 0.5)]:
            for positions in (1024, 2048):
                trial = self.sweep_trial(positions, 0)
                trial.specification.network.label = network
                trial.specification.encoding.label += f"_{theta}"
                trial.specification.encoding.parameters["theta"].string_value = str(theta)
                trial.name += f"{network}{theta}"
                add(experiment, trial, [1, 1, unseen])
        (panel,) = self.figure("length_sweep", experiment).panels
        self.assertEqual(
            {one.name: one.y for one in panel.series},
            {
                "Bucket Sort, small, randomized_relative, theta 1": [0.2, 0.2],
                "Bucket Sort, large, randomized_relative, theta 1": [0.9, 0.9],
                "Bucket Sort, large, randomized_relative, theta 2": [0.5, 0.5],
            },
        )

    def test_a_line_has_its_colour_in_every_panel(self):
        experiments = self.of_examples()
        for experiment in experiments:
            for trial in list(experiment.trials):
                # The second task has the second network alone.
                if trial.specification.network.label == "standard":
                    other = experiment_service_pb2.Trial()
                    other.CopyFrom(trial)
                    other.specification.task.name = other.specification.task.label = "cumulative_min"
                    other.name += "-min"
                    experiment.trials.append(other)
                    experiment.finals.append(evaluation(other, [1, 3], [0, 0], losses=[1, 1]))
        first, second = self.figure("length_sweep", *experiments).panels
        self.assertEqual([one.name for one in first.series], ["positional", "standard"])
        self.assertEqual([one.name for one in second.series], ["standard"])
        self.assertEqual(first.series[1].style, second.series[0].style)

    def test_sweeps_of_regressions_show_losses(self):
        experiment = plotted()
        for positions, loss in ((1024, 2), (2048, 3)):
            for seed in range(2):
                trial = self.sweep_trial(positions, seed)
                trial.specification.task.name = trial.specification.task.label = "cumulative_sum"
                experiment.trials.append(trial)
                experiment.finals.append(evaluation(trial, [1, 3], [0, 0], losses=[1, loss + seed]))
        picture = self.figure("length_sweep", experiment)
        self.assertEqual(picture.y.label, "mean squared error on what training did not show")
        self.assertEqual(picture.panels[0].series[-1].y, [2, 3])
        self.assertIn("Lines: the lowest", picture.caption)

    def test_kinds_of_tasks_do_not_share_a_sweep(self):
        experiments = self.of_examples()
        add(experiments[0], make_trial("one_hot", experiment=experiments[0].name), [1, 1, 1])
        self.assertIn("plot them one by one", self.message("length_sweep", *experiments))

    def test_training_validation_and_test_have_panels(self):
        picture = self.figure("length_sweep", *self.of_examples(), splits=True)
        self.assertEqual(
            [panel.title for panel in picture.panels],
            ["training", "validation: seen in training", "test: not seen in training"],
        )
        numpy.testing.assert_allclose([panel.series[0].y[0] for panel in picture.panels], [0.005, 0.05, 5], rtol=1e-6)
        self.assertEqual(picture.columns, 3)

    def test_error_by_length_is_that_of_the_vectors(self):
        experiments = self.of_examples()
        for experiment, length in zip(experiments, (2, 8)):
            for trial in experiment.trials:
                trial.specification.training.examples = 30_000
                trial.specification.training.lengths.max = length
        picture = self.figure("length_sweep", *experiments)
        self.assertEqual(picture.x.label, "length of the vectors, n")
        self.assertEqual(picture.panels[0].series[0].x, [2, 8])


    def test_learning_rates_are_swept_at_one_length(self):
        experiment = plotted()
        for rate, at_3 in [(1e-4, 0.1), (1e-3, 0.9), (1e-3, 0.7), (1e-2, 0.2)]:
            trial = make_trial("fire", rate=rate, seed=len(experiment.trials), task="decimal_addition")
            add(experiment, trial, [1, 1, at_3, 0])
        picture = self.figure("length_sweep", experiment, length=3)
        (line,) = picture.panels[0].series
        self.assertEqual(line.x, [1e-4, 1e-3, 1e-2])
        numpy.testing.assert_allclose(line.y, [0.1, 0.8, 0.2])
        self.assertEqual((picture.x.scale, picture.x.label), ("log10", "learning rate"))
        self.assertIn("Exact match at 3 digits.", picture.caption)

    def test_experiments_of_one_rate_are_no_seeds_of_each_other(self):
        experiments = []
        for name, unseen in [("a-1", 0.9), ("b-1", 0.1)]:
            experiments.append(plotted(name))
            for rate in (1e-4, 1e-3):
                add(experiments[-1], make_trial("rope", rate=rate, experiment=name), [1, 1, unseen])
        (panel,) = self.figure("length_sweep", *experiments, parameter="learning_rate").panels
        self.assertEqual([(one.name.split(":")[0], one.y) for one in panel.series], [("a-1", [0.9, 0.9]), ("b-1", [0.1, 0.1])])


if __name__ == "__main__":
    unittest.main()
