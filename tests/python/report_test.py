"""`lengthwise report` for given trials, for hostile text and with a real server, including how a browser shows it."""
import base64
import hashlib
import json
import os
import pathlib
import re
import resource
import signal
import stat
import subprocess
import threading
import time
import unittest
import unittest.mock

import chromium
import grpc
import numpy
import served
import service
import warm
from fake_server import FakeServer
from lengthwise import browser, comparison, printable, published, report, user_file
from lengthwise._proto import catalogue_service_pb2, event_pb2, experiment_service_pb2, specification_pb2
from lengthwise.errors import LengthwiseError
from lengthwise.events import AttentionMap
from lengthwise.plots.catalogue import Catalogue
from lengthwise.plots.data import PlottedExperiment
from service import CLIENT, lengthwise

SUCCESS, FAILURE, USAGE = 0, 1, 2
TRIAL = "experiments/e-1/trials/bucket_sort-relative"
# Text that could be misread by a terminal, a browser or a reader of a table.
HOSTILE = "</script><script>alert(1)</script>\"&"
STEERING = "\x1b]0;title\x07\x1b[2J\rover\u009b2J\u202etxt"


def make_trial(name, state):
    trial = experiment_service_pb2.Trial(name=name, state=state)
    specification = trial.specification
    specification.task.name = specification.task.label = "bucket_sort"
    specification.network.name = "encoder"
    specification.encoding.name = specification.encoding.label = "relative"
    specification.learning_rate = 0.001
    specification.evaluation.seen_up_to = 2
    specification.evaluation.attention_lengths.append(1)
    specification.training.lengths.min, specification.training.lengths.max = 1, 2
    served.set_trained(trial)
    return trial


def make_map(probabilities, length=1, sequence=0):
    """A map of one layer and head, with one input and one output token."""
    return AttentionMap(
        length=length, input_number=0, sequence=sequence, tokens=numpy.array([3, 9], numpy.int32), numbers=numpy.array([]),
        positions=numpy.arange(2), probabilities=numpy.array(probabilities, numpy.float32).reshape(1, 1, 2, 2),
    )  # fmt: skip


def entry(kind, name, title):
    return catalogue_service_pb2.CatalogueEntry(kind=kind, name=name, title=title)


def make_data(description="Does it sort?", owner="ada"):
    """One succeeded trial with accuracies 1.0 at length 1 and 0.625 at length 3."""
    experiment = experiment_service_pb2.Experiment(name="experiments/e-1", owner=owner)
    specification = experiment.specification
    specification.description = description
    specification.evaluation.seen_up_to, specification.evaluation.sequences = 2, 100
    specification.tasks.add(name="bucket_sort")
    experiment.trials.succeeded = 1

    summary = experiment_service_pb2.SummarizeExperimentResponse()
    cell = summary.cells.add(task="bucket_sort", network="encoder", encoding="relative", learning_rate=0.001)
    cell.trials.succeeded = 1
    cell.lengths[:], cell.mean_accuracies[:] = [1, 3], [1.0, 0.625]
    cell.unseen_accuracy.mean, cell.unseen_accuracy.trials = 0.625, 1

    kinds = catalogue_service_pb2
    known = Catalogue(
        {"bucket_sort": entry(kinds.TASK, "bucket_sort", "Bucket Sort")},
        {"relative": entry(kinds.ENCODING, "relative", "Relative")},
    )
    plotted = PlottedExperiment(
        "e-1", [make_trial(TRIAL, event_pb2.SUCCEEDED)], catalogue=known, all_evaluations=[evaluation(TRIAL)],
        maps={TRIAL: [make_map([1, 0, 0.25, 0.75])]},
    )  # fmt: skip
    heading = summary.heading
    heading.axis, heading.axis_title, heading.seen_up_to = "length", "input length", 2
    heading.caption = "Token accuracy by input length, per cent (100 sequences per length; trained on lengths up to 2)"
    heading.seen, heading.unseen = "seen in training", "not seen"
    return report.ReportData(experiment, summary, plotted)


def evaluation(trial):
    one = experiment_service_pb2.QueryLengthAccuraciesResponse.Evaluation(trial=trial)
    one.accuracies.final = True
    one.accuracies.lengths[:], one.accuracies.accuracies[:] = [1, 3], [1.0, 0.625]
    served.set_means(one.accuracies, seen_up_to=2)
    return one


class TestOfHtml(unittest.TestCase):
    """Fails with the missing text instead of the whole file."""

    def assert_has(self, html, *texts):
        for text in texts:
            self.assertTrue(text in html, f"not there: {text}")

    def assert_has_not(self, html, *texts):
        for text in texts:
            self.assertFalse(text in html, f"there: {text}")


def between(text, begin, end):
    return text.partition(begin)[2].partition(end)[0] if begin in text else ""


def shown_maps(html):
    return json.loads(between(html, '<script type="application/json" id="attention-maps">', "</script>"))


class ReportTest(TestOfHtml):
    def test_report_shows_results(self):
        html = report.render(make_data())
        self.assert_has(html, "<h1>e-1</h1>")
        self.assert_has(html, "<p>Does it sort?</p>")
        self.assert_has(html, "<dt>owner</dt><dd>ada</dd>")
        # The mean over the only unseen length.
        self.assert_has(between(html, "<tbody>", "</tbody>"), ">62.5<")
        self.assert_has(html, '<img alt="Accuracy by length: e-1"')

    def test_file_is_self_contained(self):
        html = report.render(make_data())
        for loads in ('src="http', 'href="http', "url(", "@import", "<link"):
            self.assert_has_not(html, loads)

    def test_pictures_are_whole_svg_documents(self):
        html = report.render(make_data())
        sources = re.findall(r'(?:src|srcset)="data:image/svg\+xml;base64,([^"]*)"', html)
        # Accuracy by length, for a wide screen and for a phone.
        self.assertEqual(len(sources), 2)
        for source in sources:
            svg = base64.b64decode(source).decode()
            self.assert_has(svg, "<svg ")
            self.assertTrue(svg.rstrip().endswith("</svg>"))

    def test_attention_maps_keep_their_probabilities(self):
        (one,) = shown_maps(report.render(make_data()))
        self.assertEqual(one["tokens"], [3, 9])
        self.assertEqual(one["model"], "Bucket Sort, Relative")
        self.assertEqual((one["input"], one["sequence"], one["first_output"]), ("length 1", 1, 1))
        # 1, 0, 0.25 and 0.75 in steps of 1/255.
        self.assertEqual(base64.b64decode(one["probabilities"]), b"\xff\x00\x40\xbf")

    def test_maps_beyond_the_size_limit_are_counted(self):
        html = report.render(make_data(), max_attention_bytes=3)
        self.assert_has(html, "1 map is left out")
        self.assert_has_not(html, 'attention-viewer"')

    def test_networks_with_one_encoding_have_separate_maps(self):
        """As in experiments/positional_attention/quick/figure5.yaml, whose networks share one encoding."""
        data = make_data()
        other = "experiments/e-1/trials/bucket_sort-wide-relative"
        data.plotted.trials.append(make_trial(other, event_pb2.SUCCEEDED))
        data.plotted.trials[-1].specification.network.label = "wide"
        data.plotted.all_evaluations.append(evaluation(other))
        data.plotted.maps[other] = [make_map([0, 1, 1, 0])]
        html = report.render(data)
        self.assertEqual(
            [one["model"] for one in shown_maps(html)], ["Bucket Sort, encoder, Relative", "Bucket Sort, wide, Relative"]
        )
        self.assert_has(html, "For each task, network and encoding: the trial with the highest mean accuracy on lengths")

    def test_every_length_gets_a_map_first(self):
        data = make_data()
        data.plotted.maps[TRIAL] = [
            make_map([1, 0, 0, 1], length, sequence) for length in (1, 3) for sequence in (0, 1, 2)
        ]

        def names(html):
            return [f"{one['input']}/{one['sequence']}" for one in shown_maps(html)]

        self.assertEqual(
            names(report.render(data)),
            ["length 1/1", "length 3/1", "length 1/2", "length 3/2", "length 1/3", "length 3/3"],
        )
        small = report.render(data, max_attention_bytes=3 * 4)
        self.assertEqual(names(small), ["length 1/1", "length 3/1", "length 1/2"])
        self.assert_has(small, "3 maps are left out")

    def test_regression_shows_its_numbers(self):
        data = make_data()
        one = make_map([1, 0, 0, 1])
        one.tokens[:] = -1
        object.__setattr__(one, "numbers", numpy.array([0.25, 2.0]))
        data.plotted.maps[TRIAL] = [one]
        # Its outputs take the places of the inputs.
        data.plotted.catalogue.tasks["bucket_sort"].facts["kind"] = "regression"
        (shown,) = shown_maps(report.render(data))
        self.assertEqual((shown["numbers"], shown["first_output"]), ([0.25, 2.0], 2))

    def test_texts_of_users_are_no_markup(self):
        data = make_data(HOSTILE, HOSTILE)
        data.plotted.trials[0].specification.encoding.label = HOSTILE
        data.plotted.trials.append(make_trial("experiments/e-1/trials/other", event_pb2.FAILED))
        data.plotted.trials[-1].reason = HOSTILE
        html = report.render(data)
        self.assert_has_not(html, "alert(1)</script>")
        self.assert_has(html, "&lt;script&gt;alert(1)&lt;/script&gt;&#34;&amp;")
        self.assertIn(HOSTILE, shown_maps(html)[0]["model"])

    def test_failures_are_grouped_by_reason(self):
        data = make_data()
        for i in range(60):
            data.plotted.trials.append(make_trial(f"experiments/e-1/trials/t{i}", event_pb2.FAILED))
            data.plotted.trials[-1].reason = "the loss is not a number at step 7"
        failures = between(report.render(data), 'id="failures"', "</section>")
        self.assert_has(failures, ">the loss is not a number at step 7</h3>\n<p>t0, t1, ")
        self.assert_has(failures, "t49 and 10 more</p>")

    def test_empty_sections_are_left_out(self):
        data = make_data()
        data.summary.ClearField("cells")
        data.plotted.all_evaluations = []
        data.plotted.maps = {}
        html = report.render(data)
        self.assert_has(html, "No trial has been evaluated in full.")
        for section in ("published", "loss", "attention", "projections", "failures"):
            self.assert_has_not(html, f'id="{section}"')
            self.assert_has_not(html, f'href="#{section}"')

    def test_its_policy_allows_no_network(self):
        html = report.render(make_data())
        policy = between(html, 'http-equiv="Content-Security-Policy" content="', '"')
        self.assert_has(policy, "default-src 'none'")
        for too_much in ("http", "*", "unsafe"):
            self.assert_has_not(policy, too_much)
        for directive, element in (("script-src", "script"), ("style-src", "style")):
            text = between(html, f"<{element}>", f"</{element}>")
            self.assertNotEqual(text, "")
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            self.assert_has(policy, f"{directive} 'sha256-{digest}'")

    def test_control_characters_are_escaped(self):
        html = report.render(make_data("\x1b]0;title\x07 \u202etxt"))
        self.assert_has(html, "\\x1b]0;title\\x07 \\u202etxt")
        self.assert_has_not(html, "\x1b")

    def test_a_table_for_phones_comes_first(self):
        html = report.render(make_data())
        self.assertTrue(0 < html.find('<div class="wide phone">') < html.find('<div class="wide">'))

    @unittest.skipUnless(chromium.PROGRAM, chromium.WHY_NOT)
    def test_a_phone_shows_one_table_within_its_width(self):
        path = service.new_directory() / "report.html"
        path.write_text(report.render(make_data()))
        with chromium.Page(path.as_uri(), width=390) as page:
            shown = page.evaluate(
                "[...document.querySelectorAll('#accuracy ~ .wide')].filter((box) => box.offsetParent !== null)"
                ".map((box) => [box.scrollWidth <= box.clientWidth, box.textContent.includes('not seen')])"
            )
        self.assertEqual(shown, [[True, True]])

    def test_a_picture_of_very_many_points_is_a_png(self):
        before = report._MOST_SVG_BYTES
        self.addCleanup(setattr, report, "_MOST_SVG_BYTES", before)
        report._MOST_SVG_BYTES = 1000
        html = report.render(make_data())
        png = base64.b64decode(between(html, 'src="data:image/png;base64,', '"'))
        self.assertEqual(png[:8], b"\x89PNG\r\n\x1a\n")

    def test_tasks_beyond_a_pictures_room_are_reported(self):
        data = make_data()
        for i in range(20):
            name = f"experiments/e-1/trials/t{i}"
            data.plotted.trials.append(make_trial(name, event_pb2.SUCCEEDED))
            data.plotted.trials[-1].specification.task.label = f"task{i}"
            data.plotted.all_evaluations.append(evaluation(name))
        html = report.render(data)
        self.assert_has(
            html,
            "Not drawn here: a picture has room for 16 panels, one a task, and these are 21; choose some with --task of "
            "`lengthwise plot e-1 --figure accuracy_by_length`.",
        )
        self.assert_has_not(html, "<figure>")

    def test_site_says_why_a_figure_is_not_drawn(self):
        data = make_data()
        name = "experiments/e-1/trials/other"
        data.plotted.trials.append(make_trial(name, event_pb2.SUCCEEDED))
        data.plotted.trials[-1].specification.learning_rate = 0.01
        data.plotted.all_evaluations.append(evaluation(name))
        self.assertEqual(report.figure_files(data.plotted)[1], [])
        for one in data.plotted.all_evaluations:
            served.set_means(one.accuracies, seen_up_to=0)
            one.accuracies.ClearField("seen_accuracy")
        figures, undrawn = report.figure_files(data.plotted)
        self.assertNotIn("accuracy_by_length", figures)
        self.assertIn("Not drawn here: nothing chooses between learning rates or seeds", undrawn[0])
        self.assertIn("give evaluation.validation", undrawn[0])

    def test_published_tables_stand_in_it(self):
        data = make_data()
        table = published.find("randomized_pe/table_1")
        summary = experiment_service_pb2.SummarizeExperimentResponse()
        data.comparisons = [
            comparison.compare(
                table, data.experiment.specification, specification_pb2.ExperimentSpecification(), summary, {}, "e-1"
            )
        ]
        self.assert_has(report.render(data), "<h3>e-1 beside Table 1 of Ruoss et al. 2023")
        self.assert_has(report.render(data), '<a href="#published">Beside published numbers</a>')


class ReportOfFakeServerTest(TestOfHtml):
    def setUp(self):
        self.server = FakeServer()
        self.addCleanup(self.server.close)
        self.server.add_experiment("e-1", ["none"])
        self.experiment = self.server.experiments["experiments/e-1"]
        self.trial = self.server.trials["experiments/e-1/trials/bucket_sort-none"]
        self.path = service.new_directory() / "report.html"

    def write(self):
        return report.write(self.server.connection, self.experiment, self.path)

    def test_foreign_text_is_escaped(self):
        self.experiment.owner = self.experiment.specification.description = STEERING
        self.trial.state, self.trial.reason = event_pb2.FAILED, STEERING
        self.trial.specification.encoding.label = STEERING
        for field in ("device", "host", "program_version"):
            setattr(self.trial.outcome.provenance, field, STEERING)
        self.assertEqual(self.write(), self.path)
        html = self.path.read_text()
        self.assertEqual(printable.printable_text(html), html)
        self.assert_has(html, "\\x1b]0;title")

    def test_damaged_maps_are_reported_and_not_shown(self):
        self.trial.specification.evaluation.attention_lengths.append(1)
        self.server.evaluations.append(evaluation(self.trial.name))
        self.server.maps[self.trial.name] = [
            event_pb2.AttentionMap(length=1, tokens=[3, 9], layers=1, heads=1, probabilities=b"\0" * 15)
        ]
        with self.assertRaisesRegex(LengthwiseError, "attention maps of bucket_sort-none"):
            self.write()
        self.assertFalse(self.path.exists())


class UserFileTest(unittest.TestCase):
    def setUp(self):
        self.directory = service.new_directory()
        self.path = self.directory / "a.html"

    def files(self):
        return len(list(self.directory.iterdir()))

    def assert_unwritten(self, function, path, message):
        with self.assertRaises(LengthwiseError) as raised:
            function(path)
        self.assertEqual(raised.exception.code, grpc.StatusCode.FAILED_PRECONDITION)
        self.assertEqual(str(raised.exception), f"cannot write {path}: {message}")

    def test_a_file_has_the_permissions_of_new_files(self):
        before = os.umask(0o027)
        self.addCleanup(os.umask, before)
        user_file.write_for_user(self.path, b"text")
        self.assertEqual(self.path.read_bytes(), b"text")
        self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o640)
        self.assertEqual(self.files(), 1)

    def test_replaced_file_keeps_permissions_and_links(self):
        self.path.write_text("before")
        self.path.chmod(0o600)
        link = self.directory / "link.html"
        link.symlink_to("a.html")
        user_file.check_writable(link)
        user_file.write_for_user(link, b"after")
        self.assertTrue(link.is_symlink())
        self.assertEqual(self.path.read_text(), "after")
        self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o600)

    def test_full_disk_keeps_the_old_file(self):
        self.path.write_text("before")
        # Limits files to a page, as on a full disk.
        self.addCleanup(signal.signal, signal.SIGXFSZ, signal.signal(signal.SIGXFSZ, signal.SIG_IGN))
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limit[1]))
        try:
            self.assert_unwritten(
                lambda path: user_file.write_for_user(path, b"x" * (1 << 20)), self.path, "File too large; choose another place"
            )
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        self.assertEqual(self.path.read_text(), "before")
        self.assertEqual(self.files(), 1)

    def test_unwritable_file_is_reported_before_the_work(self):
        def write(path):
            user_file.write_for_user(path, b"text")

        for function in (user_file.check_writable, write):
            self.assert_unwritten(
                function, self.directory / "nowhere/a.html",
                "No such file or directory; make its directory, or name another file",
            )  # fmt: skip
            self.assert_unwritten(function, self.directory, "Is a directory; name a file in it")
        self.assert_unwritten(write, "/dev/full", "No space left on device; free some space")
        write("/dev/null")


class BrowserTest(unittest.TestCase):
    def setUp(self):
        self.directory = service.new_directory()
        self.variables = {"PATH": str(self.directory)}

    def open(self, path):
        with unittest.mock.patch.dict(os.environ, self.variables, clear=True):
            browser.open_in_browser(path)

    def add_program(self, name):
        """Adds a program that writes its arguments to the pipe "shown"."""
        path = self.directory / name
        path.write_text(f"#!/bin/sh\nprintf %s \"$1\" > '{self.directory}/shown'\n")
        path.chmod(0o755)
        os.mkfifo(self.directory / "shown")

    def shown(self):
        """Waits for the program and returns its arguments."""
        found = []
        reader = threading.Thread(target=lambda: found.append((self.directory / "shown").read_text()), daemon=True)
        reader.start()
        reader.join(service.DEADLINE)
        return found

    def assert_refused(self, text):
        with self.assertRaises(LengthwiseError) as raised:
            self.open("x.svg")
        self.assertIn(text, str(raised.exception))

    def test_starts_the_first_installed_browser(self):
        self.variables["BROWSER"] = "not-there:looker"
        self.add_program("looker")
        self.open("a picture.svg")
        self.assertEqual(self.shown(), [os.path.abspath("a picture.svg")])

    def test_desktop_opener_needs_a_display(self):
        self.add_program("xdg-open")
        self.assert_refused("there is no display")
        self.variables["DISPLAY"] = ":0"
        self.open("-x.svg")
        self.assertEqual(self.shown(), [os.path.abspath("-x.svg")])  # no option

    def test_missing_browser_says_what_to_do(self):
        self.variables["DISPLAY"] = ":0"
        self.assert_refused("apt-get install xdg-utils")
        self.variables["BROWSER"] = "/nowhere/firefox"
        self.assert_refused("$BROWSER names /nowhere/firefox")


class ReportOfServerTest(TestOfHtml):
    """The command and the method, for trials with every kind of data."""

    @classmethod
    def setUpClass(cls):
        cls.server = service.Server()
        cls.environment = warm.environment(cls)
        cls.client = lengthwise.Client(cls.server.address)
        worker = service.Worker(cls.server)
        evaluation = service.specification("")["evaluation"]
        cls.experiment = cls.client.submit(
            {
                **service.specification("tiny"),
                "protocol": "randomized_positional_encodings",
                "description": "Which one sorts?",
                "evaluation": {**evaluation, "projection": {"fitted_length": 4, "lengths": [4]}},
            }
        )
        worker.run_all()

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.server.kill()

    def run_program(self, *arguments, directory=None, **environment):
        variables = {**self.environment, "LENGTHWISE_SERVER": self.server.address, **environment}
        return subprocess.run(
            [pathlib.Path(CLIENT).resolve(), "report", *arguments], env=variables, cwd=directory or service.new_directory(),
            capture_output=True, text=True, timeout=service.DEADLINE,
        )  # fmt: skip

    def assert_one_line(self, done, code, text):
        self.assertEqual((done.returncode, done.stdout), (code, ""), done)
        self.assertEqual(done.stderr, f"lengthwise: {text}\n")

    def test_report_has_every_section(self):
        directory = service.new_directory()
        done = self.run_program("tiny", directory=directory)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (SUCCESS, "tiny-1.html\n", ""))
        html = (directory / "tiny-1.html").read_text()
        for section in ("accuracy", "published", "loss", "attention", "projections", "setup"):
            self.assert_has(html, f'<h2 id="{section}">')
        self.assert_has(html, "<p>Which one sorts?</p>")
        self.assert_has(html, "beside Table 1 of Ruoss et al. 2023")
        self.assertTrue(html.rstrip().endswith("</html>"))
        # Numbers(index).accuracy over lengths 6 and 8, the mean over both seeds.
        unseen = numpy.mean([service.Numbers(index).accuracy(length) for index in (0, 1) for length in (6, 8)])
        self.assert_has(between(html, "<tbody>", "</tbody>"), f">{100 * unseen:.1f}<")
        # The best of each encoding is the second seed, whose map is a function of its index.
        found = shown_maps(html)
        self.assertEqual([one["model"] for one in found], ["Bucket Sort, None", "Bucket Sort, sin / cos"])
        rounded = numpy.frombuffer(base64.b64decode(found[1]["probabilities"]), numpy.uint8)
        self.assertEqual(rounded.tolist(), numpy.rint(255 * service.Numbers(3).attention()).astype(int).ravel().tolist())

    def test_named_tables_are_compared(self):
        path = service.new_directory() / "r.html"
        done = self.run_program("tiny-1", "-o", path, "--compare", "randomized_pe/table_2")
        self.assertEqual((done.returncode, done.stdout), (SUCCESS, f"{path}\n"), done.stderr)
        self.assertEqual(re.findall(r"<h3>tiny-1 beside Table (\d)", path.read_text()), ["2"])

    def test_a_notebook_writes_the_same(self):
        directory = service.new_directory()
        path = self.experiment.report(directory / "r.html", compare=["randomized_pe/table_1"])
        self.assertEqual(path, directory / "r.html")
        self.assert_has(path.read_text(), '<h2 id="projections">')

    def test_it_is_shown_in_the_users_browser(self):
        directory = service.new_directory()
        looker = directory / "looker"
        looker.write_text(f"#!/bin/sh\nprintf %s \"$1\" > {directory}/new\nmv {directory}/new {directory}/shown\n")
        looker.chmod(0o755)
        done = self.run_program("tiny", "-o", "r.html", "--open", directory=directory, BROWSER=str(looker))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (SUCCESS, "r.html\n", ""))
        end = time.monotonic() + service.DEADLINE
        while not (directory / "shown").exists() and time.monotonic() < end:
            time.sleep(0.01)
        self.assertEqual((directory / "shown").read_text(), os.path.realpath(directory / "r.html"))

    def test_mistakes_are_one_line_each(self):
        self.assert_one_line(
            self.run_program("tiny", "-o", "/nowhere/e.html"),
            FAILURE,
            "cannot write /nowhere/e.html: No such file or directory; make its directory, or name another file",
        )
        self.assert_one_line(
            self.run_program("tiny", "-o", "x.pdf"),
            USAGE,
            '--out is "x.pdf"; a report is HTML: its name must end with .html or .htm',
        )
        self.assert_one_line(
            self.run_program("tiny", "-o", "/dev/full"),
            FAILURE,
            "cannot write /dev/full: No space left on device; free some space",
        )
        self.assert_one_line(
            self.run_program("tiny", "--compare", "randomized_pe/tabel_1"),
            USAGE,
            'unknown published table "randomized_pe/tabel_1"; did you mean "randomized_pe/table_1"?; '
            "`lengthwise results --compare list` prints them",
        )
        self.assert_one_line(
            self.run_program("tinny-1"), FAILURE, 'there is no experiment "tinny-1"; did you mean "tiny-1"?'
        )
        done = self.run_program("tiny", LENGTHWISE_PYTHON="/nowhere")
        self.assertEqual(done.returncode, FAILURE)
        self.assertTrue(done.stderr.endswith("run deploy/install.sh\n"), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)

    @unittest.skipUnless(chromium.PROGRAM, chromium.WHY_NOT)
    def test_chromium_shows_it_without_network(self):
        path = self.experiment.report(service.new_directory() / "r.html")
        for width in (1280, 390):
            with self.subTest(width=width), chromium.Page(path.as_uri(), width) as page:
                self.assertEqual((page.messages, page.requests), ([], []))
                # Tables scroll by themselves; the page does not.
                self.assertEqual(page.evaluate("document.documentElement.scrollWidth"), width)
                self.assertEqual(
                    page.evaluate("[...document.images].filter((image) => image.naturalWidth < 100).length"), 0
                )
                self.assertGreaterEqual(page.evaluate("document.images.length"), 4)
                # The viewer has drawn a map of more than one colour, and shows the value under the
                # pointer.
                colours = page.evaluate(
                    "(() => { const canvas = document.querySelector('canvas'); const seen = new Set();"
                    "const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;"
                    "for (let i = 0; i < data.length; i += 4) seen.add(data[i] << 16 | data[i + 1] << 8 | data[i + 2]);"
                    "return seen.size; })()"
                )
                self.assertGreater(colours, 4)
                reading = page.evaluate(
                    "(() => { const canvas = document.querySelector('canvas'); const box = canvas.getBoundingClientRect();"
                    "canvas.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + 1, clientY: box.top + 1}));"
                    "return document.querySelector('#attention-viewer output').textContent; })()"
                )
                # The larger of both heads, in steps of 1/255.
                largest = round(255 * service.Numbers(1).attention()[0].max(axis=0)[0, 0]) / 255
                self.assertEqual(reading, f"input 1 (symbol 4) looks at input 1 (symbol 4): {100 * largest:.1f} %")

    @unittest.skipUnless(chromium.PROGRAM, chromium.WHY_NOT)
    def test_chromium_runs_no_foreign_script(self):
        """Even without escaping, the policy must block scripts. Chromium reports the violation."""
        path = service.new_directory() / "r.html"
        html = report.render(make_data())
        path.write_text(html.replace("Does it sort?", "<script>window.ran = true</script><img src='http://127.0.0.1:9/x'>"))
        with chromium.Page(path.as_uri(), 1280) as page:
            self.assertIsNone(page.evaluate("window.ran"))
            self.assertEqual(page.requests, [])
            for directive in ("script-src", "img-src"):
                self.assertTrue(any(directive in message for message in page.messages), page.messages)


if __name__ == "__main__":
    unittest.main()
