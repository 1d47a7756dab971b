"""Which side trials take where a paper's text and its authors' code differ."""
import json
import unittest

from comparison_fixture import SPECIFICATIONS, ResolvedTest
from lengthwise import comparison_display as display
from lengthwise import protocol, published
from lengthwise.comparison import Comparison, ComparisonCell, Measurement


class CodeReadingTest(ResolvedTest):
    """Whether trials are as in the text or as in the released code, from their own fields and parameters."""

    def specification(self, source):
        text = (SPECIFICATIONS / source).read_text() if source.endswith(".yaml") else source
        return protocol.resolve(self.connection, text)

    def sides(self, key, source):
        """By the beginning of a difference: its side."""
        found = published.find(key).code_readings(self.specification(source))
        return {one.sentence: one.side for one in found}

    def side(self, key, source, beginning):
        (side,) = [side for sentence, side in self.sides(key, source).items() if sentence.startswith(beginning)]
        return side

    def remarks(self, key, source):
        table, specification = published.find(key), self.specification(source)
        found = protocol.compare(specification, protocol.resolve_protocol(self.connection, table), table)
        # Every cell has a value.
        cells = [[ComparisonCell(Measurement(50, None, 1)) for _ in table.columns] for _ in table.rows]
        return display.protocol_remarks(Comparison("x", table, cells, found, specification))

    RANDOMIZED = "name: x\nprotocol: randomized_positional_encodings\ntasks: bucket_sort\n"
    LATIN = "name: x\nprotocol: latin_square\n"

    def test_own_parameters_decide(self):
        def side(beginning, yaml):
            return self.side("randomized_pe/table_1", self.RANDOMIZED + yaml, beginning)

        offsets = "randomized_positional_encodings/table1_alibi_offsets.yaml"
        self.assertEqual(self.side("randomized_pe/table_1", offsets, "draws the distances of randomized_alibi"), "code")
        dropout = "encodings: none\nnetworks: {name: encoder, dropout: %s, dropout_at_evaluation: %s}"
        self.assertEqual(side("trains with dropout", dropout % (0.1, "true")), "code")
        self.assertEqual(side("trains with dropout", dropout % (0.1, "false")), "neither")
        self.assertEqual(side("trains with dropout", dropout % (0.2, "true")), "neither")
        self.assertEqual(
            side("trains with dropout", "compatibility: reference_code\n" + dropout % (0, "false")), "text",
            "the user's own value counts, not `compatibility`",
        )  # fmt: skip
        rope = "encodings: {name: rope, randomized: true, draws: %s}"
        self.assertEqual(side("draws new positions or distances", rope % "per_block"), "code")
        self.assertEqual(side("draws new positions or distances", rope % "shared"), "text")

    def test_text_that_may_mean_either_is_followed_by_both(self):
        yaml = self.RANDOMIZED + "encodings: {name: alibi, randomized: true}"
        self.assertEqual(self.side("randomized_pe/table_1", yaml, "draws the distances"), "text")
        # Trials that do as the code do not follow it instead of the text.
        offsets = "randomized_positional_encodings/table1_alibi_offsets.yaml"
        self.assertEqual(self.remarks("randomized_pe/table_1", offsets)[0], "Protocol: as printed, as far as the paper says.")

    def test_encodings_without_trials_are_not_mentioned(self):
        for compatibility in ("paper", "reference_code"):
            yaml = self.RANDOMIZED + f"encodings: [none, sin_cos]\ncompatibility: {compatibility}"
            text = " ".join(self.sides("randomized_pe/table_1", yaml))
            for name in ("rope", "alibi", "relative", "draws", "positions", "distances"):
                self.assertNotIn(name, text)
        text = " ".join(self.sides("lst_pe_init/table_1", "latin_square/quick/table2.yaml"))
        for name in ("rope", "c_nope", "relative", "1d", "learn_2.0"):
            self.assertNotIn(name, text)
        self.assertIn("drops 0.1 of the features behind 2d_fixed, also", text)

    def test_dropout_concerns_fixed_encodings_alone(self):
        dropout = "networks: {name: layerwise_encoder, encoding_dropout: 0.1}\n"
        c_nope = self.LATIN + dropout + "encodings: {name: none, causal: true, label: c_nope}"
        self.assertNotIn("drops", " ".join(self.sides("lst_pe_init/table_1", c_nope)))
        fixed = self.LATIN + dropout + "encodings: {name: sin_cos, interleaved: true, label: fixed}"
        self.assertEqual(self.side("lst_pe_init/table_1", fixed, "drops 0.1 of the features behind fixed"), "code")

    def test_latin_squares_treat_six_columns_apart(self):
        table = published.find("lst_pe_init/table_1")
        of_columns = ["2d_fixed", "relative", "random", "rope", "1d_fixed", "c_nope"]
        columns = {}
        for name in ("table1", "table1_released_code"):
            columns[name] = table.columns_by_code(self.specification(f"latin_square/{name}.yaml"))
            self.assertEqual([column.key for column in table.columns if column.key in columns[name]], of_columns)
        self.assertEqual(set(map(tuple, columns["table1_released_code"].values())), {("code",)})
        self.assertEqual(columns["table1"]["2d_fixed"], ["text", "code"], "dropout; order and counting of positions")
        self.assertEqual(columns["table1"]["random"], ["code"])
        self.assertEqual(columns["table1"]["rope"], ["neither"], "the text says nothing about biases")
        self.assertEqual(columns["table1"]["c_nope"], ["text", "neither"])
        own = (
            self.LATIN + "encodings: [{name: shaw, causal: true}, rope]\n"
            "networks: {name: layerwise_encoder, attention_biases: inputs, output_projection: false, "
            "attention_initial: linear}"
        )
        self.assertEqual(
            table.columns_by_code(self.specification(own)), {"relative": ["code"], "rope": ["code", "neither"]}
        )
        self.assertIn(
            "Columns that the released code treats in a way of their own (in brackets, what the trials here are): 2d-fixed, "
            "1d-fixed (in part as in the text, in part as in the code); relative, c-nope (in part as in the text, in part as in "
            "neither); random (as in the code); rope (as in neither).",
            self.remarks("lst_pe_init/table_1", "latin_square/table1.yaml"),
        )

    def test_trials_that_differ_are_told_apart(self):
        yaml = (
            self.RANDOMIZED + "encodings: [{name: rope, randomized: true, draws: per_block, label: own},\n"
            "            {name: relative, randomized: true, label: shared}]"
        )
        (reading,) = [
            one
            for one in published.find("randomized_pe/table_1").code_readings(self.specification(yaml))
            if "in every block" in one.sentence
        ]
        self.assertEqual((reading.side, reading.labels()), ("mixed", {"text": ["shared"], "code": ["own"]}))
        self.assertIn(
            "The released code, where the trials here differ from each other: draws new positions or distances in every block "
            "with own, shared (the text once a batch) [as in the text: shared; as in the code: own].",
            self.remarks("randomized_pe/table_1", yaml),
        )

    def test_trials_outside_the_table_are_not_asked(self):
        # Only the network of Figure 9's table counts, not the one that turns by tokens.
        key, source = "positional_attention/figure_9", "positional_attention/figure9.yaml"
        self.assertEqual(self.side(key, source, "turns queries and keys"), "code")
        self.assertEqual(self.sides("randomized_pe/table_1", "latin_square/table1.yaml"), {})

    def test_epochs_are_the_trials_own(self):
        for epochs, side in ((4001, "code"), (4000, "text"), (16, "neither")):
            yaml = self.LATIN + f"encodings: {{name: none, label: nope}}\ntraining: {{epochs: {epochs}}}"
            self.assertEqual(self.side("lst_pe_init/table_1", yaml, "trains 4,001 epochs"), side)
        steps = self.LATIN + "encodings: none\ntraining: {steps: 252000}"
        self.assertEqual(self.side("lst_pe_init/table_1", steps, "trains 4,001 epochs"), "text", "63 steps an epoch")
        for name in ("figure2", "figure2_released_code", "figure3_5000", "figure5"):
            one = self.specification(f"positional_attention/{name}.yaml")
            self.assertEqual(published.epochs(one.training), 2001, name)
        # 10 examples of 3 lengths are 4, 3 and 3: two batches of 3 and twice one.
        own = "name: x\ntasks: bucket_sort\nencodings: none\ntraining: {examples: 10, lengths: 1..3, batch_size: 3, epochs: 5}"
        one = self.specification(own + "\nlearning_rates: 1e-3\nevaluation: {lengths: 4}").training
        self.assertEqual((one.steps, published.epochs(one)), (20, 5))

    def test_score_begins_where_the_trials_does(self):
        for lengths, side in (("41..500", "text"), ("42..500", "code"), ("45..500", "neither")):
            yaml = self.RANDOMIZED + f"encodings: none\nevaluation: {{lengths: {lengths}}}"
            self.assertEqual(self.side("randomized_pe/table_1", yaml, "averages the accuracies"), side)

    def test_settings_of_figure_2_are_told_singly(self):
        key = "positional_attention/figure_2"
        of_settings = ("has a learning rate", "has batches", "tests on")
        for name, sides in (("figure2", ["text", "neither", "text"]), ("figure2_released_code", ["code"] * 3)):
            source = f"positional_attention/{name}.yaml"
            self.assertEqual([self.side(key, source, beginning) for beginning in of_settings], sides)
            remarks = " ".join(self.remarks(key, source))
            self.assertIn("not printed; the parameters stored with the authors' results have 2,048 for this figure", remarks)
        rates = "name: x\nprotocol: positional_attention\nlearning_rates: [1e-4, 5e-4]\ntraining: {lengths: 1..8}"
        self.assertEqual(self.side(key, rates, "has a learning rate"), "neither")

    def test_scaled_logits_follow_the_code(self):
        key, yaml = "positional_attention/figure_5", "name: x\nprotocol: positional_attention\ntasks: sorting\nnetworks: "
        network = "{name: positional_attention, scaled: %s, attention_first: %s}"
        for scaled, first, sides in (("true", "false", "code"), ("false", "true", "text")):
            source = yaml + network % (scaled, first)
            self.assertEqual(self.side(key, source, "divides logits"), sides)
            self.assertEqual(self.side(key, source, "gives the feed-forward layers"), sides)

    def test_generated_puzzles_are_counted(self):
        def never(yaml):
            remarks = self.remarks("lst_pe_init/table_2", self.LATIN + "encodings: {name: learned, stddev: 0.2}\n" + yaml)
            return [remark for remark in remarks if remark.startswith("Never the paper's: ")]

        self.assertIn("108 generated, aiming at 3 to 9 clues, up to 36 of each evaluated condition", never("")[0])
        own = "evaluation: {sequences: 12}\ntasks: {name: latin_square, validation_puzzles: 90}"
        self.assertIn("90 generated, aiming at 3 to 9 clues, up to 12 of each evaluated condition", never(own)[0])
        two = (
            "tasks: [{name: latin_square, label: one}, {name: latin_square, validation_file: own.json, label: two},\n"
            "        {name: latin_square, validation_puzzles: 30, label: three}]"
        )
        self.assertIn("108 or 30 generated", never(two)[0])
        found = self.remarks("lst_pe_init/table_1", self.RANDOMIZED + "encodings: none")
        self.assertNotIn("Never the paper's", " ".join(found), "it has no puzzles")

    def test_as_printed_names_what_is_not(self):
        self.assertEqual(
            self.remarks("lst_pe_init/table_1", "latin_square/table1.yaml")[0],
            "Protocol: as printed, as far as the paper says; except the validation puzzles, and 9 points on which trials follow "
            "the released code instead of the text (below).",
        )
        self.assertEqual(
            self.remarks("randomized_pe/table_1", self.RANDOMIZED + "encodings: none")[0], "Protocol: as printed."
        )
        figure_9 = self.remarks("positional_attention/figure_9", "positional_attention/figure9.yaml")
        self.assertIn("follow the released code instead of the text (below)", figure_9[0])
        self.assertIn("turns queries and keys by the number of their head (the text by their position)", " ".join(figure_9))

    def test_notes_are_about_papers(self):
        """What trials here have is not for fixed text to say."""
        for table in published.tables():
            fixed = [*table.notes, table.aggregation]
            fixed += [f"{one.code} {one.text}" for one in table.released_code]
            for text in fixed:
                self.assertNotRegex(text, r"(?i)\b(here|ours)\b", table.key)

    def test_conditions_name_what_exists(self):
        """A misspelt path would silently match nothing."""
        known = {"epochs", "scored_from", "learning_rates", "training.batch_size", "evaluation.sequences"}
        for path in SPECIFICATIONS.glob("*/*.yaml"):
            one = self.specification(str(path.relative_to(SPECIFICATIONS)))
            for axis in ("tasks", "networks", "encodings"):
                known.add(axis)
                known |= {f"{axis}.{name}" for component in getattr(one, axis) for name in component.parameters}
        for table in published.tables():
            for one in table.released_code:
                paths = {path for condition in (one.about, one.code_if, one.text_if) for path in condition or {}}
                self.assertLessEqual(paths, known, table.key)
                self.assertLessEqual(set(one.columns), {column.key for column in table.columns})

    def test_difference_needs_a_side(self):
        file = json.loads((SPECIFICATIONS / "published" / "randomized_pe_table_3.json").read_text())
        file["released_code"] = [{"code": "does otherwise"}]
        with self.assertRaisesRegex(ValueError, "must have either code_if or `here` as one of text, code, neither"):
            published.parse("randomized_pe_table_3", json.dumps(file))


if __name__ == "__main__":
    unittest.main()
