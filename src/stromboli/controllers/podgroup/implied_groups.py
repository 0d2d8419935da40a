"""The PodGroup that is created for a pod without one (spec 06 4)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from stromboli.api import names
from stromboli.api.resources.quota_charges import add_charges, as_resource_list, pod_charges, same_amounts
from stromboli.api.types.meta import OwnerReference
from stromboli.api.types.scheduling import PodGroup
from stromboli.controllers.inherited_metadata import inherited_annotations, inherited_labels
from stromboli.controllers.owner_references import controller_of
from stromboli.controllers.watched_kinds import Pod

PREFIX = "podgroup-"
INHERITED = "volcano.sh/"
_WHOLE = re.compile(r"[+-]?[0-9]{1,9}", re.ASCII)

Annotations = Mapping[str, str]


def group_name(pod: Pod) -> str:
    """All pods of one owner share a group."""
    owner = controller_of(pod)
    return PREFIX + (owner.uid if owner is not None else pod.metadata.uid)


def group_of(pod: Pod, owners: Iterable[Annotations] = ()) -> dict[str, Any]:
    """The group's manifest. `owners`: the annotations of the pod's owners; the first owner that has a key counts."""
    inherited: dict[str, str] = {}
    for owner in owners:
        inherited = {**owner, **inherited}
    minimum = _minimum(inherited.get(names.GROUP_MIN_MEMBER, ""))
    total: dict[str, Any] = {}
    add_charges(total, pod_charges(pod.spec), minimum)
    spec: dict[str, Any] = {"minMember": minimum, "minResources": as_resource_list(total)}
    if pod.spec.priority_class_name:
        spec["priorityClassName"] = pod.spec.priority_class_name
    if queue := pod.metadata.annotations.get(names.QUEUE_NAME):
        spec["queue"] = queue
    if topology := _topology(pod.metadata.annotations):
        spec["networkTopology"] = topology
    return {
        "metadata": {
            "name": group_name(pod),
            "namespace": pod.namespace,
            "ownerReferences": _owner_references(pod),
            "annotations": _annotations(pod.metadata.annotations, inherited),
            "labels": inherited_labels(pod.metadata.labels),
        },
        "spec": spec,
        "status": {"phase": names.GROUP_PENDING},
    }


def annotations_of(owner: Any) -> Annotations:
    """The annotations of an owner of pods; a Job that is ended after some time says so by its deadline as well."""
    annotations: Annotations = owner.metadata.annotations
    deadline = getattr(getattr(owner, "spec", None), "active_deadline_seconds", None)
    if not deadline or names.TIME_LIMIT in annotations:
        return annotations
    return {**annotations, names.TIME_LIMIT: str(deadline)}


def changes(group: PodGroup, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """A merge patch that makes a group as wanted; annotations and labels that others added stay."""
    meta = {
        part: {key: value for key, value in wanted["metadata"][part].items() if have.get(key) != value}
        for part, have in (("annotations", group.metadata.annotations), ("labels", group.metadata.labels))
    }
    meta = {part: entries for part, entries in meta.items() if entries}
    spec = {name: value for name, value in wanted["spec"].items() if not _same(group, name, value)}
    return {**({"metadata": meta} if meta else {}), **({"spec": spec} if spec else {})}


def _same(group: PodGroup, name: str, value: Any) -> bool:
    spec = group.spec
    if name == "minResources":
        return spec.min_resources is not None and same_amounts(spec.min_resources, value)
    if name == "networkTopology":
        topology = spec.network_topology
        stated = (value["mode"], value.get("highestTierAllowed"))
        return topology is not None and (topology.mode, topology.highest_tier_allowed) == stated
    have = {
        "minMember": spec.min_member,
        "priorityClassName": spec.priority_class_name,
        "queue": spec.queue,
    }
    return bool(have[name] == value)


def _minimum(text: str) -> int:
    """A whole number that is not negative; 1 for anything else."""
    number = int(text) if _WHOLE.fullmatch(text) else -1
    return number if number >= 0 else 1


def _annotations(own: Annotations, inherited: Annotations) -> dict[str, str]:
    """The owners' annotations that are Volcano's, and their time limit, overridden by a few of the pod's."""
    of_owners = {
        key: value for key, value in inherited.items() if key.startswith(INHERITED) or key == names.TIME_LIMIT
    }
    return of_owners | inherited_annotations(own)


def _topology(annotations: Annotations) -> dict[str, Any] | None:
    if (
        names.NETWORK_TOPOLOGY_MODE not in annotations
        and names.NETWORK_TOPOLOGY_HIGHEST_TIER not in annotations
    ):
        return None
    mode = annotations.get(names.NETWORK_TOPOLOGY_MODE, "").lower()
    tier = annotations.get(names.NETWORK_TOPOLOGY_HIGHEST_TIER, "")
    known = mode in (names.TOPOLOGY_HARD, names.TOPOLOGY_SOFT)
    topology: dict[str, Any] = {"mode": mode if known else names.TOPOLOGY_HARD}
    if _WHOLE.fullmatch(tier) and int(tier) >= 0:
        topology["highestTierAllowed"] = int(tier)
    return topology


def _owner_references(pod: Pod) -> list[dict[str, Any]]:
    """The pod's owners, or the pod. Without blockOwnerDeletion, which would need rights on every kind of owner."""
    owners = pod.metadata.owner_references
    if controller_of(pod) is None:
        owners = (OwnerReference("v1", "Pod", pod.name, pod.metadata.uid, controller=True),)
    return [msgspec.to_builtins(owner) for owner in owners]
