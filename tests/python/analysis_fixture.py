"""Runs `lengthwise analyze` on trials with given maps, models and scores, for tests of the analyses."""
import io
import json
import unittest

import numpy
from fake_server import FakeServer
from lengthwise import command_line
from lengthwise._proto import catalogue_service_pb2, event_pb2, experiment_service_pb2
from lengthwise.analyses import Analyses
from lengthwise.plots import data

EXPERIMENT = "e-1"
FAILURE, USAGE = command_line.FAILURE, command_line.USAGE


def puzzle_parameters(specification):
    for name, value in {"training_puzzles": 12, "held_out_puzzles": 0, "validation_puzzles": 9}.items():
        specification.task.parameters[name].number_value = value


def encoding_entry(name, **defaults):
    entry = catalogue_service_pb2.CatalogueEntry(kind=catalogue_service_pb2.ENCODING, name=name)
    for parameter, value in defaults.items():
        added = entry.parameters.add(name=parameter)
        if isinstance(value, bool):
            added.default_value.bool_value = value
        else:
            added.default_value.number_value = value
    return entry


ENCODINGS = [
    encoding_entry("sin_cos", randomized=False, interleaved=False),
    encoding_entry("sin_cos_2d", columns=4),
    encoding_entry("rope"),
    encoding_entry("learned"),
]


class AnalysisTest(unittest.TestCase):
    def setUp(self):
        self.server = FakeServer()
        self.addCleanup(self.server.close)
        self.server.entries += ENCODINGS
        self.out = ""

    def add(self, trials, experiment=EXPERIMENT):
        """Adds succeeded trials, each (label, seed, options), of latin_square with nine validation puzzles."""
        self.server.add_experiment(experiment, [])
        for index, (label, seed, *more) in enumerate(trials):
            given = {"name": "learned", "accuracy": 0.5, "optimizer": "adam", "stddev": 1.0, **(more[0] if more else {})}
            trial = experiment_service_pb2.Trial(
                name=self.name(f"{label}{seed}", experiment), index=index, state=event_pb2.SUCCEEDED
            )
            specification = trial.specification
            specification.task.name = "latin_square"
            puzzle_parameters(specification)
            specification.network.name = "layerwise_encoder"
            specification.encoding.name, specification.encoding.label = given["name"], label
            specification.encoding.parameters["stddev"].number_value = given["stddev"]
            specification.training.optimizer.name = given["optimizer"]
            specification.learning_rate = given.get("rate", 1e-4)
            specification.weight_seed = specification.data_seed = seed
            self.server.trials[trial.name] = trial
            self.server.evaluations.append(
                experiment_service_pb2.QueryLengthAccuraciesResponse.Evaluation(
                    trial=trial.name,
                    accuracies=event_pb2.LengthAccuracies(final=True, lengths=[1], accuracies=[given["accuracy"]]),
                )
            )

    @staticmethod
    def name(trial, experiment=EXPERIMENT):
        return f"experiments/{experiment}/trials/latin_square-{trial}"

    def specification(self, trial):
        return self.server.trials[self.name(trial)].specification

    def add_map(self, trial, probabilities, first_token=1):
        """Adds a map of two tokens in one layer with one head; rows are queries."""
        self.add_map_to(self.name(trial), probabilities, first_token)

    def add_map_to(self, name, probabilities, first_token=1):
        """The same by the trial's full name."""
        self.server.maps.setdefault(name, []).append(
            event_pb2.AttentionMap(
                length=1, layers=1, heads=1, tokens=[first_token, 5],
                probabilities=numpy.array(probabilities, "<f4").tobytes(),
            )
        )  # fmt: skip

    def add_puzzle_map(self, trial, puzzle, length, asked, attention):
        """Adds a puzzle's map in two layers with one head. Every cell attends uniformly, except that the cell `asked`
        has the given attention in the second layer.
        """
        probabilities = numpy.full((2, 16, 16), 1 / 16, "<f4")
        probabilities[1, asked] = [attention.get(key, 0) for key in range(16)]
        self.server.maps.setdefault(self.name(trial), []).append(
            event_pb2.AttentionMap(
                length=length, layers=2, heads=1, tokens=map(int, puzzle), probabilities=probabilities.tobytes()
            )
        )

    def run_command(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        code = command_line.main(["analyze", *arguments, "--server", self.server.address], out, err)
        self.out, self.err = out.getvalue(), err.getvalue()
        return code

    def assert_refused(self, code, *arguments, saying):
        self.assertEqual(self.run_command(*arguments), code, self.err)
        self.assertIn(saying, self.err)
        self.assertEqual(self.err.count("\n"), 1)

    def rows(self, *arguments):
        """Runs the analysis and returns its rows as JSON."""
        self.assertEqual(self.run_command(*arguments, "--output", "json"), 0, self.err)
        return json.loads(self.out)

    def by_encoding(self, *arguments):
        return {row["encoding"]: row for row in self.rows(*arguments)}

    def analyses(self, *experiments):
        return Analyses(data.fetch(self.server.connection, experiments or [EXPERIMENT]))
