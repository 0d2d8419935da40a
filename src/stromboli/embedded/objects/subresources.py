"""Subresources with their own bodies: binding, eviction, scale, token."""

from __future__ import annotations

from typing import Any

import msgspec

from stromboli.api.go_scalars import timestamp
from stromboli.api.schemas import schema_problems
from stromboli.embedded.admission.write_request import WriteRequest
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.auth.identity import DEFAULT_LIFETIME, Tokens
from stromboli.embedded.kinds import object_metadata, object_schemas
from stromboli.embedded.kinds.kind import Content, Kind, ScalePaths
from stromboli.embedded.kinds.status_errors import bad_request, conflict, invalid, invalid_options
from stromboli.embedded.objects.deletion import delete, read_options
from stromboli.embedded.objects.object_verbs import Objects
from stromboli.embedded.store.records import Record, read_field

SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def check_body(kind: Kind, name: str, subresource: str, body: Any) -> None:
    """Validate what is sent to a subresource."""
    if not isinstance(body, dict):
        raise bad_request("the body of the request must be an object")
    entry = kind.subresource(subresource)
    assert entry is not None, subresource
    version = f"{entry.group}/{entry.version}" if entry.group else "v1"
    problems = object_schemas.subresource_problems(version, entry.kind, body)
    if problems:
        raise invalid(kind, name, problems)


# -- binding


def bind(objects: Objects, request: WriteRequest, body: Content) -> bytes:
    """Assign a pod to a node, once."""
    kind, name = request.kind, request.name
    target, meta = body.get("target") or {}, body.get("metadata") or {}
    if meta.get("name") not in (None, "", name):
        raise bad_request("name in URL does not match name in Binding object")
    node = target.get("name")
    if not node or target.get("kind", "Node") not in ("", "Node"):
        raise invalid(kind, name, [schema_problems.required("target.name", "a node is needed")])
    record = objects.get(kind, request.namespace, name)
    pod = record.object()
    if why := _why_not_bindable(pod, meta):
        message = conflict(kind, name, why).message.replace("on pods ", "on pods/binding ", 1)
        raise StatusError(409, message, details={"name": name, "kind": "pods/binding"})
    pod["spec"]["nodeName"] = node
    for field in ("annotations", "labels"):
        if isinstance(meta.get(field), dict) and meta[field]:
            pod["metadata"][field] = {**(pod["metadata"].get(field) or {}), **meta[field]}
    set_condition(pod, {"type": "PodScheduled", "status": "True"})
    objects.write(request, record.key, pod)
    return msgspec.json.encode(SUCCESS)


def _why_not_bindable(pod: Content, meta: Content) -> str:
    name, node = pod["metadata"]["name"], pod["spec"].get("nodeName")
    if meta.get("uid") and meta["uid"] != pod["metadata"]["uid"]:
        return f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: {pod['metadata']['uid']}"
    if pod["metadata"].get("deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if node:
        return f'pod {name} is already assigned to node "{node}"'
    if pod["spec"].get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def set_condition(content: Content, condition: Content) -> None:
    """Set a condition of the status, and its lastTransitionTime if it changed."""
    status = content.setdefault("status", {})
    conditions = status.setdefault("conditions", [])
    old = next((entry for entry in conditions if entry.get("type") == condition["type"]), None)
    same = old is not None and old.get("status") == condition["status"]
    time = old.get("lastTransitionTime") if old is not None and same else object_metadata.now()
    new = {**condition, "lastTransitionTime": time}
    status["conditions"] = [entry for entry in conditions if entry is not old] + [new]


# -- eviction


async def evict(objects: Objects, request: WriteRequest, body: Content) -> bytes:
    """Delete a pod, unless a disruption budget forbids it."""
    delete_options = read_options(body.get("deleteOptions"), {})
    request = request._replace(dry_run=request.dry_run or bool(delete_options.dry_run))

    objects.budgets.check_eviction(objects.get(request.kind, request.namespace, request.name))
    await delete(objects, request, delete_options, objects.budgets.check_eviction)
    return msgspec.json.encode(SUCCESS)


# -- scale


def read_scale(kind: Kind, record: Record) -> Content:
    """The Scale of an object."""
    paths = kind.scale or ScalePaths()
    content = record.object()
    meta = content["metadata"]
    scale_meta = {
        name: meta[name]
        for name in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        if name in meta
    }
    status: Content = {"replicas": int(read_field(content, paths.status) or 0)}
    if text := _selector(content, paths.selector):
        status["selector"] = text
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": scale_meta,
        "spec": {"replicas": int(read_field(content, paths.spec) or 0)},
        "status": status,
    }


def _selector(content: Content, path: str) -> str:
    """As text, whether it is a map of labels, a LabelSelector, or text already."""
    selector: Any = content if path else None
    for step in path.split("."):
        selector = selector.get(step) if isinstance(selector, dict) else None
    if isinstance(selector, str) or not isinstance(selector, dict):
        return selector or ""
    labels = selector["matchLabels"] if isinstance(selector.get("matchLabels"), dict) else selector
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()) if isinstance(value, str))


def apply_scale(kind: Kind, content: Content, scale: Any) -> Content:
    """An object with the replicas of a Scale; the resourceVersion of the Scale becomes its precondition."""
    sections = [scale.get(name) if isinstance(scale, dict) else None for name in ("metadata", "spec")]
    meta, spec = (section if isinstance(section, dict) else {} for section in sections)
    replicas = spec.get("replicas", 0)
    if (version := meta.get("resourceVersion")) not in (None, "", "0"):
        content["metadata"]["resourceVersion"] = version
    if not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 0:
        problem = schema_problems.invalid("spec.replicas", replicas, "must be greater than or equal to 0")
        raise invalid_options("Scale", problem, "autoscaling", str(content["metadata"]["name"]))
    *path, last = (kind.scale or ScalePaths()).spec.split(".")
    parent = content
    for step in path:
        parent = parent.setdefault(step, {})
    parent[last] = replicas
    return content


# -- tokens


def create_token(tokens: Tokens, account: Record, body: Content) -> Content:
    """The answer to a TokenRequest."""
    spec = body.get("spec") or {}
    seconds, audiences = spec.get("expirationSeconds"), spec.get("audiences") or ()
    if seconds is not None and (not isinstance(seconds, int) or seconds < 600):
        raise bad_request(
            "TokenRequest: spec.expirationSeconds: Invalid value: may not be less than 10 minutes"
        )
    token, expires = tokens.issue(
        account.key.namespace,
        account.key.name,
        account.meta.uid,
        seconds or DEFAULT_LIFETIME,
        tuple(str(audience) for audience in audiences),
    )
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": account.key.name, "namespace": account.key.namespace},
        "spec": {"audiences": list(audiences), "expirationSeconds": seconds or DEFAULT_LIFETIME},
        "status": {"token": token, "expirationTimestamp": timestamp(expires)},
    }
