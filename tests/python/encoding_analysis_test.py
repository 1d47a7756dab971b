"""Compares distances between encodings, learned and fixed, with numbers worked by hand."""
import math
import unittest

import numpy
import safetensors.numpy
from analysis_fixture import ENCODINGS, EXPERIMENT, FAILURE, USAGE, AnalysisTest
from lengthwise._proto import experiment_service_pb2
from lengthwise.analyses import encoding_distance, measures, trial_sets
from lengthwise.analyses.encoding_tables import FixedEncoding, fixed_encoding
from lengthwise.plots import data
from lengthwise.plots.catalogue import Catalogue


def model(tables):
    """A model with these tables, one for each block."""
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
        # Rows 0 to 2 of sin_cos with d = 4, with two features exchanged and one negated.
        turned = [[math.cos(p / 100), -math.sin(p), math.cos(p), math.sin(p / 100)] for p in range(3)]
        zeros = numpy.zeros((3, 4))
        self.set_model("small1", [turned, zeros])
        self.set_model("small2", [zeros, zeros])
        rows = self.by_encoding("encodings", EXPERIMENT, "--reference", "sin_cos")
        self.assertEqual(list(rows), ["small"])
        # A row of sines and cosines has the norm sqrt(2), so the distance from zeros is sqrt(3 2).
        far = math.sqrt(6)
        self.assertAlmostEqual(rows["small"]["first_block"], far / 2, delta=2e-3)
        self.assertAlmostEqual(rows["small"]["all_blocks"], (far / 2 + far) / 2, delta=1e-3)
        self.assertEqual(rows["small"]["models"], 2)
        self.assertEqual(self.run_command("encodings", EXPERIMENT, "--reference", "sin_cos"), 0)
        self.assertIn("Without a learned table: 2d, rope.", self.out)
        # From 12 numbers.
        self.assertIn("learned tables before training 0.00 ± 0.29", " ".join(self.out.split()))
        self.assert_refused(
            USAGE, "encodings", EXPERIMENT, "--reference", "rope",
            saying='"rope" is no encoding with a fixed table; give sin_cos or',
        )  # fmt: skip

    def test_blocks_are_taken_in_their_order(self):
        self.add([("small", 1)])
        # The third of eleven blocks, which sorts after the eleventh alphabetically.
        tables = [numpy.zeros((3, 4)) for _ in range(11)]
        tables[2] = FixedEncoding("sin_cos").table(3, 4)
        self.set_model("small1", tables)
        subject = trial_sets.subject_of(data.fetch(self.server.connection, [EXPERIMENT]))
        ((found,),) = encoding_distance.measure(subject, FixedEncoding("sin_cos")).models.values()
        far = math.sqrt(6)
        numpy.testing.assert_allclose(found.blocks, [far, far, 0, *[far] * 8], atol=1e-6)
        self.assertAlmostEqual(found.cosines[2], 1, 6)
        (row,) = self.rows("encodings", EXPERIMENT, "--reference", "sin_cos")
        self.assertAlmostEqual(row["first_block"], far, 6)
        self.assertIsNone(row["cosine"], "zeros have no direction")

    def test_missing_model_is_reported(self):
        self.add([("small", 1)])
        self.assert_refused(FAILURE, "encodings", EXPERIMENT, "--reference", "sin_cos", saying=self.name("small1"))

    # The baseline that the paper states: sixteen cells, d = 160.
    def test_baseline_distance_matches_the_paper(self):
        line, grid = FixedEncoding("sin_cos", interleaved=True), FixedEncoding("sin_cos_2d")
        self.assertAlmostEqual(measures.cosine_similarity(line.table(16, 160), grid.table(16, 160)), 0.72, delta=0.006)

    # //tests/golden compares the encodings themselves with these formulas.
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


if __name__ == "__main__":
    unittest.main()
