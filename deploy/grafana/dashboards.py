#!/usr/bin/env python3
"""Defines the Grafana dashboards and writes them to dashboards/*.json. With --check, fails if the files differ.

Needs grafana-foundation-sdk (tests/python/requirements.txt). METRICS.md explains the metrics. After a change, run this with
~/.cache/lengthwise/test-tools/bin/python and `bazel test //tests/monitoring/...`, which runs every query against a real
Prometheus.
"""

import json
import pathlib
import sys

from grafana_foundation_sdk.builders import bargauge, common, heatmap, prometheus, stat, timeseries
from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.builders import table as tables
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as values
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat, QueryEditorMode

DATASOURCE = model.DataSourceRef(type_val="prometheus", uid="${datasource}")


def query(expr, legend="__auto", *, instant=False, form="time_series"):
    """A PromQL query; `legend` names series by labels: "{{worker}}". `form`: time_series, heatmap or table (instant)."""
    one = prometheus.Dataquery().datasource(DATASOURCE).editor_mode(QueryEditorMode.CODE)
    one = one.expr(" ".join(expr.split())).legend_format(legend).format(PromQueryFormat(form))
    return one.instant() if instant or form == "table" else one.range()


def rate_by(label, counter, chosen):
    """What a counter grows a second, a series for each value of a label. `chosen`: matchers of labels, such as SERVER."""
    return query(f"sum by ({label}) (rate({counter}{{{chosen}}}{RATE}))", f"{{{{{label}}}}}")


def _panel(panel, title, description, queries, unit, width, height):
    for number, one in enumerate(queries):
        panel = panel.with_target(one.ref_id(chr(ord("A") + number)))
    return panel.title(title).description(description).datasource(DATASOURCE).unit(unit).span(width).height(height)


def graph(title, description, *queries, unit="short", width=8, stacked=False, maximum=None, height=8, logarithmic=False):
    """Lines over time."""
    panel = _panel(timeseries.Panel(), title, description, queries, unit, width, height)
    panel = panel.line_width(1).fill_opacity(25 if stacked else 0).show_points(values.VisibilityMode.NEVER)
    panel = panel.legend(common.VizLegendOptions().show_legend(True))
    panel = panel.tooltip(common.VizTooltipOptions().mode(values.TooltipDisplayMode.MULTI).sort(values.SortOrder.DESCENDING))
    if stacked:
        panel = panel.stacking(common.StackingConfig().mode(values.StackingMode.NORMAL).group("A"))
    if maximum is not None:
        panel = panel.max(maximum)
    if logarithmic:
        return panel.scale_distribution(common.ScaleDistributionConfig().type(values.ScaleDistribution.LOG).log(10))
    return panel.min(0)


def _newest():
    return common.ReduceDataOptions().calcs(["lastNotNull"])


def number(title, description, one, *, unit="short", width=4, height=4, thresholds=None):
    """The newest value, large. `thresholds`: pairs of a color and the value from which it holds, the first for all."""
    steps = [model.Threshold(color=color, value=value) for color, value in thresholds or [("text", None)]]
    panel = _panel(stat.Panel(), title, description, [one], unit, width, height).reduce_options(_newest())
    return panel.thresholds(builders.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(steps))


def bars(title, description, one, *, unit="percentunit", width=8, height=8, maximum=1):
    """A bar for each series, with its newest value."""
    panel = _panel(bargauge.Panel(), title, description, [one], unit, width, height).reduce_options(_newest())
    panel = panel.min(0).max(maximum).orientation(values.VizOrientation.HORIZONTAL)
    return panel.color_scheme(builders.FieldColor().mode(model.FieldColorModeId.CONTINUOUS_BL_PU))


def heat_map(title, description, one, *, unit, cell_unit, width=12, height=10, cell_maximum=None):
    """Time from left to right; a row for each series, or for each bucket of a histogram (form="heatmap")."""
    color = heatmap.HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme("Viridis").steps(64)
    if cell_maximum is not None:
        color = color.min(0).max(cell_maximum)
    panel = _panel(heatmap.Panel(), title, description, [one], unit, width, height).color(color)
    return panel.cell_values(heatmap.CellValues().unit(cell_unit)).y_axis(heatmap.YAxisConfig().unit(unit))


def table(title, description, *queries, columns, units=None, links=None, width=24, height=8, sort_by=None):
    """A row for each series, newest values. `columns`: what each field is called, in this order; others are hidden. The
    value of the only query is the field Value, of several Value #A, Value #B, ..., joined by their common labels. `links`:
    where a click on a field leads."""
    panel = _panel(tables.Panel(), title, description, queries, "none", width, height).show_header(True)
    shown = {"indexByName": {name: i for i, name in enumerate(columns)}, "renameByName": columns, "excludeByName": {}}
    steps = [("merge", {})] if len(queries) > 1 else []
    for step, options in steps + [("filterFieldsByName", {"include": {"names": list(columns)}}), ("organize", shown)]:
        panel = panel.with_transformation(model.DataTransformerConfig(id_val=step, options=options))
    for name, unit in (units or {}).items():
        panel = panel.override_by_name(name, [model.DynamicConfigValue(id_val="unit", value=unit)])
    for name, (text, url) in (links or {}).items():
        panel = panel.override_by_name(name, [model.DynamicConfigValue(id_val="links", value=[{"title": text, "url": url}])])
    return panel.sort_by([common.TableSortByFieldState().display_name(sort_by)]) if sort_by else panel


def variable(name, label, chosen_from, *, several=False):
    """Chosen by the reader among the values of a query, such as label_values(up, instance)."""
    one = builders.QueryVariable(name).label(label).datasource(DATASOURCE)
    one = one.query({"query": chosen_from, "refId": f"variable-{name}"})
    # What runs changes with the time range.
    one = one.refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(model.VariableSort.ALPHABETICAL_ASC)
    if not several:
        return one
    everything = model.VariableOption(selected=True, text=["All"], value=["$__all"])
    return one.multi(True).include_all(True).all_value(".*").current(everything)


def dashboard(uid, title, description, rows, *, variables=()):
    """`rows`: pairs of a heading and its panels; a heading "" gives none."""
    one = builders.Dashboard(title).uid(uid).description(description).tags(["lengthwise"]).version(1).editable()
    one = one.time("now-1h", "now").refresh("10s").timezone("browser").tooltip(model.DashboardCursorSync.CROSSHAIR)
    one = one.link(builders.DashboardLink("Lengthwise").type(model.DashboardLinkType.DASHBOARDS).tags(["lengthwise"])
                   .include_vars(True).keep_time(True))
    restarts = 'changes(process_start_time_seconds{job="lengthwise", instance=~"$instance"}[$__interval]) > 0'
    one = one.annotation(builders.AnnotationQuery().name("Server restarts").enable(True).icon_color("orange")
                         .datasource(DATASOURCE).expr(restarts))
    one = one.with_variable(builders.DatasourceVariable("datasource").label("Data source").type("prometheus"))
    one = one.with_variable(variable("instance", "Server", 'label_values(lengthwise_trials{job="lengthwise"}, instance)',
                                     several=True))
    for chosen in variables:
        one = one.with_variable(chosen)
    for heading, panels in rows:
        if heading:
            one = one.with_row(builders.Row(heading))
        for panel in panels:
            one = one.with_panel(panel)
    built = one.build()
    for i, panel in enumerate(built.panels):
        panel.id_val = i + 1
    return built


# Selects the chosen servers. Only the server's job, because a worker that is scraped directly would count twice.
SERVER = 'job="lengthwise", instance=~"$instance"'
WORKER = SERVER + ', worker=~"$worker"'
TRIAL = SERVER + ', experiment=~"$experiment", trial=~"$trial"'
RATE = "[$__rate_interval]"
ERRORS = [("green", None), ("red", 1)]

overview = dashboard(
    "lengthwise-overview", "Lengthwise: overview",
    "Work in progress, speed and failures. The links above lead to the other dashboards.",
    [
        ("", [
            number("Running", "Trials in training or evaluation.",
                   query(f'sum(lengthwise_trials{{{SERVER}, state="running"}})'), width=3),
            number("Queued", "Trials waiting for a worker.",
                   query(f'sum(lengthwise_trials{{{SERVER}, state="queued"}})'), width=3),
            number("Succeeded", "Succeeded trials of all existing experiments.",
                   query(f'sum(lengthwise_trials{{{SERVER}, state="succeeded"}})'), width=3),
            number("Failed", "Failed trials of all existing experiments. `lengthwise retry` requeues them.",
                   query(f'sum(lengthwise_trials{{{SERVER}, state="failed"}})'), width=3, thresholds=ERRORS),
            number("Workers", "Workers with a heartbeat within the last lease duration.",
                   query(f"sum(lengthwise_workers_alive{{{SERVER}}})"), width=3, thresholds=[("red", None), ("green", 1)]),
            number("Model steps a second", "Training steps of models per second, over all workers.",
                   query(f'sum(instance:lengthwise_worker_model_steps:rate1m{{instance=~"$instance"}})'), unit="none",
                   width=3),
            number("Oldest queued", "Time that the oldest queued trial has waited.",
                   query(f"max(lengthwise_queue_oldest_seconds{{{SERVER}}})"), unit="s", width=3),
            number("Alerts", "Firing alerts of deploy/prometheus/alerts.yml.",
                   query('count(ALERTS{alertname=~"Lengthwise.*", alertstate="firing"}) or vector(0)'), width=3,
                   thresholds=ERRORS),
        ]),
        ("Work", [
            graph("Queued and running trials", "If the queue grows while workers are busy, there is more work than workers.",
                  query(f'sum by (state) (lengthwise_trials{{{SERVER}, state=~"queued|running"}})', "{{state}}"), width=12,
                  stacked=True),
            graph("Trials that ended, an hour", "Throughput, by outcome.",
                  query(f"3600 * sum by (decision) (rate(lengthwise_decisions_total{{{SERVER}, "
                        f'decision=~"trial_(succeeded|failed|cancelled)"}}{RATE}))', "{{decision}}"), width=12,
                  stacked=True),
            graph("Speed", "Training steps of models per second, by server.",
                  query('instance:lengthwise_worker_model_steps:rate1m{instance=~"$instance"}', "{{instance}}"), width=12),
            graph("Leases and workers", "Leased packs and connected workers. Workers without a lease are idle.",
                  query(f"sum(lengthwise_leases{{{SERVER}}})", "leases"),
                  query(f"sum(lengthwise_workers_alive{{{SERVER}}})", "workers"), width=12),
        ]),
        ("Experiments that run", [
            table("Trials by experiment", "Experiments with running trials. Click one to open it.",
                  *(query(f'sum by (experiment) (lengthwise_experiment_trials{{{SERVER}, state="{state}"}})', form="table")
                    for state in ("queued", "running", "succeeded", "failed")),
                  query(f"sum by (experiment) (instance_experiment:lengthwise_trial_unseen_accuracy:mean"
                        f'{{instance=~"$instance"}})', form="table"),
                  columns={"experiment": "experiment", "Value #A": "queued", "Value #B": "running",
                           "Value #C": "succeeded", "Value #D": "failed", "Value #E": "accuracy on unseen lengths"},
                  units={"Value #E": "percentunit"}, links={"experiment": (
                      "Open this experiment",
                      "/d/lengthwise-experiment?var-datasource=${datasource}&var-experiment=${__value.raw}"
                      "&${__url_time_range}")}),
        ]),
        ("Failures", [
            graph("Retries, an hour", "Requeued trials, by reason (METRICS.md lists the reasons).",
                  query(f"3600 * sum by (reason) (rate(lengthwise_trial_retries_total{{{SERVER}}}{RATE}))", "{{reason}}")),
            graph("Failures, an hour", "Trials that failed permanently, by reason.",
                  query(f"3600 * sum by (reason) (rate(lengthwise_trial_failures_total{{{SERVER}}}{RATE}))", "{{reason}}")),
            graph("Lease expiries, an hour", "Leases of workers that died or lost their connection.",
                  query(f"3600 * sum(rate(lengthwise_lease_expiries_total{{{SERVER}}}{RATE}))", "expiries")),
        ]),
    ])

experiment = dashboard(
    "lengthwise-experiment", "Lengthwise: one experiment",
    "Live view of running trials. For finished trials, use lengthwise results, plot and report.",
    [
        ("", [
            *(number(state, f"{state} trials of the experiment.",
                     query(f'sum(lengthwise_experiment_trials{{{SERVER}, experiment=~"$experiment", '
                           f'state="{state.lower()}"}})'),
                     thresholds=ERRORS if state == "Failed" else None)
              for state in ("Running", "Queued", "Succeeded", "Failed")),
            number("Accuracy beyond training", "Mean over the running trials' newest evaluations.",
                   query(f"avg(lengthwise_trial_unseen_accuracy{{{TRIAL}}})"), unit="percentunit"),
            number("Longest left", "Estimated time until the last running trial ends.",
                   query(f"max(lengthwise_trial_left_seconds{{{TRIAL}}})"), unit="s"),
        ]),
        ("Training", [
            graph("Loss", "Cross-entropy in nats, or mean squared error for a regression. Averaged over a minute, because "
                  "the length changes every step.",
                  query(f"avg_over_time(lengthwise_trial_loss{{{TRIAL}}}[1m])", "{{trial}}"), width=12, logarithmic=True,
                  height=10),
            graph("Loss by encoding", "Mean over trials with the same encoding and over a minute.",
                  query(f"avg by (encoding) (avg_over_time(lengthwise_trial_loss{{{TRIAL}}}[1m]) "
                        f"* on (instance, experiment, trial) group_left (encoding) lengthwise_trial_info{{{TRIAL}}})",
                        "{{encoding}}"), width=12, logarithmic=True, height=10),
        ]),
        ("Beyond the lengths of training", [
            graph("Accuracy on unseen lengths", "Mean over the unseen lengths in the newest evaluation.",
                  query(f"lengthwise_trial_unseen_accuracy{{{TRIAL}}}", "{{trial}}"), unit="percentunit", width=12,
                  maximum=1),
            graph("Accuracy on unseen lengths by encoding", "Mean over trials with the same encoding.",
                  query(f"avg by (encoding) (lengthwise_trial_unseen_accuracy{{{TRIAL}}} "
                        f"* on (instance, experiment, trial) group_left (encoding) lengthwise_trial_info{{{TRIAL}}})",
                        "{{encoding}}"), unit="percentunit", width=12, maximum=1),
            heat_map("Accuracy by length over time", "Rows are ranges of input lengths; brighter is more accurate. Mean "
                     "over the chosen trials.",
                     query(f"avg by (length_bucket) (lengthwise_trial_accuracy{{{TRIAL}}})", "{{length_bucket}}"),
                     unit="none", cell_unit="percentunit", width=16, cell_maximum=1),
            bars("Accuracy by length", "Mean over the chosen trials' newest evaluations.",
                 query(f"avg by (length_bucket) (lengthwise_trial_accuracy{{{TRIAL}}})", "{{length_bucket}}", instant=True),
                 width=8, height=10),
        ]),
        ("Trials", [
            bars("Progress of training", "Completed share of training.",
                 query(f'lengthwise_trial_progress_ratio{{{TRIAL}, phase="training"}}', "{{trial}}", instant=True), width=8,
                 height=10),
            table("Running trials", "Running trials and their workers.",
                  query(f"lengthwise_trial_info{{{TRIAL}}}", form="table"),
                  columns={"experiment": "experiment", "trial": "trial", "task": "task", "network": "network",
                           "encoding": "encoding", "worker": "worker"}, width=16, height=10, sort_by="trial"),
        ]),
    ],
    variables=[
        variable("experiment", "Experiment", f"label_values(lengthwise_trial_info{{{SERVER}}}, experiment)"),
        variable("trial", "Trial", f'label_values(lengthwise_trial_info{{{SERVER}, experiment=~"$experiment"}}, trial)',
                 several=True),
    ])

workers = dashboard(
    "lengthwise-workers", "Lengthwise: workers",
    "How each live worker spends its time. Workers that have stopped stay in the history of the graphs.",
    [
        ("", [
            table("Workers", "Live workers, their hardware and their current trials.",
                  query(f"lengthwise_worker_info{{{WORKER}}}", form="table"),
                  query(f"sum by (worker) (lengthwise_worker_trials{{{WORKER}}})", form="table"),
                  query(f"sum by (worker) (lengthwise_worker_max_pack_trials{{{WORKER}}})", form="table"),
                  columns={"worker": "worker", "host": "host", "device": "device", "version": "version",
                           "Value #B": "trials", "Value #C": "at most"}, sort_by="worker"),
        ]),
        ("Speed", [
            graph("Steps a second", "Training steps of packs.", rate_by("worker", "lengthwise_worker_steps_total", WORKER)),
            graph("Model steps a second", "Training steps of models: a pack's step counts once per trial.",
                  rate_by("worker", "lengthwise_worker_model_steps_total", WORKER)),
            graph("Trials of the pack", "Trials in training or evaluation, by worker. 0 when idle.",
                  query(f"sum by (worker) (lengthwise_worker_trials{{{WORKER}}})", "{{worker}}")),
            heat_map("Step time", "Distribution of step durations over the chosen workers.",
                     query(f"sum by (le) (increase(lengthwise_worker_step_seconds_bucket{{{WORKER}}}{RATE}))", "{{le}}",
                           form="heatmap"), unit="s", cell_unit="short"),
            graph("Step time by worker", "Median and 95th percentile of step duration.",
                  query("histogram_quantile(0.5, sum by (worker, le) "
                        f"(rate(lengthwise_worker_step_seconds_bucket{{{WORKER}}}{RATE})))", "{{worker}} median"),
                  query("histogram_quantile(0.95, sum by (worker, le) "
                        f"(rate(lengthwise_worker_step_seconds_bucket{{{WORKER}}}{RATE})))", "{{worker}} 95 %"), unit="s",
                  width=12, height=10),
        ]),
        ("Where the time goes", [
            graph("Waiting for data", "Share of step time in which the device waits for samples. Above 20 %, the CPU feeds "
                  "it too slowly.",
                  query('instance_worker:lengthwise_worker_data_wait:ratio1m{instance=~"$instance", worker=~"$worker"}',
                        "{{worker}}"), unit="percentunit"),
            graph("Evaluating", "Share of time spent in evaluations.",
                  rate_by("worker", "lengthwise_worker_evaluation_seconds_total", WORKER), unit="percentunit"),
            graph("Making checkpoints", "Share of time in which training pauses for checkpoints. Above 5 %, write fewer "
                  "(training.checkpoint_every_seconds).",
                  rate_by("worker", "lengthwise_worker_checkpoint_seconds_total", WORKER), unit="percentunit"),
        ]),
        ("GPU", [
            graph("GPU utilization", "Share of the driver's sample period in which a kernel ran. Empty without GPUs.",
                  query(f"lengthwise_worker_gpu_utilization_ratio{{{WORKER}}}", "{{worker}}"), unit="percentunit", width=12,
                  maximum=1),
            graph("GPU memory", "Share of GPU memory in use by all processes. Empty without GPUs.",
                  query(f"lengthwise_worker_gpu_memory_used_bytes{{{WORKER}}} / lengthwise_worker_gpu_memory_bytes{{{WORKER}}}",
                        "{{worker}}"), unit="percentunit", width=12, maximum=1),
        ]),
        ("Memory and unsent data", [
            graph("Memory", "Resident memory of worker processes.",
                  query(f"lengthwise_worker_resident_memory_bytes{{{WORKER}}}", "{{worker}}"), unit="bytes"),
            graph("Unsent bytes", "Unsent events and checkpoints. If it grows, the server or the network is slow.",
                  query(f"lengthwise_worker_unsent_bytes{{{WORKER}}}", "{{worker}}"), unit="bytes"),
            graph("Checkpoint bytes a second", "Checkpoint bytes uploaded to the server.",
                  rate_by("worker", "lengthwise_worker_checkpoint_bytes_total", WORKER), unit="Bps"),
        ]),
    ],
    variables=[variable("worker", "Worker", f"label_values(lengthwise_worker_info{{{SERVER}}}, worker)", several=True)])

service = dashboard(
    "lengthwise-service", "Lengthwise: service health",
    "Load on the server: store, calls, watchers and process.",
    [
        ("", [
            number("Server", "1 if every server answers scrapes.", query(f"min(up{{{SERVER}}})"),
                   thresholds=[("red", None), ("green", 1)]),
            number("Commit, 99th percentile", "Commit duration over the last five minutes.",
                   query('max(instance:lengthwise_commit_seconds:p99_5m{instance=~"$instance"})'), unit="s",
                   thresholds=[("green", None), ("red", 0.25)]),
            number("Server errors", "Share of calls that failed with a server error.",
                   query('max(instance:lengthwise_rpc_server_errors:ratio5m{instance=~"$instance"})'), unit="percentunit",
                   thresholds=[("green", None), ("red", 0.01)]),
            number("Longest watcher lag", "Lag of the slowest watcher.",
                   query(f"max(lengthwise_watcher_lag_seconds{{{SERVER}}})"), unit="s",
                   thresholds=[("green", None), ("red", 60)]),
            number("Free disk", "Free share of the data directory's file system, or of that of --artifacts if less of it is free.",
                   query('min(instance:lengthwise_disk_free:ratio{instance=~"$instance"})'), unit="percentunit",
                   thresholds=[("red", None), ("green", 0.1)]),
            number("Failed commits", "Transactions that failed to commit in the last hour.",
                   query(f"sum(increase(lengthwise_commit_failures_total{{{SERVER}}}[1h]))"), thresholds=ERRORS),
        ]),
        ("Store", [
            graph("Commit time", "Duration of store transactions. Every command waits for one.",
                  query("histogram_quantile(0.5, sum by (le) "
                        f"(rate(lengthwise_commit_seconds_bucket{{{SERVER}}}{RATE})))", "median"),
                  query("histogram_quantile(0.99, sum by (le) "
                        f"(rate(lengthwise_commit_seconds_bucket{{{SERVER}}}{RATE})))", "99 %"), unit="s"),
            graph("Stored a second", "Transactions, events and points committed.",
                  query(f"sum(rate(lengthwise_commit_seconds_count{{{SERVER}}}{RATE}))", "commits"),
                  query(f"sum(rate(lengthwise_events_stored_total{{{SERVER}}}{RATE}))", "events"),
                  query(f"sum(rate(lengthwise_points_stored_total{{{SERVER}}}{RATE}))", "points of loss curves"),
                  unit="ops"),
            graph("Batch size", "Means per transaction. Large batches under load are by design.",
                  query(f"sum(rate(lengthwise_commit_commands_sum{{{SERVER}}}{RATE})) "
                        f"/ sum(rate(lengthwise_commit_commands_count{{{SERVER}}}{RATE}))", "commands"),
                  query(f"sum(rate(lengthwise_commit_events_sum{{{SERVER}}}{RATE})) "
                        f"/ sum(rate(lengthwise_commit_events_count{{{SERVER}}}{RATE}))", "events")),
            heat_map("Commits by time", "Distribution of commit durations.",
                     query(f"sum by (le) (increase(lengthwise_commit_seconds_bucket{{{SERVER}}}{RATE}))", "{{le}}",
                           form="heatmap"), unit="s", cell_unit="short"),
            graph("Disk", "Database size and free disk space.",
                  query(f"sum by (instance) (lengthwise_database_bytes{{{SERVER}}})", "database {{instance}}"),
                  query(f"sum by (instance) (lengthwise_disk_free_bytes{{{SERVER}}})", "free {{instance}}"), unit="bytes",
                  width=12, height=10),
        ]),
        ("Calls", [
            graph("Calls a second", "Calls by method. Streams count when they end.",
                  rate_by("method", "lengthwise_rpc_seconds_count", SERVER), unit="reqps", width=12, stacked=True),
            graph("Calls a second by code", "Calls by status code.",
                  rate_by("code", "lengthwise_rpc_seconds_count", SERVER), unit="reqps", width=12, logarithmic=True),
            graph("Latency, 99th percentile", "Latency by method over five minutes. Excludes streams and waits for a lease.",
                  query('instance_method:lengthwise_rpc_seconds:p99_5m{instance=~"$instance"}', "{{method}}"), unit="s",
                  width=12),
            graph("Open streams", "Event streams of workers and watchers of clients.",
                  query(f"sum by (method) (lengthwise_rpc_open_streams{{{SERVER}}})", "{{method}}"), width=12),
            graph("Watcher lag", "Lag of the slowest watcher, by server.",
                  query(f"max by (instance) (lengthwise_watcher_lag_seconds{{{SERVER}}})", "{{instance}}"), unit="s",
                  width=12),
            graph("Watchers behind", "Watchers with unsent events. Many mean an overloaded server.",
                  query(f"sum by (instance) (lengthwise_watchers_behind{{{SERVER}}})", "{{instance}}"), width=12),
        ]),
        ("Scheduler and process", [
            graph("Decisions a second", "Scheduler decisions, by kind.",
                  rate_by("decision", "lengthwise_decisions_total", SERVER), unit="ops"),
            graph("Mean pack size", "Trials per running pack.",
                  query(f"avg by (instance) (lengthwise_worker_trials{{{SERVER}}} > 0)", "{{instance}}")),
            graph("CPU", "CPU cores in use. Near 1, the server's single command-loop thread may be the bottleneck.",
                  query(f"rate(process_cpu_seconds_total{{{SERVER}}}{RATE})", "{{instance}}")),
            graph("Memory", "Resident memory of the server.",
                  query(f"process_resident_memory_bytes{{{SERVER}}}", "{{instance}}"), unit="bytes"),
            graph("File descriptors", "Open file descriptors as a share of the limit.",
                  query(f"process_open_fds{{{SERVER}}} / process_max_fds{{{SERVER}}}", "{{instance}}"), unit="percentunit"),
            table("Builds", "Running builds.",
                  query(f"lengthwise_build_info{{{SERVER}}}", form="table"),
                  columns={"instance": "instance", "program": "program", "version": "version", "revision": "revision"},
                  width=8),
        ]),
    ])


def main() -> int:
    directory = pathlib.Path(__file__).parent / "dashboards"
    files = {"overview": overview, "experiment": experiment, "workers": workers, "service": service}
    texts = {f"{name}.json": json.dumps(content, cls=JSONEncoder, indent=2) + "\n" for name, content in files.items()}
    if sys.argv[1:] == ["--check"]:
        there = {path.name: path.read_text() for path in directory.glob("*.json")}
        wrong = sorted(name for name in texts | there if texts.get(name) != there.get(name))
        if wrong:
            print(f"{', '.join(wrong)}: out of date; run {__file__}", file=sys.stderr)
        return 1 if wrong else 0
    if sys.argv[1:]:
        print("usage: dashboards.py [--check]", file=sys.stderr)
        return 2
    for name, text in texts.items():
        (directory / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
