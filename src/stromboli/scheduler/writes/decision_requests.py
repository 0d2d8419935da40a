"""Each decision as a request to the API server (spec 05 6.4, 7, 9)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from stromboli.api import names
from stromboli.api.types.meta import Condition
from stromboli.api.types.native_group import condition_type
from stromboli.api.types.node_shard import NodeShard
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import PodGroup, Queue
from stromboli.engine.decisions import (
    Bind,
    Evict,
    GateRemoval,
    NativeGroupCondition,
    PodCondition,
    PodGroupStatus,
    QueueAnnotation,
    QueueStatus,
    ShardStatus,
)
from stromboli.kube.api_resources import RESOURCES
from stromboli.kube.request import MERGE, STRATEGIC, Request
from stromboli.kube.timestamps import timestamp

COUNTS = ("running", "succeeded", "failed")
"""The counts of pods in the status of a PodGroup."""
MAX_MESSAGE = 32768
"""Characters of a condition's message; the API server refuses longer ones."""


def pod_path(namespace: str, name: str, subresource: str = "") -> str:
    return RESOURCES[Pod].path(namespace, name, subresource)


def binding(bind: Bind) -> Request:
    """With the uid, so that no other pod of that name is bound, and with the annotations that grants add."""
    metadata: dict[str, Any] = {"namespace": bind.namespace, "name": bind.name, "uid": bind.uid}
    if annotations := {key: value for grant in bind.grants for key, value in dict(grant.annotations).items()}:
        metadata["annotations"] = annotations
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": metadata,
        "target": {"apiVersion": "v1", "kind": "Node", "name": bind.node},
    }
    return _request("POST", pod_path(bind.namespace, bind.name, "binding"), body)


def eviction_mark(evict: Evict, message: str, scheduler: str, now: float) -> Request:
    """Sets the conditions of a pod that is to be evicted."""
    since = timestamp(now)
    conditions = [
        _condition(names.CONDITION_READY, "False", names.EVENT_EVICT, message, since),
        _condition(
            names.CONDITION_DISRUPTION_TARGET,
            "True",
            names.PREEMPTION_BY_SCHEDULER,
            names.PREEMPTING.format(scheduler=scheduler),
            since,
        ),
    ]
    return _status_patch(evict.namespace, evict.name, evict.uid, {"conditions": conditions})


def deletion(evict: Evict) -> Request:
    """With the pod's own grace period, and only if it has this uid."""
    body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": evict.uid}}
    return _request("DELETE", pod_path(evict.namespace, evict.name), body)


def pod_condition(decision: PodCondition, since: float | None) -> Request:
    """Why a pod waits; `since` only if it had no such condition before."""
    condition = _condition(
        names.CONDITION_POD_SCHEDULED,
        "False",
        decision.reason,
        decision.message,
        None if since is None else timestamp(since),
    )
    status: dict[str, Any] = {"conditions": [condition]}
    if decision.nominated_node:
        status["nominatedNodeName"] = decision.nominated_node
    return _status_patch(decision.namespace, decision.name, decision.uid, status)


def extended_resource_status(bind: Bind, status: Mapping[str, Any] | None) -> Request:
    """Tells a pod which ResourceClaim was made for its extended resources, or that there is none."""
    return _status_patch(bind.namespace, bind.name, bind.uid, {"extendedResourceClaimStatus": status})


def group_status(
    decision: PodGroupStatus,
    uid: str,
    version: str,
    counted: Set[str],
    conditions: Iterable[Mapping[str, Any]],
) -> Request:
    """A patch of the status alone, as PodGroups have no status subresource; refused unless this is its version.

    Counts of zero are left out, as Go leaves them out, unless another number stands there (`counted`).
    """
    status: dict[str, Any] = {"phase": decision.phase}
    status |= {name: getattr(decision, name) for name in COUNTS if name in counted or getattr(decision, name)}
    status["conditions"] = list(conditions)
    metadata = _without_empty({"uid": uid, "resourceVersion": version})
    body = {"metadata": metadata, "status": status} if metadata else {"status": status}
    return _request("PATCH", RESOURCES[PodGroup].path(decision.namespace, decision.name), body, MERGE)


def list_of_one_group(namespace: str, name: str) -> Request:
    query = urlencode({"fieldSelector": f"metadata.name={name}"})
    return Request("GET", f"{RESOURCES[PodGroup].path(namespace)}?{query}")


def counted(status: Any) -> frozenset[str]:
    """The counts in a status of a PodGroup, or in a decision about it, that are not zero."""
    return frozenset(name for name in COUNTS if getattr(status, name))


def group_conditions(
    current: Iterable[Mapping[str, Any]], decision: PodGroupStatus, now: float
) -> dict[str, Mapping[str, Any]]:
    """All conditions of a PodGroup by type: the current ones, overridden by the decision's."""
    conditions = {str(condition.get("type", "")): condition for condition in current}
    for new in decision.conditions:
        fields = _condition(new.type, new.status, new.reason, new.message, timestamp(now))
        conditions[new.type] = _without_empty({**fields, "transitionID": new.transition_id})
    return conditions


def as_json(condition: Condition) -> dict[str, str]:
    since = condition.last_transition_time
    fields = _condition(
        condition.type,
        condition.status,
        condition.reason,
        condition.message,
        timestamp(since.timestamp()) if since else None,
    )
    return _without_empty({**fields, "transitionID": condition.transition_id})


def _without_empty(fields: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in fields.items() if value}


def native_condition(
    decision: NativeGroupCondition, uid: str, api_version: str, generation: int, since: str
) -> Request:
    """Whether a native group was scheduled, with the condition type of its API version; other conditions stay."""
    condition = _condition(
        condition_type(api_version), decision.status, decision.reason, decision.message[:MAX_MESSAGE], since
    )
    body = {
        "metadata": {"uid": uid},
        "status": {"conditions": [{**condition, "observedGeneration": generation}]},
    }
    path = f"/apis/{api_version}/namespaces/{quote(decision.namespace, safe='')}/podgroups"
    return _request("PATCH", f"{path}/{quote(decision.name, safe='')}/status", body, STRATEGIC)


def queue_status(decision: QueueStatus, written: Iterable[str]) -> Request:
    """What a queue has allocated; resources `written` before and no longer held are removed."""
    allocated: dict[str, str | None] = {name: None for name in written if name not in decision.allocated}
    body = {"status": {"allocated": allocated | decision.allocated}}
    return _request("PATCH", RESOURCES[Queue].path(name=decision.name, subresource="status"), body, MERGE)


def queue_annotation(decision: QueueAnnotation) -> Request:
    body = {"metadata": {"annotations": {decision.key: decision.value}}}
    return _request("PATCH", RESOURCES[Queue].path(name=decision.name), body, MERGE)


def shard_status(decision: ShardStatus) -> Request:
    status = {
        "nodesInUse": decision.in_use,
        "nodesToAdd": decision.to_add,
        "nodesToRemove": decision.to_remove,
    }
    path = RESOURCES[NodeShard].path(name=decision.name, subresource="status")
    return _request("PATCH", path, {"status": status}, MERGE)


def gate_removal(decision: GateRemoval) -> Request:
    """Removes this gate from the list and keeps the others."""
    gate = {"name": names.QUEUE_ALLOCATION_GATE, "$patch": "delete"}
    body = {"metadata": {"uid": decision.uid}, "spec": {"schedulingGates": [gate]}}
    return _request("PATCH", pod_path(decision.namespace, decision.name), body, STRATEGIC)


def _status_patch(namespace: str, name: str, uid: str, status: dict[str, Any]) -> Request:
    body = {"metadata": {"uid": uid}, "status": status}
    return _request("PATCH", pod_path(namespace, name, "status"), body, STRATEGIC)


def _condition(type: str, status: str, reason: str, message: str, since: str | None) -> dict[str, str]:
    text = message if message.isascii() else message.encode(errors="replace").decode()
    fields = {"type": type, "status": status, "reason": reason, "message": text}
    return fields if since is None else {**fields, "lastTransitionTime": since}


def _request(method: str, path: str, body: Any, content_type: str = "application/json") -> Request:
    return Request(method, path, msgspec.json.encode(body), content_type)
