"""What has changed, for pages that are open: one stream of the server's log for each experiment, however many pages show it.

Pages are told the kinds of facts that came, not the facts: they ask for the parts that show them. A message has the log's
position as its id. A browser that reconnects names the last one, and gets what came after it.
"""
from __future__ import annotations

import asyncio
import itertools
import json
import threading
import time
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import grpc

from lengthwise import names, queries
from lengthwise._proto import event_pb2, experiment_service_pb2, fleet_service_pb2
from lengthwise.connection import Connection, Stream
from lengthwise.errors import LengthwiseError
from lengthwise.web.source import Source

# Facts of one interval make one message.
_INTERVAL_SECONDS = 0.25
# Each message of the server's stream costs. If more than these come in an interval, the stream is opened again after one.
# What came meanwhile is then few messages.
_MOST_MESSAGES = 10
# More pages than these have longer intervals.
_PAGES = 8
_PROGRESS_SECONDS = 1.0
# Without pages, a stream stays open for the next one this long.
_KEEP_SECONDS = 60.0
# Messages that a reconnecting browser can still get; one that missed more is told to ask for everything.
_KEPT_MESSAGES = 1000
# A message that names more trials names none, and so means all.
_MOST_TRIALS = 100
_LONGEST_PAUSE = 3.0
_PING_SECONDS = 15.0

_KINDS = {
    "state_change": "state",
    "outcome": "state",
    "training_points": "points",
    "length_accuracies": "evaluation",
    "log_line": "log",
}


@dataclass
class _Changes:
    """What came since the last message."""

    kinds: set[str] = field(default_factory=set)
    trials: set[str] = field(default_factory=set)

    def message(self, position: int) -> str:
        named = sorted(self.trials) if len(self.trials) <= _MOST_TRIALS else []
        return f"id: {position}\nevent: change\ndata: {json.dumps({'kinds': sorted(self.kinds), 'trials': named})}\n\n"


class Feed:
    """Messages for pages of one subject. Its coroutines run on one event loop."""

    def __init__(self) -> None:
        self._messages: deque[tuple[int, str]] = deque(maxlen=_KEPT_MESSAGES)
        # Messages up to here are not kept.
        self._forgotten = 0
        self._state = ""
        self._news = asyncio.Event()
        self._woken = time.monotonic()
        self._ended = False
        self.pages = 0
        self.used = time.monotonic()

    def stop(self) -> None:
        """Ends the messages to all pages, which then try to reconnect."""
        self._ended = True
        self._wake()

    def publish(self, position: int, message: str) -> None:
        if len(self._messages) == _KEPT_MESSAGES:
            self._forgotten = self._messages[0][0]
        self._messages.append((position, message))
        self._wake()

    def publish_state(self, message: str) -> None:
        """What is not stored, and replaces what came before."""
        self._state = message
        self._wake()

    def begin_at(self, position: int) -> None:
        self._forgotten = position

    def _wake(self) -> None:
        self._woken = time.monotonic()
        self._news.set()
        self._news = asyncio.Event()

    def ping(self) -> None:
        """Sends something now and then, so that a connection that is gone is noticed."""
        if time.monotonic() - self._woken > _PING_SECONDS:
            self._wake()

    async def messages(self, after: int) -> AsyncIterator[str]:
        """All after the position, then what comes."""
        self.pages += 1
        shown_state = ""
        try:
            yield "retry: 1000\n\n"
            if after < self._forgotten:
                after = self._forgotten
                yield _Changes(set(_KINDS.values())).message(after)
            while not self._ended:
                news, text = self._news, ""
                new = list(itertools.takewhile(lambda one: one[0] > after, reversed(self._messages)))  # noqa: B023
                for position, message in reversed(new):
                    after = position
                    text += message
                if self._state != shown_state:
                    shown_state = self._state
                    text += shown_state
                # One piece, because each costs what a small request does.
                yield text or ": here\n\n"
                await news.wait()
        finally:
            self.pages -= 1
            self.used = time.monotonic()


class ExperimentFeed(Feed):
    """Follows the log of an experiment on a thread."""

    def __init__(self, source: Source, name: str) -> None:
        super().__init__()
        self.name = name
        self._source = source
        self._lock = threading.Lock()
        self._changes = _Changes()
        self.position = 0
        self.changed_trials: set[str] = set()
        # As they were when `changed_trials` was taken; none before the feed notices changes.
        self.trials: list[experiment_service_pb2.Trial] = []
        self.experiment = experiment_service_pb2.Experiment()
        self.progress: dict[str, event_pb2.TrialProgress] = {}
        self._fresh_progress = False
        self._ready = threading.Event()
        self._stop = threading.Event()
        self._stream: Stream[experiment_service_pb2.WatchExperimentResponse] | None = None
        # Why there is no stream now; empty if there is one.
        self.fault = ""
        threading.Thread(target=self._follow, name=f"watch {name}", daemon=True).start()
        self._task = asyncio.get_running_loop().create_task(self._publish())

    async def ready(self) -> None:
        """Waits until everything that comes from now on is noticed, or a second if the server does not answer."""
        if not self._ready.is_set():
            await asyncio.to_thread(self._ready.wait, 1.0)

    def is_ready(self) -> bool:
        return self._ready.is_set()

    def stop(self) -> None:
        super().stop()
        self._stop.set()
        self._task.cancel()
        if self._stream is not None:
            self._stream.cancel()

    def take_changed_trials(self) -> set[str]:
        with self._lock:
            taken, self.changed_trials = self.changed_trials, set()
        return taken

    def _follow(self) -> None:
        pause = 0.2
        while not self._stop.is_set():
            connection = self._source.connection
            try:
                self._read_stream()
                pause = 0.2
            except (grpc.RpcError, LengthwiseError) as error:
                if self._stop.is_set():
                    return
                failure = error if isinstance(error, LengthwiseError) else connection.failure(error)
                self.fault = str(failure)
                if failure.code is grpc.StatusCode.NOT_FOUND:
                    self._ready.set()
                    return
                if failure.code is grpc.StatusCode.FAILED_PRECONDITION:
                    self.fault = _reopened(self._source, connection) or self.fault
                self._stop.wait(max(pause, failure.retry_delay))
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _read_stream(self) -> None:
        starts = not self._ready.is_set()
        request = experiment_service_pb2.WatchExperimentRequest(
            # The first look only finds the end of the log, which is that of all trials: one of them is read the fastest.
            name=names.list_trials(self._source.connection, self.name, limit=1)[0].name if starts else self.name,
            start_position=self.position,
            follow=True,
            include_progress=True,
            omit_attention_maps=True,
            log_only=starts,
        )
        self._stream = self._source.connection.open(request, experiment_service_pb2.WatchExperimentResponse)
        began, messages = time.monotonic(), 0
        try:
            for response in self._stream:
                self.fault = ""
                if starts:
                    self.position = max(self.position, response.next_position)
                    if response.caught_up:
                        self.experiment = names.get_experiment(self._source.connection, self.name)
                        self.begin_at(self.position)
                        self._ready.set()
                        return
                    continue
                self._add(response)
                messages += 1
                if time.monotonic() - began > _INTERVAL_SECONDS:
                    began, messages = time.monotonic(), 0
                elif messages > _MOST_MESSAGES:
                    self._stream.cancel()
                    self._stop.wait(_INTERVAL_SECONDS)
                    return
        finally:
            self._stream.cancel()

    def _add(self, response: experiment_service_pb2.WatchExperimentResponse) -> None:
        if any(event.HasField("state_change") for event in response.events):
            self.experiment = names.get_experiment(self._source.connection, self.name)
        with self._lock:
            for event in response.events:
                kind = _KINDS.get(event.WhichOneof("fact") or "", "evaluation")
                trial = names.short_name(event.trial)
                self._changes.kinds.add(kind)
                self._changes.trials.add(trial)
                if kind == "state":
                    self.changed_trials.add(event.trial)
                    self.progress.pop(trial, None)
            for progress in response.progress:
                self.progress[names.short_name(progress.trial)] = progress
            self._fresh_progress |= bool(response.progress)
            self.position = max(self.position, response.next_position)

    async def _publish(self) -> None:
        told, told_fault = time.monotonic(), ""
        while True:
            # Many pages are told less often.
            await asyncio.sleep(_INTERVAL_SECONDS * max(1, self.pages / _PAGES))
            self.ping()
            with self._lock:
                changes, position = self._changes, self.position
                self._changes = _Changes()
            if changes.kinds:
                self.publish(position, changes.message(position))
            if self.fault != told_fault or (self._fresh_progress and time.monotonic() - told >= _PROGRESS_SECONDS):
                told, told_fault = time.monotonic(), self.fault
                self._fresh_progress = False
                self.publish_state(self._progress_message())

    def _progress_message(self) -> str:
        with self._lock:
            trials = {
                name: [one.done, one.total, round(one.steps_per_second, 1), round(one.seconds_left)]
                for name, one in self.progress.items()
            }
        return _state_message(self.fault, trials, {names.short_name(self.name): self.overall()})

    def overall(self) -> list[float | None]:
        """The share of all training that is done, and the seconds left as `lengthwise watch` estimates them."""
        counts, steps = self.experiment.trials, self.experiment.specification.training.steps
        ended, unended = queries.ended_trials(counts), queries.unended_trials(counts)
        with self._lock:
            running = list(self.progress.values())
        done = sum(steps if one.phase == event_pb2.TrialProgress.EVALUATING else min(one.done, steps) for one in running)
        speed = sum(one.steps_per_second for one in running)
        longest = max((one.seconds_left for one in running), default=0.0)
        left = max((unended * steps - done) / speed, longest) if unended and speed > 0 else None
        return [(ended * steps + done) / max(1, (ended + unended) * steps), left and round(left)]


def _state_message(fault: str, trials: dict[str, list[float]], experiments: dict[str, list[float | None]]) -> str:
    state = {"fault": fault, "trials": trials, "experiments": experiments}
    return f"event: progress\ndata: {json.dumps(state, separators=(',', ':'))}\n\n"


class OverviewFeed(Feed):
    """Asks for the newest experiments and the workers while a page shows them."""

    _NEWEST = 50
    # Experiments whose progress is shown.
    _MOST_RUNNING = 10

    def __init__(self, source: Source, feeds: Feeds) -> None:
        super().__init__()
        self._source = source
        self._feeds = feeds
        self._running: list[str] = []
        self._known: dict[str, bytes] = {}
        self._task = asyncio.get_running_loop().create_task(self._ask())

    def stop(self) -> None:
        super().stop()
        self._task.cancel()

    async def _ask(self) -> None:
        number = 0
        while True:
            await asyncio.sleep(_PROGRESS_SECONDS)
            self.ping()
            if not self.pages:
                continue
            connection = self._source.connection
            try:
                answers = await asyncio.to_thread(self._read, connection)
            except LengthwiseError as error:
                if error.code is grpc.StatusCode.FAILED_PRECONDITION:
                    await asyncio.to_thread(_reopened, self._source, connection)
                self.publish_state(_state_message(str(error), {}, {}))
                continue
            running = {names.short_name(name): self._feeds.experiment(name).overall() for name in self._running}
            self.publish_state(_state_message("", {}, running))
            kinds = {kind for kind, answer in answers.items() if self._known.get(kind, answer) != answer}
            self._known = answers
            if kinds:
                number += 1
                self.publish(number, _Changes(kinds).message(number))

    def _read(self, connection: Connection) -> dict[str, bytes]:
        newest = names.list_experiments(connection, limit=self._NEWEST)
        self._running = [one.name for one in newest if one.trials.running][: self._MOST_RUNNING]
        workers = connection.call(fleet_service_pb2.ListWorkersRequest(), fleet_service_pb2.ListWorkersResponse)
        return {
            "state": b"".join(one.name.encode() + one.trials.SerializeToString() for one in newest),
            "workers": workers.SerializeToString(deterministic=True),
        }


def _reopened(source: Source, failed: Connection) -> str:
    """Why it was not possible; empty if there is a connection again."""
    try:
        source.reopen(failed)
    except LengthwiseError as error:
        return str(error)
    return ""


class Feeds:
    """The feeds that pages need now."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._experiments: dict[str, ExperimentFeed] = {}
        self._overview: OverviewFeed | None = None

    def experiment(self, name: str) -> ExperimentFeed:
        """`name` is full. Ends streams that nobody has used for a while."""
        now = time.monotonic()
        for known, feed in list(self._experiments.items()):
            if not feed.pages and now - feed.used > _KEEP_SECONDS:
                feed.stop()
                del self._experiments[known]
        if name not in self._experiments:
            self._experiments[name] = ExperimentFeed(self._source, name)
        feed = self._experiments[name]
        feed.used = now
        return feed

    def overview(self) -> OverviewFeed:
        if self._overview is None:
            self._overview = OverviewFeed(self._source, self)
        return self._overview

    @property
    def pages(self) -> int:
        return sum(feed.pages for feed in self._all())

    def stop(self) -> None:
        for feed in self._all():
            feed.stop()

    def _all(self) -> list[Feed]:
        return [*self._experiments.values(), *([self._overview] if self._overview else [])]
