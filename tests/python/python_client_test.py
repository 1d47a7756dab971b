"""The Python client with the real server."""
import ast
import collections
import contextlib
import graphlib
import io
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import threading
import time
import types
import unittest
from concurrent import futures
from unittest import mock
from xml.etree import ElementTree

import service
from raw_server import GRPC, RawServer
from service import Numbers, lengthwise

import grpc
import numpy
import pandas
from lengthwise import connection, names
from lengthwise._proto import event_pb2, experiment_service_pb2, rpc_details_pb2
from lengthwise.connection import Connection, Settings
from lengthwise.errors import UsageError


def read_table(html):
    """The head's and the body's cells of a table with one row."""
    head, body = ElementTree.fromstring(html).iter("tr")
    return dict(zip((cell.text for cell in head), (cell.text or "" for cell in body)))


class ClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = service.Server()
        cls.client = lengthwise.Client(cls.server.address)
        cls.worker = service.Worker(cls.server)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.server.kill()

    def submit_and_run(self, name):
        experiment = self.client.submit(service.specification(name))
        self.assertEqual(self.worker.run_all(), 4)
        return experiment.refresh()

    def test_submits_a_file_of_examples(self):
        directory = service.new_directory()
        inputs = [[i % 3, i // 3 % 3, i // 9 % 3, i // 27] for i in range(81)]
        lines = [{"input": symbols, "target": symbols[::-1]} for symbols in inputs]
        (directory / "mine.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        specification = {
            "name": "mine",
            "tasks": {"name": "examples", "label": "swapped", "train": "mine.jsonl", "held_out": 0.2},
            "encodings": "sin_cos",
            "learning_rates": 0.001,
            "training": {"steps": 10},
        }
        path = directory / "mine.json"
        path.write_text(json.dumps(specification))
        self.assertEqual(len(self.client.validate(path)), 1)
        for _ in range(2):  # the second time nothing is uploaded
            experiment = self.client.submit(path)
            self.assertEqual(experiment.counts.queued, 1)
            self.assertEqual(experiment.specification["tasks"][0]["label"], "swapped")
        # It goes to the client's server, whatever the user's settings are.
        with mock.patch.dict(os.environ, {"LENGTHWISE_SERVER": "nowhere:1", "LENGTHWISE_TLS_CA": "system"}):
            first, second = (self.client.submit(path, request_id="once", owner="me") for _ in range(2))
        self.assertEqual((first.name, first.owner), (second.name, "me"))
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(directory)
        self.client.submit(specification).cancel()
        # It is no option of the program that reads the files.
        pathlib.Path("-mine.json").write_text(json.dumps(specification))
        self.assertEqual(len(self.client.validate("-mine.json")), 1)
        (directory / "mine.jsonl").write_text('{"input": [1], "target": [1]}\n{"input": ')
        with self.assertRaisesRegex(lengthwise.LengthwiseError, "mine.jsonl:2: column 11: not JSON"):
            self.client.submit(path)
        path.write_text(json.dumps({**specification, "learning_rates": -1}))
        with self.assertRaises(lengthwise.LengthwiseError) as caught:
            self.client.submit(path)
        first, second = caught.exception.violations
        self.assertEqual((first.field, first.description.partition(":")[0]), ("mine.jsonl:2", "column 11"))
        self.assertEqual((second.field, second.description.partition(",")[0]), ("learning_rates[0]", "got -1"))

    def test_submits_the_file_of_a_network(self):
        directory = service.new_directory()
        (directory / "net.py").write_text("class Net: pass\n")
        network = {"name": "python", "file": "net.py", "class": "Net"}
        specification = service.specification("module", networks=network, encodings="own", evaluation={"lengths": [2]})
        path = directory / "module.json"
        path.write_text(json.dumps(specification))
        self.assertEqual(len(self.client.validate(path)), 2)
        for _ in range(2):  # the second time nothing is uploaded
            experiment = self.client.submit(path)
            self.assertEqual(experiment.counts.queued, 2)
            self.assertEqual(experiment.trial(0).network_files(), {"net.py": b"class Net: pass\n"})
            experiment.cancel()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(directory)
        self.client.submit(specification).cancel()
        (directory / "net.py").unlink()
        with self.assertRaisesRegex(lengthwise.LengthwiseError, "net.py"):
            self.client.submit(path)

    def test_submits_a_dictionary_or_a_file(self):
        by_dictionary = self.client.submit(service.specification("both"), owner="ada")
        path = service.new_directory() / "both.yaml"
        path.write_text(json.dumps(service.specification("both")))  # which is YAML
        by_file = self.client.submit(path)
        self.assertEqual((by_dictionary.id, by_file.id), ("both-1", "both-2"))
        self.assertEqual(by_dictionary.specification["evaluation"], by_file.specification["evaluation"])
        self.assertEqual(by_dictionary.counts, lengthwise.TrialCounts(4, 0, 0, 0, 0))
        self.assertEqual(self.client.experiment("both-1").name, by_dictionary.name)
        self.assertEqual(self.client.experiment("both").name, by_file.name)  # the newest
        self.assertEqual([one.id for one in self.client.experiments(owner="ada")], ["both-1"])
        self.assertEqual([one.id for one in self.client.experiments(limit=1)], ["both-2"])
        self.assertEqual(self.client.trial("both-1/" + by_dictionary.trial(2).id).encoding, "sin_cos")
        self.assertEqual(self.client.trial("both-1/2").name, by_dictionary.trial(2).name)  # as on the command line
        for found in ("both", "bot", "both-"):
            with self.assertRaises(lengthwise.LengthwiseError):
                self.client.experiment(found).delete()
        with self.assertRaisesRegex(lengthwise.LengthwiseError, r'full name: client.experiment\("both-2"\).delete'):
            self.client.experiment("both").delete()
        for experiment in (by_dictionary, by_file):
            experiment.cancel("enough")
            experiment.delete()

    def test_changes_refuse_a_guessed_name(self):
        for name in ("guessed", "guessed", "alone"):
            self.client.submit(service.specification(name, seeds=[0]))
        changes = {
            "cancel()": lambda found: found.cancel(),
            "retry()": lambda found: found.retry(),
            "extend(seeds=...)": lambda found: found.extend(seeds=[9]),
        }
        for text, full in (("guessed", "guessed-2"), ("alo", "alone-1")):
            for call, change in changes.items():
                told = f'{call.partition("(")[0]} needs the full name: client.experiment("{full}").{call}'
                with self.assertRaisesRegex(UsageError, f"^{re.escape(told)}$"):
                    change(self.client.experiment(text))
            for found in (self.client.trial(f"{text}/0"), *self.client.experiment(text).trials()):
                for call in ("cancel", "retry"):
                    told = f'{call} needs the full name: client.trial("{full}/{found.id}").{call}()'
                    with self.assertRaisesRegex(UsageError, f"^{re.escape(told)}$"):
                        getattr(found, call)()
        with self.assertRaisesRegex(UsageError, "^cancel needs the full name: "):
            self.client.trial("guessed-2/bucket_sort-encoder-none").cancel()
        for name in ("guessed-1", "guessed-2", "alone-1"):
            self.assertEqual(self.client.experiment(name).counts, lengthwise.TrialCounts(2, 0, 0, 0, 0))
        # A full name, an index, and the name of a specification that one experiment has.
        self.assertEqual(self.client.trial("guessed-2/0").cancel().retry().state, "QUEUED")
        for name in ("guessed-2", "experiments/guessed-1", "alone"):
            self.assertEqual(self.client.experiment(name).cancel().counts.cancelled, 2)

    def test_home_directory_is_expanded(self):
        home = service.new_directory()
        with mock.patch.dict(os.environ, {"HOME": str(home)}):
            (home / "home.json").write_text(json.dumps(service.specification("home")))
            (home / "token").write_text("lw_token")
            (home / "token").chmod(0o600)
            experiment = self.client.submit("~/home.json")
            self.assertEqual(self.worker.run_all(), 4)
            trial = experiment.refresh().trial(0)
            trial.save_model(pathlib.Path("~/model.safetensors"))
            trial.export("json", "~/trial.json")
            experiment.export("csv", "~/tables")
            experiment.report("~/report.html")
            with lengthwise.Client(self.server.address, token_file="~/token") as client:
                self.assertEqual(client._connection.settings.token_file, str(home / "token"))
        made = {"model.safetensors", "trial.json", "tables", "report.html"}
        self.assertLessEqual(made, {path.name for path in home.iterdir()})
        self.assertFalse(pathlib.Path("~").exists())

    def test_a_submission_may_be_repeated(self):
        first = self.client.submit(service.specification("once"), request_id="r1")
        self.assertEqual(self.client.submit(service.specification("once"), request_id="r1").name, first.name)
        first.cancel()

    def test_lost_answer_creates_one_experiment(self):
        connection = self.client._connection
        call, requests = connection.call, []

        def lose_first_answer(request, response):
            answer = call(request, response)
            requests.append(request.request_id)
            if len(requests) == 1:
                raise lengthwise.UnavailableError("the connection broke", code=grpc.StatusCode.UNAVAILABLE)
            return answer

        with mock.patch.object(connection, "call", lose_first_answer):
            experiment = self.client.submit(service.specification("lost"))
        self.assertEqual((len(requests), len(set(requests)), experiment.id), (2, 1, "lost-1"))
        self.assertEqual(self.client.experiment("lost").name, experiment.name)
        experiment.cancel()

    def test_submission_gives_up_after_two_attempts(self):
        unavailable = lengthwise.UnavailableError("the disk is full", code=grpc.StatusCode.UNAVAILABLE)
        with mock.patch.object(self.client._connection, "call", side_effect=unavailable) as call:
            with self.assertRaisesRegex(lengthwise.UnavailableError, "the disk is full"):
                self.client.submit(service.specification("full"))
        self.assertEqual(call.call_count, 2)

    def test_all_mistakes_are_reported(self):
        wrong = service.specification("wrong", encodings=["none", "rotery"], learning_rates=-1)
        with self.assertRaises(lengthwise.LengthwiseError) as caught:
            self.client.submit(wrong)
        error = caught.exception
        self.assertEqual(error.code.name, "INVALID_ARGUMENT")
        self.assertEqual(len(error.violations), 2)
        fields = sorted(violation.field for violation in error.violations)
        self.assertEqual([field.partition(".")[0] for field in fields], ["encodings[1]", "learning_rates[0]"])
        self.assertIn('"rotery"', str(error))
        self.assertIn("learning_rates[0]: ", str(error))
        self.assertEqual(len(self.client.validate(service.specification("right"))), 4)

    def test_dictionary_takes_values_of_other_packages(self):
        plain = service.specification("plain", seeds=[0, 1, 2], learning_rates=[0.0005, 0.001])
        wanted = self.client.submit(plain)
        self.addCleanup(wanted.cancel)

        for more in (
            {"seeds": range(3)},
            {"seeds": (seed for seed in range(3))},
            {"seeds": {2, 0, 1}},
            {"seeds": dict.fromkeys(range(3)).keys()},
            {"seeds": numpy.arange(3)},
            {"seeds": [numpy.int64(0), numpy.array(1), numpy.uint8(2)]},
            {"seeds": pandas.Series([0, 1, 2])},
            {"learning_rates": numpy.array([0.0005, 0.001])},
            {"learning_rates": pandas.Series([0.0005, 0.001])},
            {"learning_rates": (0.0005, numpy.float64(0.001))},
            {"learning_rates": (0.0005, numpy.float32(0.001))},
            {"learning_rates": numpy.array([0.0005, 0.001], numpy.float32)},
            {"learning_rates": pandas.Series([0.0005, 0.001], dtype="Float32")},
            {"evaluation": {**plain["evaluation"], "lengths": numpy.arange(2, 10, 2), "sequences": numpy.int32(10)}},
            {"tasks": numpy.str_("bucket_sort"), "encodings": pandas.Index(["none", "sin_cos"])},
            {"networks": [collections.ChainMap({"heads": numpy.int64(2)}, plain["networks"][0])]},
            {"tasks": pathlib.PurePath("bucket_sort")},
        ):
            same = self.client.submit(types.MappingProxyType({**plain, **more}))
            self.assertEqual(same.specification, wanted.specification, more)
            same.cancel()

    def test_value_that_json_does_not_have_is_reported(self):
        def wrong(**more):
            return service.specification("wrong", **more)

        expected = "expected text, a number, true or false, or a list or dictionary of these"
        loop = wrong()
        loop["training"] = loop
        for given, told in (
            (wrong(training={"lengths": [1, 2, 3j]}), f"training.lengths[2]: got a value of type complex, {expected}"),
            (wrong(encodings=[{"name": b"rope"}]), f"encodings[0].name: got a value of type bytes, {expected}"),
            (wrong(seeds=pandas.DataFrame({"seed": [1]})), f"seeds: got a value of type pandas.DataFrame, {expected}"),
            (wrong(seeds=[numpy.longdouble(1)]), f"seeds[0]: got a value of type numpy.longdouble, {expected}"),
            (wrong(learning_rates=[0.1, float("nan")]), "learning_rates[1]: got nan, expected a finite number"),
            (wrong(learning_rates=-numpy.float32("inf")), "learning_rates: got -inf, expected a finite number"),
            (wrong(seeds={0, "1..4"}), "seeds: got a set of values that have no order, expected a list"),
            (wrong(training={3: 4}), "training: got the key 3 of type int, expected a name"),
            (loop, "the specification contains itself, or is nested too deeply"),
            (7, "specification: got a value of type int, expected the path of a file, the name of an installed "
                "specification or a dictionary"),
        ):  # fmt: skip
            directory = service.new_directory()
            for call in (
                self.client.submit,
                self.client.validate,
                lambda given, directory=directory: lengthwise.run(given, data_dir=directory),
            ):
                with self.assertRaises(UsageError) as caught:
                    call(given)
                self.assertEqual(str(caught.exception), told)
            self.assertEqual(list(directory.iterdir()), [], "no server was started")
        with self.assertRaises(UsageError) as caught:
            self.client.submit(wrong(seeds=1j, learning_rates=float("inf")))
        self.assertEqual([one.field for one in caught.exception.violations], ["learning_rates", "seeds"])

    def test_argument_of_a_wrong_type_is_reported(self):
        experiment = self.submit_and_run("types")
        trial = experiment.trial(numpy.int64(0))
        count, texts = "a whole number", "text or a list of texts"
        for call, name, value, expected in (
            (experiment.plot.loss, "tasks", 3, texts),
            (experiment.plot.loss, "networks", None, texts),
            (experiment.plot.loss, "encodings", ["none", 3], texts),
            (experiment.plot.loss, "learning_rates", "1e-3", "a number or a list of numbers"),
            (experiment.plot.loss, "learning_rates", [True], "a number or a list of numbers"),
            (experiment.plot.loss, "title", 3, "text"),
            (experiment.plot.loss, "ax", 3, "Axes of matplotlib, or a list of them"),
            (experiment.analyze.t_test, "reference", 3, "text"),
            (experiment.analyze.carries, "length", "6", count),
            (experiment.report, "compare", 3, texts),
            (experiment.seconds_to_accuracy, "accuracy", "0.9", "a number"),
            (experiment.wait, "timeout", "60", "a number"),
            (experiment.retry, "states", None, texts),
            (experiment.trial, "id_or_index", 1.5, "text or a whole number"),
            (experiment.accuracies, "intervals", 1, "True or False"),
            (trial.attention_maps, "length", True, count),
            (trial.save_model, "path", 3, "the path of a file"),
            (self.client.experiments, "limit", 2.5, count),
            (self.client.trial, "name", None, "text"),
        ):
            with self.assertRaises(UsageError) as caught:
                call(**{"reference": "none", name: value} if call == experiment.analyze.t_test else {name: value})
            self.assertEqual(str(caught.exception), f"{name}: got {value!r}, expected {expected}")
        chosen = experiment.plot.accuracy_by_length(encodings=pandas.Series(["none"]), learning_rates=numpy.array([0.001]))
        self.assertEqual(len(chosen.axes), 1)
        chosen = experiment.plot.accuracy_by_length(learning_rates=numpy.float32(0.001))
        self.assertEqual(len(chosen.axes), 1)

    def test_results_are_pandas_frames(self):
        experiment = self.submit_and_run("frames")
        first_look = "task network encoding learning_rate succeeded seen_accuracy unseen_accuracy unseen_accuracy_deviation"
        self.assertEqual(list(experiment.results().columns), [*first_look.split(), "best_trial"])
        results = experiment.results(all=True)
        self.assertEqual(list(results["encoding"]), ["none", "sin_cos"])
        self.assertEqual(list(results["succeeded"]), [2, 2])

        def unseen(index):
            return (Numbers(index).accuracy(6) + Numbers(index).accuracy(8)) / 2

        for row, indices in enumerate(([0, 1], [2, 3])):
            values = [unseen(index) for index in indices]
            self.assertAlmostEqual(results["unseen_accuracy"][row], numpy.mean(values))
            self.assertAlmostEqual(results["unseen_accuracy_deviation"][row], numpy.std(values, ddof=1))
            self.assertAlmostEqual(results["unseen_accuracy_max"][row], max(values))
        accuracies = experiment.accuracies()
        self.assertEqual(len(accuracies), 16)
        self.assertEqual(
            [list(accuracies[accuracies["trial"] == trial.name]["accuracy"]) for trial in experiment.trials()],
            [[Numbers(index).accuracy(length) for length in Numbers.LENGTHS] for index in range(4)],
        )
        self.assertEqual(list(accuracies[:4]["seen"]), [True, True, False, False])
        self.assertEqual(
            list(accuracies[:4]["digits_accuracy"]), [Numbers(0).digits_accuracy(length) for length in Numbers.LENGTHS]
        )
        self.assertEqual(len(experiment.accuracies(intervals=True)), 24)
        # The unseen lengths are 6 and 8: 0.267 at 1 s and 0.346 at 2 s, and 0.01 more with each
        # trial.
        for accuracy, seconds in ((0.28, [2, 2, 1, 1]), (0.37, [None, None, None, 2])):
            reached = experiment.seconds_to_accuracy(accuracy)
            self.assertEqual(list(reached["trial"]), [trial.name for trial in experiment.trials()])
            self.assertEqual([None if numpy.isnan(one) else one for one in reached["seconds"]], seconds)
        losses = experiment.losses()
        self.assertEqual(list(losses[losses["trial"] == experiment.trial(3).name]["step"]), Numbers.STEPS)
        self.assertEqual(
            list(losses[losses["trial"] == experiment.trial(3).name]["loss"]),
            [Numbers(3).loss(step) for step in Numbers.STEPS],
        )
        self.assertEqual(len(experiment.losses(max_points=2)), 8)
        errors = experiment.answer_errors()
        self.assertEqual(list(errors["trial"]), [trial.name for trial in experiment.trials()])
        self.assertEqual(list(errors["first_wrong_with_carry"]), [1] * 4)
        self.assertEqual(experiment.trial(numpy.int64(2)).name, experiment.trials()[2].name)
        table = experiment.trial_table()
        self.assertEqual(list(table["state"]), ["SUCCEEDED"] * 4)
        self.assertEqual(list(table["index"]), [0, 1, 2, 3])
        self.assertTrue((table["end_time"] >= table["start_time"]).all())
        self.assertEqual([trial.encoding for trial in experiment.trials('encoding = "sin_cos"')], ["sin_cos"] * 2)

    def test_a_trial_tells_what_it_answers(self):
        evaluation = {**service.specification("answers")["evaluation"], "answers": 20}
        specification = service.specification("answers", seeds=0, encodings="none", evaluation=evaluation)
        experiment = self.client.submit(specification)
        lease = self.worker.acquire()
        (leased,) = lease.trials
        self.worker.train(lease, leased)
        right = event_pb2.Answer(length=6, input="1 0", expected=["0", "1"], given=["0", "1"], separator=" ")
        wrong = event_pb2.Answer(length=6, sequence=3, input="1 0", expected=["0", "1"], given=["0"], wrong=[1], separator=" ")
        facts = [event_pb2.Event(step=200, answer=one) for one in (right, wrong)]
        facts.append(event_pb2.Event(step=200, outcome=event_pb2.Outcome(kind="COMPLETED", training_steps=200)))
        self.worker._send(lease, leased, 13, facts)
        trial = experiment.refresh().trial(0)
        self.assertEqual(trial.answers()[1], lengthwise.Answer(6, 3, 0, "1 0", ["0", "1"], ["0"], [1], " "))
        self.assertEqual(
            trial.errors(length=6),
            [{"length": 6, "sequence": 4, "input": "1 0", "expected": "0 1", "given": "0", "wrong": [1]}],
        )

        def answer() -> None:
            while (found := self.worker.acquire()) is None:
                pass
            (again,) = found.trials
            own = event_pb2.Answer(length=2, input_number=1, input="1 0", given=["0", "1"], separator=" ")
            outcome = event_pb2.Outcome(kind="COMPLETED", training_steps=200)
            self.worker._send(found, again, 1, [
                event_pb2.Event(step=200, answer=own), event_pb2.Event(step=200, outcome=outcome)
            ])  # fmt: skip

        worker = threading.Thread(target=answer, daemon=True)
        worker.start()
        self.assertEqual(trial.predict([1, 0]), "0 1")
        worker.join(service.DEADLINE)

    def test_a_trial_has_its_maps_and_its_model(self):
        experiment = self.submit_and_run("maps")
        for index, trial in enumerate(experiment.trials()):
            numbers = Numbers(index)
            (map,) = trial.attention_maps()  # received in two parts
            self.assertEqual((map.length, map.input_number, list(map.tokens)), (3, 0, [4, 2, 3, 5, 5, 5]))
            numpy.testing.assert_array_equal(map.probabilities, numbers.attention())
            numpy.testing.assert_allclose(map.probabilities.sum(axis=-1), 1, rtol=1e-6)
            self.assertEqual(trial.attention_maps(length=9), [])
            (projection,) = trial.projections()
            numpy.testing.assert_array_equal(projection.coordinates, numbers.projection())
            numpy.testing.assert_array_equal(projection.explained_variance, [[0.5, 0.25], [0.75, 0.125]])
            scores = trial.sequence_scores()
            self.assertEqual(set(scores), {6})
            numpy.testing.assert_array_equal(scores[6].accuracies, [1, 0.5])
            numpy.testing.assert_array_equal(scores[6].losses, [0.25, 2])
            self.assertEqual(scores[6].wrong_answers, [lengthwise.WrongAnswer(1, [0, 3], True)])
            self.assertEqual(trial.noise_accuracies(), {0.1: 0.75})
            (errors,) = trial.answer_errors().to_dict("records")
            self.assertEqual((errors["length"], errors["answers"], errors["wrong_by_place"]), (6, 8, [2, 1]))
            self.assertEqual((errors["answers_by_wrong_digits"], errors["first_wrong_without_carry"]), ([5, 3], 2))
            model = trial.model()
            self.assertEqual(set(model), set(numbers.weights()))
            for name, value in numbers.weights().items():
                numpy.testing.assert_array_equal(model[name], value)
            path = service.new_directory() / "model.safetensors"
            trial.save_model(path)
            self.assertEqual(path.read_bytes(), numbers.model())
            self.assertEqual(trial.specification["encoding"]["name"], trial.encoding)
            self.assertAlmostEqual(trial.unseen_accuracy, (numbers.accuracy(6) + numbers.accuracy(8)) / 2)

    def test_saved_model_touches_no_other_file(self):
        trial = self.submit_and_run("saved").trial(0)
        path = service.new_directory() / "model.safetensors"
        other = path.with_name("model.safetensors.tmp")
        other.write_text("mine")
        trial.save_model(path)
        self.assertEqual(other.read_text(), "mine")
        self.assertEqual(sorted(path.parent.iterdir()), [path, other])
        absent = path.parent / "absent" / "x.safetensors"
        with self.assertRaisesRegex(
            lengthwise.LengthwiseError, f"^cannot write {absent}: No such file or directory; make its dir"
        ):
            trial.save_model(absent)

    def test_missing_data_is_reported(self):
        experiment = self.client.submit(service.specification("missing"))
        with self.assertRaisesRegex(lengthwise.NotFoundError, "has stored no checkpoint yet"):
            experiment.trial(0).model()
        with self.assertRaises(lengthwise.NotFoundError):
            experiment.trial("no-such-trial")
        with self.assertRaisesRegex(lengthwise.LengthwiseError, "cancel"):
            experiment.delete()
        experiment.cancel()
        experiment.delete()
        with self.assertRaises(lengthwise.NotFoundError):
            experiment.refresh()
        with self.assertRaises(lengthwise.NotFoundError):
            self.client.experiment("missing")
        with lengthwise.Client("127.0.0.1:1") as nobody:
            with self.assertRaisesRegex(lengthwise.UnavailableError, "cannot reach a server at 127.0.0.1:1"):
                nobody.experiments()

    def test_full_disk_is_not_an_absent_server(self):
        full = service.Server(largest_file_kib=512)
        large = service.specification("large", seeds=list(range(5000)))
        try:
            with lengthwise.Client(full.address) as client:
                with self.assertRaisesRegex(lengthwise.UnavailableError, "^nothing was stored: .*; try again$"):
                    client.submit(large)
            path = service.new_directory() / "large.yaml"
            path.write_text(json.dumps(large))
            done = subprocess.run([service.CLIENT, "submit", path, "--server", full.address], capture_output=True, text=True,
                                  env=service.ENVIRONMENT, check=False)  # fmt: skip
        finally:
            full.kill()
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "^lengthwise: nothing was stored: .*; try again\n$")

    def test_cancels_retries_and_extends(self):
        experiment = self.client.submit(service.specification("changes"))
        self.assertEqual(experiment.trial(0).cancel("not this one").state, "CANCELLED")
        self.assertEqual(experiment.refresh().counts.cancelled, 1)
        self.assertEqual(experiment.cancel("none of them").counts.cancelled, 4)
        self.assertTrue(experiment.ended)
        self.assertIn("none of them", experiment.trial(1).reason)
        self.assertEqual(experiment.trial(0).retry().state, "QUEUED")
        self.assertEqual(experiment.retry(), 0, "cancelled trials stay cancelled")
        for wrong in ("failed", ["FAILED", "RUNNING"], []):
            with self.assertRaisesRegex(UsageError, '^states: got .*, expected "FAILED", "CANCELLED" or a list of both$'):
                experiment.retry(wrong)
        self.assertEqual(experiment.retry(["FAILED", "CANCELLED"]), 3)
        self.assertEqual(experiment.extend(seeds=[2]), 2)
        self.assertEqual(experiment.counts.queued, 6)
        self.assertEqual(experiment.extend(seeds=numpy.array([2])), 0)
        for wrong in (3, "10..19", [-1], [0.5]):
            with self.assertRaisesRegex(UsageError, r"^seeds: got .*, expected a list of new seeds, such as \[10, 11\]"):
                experiment.extend(seeds=wrong)
        self.assertEqual(experiment.trial(-1).name, experiment.trials()[5].name)
        with self.assertRaisesRegex(lengthwise.NotFoundError, "^trial: got 6, expected an index from 0 to 5, because .* 6 t"):
            experiment.trial(6)
        experiment.cancel()

    def test_watch_tells_the_whole_history_and_ends(self):
        experiment = self.submit_and_run("history")
        seen = list(experiment.watch())
        positions = [event.position for event in seen]
        self.assertEqual(positions, sorted(set(positions)))
        of_first = [event for event in seen if event.trial == experiment.trial(0).name]
        self.assertEqual(
            [type(event).__name__ for event in of_first],
            ["StateChange", "LogLine", "TrainingPoints", "LengthAccuracies", "TrainingPoints", "Checkpoint",
             "LengthAccuracies", "Outcome", "StateChange"],
        )  # fmt: skip
        self.assertEqual((of_first[0].old, of_first[0].new, of_first[0].worker), ("QUEUED", "RUNNING", "python-1"))
        self.assertEqual((of_first[-1].old, of_first[-1].new), ("RUNNING", "SUCCEEDED"))
        self.assertEqual(of_first[1].text, "hello")
        numpy.testing.assert_array_equal(of_first[2].steps, [50, 100])
        self.assertEqual(of_first[2].losses[0], numpy.float32(Numbers(0).loss(50)))
        self.assertIsNone(of_first[3].training_accuracy)
        self.assertEqual(of_first[6].training_accuracy, 0.875)
        self.assertEqual(list(of_first[6].metrics), ["digits_accuracy"])
        numpy.testing.assert_array_equal(of_first[6].metrics["digits_accuracy"], of_first[6].accuracies / 2)
        self.assertEqual(of_first[7].kind, "COMPLETED")
        later = experiment.watch(start_position=positions[-3])
        self.assertEqual([event.position for event in later], positions[-3:])

    def test_wait_ends_in_time(self):
        experiment = self.client.submit(service.specification("patient"))
        self.assertTrue(experiment.seconds_to_accuracy(0.5)["seconds"].isna().all(), "nothing has been evaluated yet")
        with self.assertRaises(TimeoutError):
            experiment.wait(timeout=0.2)
        with self.assertRaisesRegex(UsageError, "^accuracy: got 90, expected a fraction from 0 to 1, such as 0.9 for 90 %$"):
            experiment.seconds_to_accuracy(90)
        for name, value, expected in (
            ("workers", 0, "got 0, expected a whole number from 1"),
            ("threads", None, "got None, expected a whole number from 1"),
            ("device", "gpu", 'got \'gpu\', expected "auto", "cpu", "cuda" or "cuda:N"'),
            ("progress", False, "got False, expected a function that is called with the experiment"),
        ):
            directory = service.new_directory()
            with self.assertRaisesRegex(UsageError, f"^{name}: {expected}"):
                lengthwise.run(service.specification("none"), data_dir=directory, **{name: value})
            self.assertEqual(list(directory.iterdir()), [], "nothing was submitted")
        worker = service.in_background(self.worker.run_all)
        with contextlib.redirect_stderr(io.StringIO()) as told:
            self.assertEqual(experiment.wait(timeout=60).counts.succeeded, 4)
            self.assertEqual(told.getvalue(), "", "neither a notebook nor a terminal")
            experiment.wait(timeout=60, progress=True)
        worker.join()
        self.assertRegex(told.getvalue(), r"^\rpatient-1: .*\rpatient-1: 100%.* 800/800 ")

    def test_notebooks_show_tables(self):
        experiment = self.submit_and_run("html")
        experiment._message.owner = "<ada>"
        shown = read_table(experiment._repr_html_())
        self.assertEqual((shown["experiment"], shown["owner"]), ("html-1", "<ada>"))
        self.assertEqual((shown["queued"], shown["succeeded"], shown["failed"]), ("0", "4", "0"))
        trial = experiment.trial(3)
        shown = read_table(trial._repr_html_())
        self.assertEqual((shown["id"], shown["state"], shown["encoding"]), (trial.id, "SUCCEEDED", "sin_cos"))
        self.assertAlmostEqual(float(shown["unseen_accuracy"]), trial.unseen_accuracy, 5)
        (queued,) = self.client.submit(service.specification("queued", encodings="none", seeds=0)).trials()
        self.assertEqual(read_table(queued._repr_html_())["unseen_accuracy"], "", "not known yet")
        queued.cancel()


class NamesTest(unittest.TestCase):
    def test_texts_mean_experiments_and_trials(self):
        server = service.Server()
        self.addCleanup(server.kill)
        trial = "two-2/trials/bucket_sort-encoder-sin_cos-lr0.001-seed0"
        with lengthwise.Client(server.address) as client:
            for name in ("two", "two", "ablation"):
                client.submit(service.specification(name, seeds=[0]))
            for text, found, is_guess in (("two-2", "two-2", False), ("two", "two-2", True), ("abl", "ablation-1", True)):
                experiment = client.experiment(text)
                self.assertEqual((experiment.id, experiment._match == names.GUESS), (found, is_guess), text)
            for text, is_guess in (("two-2/1", False), ("two/1", True), ("two-2/bucket_sort-encoder-s", True)):
                of_experiment = client.experiment(text.partition("/")[0])
                # By the whole text and by the trial's part of it.
                for one in (client.trial(text), of_experiment.trial(text), of_experiment.trial(text.partition("/")[2])):
                    self.assertEqual(one.name, f"experiments/{trial}")
                    self.assertEqual(one._match == names.GUESS, is_guess, text)
            ablation = client.experiment("ablation")
            with self.assertRaisesRegex(lengthwise.NotFoundError, '^trial: got "two-2/1", expected a trial of ablation-1$'):
                ablation.trial("two-2/1")
            with self.assertRaisesRegex(lengthwise.NotFoundError, '; did you mean "bucket_sort-encoder-none-lr0.001-seed0"'):
                ablation.trial("bucket_sort-encoder-non-lr0.001-seed0")
            for find, text, message in (
                (client.experiment, "", "the name of the experiment is empty; `lengthwise list` shows the names"),
                (client.trial, "/0", "the name of the experiment is empty; `lengthwise list` shows the names"),
                (client.trial, "two-1/", '"two-1/" is an experiment; name a trial of it, such as two-1/0'),
            ):
                with self.assertRaisesRegex(UsageError, f"^{re.escape(message)}$"):
                    find(text)


class DamagedAnswersTest(unittest.TestCase):
    """Whatever a server answers, the package raises errors of its own."""

    def test_details_that_cannot_be_read_leave_the_message(self):
        class Server(grpc.GenericRpcHandler):
            def service(self, details):
                def refuse(request, context):
                    context.set_trailing_metadata((("grpc-status-details-bin", b"\xff\xff"),))
                    context.abort(grpc.StatusCode.INTERNAL, "broken")

                return grpc.unary_unary_rpc_method_handler(refuse)

        server = grpc.server(futures.ThreadPoolExecutor(1))
        server.add_generic_rpc_handlers((Server(),))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        self.addCleanup(lambda: server.stop(None).wait())
        with lengthwise.Client(f"127.0.0.1:{port}") as client:
            with self.assertRaisesRegex(lengthwise.LengthwiseError, "^broken$"):
                client.experiments()
        with self.assertRaisesRegex(lengthwise.LengthwiseError, "^this client is closed; make another Client"):
            client.experiments()
        experiment = lengthwise.Experiment(client._connection, experiment_service_pb2.Experiment(name="experiments/e-1"))
        with self.assertRaisesRegex(lengthwise.LengthwiseError, "^this client is closed; make another Client"):
            list(experiment.watch())
        trial = lengthwise.Trial(client._connection, experiment_service_pb2.Trial(name="experiments/e-1/trials/t"))
        for call in (trial.errors, lambda: trial.predict("0"), trial.model):
            with self.assertRaisesRegex(lengthwise.LengthwiseError, "^this client is closed; make another Client"):
                call()

    def test_values_that_no_release_knows_are_shown_or_reported(self):
        message = experiment_service_pb2.Trial(state=99)
        message.specification.task.parameters["x"].number_value = float("inf")
        message.create_time.seconds = 1 << 60
        trial = lengthwise.Trial(None, message)
        self.assertEqual(trial.state, "99")
        try:
            trial.specification  # noqa: B018  early releases of Protocol Buffers can write it
        except lengthwise.LengthwiseError as error:
            self.assertRegex(str(error), "^an answer of the server has no JSON: ")
        with self.assertRaisesRegex(lengthwise.LengthwiseError, "^an answer of the server has a time of "):
            trial.create_time  # noqa: B018


class RestartTest(unittest.TestCase):
    def test_watch_survives_server_restarts(self):
        server = service.Server()
        self.addCleanup(server.kill)
        experiment = lengthwise.Client(server.address).submit(service.specification("restarts"))
        seen = []
        arrived = threading.Condition()

        def watch():
            for event in experiment.watch():
                with arrived:
                    seen.append(event)
                    arrived.notify_all()

        def wait_for(kind, trial):
            with arrived:
                found = arrived.wait_for(
                    lambda: any(isinstance(event, kind) and event.trial == trial for event in seen), service.DEADLINE
                )
            self.assertTrue(found, seen)

        watcher = service.in_background(watch)
        for index in range(4):
            worker = service.Worker(server, f"w-{index}")
            lease = worker.acquire()
            worker.train(lease, lease.trials[0])
            wait_for(lengthwise.Checkpoint, lease.trials[0].trial)
            server.kill()
            server.start()
            again = service.Worker(server, f"w-{index}")  # whose lease is still alive
            again.finish(lease, lease.trials[0])
        watcher.join(service.DEADLINE)
        self.assertFalse(watcher.is_alive())
        # The watch must look as if nothing had happened.
        after = list(lengthwise.Client(server.address).experiment("restarts").watch())
        self.assertEqual([event.position for event in seen], [event.position for event in after])
        self.assertEqual([type(event) for event in seen], [type(event) for event in after])
        self.assertEqual(experiment.refresh().counts.succeeded, 4)

    def test_quiet_stream_is_no_outage(self):
        server = service.Server()
        self.addCleanup(server.kill)
        lengthwise.Client(server.address).submit(service.specification("quiet")).trial(0).cancel()
        experiment = lengthwise.Client(server.address).experiment("quiet")
        hours = 0
        clock = mock.Mock(monotonic=lambda: time.monotonic() + 3600 * hours, sleep=time.sleep)

        class Quiet:
            """A stream that stays silent for two hours before it breaks."""

            def __init__(self, *arguments):
                self._stream = connect(*arguments)
                self.cancel = self._stream.cancel

            def __iter__(self):
                nonlocal hours
                try:
                    yield from self._stream
                except Exception:
                    hours = 2
                    raise

        connect = experiment._connection.open
        with mock.patch("lengthwise.experiment.time", clock), mock.patch.object(experiment._connection, "open", Quiet):
            watch = experiment.watch(patience=60)
            self.assertEqual(next(watch).new, "CANCELLED")
            server.kill()
            server.start()
            lengthwise.Client(server.address).experiment("quiet").cancel()
            self.assertEqual([event.new for event in watch], ["CANCELLED"] * 3)

    def test_watch_gives_up_without_a_server(self):
        server = service.Server()
        # The server listens only at the second of two addresses.
        experiment = lengthwise.Client(f"127.0.0.1:1, {server.address}").submit(service.specification("gone"))
        experiment.trial(0).cancel()
        watch = experiment.watch(patience=0.5)
        self.assertEqual(next(watch).new, "CANCELLED")
        server.kill()
        with self.assertRaises(lengthwise.LengthwiseError):
            list(watch)

    def test_wait_ends_in_time_without_a_server(self):
        server = service.Server()
        experiment = lengthwise.Client(server.address).submit(service.specification("gone"))
        server.kill()
        opened = []
        open_stream = experiment._connection.open
        with mock.patch.object(experiment._connection, "open", lambda *given: opened.append(1) or open_stream(*given)):
            with self.assertRaises(TimeoutError):
                experiment.wait(timeout=1)
        self.assertLess(len(opened), 20, "it does not ask again and again at its end")


class SettingsTest(unittest.TestCase):
    def setUp(self):
        self.home = service.new_directory()
        directory = self.home / ".config" / "lengthwise"
        directory.mkdir(parents=True)
        self.file = directory / "config.yaml"

    def test_settings_are_those_of_the_command_line(self):
        self.file.write_text("server: house:7070\ntls_ca: system\n")
        with mock.patch.dict(os.environ, {"HOME": str(self.home)}):
            del os.environ["LENGTHWISE_CONFIG"]
            with lengthwise.Client() as client:
                self.assertEqual(client._connection.settings, Settings("house:7070", tls_ca="system"))
            # The file's credentials are for its server.
            with lengthwise.Client("attic:7070", tls_server_name="attic") as client:
                self.assertEqual(client._connection.settings, Settings("attic:7070", tls_server_name="attic"))
            self.file.write_text("sever: house:7070\n")
            with self.assertRaisesRegex(UsageError, 'config.yaml:1: unknown setting "sever"'):
                lengthwise.Client()

    def test_package_alone_takes_explicit_settings(self):
        alone = {"LENGTHWISE_CLIENT_BINARY": "", "PATH": "", "LENGTHWISE_TLS_CA": "system"}
        with mock.patch.dict(os.environ, alone):
            with lengthwise.Client("127.0.0.1:1", tls_server_name="x") as client:
                self.assertEqual(client._connection.settings, Settings("127.0.0.1:1", tls_server_name="x"))
            with lengthwise.Client("unix:/tmp/none") as client, self.assertRaises(lengthwise.UnavailableError):
                client.experiments()
            with self.assertRaisesRegex(lengthwise.LengthwiseError, 'the server "house" is not HOST:PORT, such as'):
                lengthwise.Client("house")
            with self.assertRaisesRegex(lengthwise.LengthwiseError, "^cannot find `lengthwise`: it is not on the PATH"):
                lengthwise.Client()

    def test_files_that_never_end_are_refused(self):
        pipe, zero, loop, large = (self.home / f"{name}.yaml" for name in ("pipe", "zero", "loop", "large"))
        os.mkfifo(pipe, 0o600)
        zero.symlink_to("/dev/zero")
        loop.symlink_to(loop)
        large.touch(0o600)
        os.truncate(large, 1 << 40)
        for path, reason in (
            (pipe, "it is a pipe, expected a regular file"),
            (zero, "it is a device, expected a regular file"),
            (loop, "Too many levels of symbolic links"),
            (large, "it has (1099511627776|more than 1048576) bytes"),
        ):
            with mock.patch.dict(os.environ, {"LENGTHWISE_CONFIG": str(path)}):
                with self.assertRaisesRegex(lengthwise.LengthwiseError, f"^cannot read .*{path}.*{reason}"):
                    lengthwise.Client()
            for read in (
                lambda path: connection.read_token(str(path)),
                lambda path: lengthwise.Client("127.0.0.1:1", tls_ca=str(path)),
                lambda path: lengthwise.Client("127.0.0.1:1").submit(path),
            ):
                with self.assertRaisesRegex(lengthwise.LengthwiseError, f"^cannot read .*{path}: {reason}"):
                    read(path)

    def test_a_token_file_may_hold_a_jwt(self):
        path = service.new_directory() / "token"
        for text, fits in (
            ("eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJzYW0ifQ.c2ln-bmF0_dXJl", True),
            ("eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJzYW0ifQ", False),
            ("eyJh.eyJz.c2ln c2ln", False),
            ("password", False),
            ("lw_é", False),
        ):
            path.write_text(text + "\n")
            path.chmod(0o600)
            if fits:
                self.assertEqual(connection.read_token(str(path)), text)
                continue
            with self.assertRaisesRegex(lengthwise.LengthwiseError, f"^the token file {path} holds no token such as"):
                connection.read_token(str(path))

    def test_a_list_of_addresses_becomes_one_target(self):
        for server, target in (
            ("no-such-host.invalid:7070", "no-such-host.invalid:7070"),
            ("localhost:1, 127.0.0.2:2", "ipv4:127.0.0.1:1,127.0.0.2:2"),
            ("[::1]:1,[::2]:2", "ipv6:[::1]:1,[::2]:2"),
            ("localhost:1,127.0.0.1:1,127.0.0.1:2,127.0.0.1:1", "ipv4:127.0.0.1:1,127.0.0.1:2"),
            ("[::1]:1,[0::1]:1", "ipv6:[::1]:1"),
            ("no-such-host.invalid:1,127.0.0.2:2", "ipv4:127.0.0.2:2"),
            ("unix:/tmp/lengthwise-1/a", "unix:/tmp/lengthwise-1/a"),
        ):
            self.assertEqual(connection.target_of(server), target)
        for server, message in (
            ("no-such-host.invalid:1,no-such-host.invalid:2", "none of the hosts"),
            ("127.0.0.1:1,[::1]:2", "give addresses of one kind"),
        ):
            with self.assertRaisesRegex(lengthwise.LengthwiseError, message):
                connection.target_of(server)

    def test_a_list_warns_of_unknown_hosts(self):
        message = (
            "^the server address no-such-host.invalid:1 is left out until the next start, because its host is unknown; "
            "check the name, or give an IP address$"
        )
        with self.assertWarnsRegex(UserWarning, message) as caught:
            lengthwise.Client("no-such-host.invalid:1,127.0.0.2:2").close()
        self.assertEqual(caught.filename, __file__)

    def test_a_token_does_not_travel_in_plain_text(self):
        token = self.home / "t"
        token.write_text("lw_" + "0" * 12 + "_" + "0" * 64)
        token.chmod(0o600)
        with self.assertRaisesRegex(lengthwise.LengthwiseError, "plain text; set tls_ca"):
            lengthwise.Client("gpu-head.example.org:7070", token_file=token)
        with self.assertRaisesRegex(lengthwise.LengthwiseError, "plain text; set tls_ca"):
            lengthwise.Client("127.0.0.1:7070,10.0.0.1:7070", token_file=token)
        token.chmod(0o644)
        with self.assertRaisesRegex(lengthwise.LengthwiseError, "chmod 600"):
            lengthwise.Client("127.0.0.1:7070", token_file=token)

    def test_shows_its_token_over_tls(self):
        openssl = shutil.which("openssl")
        if openssl is None:
            self.skipTest("there is no program openssl to make a certificate with")
        certificate, key = self.home / "server.pem", self.home / "server.key"
        subprocess.run(
            [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
             "-subj", "/CN=house", "-addext", "subjectAltName=DNS:house.example", "-keyout", str(key),
             "-out", str(certificate)],
            check=True, capture_output=True,
        )  # fmt: skip
        key.chmod(0o600)
        data, token, ready = self.home / "data", self.home / "admin.token", self.home / "ready"
        subprocess.run(
            [service.SERVER, "--data_dir", str(data), "--create_admin_token", str(token)],
            check=True, capture_output=True, env=service.ENVIRONMENT,
        )  # fmt: skip
        process = subprocess.Popen(
            [service.SERVER, "--listen", "127.0.0.1:0", "--metrics_listen", "", "--data_dir", str(data),
             "--ready_file", str(ready), "--tls_certificate", str(certificate), "--tls_key", str(key)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=service.ENVIRONMENT,
        )  # fmt: skip
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        waited = threading.Event()
        while not ready.exists() and process.poll() is None:
            waited.wait(0.02)
        address = ready.read_text().splitlines()[0]
        self.file.write_text(
            f"server: {address}\ntoken_file: ~/admin.token\ntls_ca: {certificate}\ntls_server_name: house.example\n"
        )
        with mock.patch.dict(os.environ, {"HOME": str(self.home)}):
            del os.environ["LENGTHWISE_CONFIG"]
            with lengthwise.Client() as client:
                experiment = client.submit(service.specification("secret"))
                self.assertEqual([event.new for event in experiment.cancel().watch()], ["CANCELLED"] * 4)
            with lengthwise.Client(token_file="") as client:
                self.assertEqual(len(client.experiments()), 1)  # empty means unset: the file's value applies
        # The certificate names neither host of the list.
        with lengthwise.Client(
            f"127.0.0.2:{address.rpartition(':')[2]},{address}", token_file=token, tls_ca=certificate,
            tls_server_name="house.example",
        ) as client:  # fmt: skip
            self.assertEqual(len(client.experiments()), 1)
        with lengthwise.Client(address, tls_ca=certificate, tls_server_name="house.example") as stranger:
            with self.assertRaisesRegex(lengthwise.LengthwiseError, "token") as caught:
                stranger.experiments()
        self.assertEqual(caught.exception.code.name, "UNAUTHENTICATED")


class RefusingServer(grpc.GenericRpcHandler):
    """Rejects the first calls, then answers with as many messages as the call had attempts."""

    def __init__(self, refusals, retry_delay, after_first_answer=False):
        self.attempts = 0
        self._refusals, self._after_first_answer = refusals, after_first_answer
        detail = rpc_details_pb2.RetryInfo()
        detail.retry_delay.nanos = int(retry_delay * 1e9)
        details = rpc_details_pb2.Status()
        if retry_delay > 0:
            details.details.add(type_url="type.googleapis.com/google.rpc.RetryInfo", value=detail.SerializeToString())
        self._details = details.SerializeToString()
        self._server = grpc.server(futures.ThreadPoolExecutor(2))
        self._server.add_generic_rpc_handlers((self,))
        port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()
        self.connection = Connection(Settings(server=f"127.0.0.1:{port}"), timeout=service.DEADLINE)

    def close(self):
        self.connection.close()
        self._server.stop(None).wait()

    def _refuse(self, context):
        context.set_trailing_metadata((("grpc-status-details-bin", self._details),))
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many calls")

    def _answer(self, request, context):
        self.attempts += 1
        if self.attempts <= self._refusals:
            self._refuse(context)
        return experiment_service_pb2.Trial(index=self.attempts)

    def _answers(self, request, context):
        self.attempts += 1
        refused = self.attempts <= self._refusals
        if refused and not self._after_first_answer:
            self._refuse(context)
        yield experiment_service_pb2.Trial(index=self.attempts)
        if refused:
            self._refuse(context)

    def service(self, handler_call_details):
        convert = {"response_serializer": experiment_service_pb2.Trial.SerializeToString}
        kind = handler_call_details.method.removeprefix("/lengthwise.v1.ExperimentService/")
        if kind in ("GetTrial", "CreateExperiment"):
            return grpc.unary_unary_rpc_method_handler(self._answer, **convert)
        assert kind == "DownloadModel", kind
        return grpc.unary_stream_rpc_method_handler(self._answers, **convert)


class RetryTest(unittest.TestCase):
    Streamed = experiment_service_pb2.DownloadModelRequest
    Trial = experiment_service_pb2.Trial

    def serve(self, *arguments, **keywords):
        server = RefusingServer(*arguments, **keywords)
        self.addCleanup(server.close)
        return server

    def calls(self, connection):
        """Makes each kind of call; returns the index of its first answer."""
        return {
            "call": lambda: connection.call(experiment_service_pb2.GetTrialRequest(), self.Trial).index,
            "stream": lambda: next(connection.stream(self.Streamed(), self.Trial)).index,
        }

    def test_retries_after_the_servers_delay(self):
        for kind in ("call", "stream"):
            server = self.serve(refusals=2, retry_delay=0.01)
            self.assertEqual(self.calls(server.connection)[kind](), 3, kind)

    def test_does_not_repeat_a_call_without_a_delay(self):
        for kind in ("call", "stream"):
            server = self.serve(refusals=1, retry_delay=0)
            with self.assertRaisesRegex(lengthwise.LengthwiseError, "too many calls"):
                self.calls(server.connection)[kind]()
            self.assertEqual(server.attempts, 1, kind)

    def test_error_of_a_submission_by_the_program_keeps_its_code(self):
        server = self.serve(refusals=1, retry_delay=0)
        with lengthwise.Client(server.connection.settings.server) as client:
            with mock.patch.object(client, "_create", return_value=None):  # as if it named files
                with self.assertRaisesRegex(lengthwise.LengthwiseError, "^too many calls$") as caught:
                    client.submit(service.specification("refused"))
        self.assertEqual((caught.exception.code.name, server.attempts), ("RESOURCE_EXHAUSTED", 1))

    def test_gives_up_on_a_long_delay(self):
        with mock.patch("lengthwise.connection._PATIENCE_SECONDS", 0.0):
            for kind in ("call", "stream"):
                server = self.serve(refusals=1, retry_delay=0.5)
                with self.assertRaisesRegex(lengthwise.LengthwiseError, "too many calls"):
                    self.calls(server.connection)[kind]()
                self.assertEqual(server.attempts, 1, kind)

    def test_does_not_retry_an_answered_stream(self):
        server = self.serve(refusals=1, retry_delay=0.01, after_first_answer=True)
        answers = server.connection.stream(self.Streamed(), self.Trial)
        self.assertEqual(next(answers).index, 1)
        with self.assertRaisesRegex(lengthwise.LengthwiseError, "too many calls"):
            next(answers)
        self.assertEqual(server.attempts, 1)


class RawAnswerTest(unittest.TestCase):
    """Of the pinned grpcio: earlier ones receive a whole message before they look at its size."""

    def failure(self, *arguments, **keywords):
        server = RawServer(*arguments, **keywords)
        with lengthwise.Client(server.address) as client, self.assertRaises(lengthwise.LengthwiseError) as caught:
            client.experiments()
        server.close()
        return caught.exception

    def test_proxys_page_is_an_unreachable_server(self):
        for page in (
            {},
            {"fields": [GRPC]},
            {"fields": [("content-type", "text/html")], "data": b"<p>healthy"},
            {"fields": [GRPC], "data": bytes(5)},
        ):
            failure = self.failure(**page)
            self.assertIsInstance(failure, lengthwise.errors.UnreachableError)
            self.assertIn("is no Lengthwise server, but perhaps a proxy", str(failure))

    def test_unknown_status_has_a_message(self):
        for status in ("17", "99"):
            self.assertIn("ended the call with UNKNOWN", str(self.failure([GRPC, ("grpc-status", status)])))

    def test_announced_message_is_not_awaited(self):
        announced = struct.pack(">BI", 0, (64 << 20) + 1)
        failure = self.failure([GRPC], announced, ends=False)
        self.assertEqual(failure.code, grpc.StatusCode.RESOURCE_EXHAUSTED)

    def test_compressed_message_is_not_unpacked(self):
        fields = [GRPC, ("grpc-encoding", "gzip")]
        self.assertIn("'gzip' is disabled", str(self.failure(fields, struct.pack(">BI", 1, 1) + b"x")))


class PackageTest(unittest.TestCase):
    def test_is_typed(self):
        self.assertTrue((service.SITE / "lengthwise" / "py.typed").exists())
        checked = subprocess.run(
            [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(service.SHARED / "mypy"),
             "--config-file", os.devnull, "-p", "lengthwise"],
            cwd=service.SITE, capture_output=True, text=True, check=False,
        )  # fmt: skip
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    def test_imports_make_no_circle(self):
        """Those for types count, too, but for that of a page, which its parts name."""
        package = service.SITE / "lengthwise"
        files = {
            ".".join(path.relative_to(service.SITE).with_suffix("").parts).removesuffix(".__init__"): path
            for path in package.rglob("*.py")
            if "_pb2" not in path.name
        }
        imports = {name: set() for name in files}
        for name, path in files.items():
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom):
                    imported = {f"{node.module}.{one.name}" for one in node.names}
                    imports[name] |= {one if one in files else node.module for one in imported} & files.keys() - {name}
        imports["lengthwise.web.views"].remove("lengthwise.web.pages")
        self.assertIn("lengthwise.analyses", imports["lengthwise.experiment"])
        try:
            graphlib.TopologicalSorter(imports).prepare()
        except graphlib.CycleError as error:
            self.fail(" <- ".join(error.args[1]))

    def test_has_the_version_of_the_programs(self):
        done = subprocess.run([service.CLIENT, "--version"], capture_output=True, text=True, check=True)
        self.assertEqual(re.match(r"lengthwise (\S+)", done.stdout)[1], lengthwise.__version__)
        project = (pathlib.Path("python") / "pyproject.toml").read_text()
        self.assertIn(f'\nversion = "{lengthwise.__version__}"\n', project)

    def test_lives_with_the_modules_of_others(self):
        # Another package's google.rpc messages, in the same process.
        done = subprocess.run(
            [sys.executable, "-c",
             "import lengthwise\n"
             "from google.protobuf import descriptor_pb2, descriptor_pool\n"
             "file = descriptor_pb2.FileDescriptorProto(name='google/rpc/status.proto', package='google.rpc')\n"
             "file.message_type.add(name='Status')\n"
             "descriptor_pool.Default().Add(file)\n"
             "print(descriptor_pool.Default().FindMessageTypeByName('google.rpc.Status').full_name)\n"],
            env={**service.ENVIRONMENT, "PYTHONPATH": str(service.SITE)}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        self.assertEqual(done.stdout, "google.rpc.Status\n", done.stderr)


if __name__ == "__main__":
    unittest.main()
