"""The contents of each format of `lengthwise export` for given trials. export_test.py reads them with other tools'
packages.
"""
import csv
import hashlib
import json
import math
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import unittest
from unittest import mock

import grpc
import numpy
import service
from fake_server import FakeServer
from lengthwise import accuracy_table, exports, names, printable
from lengthwise._proto import event_pb2, experiment_service_pb2, specification_pb2
from lengthwise.errors import LengthwiseError, NotFoundError
from lengthwise.exports import output
from lengthwise.exports.output import Kind, Output
from lengthwise.exports.tables import short_floats
from lengthwise.rendering import Column, Palette, Table

FIRST = "experiments/e-1/trials/bucket_sort-none"
SECOND = "experiments/e-1/trials/bucket_sort-sin_cos"
HOSTILE = "\x1b]0;title\x07\rover\u202eunder"


class TestOfFiles(unittest.TestCase):
    def setUp(self):
        self.directory = service.new_directory()

    def path(self, name):
        return str(self.directory / name)

    def names(self, name=""):
        return sorted(path.name for path in (self.directory / name).iterdir())

    def lines(self, name):
        return (self.directory / name).read_text().splitlines()

    def assert_refused(self, code, *words):
        """Expects an error with the code and the words, on one line."""
        test = self

        class Refused:
            def __enter__(self):
                return self

            def __exit__(self, kind, error, traceback):
                test.assertIsInstance(error, LengthwiseError)
                test.assertEqual(error.code, code, error)
                for word in words:
                    test.assertIn(word, str(error))
                test.assertNotIn("\n", str(error))
                return True

        return Refused()


class ExportTest(TestOfFiles):
    def setUp(self):
        super().setUp()
        self.server = FakeServer()
        self.addCleanup(self.server.close)
        self.server.add_experiment("e-1", ["none", "sin_cos"])

    def add_history(self, trial, metric="", scores=None):
        """Adds two points and one evaluation, which has `metric` beside accuracy and loss, and `scores`."""
        points = event_pb2.Event(trial=trial)
        points.time.seconds = 1_700_000_001
        columns = points.training_points
        columns.steps[:], columns.losses[:], columns.accuracies[:] = [100, 200], [0.1, 0.2], [0.5, 0.5]
        columns.gradient_norms[:], columns.lengths[:], columns.mean_losses[:] = [2, 2], [4, 5], [0.3, 0.25]
        evaluation = event_pb2.Event(trial=trial, step=200)
        measured = evaluation.length_accuracies
        measured.final, measured.sequences, measured.sequence_counts[:] = True, 8, [8, 3]
        measured.lengths[:], measured.accuracies[:], measured.losses[:] = [2, 4], [0.5, 0.25], [0.25, 0.25]
        measured.seen_accuracy, measured.unseen_accuracy = 0.5, 0.25
        if metric:
            measured.metrics.add(name=metric, values=[0.75, 0.125])
        history = [points, evaluation]
        if scores is not None:
            history.append(event_pb2.Event(trial=trial, sequence_scores=scores))
        self.server.histories[trial] = history

    def export(self, name, form, out, replace=False, progress=None):
        subject = exports.find_subject(self.server.connection, name)
        return exports.export(self.server.connection, subject, form, self.path(out), replace, progress)

    def test_directory_is_not_named_like_a_file(self):
        for form in ("csv", "npz", "safetensors"):
            with self.assert_refused(
                grpc.StatusCode.INVALID_ARGUMENT, f'x.{form}" names one file', "name a directory, such as",
                f'/x-{form}"' + (", or write one table with `lengthwise results --output csv`" if form == "csv" else ""),
            ):  # fmt: skip
                self.export("e", form, f"x.{form}")
            self.assertEqual(self.names(), [])

    def test_default_path_is_the_name_and_the_format_here(self):
        self.add_history(FIRST)
        self.add_history(SECOND)
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.directory)
        connection = self.server.connection
        for name, form, path in (
            ("e", "csv", "e-1-csv"), ("e", "json", "e-1.json"), ("e-1/0", "npz", "bucket_sort-none.npz"),
            ("e-1/1", "tensorboard", "bucket_sort-sin_cos-tensorboard"),
        ):  # fmt: skip
            self.assertEqual(exports.export(connection, exports.find_subject(connection, name), form).path, path)
            self.assertIn(path, self.names())

    def test_csv_has_every_table_and_explains_columns(self):
        self.add_history(FIRST)
        self.add_history(SECOND)
        self.assertEqual(self.export("e", "csv", "tables").trials, 2)
        self.assertEqual(
            self.names("tables"), ["columns.json", "export.json", "length_accuracies.csv", "loss_curves.csv", "trials.csv"]
        )
        self.assertEqual(len(self.lines("tables/trials.csv")), 3)
        losses = self.lines("tables/loss_curves.csv")
        self.assertEqual(
            losses[:3],
            [
                "trial,task,network,encoding,learning_rate,weight_seed,data_seed,step,loss,accuracy,gradient_norm,length,time,"
                "mean_loss",
                f"{FIRST},bucket_sort,encoder,none,0.001,0,0,100,0.1,0.5,2,4,2023-11-14T22:13:21.000Z,0.3",
                f"{FIRST},bucket_sort,encoder,none,0.001,0,0,200,0.2,0.5,2,5,2023-11-14T22:13:21.000Z,0.25",
            ],
        )
        self.assertEqual([line.split(",")[0] for line in losses[3:]], [SECOND, SECOND])
        # Trained on lengths up to 2.
        accuracies = self.lines("tables/length_accuracies.csv")
        self.assertIn(",none,0.001,0,0,200,true,2,true,0.5,0.25,8,", accuracies[1])
        self.assertIn(",none,0.001,0,0,200,true,4,false,0.25,0.25,3,", accuracies[2])
        columns = json.loads((self.directory / "tables" / "columns.json").read_text())
        self.assertEqual(set(columns), {"trials.csv", "loss_curves.csv", "length_accuracies.csv"})
        for table, meanings in columns.items():
            self.assertEqual(self.lines(f"tables/{table}")[0].split(","), list(meanings))
            self.assertTrue(all(meanings.values()), table)

    def test_training_and_noise_accuracies_are_exported(self):
        self.add_history(FIRST)
        self.add_history(SECOND)
        history = self.server.histories[SECOND]
        history[1].length_accuracies.training_accuracy = 0.875
        history[1].length_accuracies.validation_accuracy = 0.625
        noise = event_pb2.NoiseAccuracies(deviations=[0.1, 0.5], accuracies=[0.75, 0.25], losses=[0.5, 2])
        history.append(event_pb2.Event(trial=SECOND, step=200, noise_accuracies=noise))
        self.export("e", "csv", "tables")
        trials = list(csv.DictReader(self.lines("tables/trials.csv")))
        self.assertEqual([row["training_accuracy"] for row in trials], ["", "0.875"])
        self.assertEqual([row["validation_accuracy"] for row in trials], ["", "0.625"])
        self.assertEqual(
            self.lines("tables/noise_accuracies.csv"),
            [
                "trial,task,network,encoding,learning_rate,weight_seed,data_seed,deviation,accuracy,loss",
                f"{SECOND},bucket_sort,encoder,sin_cos,0.001,0,0,0.1,0.75,0.5",
                f"{SECOND},bucket_sort,encoder,sin_cos,0.001,0,0,0.5,0.25,2",
            ],
        )
        columns = json.loads((self.directory / "tables" / "columns.json").read_text())
        self.assertEqual(self.lines("tables/noise_accuracies.csv")[0].split(","), list(columns["noise_accuracies.csv"]))

        self.export("e", "json", "e.json")
        first, second = json.loads((self.directory / "e.json").read_text())["trials"]
        self.assertEqual((first["training_accuracy"], second["training_accuracy"]), (None, 0.875))
        self.assertNotIn("noise_accuracies", first)
        self.assertEqual(
            second["noise_accuracies"], {"deviations": [0.1, 0.5], "accuracies": [0.75, 0.25], "losses": [0.5, 2]}
        )

        noise.losses.append(1)
        history[-1].noise_accuracies.CopyFrom(noise)
        damaged = self.export("e", "csv", "more").damaged
        self.assertEqual(damaged, [f"the accuracies of {SECOND} under noise are damaged"])

    def test_force_keeps_the_users_files(self):
        self.add_history(FIRST)
        self.export("e-1/0", "csv", "out")
        manifest = json.loads((self.directory / "out" / "export.json").read_text())
        self.assertEqual(manifest["files"], ["columns.json", "length_accuracies.csv", "loss_curves.csv", "trials.csv"])
        (self.directory / "out" / "notes.txt").write_text("years")
        self.export("e-1/0", "tensorboard", "out", replace=True)
        self.assertEqual(self.names("out"), ["bucket_sort-none", "export.json", "notes.txt"])
        self.assertEqual((self.directory / "out" / "notes.txt").read_text(), "years")
        manifest = json.loads((self.directory / "out" / "export.json").read_text())
        self.assertEqual(manifest["files"], ["bucket_sort-none/events.out.tfevents.1700000000.lengthwise"])

    def test_times_are_cut_to_milliseconds(self):
        # The first is below 0.123 s as a double of seconds since 1970.
        for nanos in (123_000_000, 123_999_999):
            self.add_history(FIRST)
            self.server.histories[FIRST][0].time.nanos = nanos
            self.export("e-1/0", "csv", f"tables-{nanos}")
            self.assertTrue(self.lines(f"tables-{nanos}/loss_curves.csv")[1].endswith(",2023-11-14T22:13:21.123Z,0.3"))

    def test_time_of_no_calendar_is_refused(self):
        self.add_history(FIRST)
        # Years of 19 digits, and of 6, for which the C library has another error.
        for seconds in (2**62, 2**42):
            self.server.histories[FIRST][0].time.seconds = seconds
            with self.assertRaisesRegex(LengthwiseError, f"a time of {seconds} seconds, which no calendar has"):
                self.export("e-1/0", "csv", f"tables-{seconds}")

    def test_json_is_one_document_with_the_same(self):
        self.add_history(FIRST)
        self.add_history(SECOND)
        self.export("e-1", "json", "e.json")
        document = json.loads((self.directory / "e.json").read_text())
        self.assertEqual((document["format"], document["experiment"]), ("lengthwise.export.1", "experiments/e-1"))
        self.assertEqual(len(document["trials"]), 2)
        trial = document["trials"][1]
        self.assertEqual(trial["trial"], SECOND)
        self.assertEqual(trial["specification"]["task"]["name"], "bucket_sort")
        self.assertEqual(trial["loss_curve"]["steps"], [100, 200])
        self.assertEqual(trial["loss_curve"]["losses"], [0.1, 0.2])
        self.assertEqual(trial["evaluations"][0]["accuracies"], [0.5, 0.25])
        self.assertEqual(trial["evaluations"][0]["sequence_counts"], [8, 3])
        self.assertIsNone(trial["seen_accuracy"])
        self.assertNotIn("sequence_scores", trial)

    def test_old_histories_have_one_number_of_sequences(self):
        self.add_history(FIRST)
        self.server.histories[FIRST][1].length_accuracies.ClearField("sequence_counts")
        self.export("e-1/0", "csv", "tables")
        rows = csv.DictReader(self.lines("tables/length_accuracies.csv"))
        self.assertEqual([row["sequences"] for row in rows], ["8", "8"])

    def test_nan_is_null_and_parameters_are_sorted(self):
        self.add_history(FIRST)
        self.server.histories[FIRST][0].training_points.losses[0] = math.nan
        parameters = self.server.trials[FIRST].specification.task.parameters
        parameters["b"].number_value, parameters["c"].number_value, parameters["a"].number_value = 5, 0.5, 1e20
        self.export("e-1/0", "json", "t.json")
        text = (self.directory / "t.json").read_text()
        self.assertIn('"losses":[null,0.2]', text)
        self.assertIn('"parameters":{"a":1e+20,"b":5,"c":0.5}', text)

    def test_other_metrics_have_columns_of_their_names(self):
        self.add_history(FIRST, "digits_accuracy")
        self.add_history(SECOND)
        self.export("e", "csv", "tables")
        lines = self.lines("tables/length_accuracies.csv")
        self.assertEqual(len(lines), 5)
        for line, end in zip(lines, (",training_seconds,digits_accuracy", ",0.75", ",0.125", ",", ",")):
            self.assertTrue(line.endswith(end), line)
        columns = json.loads((self.directory / "tables" / "columns.json").read_text())
        self.assertIn("digits accuracy", columns["length_accuracies.csv"]["digits_accuracy"])

        self.export("e-1/0", "json", "t.json")
        document = json.loads((self.directory / "t.json").read_text())
        self.assertEqual(document["trials"][0]["evaluations"][0]["metrics"], {"digits_accuracy": [0.75, 0.125]})

        self.export("e-1/0", "npz", "t.npz")
        with numpy.load(self.path("t.npz")) as npz:
            self.assertEqual(list(npz["final_digits_accuracy"]), [0.75, 0.125])

        self.export("e-1/0", "tensorboard", "logs")
        (events,) = (self.directory / "logs" / "bucket_sort-none").iterdir()
        self.assertIn(b"final/digits_accuracy_by_length", events.read_bytes())

    def test_missing_metric_is_nan(self):
        self.add_history(FIRST, "digits_accuracy")
        history = self.server.histories[FIRST]
        for step, metric in ((50, False), (100, True), (150, False)):
            interval = event_pb2.Event()
            interval.CopyFrom(history[1])
            interval.step, interval.length_accuracies.final = step, False
            if not metric:
                del interval.length_accuracies.metrics[:]
            history.append(interval)
        self.export("e-1/0", "npz", "t.npz")
        with numpy.load(self.path("t.npz")) as npz:
            self.assertEqual(list(npz["interval_steps"]), [50, 100, 150])
            nan = math.nan
            numpy.testing.assert_array_equal(npz["interval_digits_accuracy"], [[nan, nan], [0.75, 0.125], [nan, nan]])

    def test_json_has_requested_sequence_scores(self):
        scores = event_pb2.SequenceScores(
            length=4, accuracies=[1, 0], losses=[0.5, 0.5],
            wrong_answers=[event_pb2.SequenceScores.WrongAnswer(sequence=1, places=[0, 3], carry_into_first=True)],
        )  # fmt: skip
        self.add_history(FIRST, scores=scores)
        self.add_history(SECOND)
        self.export("e-1", "json", "e.json")
        trials = json.loads((self.directory / "e.json").read_text())["trials"]
        self.assertEqual(len(trials), 2)
        self.assertEqual(
            trials[0]["sequence_scores"],
            [
                {
                    "length": 4, "accuracies": [1.0, 0.0], "losses": [0.5, 0.5],
                    "wrong_answers": [{"sequence": 1, "places": [0, 3], "carry_into_first": True}],
                }
            ],
        )  # fmt: skip
        self.assertNotIn("sequence_scores", trials[1])

    def test_single_trial_exports_as_an_experiment(self):
        self.add_history(SECOND)
        self.export("e-1/1", "json", "t.json")
        trials = json.loads((self.directory / "t.json").read_text())["trials"]
        self.assertEqual([trial["trial"] for trial in trials], [SECOND])

    def test_models_are_copied_and_missing_ones_reported(self):
        data = b"m" * 1234
        self.server.set_model(SECOND, data, hashlib.sha256(data).hexdigest())
        result = self.export("e-1", "safetensors", "models")
        self.assertEqual((result.trials, result.damaged), (1, []))
        self.assertEqual(result.absent, [f"there is no {FIRST}"])
        self.assertEqual(self.names("models"), ["bucket_sort-sin_cos.safetensors", "export.json"])
        self.assertEqual((self.directory / "models" / "bucket_sort-sin_cos.safetensors").read_bytes(), data)
        self.export("e-1/1", "safetensors", "one.safetensors")
        self.assertEqual((self.directory / "one.safetensors").read_bytes(), data)
        with self.assert_refused(grpc.StatusCode.NOT_FOUND):
            self.export("e-1/0", "safetensors", "none")

    def test_damaged_model_is_left_out_and_reported(self):
        self.server.set_model(FIRST, b"m" * 1000, "0" * 64)
        self.server.set_model(SECOND, b"whole", hashlib.sha256(b"whole").hexdigest())
        result = self.export("e-1", "safetensors", "models")
        (why,) = result.damaged
        self.assertIn(f"was damaged on its way from {self.server.address}: its SHA-256 is another; try again", why)
        self.assertEqual(self.names("models"), ["bucket_sort-sin_cos.safetensors", "export.json"])
        with self.assert_refused(grpc.StatusCode.DATA_LOSS):
            self.export("e-1/0", "safetensors", "one")
        self.assertEqual(self.names(), ["models"])

    def test_damaged_history_and_maps_are_reported(self):
        self.add_history(FIRST)
        self.add_history(SECOND)
        self.server.histories[FIRST][0].training_points.losses.append(1)
        for form in ("csv", "json", "tensorboard", "npz"):
            result = self.export("e-1", form, form)
            self.assertEqual((result.trials, result.damaged), (1, [f"the loss curve of {FIRST} is damaged"]), form)
        self.add_history(FIRST)
        self.server.histories[FIRST][1].length_accuracies.accuracies.append(1)
        result = self.export("e-1", "csv", "more")
        self.assertEqual(result.damaged, [f"an evaluation of {FIRST} is damaged"])
        self.add_history(FIRST)
        self.server.maps[FIRST] = [event_pb2.AttentionMap(length=3, layers=1, heads=1, tokens=[1, 2], probabilities=b"1234")]
        result = self.export("e-1", "npz", "maps")
        (why,) = result.damaged
        self.assertIn("the attention maps of bucket_sort-none do not have the size of their shape", why)
        self.assertEqual(self.names("maps"), ["bucket_sort-sin_cos.npz", "export.json"])

    def test_each_trial_is_a_run_of_tensorboard(self):
        self.add_history(FIRST)
        self.add_history(SECOND)
        self.export("e-1", "tensorboard", "logs")
        self.assertEqual(self.names("logs"), ["bucket_sort-none", "bucket_sort-sin_cos", "export.json"])
        self.assertEqual(self.names("logs/bucket_sort-none"), ["events.out.tfevents.1700000000.lengthwise"])

    def test_every_format_is_deterministic(self):
        scores = event_pb2.SequenceScores(length=4, accuracies=[1, 0], losses=[0.5, 0.5])
        for trial in (FIRST, SECOND):
            self.add_history(trial, "digits_accuracy", scores)
            self.server.set_model(trial, b"whole", hashlib.sha256(b"whole").hexdigest())
        self.add_summary()

        def content(path):
            if path.is_file():
                return path.read_bytes()
            return {str(one.relative_to(path)): one.read_bytes() for one in path.rglob("*") if one.is_file()}

        for form in exports.FORMATS:
            self.export("e-1", form, f"first-{form}")
            self.export("e-1", form, f"second-{form}")
            self.assertEqual(content(self.directory / f"first-{form}"), content(self.directory / f"second-{form}"), form)

    def add_summary(self):
        self.server.summary.heading.caption = "Token accuracy by input length, per cent (100 sequences per length)"
        cell = self.server.summary.cells.add(task="bucket_sort", network="encoder", encoding="sin_cos")
        cell.trials.succeeded = 2
        cell.seen_accuracy.trials, cell.seen_accuracy.mean = 2, 0.5
        cell.unseen_accuracy.trials, cell.unseen_accuracy.mean = 2, 0.25
        cell.training_accuracy.trials, cell.training_accuracy.mean = 2, 0.75
        cell.lengths[:], cell.mean_accuracies[:] = [2, 4], [0.5, 0.25]

    def test_latex_needs_results(self):
        with self.assert_refused(
            grpc.StatusCode.NOT_FOUND, "no trial of e-1 has been evaluated in full, so there is no table"
        ):
            self.export("e-1", "latex", "none.tex")
        self.add_summary()
        self.export("e-1", "latex", "e.tex")
        text = (self.directory / "e.tex").read_text()
        for part in (
            "% e-1, by lengthwise export.\n\\begin{table}\n", "\\toprule", "50.0", "training set", "75.0",
            "\\caption{e-1: Token accuracy by input length, per cent (", "\\label{tab:e-1}\n\\end{table}\n",
        ):  # fmt: skip
            self.assertIn(part, text)
        with self.assert_refused(grpc.StatusCode.INVALID_ARGUMENT, "export e-1, or its trial as csv"):
            self.export("e-1/0", "latex", "t.tex")
        self.assertEqual(self.names(), ["e.tex"])

    def test_latex_has_no_commands_of_a_server(self):
        self.server.add_experiment("x}\\input{secret}%\n\\write18{id}-1", [])
        self.add_summary()
        self.server.summary.cells[0].encoding = "\\input{secret}%_^~&#$"
        self.export("x}\\input{secret}%\n\\write18{id}-1", "latex", "x.tex")
        text = (self.directory / "x.tex").read_text()
        self.assertNotIn("\\input", text)
        self.assertNotIn("\\write18", text)
        self.assertIn("\\textbackslash{}input\\{secret\\}\\%\\_\\textasciicircum{}\\textasciitilde{}\\&\\#\\$", text)
        self.assertIn("\\label{tab:x--input-secret----write18-id--1}", text)

    def test_interrupted_or_refused_export_leaves_nothing(self):
        self.add_history(FIRST)
        self.add_history(SECOND)
        calls = []

        def interrupt(done, all_trials):
            calls.append((done, all_trials))
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            self.export("e-1", "csv", "tables", progress=interrupt)
        self.assertEqual(calls, [(1, 2)])
        self.assertEqual(self.names(), [])
        with self.assert_refused(grpc.StatusCode.INVALID_ARGUMENT, 'unknown format "parquet"'):
            self.export("e-1", "parquet", "x")
        with self.assert_refused(grpc.StatusCode.NOT_FOUND):
            self.export("nothing", "csv", "x")
        self.assertEqual(self.names(), [])

    def test_existing_files_are_not_replaced(self):
        self.add_history(FIRST)
        self.export("e-1/0", "json", "t.json")
        with self.assert_refused(grpc.StatusCode.FAILED_PRECONDITION, "--force"):
            self.export("e-1/0", "json", "t.json")
        self.export("e-1/0", "json", "t.json", replace=True)

    def test_trial_names_cannot_leave_the_directory(self):
        self.server.add_experiment("hostile-1", ["/.."])
        for form in exports.FORMATS:
            with self.assert_refused(
                grpc.StatusCode.FAILED_PRECONDITION,
                'the server names "experiments/hostile-1/trials/bucket_sort-/..", which no file is called after',
            ):
                self.export("hostile-1", form, "inside")
            self.assertEqual(self.names(), [], form)

    def test_control_characters_are_escaped(self):
        self.add_history(FIRST)
        trial = self.server.trials[FIRST]
        trial.reason = trial.worker = trial.specification.encoding.label = HOSTILE
        self.server.experiments["experiments/e-1"].owner = HOSTILE
        written_out = "\\x1b]0;title\\x07\\x0dover\\u202eunder"
        self.export("e-1", "csv", "tables")
        self.export("e-1", "json", "e.json")
        for name in ("tables/trials.csv", "tables/loss_curves.csv", "tables/length_accuracies.csv", "e.json"):
            text = (self.directory / name).read_text()
            self.assertEqual(printable.printable_text(text), text, name)
            self.assertIn(written_out.replace("\\", "\\\\") if name == "e.json" else written_out, text)

    def run_module(self, *arguments, program=(sys.executable, "-m", "lengthwise")):
        return subprocess.Popen(
            [*program, "export", *arguments, "--server", self.server.address],
            env=service.ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def outcome(self, process):
        """Returns exit code, output and errors, with unchanged line ends."""
        out, err = process.communicate(timeout=service.DEADLINE)
        return process.returncode, out.decode(), err.decode()

    def test_reports_progress_and_omissions(self):
        self.server.set_model(SECOND, b"whole", hashlib.sha256(b"whole").hexdigest())
        process = self.run_module("e-1", "--format", "safetensors", "--out", self.path("models"), "--progress")
        code, out, err = self.outcome(process)
        self.assertEqual(code, 0, err)
        self.assertEqual(out, f"\r1 of 2 trials\x1b[K\r2 of 2 trials\x1b[K\r\x1b[K{self.path('models')}\n")
        self.assertEqual(err, f"lengthwise: 1 trial is not in it; of the first: there is no {FIRST}\n")
        self.server.set_model(FIRST, b"m", "0" * 64)
        process = self.run_module("e-1", "--format", "safetensors", "--out", self.path("models"), "--force")
        code, out, err = self.outcome(process)
        self.assertEqual((code, out), (1, f"{self.path('models')}\n"))
        self.assertTrue(err.startswith(f"lengthwise: left out: the model of {FIRST} was damaged on its way"), err)

    def test_signals_leave_nothing_and_say_so(self):
        module, program = (sys.executable, "-m", "lengthwise"), (service.CLIENT,)
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        for started, number in [(started, number) for started in (module, program) for number in numbers]:
            # The server never finishes sending the model.
            part = experiment_service_pb2.DownloadModelResponse(data=b"m" * (3 << 20))
            self.server.models[FIRST] = _Endless(part)
            process = self.run_module("e-1/0", "--format", "safetensors", "--out", self.path("model"), program=started)
            end = time.monotonic() + service.DEADLINE
            while not any(path.stat().st_size > 0 for path in self.directory.iterdir()):
                self.assertLess(time.monotonic(), end)
                time.sleep(0.01)
            process.send_signal(number)
            self.assertEqual(self.outcome(process), (130, "", "lengthwise: interrupted; nothing was written\n"), number)
            self.assertEqual(self.names(), [])


class _Endless:
    def __init__(self, part):
        self._part = part

    def __iter__(self):
        while True:
            yield self._part


class OutputTest(TestOfFiles):
    def write(self, name, kind, text, replace=False, suffix=""):
        """Writes `text` as a file, or into "data.txt" of a directory with a manifest."""
        with Output(self.path(name), kind, replace, suffix) as out:
            out.write("" if kind is Kind.FILE else "data.txt", text)
            if kind is Kind.DIRECTORY:
                out.write(output.MANIFEST, self.manifest("data.txt"))
            out.commit()

    def text(self, name):
        return (self.directory / name).read_text()

    def test_appears_when_it_is_whole(self):
        with Output(self.path("a.json"), Kind.FILE, False) as out:
            with out.open() as file:
                file.write(b"{}")
            self.assertFalse((self.directory / "a.json").exists())
            out.commit()
        self.assertEqual(self.names(), ["a.json"])
        self.assertEqual(self.text("a.json"), "{}")

    def test_empty_directory_may_be_the_current_one(self):
        directory = self.directory / "current"
        directory.mkdir()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(directory)
        with Output(".", Kind.DIRECTORY, False) as out:
            out.write("data.txt", "a")
            out.write(output.MANIFEST, self.manifest("data.txt"))
            out.commit()
        self.assertEqual((directory / "data.txt").read_text(), "a")

    def test_leaves_nothing_without_a_commit(self):
        for kind in Kind:
            with Output(self.path("x"), kind, False) as out, out.open("" if kind is Kind.FILE else "deep/er.txt") as file:
                file.write(b"half")
            self.assertEqual(self.names(), [])

    def test_exception_deletes_the_files(self):
        with Output(self.path("x"), Kind.DIRECTORY, False) as out:
            with self.assertRaises(KeyError), out.open("a") as file:
                file.write(b"half")
                raise KeyError
            out.commit()
        self.assertEqual(self.names("x"), [])

    def test_replaces_files_only_when_asked(self):
        for kind, name, data in ((Kind.FILE, "file", "file"), (Kind.DIRECTORY, "directory", "directory/data.txt")):
            self.write(name, kind, "first")
            with self.assert_refused(grpc.StatusCode.FAILED_PRECONDITION, "is there already", "--force", "-o PATH"):
                self.write(name, kind, "second")
            self.assertEqual(self.text(data), "first")
            self.write(name, kind, "third", replace=True)
            self.assertEqual(self.text(data), "third")
        self.assertEqual(self.names(), ["directory", "file"])

    def test_foreign_directory_is_never_replaced(self):
        (self.directory / "home").mkdir()
        (self.directory / "home" / "thesis.tex").write_text("years")
        with self.assert_refused(grpc.StatusCode.FAILED_PRECONDITION, "has files that are not an export's"):
            self.write("home", Kind.DIRECTORY, "x", replace=True)
        self.assertEqual(self.text("home/thesis.tex"), "years")
        (self.directory / "empty").mkdir()
        self.write("empty", Kind.DIRECTORY, "x")
        with self.assert_refused(grpc.StatusCode.FAILED_PRECONDITION, "is a directory, and this export is one file"):
            self.write("empty", Kind.FILE, "x", replace=True)
        self.write("file", Kind.FILE, "x")
        with self.assert_refused(
            grpc.StatusCode.FAILED_PRECONDITION, "is a file, and this export is a directory of files"
        ):
            self.write("file", Kind.DIRECTORY, "x", replace=True)

    def test_foreign_file_is_never_replaced(self):
        (self.directory / "notes.txt").write_text("years")
        (self.directory / "link.json").symlink_to("notes.txt")
        for name in ("notes.txt", "link.json"):
            for replace in (False, True):
                with self.assert_refused(
                    grpc.StatusCode.FAILED_PRECONDITION, "notes.txt is there already", "not end in .json; delete it first, or"
                ):
                    self.write(name, Kind.FILE, "x", replace, ".json")
        self.assertEqual(self.text("notes.txt"), "years")
        self.write("new.txt", Kind.FILE, "x", suffix=".json")
        self.write("a.json", Kind.FILE, "first", suffix=".json")
        self.write("a.json", Kind.FILE, "second", replace=True, suffix=".json")
        self.assertEqual(self.text("a.json"), "second")

    def manifest(self, *files):
        return json.dumps({"files": list(files), "written_by": "lengthwise 0.2.1"})

    def write_files(self, files, replace=True):
        """Writes files by name into the directory "out", and a manifest that lists them."""
        with Output(self.path("out"), Kind.DIRECTORY, replace) as out:
            for name in files:
                out.write(name, "export")
            out.write(output.MANIFEST, self.manifest(*out.files()))
            out.commit()

    def all_files(self):
        out = self.directory / "out"
        return {str(one.relative_to(out)): one.read_text() for one in out.rglob("*") if one.is_file()}

    def test_replaces_only_files_of_the_manifest(self):
        self.write_files(["a.csv", "deep/a.csv", "gone/a.csv", "both/a.csv"])
        mine = ["notes.txt", "deep/notes.txt", "gone/notes.txt", "both/own/notes.txt", "own/deep/notes.txt"]
        for name in mine:
            (self.directory / "out" / name).parent.mkdir(parents=True, exist_ok=True)
            (self.directory / "out" / name).write_text("years")
        (self.directory / "out" / "empty").mkdir()
        (self.directory / "out" / "link").symlink_to("own", target_is_directory=True)
        self.write_files(["a.csv", "deep/b.csv"])
        files = {"a.csv": "export", "deep/b.csv": "export", "export.json": self.manifest("a.csv", "deep/b.csv")}
        self.assertEqual(self.all_files(), files | dict.fromkeys(mine, "years"))
        self.assertEqual(self.names("out/empty"), [])
        self.assertTrue((self.directory / "out" / "link").is_symlink())
        self.assertEqual(self.names(), ["out"])

    def test_users_file_of_the_same_name_is_not_overwritten(self):
        self.write_files(["a.csv"])
        (self.directory / "out" / "b.csv").write_text("years")
        (self.directory / "out" / "c").write_text("years")
        before = self.all_files()
        for files, name in ((["a.csv", "b.csv"], "out/b.csv"), (["c/d/e.csv"], "out/c")):
            with self.assert_refused(
                grpc.StatusCode.FAILED_PRECONDITION, f"{name} is in the way of the new export", "move it, or choose another place"
            ):
                self.write_files(files)
            self.assertEqual(self.all_files(), before)
        self.assertEqual(self.names(), ["out"])

    def test_manifest_without_a_list_deletes_nothing(self):
        self.write_files(["a.csv", "b.csv"])
        (self.directory / "out" / "export.json").write_text('{"format": "csv", "written_by": "lengthwise 0.2.0"}')
        (self.directory / "out" / "b.csv").write_text("years")
        self.write_files(["a.csv"])
        self.assertEqual(
            self.all_files(), {"a.csv": "export", "b.csv": "years", "export.json": self.manifest("a.csv")}
        )

    def test_manifest_of_others_is_no_export(self):
        self.write_files(["a.csv"])
        for text in ("[]", "not JSON", '{"files": ["a.csv"]}', '{"files": ["a.csv"], "written_by": "another program"}'):
            (self.directory / "out" / "export.json").write_text(text)
            with self.assert_refused(grpc.StatusCode.FAILED_PRECONDITION, "lengthwise did not write", "out/export.json"):
                self.write_files(["a.csv"])
            self.assertEqual(self.all_files()["export.json"], text)

    def test_manifest_of_a_file_elsewhere_is_refused(self):
        # The name of this directory begins with that of the export's.
        (self.directory / "out-precious").mkdir()
        thesis = self.directory / "out-precious" / "thesis.txt"
        thesis.write_text("years")
        self.write_files(["a.csv", "deep/b.csv"])
        manifest = self.directory / "out" / "export.json"
        (self.directory / "out" / "link").symlink_to("../out-precious")
        (self.directory / "out" / "deep" / "back").symlink_to("..")
        before = self.all_files()
        for name in (
            "../out-precious/thesis.txt", "deep/../../out-precious/thesis.txt", "link/thesis.txt", "deep/back/link/thesis.txt",
            str(thesis), self.path("out/a.csv"), "../out/a.csv", "..", ".", "", "deep/", "a\0/b.csv",
        ):  # fmt: skip
            manifest.write_text(self.manifest("a.csv", name))
            with self.assert_refused(
                grpc.StatusCode.FAILED_PRECONDITION, f"{manifest} lists {json.dumps(name)}, which is no file in", "-o PATH"
            ):
                self.write_files(["b.csv"])
            self.assertEqual(self.all_files(), before | {"export.json": self.manifest("a.csv", name)})
            self.assertEqual(thesis.read_text(), "years", name)
        self.assertEqual(self.names(), ["out", "out-precious"])
        # A link that an export's file was moved behind is deleted, not its target.
        (self.directory / "out" / "a.csv").unlink()
        (self.directory / "out" / "a.csv").symlink_to(thesis)
        manifest.write_text(self.manifest("a.csv", "deep/back/deep/b.csv"))
        self.write_files(["b.csv"])
        self.assertEqual(thesis.read_text(), "years")
        self.assertEqual(self.all_files(), {"b.csv": "export", "export.json": self.manifest("b.csv")})

    def test_export_through_a_link_replaces_its_own_files(self):
        self.write_files(["a.csv"])
        (self.directory / "real").mkdir()
        (self.directory / "out").rename(self.directory / "real" / "export")
        (self.directory / "out").symlink_to("real/export")
        self.write_files(["b.csv"])
        self.assertEqual(self.all_files(), {"b.csv": "export", "export.json": self.manifest("b.csv")})

    def test_file_of_the_earlier_export_becomes_a_directory(self):
        self.write_files(["a", "b"])
        self.write_files(["a/b.csv"])
        self.assertEqual(self.all_files(), {"a/b.csv": "export", "export.json": self.manifest("a/b.csv")})

    def test_directory_keeps_its_mode(self):
        self.write_files(["a.csv"])
        (self.directory / "out").chmod(0o700)
        self.write_files(["b.csv"])
        self.assertEqual((self.directory / "out").stat().st_mode & 0o777, 0o700)
        self.assertEqual(self.all_files(), {"b.csv": "export", "export.json": self.manifest("b.csv")})

    def test_interrupted_replacement_is_completed_by_the_next(self):
        def interrupt_after(replacements):
            real = os.replace

            def replace(source, target):
                nonlocal replacements
                if replacements == 0:
                    raise KeyboardInterrupt
                replacements -= 1
                real(source, target)

            return mock.patch.object(output.os, "replace", replace)

        whole = {"a.csv": "export", "c.csv": "export", "export.json": self.manifest("a.csv", "c.csv"), "notes.txt": "years"}
        # Of the interim manifest, a.csv, c.csv and the manifest.
        for replacements in range(4):
            self.write_files(["a.csv", "b.csv"])
            (self.directory / "out" / "notes.txt").write_text("years")
            with self.assertRaises(KeyboardInterrupt), interrupt_after(replacements):
                self.write_files(["a.csv", "c.csv"])
            self.assertEqual(self.text("out/notes.txt"), "years")
            self.write_files(["a.csv", "c.csv"])
            self.assertEqual(self.all_files(), whole)
            self.assertEqual(self.names(), ["out"])
            self.write_files(["b.csv"])

    def test_directory_that_appears_meanwhile_is_not_replaced(self):
        with self.assert_refused(grpc.StatusCode.FAILED_PRECONDITION, "has files that are not an export's"):
            with Output(self.path("out"), Kind.DIRECTORY, False) as out:
                out.write("a.csv", "export")
                (self.directory / "out").mkdir()
                (self.directory / "out" / "notes.txt").write_text("years")
                out.commit()
        self.assertEqual(self.names("out"), ["notes.txt"])

    def test_replacing_follows_links(self):
        self.write("target", Kind.FILE, "first")
        (self.directory / "link").symlink_to("target")
        self.write("link", Kind.FILE, "second", replace=True)
        self.assertTrue((self.directory / "link").is_symlink())
        self.assertEqual(self.text("target"), "second")

    def test_files_have_the_permissions_of_new_files(self):
        before = os.umask(0o027)
        try:
            self.write("a", Kind.FILE, "x")
        finally:
            os.umask(before)
        self.assertEqual((self.directory / "a").stat().st_mode & 0o777, 0o640)

    def test_unwritable_place_says_what_to_do(self):
        with self.assert_refused(
            grpc.StatusCode.FAILED_PRECONDITION, "none/a.json: No such file or directory; make its directory, or name another"
        ):
            self.write("none/a.json", Kind.FILE, "x")

    def test_incomplete_file_is_removed(self):
        self.write("a", Kind.FILE, "first")
        # Limits the process to files of 1,000 bytes, as if the disk were full.
        ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
        try:
            for kind, name in ((Kind.FILE, "a"), (Kind.DIRECTORY, "tables")):
                shown = "/a" if kind is Kind.FILE else "/tables/data.txt"
                with self.assert_refused(
                    grpc.StatusCode.FAILED_PRECONDITION, "cannot write", f"{shown}: File too large; choose another place"
                ):
                    self.write(name, kind, "x" * 10_000, replace=True)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            signal.signal(signal.SIGXFSZ, ignored)
        self.assertEqual(self.names(), ["a"])
        self.assertEqual(self.text("a"), "first")


class NamesTest(unittest.TestCase):
    def test_invalid_names_make_no_files(self):
        self.assertEqual(names.file_name("experiments/e-1/trials/a b=0.1"), "a b=0.1")
        for name in ("trials/..", "trials/.hidden", "trials/-o", "trials/", "trials/a\nb", "trials/\u202eb", "trials/a\x7f"):
            with self.assertRaises(LengthwiseError) as caught:
                names.file_name(name)
            self.assertIs(caught.exception.code, grpc.StatusCode.FAILED_PRECONDITION)
            self.assertTrue(str(caught.exception).isprintable())

    def test_lists_have_the_entries_of_all_pages(self):
        listed = names.list_trials(ThreePages(), "experiments/e-1")
        self.assertEqual([trial.name for trial in listed], ["0.0", "0.1", "\\x1b1.0", "\\x1b1.1", "\\x1b2.0", "\\x1b2.1"])

    def test_no_page_is_asked_for_in_vain(self):
        for limit, requests in ((1, 1), (2, 1), (3, 2), (None, 3)):
            server = ThreePages()
            self.assertEqual(len(names.list_trials(server, "experiments/e-1", limit=limit)), limit or 6)
            self.assertEqual(server.requests, requests)

    def test_next_page_is_read_while_one_is_made_printable(self):
        class Waiting(ThreePages):
            def __init__(self) -> None:
                super().__init__()
                self.second = threading.Event()

            def call(self, request, response, raw):
                if request.page_token == "\x1b1":
                    self.second.set()
                return super().call(request, response, raw)

        server = Waiting()
        with mock.patch.object(names, "make_printable", lambda page: self.assertTrue(server.second.wait(service.DEADLINE))):
            names.list_trials(server, "experiments/e-1")


class ThreePages:
    """A connection to a server that lists two trials a page. Tokens and the names of later trials have control characters."""

    def __init__(self) -> None:
        self.requests = 0

    def call(self, request, response, raw):
        self.requests += 1
        number = int(request.page_token.lstrip("\x1b") or 0)
        trials = [experiment_service_pb2.Trial(name=f"{request.page_token or 0}.{place}") for place in range(2)]
        return response(trials=trials, next_page_token=f"\x1b{number + 1}" if number < 2 else "")


class PrintableTest(unittest.TestCase):
    def test_keeps_printable_text(self):
        for text in ("", "loss 0.5", "two\nlines\tand a tab", "é ß 猫 🐈 ± ┊ \\x1b", "a\u200db\u200b"):
            self.assertEqual(printable.printable_text(text), text)

    def test_escapes_terminal_control(self):
        for text, expected in {
            "\x1b]0;title\x07": "\\x1b]0;title\\x07", "\x1b[2J\x1b[31mred": "\\x1b[2J\\x1b[31mred",
            "100 %\rdone": "100 %\\x0ddone", "a\0b": "a\\x00b", "\x7f": "\\x7f", "\u009b31m": "\\u009b31m",
            "abc\u202etxt.exe": "abc\\u202etxt.exe", "\u2066\u2069\u200f\u061c": "\\u2066\\u2069\\u200f\\u061c",
            "one\u2028two": "one\\u2028two", b"\x9b31m\xc0".decode(errors="surrogateescape"): "\\x9b31m\\xc0",
        }.items():  # fmt: skip
            self.assertEqual(printable.printable_text(text), expected)
            self.assertEqual(printable.printable_text(expected), expected)

    def test_escapes_every_string_of_a_message(self):
        trial = experiment_service_pb2.Trial(name=HOSTILE)
        trial.specification.task.parameters["x"].string_value = HOSTILE
        trial.specification.task.parameters["y"].list_value.values.add().string_value = HOSTILE
        # Parts that are alike, and one that differs in its text alone.
        other = experiment_service_pb2.Trial(name="clean")
        other.specification.task.parameters["x"].string_value = "clean"
        trials = [other, trial, trial, other]
        response = experiment_service_pb2.ListTrialsResponse(trials=trials, next_page_token=HOSTILE)
        printable.make_printable(response)
        self.assertEqual(printable.printable_text(str(response)), str(response))
        self.assertEqual(str(response).count("\\\\x1b]0;title"), 7)
        self.assertEqual(str(response).count('"clean"'), 4)

    def test_escapes_parts_of_which_many_differ(self):
        response = experiment_service_pb2.ListTrialsResponse()
        for number in range(1000):
            response.trials.add().specification.task.parameters["x"].string_value = f"{number}\x1b"
        printable.make_printable(response)
        texts = [trial.specification.task.parameters["x"].string_value for trial in response.trials]
        self.assertEqual(texts, [f"{number}\\x1b" for number in range(1000)])

    def test_escapes_keys_of_maps(self):
        specification = specification_pb2.ExperimentSpecification()
        specification.tasks.add().parameters["\x1b[2J"].number_value = 1
        printable.make_printable(specification)
        (found,) = specification.tasks[0].parameters.items()
        self.assertEqual((found[0], found[1].number_value), ("\\x1b[2J", 1))


class NumbersTest(unittest.TestCase):
    def test_floats_keep_their_digits(self):
        self.assertEqual(short_floats([numpy.float32(0.1), numpy.float32(-1.17549435e-38)]), [0.1, -1.1754944e-38])
        third = numpy.float32(2) / numpy.float32(3)
        self.assertEqual(numpy.float32(short_floats([third])[0]), third)
        self.assertTrue(math.isnan(short_floats([math.nan])[0]))


class AccuracyTableTest(unittest.TestCase):
    """Same layout as the C++ program (client/display/accuracy_summary_test.cc)."""

    def setUp(self):
        self.response = experiment_service_pb2.SummarizeExperimentResponse()
        self.response.heading.seen_up_to = 2
        self.response.heading.seen, self.response.heading.unseen = "seen in training", "not seen"

    def add_cell(self, encoding, trials, accuracies):
        """Adds a cell as the server sums it up, for trials with these mean accuracies at lengths 1, 2, 3, ..., of which
        two are seen.
        """
        cell = self.response.cells.add(task="bucket_sort", network="encoder", encoding=encoding, learning_rate=0.001)
        cell.trials.succeeded = trials
        cell.lengths[:], cell.mean_accuracies[:] = range(1, len(accuracies) + 1), accuracies
        for statistic, of_side in ((cell.seen_accuracy, accuracies[:2]), (cell.unseen_accuracy, accuracies[2:])):
            if of_side:
                statistic.mean, statistic.trials = sum(of_side) / len(of_side), trials
        return cell

    def table(self, width):
        return accuracy_table.as_table(self.response, width).render(width, Palette(False))

    def test_lengths_are_cut_into_groups_of_equal_size(self):
        groups = accuracy_table.group_lengths(range(1, 21), 5)
        self.assertEqual((len(groups), groups[1]), (5, [5, 6, 7, 8]))
        self.assertEqual(len(accuracy_table.group_lengths(range(20), 6)), 5)
        self.assertEqual(len(accuracy_table.group_lengths(range(3), 8)), 3)
        self.assertEqual(len(accuracy_table.group_lengths(range(13), 5)), 5)  # a prime number: the most groups possible

    def test_uses_the_servers_summary(self):
        self.add_cell("sin_cos", 2, [1.0, 0.7, 0.3, 0.1]).unseen_accuracy.deviation = 0.14
        self.add_cell("none", 0, []).trials.running = 1
        (row,) = accuracy_table.rows_of(self.response)
        seen, unseen = (accuracy_table.mean_of(self.response, side)(row) for side in ("seen", "unseen"))
        self.assertEqual(seen, 0.85)
        self.assertAlmostEqual(unseen, 0.2)
        self.assertEqual(accuracy_table.unseen_deviation(self.response, row), 0.14)
        self.response.heading.compared_by_loss = True
        self.assertIsNone(accuracy_table.unseen_deviation(self.response, row))

    def test_seen_and_unseen_stand_apart(self):
        self.add_cell("sin_cos", 1, [1.0, 0.9, 0.2, 0.1])
        self.add_cell("randomized", 1, [0.9, 0.8, 0.8, 0.7])
        self.assertEqual(
            self.table(80),
            "           │ seen in training  │ not seen\n"
            "encoding   │     1     2  mean │    3     4  mean\n"
            "───────────┼───────────────────┼─────────────────\n"
            "sin_cos    │ 100.0  90.0  95.0 │ 20.0  10.0  15.0\n"
            "randomized │  90.0  80.0  85.0 │ 80.0  70.0  75.0\n",
        )
        # A single group is the mean and appears once.
        self.assertEqual(
            self.table(30),
            "           │ seen │ not seen\n"
            "encoding   │  1–2 │      3–4\n"
            "───────────┼──────┼─────────\n"
            "sin_cos    │ 95.0 │     15.0\n"
            "randomized │ 85.0 │     75.0\n",
        )

    def test_length_without_a_score_has_a_dash(self):
        self.add_cell("sin_cos", 1, [1.0, 0.9, 0.2, 0.1])
        measured = self.add_cell("randomized", 1, [0.9, 0.8, 0.8, 0.7])
        del measured.lengths[2], measured.mean_accuracies[2]
        self.assertIn("\nrandomized │  90.0  80.0  85.0 │    –  70.0  75.0\n", self.table(80))

    def test_group_is_named_in_full_if_there_is_room(self):
        table = Table([Column("5", group="seen in training"), Column("10", group="seen in training"), Column("15")])
        table.add_row(["1", "2", "3"])
        self.assertIn("seen in training", table.render(0, Palette(False)))
        self.assertIn("seen…\n", table.render(9, Palette(False)))

    def test_best_means_are_marked(self):
        self.add_cell("sin_cos", 1, [1.0, 0.9, 0.2, 0.1])
        self.add_cell("randomized", 1, [0.9, 0.8])
        latex = accuracy_table.as_table(self.response, 80).render_latex()
        self.assertIn("sin\\_cos & 100.0 & 90.0 & \\textbf{95.0} & 20.0 & 10.0 & \\textbf{15.0} \\\\", latex)
        self.assertIn("randomized & 90.0 & 80.0 & 85.0 & -- & -- & -- \\\\", latex)

    def test_training_accuracies_come_first(self):
        measured = self.add_cell("sin_cos", 2, [1, 1, 0.5])
        self.add_cell("randomized", 1, [1, 1, 1])
        self.assertNotIn("training set", self.table(100))
        measured.training_accuracy.mean, measured.training_accuracy.trials = 0.75, 1
        self.assertIn("│ training set │     1", self.table(100))
        measured.training_accuracy.trials, measured.training_accuracy.deviation = 2, 0.125
        table = self.table(100)
        for part in ("│ training set     ± │", "│         75.0  12.5 │", "│            –     – │"):
            self.assertIn(part, table)

    def test_shared_encoding_is_not_repeated(self):
        self.add_cell("none", 1, [1.0, 0.9, 0.2])
        self.add_cell("none", 1, [0.9, 0.8, 0.8]).task = "odds_first"
        self.assertNotIn("encoding", self.table(80))
        self.assertIn("odds_first", self.table(80))

    def test_lowest_loss_is_best(self):
        for encoding, losses in (("none", [0.5, 0.00012345]), ("sin_cos", [0.25, 12.0])):
            cell = self.add_cell(encoding, 1, [])
            cell.lengths[:] = [1, 4]
            for loss in losses:
                cell.losses.add(trials=1, median=loss)
            cell.seen_loss.trials, cell.seen_loss.median = 1, losses[0]
            cell.unseen_loss.trials, cell.unseen_loss.median = 1, losses[1]
        self.response.heading.compared_by_loss = True
        latex = accuracy_table.as_table(self.response, 110).render_latex()
        self.assertIn("none & 0.5 & \\textbf{0.000123} \\\\\n", latex)
        self.assertIn("sin\\_cos & \\textbf{0.25} & 12 \\\\\n", latex)

    def test_headings_are_the_servers(self):
        self.add_cell("sin_cos", 1, [1.0, 0.9, 0.2, 0.1])
        self.response.heading.seen, self.response.heading.unseen = "up to 2", "above 2"
        self.assertEqual(
            self.table(80),
            "         │ up to 2           │ above 2\n"
            "encoding │     1     2  mean │    3     4  mean\n"
            "─────────┼───────────────────┼─────────────────\n"
            "sin_cos  │ 100.0  90.0  95.0 │ 20.0  10.0  15.0\n",
        )


if __name__ == "__main__":
    unittest.main()
