"""Compares analyses of attention maps with numbers worked by hand."""
import csv
import io
import math
import pathlib
import subprocess
import unittest

import service
from analysis_fixture import EXPERIMENT, FAILURE, USAGE, AnalysisTest
from lengthwise.analyses import latin_square


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
        # The rows (1, 0) and (0.25, 0.75) against (0.5, 0.5), by the definition.
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
            self.assertIsNone(found["far", "far"][name], "a single model has no pair")
            beside = self.by_encoding("attention", EXPERIMENT, "--reference", "near", "--measure", measure)
            self.assertAlmostEqual(found["far", "near"][name], beside["far"][name], 12)
        self.assertEqual(self.run_command("attention_matrix", EXPERIMENT), 0)
        self.assertIn("far      │  0.784  0.784      –", self.out)

    def test_comparison_needs_another_encoding(self):
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

    def test_weights_of_any_network_are_compared_or_refused(self):
        self.add([("ground", 1), ("other", 1)])
        # As of a network whose first token attends to nothing.
        self.add_map("ground1", [0, 0, 0.25, 0.75])
        self.add_map("other1", [0, 0, 0.5, 0.5])
        for ask in (("attention", EXPERIMENT, "--reference", "ground"), ("attention_matrix", EXPERIMENT)):
            self.assertEqual(self.run_command(*ask), 0)
            self.assert_refused(FAILURE, *ask, "--measure", "js", saying="all zero for a token")
        self.add([("broken", 1)])
        self.add_map("broken1", [math.nan, 1, 0.5, 0.5])
        self.assert_refused(FAILURE, "attention_matrix", EXPERIMENT, saying="are not all finite")

    def test_encodings_of_one_training_are_correlated(self):
        # By learning rate; the second experiment was trained longer, and there all is the other way round.
        for experiment, steps, sign in (("a-1", 100, 1), ("b-1", 200, -1)):
            trials = [("ground", 1, {"name": "sin_cos_2d"}), ("ground", 2, {"name": "sin_cos_2d", "rate": 1e-3})]
            for i in range(4):
                trials.append((f"own{i}", 1, {"accuracy": 0.5 + sign * i / 10}))
                trials.append((f"own{i}", 2, {"accuracy": 0.1, "rate": 1e-3}))
            self.add(trials, experiment)
            for label, seed, *_ in trials:
                i = int(label[-1]) if label != "ground" else 0
                one = self.server.trials[self.name(f"{label}{seed}", experiment)]
                one.specification.training.steps = steps
                self.add_map_to(one.name, [1 - i / 10, i / 10, 0, 1])
        options = ("--reference", "ground", "--select", "unseen")
        self.assertEqual(self.run_command("attention", "a-1", "b-1", *options), 0, self.err)
        text = " ".join(self.out.split())
        self.assertIn("layerwise_encoder (a-1): over 4 encodings, cosine and accuracy: Spearman's ρ = -1.00", text)
        self.assertIn("layerwise_encoder (b-1): over 4 encodings, cosine and accuracy: Spearman's ρ = 1.00", text)
        self.assertIn("of freedom). Each has the learning rate with the highest mean accuracy on ", text)

    def test_damaged_map_is_reported(self):
        self.add([("ground", 1), ("other", 1)])
        self.add_map("ground1", [1, 0, 0])
        self.assert_refused(
            FAILURE, "attention", EXPERIMENT, "--reference", "ground", saying="do not have the size of their shape"
        )

    def test_published_values_are_shown(self):
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
            "Over the encodings of Table 3: ρ = 0.96 over the 20 that the paper prints, with the accuracies of Table 2. The "
            "paper's text says 0.96.",
            " ".join(self.out.split()),
        )
        self.assert_refused(
            USAGE, *ask, "lst_pe_init/table_2", saying="lst_pe_init/table_2 has no cosines of attention maps"
        )
        self.assert_refused(
            USAGE, *ask, "lst_pe_init/table_3", "--measure", "js", saying="lst_pe_init/table_3 has no divergences"
        )


class GroundTruthTest(AnalysisTest):
    # Settled by cells 1 to 3, without the clue in cell 4, and by 1, 4, 6, 7, 9 and 13.
    ROW, CROSS = "5124400000000000", "0400250300000000"

    def test_attention_is_compared_with_the_evidence(self):
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
        self.assertAlmostEqual(rows[0]["clue_share"], 3 / 4, 12)
        self.assertAlmostEqual(rows[1]["clue_share"], 1, 12)
        self.assertAlmostEqual(rows[1]["share"], 6 / 16, 7)
        self.assertEqual(rows[2]["layer"], 2)
        self.assertAlmostEqual(rows[2]["share"], 0.5, 7, "0.75 and 0.25")
        self.assertAlmostEqual(rows[2]["share_deviation"], 0.5 / math.sqrt(2), 7)
        self.assertAlmostEqual(rows[3]["share"], 0.5, 7, "1 and 0")
        self.assertEqual((rows[3]["models"], rows[3]["puzzles"]), (2, 1))
        self.assertEqual(self.run_command("ground_truth", EXPERIMENT), 0)
        # From the models' means over both puzzles, 0.875 and 0.125.
        self.assertIn("50.0 ± 35.4 │ 28.1   87.5 │ 28.1 ± 0.0  50.0 ± 53.0 │      2\n", self.out)
        self.assertIn("(2 puzzles)", self.out)

    def test_only_tasks_with_puzzles_have_a_ground_truth(self):
        self.add([("near", 1)])
        self.specification("near1").task.name = "bucket_sort"
        self.assert_refused(
            FAILURE, "ground_truth", EXPERIMENT, saying="learns bucket_sort, which has no puzzles"
        )

    def test_seeds_with_other_puzzles_are_not_averaged(self):
        self.add([("near", 1), ("near", 2)])
        self.add_puzzle_map("near1", "5124000000000000", 1, 0, {0: 1})
        self.add_puzzle_map("near2", "1524000000000000", 1, 1, {0: 1})
        self.assert_refused(
            FAILURE, "ground_truth", EXPERIMENT,
            saying="are of other puzzles or layers than those of other seeds of near",
        )  # fmt: skip

    # The cases of tasks/latin_square/deduction_test.cc and latin_square_test.cc.
    def test_evidence_matches_the_rules(self):
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
        # The columns of the row's two blanks, but not that of its clue.
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


    def test_rules_agree_with_the_generator(self):
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
            # The evidence alone suffices for the deduction.
            read = [int(puzzle["puzzle"][cell]) if cell in (*found.cells, found.asked) else 0 for cell in range(16)]
            self.assertEqual(latin_square.evidence_of(read).symbol, found.symbol)
            # Three cells of one line, six of two, or those of a line and of two or three lines that
            # cross it.
            self.assertIn(len(found.cells), {1: (3,), 2: (6,), 3: (9, 12)}[found.vectors])


if __name__ == "__main__":
    unittest.main()
