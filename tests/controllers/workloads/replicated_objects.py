"""Pods, ReplicaSets and Deployments as controllers read them, for tables of tests."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from stromboli.api.decoding import decode_as
from stromboli.api.types.controlled_pod import Pod
from stromboli.api.types.meta import Object
from stromboli.controllers.workloads.workload_kinds import Deployment, ReplicaSet

Kind = TypeVar("Kind", bound=Object)

NOW = 1_800_000_000.0
LABELS = {"app": "web"}


def at(seconds: float) -> str:
    """So many seconds before now."""
    return datetime.fromtimestamp(NOW - seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def decoded(kind: type[Kind], metadata: Any, spec: Any, status: Any) -> Kind:
    base = {"namespace": "team", "uid": f"uid-{metadata['name']}", "generation": 1, "labels": LABELS}
    manifest = {"metadata": {**base, **metadata}, "spec": spec, "status": status}
    return decode_as(kind, msgspec.json.encode(manifest))


def pod(
    name: str,
    node: str = "n1",
    phase: str = "Running",
    ready: float | None = None,
    age: float = 1000.0,
    restarts: int = 0,
    **metadata: Any,
) -> Pod:
    """`ready`: for how many seconds, None if it is not."""
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": at(ready or 0.0)}
    status = {
        "phase": phase,
        "conditions": [] if ready is None else [condition],
        "containerStatuses": [{"restartCount": restarts}],
    }
    return decoded(Pod, {"name": name, "creationTimestamp": at(age), **metadata}, {"nodeName": node}, status)


def template(image: str) -> Any:
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "m", "image": image}]}}


def replica_set(
    name: str,
    replicas: int,
    available: int | None = None,
    image: str = "old",
    age: float = 0.0,
    status: Any = None,
    deleting: bool = False,
    **annotations: str,
) -> ReplicaSet:
    """Annotations are named without the domain of Deployments, with _ for -."""
    noted = {f"deployment.kubernetes.io/{key.replace('_', '-')}": text for key, text in annotations.items()}
    count = replicas if available is None else available
    metadata = {"name": name, "creationTimestamp": at(age), "annotations": noted}
    if deleting:
        metadata["deletionTimestamp"] = at(0)
    counts = {"replicas": replicas, "readyReplicas": count, "availableReplicas": count}
    spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template(image)}
    return decoded(ReplicaSet, metadata, spec, {**counts, "observedGeneration": 1, **(status or {})})


def deployment(replicas: int, image: str = "new", status: Any = None, **spec: Any) -> Deployment:
    base = {
        "replicas": replicas,
        "selector": {"matchLabels": LABELS},
        "template": template(image),
        "progressDeadlineSeconds": 600,
        "revisionHistoryLimit": 10,
    }
    return decoded(Deployment, {"name": "web"}, {**base, **spec}, status or {})


def rolling(surge: int | str, unavailable: int | str) -> Any:
    return {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable},
    }
