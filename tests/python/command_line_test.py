"""Commands that the C++ program passes to the Python package, as a user types them."""
import csv
import errno
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import grpc
import numpy
import service
import warm
from lengthwise import command_line, errors, rendering
from service import CLIENT, Numbers, lengthwise

SUCCESS, FAILURE, USAGE, UNREACHABLE = 0, 1, 2, 3


class RenderingTest(unittest.TestCase):
    def test_numbers_have_the_fewest_digits_that_read_back(self):
        # As std::to_chars formats them.
        expected = {
            0.0: "0", 1.0: "1", 0.001: "0.001", 1e-4: "1e-04", 3e-4: "3e-04", 2048.0: "2048", 3e7: "3e+07", 0.1: "0.1",
            -2.5: "-2.5", 1e-8: "1e-08", 123456.75: "123456.75", 100000.0: "1e+05", 0.00015: "0.00015",
        }  # fmt: skip
        for value, text in expected.items():
            self.assertEqual(rendering.format_exact(value), text)
            self.assertEqual(float(rendering.format_exact(value)), value)

    def test_integers_are_shown_as_ranges(self):
        cases = {
            "none": [], "7": [7], "1..40": range(1, 41), "25..100 step 5": range(25, 101, 5), "10, 12, 40": [10, 12, 40],
            "37 lengths from 3 to 99": [3, *range(20, 55), 99],
        }  # fmt: skip
        for text, values in cases.items():
            self.assertEqual(rendering.format_integers(list(values)), text)

    def test_text_is_wrapped_by_display_width(self):
        self.assertEqual(rendering.display_width("a漢e\u0301"), 4)
        self.assertEqual(rendering.truncate("漢字漢字", 5), "漢字…")
        self.assertEqual(rendering.wrap("one two three", 8, 2), "one two\n  three")

    def test_columns_shrink_to_the_width(self):
        table = rendering.Table([rendering.Column("task", shrinks_to=4), rendering.Column("n", rendering.Align.RIGHT)])
        table.add_row(["a_long_name", "12"])
        self.assertEqual(table.render(9, rendering.Palette(False)), "task    n\n─────────\na_lo…  12\n")

    def test_a_wide_table_is_printed_in_parts(self):
        right = rendering.Align.RIGHT
        table = rendering.Table(
            [
                rendering.Column("name"), rendering.Column("a", right), rendering.Column("b", right, rule_before=True),
                rendering.Column("c", right),
            ]
        )  # fmt: skip
        table.add_row(["first", "111", "222", "333"])
        self.assertEqual(
            table.render(20, rendering.Palette(False), in_parts=True),
            "name     a\n──────────\nfirst  111\n\n"
            "name  │   b    c\n──────┼─────────\nfirst │ 222  333\n",
        )
        self.assertEqual(table.render(21, rendering.Palette(False), in_parts=True).count("name"), 1)
        self.assertEqual(table.render(20, rendering.Palette(False)).count("name"), 1)

    def test_groups_end_at_rules_and_names_stand_in_every_part(self):
        right = rendering.Align.RIGHT
        heads = [rendering.Column(name, right, rule_before=name == "here", group="e-1") for name in ("here", "n")]
        table = rendering.Table([rendering.Column("name"), rendering.Column("rate", right), *heads, *heads])
        table.add_row(["first", "1", "22", "3", "44", "5"])
        self.assertEqual(
            table.render(0, rendering.Palette(False)),
            "            │ e-1     │ e-1\n"
            "name   rate │ here  n │ here  n\n"
            "────────────┼─────────┼────────\n"
            "first     1 │   22  3 │   44  5\n",
        )
        parts = table.render(25, rendering.Palette(False), in_parts=True).split("\n\n")
        self.assertEqual([part.count("name   rate │ here  n\n") for part in parts], [1, 1])
        self.assertEqual(table.render_html().count('<th colspan="2" class="ruled">e-1</th>'), 2)
        names = [rendering.Column("name"), rendering.Column("training", right, rule_before=True)]
        ruled = rendering.Table([*names, *heads, *heads])
        ruled.add_row(["first", "1", "22", "3", "44", "5"])
        lines = ruled.render(35, rendering.Palette(False), in_parts=True).splitlines()
        self.assertLessEqual(max(map(len, lines)), 35, "also with a rule among the names")

    def test_colours_do_not_move_columns(self):
        table = rendering.Table([rendering.Column("a"), rendering.Column("b", rendering.Align.RIGHT)])
        table.add_row([rendering.Cell("x", rendering.GREEN), rendering.Cell("y", rendering.BOLD)])
        plain = table.render(0, rendering.Palette(False))
        painted = table.render(0, rendering.Palette(True))
        self.assertIn("\x1b[32mx\x1b[0m", painted)
        self.assertEqual(re.sub(r"\x1b\[\d+m", "", painted), plain)


class ExitCodeTest(unittest.TestCase):
    def test_errors_have_the_exit_codes_of_the_program(self):
        codes = grpc.StatusCode
        expected = {
            codes.INVALID_ARGUMENT: USAGE, codes.NOT_FOUND: FAILURE, codes.PERMISSION_DENIED: FAILURE,
            codes.UNAVAILABLE: FAILURE, codes.DEADLINE_EXCEEDED: UNREACHABLE, codes.CANCELLED: UNREACHABLE,
        }  # fmt: skip
        for code, exit_code in expected.items():
            message, found = command_line.explain(errors.LengthwiseError("what happened", code=code))
            self.assertEqual(found, exit_code, code)
            self.assertTrue(message.startswith("what happened"))

    def test_an_error_of_the_system_says_what_failed(self):
        def told(out=None, numbers="/nowhere/numbers.json"):
            err = io.StringIO()
            self.assertEqual(command_line.main(["grids", numbers, "-o", "a.png"], out or io.StringIO(), err), FAILURE)
            return err.getvalue()

        self.assertEqual(told(), "lengthwise: /nowhere/numbers.json: No such file or directory\n")
        run = "lengthwise.commands.grids.run"
        with mock.patch("tempfile._candidate_tempdir_list", list), mock.patch("tempfile.tempdir", None):
            with mock.patch(run, lambda *_: tempfile.gettempdir()):
                self.assertEqual(told(), "lengthwise: No usable temporary directory found in []\n")
        with open("/dev/full", "wb", buffering=0) as full, io.TextIOWrapper(full, write_through=True) as out:
            with mock.patch(run, lambda *_: out.write("text")):
                full_disk = "cannot write all of the output: No space left on device; free some space"
                self.assertEqual(told(out), f"lengthwise: {full_disk}\n")


class CommandLineTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = service.Server()
        cls.environment = warm.environment(cls)
        cls.client = lengthwise.Client(cls.server.address)
        worker = service.Worker(cls.server)
        cls.client.submit(service.specification("tiny", protocol="randomized_positional_encodings"))
        cls.client.submit(service.specification("other", training={"steps": 100, "batch_size": 4, "lengths": "1..4"}))
        worker.run_all()

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.server.kill()

    def run_program(self, *arguments, environment=None, server=None, directory=None):
        """`lengthwise`."""
        variables = {
            **self.environment, "LENGTHWISE_SERVER": server or self.server.address, **(environment or {})
        }
        return subprocess.run(
            [pathlib.Path(CLIENT).resolve(), *arguments], env=variables, cwd=directory, capture_output=True, text=True,
            timeout=service.DEADLINE,
        )  # fmt: skip

    def output(self, *arguments, **more):
        done = self.run_program(*arguments, **more)
        self.assertEqual((done.returncode, done.stderr), (SUCCESS, ""), done)
        return done.stdout

    def assert_one_line(self, done, code, text):
        self.assertEqual(done.returncode, code, done)
        self.assertTrue(done.stderr.startswith("lengthwise: "), done)
        self.assertEqual(done.stderr.count("\n"), 1, done)
        self.assertIn(text, done.stderr)

    def test_results_are_compared_with_a_table(self):
        text = self.output("results", "tiny", "--compare", "randomized_pe/table_1")
        self.assertTrue(text.startswith("tiny-1 beside Table 1 of Ruoss et al. 2023 (ACL): accuracy on unseen lengths"), text)
        # The best of two seeds over lengths 6 and 8, and the paper's 23.7 and 24.3 for bucket sort.
        best = 100 * max((Numbers(index).accuracy(6) + Numbers(index).accuracy(8)) / 2 for index in (0, 1))
        self.assertRegex(text, rf"CS +Bucket Sort † +20 │ +{best:.1f} +23\.7")
        self.assertIn("2 of 165 cells have a value", text)
        self.assertIn("steps 200 (paper: 2,000,000)", text)
        self.assertIn("network blocks 1 (paper: 5)", text)
        self.assertIn("The released code, where the trials here are as in the text: ", text)

    def test_every_kind_of_output_has_the_cells(self):
        arguments = ("results", "tiny-1", "--compare", "randomized_pe/table_1", "--output")
        rows = list(csv.DictReader(io.StringIO(self.output(*arguments, "csv"))))
        self.assertEqual(len(rows), 165)
        (alibi,) = [row for row in rows if (row["task"], row["encoding"]) == ("bucket_sort", "rand_alibi")]
        self.assertEqual(
            ",".join(alibi.values()),
            "bucket_sort,CS,true,20,rand_alibi,,,0,99.6,,,false,false,unseen_accuracy,Bucket Sort,Randomized ALiBi,,",
        )
        found = json.loads(self.output(*arguments, "json"))
        self.assertEqual((found["cells_run"], found["cell_count"], len(found["cells"])), (2, 165, 165))
        self.assertIn({"what": "seeds", "here": "2", "published": "10"}, found["differences"])
        self.assertIn("| CS | Bucket Sort † |", self.output(*arguments, "markdown"))
        self.assertIn("\\begin{tabular}{llrrrrrrr}", self.output(*arguments, "latex"))
        whole = self.output(*arguments, "markdown", "--whole-table")
        self.assertIn("Binary Multiplication", whole)

    def test_table_is_a_document(self):
        markdown = self.output("results", "tiny-1", "--output", "markdown")
        self.assertTrue(markdown.startswith("| encoding | trials |"), markdown)
        self.assertIn("\n| sin\\_cos | 2 |", markdown)
        caption = r"\n\nToken accuracy by input length, per cent .*\. Random guess: 20 %"
        self.assertRegex(markdown, caption)
        latex = self.output("results", "tiny-1", "--output", "latex")
        self.assertTrue(latex.startswith("% \\usepackage{booktabs}\n\\begin{tabular}{lr"), latex)
        self.assertIn("\nsin\\_cos & 2 & ", latex)
        self.assertRegex(latex, caption.replace(r"\n\n", "\n% "))

    def test_all_tables_of_its_paper_are_compared(self):
        text = self.output("results", "tiny", "--compare", "all")
        self.assertEqual(re.findall(r"beside Table (\d)", text), ["1", "2", "4"])
        self.assertIn("other-1 has no result in a published table", self.output("results", "other", "--compare", "all"))
        found = json.loads(self.output("results", "tiny", "--compare", "all", "--output", "json"))
        self.assertEqual([one["table"] for one in found], [f"randomized_pe/table_{n}" for n in (1, 2, 4)])
        self.assertEqual(json.loads(self.output("results", "other", "--compare", "all", "--output", "json")), [])
        rows = list(csv.DictReader(io.StringIO(self.output("results", "tiny", "--compare", "all", "--output", "csv"))))
        self.assertEqual({row["table"] for row in rows}, {one["table"] for one in found})
        self.assertEqual(len(rows), sum(len(one["cells"]) for one in found))

    def test_statement_at_one_length(self):
        text = self.output("results", "other", "--compare", "addition_length_gen/statements")
        heading = "other-1 beside Statements in the text of Zhou et al. 2024: accuracy at length 100, per cent."
        self.assertTrue(text.startswith(heading), text)
        self.assertIn("The paper's length extension ratio of 2.5 follows from the cell", " ".join(text.split()))
        self.assertIn("tasks bucket_sort (paper: decimal_addition)", " ".join(text.split()))

    def test_tables_are_listed_without_a_server(self):
        text = self.output("results", "--compare", "list", server="127.0.0.1:1")
        self.assertIn("randomized_pe/table_1 ", text)
        listed = json.loads(self.output("results", "--compare", "list", "--output", "json", server="127.0.0.1:1"))
        self.assertEqual(len(listed), 36)
        self.assertEqual(set(listed[0]), {"key", "paper", "table", "title"})

    def test_two_experiments_stand_side_by_side(self):
        text = self.output("compare", "tiny", "other")
        self.assertIn("other-1 against tiny-1: mean unseen accuracy; ±: standard deviation over trials\n", text)
        means = [(Numbers(index).accuracy(6) + Numbers(index).accuracy(8)) / 2 for index in (0, 1)]
        self.assertRegex(text, rf"bucket_sort  none     │ +{50 * sum(means):.1f} ± \d+\.\d  2 │")
        self.assertIn("training.steps 100 (tiny-1: 200)", " ".join(text.split()))
        rows = list(csv.DictReader(io.StringIO(self.output("compare", "tiny", "other", "--output", "csv"))))
        self.assertEqual([row["encoding"] for row in rows], ["none", "sin_cos"])
        self.assertAlmostEqual(float(rows[0]["first_unseen"]), sum(means) / 2)
        self.assertEqual((rows[0]["first_trials"], float(rows[0]["difference"])), ("2", 0))
        self.assertTrue(self.output("compare", "tiny", "tiny").endswith("\nBoth were trained and scored alike.\n"))

    def test_analyses_read_stored_data(self):
        def rows(analysis, *more):
            return list(csv.DictReader(io.StringIO(self.output("analyze", analysis, "tiny", *more, "--output", "csv"))))

        plain, noisy = rows("noise")[:2]
        of_both = [numpy.mean([Numbers(index).accuracy(length) for length in Numbers.LENGTHS]) for index in (0, 1)]
        self.assertEqual((plain["encoding"], plain["noise"], plain["models"]), ("none", "0", "2"))
        self.assertAlmostEqual(float(plain["accuracy"]), numpy.mean(of_both))
        self.assertEqual((noisy["noise"], noisy["accuracy"]), ("0.1", "0.75"))
        (tested,) = rows("t_test", "--reference", "none")
        self.assertAlmostEqual(float(tested["accuracy"]) - float(tested["reference_accuracy"]), 0.02)
        self.assertEqual((tested["encoding"], tested["pairs"], tested["t"]), ("sin_cos", "2", ""), "all differ by as much")
        maps = [Numbers(index).attention().astype(float).ravel() for index in range(4)]
        units = [one / numpy.linalg.norm(one) for one in maps]
        self_similar, other = rows("attention", "--reference", "none")
        self.assertAlmostEqual(float(self_similar["cosine"]), units[0] @ units[1])
        self.assertAlmostEqual(
            float(other["cosine"]), numpy.mean([units[own] @ units[two] for own in (2, 3) for two in (0, 1)])
        )
        text = self.output("analyze", "speed", "tiny", "--accuracy", "0.1")
        # 200 steps in 2 s.
        self.assertRegex(text, r"none +100\.0 ± 0\.0 +1\.0")
        frame = self.client.experiment("tiny-1").analyze.noise()
        self.assertEqual(frame["accuracy"].tolist()[1], 0.75)

    def test_private_server_on_a_data_directory(self):
        copy = service.new_directory() / "data"
        server = service.Server()
        with lengthwise.Client(server.address) as client:
            client.submit(service.specification("kept"))
        server.kill()
        (server.directory / "data").rename(copy)
        # A token for another server must not be used for this one.
        environment = {
            "LENGTHWISE_SERVER_BINARY": str(pathlib.Path(service.SERVER).resolve()), "LENGTHWISE_TOKEN_FILE": "/no",
        }  # fmt: skip
        text = self.output(
            "results", "kept", "--compare", "randomized_pe/table_1", "--data_dir", str(copy), environment=environment
        )
        self.assertTrue(text.startswith("kept-1 beside Table 1"), text)

    def test_mistakes_are_one_line_each(self):
        run = self.run_program
        self.assert_one_line(
            run("results", "e", "--compare", "randomised_pe/table_1", server="127.0.0.1:1"),
            USAGE,
            'unknown published table "randomised_pe/table_1"; did you mean "randomized_pe/table_1"?; '
            "`lengthwise results --compare list` prints them\n",
        )
        self.assert_one_line(
            run("results", "e", "--compare", "randomized_pe/table_1", server="127.0.0.1:1"),
            UNREACHABLE,
            "cannot reach a server at 127.0.0.1:1 (Connection refused); start `lengthwise_server`, pass --server "
            "HOST:PORT, or train here with `lengthwise run SPEC`\n",
        )
        self.assert_one_line(run("compare", "tiny", "tinny-1"), FAILURE, 'did you mean "tiny-1"?')
        self.assert_one_line(
            run("results", "tiny", "--compare", "lst_pe_init/table_3"), USAGE, "`lengthwise analyze attention EXPERIMENT"
        )
        self.assert_one_line(
            run("plot", "tiny", "--figure", "loss", "--learning_rate", "abc"), USAGE, "see `lengthwise plot --help`\n"
        )
        self.assert_one_line(
            run("results", "tiny", "--compare", "list", environment={"LENGTHWISE_PYTHON": "/nowhere"}),
            FAILURE,
            "run deploy/install.sh\n",
        )

    def test_current_directory_is_not_imported(self):
        directory = service.new_directory()
        for name in ("json.py", "lengthwise.py"):
            (directory / name).write_text("raise SystemExit('of the current directory')\n")
        arguments = ("results", "--compare", "list")
        text = self.output(*arguments, directory=directory, environment=service.ENVIRONMENT)  # a new Python
        self.assertIn("randomized_pe/table_1 ", text)

    def test_closed_pipe_is_no_error(self):
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run(
            [sys.executable, "-m", "lengthwise", "results", "--compare", "list"],
            env=service.ENVIRONMENT, stdout=write, stderr=subprocess.PIPE, text=True, timeout=service.DEADLINE,
        )  # fmt: skip
        os.close(write)
        self.assertEqual(done.stderr, "")

    def test_module_names_its_commands(self):
        for given in ([], ["--help"], ["reslts"]):
            run = [sys.executable, "-m", "lengthwise", *given]
            done = subprocess.run(run, env=service.ENVIRONMENT, capture_output=True, text=True, timeout=service.DEADLINE)
            said = f'the command is "{"".join(given)}", accepted: analyze, compare, '
            self.assert_one_line(done, USAGE, said)

    def test_command_line_imports_no_pandas(self):
        code = "import sys, lengthwise.commands.results, lengthwise.comparison_display; print('pandas' in sys.modules)"
        done = subprocess.run(
            [sys.executable, "-c", code], env=service.ENVIRONMENT,
            capture_output=True, text=True, timeout=service.DEADLINE,
        )  # fmt: skip
        self.assertEqual(done.stdout, "False\n", done.stderr)

    def test_notebook_gets_a_frame(self):
        frame = self.client.experiment("tiny").compare("randomized_pe/table_1")
        self.assertEqual(len(frame), 165)
        row = frame[(frame["task"] == "bucket_sort") & (frame["encoding"] == "none")].iloc[0]
        self.assertEqual((row["published"], row["trials"]), (23.7, 2))
        self.assertTrue(frame.attrs["heading"].startswith("tiny-1 beside Table 1"))
        self.assertTrue(any(remark.startswith("Not the paper's protocol: steps 200") for remark in frame.attrs["remarks"]))


if __name__ == "__main__":
    unittest.main()
