"""Analyses of final accuracies and losses: under noise, over seeds, in time and by scale."""
import inspect
import math
import unittest

from analysis_fixture import EXPERIMENT, FAILURE, USAGE, AnalysisTest
from lengthwise import published
from lengthwise._proto import catalogue_service_pb2, event_pb2, experiment_service_pb2
from lengthwise.analyses import Analyses, loss_ratios, report, trial_sets
from lengthwise.commands import DEFINITIONS
from lengthwise.errors import LengthwiseError, UsageError
from lengthwise.plots import data


class NoiseTest(AnalysisTest):
    def add_noise(self, trial, deviations, accuracies, experiment=EXPERIMENT):
        self.server.analyses.append(
            event_pb2.Event(
                trial=self.name(trial, experiment),
                noise_accuracies=event_pb2.NoiseAccuracies(
                    deviations=deviations, accuracies=accuracies, losses=[0] * len(deviations)
                ),
            )
        )

    def test_noise_is_averaged_over_seeds(self):
        self.add([("small", 1, {"accuracy": 0.9}), ("small", 2, {"accuracy": 0.8}), ("large", 1)])
        self.assert_refused(
            FAILURE, "noise", EXPERIMENT, saying="was evaluated under noise; set evaluation.embedding_noise"
        )
        self.add_noise("small1", [0.02, 0.1], [0.8, 0.5])
        self.add_noise("small2", [0.02, 0.1], [0.6, 0.5])
        self.assertEqual(self.run_command("noise", EXPERIMENT, "--output", "csv"), 0)
        row = "\ne-1,latin_square,layerwise_encoder,small,1e-04,"
        self.assertIn("learning_rate,noise,accuracy,accuracy_deviation,models\n", self.out)
        for end in ("0,0.85", "0.02,0.7", "0.1,0.5,0,2"):
            self.assertIn(row + end, self.out)
        self.assertNotIn("large", self.out)
        self.assertEqual(self.run_command("noise", EXPERIMENT), 0)
        self.assertIn("70.0 ± 14.1", self.out)

    def test_reevaluated_model_counts_once(self):
        self.add([("small", 1, {"accuracy": 0.9})], "a-1")
        self.add([("small", 1, {"accuracy": 0.9})], "a_evaluation-1")
        self.add_noise("small1", [0.1], [0.5], "a_evaluation-1")
        self.assertEqual(self.by_encoding("noise", "a-1", "a_evaluation-1")["small"]["models"], 1)
        self.add_noise("small1", [0.1], [0.25], "a-1")
        row = self.by_encoding("noise", "a-1", "a_evaluation-1")["small"]
        self.assertEqual(row["models"], 1)
        self.assertEqual(row["accuracy"], 0.25, "that of the experiment that is named first")

    def test_one_label_does_not_merge_encodings(self):
        self.add([("learned", 1, {"stddev": 0.2})], "narrow-1")
        self.add([("learned", 2, {"stddev": 2.0})], "wide-1")
        self.add_noise("learned1", [0.1], [0.5], "narrow-1")
        self.add_noise("learned2", [0.1], [0.25], "wide-1")
        self.assertEqual(self.run_command("noise", "narrow-1", "wide-1"), 0, self.err)
        self.assertIn("narrow-1    learned", self.out)
        self.assertIn("wide-1      learned", self.out)
        self.assertNotIn("±", self.out)

    def test_only_succeeded_trials_are_analyzed(self):
        self.add([("small", 1)])
        self.server.trials[self.name("small1")].state = event_pb2.RUNNING
        self.assert_refused(
            FAILURE, "noise", EXPERIMENT, saying="no trial of e-1 has succeeded yet: nothing to analyze"
        )


class SeedsTest(AnalysisTest):
    def test_seeds_are_tested_in_pairs(self):
        # Differences of 0.2, 0.2 and 0.1 with one seed each allow no t; 0.1, 0.2 and 0.3 have t = 2
        # sqrt(3).
        self.add([
            ("ground", 1, {"name": "sin_cos_2d", "accuracy": 0.6}),
            ("ground", 2, {"name": "sin_cos_2d", "accuracy": 0.8}),
            ("ground", 3, {"name": "sin_cos_2d", "accuracy": 0.7}),
            ("small", 3, {"accuracy": 0.4}),
            ("small", 2, {"accuracy": 0.6}),
            ("small", 1, {"accuracy": 0.5}),
            ("once", 1, {"name": "rope"}),
        ])  # fmt: skip
        rows = self.by_encoding("t_test", EXPERIMENT, "--reference", "ground")
        self.assertAlmostEqual(rows["small"]["t"], 2 * math.sqrt(3), 9)
        self.assertEqual((rows["small"]["degrees_of_freedom"], rows["small"]["pairs"]), (2, 3))
        # 0.2, with the 0.975 quantile of t at 2 degrees of freedom, 4.30265, times 0.1 / sqrt(3).
        self.assertAlmostEqual(rows["small"]["difference"], 0.2, 12)
        self.assertAlmostEqual(rows["small"]["difference_low"], 0.2 - 4.302652729911275 * 0.1 / math.sqrt(3), 9)
        self.assertAlmostEqual(rows["small"]["difference_high"], 0.2 + 4.302652729911275 * 0.1 / math.sqrt(3), 9)
        self.assertIsNone(rows["once"]["t"])
        self.assertNotIn("ground", rows)
        self.assertEqual(self.run_command("t_test", EXPERIMENT, "--reference", "ground"), 0)
        self.assertIn("3.46", self.out)
        self.assertIn("a test needs at least two seeds", self.out)
        text = " ".join(self.out.split())
        self.assertIn("seed by seed: token accuracy, mean over the lengths not seen in training", text)
        self.assertIn("df p pairs │ difference", text)
        self.assertIn("in percentage points", text)
        self.assertNotIn("Holm", text, "there is one test")
        self.assertIn("may differ from those of `lengthwise results`. Without a pair: 2 seeds of ground.", text)

    # Differences of 0.1, 0.2 and 0.3, and of 0.3, 0.4 and 0.6.
    def test_p_values_are_adjusted_for_the_encodings(self):
        accuracies = {"ground": (0.9, 0.9, 0.9), "near": (0.8, 0.7, 0.6), "far": (0.6, 0.5, 0.3)}
        self.add([
            (label, seed, {"accuracy": accuracy, "name": "sin_cos_2d" if label == "ground" else "learned"})
            for label, values in accuracies.items() for seed, accuracy in enumerate(values)
        ])  # fmt: skip
        rows = self.by_encoding("t_test", EXPERIMENT, "--reference", "ground")
        self.assertLess(rows["far"]["p_value"], rows["near"]["p_value"])
        self.assertAlmostEqual(rows["far"]["adjusted_p_value"], 2 * rows["far"]["p_value"], 12)
        self.assertAlmostEqual(
            rows["near"]["adjusted_p_value"], max(rows["near"]["p_value"], 2 * rows["far"]["p_value"]), 12
        )
        self.assertEqual(self.run_command("t_test", EXPERIMENT, "--reference", "ground"), 0)
        self.assertIn("df p Holm's p pairs", " ".join(self.out.split()))
        self.assertIn("Holm's p is adjusted for the number of encodings", " ".join(self.out.split()))
        self.assertNotIn("lengthwise results", self.out, "every seed is in a pair")

    def test_one_length_is_tested(self):
        self.add([(label, seed, {"name": name}) for label, name in (("ground", "sin_cos_2d"), ("small", "learned"))
                  for seed in (1, 2)])  # fmt: skip
        for one, first in zip(self.server.evaluations, (0.9, 0.8, 0.5, 0.2)):
            self.server.trials[one.trial].specification.evaluation.seen_up_to = 1
            one.accuracies.lengths[:], one.accuracies.accuracies[:] = [1, 2], [first, 0.5]
        ask = ("t_test", EXPERIMENT, "--reference", "ground", "--length")
        (row,) = self.rows(*ask, "1")
        self.assertAlmostEqual(row["difference"], 0.5, 12)
        self.assertEqual(self.run_command(*ask, "1"), 0)
        self.assertIn("token accuracy at length 1, seen in training", " ".join(self.out.split()))
        self.assertEqual(self.run_command(*ask, "2"), 0)
        self.assertIn("at length 2, not seen in training", " ".join(self.out.split()))
        # Training showed what does not count as seen.
        for trial in self.server.trials.values():
            trial.specification.training.lengths.min, trial.specification.training.lengths.max = 1, 2
        self.assertEqual(self.run_command(*ask, "2"), 0)
        self.assertIn("token accuracy at length 2, seen in training", " ".join(self.out.split()))
        self.assertEqual(self.run_command(*ask[:-1]), 0)
        self.assertIn("token accuracy, mean over the lengths above 1", " ".join(self.out.split()))
        self.assert_refused(USAGE, *ask, "3", saying="--length: no trial of e-1 was evaluated at 3; accepted: 1, 2")

    def test_losses_are_tested_as_losses(self):
        entry = catalogue_service_pb2.CatalogueEntry(kind=catalogue_service_pb2.TASK, name="latin_square")
        entry.facts["compared_by_loss"] = "true"
        self.server.entries.append(entry)
        self.add([("ground", seed, {"name": "sin_cos_2d"}) for seed in (1, 2)] + [("small", seed) for seed in (1, 2)])
        for one, loss in zip(self.server.evaluations, (10, 20, 30, 60)):
            one.accuracies.losses.append(loss)
        (row,) = self.rows("t_test", EXPERIMENT, "--reference", "ground")
        self.assertEqual((row["loss"], row["reference_loss"], row["difference"]), (45, 15, 30))
        self.assertGreater(row["t"], 0, "the reference is better")
        self.assertNotIn("accuracy", row)
        self.assertEqual(self.run_command("t_test", EXPERIMENT, "--reference", "ground"), 0)
        self.assertIn("45 ± 21.2", self.out)
        self.assertIn("the encoding's loss less ground's", " ".join(self.out.split()))

    def test_a_notebook_has_a_frame(self):
        self.add([("ground", seed, {"name": "sin_cos_2d", "accuracy": 0.5 + seed / 10}) for seed in (1, 2)])
        self.add([("small", seed, {"accuracy": 0.5}) for seed in (1, 2)], "b-1")
        frame = self.analyses(EXPERIMENT, "b-1").t_test(reference="ground")
        self.assertEqual(frame["encoding"].tolist(), ["small"])
        # The differences 0.1 and 0.2: 0.15 / (0.0707 / sqrt(2)).
        self.assertAlmostEqual(frame["t"][0], 3, 9)
        self.assertIn("Paired t-tests of ground", frame.attrs["caption"])
        self.assertIn("p is two-sided", frame.attrs["remarks"][0])
        self.assertIn("Accuracies, the difference and its interval are fractions of 1.", frame.attrs["remarks"])
        at_length = self.analyses(EXPERIMENT, "b-1").t_test(reference="ground", length=1)
        self.assertAlmostEqual(at_length["t"][0], 3, 9)
        with self.assertRaises(LengthwiseError):
            self.analyses(EXPERIMENT).t_test(reference="ground")

    def test_a_notebook_has_every_analysis_with_its_options(self):
        for name in DEFINITIONS["analyze"]["analyses"]:
            method, analysis = getattr(Analyses, name), getattr(report, name)
            self.assertEqual(method.__doc__, analysis.__doc__)
            parameters = [*inspect.signature(analysis).parameters, "select"]
            self.assertEqual(list(inspect.signature(method).parameters), parameters)
        with self.assertRaisesRegex(UsageError, "^select: got 'best', expected \"seen\" or \"unseen\"$"):
            Analyses([]).noise(select="best")
        with self.assertRaisesRegex(UsageError, "^length: got 'x', expected a whole number$"):
            Analyses([]).t_test("ground", length="x")

    # As made by a loop of `lengthwise evaluate` over an experiment's trials.
    def test_several_experiments_are_analyzed_as_one(self):
        self.add([("ground", 1, {"name": "sin_cos_2d"})], "a-1")
        self.add([("small", 1)], "b-1")
        self.assertEqual(list(self.by_encoding("t_test", "a-1", "b-1", "--reference", "ground")), ["small"])

    # As in experiments/latin_square/table1.yaml and table6.yaml: equal labels, rate and seeds.
    def test_other_training_has_its_own_row(self):
        for experiment, optimizer, shift in (("adam-1", "adam", 0.4), ("adamw-1", "adamw", 0.0)):
            self.add(
                [
                    ("ground", 1, {"name": "sin_cos_2d", "optimizer": optimizer, "accuracy": 0.5 + shift}),
                    ("ground", 2, {"name": "sin_cos_2d", "optimizer": optimizer, "accuracy": 0.3 + shift}),
                    ("small", 1, {"optimizer": optimizer, "accuracy": 0.1 + shift}),
                    ("small", 2, {"optimizer": optimizer, "accuracy": 0.0 + shift}),
                ],
                experiment,
            )
        ask = ("t_test", "adam-1", "adamw-1", "--reference", "ground")
        rows = self.rows(*ask)
        self.assertEqual([row["experiment"] for row in rows], ["adam-1", "adamw-1"])
        for row, own, reference in zip(rows, (0.45, 0.05), (0.8, 0.4)):
            self.assertEqual(row["encoding"], "small")
            self.assertAlmostEqual(row["accuracy"], own, 12)
            self.assertAlmostEqual(row["reference_accuracy"], reference, 12, "one that was trained in the same way")
        self.assertEqual(self.run_command(*ask), 0)
        self.assertIn("experiment  encoding", self.out)
        self.assertIn("adamw-1     small", self.out)
        self.assertEqual(self.run_command("t_test", "adam-1", "--reference", "ground"), 0)
        self.assertNotIn("experiment", self.out)

    def test_recording_frequency_makes_no_other_set(self):
        self.add([("small", 1), ("small", 2)])
        self.specification("small2").training.report_every_steps = 7
        self.specification("small2").training.checkpoint_every_steps = 9
        (only,) = trial_sets.subject_of(data.fetch(self.server.connection, [EXPERIMENT])).sets
        self.assertEqual(len(only.trials), 2)


class SpeedTest(AnalysisTest):
    def add_times(self, trial, steps, seconds, reached):
        """Adds accuracies on an unseen length by the seconds of training."""
        message = self.server.trials[self.name(trial)]
        message.outcome.training_steps, message.outcome.training_seconds = steps, seconds
        message.specification.task.name, message.specification.network.name = "missing_duplicate_string", "encoder"
        message.specification.encoding.name = "relative"
        del message.specification.encoding.parameters["stddev"]
        message.specification.encoding.parameters["randomized"].bool_value = trial.startswith("rand")
        message.specification.training.lengths.min = 1
        message.specification.training.lengths.max = 40 if trial.startswith("rand") else 500
        message.specification.evaluation.seen_up_to = 1
        for at, accuracy in reached.items():
            self.server.evaluations.append(
                experiment_service_pb2.QueryLengthAccuraciesResponse.Evaluation(
                    trial=message.name,
                    accuracies=event_pb2.LengthAccuracies(
                        final=at == seconds, lengths=[1, 2], accuracies=[1, accuracy], training_seconds=at,
                        seen_accuracy=1, unseen_accuracy=accuracy,
                    ),
                )
            )

    def test_times_are_those_of_the_papers_text(self):
        self.add([("long", 1), ("long", 2), ("long", 3), ("rand", 1), ("rand", 2)])
        self.server.evaluations.clear()
        self.add_times("long1", 2210, 100, {10: 0.5, 354: 0.95, 400: 0.97})
        self.add_times("long2", 4420, 200, {708: 0.92})
        self.add_times("long3", 2210, 100, {100: 0.9})
        self.add_times("rand1", 1684, 10, {5: 0.85, 10: 0.91, 15: 0.95})
        self.add_times("rand2", 3368, 20, {30: 0.99})
        rows = self.by_encoding("speed", EXPERIMENT)
        self.assertAlmostEqual(rows["long"]["steps_per_second"], 22.1, 9)
        self.assertEqual(rows["long"]["published_steps_per_second"], 22.1, "as the paper prints it")
        self.assertEqual(rows["rand"]["published_steps_per_second"], 168.4)
        self.assertAlmostEqual(rows["rand"]["times_steps_per_second"], 168.4 / 22.1, 9)
        # 354, 708 and never; 10 and 30.
        self.assertEqual((rows["long"]["seconds"], rows["long"]["reached"], rows["long"]["models"]), (708, 2, 3))
        self.assertEqual(rows["rand"]["seconds"], 20)
        self.assertAlmostEqual(rows["rand"]["times_sooner"], 35.4, 9)
        self.assertEqual(self.run_command("speed", EXPERIMENT), 0)
        self.assertIn("90 % are reached 35.4 times sooner", " ".join(self.out.split()))
        # 0.9 is not above 0.9.
        rows = self.by_encoding("speed", EXPERIMENT, "--accuracy", "0.98")
        self.assertIsNone(rows["long"]["seconds"])
        self.assertIsNone(rows["rand"]["times_sooner"])
        self.assert_refused(USAGE, "speed", EXPERIMENT, "--accuracy", "90", saying="--accuracy: got 90, expected a number")

    def test_unknown_times_do_not_count(self):
        self.add([("rand", 1)])
        self.server.evaluations.clear()
        self.add_times("rand1", 1684, 10, {0: 0.99, 120: 0.95})
        self.server.evaluations[0].step = 500
        self.assertEqual(self.by_encoding("speed", EXPERIMENT)["rand"]["seconds"], 120)

    def test_other_lengths_have_no_published_times(self):
        self.add([("rand", 1)])
        self.add_times("rand1", 1684, 10, {10: 0.91})
        self.specification("rand1").training.lengths.max = 20
        self.assertIsNone(self.by_encoding("speed", EXPERIMENT)["rand"]["published_steps_per_second"])


class LossRatiosTest(AnalysisTest):
    def setUp(self):
        super().setUp()
        task = catalogue_service_pb2.CatalogueEntry(kind=catalogue_service_pb2.TASK, name="sorting")
        task.facts["compared_by_loss"] = "true"
        self.server.entries.append(task)

    def add_losses(self, trial, losses):
        specification = self.specification(trial)
        specification.task.name = "sorting"
        del specification.task.parameters["training_puzzles"]
        specification.network.name, specification.network.label = "positional_attention", trial[:-1]
        own = specification.network.parameters
        own["attention_by"].string_value = "input" if trial.startswith("standard") else "positions"
        own["input_positions"].bool_value = trial.startswith("standard")
        specification.encoding.name = specification.encoding.label = "one_hot"
        specification.evaluation.seen_up_to = 1
        self.server.evaluations.append(
            experiment_service_pb2.QueryLengthAccuraciesResponse.Evaluation(
                trial=self.name(trial),
                accuracies=event_pb2.LengthAccuracies(
                    final=True, lengths=[1, 2, 3], accuracies=[0] * 3, losses=losses
                ),
            )
        )

    def test_medians_are_divided_by_scale(self):
        self.add([("standard", 1), ("standard", 2), ("standard", 3), ("positional", 1)])
        self.server.evaluations.clear()
        for seed, losses in enumerate(([1, 20, 4000], [1, 40, 2000], [1, 90, 1000]), 1):
            self.add_losses(f"standard{seed}", losses)
        self.add_losses("positional1", [1, 0.1, 0.5])
        rows = self.rows("loss_ratios", EXPERIMENT, "--reference", "standard")
        self.assertEqual([row["scale"] for row in rows], [2, 3], "scale 1 was seen in training")
        self.assertEqual([row["network"] for row in rows], ["positional"] * 2)
        self.assertEqual([row["reference_loss"] for row in rows], [40, 2000])
        self.assertAlmostEqual(rows[0]["ratio"], 400, 9)
        self.assertAlmostEqual(rows[1]["ratio"], 4000, 9)
        ask = ("loss_ratios", EXPERIMENT, "--reference", "standard")
        self.assertEqual(self.run_command(*ask, "--compare", "positional_attention/figure_2"), 0, self.err)
        text = " ".join(self.out.split())
        # sqrt(400 4000)
        self.assertIn("Here: 1,265 to 1,265 times over 1 row", text)
        self.assertIn("Paper's text: 400 to 3,000 times, 1,000 on average", text)
        self.assert_refused(
            USAGE, "loss_ratios", EXPERIMENT, "--reference", "standart", saying='did you mean "standard"?'
        )
        self.specification("positional1").training.examples = 5000
        self.assert_refused(FAILURE, *ask, saying="nothing was evaluated beyond training beside standard")
        self.assert_refused(USAGE, *ask, "--compare", "lst_pe_init/table_3", saying="lst_pe_init/table_3 has no losses")
        self.assert_refused(
            FAILURE, "speed", EXPERIMENT, saying="are compared by their losses: there is no accuracy to be reached"
        )

    # "400 to 3,000 times", and 1,000 on average.
    def test_the_papers_table_reproduces_its_text(self):
        table = published.find("positional_attention/figure_2")
        cells = {(table.rows[r].label, table.columns[c].length): value.value for (r, c), value in table.cells.items()}
        tasks = {row.label.rpartition(", ")[0] for row in table.rows}
        means = [
            loss_ratios.geometric_mean(
                [cells[f"{task}, standard", scale] / cells[f"{task}, positional", scale] for scale in range(2, 11)]
            )
            for task in tasks
        ]
        self.assertEqual(len(means), 5)
        self.assertAlmostEqual(min(means), table.loss_ratio["smallest"], delta=10)
        self.assertAlmostEqual(max(means), table.loss_ratio["largest"], delta=10)
        self.assertAlmostEqual(loss_ratios.geometric_mean(means), table.loss_ratio["mean"], delta=30)


if __name__ == "__main__":
    unittest.main()
