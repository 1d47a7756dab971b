"""A client of Lengthwise: submit experiments, watch them, and have their results as pandas frames.

>>> import lengthwise
>>> client = lengthwise.Client()                       # the server of ~/.config/lengthwise/config.yaml
>>> experiment = client.submit("experiments/quickstart.yaml")
>>> experiment.wait()
>>> experiment.results()

>>> lengthwise.run("experiments/quickstart.yaml").results()    # on this machine, without a server
"""
from lengthwise.client import Client
from lengthwise.errors import FieldViolation, LengthwiseError, NotFoundError, UnavailableError
from lengthwise.events import (
    AttentionMap,
    Checkpoint,
    Event,
    LengthAccuracies,
    LogLine,
    Outcome,
    Progress,
    Projection,
    SequenceScores,
    StateChange,
    TrainingPoints,
    WrongAnswer,
)
from lengthwise.experiment import Experiment, TrialCounts
from lengthwise.local_run import run
from lengthwise.trial import Trial

__version__ = "0.1.0"

__all__ = [
    "AttentionMap",
    "Checkpoint",
    "Client",
    "Event",
    "Experiment",
    "FieldViolation",
    "LengthAccuracies",
    "LengthwiseError",
    "LogLine",
    "NotFoundError",
    "Outcome",
    "Progress",
    "Projection",
    "SequenceScores",
    "StateChange",
    "TrainingPoints",
    "Trial",
    "TrialCounts",
    "UnavailableError",
    "WrongAnswer",
    "run",
]
