"""A client of Lengthwise: submit experiments, watch them, and have their results as pandas frames.

>>> import lengthwise
>>> client = lengthwise.Client()                       # the server of ~/.config/lengthwise/config.yaml
>>> experiment = client.submit("experiments/quickstart.yaml")
>>> experiment.wait()
>>> experiment.results()

>>> lengthwise.run("experiments/quickstart.yaml").results()    # on this machine, without a server
"""
from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from lengthwise.version import __version__ as __version__

if TYPE_CHECKING:
    from lengthwise.client import Client as Client
    from lengthwise.errors import FieldViolation as FieldViolation
    from lengthwise.errors import LengthwiseError as LengthwiseError
    from lengthwise.errors import NotFoundError as NotFoundError
    from lengthwise.errors import UnavailableError as UnavailableError
    from lengthwise.events import Answer as Answer
    from lengthwise.events import AttentionMap as AttentionMap
    from lengthwise.events import Checkpoint as Checkpoint
    from lengthwise.events import Event as Event
    from lengthwise.events import LengthAccuracies as LengthAccuracies
    from lengthwise.events import LogLine as LogLine
    from lengthwise.events import Outcome as Outcome
    from lengthwise.events import Progress as Progress
    from lengthwise.events import Projection as Projection
    from lengthwise.events import SequenceScores as SequenceScores
    from lengthwise.events import StateChange as StateChange
    from lengthwise.events import TrainingPoints as TrainingPoints
    from lengthwise.events import WrongAnswer as WrongAnswer
    from lengthwise.experiment import Experiment as Experiment
    from lengthwise.experiment import TrialCounts as TrialCounts
    from lengthwise.local_run import run as run
    from lengthwise.trial import Trial as Trial

_MODULES = {
    "client": ["Client"],
    "errors": ["FieldViolation", "LengthwiseError", "NotFoundError", "UnavailableError"],
    "events": [
        "Answer", "AttentionMap", "Checkpoint", "Event", "LengthAccuracies", "LogLine", "Outcome", "Progress", "Projection",
        "SequenceScores", "StateChange", "TrainingPoints", "WrongAnswer",
    ],
    "experiment": ["Experiment", "TrialCounts"],
    "local_run": ["run"],
    "trial": ["Trial"],
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}
__all__ = list(_MODULE_OF)


def __getattr__(name: str) -> Any:
    """Imports names on first use, so that `python -m lengthwise` does not load pandas without need."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = resolve_name(f"lengthwise.{_MODULE_OF[name]}:{name}")
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
