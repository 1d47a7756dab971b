"""A submitted grid of trials."""
from __future__ import annotations

import operator
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

import grpc
import pandas

from lengthwise import errors, events, frames, names, queries
from lengthwise._proto import experiment_service_pb2, fleet_service_pb2
from lengthwise.arguments import check_arguments
from lengthwise.names import FULL_NAME, one_or_several
from lengthwise.rendering import counted
from lengthwise.trial import Snapshot, Trial
from lengthwise.user_file import user_path

if TYPE_CHECKING:
    from lengthwise.analyses import Analyses
    from lengthwise.plots.accessor import Plots
    from lengthwise.plots.data import PlottedExperiment

# After which calling again may help.
_MAY_PASS = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNKNOWN,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
)
_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 3.0


@dataclass(frozen=True)
class TrialCounts:
    """Trials of an experiment by state."""

    queued: int
    running: int
    succeeded: int
    failed: int
    cancelled: int

    @property
    def total(self) -> int:
        return self.queued + self.running + self.succeeded + self.failed + self.cancelled

    @property
    def unended(self) -> int:
        return self.queued + self.running


def _checked_seeds(name: str, given: Iterable[int]) -> list[int]:
    """UsageError for anything but seeds. A single number is not accepted, because it could mean a seed or a count."""
    try:
        seeds = [operator.index(seed) for seed in given]
    except TypeError:
        seeds = [-1]
    if min(seeds, default=0) < 0:
        raise errors.UsageError(f"{name}: got {given!r}, expected a list of new seeds, such as [10, 11] or range(10, 20)")
    return seeds


def _checked_states(given: str | Sequence[str]) -> list[str]:
    states = one_or_several(given)
    if not states or any(state not in ("FAILED", "CANCELLED") for state in states):
        raise errors.UsageError(f'states: got {given!r}, expected "FAILED", "CANCELLED" or a list of both')
    return states


def progress_bar(experiment: Experiment, show: bool | None, total: int, unit: str) -> Any:
    """A bar of tqdm. None shows it in notebooks and terminals, but not in the log of a script."""
    from tqdm.auto import tqdm  # type: ignore[import-untyped]

    if show is None:
        show = "ipykernel" in sys.modules or sys.stderr.isatty()
    return tqdm(total=total, desc=experiment.id, unit=unit, disable=not show)


@check_arguments
class Experiment(Snapshot[experiment_service_pb2.Experiment]):
    """A snapshot of an experiment; `refresh` updates it."""

    _plots: Plots | None = None

    def __repr__(self) -> str:
        return f"<Experiment {self.name}: {self.counts.total} trials, {self.counts.succeeded} succeeded>"

    def _repr_html_(self) -> str:
        """For notebooks."""
        named = {"experiment": self.id, "owner": self.owner, "created": self.create_time}
        return frames.row_html({**named, **asdict(self.counts)})

    def _trials(self) -> list[experiment_service_pb2.Trial]:
        return names.list_trials(self._connection, self.name)

    def _plotted(self) -> PlottedExperiment:
        """For figures and analyses."""
        from lengthwise.plots import catalogue, data

        return data.PlottedExperiment(self.id, self._trials(), self._connection, catalogue.fetch(self._connection))

    @property
    def owner(self) -> str:
        return self._message.owner

    @property
    def counts(self) -> TrialCounts:
        counts = self._message.trials
        return TrialCounts(counts.queued, counts.running, counts.succeeded, counts.failed, counts.cancelled)

    @property
    def ended(self) -> bool:
        return self.counts.unended == 0

    @property
    def plot(self) -> Plots:
        """Its figures: `experiment.plot.accuracy_by_length()` returns a matplotlib Figure."""
        if self._plots is None:
            from lengthwise.plots.accessor import Plots

            self._plots = Plots(self)
        return self._plots

    @property
    def analyze(self) -> Analyses:
        """Its analyses: `experiment.analyze.t_test(reference="rope")` returns a frame."""
        from lengthwise.analyses import Analyses

        return Analyses([self])

    def refresh(self) -> Experiment:
        """Reads its state from the server again; returns itself."""
        self._plots = None
        self._message = self._call("GetExperiment", experiment_service_pb2.Experiment)
        return self

    def _check_training(self) -> None:
        """FAILED_PRECONDITION if trials have not ended, and the server of a data directory has no workers."""
        if not self._connection.data_dir:
            return
        fleet = self._connection.call(fleet_service_pb2.ListWorkersRequest(), fleet_service_pb2.ListWorkersResponse)
        if any(worker.alive for worker in fleet.workers):
            return
        # In this order, because workers end after the last trial.
        trials = self._call("GetExperiment", experiment_service_pb2.Experiment).trials
        if queries.unended_trials(trials) > 0:
            raise errors.refused(
                f"trials of {self.id} are queued, and this private server has no workers for them; train them with "
                f'lengthwise.run("{self.id}", data_dir="{self._connection.data_dir}")'
            )

    def watch(
        self,
        *,
        progress: bool = False,
        start_position: int = 0,
        follow: bool = False,
        patience: float = 300,
        timeout: float | None = None,
    ) -> Iterator[events.Event]:
        """Its events: first what is stored, then what comes, until all trials have ended (`follow`: for ever).

        Every event comes once, in the order of the log, also over restarts of the server: where the connection breaks,
        the watch goes on from where it was, and gives up `patience` seconds after it broke, however long it had been
        quiet before. Measurements of a trial after the checkpoint of StateChange.resumed_from_step (all, if 0) come
        again when it resumes, also those of the same step.
        `progress` adds what is not stored. TimeoutError after `timeout` seconds in all. LengthwiseError after what is stored
        if the private server has no worker for the rest, unless `follow` is set.
        """
        return self._watch(progress, start_position, follow, patience, timeout, log_only=False)

    def _watch(
        self, progress: bool, position: int, follow: bool, patience: float, timeout: float | None, log_only: bool
    ) -> Iterator[events.Event]:
        end = None if timeout is None else time.monotonic() + timeout
        pause = _FIRST_PAUSE
        # When the connection broke; None while there is one, for a server with no news says nothing.
        broken: float | None = None
        while True:
            request = experiment_service_pb2.WatchExperimentRequest(
                name=self.name,
                start_position=position,
                follow=follow,
                include_progress=progress,
                omit_attention_maps=True,
                log_only=log_only,
            )
            left = None if end is None else max(end - time.monotonic(), 0.001)
            stream = self._connection.open(request, experiment_service_pb2.WatchExperimentResponse, left)
            try:
                for response in stream:
                    pause = _FIRST_PAUSE
                    broken = None
                    for message in response.events:
                        event = events.to_event(message)
                        # Before it is given out: whoever goes on later has it.
                        position = message.position + 1
                        if event is not None:
                            yield event
                    for one in response.progress:
                        yield events.to_progress(one)
                    position = max(position, response.next_position)
                    if response.caught_up and not follow:
                        self._check_training()
                return
            except grpc.RpcError as error:
                failure = self._connection.failure(error)
                if failure.code is grpc.StatusCode.DEADLINE_EXCEEDED and end is not None:
                    raise TimeoutError(f"{self.name} has not ended after {timeout} s") from None
                now = time.monotonic()
                broken = now if broken is None else broken
                if failure.code not in _MAY_PASS or now - broken > patience:
                    raise failure from None
                pause = max(pause, failure.retry_delay)
            finally:
                stream.cancel()
            if end is not None:
                left = end - time.monotonic()
                if left <= 0:
                    raise TimeoutError(f"{self.name} has not ended after {timeout} s")
                pause = min(pause, left)
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def wait(
        self, timeout: float | None = None, *, patience: float = 300, progress: bool | None = None
    ) -> Experiment:
        """Waits until all trials have ended; returns itself. TimeoutError after `timeout` seconds.

        `progress` shows a bar of the training steps of all trials, by default in notebooks and terminals. LengthwiseError if
        the private server has no worker for them when the wait begins.
        """
        steps = self._message.specification.training.steps
        done: dict[str, int] = {}
        with progress_bar(self, progress, steps * self.counts.total, " steps") as bar:
            for event in self._watch(not bar.disable, 0, False, patience, timeout, log_only=True):
                if isinstance(event, events.StateChange):
                    now = event.resumed_from_step if event.new in ("QUEUED", "RUNNING") else steps
                elif isinstance(event, events.Progress):
                    now = event.done if event.phase == "TRAINING" else steps
                else:
                    continue
                bar.update(now - done.get(event.trial, 0))
                done[event.trial] = now
        return self.refresh()

    def trials(self, filter: str = "") -> list[Trial]:
        """In the order of the grid; all, or those of a filter such as 'state = FAILED AND encoding = "sin_cos"'."""
        messages = names.list_trials(self._connection, self.name, filter)
        return [Trial(self._connection, message, self._match) for message in messages]

    def trial(self, id_or_index: str | SupportsIndex) -> Trial:
        """By its index in the grid, where negative ones count from the end, or by what `Client.trial` accepts.

        Without an experiment, as in "0" or the beginning of an id, the text means a trial of this one. NotFoundError if
        there is none.
        """
        if not isinstance(id_or_index, str):
            # NumPy's integers too.
            index, trials = operator.index(id_or_index), self.trials()
            if not -len(trials) <= index < len(trials):
                raise errors.NotFoundError(
                    f"trial: got {index}, expected an index from 0 to {len(trials) - 1}, because {self.name} has "
                    f"{counted(len(trials), 'trial')}"
                )
            return trials[index]
        text = id_or_index if "/" in id_or_index else f"{self.id}/{id_or_index}"
        found = names.find(self._connection, text, names.TRIAL)
        if found.experiment.name != self.name:
            raise errors.NotFoundError(f'trial: got "{id_or_index}", expected a trial of {self.id}')
        # A guess of the experiment or of the trial is one of both.
        return Trial(self._connection, found.trial, max(self._match, found.match))

    def results(self, *, all: bool = False, select: str = "") -> pandas.DataFrame:
        """One row for each task, network, encoding and learning rate: statistics over its seeds that succeeded.

        Its columns are those of a first look: means over the seeds of "seen_accuracy" and "unseen_accuracy", the standard
        deviation of the latter, and "best_trial". Tasks that are compared by loss have medians "seen_loss" and "unseen_loss"
        instead, the latter with 10th and 90th percentiles. `select` says by what "best_trial" is the best: "seen" lengths or
        validation sequences, or "unseen" lengths; by default the specification's evaluation.select, which is seen. `all`
        adds minima, maxima, training accuracies, times and numbers of trials by state.
        """
        summary = queries.summary(self._connection, self.name, select=select)
        frame = frames.summary(summary)
        if all:
            return frame
        scores = frames.LOSSES_OF_CELL if summary.heading.compared_by_loss else frames.ACCURACIES_OF_CELL
        return frame[[*frames.FIRST_LOOK, *scores, "best_trial"]]

    def trial_table(self) -> pandas.DataFrame:
        """One row a trial: its point of the grid, state, scores and times.

        "seen_loss" and "unseen_loss" are mean final losses, for tasks that are compared by loss.
        """
        rows = [
            [*frames.key(one._message), index, one.state, one.reason, one.attempt, one.worker,
             *(getattr(one, name) for name in frames.TRIALS[5:11])]
            for index, one in enumerate(self.trials())
        ]  # fmt: skip
        return frames.trials(self._connection, self.name, rows)

    def seconds_to_accuracy(self, accuracy: float) -> pandas.DataFrame:
        """One row a trial: "seconds" of training until its mean accuracy on unseen lengths was above `accuracy`, 0 to 1.

        The first evaluation above it counts, among those during training (evaluation.every_steps) and the final one; missing
        if there is none. Each member of a pack counts the seconds of the whole pack.
        """
        if not 0 <= accuracy <= 1:
            meant = f"{accuracy / 100:g} for {accuracy:g} %" if 1 < accuracy <= 100 else "0.9 for 90 %"
            raise errors.UsageError(f"accuracy: got {accuracy:g}, expected a fraction from 0 to 1, such as {meant}")
        return frames.seconds_to_accuracy(self._connection, self.name, self._trials(), accuracy)

    def compare(self, table: str, *, select: str = "") -> pandas.DataFrame:
        """Beside a published table such as "randomized_pe/table_1": one row a cell, measured and published. `select`: choose
        by "seen" lengths instead of as the paper does.

        `frame.attrs` has "heading" and "remarks": what was run, and how its protocol differs from the table's.
        """
        from lengthwise import comparison, comparison_display, published

        found = comparison.fetch(self._connection, self._message, published.find(table), select=select)
        records = comparison_display.records(found)
        frame = pandas.DataFrame(records.rows, columns=list(records.columns))
        frame.attrs["heading"] = comparison_display.heading(found)
        frame.attrs["remarks"] = comparison_display.remarks(found, "best_measured and best_published", True)
        return frame

    def export(
        self, format: str, path: str | os.PathLike[str] | None = None, *, force: bool = False, select: str = ""
    ) -> Path:
        """Exports measurements or models for other tools, and returns the path.

        `format`: csv, json, tensorboard, safetensors, npz, latex or site, as in `lengthwise export`. `path` is the file
        or directory to make; without it the name and the format, here. `force` replaces an earlier export: a file with the
        format's suffix, or in a directory the files that its export.json lists. Other files there stay. `select`: as for
        `results`; latex and site choose. Trials that are left out are a UserWarning.
        """
        from lengthwise import exports

        subject = exports.Subject(self._message, self._trials())
        return exports.export_and_warn(self._connection, subject, format, user_path(path), force, select)

    def report(
        self, path: str | os.PathLike[str] | None = None, *, compare: str | Sequence[str] = (), select: str = ""
    ) -> Path:
        """Writes a self-contained HTML file about the experiment, as `lengthwise report` does, and returns its path.

        `path`: by default its name and ".html", here. `compare` names the published tables that it stands beside, such as
        "randomized_pe/table_1"; by default those of which a cell was run. `select`: as for `results`.
        """
        from lengthwise import report

        return report.write(self._connection, self._message, user_path(path), one_or_several(compare), select)

    def extend(
        self, *, seeds: Iterable[int] = (), weight_seeds: Iterable[int] = (), data_seeds: Iterable[int] = ()
    ) -> int:
        """Adds trials with these seeds; returns how many were added.

        On a private server nothing trains them until `lengthwise.run` is called with the experiment's name. UsageError if
        the experiment was found by the beginning of its name, or as the newest of several with one specification's name.
        """
        self._refuse_guess("extend", "seeds=...")
        response = self._call(
            "ExtendExperiment",
            experiment_service_pb2.ExtendExperimentResponse,
            seeds=_checked_seeds("seeds", seeds),
            weight_seeds=_checked_seeds("weight_seeds", weight_seeds),
            data_seeds=_checked_seeds("data_seeds", data_seeds),
        )
        self._message = response.experiment
        return response.added_trials

    def cancel(self, reason: str = "") -> Experiment:
        """Cancels all trials that have not ended; what they recorded stays. Returns itself.

        UsageError if the experiment was found as `extend` refuses.
        """
        self._refuse_guess("cancel")
        self._message = self._call("CancelExperiment", experiment_service_pb2.Experiment, reason=reason)
        return self

    def retry(self, states: str | Sequence[str] = "FAILED") -> int:
        """Queues trials of these states again, from their last checkpoints; returns how many.

        `states`: "FAILED", "CANCELLED" or a list of both. On a private server nothing trains them until `lengthwise.run` is
        called with the experiment's name. UsageError if the experiment was found as `extend` refuses.
        """
        self._refuse_guess("retry")
        retried = _checked_states(states)
        response = self._call("RetryTrials", experiment_service_pb2.RetryTrialsResponse, states=retried)
        self._message = response.experiment
        return response.retried_trials

    def delete(self) -> None:
        """Deletes it with everything that it recorded. Its trials have ended (cancel first).

        UsageError if it was not found by its full name: after a deletion, another one has the specification's name.
        """
        self._refuse_guess("delete", vaguest=FULL_NAME)
        self._call("DeleteExperiment", experiment_service_pb2.DeleteExperimentResponse)
