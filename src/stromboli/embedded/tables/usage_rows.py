"""Rows of what nodes and pods use."""

from __future__ import annotations

from stromboli.api.resources.quantity import exact
from stromboli.embedded.tables.table_printer import Cells, Content, name_of, nested_map, printer


def _node(metrics: Content, now: float) -> Cells:
    usage = nested_map(metrics, "usage")
    return [name_of(metrics), usage.get("cpu", ""), usage.get("memory", ""), metrics.get("window", "")]


def _pod(metrics: Content, now: float) -> Cells:
    usages = [nested_map(container, "usage") for container in metrics.get("containers") or ()]
    cpu = sum(exact(usage.get("cpu", 0)) for usage in usages) * 10**9
    memory = sum(exact(usage.get("memory", 0)) for usage in usages) // 1024
    return [name_of(metrics), f"{int(cpu)}n", f"{memory}Ki", metrics.get("window", "")]


PRINTERS = {
    "nodes.metrics.k8s.io": printer("Name | cpu | memory | Window", _node),
    "pods.metrics.k8s.io": printer("Name | cpu | memory | Window", _pod),
}
