"""`experiment.plot.accuracy_by_length()` and its sisters."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from lengthwise import plots
from lengthwise.arguments import check_arguments
from lengthwise.errors import UsageError
from lengthwise.given_specification import python_value
from lengthwise.names import one_or_several
from lengthwise.plots.data import Plottable, PlottedExperiment, TrialFilter, keep
from lengthwise.plots.options import OPTIONS, Options, describe_options
from lengthwise.suggestion import suggestion

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lengthwise.plots.drawing import AxesLike


@check_arguments
class Plots:
    """The figures of one experiment, each a method: `dir()` and FIGURES list them. What one has read of the server serves
    the next; `experiment.refresh()` has them read again.
    """

    def __init__(self, experiment: Plottable | Sequence[Plottable]) -> None:
        self._experiments = [experiment] if not isinstance(experiment, Sequence) else list(experiment)
        self._plotted: list[PlottedExperiment] | None = None

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *plots.FIGURES})

    def __getattr__(self, name: str) -> Callable[..., Figure]:
        if name not in plots.FIGURES:
            raise AttributeError(f"there is no figure {name!r}; there are {', '.join(plots.FIGURES)}")

        def figure(ax: AxesLike | None = None, **more: Any) -> Figure:
            return self.draw(name, ax, **more)

        figure.__name__ = name
        kind = plots.FIGURES[name]
        options = describe_options((*kind.options, *plots.ALWAYS))
        figure.__doc__ = f"{kind.description}\n\nTakes the parameters of `draw`.\n{options}"
        return figure

    def draw(
        self,
        name: str,
        ax: AxesLike | None = None,
        *,
        tasks: str | Sequence[str] = (),
        networks: str | Sequence[str] = (),
        encodings: str | Sequence[str] = (),
        learning_rates: float | Iterable[float] = (),
        title: str | None = None,
        decorated: bool = True,
        **options: Any,
    ) -> Figure:
        """A figure of FIGURES: a new one, or drawn on the caller's axes, one for each panel. Labels choose among the trials;
        the options are those of plots.Options that the figure takes. `decorated=False` leaves title and caption out.
        """
        for option in options:
            if option not in OPTIONS:
                # Without `name` and `options`.
                own = list(inspect.signature(self.draw).parameters)[1:-1]
                accepted = [*own, *plots.find(name).options, *plots.ALWAYS]
                raise UsageError(f'unknown option "{option}"{suggestion(option, accepted)}')
        checked = Options(**options)
        if self._plotted is None:
            self._plotted = [one._plotted() for one in self._experiments]
        chosen = self._plotted
        rates = [python_value(one) for one in (learning_rates if isinstance(learning_rates, Iterable) else [learning_rates])]
        filter = TrialFilter(one_or_several(tasks), one_or_several(networks), one_or_several(encodings), rates)
        if any((filter.tasks, filter.networks, filter.encodings, filter.learning_rates)):
            chosen = [experiment.copy() for experiment in chosen]
            keep(chosen, filter)
        return plots.draw(name, chosen, checked, ax, title=title, decorated=decorated)
