"""ReplicationControllers."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.api.schemas.apps import owner_rules
from stromboli.api.schemas.schema_problems import Problem
from stromboli.embedded.kinds.kind import IN_ALL, SCALE, STATUS, Content, builtin, fields
from stromboli.embedded.kinds.pod_owners import REPLICAS, ControllerStrategy


class ReplicationControllerStrategy(ControllerStrategy):
    kind_name = "ReplicationController"
    counted_by_name = True
    printer = REPLICAS

    def set_defaults(self, content: Content) -> None:
        """Its pods, and it itself, have the labels of the template, unless it says otherwise."""
        super().set_defaults(content)
        spec = content.get("spec") or {}
        if labels := owner_rules.template_labels(spec):
            if not spec.get("selector"):
                spec["selector"] = dict(labels)
            if not content["metadata"].get("labels"):
                content["metadata"]["labels"] = dict(labels)

    def owner_problems(self, content: Content) -> Iterable[Problem]:
        return owner_rules.replication_problems(content["spec"])


KIND = builtin(
    "",
    "replicationcontrollers",
    "ReplicationController",
    "rc",
    SCALE,
    STATUS,
    selectable_fields=fields("status.replicas=0"),
    strategy=ReplicationControllerStrategy(),
    **IN_ALL,
)
