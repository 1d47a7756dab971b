"""Figures of what is recorded of single answers and activations: errors, attention, projections."""
import json
import unittest

import numpy
from figure_fixture import FigureCase, add, addition, make_trial, plotted, setUpModule
from lengthwise import plots
from lengthwise._proto import event_pb2
from lengthwise.events import AttentionMap, Projection
from lengthwise.plots import drawing, numbers


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

    def test_weights_that_are_no_number_are_none_in_json(self):
        self.add_map(attention_map(numpy.array([[[[numpy.nan, 1], [0.5, 0.5]]]]), [3, 5]))
        drawn = json.loads(numbers.to_json(self.figure("attention", self.experiment)))
        self.assertEqual(drawn["panels"][0]["map"], [[None, 1.0], [0.5, 0.5]])

    def test_names_the_mistake(self):
        self.assertIn("has recorded attention yet", self.message("attention", self.experiment))
        self.add_map(self.MAP)
        self.assertIn("there is no layer 3: these networks have 2", self.message("attention", self.experiment, layer=3))
        self.assertIn("no head 9", self.message("attention", self.experiment, head=9))
        self.assertIn("no attention maps of length 7; recorded: 1", self.message("attention", self.experiment, length=7))
        self.assertIn("attention_sequences", self.message("attention", self.experiment, sequence=2))
        for trial in self.experiment.trials:
            trial.state = event_pb2.SUCCEEDED
        self.experiment.maps.clear()
        self.assertIn("all have ended; the retention deletes", self.message("attention", self.experiment))
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


if __name__ == "__main__":
    unittest.main()
