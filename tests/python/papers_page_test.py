"""The commands of docs/papers.md, on their experiments with few trials of made-up measurements: training takes too long."""
import hashlib
import io
import json
import os
import re
import shlex
import unittest
import zlib

import numpy
import safetensors.numpy
import service
from comparison_fixture import SPECIFICATIONS
from google.protobuf import json_format
from lengthwise import command_line, protocol, published
from lengthwise._proto import event_pb2
from lengthwise.analyses import human_comparison
from lengthwise.connection import Connection, Settings
from lengthwise.plots import FIGURES

# The puzzle that all maps are of, and puzzles for a file of people's answers.
PUZZLE = [1, 2, 3, 4, 3, 4, 1, 2, 2, 1, 4, 3, 4, 3, 2, 0]
COMMANDS = re.findall(r"`lengthwise ([a-z]+ [^`]+)`", (service.ROOT / "docs" / "papers.md").read_text())


def full_specifications():
    """Paths by the experiment's name."""
    files = [path for path in SPECIFICATIONS.glob("**/*.yaml") if path.parent.name != "quick"]
    return {re.search(r"^name: (\S+)", path.read_text(), re.M)[1]: path for path in files}


class PaperWorker(service.Worker):
    """Records what the trial's specification asks for, with numbers that differ from trial to trial."""

    def train(self, lease, leased):
        specification = leased.specification
        random = numpy.random.default_rng(zlib.crc32(leased.trial.encode()))
        steps = specification.training.steps
        tables = {f"parameters/blocks.{block}.encoding.table": random.random((16, 8), numpy.float32) for block in range(2)}
        model = safetensors.numpy.save(tables)
        checkpoint = event_pb2.Checkpoint(sha256=hashlib.sha256(model).hexdigest(), size_bytes=len(model))
        self._upload(lease, leased, model, checkpoint, steps)
        events = [
            event_pb2.Event(
                step=steps,
                training_points=event_pb2.TrainingPoints(
                    steps=[steps // 2, steps], losses=random.random(2), accuracies=random.random(2),
                    gradient_norms=[1, 1], lengths=[1, 1],
                ),
            )
        ]  # fmt: skip
        evaluation = specification.evaluation
        if evaluation.every_steps:
            for step in (steps // 4, steps // 2):
                measured = self.measured(random, evaluation.interval_lengths, seconds=step)
                events.append(event_pb2.Event(step=step, length_accuracies=measured))
        final = self.measured(random, evaluation.lengths, seconds=steps)
        final.final = True
        final.training_accuracy = random.random()
        facts = [event_pb2.Event(checkpoint=checkpoint), event_pb2.Event(length_accuracies=final)]
        puzzles = specification.task.name == "latin_square"
        for length in evaluation.lengths:
            if specification.task.name == "decimal_addition":
                facts.append(event_pb2.Event(answer_errors=self.errors(random, length)))
            if evaluation.sequence_scores:
                count = 36 if puzzles else 8
                scores = event_pb2.SequenceScores(length=length, accuracies=random.random(count), losses=[1] * count)
                scores.wrong_answers.add(sequence=1, places=[1], carry_into_first=True)
                facts.append(event_pb2.Event(sequence_scores=scores))
        if evaluation.embedding_noise:
            noise = event_pb2.NoiseAccuracies(deviations=evaluation.embedding_noise)
            noise.accuracies.extend(random.random(len(noise.deviations)))
            noise.losses.extend(random.random(len(noise.deviations)))
            facts.append(event_pb2.Event(noise_accuracies=noise))
        for length in evaluation.attention_lengths:
            tokens = PUZZLE if puzzles else [1] * (2 * length)
            facts.append(event_pb2.Event(attention_map=self.map(random, length, tokens)))
        for number, given in enumerate(evaluation.attention_inputs, 1):
            one = self.map(random, len(given.numbers), [1] * len(given.numbers))
            one.input_number = number
            facts.append(event_pb2.Event(attention_map=one))
        for length in evaluation.projection.lengths:
            coordinates = random.random((2, 3, length, 2), numpy.float32)
            facts.append(
                event_pb2.Event(
                    projection=event_pb2.Projection(
                        fitted_length=evaluation.projection.fitted_length, length=length, sequences=3, tokens=length,
                        depths=2, coordinates=coordinates.tobytes(), explained_variance=[0.5, 0.25] * 2,
                    )
                )
            )  # fmt: skip
        for fact in facts:
            fact.step = steps
        self._send(lease, leased, 1, [*events, *facts])
        self.sent = len(events) + len(facts)

    def finish(self, lease, leased):
        outcome = event_pb2.Outcome(
            kind="COMPLETED", training_seconds=100, evaluation_seconds=1, training_steps=leased.specification.training.steps
        )
        self._send(lease, leased, self.sent + 1, [event_pb2.Event(step=outcome.training_steps, outcome=outcome)])

    @staticmethod
    def measured(random, lengths, seconds):
        measured = event_pb2.LengthAccuracies(
            lengths=lengths, accuracies=random.random(len(lengths)), losses=random.random(len(lengths)), sequences=8,
            training_seconds=seconds,
        )  # fmt: skip
        for name in ("rounding_accuracy", "mean_absolute_percentage_error"):
            measured.metrics.add(name=name, values=random.random(len(lengths)))
        return measured

    @staticmethod
    def map(random, length, tokens):
        probabilities = random.random((2, 2, len(tokens), len(tokens)), numpy.float32)
        probabilities /= probabilities.sum(axis=3, keepdims=True)
        return event_pb2.AttentionMap(
            length=length, tokens=tokens, positions=range(len(tokens)), layers=2, heads=2,
            probabilities=probabilities.tobytes(),
        )  # fmt: skip

    @staticmethod
    def errors(random, length):
        return event_pb2.AnswerErrors(
            length=length, answers=100, wrong_by_place=random.integers(1, 4, length + 1),
            answers_by_wrong_digits=[90, 10], first_wrong_with_carry=6, first_wrong_without_carry=4,
        )  # fmt: skip


class PapersPageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Analyses make the puzzles with it.
        cls.server = service.Server()
        cls.connection = Connection(Settings(server=cls.server.address), timeout=60)
        cls.client = service.lengthwise.Client(cls.server.address)
        cls.files = full_specifications()

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.connection.close()
        cls.server.kill()

    @classmethod
    def submit(cls, name, wanted):
        """Two of everything, and what commands choose by name."""
        resolved = protocol.resolve(cls.connection, cls.files[name].read_text())
        if not resolved.network_overrides:
            for axis in ("tasks", "networks", "encodings"):
                components = getattr(resolved, axis)
                kept = [one for i, one in enumerate(components) if i < 2 or {one.name, one.label} & wanted]
                del components[:]
                components.extend(kept)
        for axis in ("learning_rates", "seeds", "weight_seeds", "data_seeds"):
            del getattr(resolved, axis)[2:]
        specification = json.loads(json_format.MessageToJson(resolved, preserving_proto_field_name=True))
        cls.client.submit({**specification, "name": name})

    def test_commands_name_what_exists(self):
        self.assertGreater(len(COMMANDS), 70)
        for name, *words in map(shlex.split, COMMANDS):
            with self.subTest(command=" ".join([name, *words])):
                if name == "validate":
                    self.assertIn(service.ROOT / words[0], self.files.values())
                    continue
                if name == "results" and "--compare" not in words:
                    self.assertLessEqual(set(words), {*self.files, "NAME"})
                    continue
                given = vars(command_line.parser_of(name).parse_args(words))
                named = {given["experiment"]} if name == "results" else set(given["experiments"])
                self.assertLessEqual(named, {*self.files, "NAME"})
                if name == "plot":
                    self.assertIn(given["figure"], FIGURES)
                if given.get("compare"):
                    published.find(given["compare"])

    def test_commands_make_their_figures_and_tables(self):
        run = [words for words in map(shlex.split, COMMANDS) if words[0] in ("plot", "analyze", "results")]
        run = [words for words in run if (words[0] != "results" or "--compare" in words) and "NAME" not in words]
        wanted = {word for words in run for word in words}
        for name in sorted(self.files.keys() & wanted):
            self.submit(name, wanted)
        PaperWorker(self.server).run_all()
        directory = service.new_directory()
        self.write_people(directory / "people.json")
        for words in run:
            with self.subTest(command=" ".join(words)):
                given = [str(directory / word) if word == "people.json" else word for word in words]
                given += ["-o", str(directory / "figure.svg")] if words[0] == "plot" else []
                out, err = io.StringIO(), io.StringIO()
                code = command_line.main([*given, "--server", self.server.address], out, err)
                self.assertEqual((code, err.getvalue()), (0, ""))

    def write_people(self, path):
        """Answers to the validation puzzles, which a reader of the page has from the paper's authors."""
        trial = self.client.experiment("latin_square_analyses-1").trial(0)
        puzzles = human_comparison.validation_puzzles(trial._message).values()
        answers = [{"puzzle": one, "human_accuracy": i % 5 / 4} for some in puzzles for i, one in enumerate(some)]
        path.write_text(json.dumps({"puzzles": answers}))


if __name__ == "__main__":
    unittest.main()
