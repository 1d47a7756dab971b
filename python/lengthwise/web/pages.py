"""The views and their addresses."""
from __future__ import annotations

import asyncio
import contextlib
import hashlib
import importlib.util
import json
import math
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import grpc
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from lengthwise import names, queries, report
from lengthwise._proto import event_pb2, experiment_service_pb2
from lengthwise.errors import LengthwiseError, NotFoundError, UsageError
from lengthwise.events import name_of, to_datetime
from lengthwise.names import label, short_name
from lengthwise.plots import catalogue
from lengthwise.plots.catalogue import Catalogue
from lengthwise.plots.data import PlottedExperiment, Trial, TrialFilter
from lengthwise.rendering import format_clock, format_count, format_exact
from lengthwise.version import __version__
from lengthwise.web import figures, views
from lengthwise.web.live import ExperimentFeed, Feeds
from lengthwise.web.source import Source

_HERE = Path(__file__).parent
# Refreshes take at most about this share of a processor together; a first view never waits.
_SHARE = 0.05
# More pages leave them less, because each costs something by itself.
_PAGES = 5
# Of a processor, to send one answer.
_SENDING_SECONDS = 0.0005
_KEPT_ADDRESSES = 100
# A page has asked by then for what was begun for it.
_BEGUN_SECONDS = 5.0
_FIRST_CHART = "accuracy_by_length"
# More are read all at once instead of one by one.
_MOST_SINGLE_READS = 50

# The server is away for a moment.
_AWAY = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.RESOURCE_EXHAUSTED)

# uPlot 1.6.31 as its authors released it. Nothing else of the package that carries it is used, and no other file is served.
_CHART_FILES = {
    "uplot.js": ("uplot.iife.min.js", "2d27e8ad3d228164525ce213f9dc716f39b4e3aee0cc773fb3491c96cf4921a2"),
    "uplot.css": ("uplot.min.css", "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04"),
}


def read_chart_files() -> dict[str, bytes]:
    """The chart library's files by name; LengthwiseError if they are missing or not those of the release."""
    package = importlib.util.find_spec("youplot")
    if package is None or package.origin is None:
        raise LengthwiseError("the package youplot, which has the charts' script, is missing; `pip install youplot==1.0.0`")
    found = {}
    for name, (file, digest) in _CHART_FILES.items():
        path = Path(package.origin).parent / "vendor" / file
        found[name] = path.read_bytes() if path.is_file() else b""
        if hashlib.sha256(found[name]).hexdigest() != digest:
            raise LengthwiseError(f"{path} is not the file of uPlot 1.6.31; `pip install --force-reinstall youplot==1.0.0`")
    return found


class _Answer:
    """The last answer to an address, which pages that ask at the same time share."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0
        self.began = -math.inf
        # Of a processor, that it took, to be made and sent.
        self.seconds = 0.0
        self.response: tuple[str, bytes] = ("", b"")
        # When a page was asked for that will ask for it, and what makes it meanwhile.
        self.needed_since = math.inf
        self.maker: asyncio.Task[None] | None = None


def _timed(make: Callable[[], tuple[str, bytes]]) -> tuple[tuple[str, bytes], float]:
    """With the seconds that it took of a processor."""
    start = time.thread_time()
    return make(), time.thread_time() - start


def refresh_pause(seconds: float, pages: int, addresses: int) -> float:
    """From one refresh of an address to the next, if one takes so many seconds of a processor, so many pages are open and so
    many addresses are refreshed.
    """
    return seconds / (_SHARE * min(1, _PAGES / max(1, pages)) / max(1, addresses))


class Asked:
    """A request, as the parts of a view read it."""

    def __init__(self, site: Site, request: Request, feed: ExperimentFeed | None) -> None:
        self.site = site
        self.query = request.query_params
        self.path = request.url.path
        self.feed = feed
        self.connection = site.source.connection
        self.experiment_id: str = request.path_params.get("experiment", "")
        self.trial_id: str = request.path_params.get("trial", "")

    @property
    def name(self) -> str:
        return f"experiments/{self.experiment_id}"

    def number(self, name: str, default: int | None = None) -> int | None:
        """UsageError for what is no number from 0."""
        text = self.query.get(name, "")
        if not text:
            return default
        if not (text.isascii() and text.isdigit() and len(text) < 16):
            raise UsageError(f"{name}: got {text!r}, expected a whole number")
        return int(text)

    @cached_property
    def experiment(self) -> experiment_service_pb2.Experiment:
        return names.get_experiment(self.connection, self.name)

    @cached_property
    def trial(self) -> Trial:
        request = experiment_service_pb2.GetTrialRequest(name=f"{self.name}/trials/{self.trial_id}")
        return self.connection.call(request, experiment_service_pb2.Trial)

    @cached_property
    def summary(self) -> queries.Summary:
        return queries.summary(self.connection, self.name, with_lengths=True, select=self.select)

    def trials(self) -> list[Trial]:
        if self.trial_id:
            return [self.trial]
        assert self.feed is not None
        return self.site.trials(self.feed)

    def filter(self) -> TrialFilter:
        labels = self.query.getlist
        try:
            rates = list(map(float, labels("rate")))
        except ValueError:
            raise UsageError(f"rate: got {labels('rate')}, expected numbers") from None
        return TrialFilter(labels("task"), labels("network"), labels("encoding"), rates)

    @property
    def select(self) -> str:
        """By which scores choices rank; empty: as the specification says. UsageError for another word."""
        text = self.query.get("select", "")
        if text not in ("", "seen", "unseen"):
            raise UsageError(f"select: got {text!r}, expected seen or unseen")
        return text

    def seeds(self) -> list[range]:
        """Of weights: "3", "0..9", or several of them."""
        found = re.findall(r"([0-9]{1,20})(?:\.\.([0-9]{1,20}))?", " ".join(self.query.getlist("seed")))
        return [range(int(first), int(last or first) + 1) for first, last in found]

    def plotted(self, with_finals: bool = False) -> PlottedExperiment:
        """`with_finals`: the final evaluations are read beside the trials; if that fails, when they are needed."""
        whole = PlottedExperiment(self.experiment_id, connection=self.connection, select=self.select)
        with ThreadPoolExecutor() as other:
            if with_finals and not self.trial_id:
                other.submit(whole.evaluations)
            whole.catalogue, whole.trials = self.site.catalogue, self.trials()
        return figures.choose(whole, self.filter(), self.seeds())

    def with_query(self, **changes: object) -> str:
        """This address with other values in its query; None leaves one out."""
        kept = [(name, value) for name, value in self.query.multi_items() if name not in changes and name != "part"]
        query = urlencode([*kept, *((name, value) for name, value in changes.items() if value is not None)])
        # Of an experiment's page, to the part that is sorted and has pages.
        return self.path + (f"?{query}" if query else "") + ("#trials" if self.experiment_id else "")


def best_unseen_accuracy(summary: queries.Summary) -> float | None:
    """Of the cell that is best by the rule of choices; None without one, for tasks compared by loss, and for several tasks,
    which a guess does not solve equally often.
    """
    ranked = [cell for cell in summary.cells if cell.selection.trials]
    if summary.heading.compared_by_loss or len({cell.task for cell in summary.cells}) > 1 or not ranked:
        return None
    best = max(ranked, key=lambda cell: queries.rank(cell.selection.mean, cell.selection_loss, cell.learning_rate))
    return best.unseen_accuracy.mean if best.unseen_accuracy.trials else None


class Site:
    """Answers requests. Reads of the server are on threads."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.feeds = Feeds(source)
        self._stopped = asyncio.Event()
        # By address.
        self._answers: dict[str, _Answer] = {}
        self._trials_lock = threading.Lock()
        # By experiment and its number of succeeded trials.
        self._best: dict[tuple[str, int], float | None] = {}
        # Kept, because a request that reads a file waits for several threads while another one makes a chart.
        own = [*(_HERE / "static").iterdir(), *Path(report.__file__).parent.glob("*.[cj]s*")]
        self._files = read_chart_files() | {path.name: path.read_bytes() for path in own}
        self._templates = report.environment(_HERE / "templates")
        self._templates.filters |= {
            "clock": lambda value: "" if value is None else format_clock(value),
            "count": format_count,
            "exact": format_exact,
            "percent": lambda value: "–" if value is None else f"{100 * value:.1f}",
            "label": label,
            "short": short_name,
            "state": partial(name_of, event_pb2.TrialState.DESCRIPTOR),
            "segment": lambda text: quote(text, safe=""),
            "time": lambda stamp: to_datetime(stamp).strftime("%Y-%m-%d %H:%M:%S UTC"),
        }
        # The first page does not wait for them to be compiled.
        for name in self._templates.list_templates():
            self._templates.get_template(name)

    def application(self) -> Starlette:
        experiment, trial = "/experiments/{experiment}", "/experiments/{experiment}/trials/{trial}"
        routes = [
            Route("/", partial(self._view, "experiments.html", views.EXPERIMENTS)),
            Route("/workers", partial(self._view, "workers.html", views.WORKERS)),
            Route("/events", self._events),
            Route("/static/{file}", self._static),
            Route(experiment, partial(self._view, "experiment.html", views.EXPERIMENT)),
            Route(f"{experiment}/events", self._events),
            Route(f"{experiment}/report.html", partial(self._file, views.report_file, "text/html")),
            Route(f"{experiment}/trials.csv", partial(self._file, views.trials_csv, "text/csv")),
            Route(trial, partial(self._view, "trial.html", views.TRIAL)),
        ]
        for subject in (experiment, trial):
            for kind, media in (("json", "application/json"), ("csv", "text/csv"), ("svg", "image/svg+xml")):
                answer = partial(self._file, partial(views.figure, kind), media)
                routes.append(Route(f"{subject}/figures/{{figure}}.{kind}", answer))

        return Starlette(routes=routes, exception_handlers={HTTPException: self._not_there})

    def stop(self) -> None:
        """Ends what would keep the process waiting: its pages, and answers of the server."""
        self._stopped.set()
        self.feeds.stop()
        self.source.close()

    # Of threads.

    @cached_property
    def catalogue(self) -> Catalogue:
        return catalogue.fetch(self.source.connection)

    def trials(self, feed: ExperimentFeed) -> list[Trial]:
        """In grid order, as they are now. Reads only those that changed since the last call."""
        connection = self.source.connection
        with self._trials_lock:
            is_noticed = feed.is_ready()
            known = {trial.name: trial for trial in feed.trials}
            changed = feed.take_changed_trials()
            if feed.fault or len(changed) > _MOST_SINGLE_READS or not changed <= known.keys():
                known = {}
            if known:
                counts = names.get_experiment(connection, feed.name).trials
                # `extend` adds trials, which the log names once they run.
                if len(known) != queries.ended_trials(counts) + queries.unended_trials(counts):
                    known = {}
            feed.trials = []
            for name in changed if known else ():
                request = experiment_service_pb2.GetTrialRequest(name=name)
                known[name] = connection.call(request, experiment_service_pb2.Trial)
            found = list(known.values()) or names.list_trials(connection, feed.name)
            if is_noticed:
                feed.trials = found
            return found

    def best(self, experiment: experiment_service_pb2.Experiment) -> float | None:
        """As `best_unseen_accuracy`, asked for once."""
        key = experiment.name, experiment.trials.succeeded
        if key[1] and key not in self._best:
            self._best[key] = best_unseen_accuracy(queries.summary(self.source.connection, experiment.name))
        return self._best.get(key)

    # Of the event loop.

    async def _asked(self, request: Request) -> Asked:
        identifier = request.path_params.get("experiment")
        feed = self.feeds.experiment(f"experiments/{identifier}") if identifier is not None else None
        if feed is not None:
            await feed.ready()
        return Asked(self, request, feed)

    def _begin(self, key: str, make: Callable[[], tuple[str, bytes]]) -> None:
        """Makes an answer while the browser still reads the page that will ask for it."""
        answer = self._answers.setdefault(key, _Answer())
        answer.needed_since = time.monotonic()

        async def begin() -> None:
            with contextlib.suppress(LengthwiseError):
                await self._answer(key, make, keep=_BEGUN_SECONDS)
            answer.needed_since = math.inf

        answer.maker = asyncio.create_task(begin())

    async def _answer(
        self, key: str, make: Callable[[], tuple[str, bytes]], refresh: bool = False, keep: float = 0
    ) -> tuple[str, bytes]:
        """The name and bytes of the answer to an address. Pages that wait for the same one share it."""
        answer = self._answers.setdefault(key, _Answer())
        # A page is told what has changed since it was asked for.
        good_since = time.monotonic() if refresh else min(time.monotonic(), answer.needed_since)
        answer.users += 1
        try:
            async with answer.lock:
                if answer.began < good_since:
                    if refresh:
                        addresses = sum(one.users > 0 for one in self._answers.values())
                        pause = refresh_pause(answer.seconds, self.feeds.pages, addresses)
                        with contextlib.suppress(asyncio.TimeoutError):
                            await asyncio.wait_for(self._stopped.wait(), answer.began + pause - time.monotonic())
                    began = time.monotonic()
                    answer.response, seconds = await asyncio.to_thread(_timed, make)
                    answer.began, answer.seconds = began, seconds + answer.users * _SENDING_SECONDS
                response = answer.response
            await asyncio.sleep(keep)
            return response
        finally:
            answer.users -= 1
            if not answer.users:
                # Only when it was asked for is kept.
                answer.response = ("", b"")
                for old in list(self._answers)[:-_KEPT_ADDRESSES]:
                    if not self._answers[old].users:
                        del self._answers[old]

    async def _view(self, template: str, parts: dict[str, tuple[views.Part, bool]], request: Request) -> Response:
        """The whole page, or with `part` in the query one part of it."""
        asked = await self._asked(request)
        wanted = asked.query.get("part")
        if wanted is not None and wanted not in parts:
            raise HTTPException(404)
        position = asked.feed.position if asked.feed is not None else 0

        def make() -> tuple[str, bytes]:
            context: dict[str, Any] = {"asked": asked, "parts": parts, "position": position, "all_states": views.STATES}
            for name, (part, is_lazy) in parts.items():
                if name == wanted or (wanted is None and not is_lazy):
                    context[name] = part(asked)
            loaded = self._templates.get_template(template)
            if wanted is None:
                return "", loaded.render(context, version=__version__).encode()
            return "", "".join(loaded.blocks[wanted](loaded.new_context(context))).encode()

        if wanted is None and parts is views.EXPERIMENT:
            chart = str(request.url.replace(path=f"{asked.path}/figures/{_FIRST_CHART}.json"))
            self._begin(chart, partial(views.figure, "json", asked, _FIRST_CHART))
        try:
            _, body = await self._answer(str(request.url), make, "x-refresh" in request.headers)
        except LengthwiseError as error:
            return self._failure(error, whole=wanted is None)
        return HTMLResponse(body, headers={"Cache-Control": "no-store"})

    def _failure(self, error: LengthwiseError, whole: bool = True) -> Response:
        codes = {"NOT_FOUND": 404, "INVALID_ARGUMENT": 400, "PERMISSION_DENIED": 403, "UNAUTHENTICATED": 403}
        # page.js asks again after 503.
        code = 503 if error.code in _AWAY else codes.get(error.code.name, 409)
        text = self._templates.get_template("error.html").render(message=str(error), whole=whole)
        return HTMLResponse(text, code, {"Cache-Control": "no-store"})

    async def _not_there(self, request: Request, error: Exception) -> Response:
        return self._failure(NotFoundError(f"there is no page {request.url.path}", code=grpc.StatusCode.NOT_FOUND))

    async def _file(self, make: Callable[[Asked], tuple[str, bytes]], media: str, request: Request) -> Response:
        asked = await self._asked(request)
        asked_for = {name: value for name, value in request.path_params.items() if name == "figure"}
        try:
            name, body = await self._answer(
                str(request.url), lambda: make(asked, **asked_for), "x-refresh" in request.headers
            )
        except LengthwiseError as error:
            if media != "application/json":
                return self._failure(error)
            # A chart shows why there is none.
            return Response(json.dumps({"message": str(error)}), 503 if error.code in _AWAY else 200, media_type=media)
        headers = {"Cache-Control": "no-store"}
        if name:
            headers["Content-Disposition"] = f'attachment; filename="{name}"'
        return Response(body, media_type=media, headers=headers)

    async def _events(self, request: Request) -> Response:
        asked = await self._asked(request)
        feed = asked.feed or self.feeds.overview()
        text = request.headers.get("last-event-id") or request.query_params.get("after", "")
        after = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else -1
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(feed.messages(after), media_type="text/event-stream", headers=headers)

    async def _static(self, request: Request) -> Response:
        body = self._files.get(request.path_params["file"])
        if body is None:
            raise HTTPException(404)
        kind = "css" if request.url.path.endswith(".css") else "javascript"
        return Response(body, media_type=f"text/{kind}", headers={"Cache-Control": "max-age=300"})
