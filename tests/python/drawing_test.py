"""From a figure's description to a picture: ticks, layout, files, the caller's axes, and its numbers as CSV, JSON and a program."""
import csv
import io
import json
import math
import subprocess
import sys
import unittest
import unittest.mock

import numpy
import service
from lengthwise.errors import LengthwiseError
from lengthwise.plots import drawing, numbers, style
from lengthwise.plots.picture import Axis, HeatMap, Panel, Picture, Reference, Series
from lengthwise.plots.series_style import numbered_style
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text


def heat_map(values):
    return HeatMap(values, tokens=values.shape[0])


def grid(panels, columns):
    picture = Picture("accuracy_by_length", "A title", "Some words about what was averaged and what was left out of it.")
    picture.x = Axis("input length", ticks="counts", range=(0, 500))
    picture.y = Axis("token accuracy", ticks="percent", range=(0, 1))
    picture.columns = columns
    picture.shaded_label = "lengths seen in training"
    for number in range(panels):
        series = [Series(f"Randomized encoding {s}", [1, 500], [1, 0.5], style=numbered_style(s)) for s in range(11)]
        guess = Reference(0.5, f"random guess {50 + number} %")
        picture.panels.append(Panel(f"Task {number}", series, shaded=(0, 40), references=[guess]))
    return picture


class TicksTest(unittest.TestCase):
    def labels(self, axis, low, high, most):
        axes = Figure().add_subplot()
        if axis.scale != "linear":
            axes.set_xscale("log", base=2 if axis.scale == "log2" else 10)
        axes.set_xlim(low, high)
        drawing.set_ticks(axes.xaxis, axis, most)
        FigureCanvasAgg(axes.figure).draw()
        at = axes.get_xticks()
        texts = [label.get_text() for label in axes.get_xticklabels()]
        return [text for value, text in zip(at, texts) if low * (1 - 1e-9) <= value <= high * (1 + 1e-9) or low <= value <= high]

    def test_stand_at_round_values_within_the_range(self):
        self.assertEqual(self.labels(Axis(), 0, 500, 6), ["0", "100", "200", "300", "400", "500"])
        self.assertEqual(self.labels(Axis(), 1, 60, 5), ["20", "40", "60"])
        self.assertEqual(self.labels(Axis(), 0, 2_000_000, 5), ["0", "500k", "1M", "1.5M", "2M"])
        self.assertEqual(self.labels(Axis(), 0, 20_000, 5), ["0", "5k", "10k", "15k", "20k"])
        self.assertEqual(self.labels(Axis(), 0, 2000, 3), ["0", "1000", "2000"])
        self.assertEqual(self.labels(Axis(), -0.3, 0.3, 5), ["-0.2", "0", "0.2"])

    def test_counts_have_no_ticks_between_them(self):
        self.assertEqual(self.labels(Axis(ticks="counts"), 1, 3, 12), ["1", "2", "3"])
        self.assertEqual(self.labels(Axis(ticks="counts"), 1, 60, 5), ["20", "40", "60"])

    def test_accuracies_are_written_in_per_cent(self):
        expected = ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"]
        self.assertEqual(self.labels(Axis(ticks="percent"), 0, 1, 6), expected)

    def test_logarithmic_axes_have_decades(self):
        axis = Axis(scale="log10")
        self.assertEqual(self.labels(axis, 0.04, 2.5, 8), ["0.05", "0.1", "0.2", "0.5", "1", "2"])
        self.assertEqual(self.labels(axis, 1e-5, 2, 8), ["1e-05", "0.0001", "0.001", "0.01", "0.1", "1"])

    def test_powers_of_two_are_written_in_full(self):
        axis = Axis(scale="log2")
        self.assertEqual(self.labels(axis, 1024, 16384, 8), ["1024", "2048", "4096", "8192", "16384"])
        self.assertEqual(self.labels(axis, 1024, 16384, 3), ["1024", "4096", "16384"])

    def test_meaningless_ticks_are_omitted(self):
        self.assertEqual(self.labels(Axis(ticks="none"), 0, 1, 5), [])


class LayoutTest(unittest.TestCase):
    def boxes(self, figure):
        """Boxes that must not overlap: texts, frames and entries of the legend."""
        drawn = []
        draw_text = Text.draw

        def remember(text, renderer):
            drawn.append(text)
            draw_text(text, renderer)

        canvas = FigureCanvasAgg(figure)
        canvas.draw()  # computes the layout
        with unittest.mock.patch.object(Text, "draw", remember):
            canvas.draw()
        renderer = canvas.get_renderer()
        found = {f"frame {number}": axes.get_window_extent(renderer) for number, axes in enumerate(figure.axes)}
        for text in drawn:
            if text.get_text() and text.get_visible():
                found[f"{text.get_text()} {id(text)}"] = text.get_window_extent(renderer)
        return found

    def check(self, figure):
        boxes = self.boxes(figure)
        width, height = figure.bbox.width, figure.bbox.height
        names = list(boxes)
        for i, name in enumerate(names):
            box = boxes[name]
            self.assertGreaterEqual(box.x0, -0.5, name)
            self.assertGreaterEqual(box.y0, -0.5, name)
            self.assertLessEqual(box.x1, width + 0.5, name)
            self.assertLessEqual(box.y1, height + 0.5, name)
            for other in names[:i]:
                one = boxes[other]
                across = min(box.x1, one.x1) - max(box.x0, one.x0)
                down = min(box.y1, one.y1) - max(box.y0, one.y0)
                self.assertFalse(across > 0.5 and down > 0.5, f"{name} lies over {other}")

    def test_number_keeps_its_per_cent_sign(self):
        text = "ground truth (even: 37.5 %), 5 % more"
        width = drawing.text_width("ground truth (even: 37.5", 8)
        self.assertEqual(drawing.wrap(text, width, 8), ["ground truth (even:", "37.5 %), 5 % more"])

    def test_nothing_lies_over_anything_or_outside(self):
        for panels, columns in [(1, 1), (4, 2), (15, 4)]:
            with self.subTest(panels=panels):
                self.check(drawing.draw(grid(panels, columns)))

    def test_long_names_of_rows_stay_beside_their_panels(self):
        picture = Picture("attention", "Attention", columns=2, x=Axis("key token"), y=Axis("query token"))
        picture.map_label = "attention, maximum over heads"
        for row in range(3):
            picture.row_titles.append("Missing Duplicate String: Randomized Relative Sinusoidal\nlength 150")
            for column in range(2):
                values = numpy.full((20, 20), 0.1)
                picture.panels.append(Panel(f"layer {column + 1}" if row == 0 else "", map=heat_map(values)))
        self.check(drawing.draw(picture))

    def test_long_titles_stay_above_their_panels(self):
        picture = grid(12, 4)
        for panel in picture.panels:
            panel.title = "Missing Duplicate String, Randomized Relative max_position=4096"
        self.check(drawing.draw(picture))

    def test_the_legend_has_each_name_once(self):
        figure = drawing.draw(grid(4, 2))
        (legend,) = [one for child in figure.subfigs for one in child.legends]
        texts = [text.get_text() for text in legend.get_texts()]
        # 11 series, the shade and the guess.
        self.assertEqual(len(texts), 13)
        self.assertEqual(len(set(texts)), 13)
        self.assertIn("random guess", texts)

    def test_one_panel_says_the_value_of_the_guess(self):
        figure = drawing.draw(grid(1, 1))
        (legend,) = [one for child in figure.subfigs for one in child.legends]
        self.assertIn("random guess 50 %", [text.get_text() for text in legend.get_texts()])

    def test_asked_size_is_kept(self):
        figure = drawing.draw(grid(4, 2), size=drawing.Size(1000, 800))
        png = style.render(figure, ".png")
        self.assertEqual((int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")), (1000, 800))

    def test_maps_are_square(self):
        picture = Picture("attention", columns=2, panels=[Panel(map=heat_map(numpy.ones((1, 1)))) for _ in range(2)])
        figure = drawing.draw(picture, size=drawing.Size(900, 300))
        FigureCanvasAgg(figure).draw()
        first, second, bar = (axes.get_window_extent() for axes in figure.axes)
        self.assertAlmostEqual(first.width, first.height, delta=1)
        self.assertGreater(bar.x0, second.x1)

    def test_too_small_figure_says_what_it_needs(self):
        for size in (drawing.Size(300, 0), drawing.Size(0, 200)):
            with self.assertRaises(LengthwiseError) as raised:
                drawing.draw(grid(15, 4), size=size)
            self.assertIn("it needs at least ", str(raised.exception))
            self.assertIn("leave --width and --height out", str(raised.exception))

    def test_no_two_of_many_series_look_alike(self):
        looks = {tuple(map(str, numbered_style(number).line().values())) for number in range(28)}
        self.assertEqual(len(looks), 28)

    def test_plain_figure_has_no_title_or_caption(self):
        figure = drawing.draw(grid(1, 1), decorated=False)
        texts = [text.get_text() for text in figure.findobj(Text)]
        self.assertNotIn("A title", texts)
        self.assertFalse([text for text in texts if text.startswith("Some words")])


class SavingTest(unittest.TestCase):
    def test_files_do_not_change_from_run_to_run(self):
        for suffix in (".svg", ".pdf", ".png"):
            with self.subTest(suffix=suffix):
                first, second = (style.render(drawing.draw(grid(4, 2)), suffix) for _ in range(2))
                self.assertEqual(first, second)
                self.assertNotIn(b"Date", first)

    def test_its_own_savefig_keeps_the_style(self):
        buffer = io.BytesIO()
        drawing.draw(grid(1, 1)).savefig(buffer, format="svg", metadata={"Date": None, "Creator": "Lengthwise"})
        self.assertEqual(buffer.getvalue(), style.render(drawing.draw(grid(1, 1)), ".svg"))

    def test_text_of_a_vector_picture_is_text(self):
        svg = style.render(drawing.draw(grid(1, 1)), ".svg").decode()
        self.assertIn(">A title<", svg)
        self.assertIn(">token accuracy<", svg)

    def test_a_dollar_is_a_dollar(self):
        picture = grid(1, 1)
        picture.panels[0].series[0].name = "costs $1 and $2"
        self.assertIn("costs $1 and $2", style.render(drawing.draw(picture), ".svg").decode())

    def test_parameters_of_the_caller_stay(self):
        before = dict(pyplot.rcParams)
        style.render(drawing.draw(grid(1, 1)), ".svg")
        self.assertEqual(dict(pyplot.rcParams), before)

    def test_no_window_is_opened(self):
        code = (
            "import sys\nfrom lengthwise.plots import drawing, style\nfrom lengthwise.plots.picture import *\n"
            "style.render(drawing.draw(Picture(panels=[Panel(series=[Series('a', [1, 2], [1, 2])])])), '.png')\n"
            "print('matplotlib.pyplot' in sys.modules)"
        )
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=service.ENVIRONMENT, check=True)
        self.assertEqual(found.stdout, "False\n")


class AxesOfTheCallerTest(unittest.TestCase):
    def test_are_drawn_on_in_the_callers_style(self):
        figure = Figure()
        axes = figure.add_subplot()
        self.assertIs(drawing.draw(grid(1, 1), axes), figure)
        self.assertEqual(len(axes.get_lines()), 12)  # including the guess
        self.assertEqual((axes.get_xlabel(), axes.get_ylabel()), ("input length", "token accuracy"))
        self.assertEqual(len(axes.get_legend().get_texts()), 13)

    def test_must_be_one_for_each_panel(self):
        axes = Figure().subplots(2, 2)
        figure = drawing.draw(grid(4, 2), axes)
        self.assertTrue(all(isinstance(one, Axes) and one.get_lines() for one in figure.axes))
        with self.assertRaisesRegex(LengthwiseError, "has 4 panels here, and 1 axes were given"):
            drawing.draw(grid(4, 2), axes[0, 0])


class NumbersTest(unittest.TestCase):
    def test_csv_has_a_row_a_point(self):
        picture = grid(2, 2)
        picture.panels[1].series = [Series("a", [1.0, 2.0], [0.5, 0.25], [0.4, 0.2], [0.6, 0.3])]
        rows = list(csv.DictReader(io.StringIO(numbers.to_csv(picture))))
        self.assertEqual(len(rows), 11 * 2 + 2)
        self.assertEqual(
            rows[-1], {"panel": "Task 1", "series": "a", "x": "2", "y": "0.25", "low": "0.2", "high": "0.3"}
        )
        self.assertEqual(rows[0]["low"], "")

    def test_csv_of_maps_has_a_row_a_cell(self):
        picture = Picture(columns=1, panels=[Panel("layer 1", map=heat_map(numpy.array([[0.25, 0.75], [1, 0]])))])
        rows = list(csv.reader(io.StringIO(numbers.to_csv(picture))))
        self.assertEqual(rows[0], ["panel", "query", "key", "value"])
        self.assertEqual(rows[2], ["layer 1", "0", "1", "0.75"])

    def test_json_has_the_drawn_data(self):
        data = json.loads(json.dumps(numbers.to_dictionary(grid(1, 1))))
        self.assertEqual(data["panels"][0]["series"][10]["y"], [1.0, 0.5])
        self.assertEqual(data["y"]["range"], [0.0, 1.0])

    def test_json_of_maps_has_their_colours_and_no_nan(self):
        picture = Picture(panels=[Panel("layer 1", map=heat_map(numpy.array([[0.25, math.nan], [0.125, 0]])))])
        picture.map_label, picture.map_maximum = "cosine", 0.25
        data = json.loads(numbers.to_json(picture), parse_constant=self.fail)
        self.assertEqual(data["panels"][0]["map"], [[0.25, None], [0.125, 0]])
        self.assertEqual((data["map_label"], data["map_maximum"]), ("cosine", 0.25))
        directory = service.new_directory()
        (directory / "a.py").write_text(numbers.to_script(picture))
        subprocess.run([sys.executable, "a.py", "a.svg"], cwd=directory, env=service.ENVIRONMENT, check=True, timeout=60)
        self.assertIn("cosine", (directory / "a.svg").read_text())

    def test_the_program_draws_the_figure_again(self):
        directory = service.new_directory()
        picture = grid(2, 2)
        picture.panels[0].title = picture.panels[0].series[0].name = 'a """ b \\ $'
        for name, one in [("lines", picture), ("maps", Picture(panels=[Panel(map=heat_map(numpy.eye(3)))]))]:
            program, target = directory / f"{name}.py", directory / f"{name}.svg"
            program.write_text(numbers.to_script(one), encoding="utf-8")
            environment = {**service.ENVIRONMENT, "MPLBACKEND": "agg"}
            subprocess.run([sys.executable, program, target], check=True, env=environment)
            self.assertGreater(target.stat().st_size, 1000)


if __name__ == "__main__":
    unittest.main()
