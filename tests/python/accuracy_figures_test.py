"""Scores of trained models: by length, of every trial, of all seeds."""
import unittest

import served
from figure_fixture import FigureCase, MetricsCase, add, addition, as_served, evaluation, make_trial, plotted, setUpModule
from lengthwise import plots
from lengthwise._proto import event_pb2
from lengthwise.plots.data import TrialFilter, keep


class AccuracyByLengthTest(FigureCase):
    def shade(self, figure="accuracy_by_length", **lengths):
        """The shaded part and its label, for a trial with these lengths."""
        experiment = plotted()
        trial = make_trial("sin_cos")
        evaluated = lengths.get("evaluated", range(1, 7))
        trained = trial.specification.training.lengths
        trained.min, trained.max, trial.specification.evaluation.seen_up_to = lengths["trained"] + (lengths["seen_up_to"],)
        experiment.trials.append(trial)
        experiment.finals.append(evaluation(trial, evaluated, [1.0] * len(evaluated)))
        served.set_trained(trial)
        if "ranges" in lengths:
            del trial.trained_lengths[:]
            for first, last in lengths["ranges"]:
                trial.trained_lengths.add(min=first, max=last)
        picture = plots.describe(figure, [experiment])
        return picture.panels[0].shaded, picture.shaded_label

    def test_shade_ends_where_tables_do(self):
        self.assertEqual(self.shade(trained=(1, 4), seen_up_to=4), ((1, 4), "seen in training: lengths 1 to 4"))
        # Tables count lengths up to seen_up_to as seen.
        counted = "counted as seen: lengths 1 to 4 (trained on "
        for figure in ("accuracy_by_length", "accuracy_of_trials"):
            for trained, seen_up_to, text in (((3, 4), 4, "3 to 4)"), ((4, 4), 4, "4)"), ((1, 8), 4, "1 to 8)")):
                shown = self.shade(figure, trained=trained, seen_up_to=seen_up_to)
                self.assertEqual(shown, ((1, 4), counted + text))
        # Nothing is evaluated below the lengths of training.
        above = self.shade(trained=(3, 4), seen_up_to=4, evaluated=[3, 4, 6])
        self.assertEqual(above, ((3, 4), "seen in training: lengths 3 to 4"))
        # The file ends before training.lengths.
        in_file = self.shade(trained=(1, 7), seen_up_to=4, ranges=[(1, 4)])
        self.assertEqual(in_file, ((1, 4), "seen in training: lengths 1 to 4"))
        # It has no examples of some evaluated lengths.
        in_file = self.shade(trained=(1, 4), seen_up_to=4, ranges=[(3, 4)])
        self.assertEqual(in_file, ((1, 4), counted + "3 to 4)"))
        in_file = self.shade(trained=(1, 4), seen_up_to=4, ranges=[(1, 1), (3, 4)])
        self.assertEqual(in_file, ((1, 4), counted + "some of 1 to 4)"))

    def test_trials_that_were_trained_on_other_lengths_share_a_shade(self):
        experiment = plotted()
        for encoding, longest in (("none", 2), ("rope", 8)):
            trial = make_trial(encoding)
            trial.specification.training.lengths.max = longest
            add(experiment, trial, [1.0, 1.0, 0.2])
        picture = self.figure("accuracy_by_length", experiment)
        self.assertEqual(picture.panels[0].shaded, (1, 2))
        self.assertEqual(picture.shaded_label, "counted as seen: lengths 1 to 2 (trained on different lengths)")
        # There is no one range of seen lengths.
        trial.specification.evaluation.seen_up_to = 8
        self.assertIsNone(self.figure("accuracy_by_length", experiment).panels[0].shaded)

    def test_band_and_shade_and_guess_are_drawn(self):
        experiment = plotted()
        add(experiment, make_trial("sin_cos"), [1.0, 1.0, 0.2])
        add(experiment, make_trial("sin_cos", seed=1), [0.8, 0.5, 0.4])
        figure = plots.draw("accuracy_by_length", as_served([experiment]))
        (axes,) = figure.axes
        (band,) = axes.collections
        vertices = band.get_paths()[0].vertices
        for x, low, high in [(1, 0.8, 1.0), (2, 0.5, 1.0), (3, 0.2, 0.4)]:
            of_x = vertices[vertices[:, 0] == x][:, 1]
            self.assertEqual((of_x.min(), of_x.max()), (low, high))
        (shade,) = axes.patches
        self.assertEqual((shade.get_x(), shade.get_x() + shade.get_width()), (1, 2))
        guesses = [line for line in axes.get_lines() if str(line.get_label()).startswith("_random guess")]
        self.assertEqual([list(line.get_ydata()) for line in guesses], [[0.2, 0.2]])

    def test_unknown_guess_is_not_drawn(self):
        experiment = plotted()
        trial = make_trial("none")
        trial.specification.task.parameters["vocabulary"].number_value = 7
        add(experiment, trial, [1, 1, 1])
        self.assertEqual(self.figure("accuracy_by_length", experiment).panels[0].references, [])

    def test_missing_evaluations_are_reported(self):
        experiment = plotted(trials=[make_trial("none")])
        show = "`lengthwise show e-1`, with the same --server or --data_dir,"
        self.assertIn(
            f"no trial of e-1 has been evaluated in full yet; that is done at the end of training ({show} shows how far",
            self.message("accuracy_by_length", experiment),
        )
        experiment.trials[0].state = event_pb2.FAILED
        self.assertIn(f"no trial of e-1 succeeded; {show} says why", self.message("accuracy_by_length", experiment))
        add(experiment, make_trial("none", seed=1), [1, 1, 1])
        self.assertIn("1 of 2 trials has no final evaluation.", self.figure("accuracy_by_length", experiment).caption)

    def test_caption_has_steps_and_sequences(self):
        experiment = plotted()
        for seed in (0, 1):
            add(experiment, make_trial("none", seed=seed), [1, 1, 0.5])
            experiment.trials[-1].outcome.training_steps = 4000
        self.assertTrue(self.figure("accuracy_by_length", experiment).caption.startswith("Trials of 4,000 steps. Mean over"))
        experiment.finals[0].accuracies.sequence_counts.extend([5, 100, 100])
        experiment.finals[1].accuracies.sequences = 100
        self.assertIn("Each trial's points are of 5 to 100 sequences.", self.figure("accuracy_by_length", experiment).caption)

    def test_best_seed_is_drawn_in_front(self):
        experiment = plotted()
        add(experiment, make_trial("rope", seed=0), [1, 1, 0.3])
        add(experiment, make_trial("rope", seed=1), [0.5, 0.5, 0.9])
        seen = self.figure("accuracy_by_length", experiment, seeds="best")
        self.assertEqual(seen.panels[0].series[-1].y, [1, 1, 0.3])
        self.assertIn("the one with the highest mean accuracy on lengths seen in training", seen.caption)
        picture = self.figure("accuracy_by_length", experiment, seeds="best", select="unseen")
        first, second, best = picture.panels[0].series
        self.assertEqual([first.faint, second.faint, best.faint], [True, True, False])
        self.assertEqual([first.y, second.y, best.y], [[1, 1, 0.3], [0.5, 0.5, 0.9], [0.5, 0.5, 0.9]])
        self.assertEqual([first.name, best.name], ["", "RoPE"])
        self.assertIn("of 2 seeds the one with the highest mean accuracy on lengths not seen", picture.caption)
        self.assertNotIn("Mean over", picture.caption)
        of_all = self.figure("accuracy_by_length", experiment, seeds="all")
        self.assertEqual(of_all.panels[0].series[-1].y, [0.75, 0.75, 0.6])
        self.assertEqual(len(of_all.panels[0].series), 3)
        self.assertIn("Thin lines: all seeds.", of_all.band_caption)

    def test_tasks_of_several_kinds_have_a_common_axis(self):
        experiment = plotted()
        add(experiment, make_trial("rope"), [1, 1, 0.5])
        add(experiment, make_trial("rope", task="decimal_addition"), [1, 1, 0.5])
        picture = self.figure("accuracy_by_length", experiment)
        self.assertEqual((picture.x.label, picture.y.label), ("input length", "accuracy"))
        self.assertEqual(picture.shaded_label, "seen in training: lengths 1 to 2")


class AccuracyByLengthMetricTest(MetricsCase):
    def test_regression_shows_the_best_rates_median(self):
        for seed in range(3):
            self.add_trial("cumulative_sum", "one_hot", seed, 0.1)
            self.evaluate(9, True, [1, 0], [0, 2], rounding_accuracy=[1, 0.25 * seed])
            self.add_trial("cumulative_sum", "one_hot", seed, 0.01)
            self.evaluate(9, True, [1, 1], [0, 9], rounding_accuracy=[1, 1])
        picture = self.figure("accuracy_by_length", self.experiment, metric="rounding_accuracy", select="unseen")
        self.assertEqual(picture.title, "Rounding accuracy by scale of the numbers: e-1")
        self.assertEqual((picture.y.label, picture.y.ticks), ("rounding accuracy", "percent"))
        self.assertEqual(picture.x.range, (1.5, 3.5), "no scale is 0, and each is a single point")
        self.assertEqual(picture.panels[0].shaded, (0.5, 2.5))
        series = picture.panels[0].series[0]
        self.assertEqual(series.y, [1, 0.25])
        self.assertAlmostEqual(series.low[1], 0.05, msg="the 10th percentile of 0, 0.25 and 0.5")
        self.assertIn("Median over 3 seeds.", picture.caption)
        self.assertIn("the lowest mean error", picture.caption)
        self.assertEqual(picture.shaded_label, "seen in training: scales 1 to 2")
        closeness = self.figure("accuracy_by_length", self.experiment, metric="accuracy", select="unseen")
        self.assertEqual(closeness.y.label, "accuracy by closeness")
        self.assertEqual(closeness.panels[0].series[0].y, [1, 0])

    def test_error_of_a_task_with_accuracies_is_a_mean(self):
        self.add_trial("decimal_addition", "rope", 0)
        self.evaluate(9, True, [1, 0], [0.5, 1], digits_accuracy=[1, 0.5])
        self.add_trial("decimal_addition", "rope", 1)
        self.evaluate(9, True, [1, 0], [1.5, 3], digits_accuracy=[1, 0.75])
        loss = self.figure("accuracy_by_length", self.experiment, metric="loss")
        self.assertEqual(loss.title, "Cross-entropy by number of digits: e-1")
        self.assertEqual(loss.y.ticks, "numbers")
        self.assertEqual(loss.panels[0].series[0].y, [1, 2])
        digits = self.figure("accuracy_by_length", self.experiment, metric="digits_accuracy")
        self.assertEqual(digits.panels[0].series[0].y, [1, 0.625])

    def test_percentage_errors_are_in_per_cent(self):
        self.add_trial("cumulative_sum", "one_hot", 0)
        self.evaluate(9, True, [1, 0], [0, 2], mean_absolute_percentage_error=[0.25, 0.5])
        picture = self.figure("accuracy_by_length", self.experiment, metric="mean_absolute_percentage_error")
        self.assertEqual((picture.y.label, picture.y.ticks), ("mean absolute percentage error", "percent"))

    def test_unknown_metric_lists_the_known_ones(self):
        self.add_trial("decimal_addition", "rope", 0)
        self.evaluate(9, True, [1, 0], [0, 1], digits_accuracy=[1, 0.5])
        self.assertEqual(
            self.message("accuracy_by_length", self.experiment, metric="digit_accuracy"),
            '--metric: no evaluation of e-1 has "digit_accuracy"; there are accuracy, loss, digits_accuracy',
        )
        self.experiment.finals.clear()
        self.assertIn(
            "no trial of e-1 has been evaluated in full yet",
            self.message("accuracy_by_length", self.experiment, metric="digits_accuracy"),
        )

    def test_trials_that_are_left_out_have_no_metrics(self):
        self.add_trial("decimal_addition", "rope", 0)
        self.evaluate(9, True, [1, 0], [0, 1])
        self.add_trial("decimal_addition", "alibi", 0)
        self.evaluate(9, True, [1, 0], [0, 1], digits_accuracy=[1, 0.5])
        chosen = self.experiment.copy()
        keep([chosen], TrialFilter(encodings=["rope"]))
        self.assertIn("there are accuracy, loss", self.message("accuracy_by_length", chosen, metric="digits_accuracy"))
        self.assertEqual(len(self.experiment.evaluations()), 2, "what was read stays for the next figure")

    def test_accuracies_and_errors_do_not_share_a_picture(self):
        self.add_trial("decimal_addition", "rope", 0)
        self.evaluate(9, True, [1, 0], [0, 1])
        self.add_trial("cumulative_sum", "one_hot", 0)
        self.evaluate(9, True, [1, 0], [0, 1])
        self.assertIn("plot them one by one", self.message("accuracy_by_length", self.experiment))


class AccuracyOfTrialsTest(FigureCase):
    def test_has_a_line_a_trial_and_the_seeds_spread(self):
        experiment = plotted()
        # For the unseen length: means 0.9 and 0.3 by weight seed, 0.1 and 0.2 around them by data
        # seed.
        add(experiment, addition(4, 0), [1, 1, 0.8])
        add(experiment, addition(4, 1), [1, 1, 1.0])
        add(experiment, addition(7, 0), [1, 1, 0.1])
        add(experiment, addition(7, 1), [1, 1, 0.5])
        picture = self.figure("accuracy_of_trials", experiment, select="unseen")
        self.assertEqual(picture.title, "Every trial's exact match by number of digits: e-1")
        self.assertEqual(picture.y.label, "exact match")
        by_length = self.figure("accuracy_by_length", experiment)
        self.assertEqual(by_length.shaded_label, "seen in training: 1 to 2 digits")
        (panel,) = picture.panels
        self.assertEqual(len(panel.series), 5)
        self.assertTrue(all(len(series.x) == 3 for series in panel.series))
        faint = sorted(series.name for series in panel.series if series.faint)
        self.assertEqual(faint, ["weight seed 4"] * 2 + ["weight seed 7"] * 2)
        (best,) = [series for series in panel.series if not series.faint]
        self.assertEqual((best.name, best.y[2]), ("the best", 1.0))
        # Means 0.9 and 0.3, and 0.45 and 0.75; the rest is 0.05 everywhere: 4 * 0.05^2 = 0.01 explains 0.01 / 2 of the
        # variances 0.18 and 0.045.
        self.assertIn("FIRE: 41.8 points between weight seeds, 20.0 points between data seeds", picture.caption)

    def test_effects_of_data_seeds_do_not_hide_those_of_weight_seeds(self):
        experiment = plotted()
        for weight_seed, data_seed, unseen in [(0, 0, 0.1), (0, 1, 0.5), (1, 0, 0.2), (1, 1, 0.6)]:
            add(experiment, addition(weight_seed, data_seed), [1, 1, unseen])
        caption = self.figure("accuracy_of_trials", experiment).caption
        self.assertIn("7.1 points between weight seeds, 28.3 points between data seeds", caption)
        experiment.trials.pop()
        self.assertNotIn("between", self.figure("accuracy_of_trials", experiment).caption)

    def test_many_weight_seeds_look_different(self):
        experiment = plotted()
        for weight_seed in range(10):
            for data_seed in range(2):
                add(experiment, addition(weight_seed, data_seed), [1, 1, weight_seed / 10])
        (panel,) = self.figure("accuracy_of_trials", experiment).panels
        styles = {one.name: (one.style.hex_color, one.style.dashes) for one in panel.series}
        self.assertEqual(len(styles), 11)
        self.assertEqual(len({*styles.values()}), 11)

    def test_regression_shows_losses(self):
        experiment = plotted()
        for seed, loss in enumerate((3, 2)):
            trial = make_trial("one_hot", seed=seed, task="cumulative_sum")
            experiment.trials.append(trial)
            experiment.finals.append(evaluation(trial, [1, 3], [0, 0], losses=[1, loss]))
        picture = self.figure("accuracy_of_trials", experiment, select="unseen")
        self.assertEqual(picture.y.label, "mean squared error")
        (best,) = [one for one in picture.panels[0].series if not one.faint]
        self.assertEqual(list(best.y), [1, 2])
        self.assertIn("The best one has the lowest mean", picture.caption)

    def test_paired_seeds_share_a_colour(self):
        experiment = plotted()
        add(experiment, addition(0, 0), [1, 1, 0.8])
        add(experiment, addition(1, 0), [1, 1, 0.2])
        picture = self.figure("accuracy_of_trials", experiment)
        self.assertNotIn("weight", picture.caption)
        self.assertEqual(len({series.style for series in picture.panels[0].series if series.faint}), 1)
        self.message("accuracy_of_trials", plotted())

    def test_one_data_seed_has_no_spread(self):
        experiment = plotted()
        for seed in range(3):  # `seeds: 0..2`
            add(experiment, addition(seed, seed), [1, 1, 0.3 * seed])
        picture = self.figure("accuracy_of_trials", experiment)
        self.assertNotIn("between weight seeds", picture.caption)
        self.assertEqual({series.name for series in picture.panels[0].series}, {"a trial", "the best"})


class SeedDistributionTest(FigureCase):
    def test_counts_seeds_above_a_threshold(self):
        experiment = plotted()
        for seed, unseen in enumerate([0.95, 0.97, 0.2, 0.25, 0.9]):
            add(experiment, make_trial("none", seed=seed), [1, 1, unseen])
        add(experiment, make_trial("rope"), [1, 1, 0.5])
        picture = plots.describe("seed_distribution", [experiment], plots.Options())
        first, second = picture.panels[0].series
        self.assertEqual(first.y, [0.95, 0.97, 0.2, 0.25, 0.9])
        self.assertEqual(len({*first.x}), 5)
        self.assertEqual([round(x) for x in (*first.x, *second.x)], [0] * 5 + [1])
        figure = plots.draw("seed_distribution", [experiment])
        # Wilson 1927 with z = 1.96: (2 / 5 + z^2 / 10 -+ z sqrt(0.4 * 0.6 / 5 + z^2 / 100)) / (1 + z^2 / 5).
        labels = [tick.get_text() for tick in figure.axes[0].get_xticklabels()]
        self.assertEqual(labels, ["2 of 5\n12 to 77 %", "0 of 1\n0 to 79 %"])
        half = plots.draw("seed_distribution", [experiment], plots.Options(threshold=0.5))
        self.assertEqual(half.axes[0].get_xticklabels()[0].get_text().split("\n")[0], "3 of 5")
        self.assertIn("how many are above 50 %", plots.describe("seed_distribution", [experiment], plots.Options(threshold=0.5)).caption)

    def test_losses_pass_below_the_threshold(self):
        experiment = plotted()
        for seed, loss in enumerate((3, 0.5)):
            trial = make_trial("one_hot", seed=seed, task="cumulative_sum")
            experiment.trials.append(trial)
            experiment.finals.append(evaluation(trial, [1, 3], [0, 0], losses=[1, loss]))
        figure = plots.draw("seed_distribution", [experiment], plots.Options(threshold=1.0))
        self.assertTrue(figure.axes[0].get_xticklabels()[0].get_text().startswith("1 of 2"))


if __name__ == "__main__":
    unittest.main()
