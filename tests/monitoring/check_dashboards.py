#!/usr/bin/python3
"""Checks Grafana dashboards without Grafana, against its JSON model and the rules of its dashboard-linter.

  check_dashboards.py METRICS.md RECORDING_RULES.yml DASHBOARD.json...

Prints a line for each fault and exits with 1 if there is one.
"""

import itertools
import json
import pathlib
import re
import sys

# https://grafana.com/docs/grafana/v10.0/dashboards/build-dashboards/view-dashboard-json-model/
REQUIRED = {"uid": str, "title": str, "tags": list, "schemaVersion": int, "version": int, "time": dict, "templating": dict,
            "annotations": dict, "panels": list, "links": list, "refresh": str, "timezone": str, "graphTooltip": int,
            "editable": bool, "description": str}
PANELS = {"row", "timeseries", "stat", "bargauge", "heatmap", "table"}
# From packages/grafana-data/src/valueFormats/categories.ts.
UNITS = {"none", "short", "percent", "percentunit", "s", "ms", "bytes", "Bps", "ops", "reqps"}
GRID_WIDTH = 24
# Exported by Prometheus, not by Lengthwise.
OF_PROMETHEUS = {"up", "ALERTS"}
FUNCTIONS = {"sum", "max", "min", "avg", "count", "rate", "increase", "histogram_quantile", "vector", "avg_over_time", "by",
             "on", "group_left", "or", "label_values", "changes", "and"}
OF_GRAFANA = {"__rate_interval", "__interval", "__all", "__value", "__url_time_range"}


def metric_names(metrics_page: str) -> set[str]:
    names = set()
    for name, kind in re.findall(r"^\| `(\w+)` \| (\w+) \|", metrics_page, re.M):
        names |= {name + end for end in ("_bucket", "_sum", "_count")} if kind == "histogram" else {name}
    return names


def names_in(expr: str) -> set[str]:
    """Returns the names outside strings, label matchers and lists of labels."""
    expr = re.sub(r'"[^"]*"', '""', expr)
    expr = re.sub(r"\{[^}]*\}", "", expr)
    expr = re.sub(r"\b(by|on|group_left)\s*\([^)]*\)", "", expr)
    expr = re.sub(r"\[[^\]]*\]", "", expr)
    return set(re.findall(r"[a-zA-Z_:][a-zA-Z0-9_:]*", expr)) - FUNCTIONS


def overlap(a: dict, b: dict) -> bool:
    return (a["x"] < b["x"] + b["w"] and b["x"] < a["x"] + a["w"] and a["y"] < b["y"] + b["h"] and
            b["y"] < a["y"] + a["h"])


def check_query(expr: str, known: set[str], rules: set[str], description: str):
    unknown = names_in(expr) - known - rules - OF_PROMETHEUS
    if unknown:
        yield f"asks for {', '.join(sorted(unknown))}, which neither METRICS.md nor the recording rules define"
    for name, matchers in re.findall(r"([a-zA-Z_:][\w:]*)\{([^}]*)\}", expr):
        if name == "ALERTS":
            continue
        if 'instance=~"$instance"' not in matchers:
            yield f"{name} is not filtered by the chosen servers (target-instance-rule)"
        if name not in rules and 'job="lengthwise"' not in matchers:
            yield f"{name} has no job (target-job-rule)"
    for name in sorted(names_in(expr) & (known | rules)):
        if not re.search(re.escape(name) + r"\{", expr):
            yield f"{name} has no matchers (target-instance-rule)"
        counter = re.search(r"_(total|bucket|sum|count)$", name)
        if counter and not re.search(r"\b(rate|increase)\(" + re.escape(name), expr):
            yield f"{name} is a counter: only its rate means something (target-counter-agg-rule)"
    for function, window in re.findall(r"\b(rate|increase)\([^\[]*\[([^\]]*)\]", expr):
        hour = window == "1h" and "last hour" in description
        if window != "$__rate_interval" and not hour:
            yield f"{function} over {window} (target-rate-interval-rule)"
    if expr.count("(") != expr.count(")") or expr.count("{") != expr.count("}"):
        yield "has unbalanced brackets (target-promql-rule)"


def check(dashboard: dict, known: set[str], rules: set[str]):
    for field, kind in REQUIRED.items():
        if not isinstance(dashboard.get(field), kind) or dashboard[field] == "":
            yield f"{field} is missing, or not a {kind.__name__}"
    if dashboard.get("id") is not None:
        yield "has an id, which the database assigns; files only have a uid"
    if not 1 <= len(dashboard["uid"]) <= 40:
        yield "the uid has more than 40 characters"
    variables = {v["name"]: v for v in dashboard["templating"]["list"]}
    source = variables.get("datasource", {})
    if source.get("type") != "datasource" or source.get("query") != "prometheus":
        yield "has no variable for its data source (template-datasource-rule)"
    if "instance" not in variables:
        yield "has no variable for the server (template-instance-rule)"
    for name, variable in variables.items():
        if variable["type"] == "query" and variable["refresh"] != 2:
            yield f"${name} is not refreshed when the time range changes (template-on-time-change-reload-rule)"
        if variable["type"] == "query":
            found = re.fullmatch(r"label_values\((\w+)\{.*\}, (\w+)\)", variable["query"]["query"])
            if not found or found[1] not in known:
                yield f"${name} asks for {variable['query']['query']} (template-label-promql-rule)"
    ids = [panel["id"] for panel in dashboard["panels"]]
    if len(set(ids)) != len(ids):
        yield "panels share an id"
    for a, b in itertools.combinations(dashboard["panels"], 2):
        if overlap(a["gridPos"], b["gridPos"]):
            yield f"{a['title']} and {b['title']} overlap"
    titles = [panel["title"] for panel in dashboard["panels"]]
    for title in {t for t in titles if titles.count(t) > 1}:
        yield f"{title} occurs twice"
    everything = json.dumps([dashboard["panels"], dashboard["templating"], dashboard["annotations"]])
    used = set(re.findall(r"\$\{?(\w+)", everything)) - OF_GRAFANA
    for name in sorted(used - variables.keys()):
        yield f"${name} is used but not declared"
    for name in sorted(variables.keys() - used):
        yield f"${name} is declared but not used"
    for panel in dashboard["panels"]:
        where = panel["title"]
        position = panel["gridPos"]
        if (position["x"] < 0 or position["w"] < 1 or position["h"] < 1 or
                position["x"] + position["w"] > GRID_WIDTH):
            yield f"{where}: does not fit into {GRID_WIDTH} columns"
        if panel["type"] not in PANELS:
            yield f"{where}: {panel['type']} is not a known kind of panel"
        if panel["type"] == "row":
            continue
        if not panel["title"] or not panel["description"]:
            yield f"{where}: has no title or no description (panel-title-description-rule)"
        if panel["datasource"] != {"type": "prometheus", "uid": "${datasource}"}:
            yield f"{where}: does not use the chosen data source (panel-datasource-rule)"
        if panel["fieldConfig"]["defaults"].get("unit") not in UNITS:
            yield f"{where}: has no unit, or an unknown one (panel-units-rule)"
        if not panel["targets"]:
            yield f"{where}: has no query (panel-no-targets-rule)"
        refs = [target["refId"] for target in panel["targets"]]
        if len(set(refs)) != len(refs):
            yield f"{where}: queries share a refId"
        for target in panel["targets"]:
            if target["datasource"] != panel["datasource"]:
                yield f"{where}: a query has another data source"
            for fault in check_query(target["expr"], known, rules, panel["description"]):
                yield f"{where}: {fault}"


def main() -> int:
    known = metric_names(pathlib.Path(sys.argv[1]).read_text())
    rules = set(re.findall(r"record: (\S+)", pathlib.Path(sys.argv[2]).read_text()))
    faults = []
    uids = []
    for path in map(pathlib.Path, sys.argv[3:]):
        dashboard = json.loads(path.read_text())
        uids.append(dashboard["uid"])
        faults += [f"{path.name}: {fault}" for fault in check(dashboard, known, rules)]
        links = re.findall(r"/d/([\w-]+)", path.read_text())
        faults += [f"{path.name}: links to {uid}, which is not one of these dashboards" for uid in links
                   if uid not in [json.loads(pathlib.Path(p).read_text())["uid"] for p in sys.argv[3:]]]
    if len(set(uids)) != len(uids):
        faults.append("dashboards share a uid")
    for fault in faults:
        print(fault)
    return 1 if faults or not uids else 0


if __name__ == "__main__":
    sys.exit(main())
