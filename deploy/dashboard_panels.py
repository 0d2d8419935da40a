"""What Grafana's dashboards are made of: panels with a query or several, rows, variables, as its JSON wants them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

Json = dict[str, Any]

SCHEMA_VERSION = 39
"""Of Grafana 10.4 and newer."""
WIDTH = 24
"""Columns of a dashboard."""
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
OWN_ONLY = "Stromboli's scheduler tells this, Volcano's does not."
CONTROLLERS_ONLY = "Stromboli's controllers tell this, Volcano's do not."


class Query(NamedTuple):
    """An expression and the name of what it tells."""

    expr: str
    legend: str = ""


class Panel(NamedTuple):
    """A chart, or a number."""

    title: str
    queries: Sequence[Query]
    unit: str
    """Of Grafana: `ms`, `s`, `short`, `bytes`, `percentunit`, `opm` (per minute)."""
    description: str = ""
    kind: str = "timeseries"
    width: int = 12
    height: int = 8
    warn_above: float | None = None
    """Drawn as a line, or as a colour."""
    warn_below: float | None = None
    stacked: bool = False

    def json(self, id: int, x: int, y: int) -> Json:
        targets = [
            {
                "datasource": DATASOURCE,
                "expr": query.expr,
                "legendFormat": query.legend or "__auto",
                "refId": chr(ord("A") + place),
                "range": True,
            }
            for place, query in enumerate(self.queries)
        ]
        return {
            "id": id,
            "type": self.kind,
            "title": self.title,
            "description": self.description,
            "datasource": DATASOURCE,
            "gridPos": {"x": x, "y": y, "w": self.width, "h": self.height},
            "targets": targets,
            "fieldConfig": {"defaults": self._defaults(), "overrides": []},
            "options": _STAT_OPTIONS if self.kind == "stat" else _CHART_OPTIONS,
        }

    def _defaults(self) -> Json:
        steps: list[Json] = [{"color": "green", "value": None}]
        if self.warn_below is not None:
            steps = [{"color": "red", "value": None}, {"color": "green", "value": self.warn_below}]
        if self.warn_above is not None:
            steps.append({"color": "red", "value": self.warn_above})
        defaults: Json = {
            "unit": self.unit,
            "min": 0,
            "color": {"mode": "thresholds" if self.kind == "stat" else "palette-classic"},
            "thresholds": {"mode": "absolute", "steps": steps},
        }
        if self.kind == "timeseries":
            defaults["custom"] = {
                "lineWidth": 1,
                "fillOpacity": 20 if self.stacked else 0,
                "showPoints": "never",
                "stacking": {"mode": "normal" if self.stacked else "none", "group": "A"},
                "thresholdsStyle": {"mode": "off" if self.warn_above is None else "line"},
            }
        return defaults


_STAT_OPTIONS: Json = {
    "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
    "colorMode": "value",
    "graphMode": "area",
    "textMode": "auto",
}
_CHART_OPTIONS: Json = {
    "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
    "tooltip": {"mode": "multi", "sort": "desc"},
}


class Row(NamedTuple):
    """A heading, and the panels below it."""

    title: str
    panels: Sequence[Panel]


class Dashboard(NamedTuple):
    uid: str
    """Part of its address in Grafana, and the name of its file."""
    title: str
    description: str
    rows: Sequence[Row]
    variables: Sequence[Json]

    def json(self) -> Json:
        return {
            "uid": self.uid,
            "title": self.title,
            "description": self.description,
            "tags": ["stromboli", "volcano"],
            "schemaVersion": SCHEMA_VERSION,
            "version": 1,
            "editable": True,
            "graphTooltip": 1,
            "refresh": "30s",
            "time": {"from": "now-6h", "to": "now"},
            "timezone": "browser",
            "templating": {"list": [_SOURCE, *self.variables]},
            "annotations": {"list": []},
            "links": [_OTHERS],
            "panels": list(_laid_out(self.rows)),
        }


_SOURCE: Json = {
    "name": "datasource",
    "label": "Prometheus",
    "type": "datasource",
    "query": "prometheus",
    "refresh": 1,
}
_OTHERS: Json = {
    "title": "Stromboli",
    "type": "dashboards",
    "tags": ["stromboli"],
    "asDropdown": True,
    "includeVars": True,
    "keepTime": True,
}


def variable(name: str, label: str, metric: str, of: str) -> Json:
    """Values of a label of a metric to choose from, all of them at first."""
    query = f"label_values({metric}, {of})"
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": DATASOURCE,
        "definition": query,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def _laid_out(rows: Sequence[Row]) -> Iterable[Json]:
    """Panels from left to right as long as they fit, below the heading of their row."""
    id = y = 0
    for row in rows:
        id += 1
        yield {
            "id": id,
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "gridPos": {"x": 0, "y": y, "w": WIDTH, "h": 1},
            "panels": [],
        }
        x, y, tallest = 0, y + 1, 0
        for panel in row.panels:
            if x + panel.width > WIDTH:
                x, y, tallest = 0, y + tallest, 0
            id += 1
            yield panel.json(id, x, y)
            x, tallest = x + panel.width, max(tallest, panel.height)
        y += tallest
