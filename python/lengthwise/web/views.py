"""What the views show: for each of its parts, a function from a request to what the part's template takes."""
from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from lengthwise import accuracy_table, comparison, names, plots, queries, report
from lengthwise._proto import event_pb2, experiment_service_pb2, fleet_service_pb2
from lengthwise.events import name_of, to_datetime
from lengthwise.message_json import as_dictionary
from lengthwise.names import label, short_name
from lengthwise.plots import drawing, numbers, style
from lengthwise.plots.attention import records_attention
from lengthwise.plots.data import Trial, has_ended
from lengthwise.plots.options import Options
from lengthwise.rendering import Records, format_count, format_exact
from lengthwise.report.attention_maps import maps_for_viewer
from lengthwise.web import figures

if TYPE_CHECKING:
    from lengthwise.web.pages import Asked

_ROWS = 100
_LOG_LINES = 500
STATES = ("QUEUED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED")

# A function of the request, and whether the page is sent without the part, to ask for it then.
Part = Callable[["Asked"], dict[str, Any]]


def _page(asked: Asked, rows: list[Any], total: int) -> dict[str, Any]:
    """Those of the page that the query names, with what leads to the others. `rows` begin with the first of `total`."""
    last = max(0, -(-total // _ROWS) - 1)
    page = min(asked.number("page", 0) or 0, last)
    shown = rows[page * _ROWS : (page + 1) * _ROWS]
    return {"rows": shown, "total": total, "page": page, "last": last, "first": page * _ROWS}


def _sorted(asked: Asked, rows: list[dict[str, Any]], default: str) -> list[dict[str, Any]]:
    """By the column that the query names, "-" before it for descending. Rows without a value come last."""
    text = asked.query.get("sort", default)
    column, descends = text.lstrip("-"), text.startswith("-")
    if not rows or column not in rows[0]:
        return rows
    with_value = [row for row in rows if row[column] is not None]
    return [
        *sorted(with_value, key=lambda row: row[column], reverse=descends),
        *(row for row in rows if row[column] is None),
    ]


def _counts(one: experiment_service_pb2.Experiment) -> dict[str, Any]:
    """Its trials: how many in which states, in all, and ended."""
    counts = {state: getattr(one.trials, state.lower()) for state in STATES}
    return {
        "states": {state: count for state, count in counts.items() if count},
        "trials": sum(counts.values()),
        "ended": sum(counts[state] for state in ("SUCCEEDED", "FAILED", "CANCELLED")),
    }


def _experiments(asked: Asked) -> dict[str, Any]:
    site, wanted, text = asked.site, asked.query.get("state", ""), asked.query.get("q", "").lower()
    now = datetime.now(timezone.utc)
    rows = []
    for one in names.list_experiments(asked.connection):
        counts = _counts(one)
        described = f"{one.name} {one.owner} {one.specification.description}".lower()
        if text not in described or (wanted and wanted not in counts["states"]):
            continue
        rows.append(
            {
                "name": short_name(one.name),
                "owner": one.owner,
                "description": one.specification.description,
                **counts,
                "age": (now - to_datetime(one.create_time)).total_seconds(),
                "message": one,
            }
        )
    if asked.query.get("sort", "").lstrip("-") == "best":
        for row in rows:
            row["best"] = site.best(row["message"])
    page = _page(asked, _sorted(asked, rows, "age"), len(rows))
    for row in page["rows"]:
        row["best"] = site.best(row["message"])
    return page | {"empty": not rows and not text and not wanted}


def _summary(asked: Asked) -> dict[str, Any]:
    return {"message": asked.experiment, **_counts(asked.experiment)}


def _choices(asked: Asked) -> dict[str, Any]:
    """What the trials differ in, to choose from."""
    cells, grid = asked.summary.cells, asked.experiment.specification
    found = {
        "task": [one.task for one in cells],
        "network": [one.network for one in cells],
        "encoding": [one.encoding for one in cells],
        "rate": [format_exact(one.learning_rate) for one in cells],
        "seed": list(map(str, grid.weight_seeds or grid.seeds)),
    }
    kinds = {kind: list(dict.fromkeys(values)) for kind, values in found.items()}
    return {
        "kinds": {kind: values for kind, values in kinds.items() if len(values) > 1},
        "chosen": {kind: asked.query.getlist(kind) for kind in (*kinds, "select")},
        "rule": grid.evaluation.select or "seen",
        "intervals": grid.evaluation.every_steps > 0,
    }


def _results(asked: Asked) -> dict[str, Any]:
    filter, summary = asked.filter(), asked.summary
    tasks = {label(task): task for task in asked.experiment.specification.tasks}

    def is_chosen(row: accuracy_table.Row) -> bool:
        pairs = ((filter.tasks, row.task), (filter.networks, row.network), (filter.encodings, row.encoding))
        return all(not wanted or value in wanted for wanted, value in pairs) and (
            not filter.learning_rates or row.learning_rate in filter.learning_rates
        )

    rows = [
        {
            "of": row,
            "seen": accuracy_table.format_score(summary, accuracy_table.mean_of(summary, "seen")(row)),
            "unseen": accuracy_table.format_score(summary, accuracy_table.mean_of(summary, "unseen")(row)),
            "deviation": accuracy_table.unseen_deviation(summary, row),
            "chance": asked.site.catalogue.random_accuracy(tasks[row.task]) if row.task in tasks else None,
        }
        for row in accuracy_table.rows_of(summary)
        if is_chosen(row)
    ]
    return {
        "caption": summary.heading.caption,
        "rows": rows,
        "by_length": Markup(accuracy_table.as_table(summary, 130).render_html()),
    }


def _published(asked: Asked) -> dict[str, Any]:
    found = comparison.fetch_all(asked.connection, asked.experiment, asked.select)
    return {"tables": list(map(report.beside_table, found))}


def _heat(asked: Asked) -> dict[str, Any]:
    shown = figures.heat_maps(asked.plotted(), asked.number("step"))
    return {"shown": shown, "place": shown.steps.index(shown.step) if shown.steps else 0}


def _trial_row(trial: Trial) -> dict[str, Any]:
    specification, outcome = trial.specification, trial.outcome
    ended = trial.HasField("outcome")
    return {
        "index": trial.index,
        "id": short_name(trial.name),
        "task": label(specification.task),
        "network": label(specification.network),
        "encoding": label(specification.encoding),
        "rate": specification.learning_rate,
        "seed": specification.weight_seed,
        "state": name_of(event_pb2.TrialState.DESCRIPTOR, trial.state),
        "reason": trial.reason,
        "attempts": trial.attempt,
        "worker": trial.worker,
        "seen": outcome.seen_accuracy if ended and outcome.seen_accuracy >= 0 else None,
        "unseen": outcome.unseen_accuracy if ended and outcome.unseen_accuracy >= 0 else None,
        "seconds": outcome.training_seconds if ended else None,
        "steps": specification.training.steps,
    }


def _trials(asked: Asked) -> dict[str, Any]:
    if not any(map(asked.query.get, ("page", "sort", "state", "q", "task", "network", "encoding", "rate", "seed"))):
        # What is seen first does not wait for thousands of others.
        first = names.list_trials(asked.connection, asked.name, limit=_ROWS)
        return _page(asked, list(map(_trial_row, first)), _counts(asked.experiment)["trials"])
    wanted, text = asked.query.get("state", ""), asked.query.get("q", "").lower()
    rows = [
        row
        for row in map(_trial_row, asked.plotted().trials)
        if (not wanted or row["state"] == wanted) and text in f"{row['id']} {row['reason']} {row['worker']}".lower()
    ]
    return _page(asked, _sorted(asked, rows, "index"), len(rows))


def _about(asked: Asked) -> dict[str, Any]:
    experiment = asked.experiment
    specification = json.dumps(as_dictionary(experiment.specification), ensure_ascii=False, indent=1)
    provenance = report.setup_of(asked.trials())
    return {"specification": specification, "provenance": provenance}


def _trial(asked: Asked) -> dict[str, Any]:
    trial = asked.trial
    provenance = report.setup_of([trial])
    specification = json.dumps(as_dictionary(trial.specification), ensure_ascii=False, indent=1)
    is_best = any(cell.best_trial == asked.trial_id for cell in asked.summary.cells)
    return {
        "row": _trial_row(trial), "message": trial, "provenance": provenance, "specification": specification,
        "is_best": is_best, "intervals": trial.specification.evaluation.every_steps > 0,
    }  # fmt: skip


def _log(asked: Asked) -> dict[str, Any]:
    name = f"{asked.name}/trials/{asked.trial_id}"
    events = list(queries.stored_events(asked.connection, name, log_only=True))
    return {"events": events[-_LOG_LINES:], "left_out": max(0, len(events) - _LOG_LINES)}


def _attention(asked: Asked) -> dict[str, Any]:
    plotted = asked.plotted()
    return {
        "maps": maps_for_viewer(plotted, 8 << 20),
        "asked_for": any(map(records_attention, plotted.trials)),
        "has_ended": all(map(has_ended, plotted.trials)),
    }


def _answers(asked: Asked) -> dict[str, Any]:
    """What histories have of single sequences: answers, by length or of the user's own inputs, and accuracies."""
    events = asked.plotted().analyses()
    scores = [one.sequence_scores for one in events if one.HasField("sequence_scores")]
    answers: dict[str, list[dict[str, Any]]] = {}
    for one in (event.answer for event in events if event.HasField("answer")):
        title = "Inputs of your own" if one.input_number else f"Length {one.length}"
        given = [*one.given, *["_"] * (len(one.expected) - len(one.given))] if one.expected else one.given
        symbols = [(symbol, place in one.wrong) for place, symbol in enumerate(given)]
        answers.setdefault(title, []).append({"of": one, "symbols": symbols})
    return {"scores": [(one, sum(accuracy == 1 for accuracy in one.accuracies)) for one in scores], "answers": answers}


def _memory(one: fleet_service_pb2.Worker) -> str:
    """ "0.4 GB"; "1.2 GB, GPU 20.5 of 80.0 GB"; empty if it is not known."""
    process, used, total = (
        f"{size / 1e9:.1f}" if size else ""
        for size in (one.resident_memory_bytes, one.gpu_memory_used_bytes, one.gpu_memory_total_bytes)
    )
    return (f"{process} GB" if process else "") + (f", GPU {used or 0} of {total} GB" if total else "")


def _workers(asked: Asked) -> dict[str, Any]:
    fleet, call = fleet_service_pb2, asked.connection.call
    listed = call(fleet.ListWorkersRequest(), fleet.ListWorkersResponse)
    wanted = call(fleet.GetWantedWorkersRequest(), fleet.GetWantedWorkersResponse)
    now = time.time()
    waits = listed.queue_pause or (
        "for trials: none is queued"
        if not wanted.runnable_packs
        else f"{format_count(wanted.runnable_packs)} packs are ready, which it takes at its next request or may not take"
    )
    rows = []
    for one in listed.workers:
        free, busy = ("drained", "draining") if one.hold else ("idle", "busy")
        state = "stopped" if one.stopped else "lost" if not one.alive else busy if one.trials else free
        reason = {"idle": waits, "lost": "for its next heartbeat"}.get(state, one.hold)
        silent = max(0, now - one.last_heartbeat_time.seconds)
        rows.append({"message": one, "state": state, "waits": reason, "silent": silent, "memory": _memory(one)})
    return {"rows": rows, "wanted": wanted}


EXPERIMENTS: dict[str, tuple[Part, bool]] = {"experiments": (_experiments, False)}
WORKERS: dict[str, tuple[Part, bool]] = {"workers": (_workers, False)}
EXPERIMENT: dict[str, tuple[Part, bool]] = {
    "summary": (_summary, False),
    "choices": (_choices, False),
    "results": (_results, False),
    "published": (_published, True),
    "heat": (_heat, True),
    "trials": (_trials, False),
    "about": (_about, True),
}
TRIAL: dict[str, tuple[Part, bool]] = {
    "trial": (_trial, False),
    "attention": (_attention, False),
    "answers": (_answers, True),
    "log": (_log, True),
}


def figure(kind: str, asked: Asked, figure: str) -> tuple[str, bytes]:
    """A figure as a chart's data, as the numbers of `plot --data`, or as `plot` draws it."""
    query = asked.query
    given = Options(seeds=query.get("lines", ""), smooth=asked.number("smooth"), metric=query.get("metric", ""))
    # The choices of an address are those of all its charts.
    taken = plots.FIGURES[figure].options if figure in plots.FIGURES else ()
    options = Options(**{name: getattr(given, name) for name in taken})
    if figure == "loss_over_time" and asked.trial_id:
        picture = figures.loss_over_time(asked.connection, asked.trial)
    else:
        picture = plots.describe(figure, [asked.plotted(with_finals=figure == "accuracy_by_length")], options)
    if kind == "json":
        return "", numbers.to_json(picture).encode()
    name = f"{names.file_name(asked.trial_id or asked.experiment_id)}-{figure}.{kind}"
    if kind == "csv":
        return name, numbers.to_csv(picture).encode()
    return name, style.render(drawing.draw(picture), ".svg")


def report_file(asked: Asked) -> tuple[str, bytes]:
    experiment = asked.experiment
    page = report.render(report.fetch(asked.connection, experiment, select=asked.select))
    return names.file_name(experiment.name) + ".html", page.encode()


def trials_csv(asked: Asked) -> tuple[str, bytes]:
    rows = [_trial_row(trial) for trial in asked.plotted().trials]
    records = Records(list(rows[0]) if rows else [], [list(row.values()) for row in rows])
    out = io.StringIO()
    records.write_csv(out)
    return names.file_name(asked.name) + "-trials.csv", out.getvalue().encode()
