"""Results of tasks that are compared by loss: `lengthwise compare` and frames."""
import csv
import io
import unittest

from fake_server import FakeServer
from lengthwise import command_line
from lengthwise._proto import catalogue_service_pb2, experiment_service_pb2
from lengthwise.experiment import Experiment

Evaluation = experiment_service_pb2.QueryLengthAccuraciesResponse.Evaluation


class LossesTest(unittest.TestCase):
    def setUp(self):
        self.server = FakeServer()
        self.addCleanup(self.server.close)
        for name in ("a-1", "b-1"):
            # Lengths up to 2 are seen.
            self.server.add_experiment(name, ["none", "rope"])
            self.server.experiments[f"experiments/{name}"].specification.tasks.add(name="bucket_sort")
        self.summaries = {name: experiment_service_pb2.SummarizeExperimentResponse() for name in ("a-1", "b-1")}
        self.server._SummarizeExperiment = lambda request: self.summaries[request.name.rpartition("/")[2]]

    def compare_by_loss(self):
        for summary in self.summaries.values():
            summary.heading.compared_by_loss, summary.heading.score_title = True, "mean squared error"

    def add_cell(self, experiment, encoding, loss=None):
        """Adds a cell of two trials with the accuracy 0.25. `loss`: the median on unseen lengths."""
        cell = self.summaries[experiment].cells.add(
            task="bucket_sort", network="encoder", encoding=encoding, learning_rate=0.001, best_trial="best"
        )
        cell.trials.succeeded = 2
        cell.unseen_accuracy.trials, cell.unseen_accuracy.mean, cell.unseen_accuracy.deviation = 2, 0.25, 0.125
        if loss is not None:
            for quantiles, median in ((cell.unseen_loss, loss), (cell.seen_loss, loss / 8)):
                quantiles.trials, quantiles.median, quantiles.low, quantiles.high = 2, median, median / 2, 2 * median

    def output(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        server = ["--server", self.server.address]
        code = command_line.main([*arguments, *server], out, err)
        self.assertEqual((code, err.getvalue()), (0, ""))
        return out.getvalue()

    def test_experiments_are_compared_by_loss(self):
        self.compare_by_loss()
        for experiment, none, rope in (("a-1", 0.5, 0.25), ("b-1", 0.125, 12345)):
            self.add_cell(experiment, "none", none)
            self.add_cell(experiment, "rope", rope)
        text = self.output("compare", "a-1", "b-1")
        self.assertTrue(text.startswith("b-1 against a-1: median unseen mean squared error\n"), text)
        self.assertNotIn("%", text)
        self.assertNotIn("±", text)
        self.assertRegex(text, r"none +│ +0\.5 +2 │ +0\.125 +2 │ +−0\.375\n")
        self.assertRegex(text, r"rope +│ +0\.25 +2 │ 1\.23e\+04 +2 │ \+1\.23e\+04\n")
        row = next(csv.DictReader(io.StringIO(self.output("compare", "a-1", "b-1", "--output", "csv"))))
        self.assertEqual((row["first_unseen_loss"], row["second_unseen_loss"]), ("0.5", "0.125"))
        self.assertEqual(row["loss_difference"], "-0.375")
        self.assertEqual((row["first_unseen"], row["difference"]), ("0.25", "0"), "accuracies stay")

    def test_accuracies_have_no_losses(self):
        for experiment in ("a-1", "b-1"):
            self.add_cell(experiment, "none")
        text = self.output("compare", "a-1", "b-1")
        self.assertTrue(text.startswith("b-1 against a-1: mean unseen accuracy; ±: standard deviation over trials\n"), text)
        self.assertRegex(text, r"25\.0 ± 12\.5 +2 │ +\+0\.0\n")
        row = next(csv.DictReader(io.StringIO(self.output("compare", "a-1", "b-1", "--output", "csv"))))
        self.assertEqual((row["first_unseen_loss"], row["second_unseen_loss"], row["loss_difference"]), ("", "", ""))
        experiment = Experiment(self.server.connection, self.server.experiments["experiments/a-1"])
        self.assertNotIn("unseen_loss", experiment.results().columns)
        self.assertTrue(experiment.results(all=True)["unseen_loss"].isna().all())
        self.assertTrue(experiment.trial_table()["unseen_loss"].isna().all())

    def test_frames_have_losses(self):
        self.compare_by_loss()
        self.add_cell("a-1", "none", 0.5)
        experiment = Experiment(self.server.connection, self.server.experiments["experiments/a-1"])
        columns = "seen_loss unseen_loss unseen_loss_low unseen_loss_high best_trial".split()
        self.assertEqual(list(experiment.results().columns)[5:], columns)
        (row,) = experiment.results(all=True).to_dict("records")
        self.assertEqual((row["unseen_loss"], row["unseen_loss_low"], row["unseen_loss_high"]), (0.5, 0.25, 1))
        self.assertEqual((row["seen_loss"], row["unseen_accuracy"], row["best_trial"]), (0.0625, 0.25, "best"))

        evaluation = Evaluation(trial="experiments/a-1/trials/bucket_sort-rope")
        measured = evaluation.accuracies
        measured.final = True
        measured.lengths[:], measured.accuracies[:], measured.losses[:] = [1, 2, 3, 4], [0] * 4, [0.5, 1, 2, 6]
        self.server.evaluations.append(evaluation)
        table = experiment.trial_table()
        self.assertEqual((table["seen_loss"][1], table["unseen_loss"][1]), (0.75, 4))
        self.assertTrue(table[["seen_loss", "unseen_loss"]].loc[0].isna().all(), "not evaluated yet")


if __name__ == "__main__":
    unittest.main()
