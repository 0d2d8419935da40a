"""Namespaces."""

from __future__ import annotations

from stromboli.embedded.kinds.kind import CLUSTER, STATUS, VERBS, Content, Subresource, builtin, fields
from stromboli.embedded.kinds.strategy import Strategy
from stromboli.embedded.tables.table_printer import field_printer


class NamespaceStrategy(Strategy):
    printer = field_printer("Name | Status | Age", "status", "phase")

    def initialise(self, content: Content) -> None:
        content["status"] = {"phase": "Active"}
        content["spec"] = {"finalizers": ["kubernetes"]}
        labels = content["metadata"].setdefault("labels", {}) or {}
        content["metadata"]["labels"] = {**labels, "kubernetes.io/metadata.name": content["metadata"]["name"]}

    def restore(self, content: Content, old: Content, subresource: str) -> None:
        if subresource == "":
            content["spec"] = old.get("spec", {})


KIND = builtin(
    "",
    "namespaces",
    "Namespace",
    "ns",
    Subresource("finalize", ("update",)),
    STATUS,
    selectable_fields=fields("status.phase"),
    verbs=tuple(verb for verb in VERBS if verb != "deletecollection"),
    strategy=NamespaceStrategy(),
    **CLUSTER,
)
