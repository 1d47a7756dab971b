"""A report: one HTML file that needs nothing else, for a colleague who has neither the server nor the program."""
from __future__ import annotations

import base64
import contextlib
import hashlib
import itertools
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import grpc
import jinja2
from google.protobuf.timestamp_pb2 import Timestamp
from markupsafe import Markup
from matplotlib.figure import Figure

from lengthwise import accuracy_table, comparison, comparison_display, events, plots, published, queries
from lengthwise._proto import event_pb2, experiment_service_pb2
from lengthwise.accuracy_table import rows_of
from lengthwise.comparison import Comparison
from lengthwise.connection import Connection
from lengthwise.errors import LengthwiseError, NothingChoosesError, UsageError
from lengthwise.message_json import as_dictionary
from lengthwise.names import file_name, get_experiment, short_name
from lengthwise.plots import data as plot_data
from lengthwise.plots import drawing, numbers, style
from lengthwise.plots.data import PlottedExperiment
from lengthwise.plots.groups import group_trials
from lengthwise.plots.panels import choice_of
from lengthwise.plots.picture import Picture
from lengthwise.printable import printable_text
from lengthwise.queries import Summary
from lengthwise.rendering import counted, format_clock, format_count
from lengthwise.report.attention_maps import MapsForViewer, maps_for_viewer
from lengthwise.user_file import check_writable, write_for_user
from lengthwise.version import __version__

_HERE = Path(__file__).parent
# Columns of the accuracy table, as characters of a terminal, and of the one that phones show first.
_TABLE_WIDTH = 130
_PHONE_TABLE_WIDTH = 44
_MOST_FAILURES = 50
# Beyond this a figure is a picture of points: a browser is slow to draw it otherwise.
_MOST_SVG_BYTES = 1 << 20
# Scale of a figure on a desktop: its text, 8 points for papers, becomes about as large as the report's captions.
_PIXELS_PER_INCH = 125
# Figures for phones: width in 1/100 inch, and most panels in one column; more panels take two columns.
_PHONE_WIDTH = 380
_MOST_PHONE_ROWS = 4


@dataclass
class ReportData:
    """The data of a report."""

    experiment: experiment_service_pb2.Experiment
    summary: Summary
    plotted: PlottedExperiment
    # Beside the published tables that some of its trials belong to.
    comparisons: list[Comparison] = field(default_factory=list)


def fetch(
    connection: Connection, experiment: experiment_service_pb2.Experiment, tables: Sequence[str] = (), select: str = ""
) -> ReportData:
    """The published tables are those whose keys are given; with none, all of the experiment's protocol of which a cell was
    run. Errors are the server's, and INVALID_ARGUMENT for a key that there is not.
    """
    # A wrong key is told before anything is asked for.
    wanted = [published.find(key) for key in tables]
    # The listing that a short name was found in leaves out what only this call tells.
    whole = get_experiment(connection, experiment.name)
    comparisons = [comparison.fetch(connection, whole, table, select=select) for table in wanted]
    if not wanted:
        # The report says in place of its figures why nothing chooses.
        with contextlib.suppress(NothingChoosesError):
            comparisons = comparison.fetch_all(connection, whole, select)
    return ReportData(
        experiment=whole,
        summary=queries.summary(connection, whole.name, with_lengths=True, select=select),
        plotted=plot_data.fetch(connection, [whole.name], select=select)[0],
        comparisons=comparisons,
    )


def write(
    connection: Connection,
    experiment: experiment_service_pb2.Experiment,
    path: str | os.PathLike[str] | None = None,
    tables: Sequence[str] = (),
    select: str = "",
) -> Path:
    """Writes the report and returns its path. Default: the experiment's name and ".html" in the current directory."""
    target = Path(file_name(experiment.name) + ".html" if path is None else path)
    check_writable(target)
    write_for_user(target, render(fetch(connection, experiment, tables, select)).encode())
    return target


def environment(folder: Path) -> jinja2.Environment:
    """Of templates that take others' text: it is escaped, and its control characters are written out."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_printable,
    )


def template(name: str) -> jinja2.Template:
    """A page of this folder, with the style of reports."""
    sheet = _asset("report.css")
    return environment(_HERE).get_template(name, globals={"style": Markup(sheet), "style_hash": _hash(sheet)})


def render(
    data: ReportData, now: datetime | None = None, max_attention_bytes: int = 8 << 20, *, dated: bool = True
) -> str:
    """HTML in UTF-8. A section that has nothing to show is left out.

    `now` is printed in it, unless it is not `dated`. Attention maps are shown up to `max_attention_bytes` of probabilities;
    what is beyond is left out, and the report says so.
    """
    script = _asset("attention_viewer.js")
    unchosen = ""
    try:
        maps = maps_for_viewer(data.plotted, max_attention_bytes)
    except UsageError as error:
        maps, unchosen = MapsForViewer(Markup("[]"), 0, 0), f"No maps: {error}."
    failures = _failures(data.plotted.trials)
    figures = {name: _figures(data.plotted, names) for name, names in _FIGURES.items()}
    summary, heading = data.summary, data.summary.heading
    sections = {
        "accuracy": f"{'Error' if heading.compared_by_loss else 'Accuracy'} by {heading.axis_title}",
        "published": "Beside published numbers" if data.comparisons else "",
        "loss": "Training loss" if figures["loss"] else "",
        "attention": "Attention" if maps.maps or maps.left_out or unchosen else "",
        "projections": "Activations in two dimensions" if figures["projections"] else "",
        "failures": "Failures" if failures else "",
        "setup": "What was run, and on what",
    }
    return template("report.html").render(
        name=short_name(data.experiment.name),
        script=Markup(script),
        script_hash=_hash(script),
        description=data.experiment.specification.description,
        facts=_facts(data),
        made=_minute(now or datetime.now(timezone.utc)) if dated else "",
        version=__version__,
        sections={identifier: title for identifier, title in sections.items() if title},
        caption=heading.caption,
        missing=_missing(data.experiment.trials),
        # A phone may break a name after its underscores.
        tables=[
            Markup(accuracy_table.as_table(summary, width).render_html().replace("_", "_<wbr>"))
            for width in (_PHONE_TABLE_WIDTH, _TABLE_WIDTH)
            if rows_of(summary)
        ],
        figures=figures,
        comparisons=list(map(beside_table, data.comparisons)),
        maps=maps,
        left_out=unchosen or _left_out(maps.left_out),
        choice=choice_of(group_trials([data.plotted])),
        guess=heading.random_guess,
        failures=failures,
        setup=setup_of(data.plotted.trials),
        specification=json.dumps(as_dictionary(data.experiment.specification), ensure_ascii=False, indent=1),
    )


# The figures of each section, by plots' names; what was not recorded for one leaves it out.
_FIGURES = {
    "accuracy": ["accuracy_by_length", "accuracy_over_time"],
    "loss": ["loss"],
    "projections": ["projection"],
}


def _asset(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """As a content security policy names what it allows."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _printable(value: Any) -> Any:
    """Control characters of others' text are written out; markup is made of such text."""
    return printable_text(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _minute(time: datetime) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC")


def _stamp(time: Timestamp) -> str:
    return _minute(events.to_datetime(time))


def _facts(data: ReportData) -> dict[str, str]:
    """Without those that are empty."""
    experiment = data.experiment
    seconds = sum(
        trial.outcome.training_seconds + trial.outcome.evaluation_seconds for trial in data.plotted.trials
    )
    counts = experiment.trials
    by_state = [
        (counts.running, "running"), (counts.queued, "queued"), (counts.succeeded, "done"), (counts.failed, "failed"),
        (counts.cancelled, "cancelled"),
    ]  # fmt: skip
    facts = {
        "trials": ", ".join(f"{format_count(count)} {state}" for count, state in by_state if count) or "no trials",
        "owner": experiment.owner,
        "protocol": experiment.specification.protocol,
        "submitted": _stamp(experiment.create_time),
        "ended": _stamp(experiment.end_time) if experiment.HasField("end_time") else "",
        "training and evaluation": (
            f"{format_clock(seconds)}, summed over trials; each member of a pack counts the time of the whole pack"
            if seconds > 0
            else ""
        ),
    }
    return {name: value for name, value in facts.items() if value}


def _missing(counts: experiment_service_pb2.TrialCounts) -> str:
    missing = queries.unended_trials(counts) + counts.failed + counts.cancelled
    if missing == 0:
        return ""
    return f"{counted(missing, 'trial that has not succeeded is', 'trials that have not succeeded are')} not in it."


def _left_out(maps: int) -> str:
    if maps == 0:
        return ""
    return (
        f"{counted(maps, 'map is', 'maps are')} left out, because this file would be too large; `lengthwise attention` "
        f"shows {'it' if maps == 1 else 'them'}."
    )


def beside_table(one: Comparison) -> dict[str, Any]:
    """A comparison for a template."""
    return {
        "heading": comparison_display.heading(one),
        "table": Markup(comparison_display.html_table(one)),
        "remarks": comparison_display.remarks(one, "bold", True),
    }


@dataclass(frozen=True)
class _Image:
    """A figure as the report shows it. The sources are data: URLs: identifiers and styles of a figure are its own, and
    nothing in it runs.
    """

    title: str
    caption: str
    # CSS pixels.
    width: int
    source: str
    # For narrow screens: fewer panels a row, and text of the same size.
    phone_source: str


@dataclass(frozen=True)
class _Figures:
    images: list[_Image] = field(default_factory=list)
    # Why a figure is not there that the experiment has numbers for.
    remarks: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.images or self.remarks)


def _pictures(experiment: PlottedExperiment, names: Iterable[str], remarks: list[str]) -> Iterator[tuple[str, Picture]]:
    """Of these figures by name. What was not recorded is left out; what cannot be drawn adds the reason to `remarks`."""
    for name in names:
        try:
            yield name, plots.describe(name, [experiment])
        except LengthwiseError as error:
            if error.code is grpc.StatusCode.INVALID_ARGUMENT:
                # It says by which options fewer trials are drawn.
                remarks.append(f"Not drawn here: {error} of `lengthwise plot {experiment.name} --figure {name}`.")
            elif error.code is not grpc.StatusCode.FAILED_PRECONDITION:
                raise


def _figures(experiment: PlottedExperiment, names: Sequence[str]) -> _Figures:
    found = _Figures()
    for _, picture in _pictures(experiment, names, found.remarks):
        wide = drawing.draw(picture, decorated=False)
        phone = replace(picture, columns=min(picture.columns, 1 if len(picture.panels) <= _MOST_PHONE_ROWS else 2))
        found.images.append(
            _Image(
                picture.title,
                f"{picture.caption} {picture.band_caption}".strip(),
                round(_PIXELS_PER_INCH * wide.get_figwidth()),
                _source(wide),
                _source(drawing.draw(phone, size=drawing.Size(width=_PHONE_WIDTH), decorated=False)),
            )
        )
    return found


def figure_files(experiment: PlottedExperiment) -> tuple[dict[str, tuple[str, str]], list[str]]:
    """The report's figures by name, as SVG, each with what it draws as CSV; and the remarks of `_pictures`."""
    remarks: list[str] = []
    pictures = _pictures(experiment, itertools.chain(*_FIGURES.values()), remarks)
    found = {
        name: (style.render(drawing.draw(one), ".svg").decode(), numbers.to_csv(one)) for name, one in pictures
    }
    return found, remarks


def _source(figure: Figure) -> str:
    kind, data = "svg+xml", style.render(figure, ".svg")
    if len(data) > _MOST_SVG_BYTES:
        kind, data = "png", style.render(figure, ".png")
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def _failures(trials: Sequence[experiment_service_pb2.Trial]) -> list[tuple[str, str]]:
    """Reasons, each with its trials."""
    by_reason: dict[str, list[str]] = {}
    for trial in trials:
        if trial.state == event_pb2.FAILED:
            by_reason.setdefault(trial.reason, []).append(short_name(trial.name))
    found = []
    for reason, names in sorted(by_reason.items()):
        more = f" and {len(names) - _MOST_FAILURES} more" if len(names) > _MOST_FAILURES else ""
        found.append((reason, ", ".join(names[:_MOST_FAILURES]) + more))
    return found


def setup_of(trials: Sequence[experiment_service_pb2.Trial]) -> dict[str, str]:
    """The machines and programs that trained them."""
    provenances = [trial.outcome.provenance for trial in trials if trial.outcome.HasField("provenance")]
    machines = {
        f"{one.device} {one.instruction_set}, {counted(one.threads, 'thread')}, host {one.host}" for one in provenances
    }
    programs = {
        f"lengthwise {one.program_version} {one.source_revision}, LibTorch {one.libtorch_version}"
        + (f", CUDA {one.cuda_version}" if one.cuda_version else "")
        for one in provenances
    }
    setup = {"ran on": "; ".join(sorted(machines)), "with": "; ".join(sorted(programs))}
    return {name: value for name, value in setup.items() if value}
