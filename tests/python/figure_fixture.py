"""Experiments as the API's messages tell them, and figures of them. A test module also imports setUpModule."""
import unittest

import numpy
import served
import service
from lengthwise import plots
from lengthwise._proto import catalogue_service_pb2, experiment_service_pb2
from lengthwise.connection import Connection, Settings
from lengthwise.errors import LengthwiseError
from lengthwise.plots import catalogue, drawing
from lengthwise.plots.data import PlottedExperiment

CATALOGUE = catalogue.Catalogue()
NETWORKS: set[str] = set()


def setUpModule():
    """Reads names and facts from a real server."""
    global CATALOGUE
    server = service.Server()
    connection = Connection(Settings(server=server.address), timeout=service.DEADLINE)
    CATALOGUE = catalogue.fetch(connection)
    networks = connection.call(
        catalogue_service_pb2.ListCatalogueEntriesRequest(kind=catalogue_service_pb2.NETWORK),
        catalogue_service_pb2.ListCatalogueEntriesResponse,
    )
    NETWORKS.update(entry.name for entry in networks.entries)
    connection.close()
    server.kill()


def as_served(experiments):
    """The experiments with what a server adds to trials."""
    for experiment in experiments:
        for trial in experiment.trials:
            served.set_trained(trial, CATALOGUE.own_axis(trial.specification.task) is not None)
    return experiments


def plotted(name="e-1", trials=()):
    return PlottedExperiment(name, list(trials), catalogue=CATALOGUE, finals=[], all_evaluations=[], curves=[], recorded=[])


def make_trial(encoding, randomized=False, rate=0.1, seed=0, experiment="e-1", task="bucket_sort"):
    """Makes a trial of bucket sort, trained on lengths 1 to 2."""
    trial = experiment_service_pb2.Trial()
    specification = trial.specification
    specification.task.name = specification.task.label = task
    specification.network.name = "encoder"
    specification.encoding.name = encoding
    specification.encoding.label = f"randomized_{encoding}" if randomized else encoding
    specification.encoding.parameters["randomized"].bool_value = randomized
    specification.learning_rate = rate
    specification.weight_seed = seed
    specification.training.lengths.min, specification.training.lengths.max = 1, 2
    specification.evaluation.seen_up_to = 2
    trial.name = f"experiments/{experiment}/trials/{task}-{specification.encoding.label}-lr{rate}-seed{seed}"
    return trial


def evaluation(trial, lengths, accuracies, step=9, final=True, losses=(), **metrics):
    one = experiment_service_pb2.QueryLengthAccuraciesResponse.Evaluation(trial=trial.name, step=step)
    one.accuracies.final = final
    one.accuracies.lengths.extend(lengths)
    one.accuracies.accuracies.extend(accuracies)
    one.accuracies.losses.extend(losses)
    served.set_means(one.accuracies, trial.specification.evaluation.seen_up_to)
    for name, values in metrics.items():
        one.accuracies.metrics.add(name=name, values=values)
    return one


def add(experiment, trial, accuracies):
    """Adds a trial with final accuracies at the lengths 1, 2, 3, ..."""
    experiment.trials.append(trial)
    experiment.finals.append(evaluation(trial, range(1, len(accuracies) + 1), accuracies))


def add_interval(experiment, trial, step, seconds, unseen):
    one = evaluation(trial, [2, 4], [1, unseen], step=step, final=False)
    one.accuracies.training_seconds = seconds
    experiment.all_evaluations.append(one)


def add_curve(experiment, trial, losses, accuracies=(), every=100):
    curve = experiment_service_pb2.QueryLossCurvesResponse.Curve(trial=trial.name)
    curve.points.steps.extend(every * (i + 1) for i in range(len(losses)))
    curve.points.losses.extend(losses)
    curve.points.accuracies.extend(accuracies)
    experiment.curves.append(curve)


def addition(weight_seed, data_seed):
    trial = make_trial("fire", seed=weight_seed, task="decimal_addition")
    trial.specification.data_seed = data_seed
    trial.name += f"-data{data_seed}"
    return trial


class FigureCase(unittest.TestCase):
    def figure(self, name, *experiments, **options):
        """Describes and draws a figure, and checks that the axes show the description."""
        picture = plots.describe(name, as_served(experiments), plots.Options(**options))
        self.check_drawn(picture, drawing.draw(picture))
        return picture

    def check_drawn(self, picture, figure):
        panels = [axes for axes in figure.axes if axes.get_label() != "<colorbar>"]
        self.assertEqual(len(panels), len(picture.panels))
        for axes, panel in zip(panels, picture.panels):
            self.assertEqual(axes.get_title().replace("\n", " "), panel.title)
            drawn = [
                (list(map(float, line.get_xdata())), list(map(float, line.get_ydata())))
                for line in axes.get_lines()
                if not str(line.get_label()).startswith("_random guess")
            ]
            for series in panel.series:
                self.assertIn((list(map(float, series.x)), list(map(float, series.y))), drawn)
            if panel.map is not None:
                numpy.testing.assert_array_equal(axes.images[0].get_array(), panel.map.values)

    def message(self, name, *experiments, **options):
        with self.assertRaises(LengthwiseError) as raised:
            plots.describe(name, as_served(experiments), plots.Options(**options))
        return str(raised.exception)


class MetricsCase(FigureCase):
    def setUp(self):
        self.experiment = plotted()

    def add_trial(self, task, encoding, seed, rate=0.1):
        trial = make_trial(encoding, rate=rate, seed=seed, task=task)
        self.experiment.trials.append(trial)
        return trial

    def evaluate(self, step, final, accuracy, loss=(), **metrics):
        """Adds an evaluation of the latest trial at the lengths 2 and 3."""
        one = evaluation(self.experiment.trials[-1], [2, 3], accuracy, step, final, loss, **metrics)
        self.experiment.all_evaluations.append(one)
        if final:
            self.experiment.finals.append(one)
