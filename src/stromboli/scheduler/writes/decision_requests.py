"""Each decision as a request: what is asked of the API server, word for word (spec 05 6.4, 7, 9)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

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

LONGEST = 32768
"""Characters of the message of a condition; the API server refuses longer ones."""


def pod_path(namespace: str, name: str, subresource: str = "") -> str:
    return RESOURCES[Pod].path(namespace, name, subresource)


def binding(bind: Bind) -> Request:
    """A bind holds for that very pod: another one of its name has another uid."""
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"namespace": bind.namespace, "name": bind.name, "uid": bind.uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": bind.node},
    }
    return _request("POST", pod_path(bind.namespace, bind.name, "binding"), body)


def reading_pod(namespace: str, name: str) -> Request:
    return Request("GET", pod_path(namespace, name))


def eviction_mark(evict: Evict, message: str, scheduler: str, now: float) -> Request:
    """The conditions of a pod that has to go."""
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
    """The pod leaves with its own grace period, and only if it is that very pod."""
    body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": evict.uid}}
    return _request("DELETE", pod_path(evict.namespace, evict.name), body)


def pod_condition(said: PodCondition, since: float | None) -> Request:
    """Why a pod waits; `since` if it was not said to wait before."""
    condition = _condition(
        names.CONDITION_POD_SCHEDULED,
        "False",
        said.reason,
        said.message,
        None if since is None else timestamp(since),
    )
    status: dict[str, Any] = {"conditions": [condition]}
    if said.nominated_node:
        status["nominatedNodeName"] = said.nominated_node
    return _status_patch(said.namespace, said.name, said.uid, status)


def group_status(said: PodGroupStatus, uid: str, conditions: Iterable[Mapping[str, str]]) -> Request:
    """Status alone, though PodGroups have no status subresource: a patch never touches the spec."""
    status = {
        "phase": said.phase,
        "running": said.running,
        "succeeded": said.succeeded,
        "failed": said.failed,
        "conditions": list(conditions),
    }
    body = {"metadata": {"uid": uid}, "status": status} if uid else {"status": status}
    return _request("PATCH", RESOURCES[PodGroup].path(said.namespace, said.name), body, MERGE)


def group_conditions(
    standing: Iterable[Condition], said: PodGroupStatus, now: float
) -> dict[str, dict[str, str]]:
    """All conditions of a PodGroup by type: those that stand there, replaced by what is said now."""
    known = {one.type: _standing(one) for one in standing}
    for one in said.conditions:
        known[one.type] = {
            **_condition(one.type, one.status, one.reason, one.message, timestamp(now)),
            "transitionID": one.transition_id,
        }
    return known


def _standing(one: Condition) -> dict[str, str]:
    since = one.last_transition_time
    told = _condition(
        one.type, one.status, one.reason, one.message, timestamp(since.timestamp()) if since else None
    )
    return {**told, "transitionID": one.transition_id}


def native_condition(
    said: NativeGroupCondition, uid: str, api_version: str, generation: int, since: str
) -> Request:
    """Whether a native group was scheduled, under the name that its version has for it; other conditions stay."""
    condition = _condition(
        condition_type(api_version), said.status, said.reason, said.message[:LONGEST], since
    )
    body = {
        "metadata": {"uid": uid},
        "status": {"conditions": [{**condition, "observedGeneration": generation}]},
    }
    path = f"/apis/{api_version}/namespaces/{quote(said.namespace, safe='')}/podgroups"
    return _request("PATCH", f"{path}/{quote(said.name, safe='')}/status", body, STRATEGIC)


def queue_status(said: QueueStatus, stands: Iterable[str]) -> Request:
    """What a queue has allocated; resources that stand there and are no longer held are taken out."""
    allocated: dict[str, str | None] = {name: None for name in stands if name not in said.allocated}
    body = {"status": {"allocated": allocated | said.allocated}}
    return _request("PATCH", RESOURCES[Queue].path(name=said.name, subresource="status"), body, MERGE)


def queue_annotation(said: QueueAnnotation) -> Request:
    body = {"metadata": {"annotations": {said.key: said.value}}}
    return _request("PATCH", RESOURCES[Queue].path(name=said.name), body, MERGE)


def shard_status(said: ShardStatus) -> Request:
    status = {"nodesInUse": said.in_use, "nodesToAdd": said.to_add, "nodesToRemove": said.to_remove}
    path = RESOURCES[NodeShard].path(name=said.name, subresource="status")
    return _request("PATCH", path, {"status": status}, MERGE)


def gate_removal(said: GateRemoval) -> Request:
    """Takes this one gate out of the list, and leaves others alone."""
    gate = {"name": names.QUEUE_ALLOCATION_GATE, "$patch": "delete"}
    body = {"metadata": {"uid": said.uid}, "spec": {"schedulingGates": [gate]}}
    return _request("PATCH", pod_path(said.namespace, said.name), body, STRATEGIC)


def _status_patch(namespace: str, name: str, uid: str, status: dict[str, Any]) -> Request:
    body = {"metadata": {"uid": uid}, "status": status}
    return _request("PATCH", pod_path(namespace, name, "status"), body, STRATEGIC)


def _condition(type: str, status: str, reason: str, message: str, since: str | None) -> dict[str, str]:
    told = {"type": type, "status": status, "reason": reason, "message": message}
    return told if since is None else {**told, "lastTransitionTime": since}


def _request(method: str, path: str, body: Any, content_type: str = "application/json") -> Request:
    return Request(method, path, msgspec.json.encode(body), content_type)
