"""The PodGroup of a pod that came without one (spec 06 4)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from stromboli.api import names
from stromboli.api.resources.quota_charges import add_charges, as_resource_list, pod_charges, same_amounts
from stromboli.api.types.meta import OwnerReference
from stromboli.api.types.scheduling import PodGroup
from stromboli.controllers.watched_kinds import Pod

PREFIX = "podgroup-"
INHERITED = "volcano.sh/"
_WHOLE = re.compile(r"[+-]?[0-9]{1,9}", re.ASCII)
_FROM_POD = (names.PREEMPTABLE, names.COOLDOWN_TIME, names.REVOCABLE_ZONE)
_LABELS = (names.PREEMPTABLE, names.COOLDOWN_TIME)

Marks = Mapping[str, str]


def controller_of(pod: Pod) -> OwnerReference | None:
    """Who made the pod and looks after it."""
    return next((owner for owner in pod.metadata.owner_references if owner.controller), None)


def group_name(pod: Pod) -> str:
    """All pods of one owner share a group."""
    owner = controller_of(pod)
    return PREFIX + (owner.uid if owner is not None else pod.metadata.uid)


def group_of(pod: Pod, owners: Iterable[Marks] = ()) -> dict[str, Any]:
    """The group's manifest. `owners`: the annotations of whoever made the pod; the first that has a key counts."""
    inherited: dict[str, str] = {}
    for marks in owners:
        inherited = {**marks, **inherited}
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
            "labels": {key: pod.metadata.labels[key] for key in _LABELS if key in pod.metadata.labels},
        },
        "spec": spec,
        "status": {"phase": names.GROUP_PENDING},
    }


def changes(group: PodGroup, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """What of a group has to change to be as wanted; what others put there stays."""
    meta = {
        part: {key: value for key, value in wanted["metadata"][part].items() if have.get(key) != value}
        for part, have in (("annotations", group.metadata.annotations), ("labels", group.metadata.labels))
    }
    meta = {part: marks for part, marks in meta.items() if marks}
    spec = {name: value for name, value in wanted["spec"].items() if not _same(group, name, value)}
    return {**({"metadata": meta} if meta else {}), **({"spec": spec} if spec else {})}


def _same(group: PodGroup, name: str, value: Any) -> bool:
    spec = group.spec
    if name == "minResources":
        return spec.min_resources is not None and same_amounts(spec.min_resources, value)
    if name == "networkTopology":
        topology = spec.network_topology
        return topology is not None and value == {
            "mode": topology.mode,
            **(
                {"highestTierAllowed": topology.highest_tier_allowed}
                if topology.highest_tier_allowed is not None
                else {}
            ),
        }
    have = {
        "minMember": spec.min_member,
        "priorityClassName": spec.priority_class_name,
        "queue": spec.queue,
    }
    return bool(have[name] == value)


def _minimum(text: str) -> int:
    """A whole number, not negative; anything else counts as 1."""
    number = int(text) if _WHOLE.fullmatch(text) else -1
    return number if number >= 0 else 1


def _annotations(own: Marks, inherited: Marks) -> dict[str, str]:
    """The owners' that are Volcano's, and over them a few of the pod's."""
    kept = {key: value for key, value in inherited.items() if key.startswith(INHERITED)}
    kept.update((key, own[key]) for key in _FROM_POD if key in own)
    for key in (names.JDB_MIN_AVAILABLE, names.JDB_MAX_UNAVAILABLE):
        if key in own:
            kept[key] = own[key]
            break
    return kept


def _topology(marks: Marks) -> dict[str, Any] | None:
    if names.NETWORK_TOPOLOGY_MODE not in marks and names.NETWORK_TOPOLOGY_HIGHEST_TIER not in marks:
        return None
    mode = marks.get(names.NETWORK_TOPOLOGY_MODE, "").lower()
    tier = marks.get(names.NETWORK_TOPOLOGY_HIGHEST_TIER, "")
    known = mode in (names.TOPOLOGY_HARD, names.TOPOLOGY_SOFT)
    topology: dict[str, Any] = {"mode": mode if known else names.TOPOLOGY_HARD}
    if _WHOLE.fullmatch(tier) and int(tier) >= 0:
        topology["highestTierAllowed"] = int(tier)
    return topology


def _owner_references(pod: Pod) -> list[dict[str, Any]]:
    """The pod's own, or the pod. No group keeps its owner from being deleted: that would need rights on every kind."""
    if controller_of(pod) is None:
        return [_reference("v1", "Pod", pod.name, pod.metadata.uid, True)]
    return [
        _reference(one.api_version, one.kind, one.name, one.uid, one.controller)
        for one in pod.metadata.owner_references
    ]


def _reference(version: str, kind: str, name: str, uid: str, controller: bool) -> dict[str, Any]:
    reference: dict[str, Any] = {"apiVersion": version, "kind": kind, "name": name, "uid": uid}
    return {**reference, "controller": True} if controller else reference
