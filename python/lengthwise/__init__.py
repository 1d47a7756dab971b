"""A client of Lengthwise: submit experiments, watch them, and have their results as pandas frames.

>>> import lengthwise
>>> client = lengthwise.Client()                       # the server of ~/.config/lengthwise/config.yaml
>>> experiment = client.submit("experiments/quickstart.yaml")
>>> experiment.wait()
>>> experiment.results()

>>> lengthwise.run("experiments/quickstart.yaml").results()    # on this machine, without a server
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from lengthwise.version import __version__ as __version__

if TYPE_CHECKING:
    from lengthwise.client import Client
    from lengthwise.errors import FieldViolation, LengthwiseError, NotFoundError, UnavailableError
    from lengthwise.events import (
        Answer,
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

__all__ = [
    "Answer",
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

_MODULES = {
    "client": ["Client"],
    "errors": ["FieldViolation", "LengthwiseError", "NotFoundError", "UnavailableError"],
    "experiment": ["Experiment", "TrialCounts"],
    "local_run": ["run"],
    "trial": ["Trial"],
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Imports names on first use, so that `python -m lengthwise` does not load pandas without need."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"lengthwise.{_MODULE_OF.get(name, 'events')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
