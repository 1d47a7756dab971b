"""Every specification of experiments/ beside every published table, and beside what its paper prints."""
import math
import re
import unittest

import service
from comparison_fixture import SPECIFICATIONS, ResolvedTest
from lengthwise import comparison_display as display
from lengthwise import printed, protocol, published
from lengthwise._proto import specification_pb2
from lengthwise.comparison import Comparison
from lengthwise.rendering import format_integers

# The tables that each full specification under experiments/ reproduces. Several tables share trials
# where the paper shows them twice: maximum, mean and hours of the randomized paper; and Figure 5 of
# the positional one, whose vectors of 8 numbers and 30,000 examples are a point of Figures 3 and 4.
FIGURE_5 = {"positional_attention/figure_5", "positional_attention/figure_3_30000", "positional_attention/figure_4_8"}
RANDOMIZED = {"randomized_pe/table_1", "randomized_pe/table_2", "randomized_pe/table_4"}
OWN = {
    "decimal_addition/figure1.yaml": {"addition_length_gen/statements"},
    "decimal_addition/figure10.yaml": {"addition_length_gen/statements"},
    # The paper does not say how many trials its statements are from.
    "decimal_addition/figure11.yaml": {"addition_length_gen/statements"},
    "decimal_addition/figure12_to_40.yaml": {"addition_length_gen/statements"},
    "decimal_addition/figure3.yaml": {"addition_length_gen/statements"},
    "decimal_addition/figure8.yaml": {"addition_length_gen/statements"},
    "decimal_addition/figure_f15.yaml": {"addition_length_gen/statements"},
    "decimal_addition/statement_5m.yaml": {"addition_length_gen/statements"},
    "latin_square/analyses.yaml": {"lst_pe_init/table_1", "lst_pe_init/table_2", "lst_pe_init/table_3"},
    "latin_square/table1.yaml": {"lst_pe_init/table_1"},
    "latin_square/table2.yaml": {"lst_pe_init/table_2", "lst_pe_init/table_3"},
    "latin_square/table4_adam.yaml": {"lst_pe_init/table_4_adam"},
    "latin_square/table4_sgd.yaml": {"lst_pe_init/table_4_sgd"},
    "latin_square/table5.yaml": {"lst_pe_init/table_5"},
    "latin_square/table6.yaml": {"lst_pe_init/table_6"},
    "positional_attention/figure2.yaml": {"positional_attention/figure_2"},
    "positional_attention/figure3.yaml": {"positional_attention/figure_3_5000"},
    **{
        f"positional_attention/figure3_{examples}.yaml": {f"positional_attention/figure_3_{examples}"}
        for examples in range(5000, 50001, 5000)
    },
    "positional_attention/figure3_30000.yaml": FIGURE_5,
    "positional_attention/figure4_length2.yaml": {"positional_attention/figure_4_2"},
    "positional_attention/figure4_length4.yaml": {"positional_attention/figure_4_4"},
    "positional_attention/figure4_length16.yaml": {"positional_attention/figure_4_16"},
    "positional_attention/figure4_length32.yaml": {"positional_attention/figure_4_32"},
    "positional_attention/figure4_length8.yaml": FIGURE_5,
    "positional_attention/figure5.yaml": FIGURE_5,
    "positional_attention/figure9.yaml": {"positional_attention/figure_9"},
    "positional_attention/figures7_8.yaml": {"positional_attention/figures_7_8"},
    "positional_attention/table1.yaml": {"positional_attention/table_1"},
    "randomized_positional_encodings/figure2_long.yaml": {"randomized_pe/figure_2_long"},
    "randomized_positional_encodings/figure2_randomized.yaml": {"randomized_pe/figure_2_randomized"},
    # Figures 5 and 6 show more of two encodings' trials of Table 1.
    "randomized_positional_encodings/figure5.yaml": RANDOMIZED | {"randomized_pe/figure_5"},
    "randomized_positional_encodings/figure6.yaml": RANDOMIZED | {"randomized_pe/figure_5"},
    "randomized_positional_encodings/table1.yaml": RANDOMIZED,
    "randomized_positional_encodings/table3.yaml": {"randomized_pe/table_3"},
    "randomized_positional_encodings/table4.yaml": RANDOMIZED,
    "randomized_positional_encodings/table5.yaml": {"randomized_pe/table_5"},
    "reproduced/table1_gcn.yaml": {"positional_attention/table_1"},
}  # fmt: skip
# Other tables of which a specification trains some cells exactly as printed, because the paper shows these trials twice.
SHARED = {
    # One standard deviation of Tables 2 and 5 stands in Tables 1 and 6, and four in Table 4.
    "latin_square/analyses.yaml": {"lst_pe_init/table_4_adam"},
    "latin_square/table1.yaml": {"lst_pe_init/table_2", "lst_pe_init/table_3", "lst_pe_init/table_4_adam"},
    "latin_square/table1_released_code.yaml": {"lst_pe_init/table_2", "lst_pe_init/table_3", "lst_pe_init/table_4_adam"},
    "latin_square/table2.yaml": {"lst_pe_init/table_1", "lst_pe_init/table_4_adam"},
    "latin_square/table4_adam.yaml": {"lst_pe_init/table_1", "lst_pe_init/table_2", "lst_pe_init/table_3"},
    "latin_square/table5.yaml": {"lst_pe_init/table_6"},
    "latin_square/table6.yaml": {"lst_pe_init/table_5"},
    "latin_square/table6_released_code.yaml": {"lst_pe_init/table_5"},
    # Positional attention of Figure 5 stands in Figure 9, both its networks in Figures 32 and 33.
    "positional_attention/figure3_30000.yaml": {"positional_attention/figure_9"},
    "positional_attention/figure4_length8.yaml": {"positional_attention/figure_9"},
    "positional_attention/figure5.yaml": {"positional_attention/figure_9"},
    "positional_attention/figures32_33_vectors.yaml": FIGURE_5 | {"positional_attention/figure_9"},
    # Randomized sin/cos of Table 1 stands in Table 3, its best randomized encoding in Table 5; Figure 2 is about
    # randomized relative encodings on one of its tasks, Figure 5 about two encodings on another.
    "randomized_positional_encodings/table1.yaml": {
        "randomized_pe/figure_2_randomized", "randomized_pe/figure_5", "randomized_pe/table_3", "randomized_pe/table_5",
    },
    "randomized_positional_encodings/table3.yaml": RANDOMIZED,
    "randomized_positional_encodings/table4.yaml": {
        "randomized_pe/figure_2_randomized", "randomized_pe/figure_5", "randomized_pe/table_3", "randomized_pe/table_5",
    },
    # The text can be read in this way, too.
    "randomized_positional_encodings/table1_alibi_offsets.yaml": RANDOMIZED,
}  # fmt: skip


def _values(text):
    """"training.steps 50,000; seeds 5, 10 | 15" by field; values are separated by "|"."""
    pairs = (one.split(maxsplit=1) for one in text.replace("\n", " ").split(";"))
    return {field: {value.strip() for value in values.split("|")} for field, values in pairs}


def _learned(first, last):
    return " | ".join(f"learned stddev={number / 10:g}" for number in range(first, last + 1))


# What the papers print, by field, as comparisons write it: read in the papers, section by section.
PRINTED = {
    # Zhou et al. 2024, sections 2 and 3, A.1, E.1, E.2 and Table E.1.
    "addition_length_gen": _values(
        "training.steps 50,000; training.batch_size 128; training.packing.tokens 2,048; training.optimizer adamw;"
        "training.optimizer.weight_decay 0.1; training.schedule warmup_cosine; training.schedule.warmup_steps 500;"
        "training.schedule.final_factor 0.1; learning_rates 3e-04; networks causal_decoder;"
        "networks.blocks 4 | 6; networks.heads 4 | 8; networks.d_model 256 | 512; networks.d_ff 1024 | 2048;"
        "networks.dropout 0; networks.prompt_attention causal; encodings fire | randomized_fire; encodings.sorted true; encodings.width 32;"
        "training.examples 30,000,000; training.lengths 1..40; evaluation.sequences 1,000; tasks decimal_addition;"
        "tasks.order reversed; tasks.index_hints true; tasks.hint_symbols 102; tasks.zero_padding true;"
        "tasks.random_space 0"
    ),
    # Ito et al., sections 2.1.1, 2.2, 3.1, 3.2 and 5.1; SGD: Figure 7; weight decay: Figure 8.
    "lst_pe_init": _values(
        "training.epochs 4,000; training.examples 8,000; training.lengths 16..16; training.optimizer adam | adamw | sgd;"
        "training.optimizer.weight_decay 0.1; training.optimizer.momentum 0; learning_rates 1e-04 | 0.001; seeds 15;"
        "evaluation.lengths 1..3; evaluation.sequences 36; tasks latin_square; tasks.training_puzzles 8000;"
        "tasks.validation_puzzles 108; tasks.minimum_dissimilarity 0.8; networks encoder; networks.blocks 4;"
        "networks.heads 1; networks.d_model 160; networks.encoding_dropout 0;"
        "encodings sin_cos_2d | shaw | rope | sin_cos | none | none causal=true | learned trained=false |"
        f" learned stddev=0.01 | learned stddev=0.05 | {_learned(1, 20)}; encodings.max_position 16;"
        "encodings.distribution normal; encodings.causal false; encodings.interleaved true; encodings.columns 4;"
        "encodings.turned_by tokens"
    ),
    # Positional attention, section 6, equations 1 to 3, appendices C.1, C.2, G and H.
    "positional_attention": _values(
        "training.epochs 2,000; training.optimizer adam; learning_rates 5e-04; seeds 10; training.lengths"
        " 1..8 | 2..2 | 4..4 | 8..8 | 16..16 | 32..32; training.examples 5,000 | 10,000 | 15,000 | 20,000 | 25,000 | 30,000 |"
        " 35,000 | 40,000 | 45,000 | 50,000 | 500,000; evaluation.sequences 1,000 | 3,000;"
        "tasks sorting | cumulative_sum, cumulative_min | cumulative_sum, sorting |"
        " cumulative_sum, cumulative_min, cumulative_median, sorting, cumulative_max_sum_subarray;"
        "tasks.bound 2; tasks.scratchpad true; networks positional_attention | graph_network;"
        "networks.blocks 1 | 2 | 3 | 4 | 5 | 6; networks.heads 2; networks.d_model 64; networks.d_ff 2 | 4 | 8 | 16 | 64;"
        "networks.attention_by positions | input; networks.input_positions true | false;"
        "networks.rotary none | tokens; networks.diagonal_input false; encodings one_hot;"
        "networks.architecture convolution | attention; networks.graph complete | star"
    ),
    # Ruoss et al. 2023, sections 3 and 4, equations 1 and 2, appendix A.
    "randomized_pe": _values(
        "training.steps 2,000,000; training.batch_size 128; training.examples new ones at every step;"
        "training.lengths 1..40 | 1..500; training.optimizer adam; training.clipping yes;"
        "learning_rates 1e-04, 3e-04, 5e-04; seeds 10; evaluation.lengths 41..500; evaluation.sequences 500;"
        "tasks missing_duplicate_string | reverse_string | even_pairs, modular_arithmetic, parity_check, cycle_navigation,"
        " stack_manipulation, ... | parity_check, reverse_string, cycle_navigation, even_pairs, stack_manipulation, ...;"
        "networks encoder; networks.attention softmax; networks.blocks 5; networks.heads 8; networks.d_model 64;"
        "encodings none | sin_cos | relative | alibi | rope | learned | randomized_sin_cos | randomized_relative |"
        " randomized_alibi | randomized_rope | randomized_learned | randomized_sin_cos sorted=false;"
        "encodings.max_position 2048; encodings.causal false;"
        "encodings.draws shared; encodings.distances positions; encodings.randomized_at_evaluation true;"
        "encodings.sorted true"
    ),
}


def _changes(specification):
    """Yields copies of a resolved specification that differ in one field each."""

    def changed():
        copy = specification_pb2.ExperimentSpecification()
        copy.CopyFrom(specification)
        return copy

    def change(value):
        kind = value.WhichOneof("kind")
        if kind == "bool_value":
            value.bool_value = not value.bool_value
        elif kind == "number_value":
            value.number_value += 1
        else:
            value.string_value += "x"

    for axis in ("tasks", "networks", "encodings"):
        components = getattr(specification, axis)
        for name in sorted({name for one in components for name in one.parameters}):
            copy = changed()
            for one in getattr(copy, axis):
                if name in one.parameters:
                    change(one.parameters[name])
            yield copy
        copy = changed()
        for one in getattr(copy, axis):
            one.name += "x"
        yield copy
    for axis in ("learning_rates", "seeds"):
        copy = changed()
        getattr(copy, axis).append(77)
        yield copy
    for path in ("training", "training.lengths", "training.packing", "evaluation"):
        message = specification
        for part in path.split("."):
            message = getattr(message, part)
        for descriptor in message.DESCRIPTOR.fields:
            copy = changed()
            inner = copy
            for part in path.split("."):
                inner = getattr(inner, part)
            value = getattr(inner, descriptor.name)
            if isinstance(value, specification_pb2.Component):
                value.name += "x"
                yield copy
                for name in sorted(value.parameters):
                    copy = changed()
                    change(getattr(copy.training, descriptor.name).parameters[name])
                    yield copy
            elif isinstance(value, bool):
                setattr(inner, descriptor.name, not value)
                yield copy
            elif isinstance(value, (int, float)):
                # No protocol clips to norm 1 and to none.
                setattr(inner, descriptor.name, 0 if descriptor.name == "clip_norm" and value else value + 1)
                yield copy
            elif isinstance(value, str):
                setattr(inner, descriptor.name, value + "x")
                yield copy
            elif descriptor.label == descriptor.LABEL_REPEATED and descriptor.name == "lengths":
                del value[-1]
                yield copy


class EveryPairTest(ResolvedTest):
    """Compares every specification with every published table."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.specifications = {
            str(path.relative_to(SPECIFICATIONS)): protocol.resolve(cls.connection, path.read_text())
            for path in sorted(SPECIFICATIONS.glob("**/*.yaml"))
        }
        cls.tables = {table.key: table for table in published.tables()}
        cls.papers = {key: protocol.resolve_protocol(cls.connection, table) for key, table in cls.tables.items()}
        cls.found = {
            (name, key): protocol.compare(specification, cls.papers[key], table)
            for name, specification in cls.specifications.items()
            for key, table in cls.tables.items()
        }

    def test_only_its_own_table_is_as_printed(self):
        self.assertGreaterEqual(len(self.specifications), 80)
        self.assertGreaterEqual(len([name for name in self.specifications if "/quick/" in name]), 12)
        self.assertLessEqual(set(OWN) | set(SHARED), set(self.specifications))
        for (name, key), found in self.found.items():
            with self.subTest(specification=name, table=key):
                compared = Comparison("x", self.tables[key], protocol=found, specification=self.specifications[name])
                sentence = display.protocol_remarks(compared)[0]
                if key in OWN.get(name, set()) | SHARED.get(name, set()):
                    self.assertEqual(found.differences, [])
                    self.assertTrue(sentence.startswith("Protocol: as printed"), sentence)
                    self.assertTrue(key in OWN.get(name, set()) or found.outside or found.open_fields)
                else:
                    self.assertTrue(found.differences, "a table of other trials")
                    self.assertTrue(sentence.startswith("Not the paper's protocol: "), sentence)
                for one in found.differences:
                    self.assertNotEqual(one.here, one.published)

    def assert_printed(self, key, found):
        """Every value after "paper:" stands in the paper."""
        values = PRINTED[key.partition("/")[0]]
        for one in found.differences:
            self.assertIn(one.path, values, f"{key}: {one.what} {one.here} (paper: {one.published})")
            if one.path != "encodings":
                self.assertIn(one.published, values[one.path], f"{key}: {one.what}")
                continue
            for encoding in one.published.removesuffix(", ...").split(", "):
                self.assertIn(encoding, values[one.path], f"{key}: {one.what}")

    def test_only_printed_values_are_the_papers(self):
        for (_, key), found in self.found.items():
            self.assert_printed(key, found)

    def test_every_changed_field_is_named(self):
        """Also a regression test for paths in papers.json: a misspelt one would silently match nothing."""
        named = {}
        for key, table in self.tables.items():
            paper = self.papers[key]
            same = protocol.compare(paper, paper, table)
            self.assertEqual(same.differences, [])
            of_table = printed.Printed(table)
            always = {path for path in of_table.fields if of_table.names_always(path)}
            self.assertEqual({one.path for one in same.open_fields}, always)
            paths = named.setdefault(key.partition("/")[0], set())
            paths |= {one.path for one in same.open_fields}
            for here in _changes(paper):
                found = protocol.compare(here, paper, table)
                self.assert_printed(key, found)
                paths |= {one.path for one in found.differences + found.open_fields}
        for paper, paths in named.items():
            fields = set().union(*(printed.Printed(self.tables[key]).fields for key in self.tables if key.startswith(paper)))
            self.assertEqual(fields - paths, set(), paper)
            self.assertEqual(set(PRINTED[paper]) - paths, set(), paper)
        for path in ("training.precision", "training.optimizer.beta2", "training.optimizer.epsilon", "networks.d_ff"):
            self.assertIn(path, named["randomized_pe"])

    def test_known_differences_are_among_them(self):
        """Regression test: differences that were missed when every table was compared with its paper's base protocol.
        """
        expected = {
            ("latin_square/table2.yaml", "lst_pe_init/table_5"): ["optimizer: adam | adamw"],
            ("positional_attention/figure5.yaml", "positional_attention/figure_3_5000"): [
                "training examples: 30,000 | 5,000",
            ],
            ("latin_square/table4_adam.yaml", "lst_pe_init/table_4_sgd"): [
                "learning rates: 1e-04 | 0.001", "optimizer: adam | sgd",
            ],
            ("randomized_positional_encodings/table2.yaml", "randomized_pe/table_2"): [
                "learning rates: 3e-04 | 1e-04, 3e-04, 5e-04", "seeds: 3 | 10",
            ],
            # Its batches of 2,048 are in the code alone; epochs are those of the text.
            ("positional_attention/figure2_released_code.yaml", "positional_attention/figure_2"): [
                "sequences per scale: 2,000 | 3,000", "learning rates: 1e-04 | 5e-04",
            ],
            ("positional_attention/quick/figure5.yaml", "positional_attention/figure_5"): [
                "epochs: 10 | 2,000", "seeds: 2 | 10",
            ],
        }  # fmt: skip
        for (name, key), lines in expected.items():
            found = self.found[name, key]
            self.assertEqual([f"{one.what}: {one.here} | {one.published}" for one in found.differences], lines)


# The figures and tables of each paper, as named in the README.md of its folder under experiments/.
def _numbered(kind, *ranges):
    return {f"{kind} {prefix}{number}" for prefix, last in ranges for number in range(1, last + 1)}


PAPERS = {
    "decimal_addition": _numbered("Figure", ("", 12), ("F.", 18), ("G.", 10)) | {"Table E.1"},
    "latin_square": _numbered("Figure", ("", 10)) | _numbered("Table", ("", 6)),
    "positional_attention": _numbered("Figure", ("", 33)) | {"Table 1"},
    "randomized_positional_encodings": _numbered("Figure", ("", 6)) | _numbered("Table", ("", 5)),
}


class PapersTablesTest(ResolvedTest):
    """The tables that compare specifications with their papers, line by line."""

    @staticmethod
    def rows(folder):
        """Returns the cells of each row."""
        lines = (SPECIFICATIONS / folder / "README.md").read_text().split("\n")
        first = next(i for i, line in enumerate(lines) if line.startswith("| of the paper |")) + 2
        rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[first:] if line[:1] == "|"]
        last = lines[first:].index("")
        return rows[:last]

    @staticmethod
    def of_paper(cell):
        """Splits "Figures 3, F.1 to F.3; Table 1" into single references."""
        found = set()
        for part in cell.split("; "):
            kind, _, numbers = part.partition(" ")
            for one in numbers.split(", ") if kind.rstrip("s") in ("Figure", "Table") else ():
                ends = one.split(" to ")
                prefix = ends[0].rpartition(".")[0]
                if len(ends) == 1:
                    found.add(f"{kind.rstrip('s')} {one}")
                else:
                    first, last = (int(end.rpartition(".")[2]) for end in ends)
                    dot = prefix + "." if prefix else ""
                    found |= {f"{kind.rstrip('s')} {dot}{number}" for number in range(first, last + 1)}
        return found

    @staticmethod
    def links(cell):
        return re.findall(r"\]\(([a-z0-9_]+\.yaml)\)", cell)

    @staticmethod
    def held(cell):
        return dict(pair.partition(" ")[::2] for pair in cell.split("; ")) if cell else {}

    @staticmethod
    def parameters(components, name):
        values = {component.parameters[name].number_value for component in components if name in component.parameters}
        return ", ".join(f"{int(value):,}" for value in sorted(values)) if values else None

    def value(self, specification, name):
        """Formats a value as the tables do; None if the specification lacks it."""
        training, evaluation = specification.training, specification.evaluation
        if name in ("tasks", "networks", "encodings"):
            return str(len(getattr(specification, name)))
        if name in ("blocks", "heads", "d_model", "d_ff"):
            return self.parameters(specification.networks, name)
        if name == "positions":
            return self.parameters(specification.encodings, "max_position")
        values = {
            "steps": f"{training.steps:,}",
            "batch": f"{training.batch_size:,}",
            "examples": f"{training.examples:,}",
            "lengths": f"{training.lengths.min}..{training.lengths.max}",
            "tokens": f"{training.packing.tokens:,}",
            "optimizer": training.optimizer.name,
            "weight_decay": protocol.format_parameter(training.optimizer, "weight_decay"),
            "rates": protocol._rates(specification),
            "seeds": str(protocol.seed_count(specification)),
            "scored": format_integers(published.unseen_lengths(specification)) or "none",
            "sequences": f"{evaluation.sequences:,}",
        }
        return values[name]

    def test_every_figure_and_table_has_a_row(self):
        for folder, expected in PAPERS.items():
            with self.subTest(paper=folder):
                found = set().union(*(self.of_paper(row[0]) for row in self.rows(folder)))
                self.assertEqual(found, expected)

    def test_rows_without_a_specification_say_why(self):
        for folder in PAPERS:
            for row in self.rows(folder):
                with self.subTest(paper=folder, row=row[0]):
                    self.assertEqual(len(row), 6)
                    if not self.links(row[1]) and row[0] != "All of them" and not row[0].startswith("All of them;"):
                        self.assertEqual(row[1], "none")
                        self.assertTrue(row[5])

    def test_specifications_match_the_folder(self):
        for folder in PAPERS:
            with self.subTest(paper=folder):
                named = [link for row in self.rows(folder) for link in self.links(row[1])]
                there = {path.name for path in (SPECIFICATIONS / folder).glob("*.yaml")}
                self.assertEqual(set(named), there)
                self.assertEqual(len(named), len(set(named)))

    def test_resolved_values_match_the_tables(self):
        for folder in PAPERS:
            rows = self.rows(folder)
            self.assertTrue(rows[0][0].startswith("All of them"))
            shared = self.held(rows[0][3])
            self.assertGreaterEqual(len(shared), 12)
            for row in rows[1:]:
                for link in self.links(row[1]):
                    with self.subTest(paper=folder, specification=link):
                        text = (SPECIFICATIONS / folder / link).read_text()
                        specification = protocol.resolve(self.connection, text)
                        own = self.held(row[3])
                        for name, value in {**shared, **own}.items():
                            here = self.value(specification, name)
                            if here is not None or name in own:
                                self.assertEqual(here, value, name)
                        trials = protocol.seed_count(specification) * len(specification.learning_rates)
                        for axis in ("tasks", "networks", "encodings"):
                            trials *= len(getattr(specification, axis))
                        self.assertEqual(trials, int(row[2].rpartition("x")[2].replace(",", "")))


class PapersProtocolTest(ResolvedTest):
    """Values that a paper prints for all of its full specifications."""

    def resolved(self, pattern):
        return {
            str(path.relative_to(SPECIFICATIONS)): protocol.resolve(self.connection, path.read_text())
            for path in SPECIFICATIONS.glob(pattern)
        }

    def test_additions_have_the_papers_set_sizes(self):
        # Zhou et al. 2024, E.1: "30M, 40M, 60M, and 120M examples ... for number lengths 1-40,
        # 1-30, 1-20, and 1-10".
        examples = {40: 30_000_000, 30: 40_000_000, 20: 60_000_000, 10: 120_000_000}
        found = self.resolved("decimal_addition/*.yaml")
        self.assertGreaterEqual(len(found), 22)
        for name, one in found.items():
            with self.subTest(specification=name):
                self.assertEqual(one.training.examples, examples[one.training.lengths.max])

    def test_positional_networks_have_the_papers_depth(self):
        # Section 6: ceil(log2 n) + 1 layers.
        found = self.resolved("positional_attention/figure[34]_*.yaml")
        self.assertEqual(len(found), 15)
        for name, one in found.items():
            with self.subTest(specification=name):
                depth = math.ceil(math.log2(one.training.lengths.max)) + 1
                self.assertEqual({network.parameters["blocks"].number_value for network in one.networks}, {depth})

    def test_figure_2_is_scored_on_all_unseen_lengths(self):
        # Ruoss et al. 2023, section 4: "averaged over lengths 41 to 500".
        found = self.resolved("randomized_positional_encodings/figure2_*.yaml")
        self.assertEqual(len(found), 2)
        for name, one in found.items():
            with self.subTest(specification=name):
                self.assertEqual(list(one.evaluation.interval_lengths), list(range(41, 501)))
                self.assertEqual(one.evaluation.seen_up_to, 40)


if __name__ == "__main__":
    unittest.main()
