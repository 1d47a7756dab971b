"""`lengthwise plot` as a user types it, and `experiment.plot`, with a real server."""
import csv
import io
import json
import pathlib
import re
import subprocess
import unittest
import xml.etree.ElementTree as ElementTree

import service
import warm
from lengthwise import plots
from lengthwise.errors import UsageError
from lengthwise.plots.options import OPTIONS
from matplotlib.figure import Figure
from service import CLIENT, Numbers, lengthwise

SUCCESS, FAILURE, USAGE, UNREACHABLE = 0, 1, 2, 3
SVG = "{http://www.w3.org/2000/svg}"


def png_size(path):
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")


def svg_texts(path):
    return ["".join(text.itertext()) for text in ElementTree.parse(path).iter(f"{SVG}text")]


class PlotCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = service.Server()
        cls.client = lengthwise.Client(cls.server.address)
        worker = service.Worker(cls.server)
        evaluation = {**service.specification("x")["evaluation"], "projection": {"lengths": [4]}}
        cls.client.submit(service.specification("tiny", evaluation=evaluation))
        cls.client.submit(service.specification("other", evaluation={"lengths": [2, 4, 6, 8], "sequences": 10}))
        worker.run_all()
        cls.client.submit(service.specification("waiting", seeds=[0]))

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.server.kill()

    def setUp(self):
        self.directory = service.new_directory()


class PlotTest(PlotCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.environment = warm.environment(cls)

    def plot(self, *arguments, server=None, environment=None):
        """With `environment`, a new Python runs it."""
        variables = service.ENVIRONMENT | environment if environment else self.environment
        variables = {**variables, "LENGTHWISE_SERVER": server or self.server.address}
        return subprocess.run(
            [pathlib.Path(CLIENT).resolve(), "plot", *arguments], env=variables, cwd=self.directory, capture_output=True,
            text=True, timeout=service.DEADLINE,
        )  # fmt: skip

    def output(self, *arguments, environment=None):
        done = self.plot(*arguments, environment=environment)
        self.assertEqual((done.returncode, done.stderr), (SUCCESS, ""), done)
        return done.stdout

    def refused(self, code, *arguments, server=None):
        done = self.plot(*arguments, server=server)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done)
        self.assertEqual(done.stderr.count("\n"), 1, done)
        return done.stderr

    def test_help_lists_the_figures_of_the_package(self):
        listed = dict(re.findall(r"^ {4}(\w+) +(.+)$", self.output("--help").partition("Figures:\n")[2], re.MULTILINE))
        self.assertEqual(listed, {name: kind.description for name, kind in plots.FIGURES.items()})

    def test_mistakes_are_reported_without_a_server(self):
        def told(*arguments):
            return self.refused(USAGE, "e-1", *arguments, server="127.0.0.1:1")

        self.assertIn("say what to draw: --figure accuracy_by_length|", told())
        self.assertIn('did you mean "attention"?', told("--figure", "atention"))
        self.assertIn("must end with .svg, .pdf or .png", told("--figure", "loss", "-o", "a.eps"))
        self.assertIn("100 to 10000", told("--figure", "loss", "--width", "7"))
        self.assertIn("--layer is for the figure attention alone", told("--figure", "loss", "--layer", "1"))
        self.assertIn(
            "error_places, error_counts, attention, length_sweep, accuracy_over_steps, error_carries and carry_chains",
            told("--figure", "loss", "--length", "2"),
        )
        self.assertIn(
            "the figure attention_similarity needs --reference, the encoding", told("--figure", "attention_similarity")
        )
        self.assertIn("the figure human_scatter needs --people, a file", told("--figure", "human_scatter"))
        self.assertIn("--metric is for the figures accuracy_by_length", told("--figure", "noise", "--metric", "loss"))
        self.assertIn("--parameter is for the figure length_sweep", told("--figure", "loss", "--parameter", "slope"))
        self.assertIn("must end with .csv or .json", told("--figure", "loss", "--data", "a.xls"))
        self.assertIn(
            "cannot write /nowhere/a.svg: No such file or directory; make its directory, or name another file",
            self.refused(FAILURE, "e-1", "--figure", "loss", "-o", "/nowhere/a.svg", server="127.0.0.1:1"),
        )
        self.assertIn(
            "127.0.0.1:1", self.refused(UNREACHABLE, "e-1", "--figure", "loss", server="127.0.0.1:1"), "the server is asked"
        )

    def test_unknown_names_get_a_suggestion(self):
        def told(*arguments):
            return self.refused(FAILURE, "--figure", "loss", *arguments)

        self.assertIn('there is no experiment "f-1"', told("f-1"))
        self.assertIn(
            'tiny-1 has no task "buckt_sort"; did you mean "bucket_sort"?', told("tiny", "--task", "buckt_sort")
        )
        self.assertIn('did you mean "sin_cos"?', told("tiny", "--encoding", "sincos"))
        self.assertIn('no learning rate "3"', told("tiny", "--learning_rate", "3"))
        self.assertIn('there is no trial "t9"', told("tiny", "--trial", "t9"))
        self.assertIn("training.report_every_steps", told("waiting"))

    def test_asked_size_title_data_and_program(self):
        printed = self.output(
            "tiny", "--figure", "accuracy_by_length", "-o", "a.png", "--width", "500", "--height", "400"
        )
        self.assertEqual(printed, "a.png\n")
        self.assertEqual(png_size(self.directory / "a.png"), (500, 400))
        printed = self.output(
            "tiny/0", "--figure", "accuracy_by_length", "-o", "a.svg", "--title", "My $1 title", "--data", "a.csv",
            "--script", "a.py",
        )  # fmt: skip
        self.assertEqual(printed, "a.csv\na.py\na.svg\n")
        self.assertIn("My $1 title", svg_texts(self.directory / "a.svg"))
        rows = list(csv.DictReader(io.StringIO((self.directory / "a.csv").read_text())))
        self.assertEqual(
            [(row["panel"], row["series"], float(row["x"]), float(row["y"])) for row in rows],
            [("Bucket Sort", "None", length, Numbers(0).accuracy(length)) for length in Numbers.LENGTHS],
        )
        self.assertIn("import matplotlib", (self.directory / "a.py").read_text())

    def test_programs_replace_only_programs(self):
        mine = self.directory / "mine.py"
        mine.write_text("print('mine')\n")
        told = self.refused(USAGE, "tiny", "--figure", "loss", "--script", "mine.py")
        self.assertIn("mine.py is there already, and is no program that --script wrote", told)
        self.assertEqual(mine.read_text(), "print('mine')\n")
        told = self.refused(USAGE, "tiny", "--figure", "loss", "--script", "mine.yaml")
        self.assertIn("its name must end with .py", told)
        for _ in range(2):
            self.output("tiny", "--figure", "loss", "-o", "a.svg", "--script", "own.py")

    def test_pictures_have_names_of_their_own(self):
        printed = self.output("tiny", "other", "--figure", "loss")
        self.assertEqual(printed, "tiny-1-other-1-loss.svg\ntiny-1-other-1-loss.png\n")
        for name in printed.split():
            self.assertTrue((self.directory / name).stat().st_size > 1000)
        self.output("tiny", "--figure", "loss", "-o", "a.pdf")
        self.assertTrue((self.directory / "a.pdf").read_bytes().startswith(b"%PDF-"))

    def test_settings_of_a_notebook_do_not_matter(self):
        (self.directory / "matplotlibrc").write_text("backend: module://no_such_module\n")
        settings = {
            "MPLBACKEND": "module://matplotlib_inline.backend_inline", "MATPLOTLIBRC": "/nonexistent", "PYTHONWARNINGS": "error",
            "PYTHONOPTIMIZE": "2", "PYTHONINSPECT": "1", "PYTHONVERBOSE": "1", "PYTHONIOENCODING": "ascii",
            "PYTHONSTARTUP": "/nonexistent.py",
        }  # fmt: skip
        done = self.plot("tiny", "--figure", "loss", "-o", "ä.svg", environment=settings)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (SUCCESS, "ä.svg\n", ""), done)

    def test_every_figure_with_data_is_drawn(self):
        text = {
            "accuracy_by_length": "Accuracy by length: tiny-1",
            "accuracy_of_trials": "Every trial's token accuracy by input length: tiny-1",
            "seed_distribution": "Scores of all seeds: tiny-1",
            "error_places": "Where symbols are wrong at length 6: tiny-1",
            "error_counts": "How many symbols are wrong at length 6: tiny-1",
            "loss": "Training loss: tiny-1",
            "loss_over_time": "Training loss: tiny-1",
            "attention": "Attention, maximum over heads: tiny-1, Bucket Sort",
            "projection": "Activations projected onto two components: tiny-1, Bucket Sort",
            "accuracy_over_steps": "Token accuracy over training: tiny-1",
            "accuracy_over_epochs": "Token accuracy over training: tiny-1",
            "accuracy_over_time": "Accuracy over training time: tiny-1",
            "noise": "Accuracy under noise: tiny-1",
            "noise_average": "Average accuracy under noise: tiny-1",
            "attention_matrix": "Similarity of attention: tiny-1",
        }
        for figure, title in text.items():
            with self.subTest(figure=figure):
                self.output("tiny", "--figure", figure, "-o", "a.svg")
                self.assertIn(title, svg_texts(self.directory / "a.svg"))
        self.output("tiny", "--figure", "attention_similarity", "--reference", "none", "-o", "a.svg")
        self.assertIn("Attention beside none: tiny-1", svg_texts(self.directory / "a.svg"))

    def test_terminal_shows_lines(self):
        text = self.output("tiny", "--figure", "loss", "--terminal")
        self.assertTrue(text.startswith("Training loss: tiny-1\n\nBucket Sort · cross-entropy, nats\n"), text)
        self.assertIn(" None\n", text)
        text = self.output("tiny", "--figure", "accuracy_over_steps", "--terminal")
        self.assertTrue(text.startswith("Token accuracy over training: tiny-1\n\nlength 2, seen in training · "), text)
        self.assertEqual(list(self.directory.iterdir()), [], "no picture is written")
        refusal = self.refused(USAGE, "tiny", "--figure", "attention", "--terminal")
        self.assertIn("a terminal cannot show the figure attention", refusal)

    def test_missing_records_are_reported(self):
        self.assertIn("recorded: 3", self.refused(USAGE, "tiny", "--figure", "attention", "--length", "41"))
        self.assertIn("do not differ in a number", self.refused(FAILURE, "tiny", "--figure", "length_sweep"))
        refusal = self.refused(USAGE, "tiny", "--figure", "accuracy_by_length", "--metric", "digits")
        self.assertIn('no evaluation of tiny-1 has "digits"; there are accuracy, loss, digits_accuracy', refusal)
        refusal = self.refused(USAGE, "tiny", "--figure", "attention", "--width", "200")
        self.assertIn("it needs at least ", refusal)

    def test_nothing_of_a_failed_picture_stays(self):
        (self.directory / "a.svg").mkdir()
        self.assertIn("Is a directory", self.refused(FAILURE, "tiny", "--figure", "loss", "-o", "a.svg"))
        self.assertEqual([path.name for path in self.directory.iterdir()], ["a.svg"])

    def test_only_the_wanted_trials_are_drawn(self):
        for figure in ("accuracy_by_length", "loss", "accuracy_over_steps"):
            self.output("tiny", "--figure", figure, "--encoding", "none", "--data", "a.json", "-o", "a.svg")
            panels = json.loads((self.directory / "a.json").read_text())["panels"]
            names = {series["name"] for panel in panels for series in panel["series"]} - {""}
            self.assertEqual(names, {"None"}, figure)

    def test_json_has_the_lines(self):
        self.output("tiny", "--figure", "accuracy_by_length", "--seeds", "best", "--data", "a.json", "-o", "a.svg")
        data = json.loads((self.directory / "a.json").read_text())
        best = max((0, 1), key=lambda index: Numbers(index).accuracy(6) + Numbers(index).accuracy(8))
        thick = [series for series in data["panels"][0]["series"] if not series["faint"]]
        self.assertEqual(thick[0]["y"], [Numbers(best).accuracy(length) for length in Numbers.LENGTHS])


class NotebookTest(PlotCase):
    def test_a_figure_is_returned_or_drawn_on_axes(self):
        experiment = self.client.experiment("tiny-1")
        figure = experiment.plot.accuracy_by_length()
        self.assertIsInstance(figure, Figure)
        (axes,) = figure.axes
        lines = {tuple(line.get_ydata()) for line in axes.get_lines()}
        means = tuple((Numbers(0).accuracy(length) + Numbers(1).accuracy(length)) / 2 for length in Numbers.LENGTHS)
        self.assertTrue(any(all(abs(a - b) < 1e-9 for a, b in zip(line, means)) for line in lines if len(line) == 4))
        self.assertTrue(figure._repr_png_().startswith(b"\x89PNG"))
        own = Figure()
        axes = own.add_subplot()
        self.assertIs(self.client.experiment("tiny-1").plot.accuracy_by_length(ax=axes, encodings="none"), own)
        self.assertEqual(len([line for line in axes.get_lines() if len(line.get_xdata()) == 4]), 1)

    def test_unknown_figure_is_reported(self):
        experiment = self.client.experiment("tiny-1")
        self.assertIn("accuracy_over_epochs", dir(experiment.plot))
        with self.assertRaisesRegex(AttributeError, "there are accuracy_by_length, "):
            _ = experiment.plot.accuracy
        with self.assertRaisesRegex(lengthwise.LengthwiseError, 'tiny-1 has no encoding "sincos"; did you mean "sin_cos"'):
            experiment.plot.loss(encodings=["sincos"])

    def test_wrong_option_is_reported(self):
        experiment = self.client.experiment("tiny-1")
        for figure, options, told in (
            ("loss", {"seeds": "x"}, 'seeds: got \'x\', expected "mean", "best" or "all"'),
            ("attention", {"layer": 0}, "layer: got 0, expected a whole number from 1"),
            ("attention", {"layr": 1}, 'unknown option "layr"; did you mean "layer"?'),
            ("loss", {"encoding": "none"}, 'unknown option "encoding"; did you mean "encodings"?'),
            ("loss", {"xyz": 1}, 'unknown option "xyz"; accepted: ax, decorated, encodings, learning_rates, metric, networks, '
                "seeds, select, smooth, tasks, title"),
            ("loss", {"layer": 1}, "--layer is for the figure attention alone"),
        ):  # fmt: skip
            with self.assertRaisesRegex(UsageError, f"^{re.escape(told)}$"):
                getattr(experiment.plot, figure)(**options)
        with self.assertRaisesRegex(UsageError, '^measure: got \'x\', expected "cosine" or "js"$'):
            experiment.analyze.attention(reference="none", measure="x")

    def test_docstrings_list_the_options(self):
        plot = self.client.experiment("tiny-1").plot
        for name, kind in plots.FIGURES.items():
            text = getattr(plot, name).__doc__
            self.assertTrue(text.startswith(kind.description))
            accepted = [one for one in OPTIONS if one in (*kind.options, "select")]
            self.assertEqual([one for one in OPTIONS if f"\n{one}: " in text], accepted)
        self.assertEqual([one for one in OPTIONS if f"\n{one}: " in plots.Options.__doc__], list(OPTIONS))


if __name__ == "__main__":
    unittest.main()
