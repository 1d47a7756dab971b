"""Reads the output of `lengthwise export` with the packages that people open it with."""
import csv
import hashlib
import io
import json
import re
import subprocess
import unittest

import service
import warm
from service import Numbers

import numpy
import pandas
import safetensors
from lengthwise import exports
from lengthwise.commands import DEFINITIONS

ENCODINGS = ["none", "none", "sin_cos", "sin_cos"]


class ExportTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = service.Server()
        cls.environment = warm.environment(cls)
        cls.client = service.lengthwise.Client(cls.server.address)
        cls.experiment = cls.client.submit(service.specification("sort"))
        worker = service.Worker(cls.server)
        assert worker.run_all() == 4
        cls.trials = [trial.id for trial in cls.experiment.trials()]
        # An experiment without stored results.
        cls.unfinished = cls.client.submit(service.specification("waiting"))

    @classmethod
    def tearDownClass(cls):
        cls.server.kill()

    def run_client(self, *arguments):
        return subprocess.run(
            [service.CLIENT, *arguments, "--server", self.server.address],
            capture_output=True, text=True, env=self.environment, check=False,
        )  # fmt: skip

    def export(self, name, form, suffix=""):
        path = service.new_directory() / f"export{suffix}"
        done = self.run_client("export", name, "--format", form, "-o", str(path))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, f"{path}\n")
        return path

    def test_tensorboard_reads_back_every_scalar(self):
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        logs = self.export("sort", "tensorboard")
        self.assertEqual(
            sorted(path.name for path in logs.iterdir()), sorted([*self.trials, "export.json"])
        )
        for index, trial in enumerate(self.trials):
            numbers = Numbers(index)
            run = EventAccumulator(str(logs / trial), size_guidance={"scalars": 0})
            run.Reload()
            read = {tag: [(one.step, one.value) for one in run.Scalars(tag)] for tag in run.Tags()["scalars"]}
            f4 = numpy.float32

            def mean(lengths, step):
                return f4(numpy.mean([numbers.accuracy(length, step) for length in lengths]))

            self.assertEqual(
                read,
                {
                    "training/loss": [(step, numbers.loss(step)) for step in numbers.STEPS],
                    # As in histories of earlier releases, which know the losses of single batches alone.
                    "training/mean_loss": [(step, numbers.loss(step)) for step in numbers.STEPS],
                    "training/accuracy": [(step, 0.5) for step in numbers.STEPS],
                    "training/gradient_norm": [(step, 1.5) for step in numbers.STEPS],
                    "evaluation/seen_accuracy": [(100, mean([2], 100))],
                    "evaluation/unseen_accuracy": [(100, mean([6], 100))],
                    "evaluation/accuracy_at_length/0002": [(100, f4(numbers.accuracy(2, 100)))],
                    "evaluation/accuracy_at_length/0006": [(100, f4(numbers.accuracy(6, 100)))],
                    "final/seen_accuracy": [(200, mean([2, 4], 200))],
                    "final/unseen_accuracy": [(200, mean([6, 8], 200))],
                    "final/accuracy_by_length": [(length, f4(numbers.accuracy(length))) for length in numbers.LENGTHS],
                    "final/loss_by_length": [(length, 0.25) for length in numbers.LENGTHS],
                    "evaluation/digits_accuracy_at_length/0002": [(100, f4(numbers.digits_accuracy(2, 100)))],
                    "evaluation/digits_accuracy_at_length/0006": [(100, f4(numbers.digits_accuracy(6, 100)))],
                    "final/digits_accuracy_by_length": [
                        (length, f4(numbers.digits_accuracy(length))) for length in numbers.LENGTHS
                    ],
                },
            )
            # The time at which the worker sent it.
            self.assertEqual(run.Scalars("training/loss")[0].wall_time, 1_700_000_002)

    def test_tensorboard_knows_the_hyper_parameters(self):
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        from tensorboard.plugins.hparams import metadata

        logs = self.export("sort", "tensorboard")
        for index, trial in enumerate(self.trials):
            run = EventAccumulator(str(logs / trial))
            run.Reload()
            contents = run.PluginTagToContent("hparams")
            start = metadata.parse_session_start_info_plugin_data(contents[metadata.SESSION_START_INFO_TAG])
            self.assertEqual(start.hparams["encoding"].string_value, ENCODINGS[index])
            self.assertEqual(start.hparams["weight_seed"].number_value, index % 2)
            self.assertEqual(start.hparams["learning_rate"].number_value, 0.001)
            end = metadata.parse_session_end_info_plugin_data(contents[metadata.SESSION_END_INFO_TAG])
            self.assertEqual(end.status, 1)  # STATUS_SUCCESS

    def test_tensorboard_accepts_every_checksum(self):
        from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import PyRecordReader_New

        path = next((self.export("sort", "tensorboard") / self.trials[0]).iterdir())
        reader = PyRecordReader_New(str(path))
        records = 0
        while True:
            try:
                reader.GetNext()  # raises DataLossError for a wrong checksum
            except Exception as error:
                self.assertEqual(type(error).__name__, "OutOfRangeError", error)
                break
            records += 1
        self.assertGreater(records, 20)

    def test_safetensors_opens_the_weights(self):
        models = self.export("sort", "safetensors")
        for index, trial in enumerate(self.trials):
            with safetensors.safe_open(models / f"{trial}.safetensors", framework="numpy") as file:
                weights = {name: file.get_tensor(name) for name in file.keys()}
            expected = Numbers(index).weights()
            self.assertEqual(set(weights), {f"parameters/{name}" for name in expected})
            for name, value in expected.items():
                numpy.testing.assert_array_equal(weights[f"parameters/{name}"], value)
                self.assertEqual(weights[f"parameters/{name}"].dtype, value.dtype)
        one = self.export("sort/1", "safetensors", ".safetensors")
        self.assertEqual(one.read_bytes(), Numbers(1).model())

    def test_numpy_opens_the_arrays(self):
        arrays = self.export("sort", "npz")
        for index, trial in enumerate(self.trials):
            numbers = Numbers(index)
            with numpy.load(arrays / f"{trial}.npz", allow_pickle=False) as npz:
                read = dict(npz)
            expected = {
                "loss_steps": numpy.array(numbers.STEPS, "<i8"),
                "losses": numpy.array([numbers.loss(step) for step in numbers.STEPS], "<f4"),
                "mean_losses": numpy.array([numbers.loss(step) for step in numbers.STEPS], "<f4"),
                "training_accuracies": numpy.full(4, 0.5, "<f4"),
                "gradient_norms": numpy.full(4, 1.5, "<f4"),
                "training_lengths": numpy.array([1, 2, 3, 4], "<i8"),
                "final_lengths": numpy.array(numbers.LENGTHS, "<i8"),
                "final_accuracies": numpy.array([numbers.accuracy(length) for length in numbers.LENGTHS]),
                "final_losses": numpy.full(4, 0.25),
                "final_digits_accuracy": numpy.array([numbers.digits_accuracy(length) for length in numbers.LENGTHS]),
                "training_set_accuracy": numpy.array([0.875]),
                "interval_steps": numpy.array([100]),
                "interval_lengths": numpy.array(numbers.INTERVAL_LENGTHS),
                "interval_accuracies": numpy.array([[numbers.accuracy(length, 100) for length in (2, 6)]]),
                "interval_digits_accuracy": numpy.array([[numbers.digits_accuracy(length, 100) for length in (2, 6)]]),
                "sequence_accuracies_6": numpy.array([1, 0.5], "<f4"),
                "sequence_losses_6": numpy.array([0.25, 2], "<f4"),
                "wrong_answers_6": numpy.array([1], "<i8"),
                "wrong_answer_carries_6": numpy.array([1], "<i8"),
                "wrong_places_6": numpy.array([[1, 0], [1, 3]], "<i8"),
                "noise_deviations": numpy.array([0.1]),
                "noise_accuracies": numpy.array([0.75]),
                "noise_losses": numpy.array([0.5]),
                "attention_length_3": numbers.attention(),
                "attention_length_3_tokens": numpy.array([4, 2, 3, 5, 5, 5]),
                "attention_length_3_positions": numpy.arange(6),
                "projection_length_4": numbers.projection(),
                "projection_length_4_explained_variance": numpy.array([[0.5, 0.25], [0.75, 0.125]]),
            }
            self.assertEqual(set(read), set(expected))
            for name, value in expected.items():
                numpy.testing.assert_array_equal(read[name], value, err_msg=name)
                self.assertEqual((read[name].dtype, read[name].shape), (value.dtype, value.shape), name)

    def test_pandas_and_csv_read_the_tables(self):
        tables = self.export("sort", "csv")
        losses = pandas.read_csv(tables / "loss_curves.csv")
        self.assertEqual(len(losses), 16)
        accuracies = pandas.read_csv(tables / "length_accuracies.csv")
        self.assertEqual(len(accuracies), 4 * (4 + 2))
        trials = pandas.read_csv(tables / "trials.csv")
        self.assertEqual(list(trials["trial"]), [f"{self.experiment.name}/trials/{trial}" for trial in self.trials])
        self.assertEqual(list(trials["state"]), ["SUCCEEDED"] * 4)
        for index in range(4):
            numbers = Numbers(index)
            of_trial = losses[losses["trial"] == trials["trial"][index]]
            numpy.testing.assert_array_equal(
                of_trial["loss"].astype("float32"), [numpy.float32(numbers.loss(step)) for step in numbers.STEPS]
            )
            final = accuracies[(accuracies["trial"] == trials["trial"][index]) & accuracies["final"]]
            self.assertEqual(list(final["length"]), numbers.LENGTHS)
            self.assertEqual(list(final["accuracy"]), [numbers.accuracy(length) for length in numbers.LENGTHS])
            self.assertEqual(list(final["seen"]), [True, True, False, False])
            self.assertEqual(
                list(final["digits_accuracy"]), [numbers.digits_accuracy(length) for length in numbers.LENGTHS]
            )
            self.assertAlmostEqual(
                trials["unseen_accuracy"][index], (numbers.accuracy(6) + numbers.accuracy(8)) / 2
            )
        self.assertEqual(list(trials["training_accuracy"]), [0.875] * 4)
        noise = pandas.read_csv(tables / "noise_accuracies.csv")
        self.assertEqual(list(noise["trial"]), list(trials["trial"]))
        for column, value in (("deviation", 0.1), ("accuracy", 0.75), ("loss", 0.5)):
            self.assertEqual(list(noise[column]), [value] * 4)
        # Also with the standard library's strict reader; every column is explained.
        columns = json.loads((tables / "columns.json").read_text())
        for name, meanings in columns.items():
            rows = list(csv.reader(io.StringIO((tables / name).read_text()), strict=True))
            self.assertEqual(rows[0], list(meanings))
            self.assertEqual({len(row) for row in rows}, {len(meanings)})

    def test_notebook_exports_what_the_command_does(self):
        def content(path):
            if path.is_file():
                return path.read_bytes()
            return {one.relative_to(path): one.read_bytes() for one in path.rglob("*") if one.is_file()}

        directory = service.new_directory()
        for form in exports.FORMATS:
            here = self.experiment.export(form, directory / form)
            self.assertEqual(here, directory / form)
            self.assertEqual(content(here), content(self.export("sort", form)), form)
        trial = self.experiment.trials()[1]
        self.assertEqual(trial.export("safetensors", directory / "one").read_bytes(), Numbers(1).model())
        with self.assertRaisesRegex(service.lengthwise.LengthwiseError, "is there already"):
            self.experiment.export("csv", directory / "csv")
        self.experiment.export("csv", directory / "csv", force=True)
        with self.assertRaisesRegex(service.lengthwise.NotFoundError, "has no measurements yet"):
            self.unfinished.export("npz", directory / "nothing")

    def test_every_number_of_a_site_is_of_its_own_tables(self):
        site = service.new_directory() / "site"
        done = self.run_client("publish", "sort", "-o", str(site))
        self.assertEqual((done.returncode, done.stdout), (0, f"{site}\n"), done.stderr)
        accuracies = pandas.read_csv(site / "length_accuracies.csv")
        finals = accuracies[accuracies["final"]]
        means = 100 * finals.groupby(["trial", "seen"])["accuracy"].mean().unstack()
        page = (site / "index.html").read_text()

        def table(name):
            body = re.search(f'<table id="{name}">(.*?)</table>', page, re.S)[1]
            first, *rows = (re.findall("<t[hd]>(.*?)</t[hd]>", row) for row in re.findall("<tr>(.*?)</tr>", body, re.S))
            return pandas.DataFrame(rows, columns=first)

        results, trials = table("results"), table("trials")
        self.assertEqual(list(trials["trial"]), self.trials)
        for name, row in trials.set_index("trial").iterrows():
            seen, unseen = (means.at[f"{self.experiment.name}/trials/{name}", side] for side in (True, False))
            self.assertEqual((row["seen"], row["unseen"]), (f"{seen:.1f}", f"{unseen:.1f}"))
        steps = pandas.read_csv(site / "trials.csv").set_index("trial")["steps"]
        for name, row in trials.set_index("trial").iterrows():
            self.assertEqual(row["steps"], str(steps[f"{self.experiment.name}/trials/{name}"]))
        of_encoding = finals.drop_duplicates("trial").set_index("trial")["encoding"]
        for _, row in results.iterrows():
            own = means[of_encoding == row["encoding"]]
            self.assertEqual(row["trials"], str(len(own)))
            for side, is_seen in (("seen", True), ("unseen", False)):
                expected = f"{own[is_seen].mean():.1f} ± {own[is_seen].std():.1f}"
                self.assertEqual(row[side], expected)
        # The figure's lines are means over the seeds of the chosen rate, of which there is one.
        drawn = pandas.read_csv(site / "figures/accuracy_by_length.csv")
        by_length = finals.groupby(["encoding", "length"])["accuracy"].mean()
        self.assertEqual(len(drawn), len(by_length))
        numpy.testing.assert_allclose(sorted(drawn["y"]), sorted(by_length), rtol=1e-6)
        losses = pandas.read_csv(site / "loss_curves.csv").groupby(["encoding", "step"])["mean_loss"].mean()
        numpy.testing.assert_allclose(
            sorted(pandas.read_csv(site / "figures/loss.csv")["y"]), sorted(losses), rtol=1e-6
        )
        sums = dict(line.split("  ")[::-1] for line in (site / "SHA256SUMS").read_text().splitlines())
        written = {str(one.relative_to(site)) for one in site.rglob("*") if one.is_file()}
        self.assertEqual({*sums} | {"SHA256SUMS", "export.json"}, written)
        for name, digest in sums.items():
            self.assertEqual(hashlib.sha256((site / name).read_bytes()).hexdigest(), digest, name)
        self.assertIn("<p class=\"soft\">Random guess: 20 %.</p>", page)
        self.assertEqual((site / f"models/{self.trials[1]}.safetensors").read_bytes(), Numbers(1).model())
        self.assertIn("SUCCEEDED", (site / f"logs/{self.trials[0]}.txt").read_text())

    def test_site_names_the_rule_of_its_choices(self):
        for options, lengths in (((), "seen"), (("--select", "seen"), "seen"), (("--select", "unseen"), "not seen")):
            site = service.new_directory() / "site"
            self.assertEqual(self.run_client("publish", "sort", "-o", str(site), *options).returncode, 0)
            rule = f"the highest mean accuracy on lengths {lengths} in training."
            self.assertIn(f"learning rates and best seeds by {rule}", (site / "index.html").read_text())
            self.assertIn(f"the trial with {rule}", (site / "report.html").read_text())

    def test_site_is_of_a_whole_experiment(self):
        done = self.run_client("publish", "sort/0", "-o", str(service.new_directory() / "site"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("a site is about a whole experiment", done.stderr)

    def test_help_names_every_format(self):
        text = " ".join(self.run_client("export", "--help").stdout.split())
        formats = DEFINITIONS["export"]["formats"]
        self.assertEqual(list(formats), list(exports.FORMATS))
        described = "; ".join(f"{name}: {description}" for name, description in formats.items())
        self.assertIn(described, text)

    def test_json_matches_the_python_client(self):
        document = json.loads(self.export("sort", "json", ".json").read_text())
        self.assertEqual(document["specification"], self.experiment.specification)
        table = self.experiment.accuracies(intervals=True)
        for exported, trial in zip(document["trials"], self.experiment.trials(), strict=True):
            self.assertEqual(exported["specification"], trial.specification)
            self.assertEqual(exported["unseen_accuracy"], trial.unseen_accuracy)
            self.assertEqual(exported["training_accuracy"], 0.875)
            noise = exported["noise_accuracies"]
            self.assertEqual(dict(zip(noise["deviations"], noise["accuracies"])), trial.noise_accuracies())
            self.assertEqual(noise["losses"], [0.5])
            final = table[(table["trial"] == trial.name) & table["final"]]
            self.assertEqual(exported["evaluations"][1]["accuracies"], list(final["accuracy"]))
            self.assertEqual(exported["evaluations"][1]["metrics"]["digits_accuracy"], list(final["digits_accuracy"]))

    def test_latex_has_the_encodings_and_their_accuracies(self):
        text = self.export("sort", "latex", ".tex").read_text()
        self.assertEqual(text.count("\\begin{tabular}"), text.count("\\end{tabular}"))
        self.assertIn("Random guess: 20 \\%.", text)
        self.assertIn("sin\\_cos", text)
        numbers = [Numbers(2).accuracy(8), Numbers(3).accuracy(8)]
        self.assertIn(f"{100 * sum(numbers) / 2:.1f}", text)

    def test_errors_are_one_line_with_advice(self):
        directory = service.new_directory()
        there = directory / "there.json"
        there.write_text("mine")
        notes = directory / "notes.txt"
        notes.write_text("mine")
        for arguments, code, words in (
            (["sort", "--format", "json", "-o", str(there)], 1, "--force"),
            (["sort", "--format", "json", "-o", str(notes), "--force"], 1, "does not end in .json; delete it first, or choose"),
            (["sort", "--format", "json", "-o", str(directory / "none" / "x.json")], 1, "make its directory, or name"),
            (["sort", "--format", "csv", "-o", "/proc/export"], 1, "or name another file"),
            (["nothing", "--format", "csv"], 1, "nothing"),
            (["sort", "--format", "csv", "-o", str(directory / "x.csv")], 2, "x.csv\" names one file"),
            (["sort", "--format", "csv", "-o", "-"], 2, '--out is "-"; an export is a file or a directory: name one'),
            (["sort", "--format", "parquet"], 2, "--format"),
            (["sort"], 2, "--format is missing"),
            (["waiting", "--format", "safetensors", "-o", str(directory / "x")], 1, "has stored no checkpoint yet"),
            (["sort/0", "--format", "latex", "-o", str(directory / "x")], 2, "export sort-1"),
        ):
            done = self.run_client("export", *arguments)
            self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(words, done.stderr)
        self.assertEqual(sorted(path.name for path in directory.iterdir()), ["notes.txt", "there.json"])
        self.assertEqual((there.read_text(), notes.read_text()), ("mine", "mine"))

    def test_full_disk_is_reported_and_leaves_nothing(self):
        directory = service.new_directory()
        mounted = subprocess.run(
            ["unshare", "--mount", "--map-root-user", "sh", "-c",
             f'mount -t tmpfs -o size=4k none {directory} && {service.CLIENT} export sort --format csv '
             f'-o {directory}/tables --server {self.server.address}; echo "status $?"; ls -A {directory}'],
            capture_output=True, text=True, env=service.ENVIRONMENT, check=False,
        )  # fmt: skip
        if "status" not in mounted.stdout or "mount:" in mounted.stderr or "unshare:" in mounted.stderr:
            self.skipTest(f"no small file system can be mounted here: {mounted.stderr.strip()}")
        self.assertIn("No space left on device; free some space\n", mounted.stderr)
        self.assertEqual(mounted.stdout, "status 1\n")


if __name__ == "__main__":
    unittest.main()
