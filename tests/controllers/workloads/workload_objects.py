"""Small objects for tests of workloads: pods by a word each."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from stromboli.api.decoding import decode_as
from stromboli.api.types.controlled_pod import Pod
from stromboli.api.types.storage import PersistentVolumeClaim
from stromboli.controllers.workloads.controller_revisions import ControllerRevision
from stromboli.controllers.workloads.daemonset.daemon_set import DaemonSet
from stromboli.controllers.workloads.statefulset.stateful_set import StatefulSet

NOW = 1_000_000.0
LABELS = {"app": "web"}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "main", "image": "one"}]}}


def time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def decoded(kind: Any, manifest: Any) -> Any:
    return decode_as(kind, msgspec.json.encode(manifest))


def stateful_set(replicas: int = 3, status: Any = None, deleted: bool = False, **spec: Any) -> StatefulSet:
    metadata: Any = {"name": "web", "namespace": "team", "uid": "set", "generation": 7}
    if deleted:
        metadata["deletionTimestamp"] = time(NOW)
    base = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": TEMPLATE}
    manifest = {"metadata": metadata, "spec": {**base, **spec}, "status": status or {}}
    made: StatefulSet = decoded(StatefulSet, manifest)
    return made


def daemon_set(pod: Any = None, status: Any = None, **spec: Any) -> DaemonSet:
    template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], **(pod or {})}}
    metadata = {"name": "web", "namespace": "team", "uid": "set", "generation": 7}
    base = {"selector": {"matchLabels": LABELS}, "template": template}
    manifest = {"metadata": metadata, "spec": {**base, **spec}, "status": status or {}}
    made: DaemonSet = decoded(DaemonSet, manifest)
    return made


def pod(name: str, state: str = "ready", revision: str = "new", node: str = "", **labels: str) -> Pod:
    """`ready` for an hour, `fresh` (since now), `unready`, `Pending`, `Failed`, `Succeeded`; `-deleted` may follow."""
    state, _, deleted = state.partition("-")
    metadata: Any = {
        "name": name,
        "namespace": "team",
        "uid": f"uid-{name}",
        "creationTimestamp": time(NOW - 7200),
        "labels": {**LABELS, "controller-revision-hash": revision, **labels},
    }
    if deleted:
        metadata["deletionTimestamp"] = time(NOW)
    runs = state in ("ready", "fresh", "unready")
    since = NOW if state == "fresh" else NOW - 3600
    ready = {"type": "Ready", "status": str(state != "unready"), "lastTransitionTime": time(since)}
    status = {"phase": "Running" if runs else state, "conditions": [ready] if runs else []}
    spec = {"nodeName": node} if node else {}
    made: Pod = decoded(Pod, {"metadata": metadata, "spec": spec, "status": status})
    return made


def claim(name: str, *owners: Any, deleted: bool = False) -> PersistentVolumeClaim:
    metadata: Any = {"name": name, "namespace": "team", "uid": f"uid-{name}", "ownerReferences": list(owners)}
    if deleted:
        metadata["deletionTimestamp"] = time(NOW)
    made: PersistentVolumeClaim = decoded(PersistentVolumeClaim, {"metadata": metadata})
    return made


def owner(kind: str, name: str, uid: str, controller: bool = True) -> Any:
    version = {"StatefulSet": "apps/v1", "Pod": "v1"}.get(kind, "example.com/v1")
    return {"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": controller}


def controller_revision(name: str, number: int, template: Any = None, **labels: str) -> ControllerRevision:
    data = {"spec": {"template": {**(TEMPLATE if template is None else template), "$patch": "replace"}}}
    metadata = {"name": name, "namespace": "team", "uid": f"uid-{name}", "labels": labels}
    made: ControllerRevision = decoded(
        ControllerRevision, {"metadata": metadata, "revision": number, "data": data}
    )
    return made
