"""The nodes on which a DaemonSet wants a pod: those that its template selects and whose taints it tolerates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from stromboli.api.errors import BadObject
from stromboli.api.selectors import matches_node_term, tolerates
from stromboli.api.types.node import Node, Taint
from stromboli.api.types.pod import PodSpec, Toleration
from stromboli.controllers.workloads.workload import Workload, template_part
from stromboli.controllers.workloads.workload_pods import DAEMON_TOLERATIONS, NETWORK_TOLERATION

NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "NoExecute"


class Eligibility(NamedTuple):
    """Whether a pod is to be on a node, and whether one that is there may stay."""

    starts: bool
    stays: bool


_NEITHER = Eligibility(starts=False, stays=False)


class NodeEligibility:
    """What the template of a DaemonSet asks of nodes."""

    def __init__(self, owner: Workload) -> None:
        manifest = template_part(owner.spec.template, "spec", "spec.template")
        try:
            spec = msgspec.convert(manifest, PodSpec)
        except msgspec.ValidationError as error:
            raise BadObject("spec.template.spec", str(error), owner.subject) from None
        self._node_name = spec.node_name
        self._selector = spec.node_selector or {}
        affinity = spec.affinity.node_affinity if spec.affinity is not None else None
        self._required = affinity.required if affinity is not None else None
        added = [*DAEMON_TOLERATIONS, *([NETWORK_TOLERATION] if manifest.get("hostNetwork") else [])]
        self._tolerations = [
            *spec.tolerations,
            *(Toleration(key=key, operator="Exists", effect=effect) for key, effect in added),
        ]

    def of(self, name: str, labels: Mapping[str, str], taints: Iterable[Taint]) -> Eligibility:
        """Of a node with this name, these labels and taints."""
        if not self._selects(name, labels):
            return _NEITHER
        effects = {taint.effect for taint in taints if not tolerates(self._tolerations, taint)}
        return Eligibility(
            NO_SCHEDULE not in effects and NO_EXECUTE not in effects, NO_EXECUTE not in effects
        )

    def _selects(self, name: str, labels: Mapping[str, str]) -> bool:
        if self._node_name not in ("", name):
            return False
        if any(labels.get(key) != value for key, value in self._selector.items()):
            return False
        return self._required is None or any(
            matches_node_term(term, labels, name) for term in self._required.node_selector_terms
        )


def daemon_nodes(owner: Workload, nodes: Iterable[Node]) -> list[str]:
    """The names of the nodes on which a DaemonSet wants a pod."""
    eligibility = NodeEligibility(owner)
    return [
        node.name
        for node in nodes
        if eligibility.of(node.name, node.metadata.labels, node.spec.taints).starts
    ]
