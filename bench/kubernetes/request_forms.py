"""The forms in which a scheduler can ask for its writes: patches, whole objects, server-side apply, protobuf."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from bench.kubernetes import shapes
from stromboli.api.go_scalars import micro_time, timestamp
from stromboli.api.patches import JSON_PATCH, MERGE
from stromboli.kube.request import JSON, Request

APPLY = "application/apply-patch+yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
GROUPS = f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{shapes.NAMESPACE}/podgroups"
PODS = f"/api/v1/namespaces/{shapes.NAMESPACE}/pods"
EVENTS = f"/api/v1/namespaces/{shapes.NAMESPACE}/events"
NEW_EVENTS = f"/apis/events.k8s.io/v1/namespaces/{shapes.NAMESPACE}/events"
NOW = 1_800_000_000.0
OWN = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}


class Subject(NamedTuple):
    """An object as it stands, with the round in which it is written."""

    content: dict[str, Any]
    number: int

    @property
    def name(self) -> str:
        return str(self.content["metadata"]["name"])

    @property
    def uid(self) -> str:
        return str(self.content["metadata"]["uid"])


class Form(NamedTuple):
    """A write, asked for in one form."""

    write: str
    title: str
    make: Callable[[Subject], Request]
    accept: str = JSON


def status(phase: str = "Running") -> dict[str, Any]:
    scheduled = {
        "type": "Scheduled",
        "status": "True",
        "reason": "tasks in gang are ready to be scheduled",
        "message": "",
        "lastTransitionTime": timestamp(NOW),
        "transitionID": "e9a95d5b-1d29-4d94-b9ab-e2a0e3c0a1f2",
    }
    return {"phase": phase, "running": 0, "succeeded": 0, "failed": 0, "conditions": [scheduled]}


def _json(method: str, path: str, body: Any, content_type: str = JSON) -> Request:
    return Request(method, path, json.dumps(body, separators=(",", ":")).encode(), content_type)


def merge_patch(group: Subject) -> Request:
    body = {"metadata": {"uid": group.uid}, "status": status()}
    return _json("PATCH", f"{GROUPS}/{group.name}", body, MERGE)


def bare_merge_patch(group: Subject) -> Request:
    return _json("PATCH", f"{GROUPS}/{group.name}", {"status": {"phase": "Running"}}, MERGE)


def short_merge_patch(group: Subject) -> Request:
    """Without counts that are zero and an empty message, as Go leaves them out."""
    scheduled = {key: value for key, value in status()["conditions"][0].items() if value}
    body = {"metadata": {"uid": group.uid}, "status": {"phase": "Running", "conditions": [scheduled]}}
    return _json("PATCH", f"{GROUPS}/{group.name}", body, MERGE)


def uid_merge_patch(group: Subject) -> Request:
    body = {"metadata": {"uid": group.uid}, "status": {"phase": "Running"}}
    return _json("PATCH", f"{GROUPS}/{group.name}", body, MERGE)


def json_patch(group: Subject) -> Request:
    test = {"op": "test", "path": "/metadata/uid", "value": group.uid}
    body = [test, {"op": "add", "path": "/status", "value": status()}]
    return _json("PATCH", f"{GROUPS}/{group.name}", body, JSON_PATCH)


def put(group: Subject) -> Request:
    return _json("PUT", f"{GROUPS}/{group.name}", {**group.content, "status": status()})


def put_without_managed_fields(group: Subject) -> Request:
    metadata = {key: value for key, value in group.content["metadata"].items() if key != "managedFields"}
    return _json("PUT", f"{GROUPS}/{group.name}", {**group.content, "metadata": metadata, "status": status()})


def put_phase(group: Subject) -> Request:
    metadata = {key: value for key, value in group.content["metadata"].items() if key != "managedFields"}
    return _json(
        "PUT",
        f"{GROUPS}/{group.name}",
        {**group.content, "metadata": metadata, "status": {"phase": "Running"}},
    )


def apply(group: Subject) -> Request:
    body = {**OWN, "metadata": {"name": group.name, "uid": group.uid}, "status": status()}
    return _json("PATCH", f"{GROUPS}/{group.name}?fieldManager=volcano&force=true", body, APPLY)


def event(pod: Subject) -> dict[str, Any]:
    """As client-go's recorders write it."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{pod.name}.{pod.number:016x}", "namespace": shapes.NAMESPACE},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": shapes.NAMESPACE,
            "name": pod.name,
            "uid": pod.uid,
        },
        "type": "Normal",
        "reason": "Scheduled",
        "message": f"Successfully assigned {shapes.NAMESPACE}/{pod.name} to node-17",
        "source": {"component": "volcano"},
        "firstTimestamp": timestamp(NOW),
        "lastTimestamp": timestamp(NOW),
        "count": 1,
    }


def series_event(pod: Subject) -> dict[str, Any]:
    """As we have written it: with the fields of both APIs."""
    return {
        **event(pod),
        "reportingComponent": "volcano",
        "reportingInstance": "volcano-scheduler-0",
        "action": "Scheduled",
        "eventTime": micro_time(NOW),
    }


def new_event(pod: Subject) -> dict[str, Any]:
    """Of events.k8s.io."""
    old = event(pod)
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": old["metadata"],
        "eventTime": micro_time(NOW),
        "reportingController": "volcano",
        "reportingInstance": "volcano-scheduler-0",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": old["involvedObject"],
        "note": old["message"],
        "type": "Normal",
    }


# -- protobuf by hand: enough for a binding and an event


def _field(number: int, value: bytes | str | int) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _object(api_version: str, kind: str, raw: bytes) -> bytes:
    return b"k8s\x00" + _field(1, _field(1, api_version) + _field(2, kind)) + _field(2, raw)


def _time(seconds: float) -> bytes:
    return _field(1, int(seconds))


def protobuf_binding(pod: Subject) -> Request:
    metadata = _field(1, pod.name) + _field(3, shapes.NAMESPACE) + _field(5, pod.uid)
    target = _field(1, "Node") + _field(3, "node-17") + _field(5, "v1")
    raw = _field(1, metadata) + _field(2, target)
    return Request("POST", f"{PODS}/{pod.name}/binding", _object("v1", "Binding", raw), PROTOBUF)


def json_binding(pod: Subject) -> Request:
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"namespace": shapes.NAMESPACE, "name": pod.name, "uid": pod.uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "node-17"},
    }
    return _json("POST", f"{PODS}/{pod.name}/binding", body)


def protobuf_event(pod: Subject) -> Request:
    text = event(pod)
    metadata = _field(1, text["metadata"]["name"]) + _field(3, shapes.NAMESPACE)
    about = (
        _field(1, "Pod")
        + _field(2, shapes.NAMESPACE)
        + _field(3, pod.name)
        + _field(4, pod.uid)
        + _field(5, "v1")
    )
    raw = (
        _field(1, metadata)
        + _field(2, about)
        + _field(3, "Scheduled")
        + _field(4, text["message"])
        + _field(5, _field(1, "volcano"))
        + _field(6, _time(NOW))
        + _field(7, _time(NOW))
        + _field(8, 1)
        + _field(9, "Normal")
    )
    return Request("POST", EVENTS, _object("v1", "Event", raw), PROTOBUF)


FORMS = (
    Form("PodGroup status", "merge patch, uid", merge_patch),
    Form("PodGroup status", "merge patch, metadata back", merge_patch, METADATA),
    Form("PodGroup status", "merge patch without zeros", short_merge_patch),
    Form("PodGroup status", "merge patch, uid and phase", uid_merge_patch),
    Form("PodGroup status", "merge patch, phase alone", bare_merge_patch),
    Form("PodGroup status", "JSON patch, uid tested", json_patch),
    Form("PodGroup status", "PUT", put),
    Form("PodGroup status", "PUT without managedFields", put_without_managed_fields),
    Form("PodGroup status", "PUT, metadata back", put_without_managed_fields, METADATA),
    Form("PodGroup status", "PUT of the phase", put_phase),
    Form("PodGroup status", "server-side apply", apply),
    Form("bind", "JSON", json_binding),
    Form("bind", "protobuf", protobuf_binding),
    Form("bind", "protobuf both ways", protobuf_binding, PROTOBUF),
    Form("event", "core, fields of both APIs", lambda pod: _json("POST", EVENTS, series_event(pod))),
    Form("event", "core", lambda pod: _json("POST", EVENTS, event(pod))),
    Form("event", "core, metadata back", lambda pod: _json("POST", EVENTS, event(pod)), METADATA),
    Form("event", "events.k8s.io", lambda pod: _json("POST", NEW_EVENTS, new_event(pod))),
    Form("event", "core, protobuf", protobuf_event),
    Form("event", "core, protobuf both ways", protobuf_event, PROTOBUF),
)
