"""`experiment.analyze.t_test(reference="rope")` and its sisters."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from lengthwise.analyses import report
from lengthwise.analyses.trial_sets import subject_of
from lengthwise.arguments import check_arguments
from lengthwise.commands import DEFINITIONS
from lengthwise.plots.data import Plottable, read_with
from lengthwise.plots.options import Options

if TYPE_CHECKING:
    import pandas


class Analyses:
    """Analyses of one or more experiments. Each method is that of `report` of its name, and returns a frame with a row for
    each set of trials that differ only in their seeds, or several rows for such a set. `frame.attrs` has "caption" and
    "remarks", which explain the numbers and name the statistical test and its number of pairs. LengthwiseError says what to
    record if something is missing.

    All take `select`, as figures do: choose learning rates by "seen" lengths or by "unseen" ones.
    """

    def __init__(self, experiments: Sequence[Plottable]) -> None:
        self._experiments = experiments

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., pandas.DataFrame]: ...


def _method(analysis: Callable[..., report.AnalysisReport]) -> Callable[..., pandas.DataFrame]:
    """Takes what the analysis does after its subject, and `select`."""

    @functools.wraps(analysis)
    def method(self: Analyses, *given: Any, select: str = "", **options: Any) -> pandas.DataFrame:
        subject = subject_of(read_with(self._experiments, Options(select=select).select))
        return analysis(subject, *given, **options).frame()

    signature = inspect.signature(analysis)
    rule = inspect.Parameter("select", inspect.Parameter.KEYWORD_ONLY, default="", annotation="str")
    method.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), rule], return_annotation="pandas.DataFrame"
    )
    return method


for _name in DEFINITIONS["analyze"]["analyses"]:
    setattr(Analyses, _name, _method(getattr(report, _name)))
check_arguments(Analyses)
