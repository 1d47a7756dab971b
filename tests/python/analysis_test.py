"""`lengthwise analyze` of trials whose maps, models and scores are given, against numbers worked by hand; the figures of its
analyses; and the measures that it is made of.
"""
import csv
import io
import json
import math
import os
import pathlib
import subprocess
import unittest

import matplotlib.text
import numpy
import safetensors.numpy
import service
from fake_server import FakeServer
from lengthwise import command_line, plots, published
from lengthwise._proto import catalogue_service_pb2, event_pb2, experiment_service_pb2
from lengthwise.analyses import (
    Analyses,
    carries,
    encoding_distance,
    human_comparison,
    latin_square,
    loss_ratios,
    measures,
    trial_sets,
)
from lengthwise.analyses.attention_similarity import AttentionComparison, AttentionSimilarity, SimilarityMatrix
from lengthwise.analyses.encoding_distance import EncodingDistance, EncodingDistances
from lengthwise.analyses.encoding_tables import FixedEncoding, fixed_encoding
from lengthwise.analyses.ground_truth import AttentionShares, GroundTruthAttention
from lengthwise.analyses.human_comparison import HumanComparison
from lengthwise.analyses.noise_curves import NoiseCurve
from lengthwise.errors import LengthwiseError, UsageError
from lengthwise.plots import analysis_figures as figures
from lengthwise.plots import data, domain_bound, drawing
from lengthwise.plots.catalogue import Catalogue
from lengthwise.plots.options import Options

EXPERIMENT = "e-1"
FAILURE, USAGE = command_line.FAILURE, command_line.USAGE


def puzzle_parameters(specification):
    for name, value in {"training_puzzles": 12, "held_out_puzzles": 0, "validation_puzzles": 9}.items():
        specification.task.parameters[name].number_value = value


def encoding_entry(name, **defaults):
    entry = catalogue_service_pb2.CatalogueEntry(kind=catalogue_service_pb2.ENCODING, name=name)
    for parameter, value in defaults.items():
        added = entry.parameters.add(name=parameter)
        if isinstance(value, bool):
            added.default_value.bool_value = value
        else:
            added.default_value.number_value = value
    return entry


ENCODINGS = [
    encoding_entry("sin_cos", randomized=False, interleaved=False),
    encoding_entry("sin_cos_2d", columns=4),
    encoding_entry("rope"),
    encoding_entry("learned"),
]


class AnalysisTest(unittest.TestCase):
    def setUp(self):
        self.server = FakeServer()
        self.addCleanup(self.server.close)
        self.server.entries += ENCODINGS
        self.out = ""

    def add(self, trials, experiment=EXPERIMENT):
        """Trials that have succeeded: (label, seed, and more), of latin_square with nine validation puzzles."""
        self.server.add_experiment(experiment, [])
        for index, (label, seed, *more) in enumerate(trials):
            given = {"name": "learned", "accuracy": 0.5, "optimizer": "adam", "stddev": 1.0, **(more[0] if more else {})}
            trial = experiment_service_pb2.Trial(
                name=self.name(f"{label}{seed}", experiment), index=index, state=event_pb2.SUCCEEDED
            )
            specification = trial.specification
            specification.task.name = "latin_square"
            puzzle_parameters(specification)
            specification.network.name = "layerwise_encoder"
            specification.encoding.name, specification.encoding.label = given["name"], label
            specification.encoding.parameters["stddev"].number_value = given["stddev"]
            specification.training.optimizer.name = given["optimizer"]
            specification.learning_rate = given.get("rate", 1e-4)
            specification.weight_seed = specification.data_seed = seed
            self.server.trials[trial.name] = trial
            self.server.evaluations.append(
                experiment_service_pb2.QueryLengthAccuraciesResponse.Evaluation(
                    trial=trial.name,
                    accuracies=event_pb2.LengthAccuracies(final=True, lengths=[1], accuracies=[given["accuracy"]]),
                )
            )

    @staticmethod
    def name(trial, experiment=EXPERIMENT):
        return f"experiments/{experiment}/trials/latin_square-{trial}"

    def specification(self, trial):
        return self.server.trials[self.name(trial)].specification

    def add_map(self, trial, probabilities, first_token=1):
        """Of two tokens in one layer with one head; rows are queries."""
        self.server.maps.setdefault(self.name(trial), []).append(
            event_pb2.AttentionMap(
                length=1, layers=1, heads=1, tokens=[first_token, 5],
                probabilities=numpy.array(probabilities, "<f4").tobytes(),
            )
        )  # fmt: skip

    def add_puzzle_map(self, trial, puzzle, length, asked, attention):
        """Of a puzzle in two layers with one head. Every cell attends to all alike, but the cell `asked` in the second
        layer, whose attention is given.
        """
        probabilities = numpy.full((2, 16, 16), 1 / 16, "<f4")
        probabilities[1, asked] = [attention.get(key, 0) for key in range(16)]
        self.server.maps.setdefault(self.name(trial), []).append(
            event_pb2.AttentionMap(
                length=length, layers=2, heads=1, tokens=map(int, puzzle), probabilities=probabilities.tobytes()
            )
        )

    def run_command(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        code = command_line.main(["analyze", *arguments, "--server", self.server.address], out, err)
        self.out, self.err = out.getvalue(), err.getvalue()
        return code

    def assert_refused(self, code, *arguments, saying):
        self.assertEqual(self.run_command(*arguments), code, self.err)
        self.assertIn(saying, self.err)
        self.assertEqual(self.err.count("\n"), 1)

    def rows(self, *arguments):
        """As JSON."""
        self.assertEqual(self.run_command(*arguments, "--output", "json"), 0, self.err)
        return json.loads(self.out)

    def by_encoding(self, *arguments):
        return {row["encoding"]: row for row in self.rows(*arguments)}

    def analyses(self, *experiments):
        return Analyses(data.fetch(self.server.connection, experiments or [EXPERIMENT]))


class AttentionTest(AnalysisTest):
    def test_all_pairs_with_the_reference_are_compared(self):
        self.add([("ground", 1), ("ground", 2), ("near", 1), ("far", 1), ("blind", 1)])
        for trial in ("ground1", "ground2", "near1"):
            self.add_map(trial, [1, 0, 0.25, 0.75])
        self.add_map("far1", [0.5] * 4)
        rows = self.by_encoding("attention", EXPERIMENT, "--reference", "ground")
        self.assertEqual(len(rows), 3)
        self.assertAlmostEqual(rows["near"]["cosine"], 1, 12)
        self.assertEqual(rows["near"]["pairs"], 2)
        # (1 0.5 + 0.25 0.5 + 0.75 0.5) / (sqrt(1 + 0.0625 + 0.5625) 1)
        self.assertAlmostEqual(rows["far"]["cosine"], 1 / math.sqrt(1.625), 12)
        self.assertEqual(rows["far"]["models"], 1)
        self.assertEqual(rows["ground"]["pairs"], 1, "one pair of different seeds")
        self.assertAlmostEqual(rows["ground"]["cosine"], 1, 12)

        rows = self.by_encoding("attention", EXPERIMENT, "--reference", "ground", "--measure", "js")
        # Of the rows (1, 0) and (0.25, 0.75) from (0.5, 0.5), by the definition.
        first = 0.5 * math.log(4 / 3) + 0.25 * math.log(2 / 3) + 0.25 * math.log(2)
        second = (
            0.125 * math.log(2 / 3) + 0.375 * math.log(1.2) + 0.25 * math.log(4 / 3) + 0.25 * math.log(0.8)
        )
        self.assertAlmostEqual(rows["far"]["divergence"], (first + second) / 2, 12)

        self.assertEqual(self.run_command("attention", EXPERIMENT, "--reference", "ground"), 0)
        self.assertIn("(1 sequence, 1 layer)", self.out)
        self.assertIn("Without attention maps: blind.", self.out)
        self.assertIn("0.784", self.out)

    def test_any_two_encodings_are_compared(self):
        self.add([("ground", 1), ("ground", 2), ("near", 1), ("far", 1), ("blind", 1)])
        for trial in ("ground1", "ground2", "near1"):
            self.add_map(trial, [1, 0, 0.25, 0.75])
        self.add_map("far1", [0.5] * 4)
        for measure, name, of_alike in (("cosine", "cosine", 1), ("js", "divergence", 0)):
            rows = self.rows("attention_matrix", EXPERIMENT, "--measure", measure)
            found = {(row["encoding"], row["other"]): row for row in rows}
            self.assertEqual(len(found), 9)
            self.assertAlmostEqual(found["ground", "near"][name], of_alike, 12)
            self.assertEqual(found["near", "ground"]["pairs"], 2)
            self.assertEqual(found["ground", "ground"]["pairs"], 1)
            self.assertIsNone(found["far", "far"][name], "one model has nobody to be paired with")
            beside = self.by_encoding("attention", EXPERIMENT, "--reference", "near", "--measure", measure)
            self.assertAlmostEqual(found["far", "near"][name], beside["far"][name], 12)
        self.assertEqual(self.run_command("attention_matrix", EXPERIMENT), 0)
        self.assertIn("far      │  0.784  0.784      –", self.out)

    def test_models_of_the_reference_alone_are_no_comparison(self):
        self.add([("ground", 1), ("other", 1)])
        ask = ("attention", EXPERIMENT, "--reference", "ground")
        self.assert_refused(
            FAILURE, *ask,
            saying="no trial of ground has attention maps; record them with evaluation.attention_lengths",
        )  # fmt: skip
        self.assert_refused(FAILURE, "attention_matrix", EXPERIMENT, saying="fewer than two encodings have attention maps;")
        self.add_map("ground1", [1, 0, 0, 1])
        self.assert_refused(FAILURE, *ask, saying="only ground has attention maps; record them with")
        self.assertIn("--attention_sequences N", self.err)
        self.add_map("other1", [1, 0, 0, 1], first_token=2)
        self.assert_refused(FAILURE, *ask, saying="these are not the same")
        self.assert_refused(FAILURE, "attention_matrix", EXPERIMENT, saying="these are not the same")
        self.assert_refused(
            USAGE, "attention", EXPERIMENT, "--reference", "grund",
            saying='did you mean "ground"?; there are ground, other',
        )  # fmt: skip

    def test_a_damaged_map_is_told(self):
        self.add([("ground", 1), ("other", 1)])
        self.add_map("ground1", [1, 0, 0])
        self.assert_refused(
            FAILURE, "attention", EXPERIMENT, "--reference", "ground", saying="do not have the size of their shape"
        )

    def test_published_values_stand_beside(self):
        self.add([("ground", 1, {"name": "sin_cos_2d"}), ("learn_0.2", 1, {"stddev": 0.2})])
        for trial in ("ground1", "learn_0.21"):
            self.add_map(trial, [1, 0, 0, 1])
        ask = ("attention", EXPERIMENT, "--reference", "ground", "--compare")
        rows = self.by_encoding(*ask, "lst_pe_init/table_3")
        self.assertEqual(rows["learn_0.2"]["published"], 0.838, "as the paper prints them")
        self.assertEqual(rows["learn_0.2"]["published_deviation"], 0.016)
        self.assertIsNone(rows["ground"]["published"])
        self.assertEqual(self.run_command(*ask, "lst_pe_init/table_3"), 0)
        self.assertIn(
            "Over the encodings of Table 3: ρ = 0.96 over the 20 that the paper prints, with the accuracies of Table 2, and "
            "0.96 in its text.",
            " ".join(self.out.split()),
        )
        self.assert_refused(
            USAGE, *ask, "lst_pe_init/table_2", saying="lst_pe_init/table_2 has no cosines of attention maps"
        )
        self.assert_refused(
            USAGE, *ask, "lst_pe_init/table_3", "--measure", "js", saying="lst_pe_init/table_3 has no divergences"
        )


class GroundTruthTest(AnalysisTest):
    # Settled by cells 1 to 3, and by 1, 4, 6, 7, 9 and 13.
    ROW, CROSS = "5124000000000000", "0400250300000000"

    def test_attention_is_held_against_the_cells_that_settle_a_puzzle(self):
        self.add([("near", 1, {"accuracy": 0.75}), ("near", 2, {"accuracy": 0.25}), ("blind", 1)])
        self.assert_refused(
            FAILURE, "ground_truth", EXPERIMENT, saying="has attention maps; record them with evaluation."
        )
        self.add_puzzle_map("near1", self.ROW, 1, 0, {0: 0.25, 1: 0.5, 3: 0.25})
        self.add_puzzle_map("near1", self.CROSS, 2, 5, {13: 1})
        self.add_puzzle_map("near2", self.ROW, 1, 0, {0: 0.5, 1: 0.25, 15: 0.25})
        self.add_puzzle_map("near2", self.CROSS, 2, 5, {5: 1})
        rows = self.rows("ground_truth", EXPERIMENT)
        self.assertEqual(len(rows), 4, "two layers, two lengths, and none of the model without maps")
        self.assertEqual((rows[0]["layer"], rows[0]["length"]), (1, 1))
        self.assertAlmostEqual(rows[0]["share"], 3 / 16, 7)
        self.assertAlmostEqual(rows[0]["even_share"], 3 / 16, 12)
        self.assertAlmostEqual(rows[1]["share"], 6 / 16, 7)
        self.assertEqual(rows[2]["layer"], 2)
        self.assertAlmostEqual(rows[2]["share"], 0.5, 7, "0.75 and 0.25")
        self.assertAlmostEqual(rows[2]["share_deviation"], 0.5 / math.sqrt(2), 7)
        self.assertAlmostEqual(rows[3]["share"], 0.5, 7, "1 and 0")
        self.assertEqual((rows[3]["models"], rows[3]["puzzles"]), (2, 1))
        self.assertEqual(self.run_command("ground_truth", EXPERIMENT), 0)
        # Of the models' means over both puzzles, 0.875 and 0.125.
        self.assertIn("50.0 ± 35.4 │ 28.1 │ 28.1 ± 0.0  50.0 ± 53.0 │      2\n", self.out)
        self.assertIn("(2 puzzles)", self.out)

    def test_only_tasks_with_puzzles_have_a_ground_truth(self):
        self.add([("near", 1)])
        self.specification("near1").task.name = "bucket_sort"
        self.assert_refused(
            FAILURE, "ground_truth", EXPERIMENT, saying="learns bucket_sort, which has no puzzles"
        )

    def test_seeds_that_saw_other_puzzles_are_not_averaged(self):
        self.add([("near", 1), ("near", 2)])
        self.add_puzzle_map("near1", "5124000000000000", 1, 0, {0: 1})
        self.add_puzzle_map("near2", "1524000000000000", 1, 1, {0: 1})
        self.assert_refused(
            FAILURE, "ground_truth", EXPERIMENT,
            saying="are of other puzzles or layers than those of other seeds of near",
        )  # fmt: skip

    # As of tasks/latin_square/deduction_test.cc and latin_square_test.cc.
    def test_evidence_is_what_the_rules_relate(self):
        def of(puzzle):
            return latin_square.evidence_of([int(digit) for digit in puzzle])

        evidence = of(self.CROSS)
        self.assertEqual((evidence.asked, evidence.cells), (5, (1, 4, 6, 7, 9, 13)))
        for puzzle, vectors, symbol, cells in (
            ("5124000000000000", 1, 3, 3),
            ("5000400020003000", 1, 1, 3),
            ("5124100020004000", 1, 3, 3),
            ("0400250000000300", 2, 1, 6),
            ("1500002000020000", 3, 2, 9),
            ("5000030000300003", 3, 3, 12),
            ("1000500002000020", 3, 2, 9),
            ("5000040000400004", 3, 4, 12),
            ("5400030000300003", 3, 3, 9),
            ("5120030000300003", 3, 3, 12),
        ):
            found = of(puzzle)
            self.assertEqual((found.vectors, found.symbol, len(found.cells)), (vectors, symbol, cells), puzzle)
        # The columns of the row's two blanks, and not that of its clue.
        for puzzle, read in (
            ("5124000000000000", "0111000000000000"),
            ("0400250300000000", "0100101101000100"),
            ("1500002000020000", "1011001100110011"),
            ("5000030000300003", "0111011101110111"),
            ("1000500002000020", "1000000011111111"),
        ):
            cells = of(puzzle).cells
            self.assertEqual("".join("01"[cell in cells] for cell in range(16)), read)
        for puzzle in ("0000050000000000", "5001030000303000", "5120000300000000"):
            with self.assertRaisesRegex(ValueError, "no rule settles the target of"):
                of(puzzle)
        with self.assertRaisesRegex(ValueError, "it has 2 characters"):
            of("11")
        with self.assertRaisesRegex(ValueError, "symbol 1 is twice in a row or column"):
            of("5110000000000000")


    def test_rules_are_those_that_puzzles_are_made_by(self):
        done = subprocess.run(
            [pathlib.Path(service.CLIENT).resolve(), "sample", "latin_square", "--count", "600", "--output", "csv",
             "--set", "training_puzzles=600", "--set", "held_out_puzzles=0"],
            env=service.ENVIRONMENT, capture_output=True, text=True, check=True, timeout=service.DEADLINE,
        )  # fmt: skip
        puzzles = list(csv.DictReader(io.StringIO(done.stdout)))
        self.assertEqual(len(puzzles), 600)
        for puzzle in puzzles:
            found = latin_square.evidence_of([int(digit) for digit in puzzle["puzzle"]])
            self.assertEqual((found.symbol, found.vectors), (int(puzzle["answer"]), int(puzzle["condition"])), puzzle)
            # Nothing else has to be read.
            read = [int(puzzle["puzzle"][cell]) if cell in (*found.cells, found.asked) else 0 for cell in range(16)]
            self.assertEqual(latin_square.evidence_of(read).symbol, found.symbol)
            # Three cells of one line, six of two, and of a line with two or three that cross it.
            self.assertIn(len(found.cells), {1: (3,), 2: (6,), 3: (9, 12)}[found.vectors])


def model(tables):
    """With these tables, one for each block."""
    tensors = {f"parameters/blocks.{b}.encoding.table": numpy.array(table, "<f4") for b, table in enumerate(tables)}
    tensors["parameters/embedding"] = numpy.array([[1], [2]], "<f4")
    return safetensors.numpy.save(tensors)


class EncodingsTest(AnalysisTest):
    def set_model(self, trial, tables):
        import hashlib

        stored = model(tables)
        self.server.set_model(self.name(trial), stored, hashlib.sha256(stored).hexdigest())

    def test_learned_tables_are_measured_up_to_a_rotation(self):
        self.add([("small", 1), ("small", 2), ("rope", 1, {"name": "rope"}), ("2d", 1, {"name": "sin_cos_2d"})])
        # Rows 0 to 2 of sin_cos with d = 4, with features exchanged and one turned round.
        turned = [[math.cos(p / 100), -math.sin(p), math.cos(p), math.sin(p / 100)] for p in range(3)]
        zeros = numpy.zeros((3, 4))
        self.set_model("small1", [turned, zeros])
        self.set_model("small2", [zeros, zeros])
        rows = self.by_encoding("encodings", EXPERIMENT, "--reference", "sin_cos")
        self.assertEqual(list(rows), ["small"])
        # A row of sines and cosines has the norm sqrt(2): from zeros the distance is sqrt(3 2).
        far = math.sqrt(6)
        self.assertAlmostEqual(rows["small"]["first_block"], far / 2, delta=2e-3)
        self.assertAlmostEqual(rows["small"]["all_blocks"], (far / 2 + far) / 2, delta=1e-3)
        self.assertEqual(rows["small"]["models"], 2)
        self.assertEqual(self.run_command("encodings", EXPERIMENT, "--reference", "sin_cos"), 0)
        self.assertIn("Without a learned table: 2d, rope.", self.out)
        # Of 12 numbers.
        self.assertIn("learned ones before training 0.00 ± 0.29", " ".join(self.out.split()))
        self.assert_refused(
            USAGE, "encodings", EXPERIMENT, "--reference", "rope",
            saying='"rope" is no encoding with a fixed table; give sin_cos or',
        )  # fmt: skip

    def test_blocks_are_taken_in_their_order(self):
        self.add([("small", 1)])
        # The third of eleven, which stands behind the eleventh in the alphabet.
        tables = [numpy.zeros((3, 4)) for _ in range(11)]
        tables[2] = FixedEncoding("sin_cos").table(3, 4)
        self.set_model("small1", tables)
        subject = trial_sets.subject_of(data.fetch(self.server.connection, [EXPERIMENT]))
        (found,) = encoding_distance.measure(subject, FixedEncoding("sin_cos")).models
        far = math.sqrt(6)
        numpy.testing.assert_allclose(found.blocks, [far, far, 0, *[far] * 8], atol=1e-6)
        self.assertAlmostEqual(found.cosines[2], 1, 6)
        (row,) = self.rows("encodings", EXPERIMENT, "--reference", "sin_cos")
        self.assertAlmostEqual(row["first_block"], far, 6)
        self.assertIsNone(row["cosine"], "zeros have no direction")

    def test_a_model_that_is_not_kept_is_said_to_be_missing(self):
        self.add([("small", 1)])
        self.assert_refused(FAILURE, "encodings", EXPERIMENT, "--reference", "sin_cos", saying=self.name("small1"))

    # The baseline that the paper states: sixteen cells, d = 160.
    def test_one_and_two_dimensions_are_as_alike_as_the_paper_says(self):
        line, grid = FixedEncoding("sin_cos", interleaved=True), FixedEncoding("sin_cos_2d")
        self.assertAlmostEqual(measures.cosine_similarity(line.table(16, 160), grid.table(16, 160)), 0.72, delta=0.006)

    # //tests/golden holds the encodings themselves against them.
    def test_fixed_tables_are_the_formulas(self):
        def feature(position, i, d, interleaved):
            frequency = i // 2 if interleaved else i % (d // 2)
            is_sine = i % 2 == 0 if interleaved else i < d // 2
            angle = position * 10000 ** (-2 * frequency / d)
            return math.sin(angle) if is_sine else math.cos(angle)

        for interleaved in (False, True):
            table = FixedEncoding("sin_cos", interleaved).table(23, 20)
            for position, i in numpy.ndindex(table.shape):
                self.assertAlmostEqual(table[position, i], feature(position, i, 20, interleaved), 12)
        for columns in (4, 7):
            table = FixedEncoding("sin_cos_2d", columns=columns).table(23, 20)
            for position, i in numpy.ndindex(table.shape):
                place = position % columns if i < 10 else position // columns
                self.assertAlmostEqual(table[position, i], feature(place, i % 10, 10, True), 12)

    def test_other_encodings_have_no_fixed_table(self):
        catalogue = Catalogue(encodings={entry.name: entry for entry in ENCODINGS})
        component = experiment_service_pb2.Trial().specification.encoding
        component.name = "learned"
        self.assertIsNone(fixed_encoding(component, catalogue))
        component.name = "sin_cos_2d"
        self.assertEqual(fixed_encoding(component, catalogue), FixedEncoding("sin_cos_2d", columns=4))
        component.name = "sin_cos"
        component.parameters["interleaved"].bool_value = True
        self.assertEqual(fixed_encoding(component, catalogue), FixedEncoding("sin_cos", interleaved=True, columns=0))
        component.parameters["randomized"].bool_value = True
        self.assertIsNone(fixed_encoding(component, catalogue), "its positions are drawn")


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

    def test_a_model_that_was_evaluated_again_counts_once(self):
        self.add([("small", 1, {"accuracy": 0.9})], "a-1")
        self.add([("small", 1, {"accuracy": 0.9})], "a_evaluation-1")
        self.add_noise("small1", [0.1], [0.5], "a_evaluation-1")
        self.assertEqual(self.by_encoding("noise", "a-1", "a_evaluation-1")["small"]["models"], 1)
        self.add_noise("small1", [0.1], [0.25], "a-1")
        row = self.by_encoding("noise", "a-1", "a_evaluation-1")["small"]
        self.assertEqual(row["models"], 1)
        self.assertEqual(row["accuracy"], 0.25, "that of the experiment that is named first")

    def test_encodings_of_one_label_with_other_parameters_are_not_averaged(self):
        self.add([("learned", 1, {"stddev": 0.2})], "narrow-1")
        self.add([("learned", 2, {"stddev": 2.0})], "wide-1")
        self.add_noise("learned1", [0.1], [0.5], "narrow-1")
        self.add_noise("learned2", [0.1], [0.25], "wide-1")
        self.assertEqual(self.run_command("noise", "narrow-1", "wide-1"), 0, self.err)
        self.assertIn("narrow-1    learned", self.out)
        self.assertIn("wide-1      learned", self.out)
        self.assertNotIn("±", self.out)

    def test_what_has_not_succeeded_is_not_analyzed(self):
        self.add([("small", 1)])
        self.server.trials[self.name("small1")].state = event_pb2.RUNNING
        self.assert_refused(
            FAILURE, "noise", EXPERIMENT, saying="no trial of e-1 has succeeded yet: nothing to analyze"
        )


class HumansTest(AnalysisTest):
    def setUp(self):
        super().setUp()
        os.environ["LENGTHWISE_CLIENT_BINARY"] = str(pathlib.Path(service.CLIENT).resolve())
        self.addCleanup(os.environ.pop, "LENGTHWISE_CLIENT_BINARY", None)
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
        # People on the three puzzles of one vector, in another order.
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
        with self.assertRaisesRegex(UsageError, "is not a regular file"):
            latin_square.read_human_accuracies(self.directory)

    def test_files_of_puzzles_must_be_within_reach(self):
        self.add([("small", 1)])
        self.add_scores("small1", 1, [1])
        self.specification("small1").task.parameters["validation_file"].string_value = "absent.json"
        people = self.people("people.json", [{"puzzle": "5124000000000000", "human_accuracy": 0.5}])
        self.assert_refused(
            FAILURE, "humans", EXPERIMENT, "--file", people, saying="files of puzzles must be within this command's reach"
        )

    # The file of the 108 puzzles that people solved, which is no part of this repository.
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
        # A model that solves the puzzles which more than four in five people do.
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


class SeedsTest(AnalysisTest):
    def test_seeds_are_tested_in_pairs(self):
        # The differences 0.2, 0.2 and 0.1 of one seed each give no t; 0.1, 0.2 and 0.3 have t = 2 sqrt(3).
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
        # 0.2 with t of 0.975 and 2 degrees of freedom, 4.30265, times 0.1 / sqrt(3).
        self.assertAlmostEqual(rows["small"]["difference"], 0.2, 12)
        self.assertAlmostEqual(rows["small"]["difference_low"], 0.2 - 4.302652729911275 * 0.1 / math.sqrt(3), 9)
        self.assertAlmostEqual(rows["small"]["difference_high"], 0.2 + 4.302652729911275 * 0.1 / math.sqrt(3), 9)
        self.assertIsNone(rows["once"]["t"])
        self.assertNotIn("ground", rows)
        self.assertEqual(self.run_command("t_test", EXPERIMENT, "--reference", "ground"), 0)
        self.assertIn("3.46", self.out)
        self.assertIn("a test needs at least two seeds", self.out)

    def test_a_notebook_has_a_frame(self):
        self.add([("ground", seed, {"name": "sin_cos_2d", "accuracy": 0.5 + seed / 10}) for seed in (1, 2)])
        self.add([("small", seed, {"accuracy": 0.5}) for seed in (1, 2)], "b-1")
        frame = self.analyses(EXPERIMENT, "b-1").t_test(reference="ground")
        self.assertEqual(frame["encoding"].tolist(), ["small"])
        # The differences 0.1 and 0.2: 0.15 / (0.0707 / sqrt(2)).
        self.assertAlmostEqual(frame["t"][0], 3, 9)
        self.assertIn("Paired t-tests of ground", frame.attrs["caption"])
        self.assertIn("p is two-sided", frame.attrs["remarks"][0])
        with self.assertRaises(LengthwiseError):
            self.analyses(EXPERIMENT).t_test(reference="ground")

    # As a loop of `lengthwise evaluate` over an experiment's trials makes them.
    def test_several_experiments_are_analyzed_as_one(self):
        self.add([("ground", 1, {"name": "sin_cos_2d"})], "a-1")
        self.add([("small", 1)], "b-1")
        self.assertEqual(list(self.by_encoding("t_test", "a-1", "b-1", "--reference", "ground")), ["small"])

    # As experiments/latin_square/table1.yaml and table6.yaml: the same labels, rate and seeds.
    def test_what_was_trained_otherwise_under_the_same_labels_has_its_own_row(self):
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

    def test_how_often_something_was_written_down_makes_no_other_set(self):
        self.add([("small", 1), ("small", 2)])
        self.specification("small2").training.report_every_steps = 7
        self.specification("small2").training.checkpoint_every_steps = 9
        (only,) = trial_sets.subject_of(data.fetch(self.server.connection, [EXPERIMENT])).sets
        self.assertEqual(len(only.trials), 2)


class CarriesTest(AnalysisTest):
    def test_probabilities_are_those_of_random_operands(self):
        self.assertEqual(carries.carry_probabilities(1, False).tolist(), [0, 0.45])
        # Of the second of two digits, 1 to 9: 45 of 81 pairs make ten or more, 8 make nine.
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

    def test_errors_are_held_against_what_chance_gives(self):
        self.add_sums()
        rows = self.rows("carries", EXPERIMENT)
        self.assertEqual([row["place"] for row in rows], [0, 1, 2])
        self.assertEqual([row["first_wrong_with_carry"] for row in rows], [0, 2, 0])
        self.assertEqual([row["first_wrong_without_carry"] for row in rows], [1, 0, 0])
        self.assertEqual(rows[0]["answers"], 20)
        # 19 of 20 are right up to place 1, of which 0.45 have a carry into it.
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

    def add_chains(self):
        self.add_sums()
        for seed, places, wrong in ((1, [12, 6], [1, 2]), (2, [10, 5, 1], [0, 1, 1])):
            errors = event_pb2.AnswerErrors(length=2, answers=10, places_by_carry=places, wrong_by_carry=wrong)
            self.server.analyses.append(event_pb2.Event(trial=self.name(f"fire{seed}"), answer_errors=errors))

    def test_accuracy_by_the_way_of_the_carry_is_beside_its_base_rate(self):
        self.add_chains()
        rows = self.rows("carry_chains", EXPERIMENT)
        self.assertEqual([row["distance"] for row in rows], [0, 1, 2])
        self.assertEqual([row["places"] for row in rows], [22, 11, 1])
        self.assertEqual([row["wrong"] for row in rows], [1, 3, 1])
        for row, accuracy, base_rate in zip(rows, (21 / 22, 8 / 11, 0), (22 / 34, 11 / 34, 1 / 34)):
            self.assertAlmostEqual(row["accuracy"], accuracy, 12)
            self.assertAlmostEqual(row["base_rate"], base_rate, 12)
        # Wilson's interval of 8 of 11, by hand: (8 + z^2 / 2 -+ z sqrt(8 * 3 / 11 + z^2 / 4)) / (11 + z^2), z = 1.95996.
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

    def test_the_picture_of_carries_ways_has_the_base_rate(self):
        self.add_chains()
        subject = trial_sets.subject_of(data.fetch(self.server.connection, [EXPERIMENT]))
        picture = figures.chains_picture(subject, carries.measure_chains(subject))
        accuracy, share = picture.panels[0].series
        self.assertEqual((list(accuracy.x), list(share.x)), ([0, 1, 2], [0, 1, 2]))
        numpy.testing.assert_allclose(accuracy.y, [21 / 22, 8 / 11, 0], atol=1e-12)
        numpy.testing.assert_allclose(share.y, [22 / 34, 11 / 34, 1 / 34])
        self.assertEqual((accuracy.name, share.name, share.faint), ("fire", "share of all places", True))

    def test_earlier_workers_have_not_recorded_carries_ways(self):
        self.add_sums()
        event = event_pb2.Event(trial=self.name("fire1"), answer_errors=event_pb2.AnswerErrors(length=2, answers=10))
        self.server.analyses.append(event)
        self.assert_refused(FAILURE, "carry_chains", EXPERIMENT, saying="has recorded how far carries came")

    def test_only_sums_have_carries(self):
        self.add([("small", 1)])
        self.assert_refused(FAILURE, "carries", EXPERIMENT, saying="has scores of single answers to sums; set evaluation.")


class SpeedTest(AnalysisTest):
    def add_times(self, trial, steps, seconds, reached):
        """Accuracies on an unseen length by the seconds of training."""
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

    def test_trials_of_other_lengths_are_not_the_papers(self):
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
    def test_the_papers_table_gives_what_its_text_says(self):
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
        self.assertAlmostEqual(min(means), table.loss_ratio.smallest, delta=10)
        self.assertAlmostEqual(max(means), table.loss_ratio.largest, delta=10)
        self.assertAlmostEqual(loss_ratios.geometric_mean(means), table.loss_ratio.mean, delta=30)


class FiguresTest(unittest.TestCase):
    """What the figures of analyses draw: data, not pixels."""

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

    def subject(self):
        return trial_sets.subject_of([self.experiment])

    def test_noise_is_a_line_for_each_encoding_with_a_band(self):
        subject = self.subject()
        picture = figures.noise_picture(
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
        # Of "small", rates with means 0.8 (there already) and 0.95; of "large", 0.3 and 0.1.
        self.add("small", 3, 0.95, 0.01)
        self.add("large", 2, 0.1, 0.01)
        subject = self.subject()
        self.assertEqual(len(subject.sets), 5)
        curves = [NoiseCurve(one, {0: [float(i)]}) for i, one in enumerate(subject.sets)]
        comparison = AttentionComparison(
            [AttentionSimilarity(one, means=[(one.trials[0], float(i))]) for i, one in enumerate(subject.sets)], 4, 2
        )
        noise = figures.noise_picture(subject, curves)
        similarity = figures.similarity_picture(subject, comparison, "ground")
        # In the order of the sets: small, large and ground at the first rate, then small and large at the second.
        drawn = [(one.name, one.y[0]) for one in noise.panels[0].series]
        self.assertEqual(drawn, [("large", 1), ("ground", 2), ("small", 3)])
        self.assertEqual([(one.name, one.x[0]) for one in similarity.panels[0].series], [("large", 1), ("small", 3)])
        for picture in (noise, similarity):
            self.assertIn("Each encoding has the learning rate with the highest", picture.caption)

    def test_twelve_series_look_different(self):
        for i in range(12):
            self.add(f"learn_{i}", 1, 0.5)
        subject = self.subject()
        picture = figures.noise_picture(subject, [NoiseCurve(one, {0: [0.5]}) for one in subject.sets])
        looks = {(one.style.hex_color, one.style.dashes) for one in picture.panels[0].series}
        self.assertEqual(len(looks), 15)

    def test_distances_are_a_point_for_each_model(self):
        subject = self.subject()
        small, large = subject.sets[:2]
        distances = EncodingDistances([
            EncodingDistance(small, small.trials[0], [1, 9], [0, 0]),
            EncodingDistance(small, small.trials[1], [2, 9], [0, 0]),
            EncodingDistance(large, large.trials[0], [5, 9], [0, 0]),
        ])  # fmt: skip
        picture = figures.distance_picture(subject, distances, "2d_fixed")
        first, second = picture.panels[0].series
        self.assertEqual((first.kind, first.x, first.y[1]), ("scatter", [1, 2], 0.7))
        self.assertEqual(second.x, [5])
        self.assertIn("2d_fixed", picture.x.label)
        self.assertAlmostEqual(picture.x.range[0], 0.8, 12, "a twentieth beyond the points")
        self.assertAlmostEqual(picture.x.range[1], 5.2, 12)

    def test_the_ground_truth_stands_before_the_layers_of_each_encoding(self):
        subject = self.subject()

        def row(one, layers):
            maps = numpy.array([[[0.5, 0.5], [0, 0]], [[0.25, 0.75], [0, 0]]])[:layers]
            shares = AttentionShares(3, 0.5, numpy.array([[0.5, 0.5], [1, 0.5]])[:layers])
            return GroundTruthAttention(one, 2, numpy.array([[0, 1], [0, 0]]), maps, shares, {})

        picture = figures.ground_truth_picture(subject, [row(one, 2) for one in subject.sets[:2]])
        self.assertEqual((len(picture.panels), picture.columns), (6, 3))
        self.assertEqual(picture.row_titles, ["small", "large"])
        self.assertEqual(picture.panels[3].title, "ground truth (even: 50.0 %)")
        self.assertEqual(picture.panels[3].map.values.tolist(), [[0, 1], [0, 0]])
        self.assertEqual(picture.panels[5].title, "layer 2: 75.0 %", "the mean over the models")
        self.assertEqual(picture.panels[5].map.values[0, 1], 0.75)
        self.assertEqual(picture.map_maximum, 1)
        self.assertIn("the mean over 3 puzzles and the models", picture.caption)
        with self.assertRaises(UsageError):
            figures.ground_truth_picture(subject, [row(subject.sets[0], 2), row(subject.sets[1], 1)])
        with self.assertRaises(UsageError):
            figures.ground_truth_picture(subject, [row(subject.sets[0], 2)] * 17)

    def test_the_reference_is_not_compared_with_itself_in_the_picture(self):
        subject = self.subject()
        rows = [AttentionSimilarity(one, means=[(trial, 0.8) for trial in one.trials]) for one in subject.sets]
        picture = figures.similarity_picture(subject, AttentionComparison(rows, 108, 4), "ground")
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
        # The means of 0.7 and 0.5, and one of 0.25; without noise nothing is counted.
        numpy.testing.assert_allclose(bars.y, [0.6, 0.25])
        numpy.testing.assert_allclose(bars.high, [0.6 + 0.1 * math.sqrt(2), 0.25])
        self.assertEqual(len(subject.sets), 3)

    def test_people_and_models_are_a_panel_for_each_encoding(self):
        subject = self.subject()
        rows = [
            HumanComparison(one, 2, ["a", "b", "c"], [1, 0.5, 0], [1, 0.5, 0.25]) for one in subject.sets[:2]
        ]
        scatter = figures.human_scatter_picture(subject, rows)
        self.assertEqual([panel.title for panel in scatter.panels], ["small: ρ = 1.00", "large: ρ = 1.00"])
        self.assertEqual(scatter.panels[0].series[0].x, [1, 0.5, 0.25])
        self.assertEqual(scatter.panels[0].series[0].y, [1, 0.5, 0])
        scores = figures.human_scores_picture(subject, rows)
        cosine = 1.25 / math.sqrt(1.25 * 1.3125)
        self.assertEqual([panel.title for panel in scores.panels], ["cosine", "Spearman's rank correlation", "composite"])
        numpy.testing.assert_allclose([panel.series[0].y[0] for panel in scores.panels], [cosine, 1, (1 + cosine) / 2])
        with self.assertRaisesRegex(UsageError, "human_scores needs --people, a file of people's answers"):
            plots.describe("human_scores", [self.experiment])

    def test_a_matrix_has_the_names_of_its_encodings(self):
        subject = self.subject()
        values = numpy.array([[0.9, 0.5, 0.4], [0.5, numpy.nan, 0.3], [0.4, 0.3, 0.2]])
        picture = figures.matrix_picture(subject, SimilarityMatrix(subject.sets, values, numpy.ones((3, 3), int), 36, 2))
        self.assertEqual(picture.map_maximum, 0.9)
        figure = drawing.draw(picture)
        labels = {text.get_text() for text in figure.findobj(matplotlib.text.Text)}
        self.assertLessEqual({"small", "large", "ground", "0.90", "0.30"}, labels)
        self.assertNotIn("nan", labels)

    def test_carries_are_drawn_beside_their_base_rate(self):
        subject = self.subject()
        base = carries.carry_probabilities(2, False)
        row = carries.CarryErrors(subject.sets[0], 2, 2, 20, numpy.array([0, 2, 0.0]), numpy.array([1, 0, 0.0]), base)
        picture = figures.carries_picture(subject, [row])
        small, rate = picture.panels[0].series
        self.assertEqual((small.name, small.x, small.y), ("small", [1], [1]), "two errors at place 1, and none at 2")
        # Wilson's of two of two: 2 / (2 + 1.96^2) to 1.
        self.assertAlmostEqual(small.low[0], 2 / (2 + 1.959963984540054**2), 9)
        self.assertEqual((rate.x, rate.y), ([1, 2], base[1:].tolist()))
        self.assertIn("small 67 % (by chance 30 %)", picture.caption)
        # A hundred places in ten groups.
        wide = numpy.zeros(101)
        wide[[1, 10]] = 3, 1
        row = carries.CarryErrors(subject.sets[0], 100, 2, 20, wide, wide[::-1], carries.carry_probabilities(100, False))
        first, *others, last = row.groups(10)
        self.assertEqual((first.place, first.errors, first.with_carry, len(others)), (5.5, 4, 4, 8))
        self.assertEqual((last.errors, last.with_carry), (3, 0), "those at place 99")

    # What appendix D and section 6 say of their equations, as of tasks/numeric/in_domain_probability_test.cc.
    def test_the_bound_is_what_the_paper_says(self):
        self.assertLess(domain_bound.domain_bound(8, 3), 0.05)
        self.assertAlmostEqual(domain_bound.domain_bound(8, 10), 0.0034, delta=0.00005)
        self.assertLessEqual(domain_bound.domain_bound(2, 2, printed=True), 0.4375)
        self.assertGreater(domain_bound.domain_bound(2, 2, printed=True), 0.43)
        # The two integrals of appendix D for n = 2, without its estimates.
        exact = (1 - math.log(2)) / 2 + math.log(4 / 3) / 4
        self.assertLess(domain_bound.domain_bound(2, 3, printed=True), exact)
        self.assertGreater(domain_bound.domain_bound(2, 3), exact)
        self.assertEqual(domain_bound.domain_bound(2, 1.001), 1)
        for n, scale in ((1, 3), (8, 1), (8, math.nan), (8, math.inf)):
            with self.assertRaises(UsageError):
                domain_bound.domain_bound(n, scale)

    def test_the_bound_is_drawn_where_trials_are_evaluated(self):
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


class MeasuresTest(unittest.TestCase):
    """Against scipy.stats, scipy.spatial and scipy.linalg of SciPy 1.17.1, and formulas."""

    PEOPLE = [0.975, 0.95, 0.975, 0.4, 0.625, 0.4, 0.85, 0.775, 0.5]
    MODELS = [1, 0.93, 1, 0.6, 0.2, 0.53, 0.93, 0.8, 0.6]
    A = numpy.array([1, 2, 0, 0, -1, 3, 2, 2, 1, 4, 0, -1]).reshape(4, 3)
    B = numpy.array([0, 1, 1, 2, 0, -1, 1, 1, 0, 3, -2, 1]).reshape(4, 3)

    def test_correlations(self):
        spearman = measures.spearman_correlation(self.PEOPLE, self.MODELS)
        self.assertAlmostEqual(spearman.coefficient, 0.8808590390495851, 12)
        self.assertAlmostEqual(spearman.p_value, 0.0017074313481858763, 12)
        pearson = measures.pearson_correlation(self.PEOPLE, self.MODELS)
        self.assertAlmostEqual(pearson.coefficient, 0.7631827589060471, 12)
        self.assertAlmostEqual(pearson.p_value, 0.01673095038056711, 12)
        monotonous = measures.spearman_correlation([1, 2, 3, 4], [1, 8, 27, 1000])
        self.assertAlmostEqual(monotonous.coefficient, 1, 12)
        self.assertAlmostEqual(monotonous.p_value, 0, 12)
        self.assertAlmostEqual(measures.spearman_correlation([1, 2, 3, 4], [9, 7, 5, 1]).coefficient, -1, 12)

    def test_correlations_need_pairs_that_vary(self):
        self.assertIsNone(measures.pearson_correlation([1, 2], [1, 2]))
        self.assertIsNone(measures.spearman_correlation([1, 2, 3], [5, 5, 5]))
        with self.assertRaises(ValueError):
            measures.pearson_correlation([1, 2, 3], [1, 2])

    def test_paired_t_test(self):
        first = [0.993, 0.981, 0.999, 0.972, 0.990, 0.985]
        second = [0.991, 0.984, 0.990, 0.966, 0.975, 0.987]
        found = measures.paired_t_test(first, second)
        self.assertAlmostEqual(found.t, 1.5993419699495495, 10)
        self.assertEqual(found.degrees_of_freedom, 5)
        self.assertAlmostEqual(found.p_value, 0.1706398209597133, 10)
        other = measures.paired_t_test(second, first)
        self.assertEqual((other.t, other.p_value), (-found.t, found.p_value))
        self.assertIsNone(measures.paired_t_test([1], [1]))
        self.assertIsNone(measures.paired_t_test([1, 2], [2, 3]), "all differences are the same")
        with self.assertRaises(ValueError):
            measures.paired_t_test([1, 2], [1])

    def test_differences_that_are_the_same_but_for_rounding_give_no_test(self):
        self.assertIsNone(measures.paired_t_test([0.1, 0.2, 0.3], [0.0, 0.1, 0.2]))

    def test_procrustes_distance(self):
        self.assertAlmostEqual(measures.procrustes_distance(self.A, self.B), 3.168967086878937, 12)
        ones = numpy.ones((4, 3))
        self.assertAlmostEqual(measures.procrustes_distance(ones, self.A), 4.964383772683609, 12, "rank one")
        i, j = numpy.meshgrid(numpy.arange(16), numpy.arange(40), indexing="ij")
        a, b = numpy.sin(1 + i * 0.7 + j * j * 0.13), numpy.cos(0.3 * i * j)
        self.assertAlmostEqual(measures.procrustes_distance(a, b), 21.05515220160724, 11)
        c, s = math.cos(0.4), math.sin(0.4)
        turned = self.A @ numpy.array([[c, 0, s], [0, -1, 0], [-s, 0, c]])
        self.assertAlmostEqual(measures.procrustes_distance(self.A, turned), 0, 6)
        self.assertAlmostEqual(measures.procrustes_distance(numpy.zeros((4, 3)), self.B), math.sqrt(23), 12)
        with self.assertRaises(ValueError):
            measures.procrustes_distance(self.A, [[1.0]])
        with self.assertRaises(ValueError):
            measures.procrustes_distance([[math.inf]], [[1.0]])

    def test_cosine(self):
        self.assertAlmostEqual(measures.cosine_similarity([1, 2, 3, -4], [2, 0, -1, 5]), -0.7, 12)
        self.assertAlmostEqual(measures.cosine_similarity([1, 2], [10, 20]), 1, 12)
        self.assertEqual(measures.cosine_similarity([1, 0], [0, 3]), 0)
        with self.assertRaises(ValueError):
            measures.cosine_similarity([1, 2], [1])
        with self.assertRaises(ValueError):
            measures.cosine_similarity([0, 0], [1, 2])

    # scipy.spatial.distance.jensenshannon(p, q) ** 2.
    def test_jensen_shannon_divergence(self):
        found = measures.jensen_shannon_divergence([0.1, 0.2, 0.3, 0.4, 0], [0.25, 0.25, 0.25, 0, 0.25])
        self.assertAlmostEqual(float(found), 0.24440610724204642, 12)
        self.assertAlmostEqual(float(measures.jensen_shannon_divergence([1, 2, 3], [3, 2, 1])), 0.08720802396075801, 12)
        self.assertEqual(float(measures.jensen_shannon_divergence([0.2, 0.8], [0.2, 0.8])), 0)
        disjoint = measures.jensen_shannon_divergence([[1, 0, 0], [1, 0, 0]], [[0, 0.5, 0.5], [1, 0, 0]])
        self.assertAlmostEqual(disjoint[0], math.log(2), 14)
        self.assertEqual(disjoint[1], 0)
        for first, second in (([1, 2], [1]), ([1, -2], [1, 2]), ([0, 0], [1, 2]), ([1, math.nan], [1, 2])):
            with self.assertRaises(ValueError):
                measures.jensen_shannon_divergence(first, second)

    # 2 * scipy.stats.t.sf(0.962, 14), what Ito et al. print.
    def test_the_papers_t_has_its_p(self):
        import scipy.stats

        self.assertAlmostEqual(2 * scipy.stats.t.sf(0.962, 14), 0.35237186568802764, 12)


if __name__ == "__main__":
    unittest.main()
