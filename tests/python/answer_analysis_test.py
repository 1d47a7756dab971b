"""Analyses of single answers: people and models puzzle by puzzle, and carries in sums."""
import json
import math
import os
import pathlib
import unittest
from unittest import mock

import numpy
import scipy.stats
import service
from analysis_fixture import EXPERIMENT, FAILURE, USAGE, AnalysisTest
from lengthwise._proto import event_pb2
from lengthwise.analyses import carries, human_comparison, latin_square, trial_sets
from lengthwise.errors import UsageError
from lengthwise.plots import analysis_figures as figures
from lengthwise.plots import data


class HumansTest(AnalysisTest):
    def setUp(self):
        super().setUp()
        self.directory = service.new_directory()

    def people(self, name, puzzles):
        path = self.directory / name
        path.write_text(json.dumps({"puzzles": puzzles}))
        return str(path)

    def add_scores(self, trial, length, accuracies):
        self.server.analyses.append(
            event_pb2.Event(
                trial=self.name(trial),
                sequence_scores=event_pb2.SequenceScores(
                    length=length, accuracies=accuracies, losses=[0] * len(accuracies)
                ),
            )
        )

    def test_puzzle_by_puzzle(self):
        self.add([("small", 1), ("small", 2)])
        easy = human_comparison.validation_puzzles(self.server.trials[self.name("small1")])[1]
        self.assertEqual(len(easy), 3)
        for puzzle in easy:
            self.assertEqual(latin_square.evidence_of([int(digit) for digit in puzzle]).vectors, 1)
        # Human accuracies on the three one-vector puzzles, in another order.
        human = [1, 0.5, 0.25]
        people = self.people("people.json", [{"puzzle": easy[i], "human_accuracy": human[i]} for i in (2, 0, 1)])
        self.assert_refused(
            FAILURE, "humans", EXPERIMENT, "--file", people,
            saying="no trial has scores of single puzzles; set evaluation.sequence_scores",
        )  # fmt: skip
        self.add_scores("small1", 1, [1, 1, 0])
        self.add_scores("small2", 1, [1, 0, 0])
        # Models (1, 0.5, 0) and people (1, 0.5, 0.25).
        row = self.by_encoding("humans", EXPERIMENT, "--file", people)["small"]
        cosine = 1.25 / math.sqrt(1.25 * 1.3125)
        self.assertAlmostEqual(row["cosine"], cosine, 9)
        self.assertAlmostEqual(row["spearman"], 1, 12)
        self.assertAlmostEqual(row["composite"], (1 + cosine) / 2, 9)
        self.assertEqual(row["puzzles"], 3)
        self.assertAlmostEqual(row["human_accuracy"], 1.75 / 3, 12)

        others = self.people("others.json", [{"puzzle": "5124000000000000", "human_accuracy": 0.5}])
        self.assert_refused(
            FAILURE, "humans", EXPERIMENT, "--file", others,
            saying="none of the validation puzzles is in the file of people's answers",
        )  # fmt: skip
        silent = self.people("silent.json", [{"puzzle": easy[0]}])
        self.assert_refused(
            USAGE, "humans", EXPERIMENT, "--file", silent, saying='no puzzle with a "human_accuracy"'
        )

    def test_a_file_that_is_wrong_says_where(self):
        good = {"puzzle": "5124000000000000", "human_accuracy": 0.5}
        for puzzles, saying in (
            ([good, good], "puzzles[1]: 5124000000000000 is there twice"),
            ([{"puzzle": "5"}], 'puzzles[0]: "5" is not a puzzle: it has 1 characters'),
            ([{"human_accuracy": 1}], "puzzles[0]: there is no puzzle"),
            ([{**good, "human_accuracy": 2}], "puzzles[0]: human_accuracy 2 is not a number from 0 to 1"),
        ):
            path = self.people("wrong.json", puzzles)
            with self.assertRaises(UsageError) as raised:
                latin_square.read_human_accuracies(path)
            self.assertIn(saying, str(raised.exception))
        with self.assertRaisesRegex(UsageError, "cannot read .*nothing.json: No such file"):
            latin_square.read_human_accuracies(self.directory / "nothing.json")
        self.people("good.json", [good])
        with mock.patch.dict(os.environ, {"HOME": str(self.directory)}):
            self.assertEqual(latin_square.read_human_accuracies("~/good.json"), {good["puzzle"]: 0.5})
        with self.assertRaisesRegex(UsageError, "cannot read .*: it is a directory, expected a regular file"):
            latin_square.read_human_accuracies(self.directory)

    def test_files_of_puzzles_must_be_within_reach(self):
        self.add([("small", 1)])
        self.add_scores("small1", 1, [1])
        self.specification("small1").task.parameters["validation_file"].string_value = "absent.json"
        people = self.people("people.json", [{"puzzle": "5124000000000000", "human_accuracy": 0.5}])
        self.assert_refused(
            FAILURE, "humans", EXPERIMENT, "--file", people, saying="this command needs the same puzzle files"
        )

    # The file of the 108 puzzles that people solved. It is not in this repository.
    def test_the_published_file_is_read(self):
        name = "lst_validation_108.json"
        folders = [service.DATA_DIRECTORY, "../shared/data"]
        path = next((pathlib.Path(one) / name for one in folders if one and (pathlib.Path(one) / name).exists()), None)
        if path is None:
            self.skipTest(f"{name} is neither in $LENGTHWISE_DATA_DIR nor in ../shared/data")
        os.environ["LENGTHWISE_PUZZLE_DIR"] = str(path.parent.resolve())
        self.addCleanup(os.environ.pop, "LENGTHWISE_PUZZLE_DIR", None)
        self.add([("small", 1)])
        parameters = self.specification("small1").task.parameters
        del parameters["validation_puzzles"]
        parameters["validation_file"].string_value = name
        # A model that solves exactly the puzzles that more than four in five people solve.
        published = json.loads(path.read_text())["puzzles"]
        scores = {}
        for puzzle in published:
            scores.setdefault(puzzle["vectors"], []).append(float(puzzle["human_accuracy"] > 0.8))
        for vectors, accuracies in scores.items():
            self.add_scores("small1", vectors, accuracies)
        human = numpy.array([puzzle["human_accuracy"] for puzzle in published])
        solved = human > 0.8
        row = self.by_encoding("humans", EXPERIMENT, "--file", str(path))["small"]
        self.assertEqual(row["puzzles"], 108)
        self.assertAlmostEqual(row["human_accuracy"], human.mean(), 12)
        self.assertAlmostEqual(row["accuracy"], solved.mean(), 12)
        self.assertAlmostEqual(row["cosine"], human[solved].sum() / math.sqrt(solved.sum() * (human**2).sum()), 12)
        self.assertGreater(row["spearman"], 0.7)


class CarriesTest(AnalysisTest):
    def test_probabilities_match_random_operands(self):
        self.assertEqual(carries.carry_probabilities(1, False).tolist(), [0, 0.45])
        # The second of two digits, 1 to 9: 45 of 81 pairs make ten or more, 8 make nine.
        two = carries.carry_probabilities(2, False)
        self.assertAlmostEqual(two[2], 45 / 81 + 8 / 81 * 0.45, 12)
        free = carries.carry_probabilities(30, True)
        self.assertAlmostEqual(free[2], 0.45 + 0.1 * 0.45, 12)
        self.assertAlmostEqual(free[30], 0.5, 12)
        # Counted over all pairs of operands of two digits.
        numbers = numpy.arange(10, 100)
        counted = (numpy.add.outer(numbers, numbers) >= 100).mean()
        self.assertAlmostEqual(two[2], counted, 12)

    def add_sums(self):
        self.add([("fire", 1), ("fire", 2)])
        answer = event_pb2.SequenceScores.WrongAnswer
        for seed, wrong in (
            (1, [answer(sequence=0, places=[1, 2], carry_into_first=True), answer(sequence=3)]),
            (2, [answer(sequence=1, places=[1], carry_into_first=True), answer(sequence=2, places=[0])]),
        ):
            self.specification(f"fire{seed}").task.name = "decimal_addition"
            self.server.analyses.append(
                event_pb2.Event(
                    trial=self.name(f"fire{seed}"),
                    sequence_scores=event_pb2.SequenceScores(
                        length=2, accuracies=[0] * 10, losses=[0] * 10, wrong_answers=wrong
                    ),
                )
            )

    def test_errors_are_compared_with_chance(self):
        self.add_sums()
        rows = self.rows("carries", EXPERIMENT)
        self.assertEqual([row["place"] for row in rows], [0, 1, 2])
        self.assertEqual([row["first_wrong_with_carry"] for row in rows], [0, 2, 0])
        self.assertEqual([row["first_wrong_without_carry"] for row in rows], [1, 0, 0])
        self.assertEqual(rows[0]["answers"], 20)
        # 19 of 20 are right up to place 1; a fraction of 0.45 has a carry into it.
        self.assertAlmostEqual(rows[1]["accuracy_with_carry"], 1 - 2 / (19 * 0.45), 12)
        self.assertEqual(rows[1]["accuracy_without_carry"], 1)
        self.assertIsNone(rows[0]["accuracy_with_carry"], "no carry comes into the least significant place")
        self.assertAlmostEqual(rows[0]["accuracy_without_carry"], 1 - 1 / 20, 12)
        (found,) = carries.measure(trial_sets.subject_of(data.fetch(self.server.connection, [EXPERIMENT])))
        self.assertEqual(found.errors, 3, "an answer with too many digits has no place")
        self.assertAlmostEqual(found.share, 2 / 3, 12)
        self.assertAlmostEqual(found.expected, 0.9 / 3, 12)
        # Two tosses of 0.45 and one of 0: twice the chance of two.
        self.assertAlmostEqual(found.p_value(), 2 * 0.45**2, 9)
        self.assertEqual(self.run_command("carries", EXPERIMENT), 0)
        self.assertIn("66.7", self.out)
        self.assertIn("30.0", self.out)
        self.assert_refused(
            USAGE, "carries", EXPERIMENT, "--length", "7",
            saying="no answers at 7 digits are recorded; there are those at 2 digits",
        )  # fmt: skip

    def test_damaged_sizes_take_no_memory(self):
        self.add_sums()
        for length in (2**31 - 1, 10**8, 0, -1):
            for event in self.server.analyses:
                event.sequence_scores.length = length
            self.assert_refused(FAILURE, "carries", EXPERIMENT, saying=f"answers are to sums of {length} digits")
        for event in self.server.analyses:
            event.sequence_scores.length = 2
            for answer in event.sequence_scores.wrong_answers:
                answer.places[:] = [-100]
        self.assertEqual([row["first_wrong_with_carry"] for row in self.rows("carries", EXPERIMENT)], [0, 0, 0])

    def test_many_errors_have_the_law_of_their_tosses(self):
        rates = numpy.array([0.0, 0.45, 0.55])
        few = carries.CarryErrors(None, 2, 1, 100, numpy.array([0, 20, 9]), numpy.array([3, 10, 8]), rates)
        tosses = numpy.repeat(rates, [3, 30, 17])
        law = scipy.stats.poisson_binom(tosses)
        self.assertAlmostEqual(few.p_value(), 2 * min(law.cdf(29), law.sf(28)), 12)
        many = numpy.array([0, 45_000, 55_000])
        self.assertGreater(carries.CarryErrors(None, 2, 1, 1, many, 100_000 - many, rates).p_value(), 0.9)

    def add_chains(self):
        self.add_sums()
        for seed, places, wrong in ((1, [12, 6], [1, 2]), (2, [10, 5, 1], [0, 1, 1])):
            errors = event_pb2.AnswerErrors(length=2, answers=10, places_by_carry=places, wrong_by_carry=wrong)
            self.server.analyses.append(event_pb2.Event(trial=self.name(f"fire{seed}"), answer_errors=errors))

    def test_carry_chains_have_a_base_rate(self):
        self.add_chains()
        rows = self.rows("carry_chains", EXPERIMENT)
        self.assertEqual([row["distance"] for row in rows], [0, 1, 2])
        self.assertEqual([row["places"] for row in rows], [22, 11, 1])
        self.assertEqual([row["wrong"] for row in rows], [1, 3, 1])
        for row, accuracy, base_rate in zip(rows, (21 / 22, 8 / 11, 0), (22 / 34, 11 / 34, 1 / 34)):
            self.assertAlmostEqual(row["accuracy"], accuracy, 12)
            self.assertAlmostEqual(row["base_rate"], base_rate, 12)
        # Wilson's interval of 8 of 11, by hand: (8 + z^2 / 2 -+ z sqrt(8 * 3 / 11 + z^2 / 4)) / (11
        # + z^2), z = 1.95996.
        self.assertAlmostEqual(rows[1]["accuracy_low"], 0.43435, 4)
        self.assertAlmostEqual(rows[1]["accuracy_high"], 0.90254, 4)
        self.assertEqual(self.run_command("carry_chains", EXPERIMENT), 0)
        self.assertIn("none", self.out)
        self.assertIn("72.7", self.out)
        frame = self.analyses().carry_chains(length=2)
        self.assertEqual(list(frame["places"]), [22, 11, 1])
        self.assert_refused(
            USAGE, "carry_chains", EXPERIMENT, "--length", "7",
            saying="no answers at 7 digits are recorded; there are those at 2 digits",
        )  # fmt: skip

    def test_carry_chain_figure_has_the_base_rate(self):
        self.add_chains()
        subject = trial_sets.subject_of(data.fetch(self.server.connection, [EXPERIMENT]))
        picture = figures.carry_chains.__wrapped__(subject, carries.measure_chains(subject))
        accuracy, share = picture.panels[0].series
        self.assertEqual((list(accuracy.x), list(share.x)), ([0, 1, 2], [0, 1, 2]))
        numpy.testing.assert_allclose(accuracy.y, [21 / 22, 8 / 11, 0], atol=1e-12)
        numpy.testing.assert_allclose(share.y, [22 / 34, 11 / 34, 1 / 34])
        self.assertEqual((accuracy.name, share.name, share.faint), ("fire", "share of all places", True))

    def test_old_workers_have_no_carry_distances(self):
        self.add_sums()
        event = event_pb2.Event(trial=self.name("fire1"), answer_errors=event_pb2.AnswerErrors(length=2, answers=10))
        self.server.analyses.append(event)
        self.assert_refused(FAILURE, "carry_chains", EXPERIMENT, saying="has recorded how far carries came")

    def test_only_sums_have_carries(self):
        self.add([("small", 1)])
        self.assert_refused(FAILURE, "carries", EXPERIMENT, saying="has scores of single answers to sums; set evaluation.")


if __name__ == "__main__":
    unittest.main()
