"""What all figures share: the choice of rates and trials, the look of lines, options."""
import math
import pathlib
import re
import unittest

import figure_fixture
import numpy
from figure_fixture import FigureCase, add, evaluation, make_trial, plotted, setUpModule
from lengthwise import plots
from lengthwise.errors import LengthwiseError, UsageError
from lengthwise.plots.catalogue import Component
from lengthwise.plots.series_style import encoding_style, styled_name


class ChoiceTest(FigureCase):
    """Which rate is drawn; `best_rate` chooses for all figures."""

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

    def validated(self):
        """Two rates, of which the first is better on seen lengths and the second on validation sequences."""
        experiment = plotted()
        for rate, seen, validated in ((0.1, 1.0, 0.4), (0.01, 0.5, 0.6)):
            trial = make_trial("none", rate=rate)
            trial.specification.evaluation.validation.lengths.append(1)
            add(experiment, trial, [seen, seen, rate])
            experiment.finals[-1].accuracies.validation_accuracy = validated
        return experiment

    def test_validation_chooses_where_there_is_one(self):
        experiment = self.validated()
        picture = self.figure("accuracy_by_length", experiment)
        self.assertEqual(picture.panels[0].series[0].y[2], 0.01)
        self.assertIn("the highest mean accuracy on the validation sequences", picture.caption)

    def test_evaluations_during_training_have_no_validation(self):
        experiment = self.validated()
        for trial, final, seen in zip(experiment.trials, experiment.finals, (1.0, 0.5), strict=True):
            rate = trial.specification.learning_rate
            experiment.all_evaluations += [evaluation(trial, [1, 3], [seen, rate], 4, final=False), final]
        by_seen = "the highest mean accuracy on lengths seen in training at the last evaluation during training"
        for name, first in (("accuracy_over_steps", 0.1), ("accuracy_over_epochs", 0.55)):
            picture = self.figure(name, experiment)
            self.assertEqual(picture.panels[-1].series[-1].y[0], first)
            self.assertIn(by_seen, picture.caption)

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

    def test_nothing_chooses_without_seen_lengths_during_training(self):
        experiment = plotted()
        for rate in (0.1, 0.01):
            trial = make_trial("none", rate=rate)
            experiment.trials.append(trial)
            experiment.all_evaluations.append(evaluation(trial, [3, 4], [rate, rate], final=False))
        message = self.message("accuracy_over_steps", experiment)
        self.assertIn("give a seen length in evaluation.interval_lengths", message)
        self.assertNotIn("evaluation.validation", message)


class LinesTest(FigureCase):
    """Names, colours and markers."""

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

    def test_choices_of_positions_are_told_apart(self):
        experiment = plotted()
        for choice in ("counted", "shift", "uniform_reals"):
            trial = make_trial("rope", False)
            if choice != "counted":
                trial.specification.encoding.parameters["positions"].string_value = choice
                trial.specification.encoding.label = f"{choice}_rope"
            trial.name = f"experiments/e-1/trials/{choice}"
            add(experiment, trial, [1, 1, 1])
        series = self.figure("accuracy_by_length", experiment).panels[0].series
        self.assertEqual([one.name for one in series], ["RoPE", "Shift RoPE", "Uniform reals RoPE"])
        self.assertEqual([one.style.dashes for one in series], [0, 1, 1])
        self.assertEqual(len({(one.style.hex_color, one.style.marker) for one in series[1:]}), 2)

    def test_a_choice_of_positions_has_one_colour_in_all_figures(self):
        choices = ["subset", "uniform_reals", "shift", "augmented", "skips", "data"]
        looks = []
        for drawn in ([choice] for choice in choices), [list(reversed(choices))]:
            found = {}
            for together in drawn:
                experiment = plotted()
                for choice in together:
                    # As the server resolves `positions: subset`.
                    trial = make_trial("rope", choice == "subset")
                    if choice != "subset":
                        trial.specification.encoding.parameters["positions"].string_value = choice
                        trial.specification.encoding.label = f"{choice}_rope"
                    trial.name = f"experiments/e-1/trials/{choice}"
                    add(experiment, trial, [1, 1, 1])
                for one in self.figure("accuracy_by_length", experiment).panels[0].series:
                    found[one.name] = (one.style.hex_color, one.style.points()["marker"], one.style.dashes)
            looks.append(found)
        self.assertEqual(looks[0], looks[1])
        self.assertEqual(len({look[:2] for look in looks[0].values()}), len(choices))
        self.assertEqual({look[2] for look in looks[0].values()}, {1})

    def test_a_choice_of_positions_of_one_of_several_experiments_has_its_colour(self):
        experiments = [plotted("a-1"), plotted("b-1")]
        for experiment, choice in zip(experiments, ("shift", "skips")):
            trial = make_trial("rope", experiment=experiment.name)
            trial.specification.encoding.parameters["positions"].string_value = choice
            trial.specification.encoding.label = f"{choice}_rope"
            add(experiment, trial, [1, 1, 1])
        together = [one.style for one in self.figure("accuracy_by_length", *experiments).panels[0].series]
        alone = [self.figure("accuracy_by_length", one).panels[0].series[0].style for one in experiments]
        self.assertEqual(together, alone)

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
        names = ["rnn", "lstm", "stack_rnn", "nondeterministic_stack_rnn", "tape_rnn", "looped_encoder", "Mamba", "DeltaNet"]
        experiment = plotted()
        add(experiment, make_trial("none"), [1, 1, 1])
        for name in names:
            trial = make_trial("none")
            trial.specification.network.name = trial.specification.network.label = name
            if name[0].isupper():
                trial.specification.network.name = "python"
                trial.specification.network.parameters["class"].string_value = name
                trial.specification.encoding.name = trial.specification.encoding.label = "own"
            trial.name = f"experiments/e-1/trials/{name}"
            add(experiment, trial, [1, 1, 1])
        styles = [one.style for one in self.figure("accuracy_by_length", experiment).panels[0].series]
        self.assertEqual(styles[0], encoding_style("none"))
        self.assertEqual([style.marker for style in styles[1:]], [encoding_style(name).marker for name in names])
        self.assertEqual(len({(style.hex_color, style.marker) for style in styles}), 9)
        self.assertEqual(len({style.hex_color for style in styles}), 7, "all that there are")

    def test_lines_share_no_colour_while_one_is_left(self):
        def colors(*names):
            experiment = plotted()
            for name in names:
                trial = make_trial(name)
                if styled_name(Component(name=name), "") == name:
                    trial = make_trial("none")
                    trial.specification.network.name = trial.specification.network.label = name
                    trial.name = f"experiments/e-1/trials/{name}"
                add(experiment, trial, [1, 1, 1])
            return [one.style.hex_color for one in self.figure("accuracy_by_length", experiment).panels[0].series]

        names = ["rnn", "stack_rnn", "tape_rnn", "lstm", "shaw", "none", "relative"]
        self.assertEqual(len({*colors(*names)}), len(names))
        # The first in the list of fixed places keeps its colour, wherever it stands in the figure.
        self.assertEqual(colors("lstm", "shaw", "rope")[2], encoding_style("rope").hex_color)
        self.assertEqual(colors("lstm", "shaw")[1], encoding_style("shaw").hex_color)
        self.assertEqual(colors("lstm"), [encoding_style("lstm").hex_color])

    def test_two_forms_of_a_network_leave_the_others_their_colours(self):
        experiment = plotted()
        add(experiment, make_trial("none"), [1, 1, 1])
        for name in ["negative", "positive"]:
            trial = make_trial("own")
            trial.specification.network.name = "python"
            trial.specification.network.label = name
            trial.specification.network.parameters["class"].string_value = "DeltaNet"
            trial.name = f"experiments/e-1/trials/{name}"
            add(experiment, trial, [1, 1, 1])
        styles = [one.style for one in self.figure("accuracy_by_length", experiment).panels[0].series]
        self.assertEqual(styles[:2], [encoding_style("none"), encoding_style("DeltaNet")])
        self.assertEqual(len({(style.hex_color, style.marker) for style in styles}), 3)

    def test_no_two_entries_of_the_catalogue_share_colour_and_marker(self):
        # Lines of these networks have the styles of their encodings.
        by_encoding = {"encoder", "layerwise_encoder", "positional_attention", "graph_network", "causal_decoder", "python"}
        own = {name for name in figure_fixture.NETWORKS if styled_name(Component(name=name), "") == name}
        self.assertEqual(own, figure_fixture.NETWORKS - by_encoding)
        names = [*figure_fixture.CATALOGUE.encodings, *own, "Mamba", "DeltaNet", "Cope", "Forgetting", "StickBreaking"]
        looks = {(encoding_style(name).hex_color, encoding_style(name).points()["marker"]) for name in names}
        self.assertEqual(len(looks), len(names))

    def test_encoding_of_one_of_several_experiments_has_its_colour(self):
        a, b = plotted("a-1"), plotted("b-1")
        add(a, make_trial("rope", experiment="a-1"), [1, 1, 1])
        add(b, make_trial("alibi", experiment="b-1"), [1, 1, 1])
        add(b, make_trial("rope", True, experiment="b-1"), [1, 1, 1])
        plain, _, randomized = (one.style for one in self.figure("accuracy_by_length", a, b).panels[0].series)
        self.assertEqual((plain.hex_color, randomized.hex_color), ("#009E73", "#009E73"))
        self.assertEqual((plain.dashes, randomized.dashes), (0, 1))

    def test_experiments_are_distinguished(self):
        a, b = plotted("a-1"), plotted("b-1")
        add(a, make_trial("none", experiment="a-1"), [1, 1, 1])
        add(b, make_trial("none", experiment="b-1"), [1, 1, 1])
        picture = self.figure("accuracy_by_length", a, b)
        (panel,) = picture.panels
        self.assertEqual([series.name for series in panel.series], ["a-1: None", "b-1: None"])
        self.assertNotEqual(panel.series[0].style, panel.series[1].style)
        self.assertEqual(picture.title, "Accuracy by length: a-1 and b-1")

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
