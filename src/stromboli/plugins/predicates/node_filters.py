"""Filters that look at a node by itself: its pod slots, its cordon, labels and taints (spec 04 1.3, 2.2-2.4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stromboli.api import names
from stromboli.engine.placement.node_functions import Check, Nodes
from stromboli.model.constraints.node_selection import matching_nodes, required_selector
from stromboli.model.constraints.taints import cordoned_nodes, tolerable_nodes, tolerates_cordon
from stromboli.model.shape import VIEW_PODS

if TYPE_CHECKING:
    from stromboli.api.types.pod import NodeSelectorTerm, PodSpec
    from stromboli.model.task import Task


def pod_slots(task: Task, nodes: Nodes) -> Iterator[Check]:
    """A node runs at most as many pods as its status allows."""
    free = nodes.view[VIEW_PODS] < nodes.view_allocatable[VIEW_PODS]
    yield Check(free, names.POD_NUMBER_EXCEEDED, curable=True)


def cordon(task: Task, nodes: Nodes) -> Iterator[Check]:
    """A node marked unschedulable takes only pods that tolerate that."""
    if not tolerates_cordon(task.shape.spec.tolerations):
        yield Check(~nodes.pick(cordoned_nodes(nodes.columns)), names.NODE_UNSCHEDULABLE)


def node_affinity(task: Task, nodes: Nodes) -> Iterator[Check]:
    """nodeSelector and required node affinity."""
    yield Check(nodes.pick(matching_nodes(nodes.columns, task.shape.spec)), names.NODE_AFFINITY_MISMATCH)


def taints(task: Task, nodes: Nodes) -> Iterator[Check]:
    """A taint keeps away pods that do not tolerate it."""
    tolerable = tolerable_nodes(nodes.columns, task.shape.spec.tolerations)
    yield Check(nodes.pick(tolerable), names.UNTOLERATED_TAINT)


def names_conflict(spec: PodSpec) -> bool:
    """Whether every required term selects by node name and none of them selects any name."""
    required = required_selector(spec)
    if required is None or not required.node_selector_terms:
        return False
    return all(_allowed_names(term) == set() for term in required.node_selector_terms)


def _allowed_names(term: NodeSelectorTerm) -> set[str] | None:
    """The node names that a term allows; None where it allows all."""
    allowed: set[str] | None = None
    for field in term.match_fields:
        if field.key == names.NODE_NAME_FIELD and field.operator == "In":
            allowed = set(field.values) if allowed is None else allowed & set(field.values)
    return allowed
