"""Figures over training: scores and losses by step, epoch and time."""
import math
import math
import unittest

import numpy
from figure_fixture import FigureCase, MetricsCase, add, add_curve, add_interval, make_trial, plotted, setUpModule
from lengthwise.web import figures


class AccuracyOverStepsTest(MetricsCase):
    def test_has_a_panel_a_length(self):
        # Two seeds that learn length 3 at different steps.
        for seed in range(2):
            self.add_trial("decimal_addition", "rope", seed)
            self.evaluate(10, False, [0.5, 0])
            self.evaluate(20, False, [1, 0.0 if seed == 0 else 0.5])
            self.evaluate(30, False, [1, 1])
            self.evaluate(30, True, [0, 0])
        picture = self.figure("accuracy_over_steps", self.experiment)
        self.assertEqual(picture.title, "Exact match over training: e-1")
        self.assertEqual((picture.x.label, picture.x.range), ("training step", (0, 30)))
        self.assertEqual([panel.title for panel in picture.panels], ["2 digits, seen in training", "3 digits"])
        for trial in self.experiment.trials:
            trial.specification.training.lengths.min, trial.specification.training.lengths.max = 3, 4
        titles = [panel.title for panel in self.figure("accuracy_over_steps", self.experiment).panels]
        self.assertEqual(titles, ["2 digits, counted as seen", "3 digits"])
        for trial in self.experiment.trials:
            trial.specification.training.lengths.min, trial.specification.training.lengths.max = 1, 2
        first, second, thick = picture.panels[1].series
        self.assertTrue(first.faint)
        self.assertEqual(first.name, "", "not in the legend")
        self.assertEqual([list(first.y), list(second.y)], [[0, 0, 1], [0, 0.5, 1]])
        self.assertFalse(thick.faint)
        self.assertEqual((thick.name, list(thick.y)), ("RoPE", [0, 0.25, 1]))
        self.assertEqual(thick.x[1], 20)
        self.assertEqual(list(thick.low), [], "the thin lines are the band")
        self.assertEqual(thick.style, first.style)
        self.assertIn("Thick lines: their mean", picture.caption)

    def test_shows_the_requested_length_and_metric(self):
        self.add_trial("decimal_addition", "rope", 0)
        self.evaluate(10, False, [0.5, 0], digits_accuracy=[0.75, 0.25])
        picture = self.figure("accuracy_over_steps", self.experiment, metric="digits_accuracy", length=3)
        (panel,) = picture.panels
        self.assertEqual([series.y for series in panel.series], [[0.25]], "one trial is its own mean")
        self.assertEqual(
            self.message("accuracy_over_steps", self.experiment, length=7),
            "no evaluations during training at length 7; there are those at 2, 3",
        )

    def test_regression_is_the_median_of_errors(self):
        for seed in range(3):
            self.add_trial("cumulative_sum", "one_hot", seed)
            self.evaluate(10, False, [0, 0], [8 if seed == 2 else 1] * 2)
        picture = self.figure("accuracy_over_steps", self.experiment)
        self.assertEqual(picture.panels[0].title, "scale 2, seen in training")
        self.assertEqual(picture.panels[0].series[-1].y, [1])
        self.assertEqual(picture.y.label, "mean squared error")
        self.assertIn("their median", picture.caption)

    def test_names_the_field_that_records_it(self):
        self.add_trial("decimal_addition", "rope", 0)
        self.evaluate(10, True, [1, 1])
        self.assertIn(
            "evaluation.every_steps in its specification records them", self.message("accuracy_over_steps", self.experiment)
        )

    def test_epochs_are_of_the_stored_examples(self):
        trial = self.add_trial("latin_square", "learned", 0)
        trial.specification.training.examples = 100
        trial.specification.training.batch_size = 32  # four steps an epoch
        self.evaluate(4, False, [0.25, 0.75])
        self.evaluate(8, True, [1, 0.5])
        picture = self.figure("accuracy_over_epochs", self.experiment)
        (line,) = picture.panels[0].series
        self.assertEqual((list(line.x), list(line.y)), ([1, 2], [0.5, 0.75]))
        self.assertEqual((picture.x.label, picture.x.range), ("epoch", (0, 2)))

    def test_epochs_have_batches_of_one_length(self):
        trial = self.add_trial("latin_square", "learned", 0)
        trial.specification.training.examples = 100
        trial.specification.training.lengths.min, trial.specification.training.lengths.max = 1, 50
        trial.specification.training.batch_size = 32  # a step for the two examples of each length
        self.evaluate(100, False, [0.25, 0.75])
        self.assertEqual(list(self.figure("accuracy_over_epochs", self.experiment).panels[0].series[0].x), [2])
        trial.specification.training.packing.SetInParent()
        self.assertEqual(self.figure("accuracy_over_epochs", self.experiment).x.label, "training step")

    def test_losses_without_bound_are_left_out_and_counted(self):
        for seed, loss in enumerate((1, math.inf)):
            self.add_trial("cumulative_sum", "one_hot", seed)
            self.evaluate(10, False, [0, 0], [2, 2])
            self.evaluate(20, False, [0, 0], [1, loss])
        picture = self.figure("accuracy_over_steps", self.experiment, length=3)
        self.assertEqual([list(one.y) for one in picture.panels[0].series], [[2, 1], [2], [2]])
        self.assertIn("1 evaluation has a loss that is not finite, which is left out.", picture.caption)
        self.assertNotIn("not finite", self.figure("accuracy_over_steps", self.experiment, length=2).caption)
        # A mean over length 2 alone would look better.
        mean = self.figure("accuracy_over_epochs", self.experiment)
        self.assertEqual([list(one.x) for one in mean.panels[0].series], [[10, 20], [10], [10]])
        self.assertIn("1 evaluation has a loss that is not finite", mean.caption)

    def test_length_without_a_finite_loss_leaves_the_others(self):
        self.add_trial("cumulative_sum", "sin_cos", 0)
        for step in (10, 20):
            self.evaluate(step, False, [0, 0], [1 / step, math.inf])
        found = figures.heat_maps(self.experiment, None)
        self.assertEqual(found.steps, [10, 20])
        self.assertEqual(found.maps[0].lengths, [(2, True)])
        # Nor do values at the end that are none hide what was before.
        self.evaluate(30, False, [0, 0], [math.nan, math.nan])
        (line,) = self.figure("accuracy_over_steps", self.experiment, length=2).panels[0].series
        self.assertEqual(line.x, [10, 20])

    def test_without_stored_examples_there_are_steps(self):
        self.add_trial("decimal_addition", "rope", 0)
        self.evaluate(10, False, [0.5, 0])
        picture = self.figure("accuracy_over_epochs", self.experiment)
        self.assertEqual((list(picture.panels[0].series[0].x), picture.x.label), ([10], "training step"))


class LossFigureTest(FigureCase):
    def test_seeds_are_averaged_over_common_steps(self):
        experiment = plotted(trials=[make_trial("none"), make_trial("none", seed=1)])
        add_curve(experiment, experiment.trials[0], [2, 1, 0.5, 0.25])
        add_curve(experiment, experiment.trials[1], [2, 0.5])
        picture = self.figure("loss", experiment)
        (line,) = picture.panels[0].series
        self.assertEqual((line.x, line.y), ([100, 200], [2, 0.75]))
        self.assertEqual((picture.y.scale, picture.y.label), ("linear", "cross-entropy, nats"))

    def test_losses_over_decades_get_a_logarithmic_axis(self):
        experiment = plotted(trials=[make_trial("none")])
        add_curve(experiment, experiment.trials[0], [2, 0.1, 0.0001, 0])
        picture = self.figure("loss", experiment)
        self.assertEqual(picture.y.scale, "log10")
        lowest = picture.y.range[0]
        self.assertGreater(lowest, 0)
        for value in (*picture.panels[0].series[0].y, *picture.panels[0].series[0].low):
            self.assertGreaterEqual(value, lowest)

    def test_smoothing_keeps_the_mean(self):
        experiment = plotted(trials=[make_trial("none")])
        add_curve(experiment, experiment.trials[0], [1.5 if i % 2 == 0 else 0.5 for i in range(100)])
        picture = self.figure("loss", experiment)
        (line,) = picture.panels[0].series
        self.assertEqual(len(line.x), 100)
        self.assertEqual(line.y[0], 1.5)  # nothing before it
        self.assertAlmostEqual(line.y[50], 1, delta=0.5 / 11 + 1e-9)  # 11 points: one more of one kind
        self.assertIn("Running mean over up to 11 recorded points", picture.caption)

    def test_a_running_mean_is_over_an_odd_number(self):
        experiment = plotted(trials=[make_trial("none")])
        add_curve(experiment, experiment.trials[0], [0, 0, 0, 0, 10, 0, 0, 0, 0])
        picture = self.figure("loss", experiment, smooth=4)
        self.assertEqual(max(picture.panels[0].series[0].y), 2)
        self.assertIn("Running mean over up to 5 recorded points", picture.caption)
        self.assertIn("smooth: got -1, expected a whole number from 1", self.message("loss", experiment, smooth=-1))

    def test_losses_of_several_kinds_have_a_common_axis(self):
        experiment = plotted(trials=[make_trial("none"), make_trial("one_hot", task="cumulative_sum")])
        for trial in experiment.trials:
            add_curve(experiment, trial, [2, 1])
        self.assertEqual(self.figure("loss", experiment).y.label, "loss")
        experiment.trials.pop(0)
        self.assertEqual(self.figure("loss", experiment).y.label, "mean squared error")

    def test_single_trials_keep_a_sudden_transition(self):
        losses = [2.0] * 50 + [0.01] * 50
        experiment = plotted(trials=[make_trial("none"), make_trial("none", seed=1)])
        for trial in experiment.trials:
            add_curve(experiment, trial, losses)
        picture = self.figure("loss", experiment, seeds="all")
        self.assertEqual(len(picture.panels[0].series), 2)
        for line in picture.panels[0].series:
            numpy.testing.assert_array_equal(line.y, numpy.float32(losses))
        self.assertIn("one line per trial", picture.caption)
        smoothed = self.figure("loss", experiment, seeds="all", smooth=11).panels[0].series[0].y
        self.assertGreater(len([y for y in smoothed if 0.02 < y < 1.9]), 5)

    def test_loss_is_the_mean_since_the_previous_point(self):
        experiment = plotted(trials=[make_trial("none")])
        add_curve(experiment, experiment.trials[0], [0.0025, 3])
        self.assertEqual(self.figure("loss", experiment).panels[0].series[0].y, [numpy.float32(0.0025), 3])
        experiment.curves[0].points.mean_losses.extend([2, 1])
        self.assertEqual(self.figure("loss", experiment).panels[0].series[0].y, [2, 1])

    def test_loss_chooses_the_rate_without_evaluations(self):
        experiment = plotted(trials=[make_trial("none", rate=0.1), make_trial("none", rate=0.01)])
        add_curve(experiment, experiment.trials[0], [2, 1])
        add_curve(experiment, experiment.trials[1], [2, 0.5])
        self.assertEqual(self.figure("loss", experiment).panels[0].series[0].y, [2, 0.5])
        experiment.curves.clear()
        self.assertIn("training.report_every_steps", self.message("loss", experiment))

    def test_training_accuracy_uses_the_losses_rate(self):
        experiment = plotted(trials=[make_trial("rope", rate=0.1), make_trial("rope", rate=0.01)])
        add_curve(experiment, experiment.trials[0], [0.1, 0.1], [1, 1])
        add_curve(experiment, experiment.trials[1], [0.01, 0.01], [0.25, 0.5])
        picture = self.figure("loss", experiment, metric="accuracy")
        self.assertEqual((picture.title, picture.y.ticks), ("Accuracy in training: e-1", "percent"))
        self.assertEqual(picture.panels[0].series[0].y, [0.25, 0.5])
        self.assertEqual(
            self.message("loss", experiment, metric="digits_accuracy"),
            '--metric: training does not record "digits_accuracy"; there are loss, accuracy',
        )


class LossOverTimeTest(FigureCase):
    def test_points_stand_between_the_evaluations(self):
        experiment = plotted(trials=[make_trial("none"), make_trial("none", seed=1)])
        for trial, seconds in zip(experiment.trials, (10, 30)):
            add_curve(experiment, trial, [4, 3, 2, 1])
            add_interval(experiment, trial, 200, seconds, 0.5)
            add_interval(experiment, trial, 300, 2 * seconds, 0.5)
        picture = self.figure("loss_over_time", experiment)
        (line,) = picture.panels[0].series
        # Step 400 is after the last evaluation.
        self.assertEqual((line.x, line.y), ([10, 20, 40], [4, 3, 2]))
        self.assertEqual(picture.x.label, "training time (wall clock, seconds)")
        each = self.figure("loss_over_time", experiment, seeds="all").panels[0].series
        self.assertEqual([one.x for one in each], [[5, 10, 20], [15, 30, 60]])

    def test_names_what_is_missing(self):
        experiment = plotted(trials=[make_trial("none")])
        self.assertIn("training.report_every_steps", self.message("loss_over_time", experiment))
        add_curve(experiment, experiment.trials[0], [2, 1])
        self.assertIn("evaluation.every_steps", self.message("loss_over_time", experiment))
        # A resumed attempt that trained no step does not know it.
        add_interval(experiment, experiment.trials[0], 100, 0, 0.5)
        self.assertIn("evaluation.every_steps", self.message("loss_over_time", experiment))


class AccuracyOverTimeTest(FigureCase):
    def test_means_of_seeds_stand_at_the_mean_time(self):
        experiment = plotted(trials=[make_trial("none"), make_trial("none", seed=1)])
        add_interval(experiment, experiment.trials[0], 10, 1, 0.2)
        add_interval(experiment, experiment.trials[0], 20, 2, 0.4)
        add_interval(experiment, experiment.trials[1], 10, 3, 0.6)
        add_interval(experiment, experiment.trials[1], 20, 4, 0.8)
        picture = self.figure("accuracy_over_time", experiment)
        (line,) = picture.panels[0].series
        self.assertEqual(line.x, [2, 3])
        self.assertAlmostEqual(line.y[0], 0.4)
        self.assertAlmostEqual(line.high[1], 0.8)
        self.assertEqual(picture.x.label, "training time (wall clock, seconds)")
        self.assertIn("Each member of a pack counts the seconds of the whole pack.", picture.caption)
        self.assertNotIn("sequences", picture.caption)
        for one in experiment.all_evaluations:
            one.accuracies.sequences = 50
        self.assertIn("Each evaluation has 50 sequences of a length.", self.figure("accuracy_over_time", experiment).caption)

    def test_unknown_times_are_left_out(self):
        experiment = plotted(trials=[make_trial("none"), make_trial("none", task="decimal_addition")])
        for trial in experiment.trials:
            for step, seconds in ((100, 10), (200, 0), (300, 30)):
                add_interval(experiment, trial, step, seconds, 0.5)
        picture = self.figure("accuracy_over_time", experiment)
        self.assertEqual([list(panel.series[0].x) for panel in picture.panels], [[10, 30]] * 2)
        self.assertEqual(picture.y.label, "accuracy on lengths not seen", "of tokens and of whole answers")

    def test_trained_lengths_are_not_called_unseen(self):
        experiment = plotted(trials=[make_trial("none"), make_trial("rope")])
        for trial in experiment.trials:
            add_interval(experiment, trial, 100, 10, 0.5)
        experiment.trials[1].specification.training.lengths.max = 500
        self.assertEqual(
            self.figure("accuracy_over_time", experiment).y.label, "token accuracy on lengths above 2"
        )
        experiment.trials[0].specification.evaluation.seen_up_to = 1
        self.assertEqual(
            self.figure("accuracy_over_time", experiment).y.label,
            "token accuracy on lengths that do not count as seen",
        )

    def test_long_times_are_in_hours(self):
        experiment = plotted(trials=[make_trial("none")])
        add_interval(experiment, experiment.trials[0], 10, 36_000, 0.2)
        picture = self.figure("accuracy_over_time", experiment)
        self.assertEqual(picture.panels[0].series[0].x, [10])
        self.assertEqual(picture.x.label, "training time (wall clock, hours)")

    def test_names_the_field_that_records_it(self):
        experiment = plotted()
        add(experiment, make_trial("none"), [1, 1, 1])
        self.assertIn(
            "evaluation.every_steps in its specification records them", self.message("accuracy_over_time", experiment)
        )
        add_interval(experiment, experiment.trials[0], 10, 0, 0.2)
        self.assertIn("how long training", self.message("accuracy_over_time", experiment))
        for one in experiment.all_evaluations:
            one.accuracies.ClearField("unseen_accuracy")
        self.assertIn("seen_up_to", self.message("accuracy_over_time", experiment))


if __name__ == "__main__":
    unittest.main()
