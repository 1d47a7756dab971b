#!/usr/bin/python3
"""Asks Prometheus for the data of every panel of Grafana's dashboards, as Grafana does. Each query must return data.

  check_panels.py PROMETHEUS_URL DASHBOARD.json...

Fills in variables as Grafana does: one that takes several values with .*, one that takes a single value with the
first result of its query. Queries for GPU metrics must be valid, and must return data if a worker has a GPU. Prints
the number of queries. Exits with 1 if a query returned no data in time.
"""

import json
import pathlib
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

PATIENCE_SECONDS = 60
# As Grafana computes it: four times the scrape interval, which is half a second here.
INTERVALS = {"__rate_interval": "4s", "__interval": "1s"}


def ask(url: str, path: str, **parameters):
    request = f"{url}/api/v1/{path}?{urllib.parse.urlencode(parameters, doseq=True)}"
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)["data"]
    except urllib.error.HTTPError as error:
        raise SystemExit(f"{parameters}: {error.read().decode()}")


def fill(text: str, values: dict[str, str]) -> str:
    for name, value in sorted(values.items(), key=lambda item: -len(item[0])):
        text = text.replace("${%s}" % name, value).replace(f"${name}", value)
    return text


def variables(url: str, dashboard: dict, end: float) -> dict[str, str]:
    """Returns values by name, in the variables' order of dependency. Waits for the first scrape."""
    values = dict(INTERVALS)
    for variable in dashboard["templating"]["list"]:
        if variable["type"] != "query":
            continue
        selector, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"]).groups()
        while not (found := ask(url, f"label/{label}/values", **{"match[]": fill(selector, values)})):
            if time.monotonic() < end:
                time.sleep(0.2)
                continue
            raise SystemExit(f"{dashboard['uid']}: ${variable['name']} has no values")
        # Names have no characters that are special in a regular expression.
        values[variable["name"]] = ".*" if variable["multi"] else found[0]
    return values


def data(url: str, target: dict, values: dict[str, str]) -> int:
    """Counts the samples that are numbers."""
    expr = fill(target["expr"], values)
    now = time.time()
    if target["instant"]:
        series = [[one["value"]] for one in ask(url, "query", query=expr, time=now)["result"]]
    else:
        found = ask(url, "query_range", query=expr, start=now - 60, end=now, step=1)
        series = [one["values"] for one in found["result"]]
    return sum(value != "NaN" for samples in series for _, value in samples)


def main() -> int:
    url = sys.argv[1]
    has_gpu = bool(ask(url, "query", query="lengthwise_worker_gpu_memory_bytes")["result"])
    end = time.monotonic() + PATIENCE_SECONDS
    waiting = []
    for path in map(pathlib.Path, sys.argv[2:]):
        dashboard = json.loads(path.read_text())
        values = variables(url, dashboard, end)
        for panel in dashboard["panels"]:
            for target in panel.get("targets", []):
                waiting.append((f"{dashboard['uid']}: {panel['title']} {target['refId']}", target, values))
    asked = len(waiting)
    while waiting and time.monotonic() < end:
        waiting = [(name, target, values) for name, target, values in waiting
                   if not data(url, target, values) and (has_gpu or "_gpu_" not in target["expr"])]
        if waiting:
            time.sleep(0.5)
    for name, target, values in waiting:
        print(f"{name}: no data for {fill(target['expr'], values)}")
    print(f"{asked - len(waiting)} of {asked} queries returned data" + ("" if has_gpu else ", or need a GPU"))
    return 1 if waiting or not asked else 0


if __name__ == "__main__":
    sys.exit(main())
