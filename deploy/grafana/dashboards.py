#!/usr/bin/python3
"""What the Grafana dashboards show. Writes dashboards/*.json beside this file, or says with --check whether they are these.

METRICS.md explains the metrics, dashboard.py what panels there are. After a change: run this and
`bazel test //tests/monitoring/...`, which runs every query against a real Prometheus.
"""

import json
import pathlib
import sys

from dashboard import bars, dashboard, graph, heat_map, number, query, table, variable

# Of one server, or all that are chosen. The server's job alone: a worker that is scraped itself would count twice.
SERVER = 'job="lengthwise", instance=~"$instance"'
WORKER = SERVER + ', worker=~"$worker"'
TRIAL = SERVER + ', experiment=~"$experiment", trial=~"$trial"'
RATE = "[$__rate_interval]"
ERRORS = [("green", None), ("red", 1)]

overview = dashboard(
    "lengthwise-overview", "Lengthwise: overview",
    "What runs, how fast, and what goes wrong. The other dashboards are linked above.",
    [
        ("", [
            number("Running", "Trials that workers train or evaluate now.",
                   query(f'sum(lengthwise_trials{{{SERVER}, state="running"}})'), width=3),
            number("Queued", "Trials that wait to be leased.",
                   query(f'sum(lengthwise_trials{{{SERVER}, state="queued"}})'), width=3),
            number("Succeeded", "Of all experiments that were not deleted.",
                   query(f'sum(lengthwise_trials{{{SERVER}, state="succeeded"}})'), width=3),
            number("Failed", "Of all experiments that were not deleted; `lengthwise retry` runs them again.",
                   query(f'sum(lengthwise_trials{{{SERVER}, state="failed"}})'), width=3, thresholds=ERRORS),
            number("Workers", "Workers that were heard of within a lease's duration.",
                   query(f"sum(lengthwise_workers_alive{{{SERVER}}})"), width=3, thresholds=[("red", None), ("green", 1)]),
            number("Model steps a second", "Training steps of models, over all workers.",
                   query(f'sum(instance:lengthwise_worker_model_steps:rate1m{{instance=~"$instance"}})'), unit="none",
                   width=3),
            number("Oldest queued", "How long the trial that has been queued for longest waits.",
                   query(f"max(lengthwise_queue_oldest_seconds{{{SERVER}}})"), unit="s", width=3),
            number("Alerts", "Alerts of deploy/prometheus/alerts.yml that fire.",
                   query('count(ALERTS{alertname=~"Lengthwise.*", alertstate="firing"}) or vector(0)'), width=3,
                   thresholds=ERRORS),
        ]),
        ("Work", [
            graph("Queued and running trials", "A queue that grows while workers are busy is more work than workers.",
                  query(f'sum by (state) (lengthwise_trials{{{SERVER}, state=~"queued|running"}})', "{{state}}"), width=12,
                  stacked=True),
            graph("Trials that ended, an hour", "Throughput, by how they ended.",
                  query(f"3600 * sum by (decision) (rate(lengthwise_decisions_total{{{SERVER}, "
                        f'decision=~"trial_(succeeded|failed|cancelled)"}}{RATE}))', "{{decision}}"), width=12,
                  stacked=True),
            graph("Speed", "Training steps of models a second, by server.",
                  query('instance:lengthwise_worker_model_steps:rate1m{instance=~"$instance"}', "{{instance}}"), width=12),
            graph("Leases and workers", "Packs that are leased beside workers that are connected: idle ones are between.",
                  query(f"sum(lengthwise_leases{{{SERVER}}})", "leases"),
                  query(f"sum(lengthwise_workers_alive{{{SERVER}}})", "workers"), width=12),
        ]),
        ("Experiments that run", [
            table("Trials by experiment", "Experiments that have running trials; a click on one opens it.",
                  query(f'sum by (experiment) (lengthwise_experiment_trials{{{SERVER}, state="queued"}})', instant=True,
                        form="table"),
                  query(f'sum by (experiment) (lengthwise_experiment_trials{{{SERVER}, state="running"}})', instant=True,
                        form="table"),
                  query(f'sum by (experiment) (lengthwise_experiment_trials{{{SERVER}, state="succeeded"}})', instant=True,
                        form="table"),
                  query(f'sum by (experiment) (lengthwise_experiment_trials{{{SERVER}, state="failed"}})', instant=True,
                        form="table"),
                  query(f"sum by (experiment) (instance_experiment:lengthwise_trial_unseen_accuracy:mean"
                        f'{{instance=~"$instance"}})', instant=True, form="table"),
                  columns={"experiment": "experiment", "Value #A": "queued", "Value #B": "running",
                           "Value #C": "succeeded", "Value #D": "failed", "Value #E": "accuracy on unseen lengths"},
                  units={"Value #E": "percentunit"}, links={"experiment": (
                      "Open this experiment",
                      "/d/lengthwise-experiment?var-datasource=${datasource}&var-experiment=${__value.raw}"
                      "&${__url_time_range}")}),
        ]),
        ("What goes wrong", [
            graph("Retries, an hour", "Trials that were queued again, by why (METRICS.md lists the reasons).",
                  query(f"3600 * sum by (reason) (rate(lengthwise_trial_retries_total{{{SERVER}}}{RATE}))", "{{reason}}")),
            graph("Failures, an hour", "Trials that failed for good, by why.",
                  query(f"3600 * sum by (reason) (rate(lengthwise_trial_failures_total{{{SERVER}}}{RATE}))",
                        "{{reason}}")),
            graph("Lease expiries, an hour", "Workers that died or lost their connection.",
                  query(f"3600 * sum(rate(lengthwise_lease_expiries_total{{{SERVER}}}{RATE}))", "expiries")),
        ]),
    ])

experiment = dashboard(
    "lengthwise-experiment", "Lengthwise: one experiment",
    "Trials that run now, live. What has ended is in the store: lengthwise results, plot and report.",
    [
        ("", [
            number("Running", "Trials of the experiment that run now.",
                   query(f'sum(lengthwise_experiment_trials{{{SERVER}, experiment=~"$experiment", state="running"}})')),
            number("Queued", "Trials of the experiment that wait.",
                   query(f'sum(lengthwise_experiment_trials{{{SERVER}, experiment=~"$experiment", state="queued"}})')),
            number("Succeeded", "Trials of the experiment that are done.",
                   query(f'sum(lengthwise_experiment_trials{{{SERVER}, experiment=~"$experiment", state="succeeded"}})')),
            number("Failed", "Trials of the experiment that failed for good.",
                   query(f'sum(lengthwise_experiment_trials{{{SERVER}, experiment=~"$experiment", state="failed"}})'),
                   thresholds=ERRORS),
            number("Accuracy beyond training", "Mean over the running trials, of their newest evaluations.",
                   query(f"avg(lengthwise_trial_unseen_accuracy{{{TRIAL}}})"), unit="percentunit"),
            number("Longest left", "Until the last running trial ends, as workers estimate it.",
                   query(f"max(lengthwise_trial_left_seconds{{{TRIAL}}})"), unit="s"),
        ]),
        ("Training", [
            graph("Loss", "Cross-entropy of the newest step (nats), of a regression its mean squared error; mean over a "
                  "minute: each step has another length.",
                  query(f"avg_over_time(lengthwise_trial_loss{{{TRIAL}}}[1m])", "{{trial}}"), width=12, logarithmic=True,
                  height=10),
            graph("Loss by encoding", "Mean over trials with the same encoding, over a minute.",
                  query(f"avg by (encoding) (avg_over_time(lengthwise_trial_loss{{{TRIAL}}}[1m]) "
                        f"* on (instance, experiment, trial) group_left (encoding) lengthwise_trial_info{{{TRIAL}}})",
                        "{{encoding}}"), width=12, logarithmic=True, height=10),
        ]),
        ("Beyond the lengths of training", [
            graph("Accuracy on unseen lengths", "Mean over the lengths beyond those of training, newest evaluation.",
                  query(f"lengthwise_trial_unseen_accuracy{{{TRIAL}}}", "{{trial}}"), unit="percentunit", width=12,
                  maximum=1),
            graph("Accuracy on unseen lengths by encoding", "Mean over trials with the same encoding.",
                  query(f"avg by (encoding) (lengthwise_trial_unseen_accuracy{{{TRIAL}}} "
                        f"* on (instance, experiment, trial) group_left (encoding) lengthwise_trial_info{{{TRIAL}}})",
                        "{{encoding}}"), unit="percentunit", width=12, maximum=1),
            heat_map("Accuracy by length over time", "Rows are ranges of input lengths; bright is right. Mean over the "
                     "chosen trials.",
                     query(f"avg by (length_bucket) (lengthwise_trial_accuracy{{{TRIAL}}})", "{{length_bucket}}"),
                     unit="none", cell_unit="percentunit", width=16, cell_maximum=1),
            bars("Accuracy by length", "Newest evaluations, mean over the chosen trials.",
                 query(f"avg by (length_bucket) (lengthwise_trial_accuracy{{{TRIAL}}})", "{{length_bucket}}", instant=True),
                 width=8, height=10),
        ]),
        ("Trials", [
            bars("Progress of training", "Share of the steps that are done.",
                 query(f'lengthwise_trial_progress_ratio{{{TRIAL}, phase="training"}}', "{{trial}}", instant=True), width=8,
                 height=10),
            table("Running trials", "What they are, and where they run.",
                  query(f"lengthwise_trial_info{{{TRIAL}}}", instant=True, form="table"),
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
    "What each worker does with its time. Workers that are alive; those that are gone are in the past of the graphs.",
    [
        ("", [
            table("Workers", "What they run on, and the trials that they train now.",
                  query(f"lengthwise_worker_info{{{WORKER}}}", instant=True, form="table"),
                  query(f"sum by (worker) (lengthwise_worker_trials{{{WORKER}}})", instant=True, form="table"),
                  query(f"sum by (worker) (lengthwise_worker_max_pack_trials{{{WORKER}}})", instant=True, form="table"),
                  columns={"worker": "worker", "host": "host", "device": "device", "version": "version",
                           "Value #B": "trials", "Value #C": "at most"}, sort_by="worker"),
        ]),
        ("Speed", [
            graph("Steps a second", "Training steps of packs.",
                  query(f"sum by (worker) (rate(lengthwise_worker_steps_total{{{WORKER}}}{RATE}))", "{{worker}}")),
            graph("Model steps a second", "A pack's step counts for each of its trials.",
                  query(f"sum by (worker) (rate(lengthwise_worker_model_steps_total{{{WORKER}}}{RATE}))", "{{worker}}")),
            graph("Trials of the pack", "What each trains or evaluates now; 0 is idle.",
                  query(f"sum by (worker) (lengthwise_worker_trials{{{WORKER}}})", "{{worker}}")),
            heat_map("Step time", "How many steps took how long, over the chosen workers.",
                     query(f"sum by (le) (increase(lengthwise_worker_step_seconds_bucket{{{WORKER}}}{RATE}))", "{{le}}",
                           form="heatmap"), unit="s", cell_unit="short"),
            graph("Step time by worker", "Median and 95th percentile.",
                  query("histogram_quantile(0.5, sum by (worker, le) "
                        f"(rate(lengthwise_worker_step_seconds_bucket{{{WORKER}}}{RATE})))", "{{worker}} median"),
                  query("histogram_quantile(0.95, sum by (worker, le) "
                        f"(rate(lengthwise_worker_step_seconds_bucket{{{WORKER}}}{RATE})))", "{{worker}} 95 %"), unit="s",
                  width=12, height=10),
        ]),
        ("Where the time goes", [
            graph("Waiting for data", "Share of the steps' time in which the device waits for samples. Above 20 %, the CPU "
                  "feeds it too slowly.",
                  query('instance_worker:lengthwise_worker_data_wait:ratio1m{instance=~"$instance", worker=~"$worker"}',
                        "{{worker}}"), unit="percentunit"),
            graph("Evaluating", "Share of the time in evaluations.",
                  query(f"sum by (worker) (rate(lengthwise_worker_evaluation_seconds_total{{{WORKER}}}{RATE}))",
                        "{{worker}}"), unit="percentunit"),
            graph("Making checkpoints", "Share of the time in which training stands still for them. Above 5 %, make fewer "
                  "(training.checkpoint_every_seconds).",
                  query(f"sum by (worker) (rate(lengthwise_worker_checkpoint_seconds_total{{{WORKER}}}{RATE}))",
                        "{{worker}}"), unit="percentunit"),
        ]),
        ("GPU", [
            graph("GPU utilization", "Share of the driver's sample period in which a kernel ran. Empty without GPUs.",
                  query(f"lengthwise_worker_gpu_utilization_ratio{{{WORKER}}}", "{{worker}}"), unit="percentunit", width=12,
                  maximum=1),
            graph("GPU memory", "Used share of the GPU's memory, by all processes. Empty without GPUs.",
                  query(f"lengthwise_worker_gpu_memory_used_bytes{{{WORKER}}} / lengthwise_worker_gpu_memory_bytes{{{WORKER}}}",
                        "{{worker}}"), unit="percentunit", width=12, maximum=1),
        ]),
        ("Memory and what waits", [
            graph("Memory", "Resident memory of the workers' processes.",
                  query(f"lengthwise_worker_resident_memory_bytes{{{WORKER}}}", "{{worker}}"), unit="bytes"),
            graph("Unsent bytes", "Events and checkpoints that wait for the server. Growing: it, or the way to it, is slow.",
                  query(f"lengthwise_worker_unsent_bytes{{{WORKER}}}", "{{worker}}"), unit="bytes"),
            graph("Checkpoint bytes a second", "What travels to the server.",
                  query(f"sum by (worker) (rate(lengthwise_worker_checkpoint_bytes_total{{{WORKER}}}{RATE}))",
                        "{{worker}}"), unit="Bps"),
        ]),
    ],
    variables=[variable("worker", "Worker", f"label_values(lengthwise_worker_info{{{SERVER}}}, worker)", several=True)])

service = dashboard(
    "lengthwise-service", "Lengthwise: service health",
    "Whether the server keeps up: its store, its calls, its watchers and its process.",
    [
        ("", [
            number("Server", "1: it answers.", query(f"min(up{{{SERVER}}})"), thresholds=[("red", None), ("green", 1)]),
            number("Commit, 99th percentile", "Of the last five minutes.",
                   query('max(instance:lengthwise_commit_seconds:p99_5m{instance=~"$instance"})'), unit="s",
                   thresholds=[("green", None), ("red", 0.25)]),
            number("Server errors", "Share of calls that failed through no fault of the caller.",
                   query('max(instance:lengthwise_rpc_server_errors:ratio5m{instance=~"$instance"})'), unit="percentunit",
                   thresholds=[("green", None), ("red", 0.01)]),
            number("Longest watcher lag", "Of the watcher that is most behind.",
                   query(f"max(lengthwise_watcher_lag_seconds{{{SERVER}}})"), unit="s",
                   thresholds=[("green", None), ("red", 60)]),
            number("Free disk", "Of the data directory's file system.",
                   query('min(instance:lengthwise_disk_free:ratio{instance=~"$instance"})'), unit="percentunit",
                   thresholds=[("red", None), ("green", 0.1)]),
            number("Failed commits", "Transactions that the store refused in the last hour.",
                   query(f"sum(increase(lengthwise_commit_failures_total{{{SERVER}}}[1h]))"), thresholds=ERRORS),
        ]),
        ("Store", [
            graph("Commit time", "What every command waits for.",
                  query("histogram_quantile(0.5, sum by (le) "
                        f"(rate(lengthwise_commit_seconds_bucket{{{SERVER}}}{RATE})))", "median"),
                  query("histogram_quantile(0.99, sum by (le) "
                        f"(rate(lengthwise_commit_seconds_bucket{{{SERVER}}}{RATE})))", "99 %"), unit="s"),
            graph("Stored a second", "Transactions, and what they made durable.",
                  query(f"sum(rate(lengthwise_commit_seconds_count{{{SERVER}}}{RATE}))", "commits"),
                  query(f"sum(rate(lengthwise_events_stored_total{{{SERVER}}}{RATE}))", "events"),
                  query(f"sum(rate(lengthwise_points_stored_total{{{SERVER}}}{RATE}))", "points of loss curves"),
                  unit="ops"),
            graph("Batch size", "Means for each transaction; large under load is how it should be.",
                  query(f"sum(rate(lengthwise_commit_commands_sum{{{SERVER}}}{RATE})) "
                        f"/ sum(rate(lengthwise_commit_commands_count{{{SERVER}}}{RATE}))", "commands"),
                  query(f"sum(rate(lengthwise_commit_events_sum{{{SERVER}}}{RATE})) "
                        f"/ sum(rate(lengthwise_commit_events_count{{{SERVER}}}{RATE}))", "events")),
            heat_map("Commits by time", "How many took how long.",
                     query(f"sum by (le) (increase(lengthwise_commit_seconds_bucket{{{SERVER}}}{RATE}))", "{{le}}",
                           form="heatmap"), unit="s", cell_unit="short"),
            graph("Disk", "The database, and what is free for it.",
                  query(f"sum by (instance) (lengthwise_database_bytes{{{SERVER}}})", "database {{instance}}"),
                  query(f"sum by (instance) (lengthwise_disk_free_bytes{{{SERVER}}})", "free {{instance}}"), unit="bytes",
                  width=12, height=10),
        ]),
        ("Calls", [
            graph("Calls a second", "By method; streams count when they end.",
                  query(f"sum by (method) (rate(lengthwise_rpc_seconds_count{{{SERVER}}}{RATE}))", "{{method}}"),
                  unit="reqps", width=12, stacked=True),
            graph("Calls a second by code", "What was answered.",
                  query(f"sum by (code) (rate(lengthwise_rpc_seconds_count{{{SERVER}}}{RATE}))", "{{code}}"), unit="reqps",
                  width=12, logarithmic=True),
            graph("Latency, 99th percentile", "Of calls that answer at once, by method, over five minutes.",
                  query('instance_method:lengthwise_rpc_seconds:p99_5m{instance=~"$instance"}', "{{method}}"), unit="s",
                  width=12),
            graph("Open streams", "Workers' events and clients' watches.",
                  query(f"sum by (method) (lengthwise_rpc_open_streams{{{SERVER}}})", "{{method}}"), width=12),
            graph("Watcher lag", "How long the watcher that is most behind has been so.",
                  query(f"max by (instance) (lengthwise_watcher_lag_seconds{{{SERVER}}})", "{{instance}}"), unit="s",
                  width=12),
            graph("Watchers behind", "Many: the server has no time for its readers.",
                  query(f"sum by (instance) (lengthwise_watchers_behind{{{SERVER}}})", "{{instance}}"), width=12),
        ]),
        ("Scheduler and process", [
            graph("Decisions a second", "What the scheduler decided, by kind.",
                  query(f"sum by (decision) (rate(lengthwise_decisions_total{{{SERVER}}}{RATE}))", "{{decision}}"),
                  unit="ops"),
            graph("Mean pack size", "Trials of the packs that workers have now.",
                  query(f"avg by (instance) (lengthwise_worker_trials{{{SERVER}}} > 0)", "{{instance}}")),
            graph("CPU", "Cores that the server uses. Near 1, its deciding thread may be what limits it.",
                  query(f"rate(process_cpu_seconds_total{{{SERVER}}}{RATE})", "{{instance}}")),
            graph("Memory", "Resident memory of the server.",
                  query(f"process_resident_memory_bytes{{{SERVER}}}", "{{instance}}"), unit="bytes"),
            graph("File descriptors", "Share that is open of those that are allowed.",
                  query(f"process_open_fds{{{SERVER}}} / process_max_fds{{{SERVER}}}", "{{instance}}"), unit="percentunit"),
            table("Builds", "What runs.",
                  query(f"lengthwise_build_info{{{SERVER}}}", instant=True, form="table"),
                  columns={"instance": "instance", "program": "program", "version": "version", "revision": "revision"},
                  width=8),
        ]),
    ])


def main() -> int:
    directory = pathlib.Path(__file__).parent / "dashboards"
    files = {"overview": overview, "experiment": experiment, "workers": workers, "service": service}
    texts = {f"{name}.json": json.dumps(content, indent=2) + "\n" for name, content in files.items()}
    if sys.argv[1:] == ["--check"]:
        there = {path.name: path.read_text() for path in directory.glob("*.json")}
        wrong = sorted(name for name in texts | there if texts.get(name) != there.get(name))
        if wrong:
            print(f"{', '.join(wrong)}: not what dashboards.py describes; run {__file__}", file=sys.stderr)
        return 1 if wrong else 0
    if sys.argv[1:]:
        print("usage: dashboards.py [--check]", file=sys.stderr)
        return 2
    for name, text in texts.items():
        (directory / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
