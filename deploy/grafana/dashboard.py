"""From short descriptions to Grafana's JSON model: a dashboard is rows of panels, a panel a title, a sentence and queries.

Rows are 24 units wide; a row's panels share it by their widths. Every panel reads the data source that the dashboard's
variable `datasource` names.
"""

import re

GRID_WIDTH = 24
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
# The JSON model of Grafana 10: https://grafana.com/docs/grafana/v10.0/dashboards/build-dashboards/view-dashboard-json-model/
SCHEMA_VERSION = 38
TAG = "lengthwise"


def query(expr, legend="", *, instant=False, form="time_series"):
    """A PromQL query; `legend` names a series by its labels: "{{worker}}". `form`: time_series, table or heatmap."""
    return {"expr": " ".join(expr.split()), "legend": legend, "instant": instant, "form": form}


def _panel(kind, title, description, queries, *, unit, width, height=8, options=None, defaults=None, custom=None,
           overrides=None, transformations=None):
    field = {"unit": unit, **(defaults or {})}
    if custom:
        field["custom"] = custom
    panel = {
        "type": kind,
        "title": title,
        "description": description,
        "datasource": DATASOURCE,
        "gridPos": {"w": width, "h": height},
        "fieldConfig": {"defaults": field, "overrides": overrides or []},
        "options": options or {},
        "targets": [
            {
                "refId": chr(ord("A") + i),
                "datasource": DATASOURCE,
                "editorMode": "code",
                "expr": q["expr"],
                "legendFormat": q["legend"] or "__auto",
                "range": not q["instant"],
                "instant": q["instant"],
                "format": q["form"],
            }
            for i, q in enumerate(queries)
        ],
    }
    if transformations:
        panel["transformations"] = transformations
    return panel


def graph(title, description, *queries, unit="short", width=8, stacked=False, minimum=0, maximum=None, height=8,
          logarithmic=False):
    """Lines over time. `minimum` None: what the data have."""
    defaults = {}
    if minimum is not None and not logarithmic:
        defaults["min"] = minimum
    if maximum is not None:
        defaults["max"] = maximum
    return _panel(
        "timeseries", title, description, queries, unit=unit, width=width, height=height, defaults=defaults,
        custom={
            "drawStyle": "line",
            "lineWidth": 1,
            "fillOpacity": 25 if stacked else 0,
            "showPoints": "never",
            "spanNulls": False,
            "stacking": {"mode": "normal" if stacked else "none", "group": "A"},
            "scaleDistribution": {"type": "log", "log": 10} if logarithmic else {"type": "linear"},
        },
        options={
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
            "tooltip": {"mode": "multi", "sort": "desc"},
        })


def number(title, description, one, *, unit="short", width=4, height=4, thresholds=None):
    """The newest value, large. `thresholds`: pairs of a color and the value from which it holds, the first for all."""
    steps = [{"color": color, "value": value} for color, value in thresholds or [("text", None)]]
    return _panel(
        "stat", title, description, [one], unit=unit, width=width, height=height,
        defaults={"thresholds": {"mode": "absolute", "steps": steps}},
        options={
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
            "colorMode": "value", "graphMode": "area", "justifyMode": "auto", "orientation": "auto", "textMode": "auto",
        })


def bars(title, description, one, *, unit="percentunit", width=8, height=8, maximum=1):
    """A bar for each series, with its newest value."""
    return _panel(
        "bargauge", title, description, [one], unit=unit, width=width, height=height,
        defaults={"min": 0, "max": maximum, "color": {"mode": "continuous-BlPu"}},
        options={
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
            "displayMode": "gradient", "orientation": "horizontal", "showUnfilled": True, "valueMode": "color",
            "minVizWidth": 0, "minVizHeight": 10,
        })


def heat_map(title, description, one, *, unit, cell_unit, width=12, height=10, cell_maximum=None):
    """Time from left to right; a row for each series, or for each bucket of a histogram (form="heatmap")."""
    color = {"mode": "scheme", "scheme": "Viridis", "steps": 64, "reverse": False, "exponent": 0.5, "fill": "dark-orange"}
    if cell_maximum is not None:
        color.update(min=0, max=cell_maximum)
    return _panel(
        "heatmap", title, description, [one], unit=unit, width=width, height=height,
        custom={"scaleDistribution": {"type": "linear"},
                "hideFrom": {"legend": False, "tooltip": False, "viz": False}},
        options={
            "calculate": False,
            "rowsFrame": {"layout": "auto"},
            "cellGap": 1,
            "cellValues": {"unit": cell_unit},
            "color": color,
            "filterValues": {"le": 1e-9} if one["form"] == "heatmap" else {},
            "exemplars": {"color": "rgba(255,0,255,0.7)"},
            "legend": {"show": True},
            "showValue": "never",
            "tooltip": {"show": True, "yHistogram": False},
            "yAxis": {"axisPlacement": "left", "reverse": False, "unit": unit},
        })


def table(title, description, *queries, columns, units=None, links=None, width=24, height=8, sort_by=None):
    """A row for each series, newest values. `columns`: what each field is called, in this order; others are hidden. The
    value of the only query is the field Value, of several Value #A, Value #B, ..., joined by their common labels. `links`:
    where a click on a field leads."""
    shown = {"indexByName": {name: i for i, name in enumerate(columns)}, "renameByName": columns, "excludeByName": {}}
    transformations = [{"id": "merge", "options": {}}] if len(queries) > 1 else []
    transformations.append({"id": "filterFieldsByName", "options": {"include": {"names": list(columns)}}})
    transformations.append({"id": "organize", "options": shown})
    overrides = [
        {"matcher": {"id": "byName", "options": name}, "properties": [{"id": "unit", "value": unit}]}
        for name, unit in (units or {}).items()
    ] + [
        {"matcher": {"id": "byName", "options": name},
         "properties": [{"id": "links", "value": [{"title": title, "url": url, "targetBlank": False}]}]}
        for name, (title, url) in (links or {}).items()
    ]
    options = {"showHeader": True, "cellHeight": "sm", "footer": {"show": False, "reducer": ["sum"], "fields": ""}}
    if sort_by:
        options["sortBy"] = [{"displayName": sort_by, "desc": False}]
    return _panel("table", title, description, queries, unit="none", width=width, height=height, overrides=overrides,
                  transformations=transformations, custom={"align": "auto", "filterable": True}, options=options)


def variable(name, label, values, *, several=False):
    """Chosen by the reader among the values of a query, such as label_values(up, instance)."""
    return {
        "type": "query",
        "name": name,
        "label": label,
        "datasource": DATASOURCE,
        "query": {"query": values, "refId": f"variable-{name}"},
        "definition": values,
        "refresh": 2,  # when the time range changes: what runs now changes
        "regex": "",
        "sort": 1,
        "multi": several,
        "includeAll": several,
        **({"allValue": ".*"} if several else {}),
        "hide": 0,
        "options": [],
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]} if several else {},
    }


def dashboard(uid, title, description, rows, *, variables=(), span="1h", refresh="10s"):
    """`rows`: pairs of a heading and its panels; a heading "" gives none."""
    panels = []
    y = 0
    for heading, row in rows:
        if heading:
            panels.append({"type": "row", "title": heading, "collapsed": False, "panels": [],
                           "gridPos": {"x": 0, "y": y, "w": GRID_WIDTH, "h": 1}})
            y += 1
        x = height = 0
        for panel in row:
            size = panel["gridPos"]
            if x + size["w"] > GRID_WIDTH:
                x, y, height = 0, y + height, 0
            panels.append({**panel, "gridPos": {"x": x, "y": y, **size}})
            x += size["w"]
            height = max(height, size["h"])
        y += height
    for i, panel in enumerate(panels):
        panel["id"] = i + 1
    assert re.fullmatch(r"[a-z-]{1,40}", uid)
    return {
        "uid": uid,
        "title": title,
        "description": description,
        "tags": [TAG],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,  # one crosshair for all panels
        "timezone": "browser",
        "time": {"from": f"now-{span}", "to": "now"},
        "timepicker": {},
        "refresh": refresh,
        "fiscalYearStartMonth": 0,
        "links": [{
            "type": "dashboards", "title": "Lengthwise", "tags": [TAG], "asDropdown": False, "includeVars": True,
            "keepTime": True, "targetBlank": False, "icon": "external link", "tooltip": "", "url": "",
        }],
        "annotations": {"list": [{
            "name": "Server restarts", "enable": True, "hide": False, "iconColor": "orange", "datasource": DATASOURCE,
            "expr": 'changes(process_start_time_seconds{job="lengthwise", instance=~"$instance"}[$__interval]) > 0',
            "titleFormat": "restart of {{instance}}", "step": "30s",
        }]},
        "templating": {"list": [
            {"type": "datasource", "name": "datasource", "label": "Data source", "query": "prometheus", "regex": "",
             "refresh": 1, "multi": False, "includeAll": False, "hide": 0, "options": [], "current": {}},
            variable("instance", "Server", 'label_values(lengthwise_trials{job="lengthwise"}, instance)', several=True),
            *variables,
        ]},
        "panels": panels,
    }
