"""From API messages to figures: the points of lines, titles and captions, and errors for figures without data."""
import math
import pathlib
import re
import unittest
import unittest.mock

import numpy
import served
import service
from lengthwise import plots
from lengthwise._proto import event_pb2, experiment_service_pb2
from lengthwise.connection import Connection, Settings
from lengthwise.errors import LengthwiseError, UsageError
from lengthwise.events import AttentionMap, Projection
from lengthwise.plots import catalogue, drawing, numbers
from lengthwise.plots.data import PlottedExperiment, TrialFilter, keep
from lengthwise.plots.series_style import encoding_style

CATALOGUE = catalogue.Catalogue()


def setUpModule():
    """Reads names and facts from a real server."""
    global CATALOGUE
    server = service.Server()
    connection = Connection(Settings(server=server.address), timeout=service.DEADLINE)
    CATALOGUE = catalogue.fetch(connection)
    connection.close()
    server.kill()


def as_served(experiments):
    """The experiments with what a server adds to trials."""
    for experiment in experiments:
        for trial in experiment.trials:
            served.set_trained(trial, CATALOGUE.own_axis(trial.specification.task) is not None)
    return experiments


def plotted(name="e-1", trials=()):
    return PlottedExperiment(name, list(trials), catalogue=CATALOGUE, finals=[], all_evaluations=[], curves=[], recorded=[])


def make_trial(encoding, randomized=False, rate=0.1, seed=0, experiment="e-1", task="bucket_sort"):
    """Makes a trial of bucket sort, trained on lengths 1 to 2."""
    trial = experiment_service_pb2.Trial()
    specification = trial.specification
    specification.task.name = specification.task.label = task
    specification.network.name = "encoder"
    specification.encoding.name = encoding
    specification.encoding.label = f"randomized_{encoding}" if randomized else encoding
    specification.encoding.parameters["randomized"].bool_value = randomized
    specification.learning_rate = rate
    specification.weight_seed = seed
    specification.training.lengths.min, specification.training.lengths.max = 1, 2
    specification.evaluation.seen_up_to = 2
    trial.name = f"experiments/{experiment}/trials/{task}-{specification.encoding.label}-lr{rate}-seed{seed}"
    return trial


def evaluation(trial, lengths, accuracies, step=9, final=True, losses=(), **metrics):
    one = experiment_service_pb2.QueryLengthAccuraciesResponse.Evaluation(trial=trial.name, step=step)
    one.accuracies.final = final
    one.accuracies.lengths.extend(lengths)
    one.accuracies.accuracies.extend(accuracies)
    one.accuracies.losses.extend(losses)
    served.set_means(one.accuracies, trial.specification.evaluation.seen_up_to)
    for name, values in metrics.items():
        one.accuracies.metrics.add(name=name, values=values)
    return one


def add(experiment, trial, accuracies):
    """Adds a trial with final accuracies at the lengths 1, 2, 3, ..."""
    experiment.trials.append(trial)
    experiment.finals.append(evaluation(trial, range(1, len(accuracies) + 1), accuracies))


def add_interval(experiment, trial, step, seconds, unseen):
    one = evaluation(trial, [2, 4], [1, unseen], step=step, final=False)
    one.accuracies.training_seconds = seconds
    experiment.all_evaluations.append(one)


def add_curve(experiment, trial, losses, accuracies=(), every=100):
    curve = experiment_service_pb2.QueryLossCurvesResponse.Curve(trial=trial.name)
    curve.points.steps.extend(every * (i + 1) for i in range(len(losses)))
    curve.points.losses.extend(losses)
    curve.points.accuracies.extend(accuracies)
    experiment.curves.append(curve)


class FigureCase(unittest.TestCase):
    def figure(self, name, *experiments, **options):
        """Describes and draws a figure, and checks that the axes show the description."""
        picture = plots.describe(name, as_served(experiments), plots.Options(**options))
        self.check_drawn(picture, drawing.draw(picture))
        return picture

    def check_drawn(self, picture, figure):
        panels = [axes for axes in figure.axes if axes.get_label() != "<colorbar>"]
        self.assertEqual(len(panels), len(picture.panels))
        for axes, panel in zip(panels, picture.panels):
            self.assertEqual(axes.get_title().replace("\n", " "), panel.title)
            drawn = [
                (list(map(float, line.get_xdata())), list(map(float, line.get_ydata())))
                for line in axes.get_lines()
                if not str(line.get_label()).startswith("_random guess")
            ]
            for series in panel.series:
                self.assertIn((list(map(float, series.x)), list(map(float, series.y))), drawn)
            if panel.map is not None:
                numpy.testing.assert_array_equal(axes.images[0].get_array(), panel.map.values)

    def message(self, name, *experiments, **options):
        with self.assertRaises(LengthwiseError) as raised:
            plots.describe(name, as_served(experiments), plots.Options(**options))
        return str(raised.exception)


class AccuracyByLengthTest(FigureCase):
    def test_seeds_of_the_best_rate_are_averaged(self):
        experiment = plotted()
        # 0.001 is better on unseen lengths, 0.1 on seen ones.
        add(experiment, make_trial("sin_cos", rate=0.1), [1.0, 1.0, 0.2])
        add(experiment, make_trial("sin_cos", rate=0.001), [0.9, 0.8, 0.4])
        add(experiment, make_trial("sin_cos", rate=0.001, seed=1), [0.7, 0.6, 0.8])
        seen = self.figure("accuracy_by_length", experiment)
        self.assertEqual(seen.panels[0].series[0].y, [1.0, 1.0, 0.2])
        self.assertIn("rate with the highest mean accuracy on lengths seen in training", seen.caption)
        picture = self.figure("accuracy_by_length", experiment, select="unseen")
        (panel,) = picture.panels
        self.assertEqual(panel.title, "Bucket Sort")
        (line,) = panel.series
        self.assertEqual(line.name, "sin / cos")
        self.assertEqual(line.x, [1, 2, 3])
        self.assertAlmostEqual(line.y[2], 0.6)
        self.assertEqual((line.low[2], line.high[2]), (0.4, 0.8))
        self.assertEqual(panel.shaded, (1, 2))
        self.assertEqual(picture.shaded_label, "seen in training: lengths 1 to 2")
        self.assertEqual([reference.y for reference in panel.references], [0.2])  # five symbols
        self.assertIn("Mean over 2 seeds.", picture.caption)
        self.assertIn("learning rate with the highest mean accuracy on lengths not seen in training", picture.caption)
        add(experiment, make_trial("rope", rate=0.001), [0.9, 0.8, 0.4])
        self.assertIn("Mean over up to 2 seeds.", self.figure("accuracy_by_length", experiment, select="unseen").caption)
        for trial in experiment.trials:
            trial.specification.evaluation.select = "unseen"
        self.assertEqual(self.figure("accuracy_by_length", experiment).panels[0].series[0].y, line.y)
        self.assertEqual(self.figure("accuracy_by_length", experiment, select="seen").panels[0].series[0].y, [1.0, 1.0, 0.2])

    def test_lower_loss_and_then_lower_rate_decide_between_equal_accuracies(self):
        for losses, chosen in (([2, 1, 3], 0.01), ([1, 1, 1], 0.001)):
            experiment = plotted()
            for rate, loss, unseen in zip((0.1, 0.01, 0.001), losses, (0.1, 0.2, 0.3)):
                trial = make_trial("none", rate=rate)
                experiment.trials.append(trial)
                experiment.finals.append(evaluation(trial, [1, 3], [1, unseen], losses=[loss, 0]))
            (line,) = self.figure("accuracy_by_length", experiment).panels[0].series
            self.assertEqual(line.y[1], {0.01: 0.2, 0.001: 0.3}[chosen])

    def test_validation_chooses_where_there_is_one(self):
        experiment = plotted()
        for rate, seen, validated in ((0.1, 1.0, 0.4), (0.01, 0.5, 0.6)):
            trial = make_trial("none", rate=rate)
            trial.specification.evaluation.validation.lengths.append(1)
            add(experiment, trial, [seen, seen, rate])
            experiment.finals[-1].accuracies.validation_accuracy = validated
        picture = self.figure("accuracy_by_length", experiment)
        self.assertEqual(picture.panels[0].series[0].y[2], 0.01)
        self.assertIn("the highest mean accuracy on the validation sequences", picture.caption)

    def test_nothing_chooses_without_seen_lengths(self):
        experiment = plotted()
        for rate in (0.1, 0.01):
            trial = make_trial("none", rate=rate)
            experiment.trials.append(trial)
            experiment.finals.append(evaluation(trial, [3, 4], [rate, rate]))
        self.assertIn("evaluation.validation", self.message("accuracy_by_length", experiment))
        (line,) = self.figure("accuracy_by_length", experiment, select="unseen").panels[0].series
        self.assertEqual(line.y, [0.1, 0.1])
        experiment.trials.pop()
        self.figure("accuracy_by_length", experiment)  # there is no choice

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

    def test_randomized_encoding_is_dashed(self):
        experiment = plotted()
        for encoding, randomized in [("rope", False), ("alibi", False), ("rope", True)]:
            add(experiment, make_trial(encoding, randomized), [1, 1, 1])
        other = make_trial("rope", True)
        other.specification.encoding.label = "randomized_rope_max_position=4096"
        other.name = "experiments/e-1/trials/4096"
        add(experiment, other, [1, 1, 1])
        series = self.figure("accuracy_by_length", experiment).panels[0].series
        self.assertEqual(len(series), 4)
        self.assertEqual(series[0].style.hex_color, series[2].style.hex_color)
        self.assertEqual((series[0].style.dashes, series[2].style.dashes), (0, 1))
        self.assertNotEqual(series[0].style.hex_color, series[1].style.hex_color)
        self.assertEqual(series[3].name, "Randomized RoPE max_position=4096")
        for i in range(3):
            self.assertNotEqual(series[3].style.hex_color, series[i].style.hex_color)

    def test_encoding_has_one_colour_in_all_figures(self):
        looks = []
        for encodings in (["rope", "alibi"], ["sin_cos", "relative", "rope"]):
            experiment = plotted()
            for encoding in encodings:
                add(experiment, make_trial(encoding), [1, 1, 1])
            series = self.figure("accuracy_by_length", experiment).panels[0].series
            looks.append(next(one.style for one in series if one.name == "RoPE"))
        self.assertEqual(looks[0], looks[1])

    def test_networks_without_encodings_have_colours_and_markers_of_their_own(self):
        names = ["rnn", "lstm", "stack_rnn", "nondeterministic_stack_rnn", "tape_rnn"]
        experiment = plotted()
        add(experiment, make_trial("none"), [1, 1, 1])
        for name in names:
            trial = make_trial("none")
            trial.specification.network.name = trial.specification.network.label = name
            trial.name = f"experiments/e-1/trials/{name}"
            add(experiment, trial, [1, 1, 1])
        styles = [one.style for one in self.figure("accuracy_by_length", experiment).panels[0].series]
        self.assertEqual(styles[0], encoding_style("none"))
        self.assertEqual(styles[1:], [encoding_style(name) for name in names])
        self.assertEqual(len({(style.hex_color, style.marker) for style in styles}), 6)

    def test_encoding_of_one_of_several_experiments_has_its_colour(self):
        a, b = plotted("a-1"), plotted("b-1")
        add(a, make_trial("rope", experiment="a-1"), [1, 1, 1])
        add(b, make_trial("alibi", experiment="b-1"), [1, 1, 1])
        add(b, make_trial("rope", True, experiment="b-1"), [1, 1, 1])
        plain, _, randomized = (one.style for one in self.figure("accuracy_by_length", a, b).panels[0].series)
        self.assertEqual((plain.hex_color, randomized.hex_color), ("#009E73", "#009E73"))
        self.assertEqual((plain.dashes, randomized.dashes), (0, 1))

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

    def test_experiments_are_distinguished(self):
        a, b = plotted("a-1"), plotted("b-1")
        add(a, make_trial("none", experiment="a-1"), [1, 1, 1])
        add(b, make_trial("none", experiment="b-1"), [1, 1, 1])
        picture = self.figure("accuracy_by_length", a, b)
        (panel,) = picture.panels
        self.assertEqual([series.name for series in panel.series], ["a-1: None", "b-1: None"])
        self.assertNotEqual(panel.series[0].style, panel.series[1].style)
        self.assertEqual(picture.title, "Accuracy by length: a-1 and b-1")

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


    def test_formats_stand_in_one_panel(self):
        experiment = plotted()
        for task, encoding, unseen in [("reversed", "fire", 0.9), ("reversed", "none", 0.8), ("standard", "fire", 0.1)]:
            trial = make_trial(encoding, task="decimal_addition")
            trial.specification.task.label = task
            trial.name += task
            add(experiment, trial, [1, 1, unseen])
        picture = self.figure("accuracy_by_length", experiment, together=True)
        (panel,) = picture.panels
        self.assertEqual(panel.title, "reversed and standard")
        self.assertEqual([one.name for one in panel.series], ["reversed, FIRE", "reversed, None", "standard, FIRE"])
        self.assertEqual([one.y[2] for one in panel.series], [0.9, 0.8, 0.1])
        first, second, third = (one.style for one in panel.series)
        self.assertEqual(first.hex_color, third.hex_color)
        self.assertNotEqual(first.hex_color, second.hex_color)
        self.assertNotEqual(first.dashes, third.dashes)
        self.assertEqual(len(self.figure("accuracy_by_length", experiment).panels), 2)

    def test_no_two_lines_of_one_panel_look_alike(self):
        experiment = plotted()
        for task in ("reversed", "standard"):
            for randomized in (False, True):
                trial = make_trial("rope", randomized, task="decimal_addition")
                trial.specification.task.label = task
                trial.name += task
                add(experiment, trial, [1, 1, 0.5])
        (panel,) = self.figure("accuracy_by_length", experiment, together=True).panels
        self.assertEqual(len({str(one.style.line()) for one in panel.series}), 4)
        for number in range(28):
            trial = make_trial("rope", task="decimal_addition")
            trial.specification.task.label = f"task{number}"
            trial.name += f"task{number}"
            add(experiment, trial, [1, 1, 0.5])
        (panel,) = self.figure("accuracy_by_length", experiment, together=True).panels
        self.assertEqual(len({str(one.style.line()) for one in panel.series}), 32)

    def test_tasks_of_several_kinds_have_a_common_axis(self):
        experiment = plotted()
        add(experiment, make_trial("rope"), [1, 1, 0.5])
        add(experiment, make_trial("rope", task="decimal_addition"), [1, 1, 0.5])
        picture = self.figure("accuracy_by_length", experiment)
        self.assertEqual((picture.x.label, picture.y.label), ("input length", "accuracy"))
        self.assertEqual(picture.shaded_label, "seen in training: lengths 1 to 2")


class MetricsCase(FigureCase):
    def setUp(self):
        self.experiment = plotted()

    def add_trial(self, task, encoding, seed, rate=0.1):
        trial = make_trial(encoding, rate=rate, seed=seed, task=task)
        self.experiment.trials.append(trial)
        return trial

    def evaluate(self, step, final, accuracy, loss=(), **metrics):
        """Adds an evaluation of the latest trial at the lengths 2 and 3."""
        one = evaluation(self.experiment.trials[-1], [2, 3], accuracy, step, final, loss, **metrics)
        self.experiment.all_evaluations.append(one)
        if final:
            self.experiment.finals.append(one)


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


def addition(weight_seed, data_seed):
    trial = make_trial("fire", seed=weight_seed, task="decimal_addition")
    trial.specification.data_seed = data_seed
    trial.name += f"-data{data_seed}"
    return trial


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


class AnswerErrorsTest(FigureCase):
    def add_errors(self, experiment, trial, size, by_place, by_wrong_digits, with_carry, without_carry):
        experiment.recorded.append(
            event_pb2.Event(
                trial=trial.name,
                answer_errors=event_pb2.AnswerErrors(
                    length=size, answers=10, wrong_by_place=by_place, answers_by_wrong_digits=by_wrong_digits,
                    first_wrong_with_carry=with_carry, first_wrong_without_carry=without_carry,
                ),
            )
        )  # fmt: skip

    def test_show_the_longest_size_and_all_seeds(self):
        experiment = plotted()
        add(experiment, addition(0, 0), [1, 1, 0.8])
        add(experiment, addition(1, 0), [1, 1, 0.4])
        first, second = experiment.trials
        self.add_errors(experiment, first, 2, [9, 9], [0, 1, 9], 10, 0)
        self.add_errors(experiment, first, 3, [0, 1, 1], [8, 2], 1, 1)
        self.add_errors(experiment, second, 3, [2, 2, 4], [4, 4, 2], 5, 1)
        places = self.figure("error_places", experiment)
        self.assertEqual(places.title, "Where digits are wrong at 3 digits: e-1")
        (line,) = places.panels[0].series
        self.assertEqual((line.x[0], len(line.x)), (0, 3))
        self.assertAlmostEqual(line.y[0], 2 / 20)
        self.assertAlmostEqual(line.y[2], 5 / 20)
        self.assertIn("75 % (Decimal Addition, FIRE)", places.caption)
        (counts,) = self.figure("error_counts", experiment).panels[0].series
        self.assertEqual(list(counts.x), [1, 2])
        self.assertAlmostEqual(counts.y[0], 6 / 8)
        self.assertAlmostEqual(counts.y[1], 2 / 8)
        each = self.figure("error_places", experiment, seeds="all").panels[0].series
        self.assertEqual([one.faint for one in each], [True, True, False])
        self.assertEqual(list(each[1].y), [0.2, 0.2, 0.4])

    def test_show_a_size_that_all_trials_have(self):
        experiment = plotted()
        add(experiment, addition(0, 0), [1, 1, 0.8])
        add(experiment, addition(1, 0), [1, 1, 0.4])
        first, second = experiment.trials
        for trial, size in ((first, 1), (first, 3), (second, 1), (second, 2)):
            self.add_errors(experiment, trial, size, [1], [9, 1], 0, 1)
        self.assertIn("at 1 digit:", self.figure("error_places", experiment).title)
        del experiment.recorded[2]
        self.assertIn("have no number of digits in common", self.message("error_places", experiment))

    def test_right_answers_are_no_picture(self):
        experiment = plotted()
        add(experiment, addition(0, 0), [1, 1, 1])
        self.add_errors(experiment, experiment.trials[0], 3, [0, 0, 0], [10, 0, 0, 0], 0, 0)
        self.assertEqual(self.message("error_places", experiment), "no digit of any answer at 3 digits is wrong")

    def test_of_files_count_symbols_from_the_last(self):
        experiment = plotted()
        add(experiment, make_trial("fire", task="examples_text"), [1, 1, 0.8])
        self.add_errors(experiment, experiment.trials[0], 3, [0, 1], [8, 2], 0, 0)
        places = self.figure("error_places", experiment)
        self.assertEqual(places.title, "Where symbols are wrong at length 3: e-1")
        self.assertEqual(places.x.label, "place of the symbol, 0 for the last")
        # Answers of files may have other sizes than their length.
        self.assertEqual(list(places.panels[0].series[0].y), [0, 0.1])
        self.assertTrue(places.caption.endswith(" No answer is wrong at further places."), places.caption)
        counts = self.figure("error_counts", experiment)
        self.assertEqual((counts.title, counts.x.label), ("How many symbols are wrong at length 3: e-1", "wrong symbols"))
        self.assertEqual(
            self.message("error_places", experiment, length=7),
            "no answers at length 7 are recorded; there are those at length 3",
        )

    def test_of_sums_have_all_places(self):
        experiment = plotted()
        add(experiment, addition(0, 0), [1, 1, 0.8])
        self.add_errors(experiment, experiment.trials[0], 5, [1], [9, 1], 0, 1)
        (line,) = self.figure("error_places", experiment).panels[0].series
        self.assertEqual(list(line.y), [0.1, 0, 0, 0, 0])

    def test_are_of_the_size_that_is_asked_for(self):
        experiment = plotted()
        add(experiment, addition(0, 0), [1, 1, 0.8])
        self.add_errors(experiment, experiment.trials[0], 2, [9, 6], [0, 5, 5], 10, 0)
        self.add_errors(experiment, experiment.trials[0], 3, [0, 1, 1], [8, 2], 1, 1)
        places = self.figure("error_places", experiment, length=2)
        self.assertEqual(places.title, "Where digits are wrong at 2 digits: e-1")
        self.assertAlmostEqual(places.panels[0].series[0].y[1], 0.6)
        self.assertEqual(len(self.figure("error_counts", experiment, length=2).panels[0].series[0].x), 2)
        self.assertIn(
            "no answers at 7 digits are recorded; there are those at 2, 3 digits",
            self.message("error_counts", experiment, length=7),
        )

    def test_missing_errors_are_reported(self):
        experiment = plotted()
        add(experiment, addition(0, 0), [1, 1, 0.8])
        self.assertIn(
            "no trial of e-1 has recorded what is wrong with its answers", self.message("error_places", experiment)
        )


def attention_map(probabilities, tokens, length=1, input_number=0):
    return AttentionMap(
        length=length, input_number=input_number, sequence=0, tokens=numpy.array(tokens, numpy.int32),
        numbers=numpy.array([]), positions=numpy.arange(len(tokens)), probabilities=numpy.array(probabilities, numpy.float32),
    )  # fmt: skip


class AttentionFigureTest(FigureCase):
    # Two layers of two heads over an input token and an output place.
    MAP = attention_map(
        [[[[0.1, 0.9], [0.2, 0.8]], [[0.4, 0.6], [0.1, 0.9]]], [[[0.5, 0.5], [0.5, 0.5]], [[1.0, 0.0], [0.0, 1.0]]]], [3, 5]
    )

    def setUp(self):
        self.experiment = plotted()
        for seed in (0, 1):
            trial = make_trial("none", seed=seed)
            trial.specification.evaluation.attention_lengths.append(1)
            add(self.experiment, trial, [0.9, 1, 0.6] if seed == 0 else [1, 1, 0.3])

    def add_map(self, one):
        self.experiment.maps[self.experiment.trials[1].name] = [one]

    def values(self, picture, panel=0):
        return picture.panels[panel].map.values.ravel().tolist()

    def test_shows_the_best_trials_maximum_over_heads(self):
        self.experiment.maps[self.experiment.trials[0].name] = [attention_map(numpy.ones((1, 1, 2, 2)), [3, 5])]
        self.add_map(self.MAP)
        picture = self.figure("attention", self.experiment)
        self.assertEqual((len(picture.panels), picture.columns), (2, 2))
        numpy.testing.assert_allclose(self.values(picture), [0.4, 0.9, 0.2, 0.9])
        numpy.testing.assert_allclose(self.values(picture, 1), [1.0, 0.5, 0.5, 1.0])
        self.assertEqual(picture.panels[0].map.first_output, 1)
        self.assertEqual(picture.panels[1].title, "layer 2")
        self.assertEqual(picture.row_titles, ["None\nlength 1"])

    def test_one_head_is_no_maximum(self):
        self.add_map(attention_map(numpy.ones((2, 1, 2, 2)) / 2, [3, 5]))
        picture = self.figure("attention", self.experiment)
        self.assertEqual((picture.title, picture.map_label), ("Attention: e-1, Bucket Sort", "attention"))

    def test_many_rows_lie_side_by_side(self):
        trial = self.experiment.trials[1]
        for layers, count, columns in ((1, 2, 1), (1, 3, 2), (1, 6, 3), (1, 16, 6), (2, 4, 2), (2, 16, 6), (3, 16, 6)):
            maps = [attention_map(numpy.ones((layers, 1, 2, 2)) / 2, [3, 5], length=number) for number in range(1, count + 1)]
            self.experiment.maps[trial.name] = maps
            picture = plots.describe("attention", [self.experiment], plots.Options())
            self.assertEqual((len(picture.panels), picture.columns), (layers * count, columns))
            titles = [title for title in numbers.panel_names(picture) if title]
            self.assertEqual(len(set(titles)), layers * count, titles)
            width, height = drawing.draw(picture).get_size_inches()
            self.assertLess(height / width, 3)

    def test_shows_one_head_or_the_heads_of_one_layer(self):
        self.add_map(self.MAP)
        numpy.testing.assert_allclose(self.values(self.figure("attention", self.experiment, head=2)), [0.4, 0.6, 0.1, 0.9])
        heads = self.figure("attention", self.experiment, layer=1)
        self.assertEqual(heads.panels[0].title, "head 1")
        numpy.testing.assert_allclose(self.values(heads), [0.1, 0.9, 0.2, 0.8])
        one = self.figure("attention", self.experiment, layer=2, head=1)
        self.assertEqual(len(one.panels), 1)
        numpy.testing.assert_allclose(self.values(one), [0.5, 0.5, 0.5, 0.5])

    def test_long_maps_keep_the_largest_value_of_each_cell(self):
        values = numpy.zeros((1, 1, 301, 301))
        values[0, 0, 299, 7] = 0.75
        self.add_map(attention_map(values, [0] * 300 + [2], length=300))
        picture = self.figure("attention", self.experiment)
        heat = picture.panels[0].map
        self.assertEqual((heat.tokens_per_cell, heat.values.shape), (2, (151, 151)))
        self.assertEqual(heat.values[149, 3], 0.75)
        self.assertIn("the largest value of up to 2 x 2 tokens", picture.caption)

    def test_scaled_inputs_are_named_by_their_scale(self):
        trial = self.experiment.trials[1]
        inputs = [[2, -1, 0], [4, -2, 0], [1, 1, 0], [3, 3, 0]]
        for vector in inputs:
            trial.specification.evaluation.attention_inputs.add(numbers=vector)
        self.experiment.maps[trial.name] = [
            attention_map(numpy.ones((1, 1, 3, 3)) / 3, [-1] * 3, input_number=number + 1) for number in range(len(inputs))
        ]
        titles = [panel.title for panel in self.figure("attention", self.experiment).panels]
        self.assertEqual(
            titles,
            [f"None, {name}" for name in ("vector 1, scale 1", "vector 1, scale 2", "vector 2, scale 1", "vector 2, scale 3")],
        )
        del trial.specification.evaluation.attention_inputs[1:]
        trial.specification.evaluation.attention_inputs.add(numbers=[1, 2, 3])
        del self.experiment.maps[trial.name][2:]
        self.assertEqual(self.figure("attention", self.experiment).row_titles, ["None\ninput 1", "None\ninput 2"])

    def test_names_the_mistake(self):
        self.assertIn("has recorded attention yet", self.message("attention", self.experiment))
        self.add_map(self.MAP)
        self.assertIn("there is no layer 3: these networks have 2", self.message("attention", self.experiment, layer=3))
        self.assertIn("no head 9", self.message("attention", self.experiment, head=9))
        self.assertIn("no attention maps of length 7; recorded: 1", self.message("attention", self.experiment, length=7))
        self.assertIn("attention_sequences", self.message("attention", self.experiment, sequence=2))
        for trial in self.experiment.trials:
            del trial.specification.evaluation.attention_lengths[:]
        self.assertIn("evaluation.attention_lengths in its specification", self.message("attention", self.experiment))


class ProjectionFigureTest(FigureCase):
    def projection(self, length, sequences):
        values = numpy.arange(2 * 2 * sequences * length, dtype=numpy.float32).reshape(2, sequences, length, 2)
        return Projection(2, length, values, numpy.array([[0.5, 0.25], [0.75, 0.125]]))

    def experiment(self, projections):
        experiment = plotted()
        trial = make_trial("none")
        trial.specification.evaluation.projection.SetInParent()
        add(experiment, trial, [1, 1, 1])
        experiment.projected[trial.name] = projections
        return experiment

    def test_has_a_panel_a_depth(self):
        self.assertIn("recorded projections yet", self.message("projection", self.experiment([])))
        picture = self.figure("projection", self.experiment([self.projection(2, 3), self.projection(4, 1)]))
        self.assertEqual(
            [panel.title for panel in picture.panels], ["embedding (50 + 25 %)", "after block 1 (75 + 12 %)"]
        )
        other, fitted = picture.panels[1].series
        self.assertEqual((other.name, fitted.name), ("length 4", "length 2, on which the components were fitted"))
        self.assertEqual(fitted.style.hex_color, "#0072B2")
        # [depths, sequences, tokens, 2]: the second depth begins at 12.
        self.assertEqual((len(fitted.x), fitted.x[1], fitted.y[1]), (6, 14, 15))

    def test_draws_a_readable_number_of_sequences(self):
        picture = self.figure("projection", self.experiment([self.projection(150, 30)]))
        self.assertEqual(len(picture.panels[0].series[0].x), 1500)
        self.assertIn("At most 1500 tokens per length", picture.caption)

    def test_names_the_field_that_records_them(self):
        experiment = plotted()
        add(experiment, make_trial("none"), [1, 1, 1])
        self.assertIn("evaluation.projection in its specification", self.message("projection", experiment))


class OptionsTest(unittest.TestCase):
    def test_figures_accept_only_their_options(self):
        with self.assertRaisesRegex(LengthwiseError, "--layer is for the figure attention alone"):
            plots.describe("loss", [], plots.Options(layer=1))
        with self.assertRaisesRegex(LengthwiseError, 'unknown figure "atention"; did you mean "attention"?'):
            plots.describe("atention", [])

    def test_options_refuse_other_values(self):
        count, text = "a whole number from 1", "text"
        for name, value, expected in (
            ("seeds", "x", '"mean", "best" or "all"'), ("seeds", ["all"], '"mean", "best" or "all"'),
            ("layer", 0, count), ("layer", True, count), ("layer", 1.0, count), ("head", "1", count), ("length", 0, count),
            ("length", -1, count), ("sequence", None, count), ("smooth", 0, count), ("splits", 1, "True or False"),
            ("together", "yes", "True or False"), ("metric", None, text), ("people", 3, "the path of a file"),
        ):  # fmt: skip
            with self.assertRaisesRegex(UsageError, f"^{name}: got {re.escape(repr(value))}, expected {re.escape(expected)}$"):
                plots.Options(**{name: value})
        plots.Options(layer=numpy.int64(2), seeds="", length=None, people=pathlib.Path("people.json"))

    def test_means_and_bands_end_where_a_seed_ends(self):
        from lengthwise.plots import panels

        band = panels.mean([{1.0: 1.0, 3.0: 3.0}, {2.0: 0.0, 3.0: 1.0, 9.0: 5.0}])
        self.assertEqual((band.x, band.y, band.low, band.high), ([3], [2], [1], [3]))
        between = panels.mean([{1.0: 1.0, 3.0: 3.0}, {1.0: 0.0, 2.0: 0.0, 3.0: 1.0}])
        self.assertEqual((between.x, between.y), ([1, 3], [0.5, 2]))
        self.assertFalse(math.isnan(between.y[0]))


if __name__ == "__main__":
    unittest.main()
