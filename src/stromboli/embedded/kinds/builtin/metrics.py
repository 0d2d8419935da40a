"""Virtual resources: what nodes and pods use, answered by the nodes and never stored; served where there are nodes."""

from __future__ import annotations

from typing import Any

from stromboli.api.resources.quantity import exact
from stromboli.embedded.kinds.kind import Content, builtin
from stromboli.embedded.kinds.strategy import Strategy
from stromboli.embedded.tables.table_printer import Cells, name_of, nested_map, printer

_COLUMNS = "Name | cpu | memory | Window"


def _node_row(metrics: Content, now: float) -> Cells:
    usage = nested_map(metrics, "usage")
    return [name_of(metrics), usage.get("cpu", ""), usage.get("memory", ""), metrics.get("window", "")]


def _pod_row(metrics: Content, now: float) -> Cells:
    usages = [nested_map(container, "usage") for container in metrics.get("containers") or ()]
    cpu = sum(exact(usage.get("cpu", 0)) for usage in usages) * 10**9
    memory = sum(exact(usage.get("memory", 0)) for usage in usages) // 1024
    return [name_of(metrics), f"{int(cpu)}n", f"{memory}Ki", metrics.get("window", "")]


_VIRTUAL: dict[str, Any] = {"version": "v1beta1", "verbs": ("get", "list")}
METRICS = (
    builtin(
        "metrics.k8s.io",
        "nodes",
        "NodeMetrics",
        namespaced=False,
        strategy=Strategy(printer=printer(_COLUMNS, _node_row)),
        **_VIRTUAL,
    ),
    builtin(
        "metrics.k8s.io",
        "pods",
        "PodMetrics",
        strategy=Strategy(printer=printer(_COLUMNS, _pod_row)),
        **_VIRTUAL,
    ),
)
