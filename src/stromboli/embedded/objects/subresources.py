"""The parts of objects that are written and read by themselves: binding, eviction, scale, token."""

from __future__ import annotations

from typing import Any

import msgspec

from stromboli.embedded.auth.identity import DEFAULT_LIFE, Tokens
from stromboli.embedded.kinds import object_metadata, object_schemas
from stromboli.embedded.kinds.kind import Kind, ScalePaths
from stromboli.embedded.kinds.status_errors import (
    Refusal,
    bad_request,
    cause,
    conflict,
    invalid,
    invalid_options,
    required,
)
from stromboli.embedded.objects import disruption_budgets
from stromboli.embedded.objects.deletion import delete, read_options
from stromboli.embedded.objects.object_verbs import Objects, Options
from stromboli.embedded.store.records import Record, read_field

Content = dict[str, Any]
SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def check(kind: Kind, part: str, name: str, body: Any) -> None:
    """Refuse what is sent to a part of an object if it is not of the right shape."""
    if not isinstance(body, dict):
        raise bad_request("the body of the request must be an object")
    held = kind.part(part)
    version = f"{held.group}/{held.version}" if held and held.group else "v1"
    causes = object_schemas.part_problems(version, held.kind if held else "", body)
    if causes:
        raise invalid(kind, name, causes)


# -- binding


def bind(objects: Objects, kind: Kind, namespace: str, name: str, body: Content, options: Options) -> bytes:
    """Give a pod its node: once."""
    target, meta = body.get("target") or {}, body.get("metadata") or {}
    if meta.get("name") not in (None, "", name):
        raise bad_request("name in URL does not match name in Binding object")
    node = target.get("name")
    if not node or target.get("kind", "Node") not in ("", "Node"):
        raise invalid(kind, name, [required("target.name", "a node is needed")])
    record = objects.get(kind, namespace, name)
    pod = record.object()
    refusal = _unbindable(pod, meta)
    if refusal:
        refused = conflict(kind, name, refusal)
        message = refused.message.replace("on pods ", "on pods/binding ", 1)
        raise Refusal(409, message, details={"name": name, "kind": "pods/binding"})
    pod["spec"]["nodeName"] = node
    for part in ("annotations", "labels"):
        if isinstance(meta.get(part), dict) and meta[part]:
            pod["metadata"][part] = {**(pod["metadata"].get(part) or {}), **meta[part]}
    set_condition(pod, {"type": "PodScheduled", "status": "True", "lastProbeTime": None})
    if not options.dry_run:
        objects.store.put(record.key, pod)
    return msgspec.json.encode(SUCCESS)


def _unbindable(pod: Content, meta: Content) -> str:
    name, held = pod["metadata"]["name"], pod["spec"].get("nodeName")
    if meta.get("uid") and meta["uid"] != pod["metadata"]["uid"]:
        return f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: {pod['metadata']['uid']}"
    if pod["metadata"].get("deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if held:
        return f'pod {name} is already assigned to node "{held}"'
    if pod["spec"].get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def set_condition(content: Content, condition: Content) -> None:
    """A condition of the status; when it changed is noted."""
    status = content.setdefault("status", {})
    conditions = status.setdefault("conditions", [])
    old = next((one for one in conditions if one.get("type") == condition["type"]), None)
    same = old is not None and old.get("status") == condition["status"]
    moment = old.get("lastTransitionTime") if old is not None and same else object_metadata.now()
    new = {**condition, "lastTransitionTime": moment}
    status["conditions"] = [one for one in conditions if one is not old] + [new]


# -- eviction


async def evict(
    objects: Objects, kind: Kind, namespace: str, name: str, body: Content, options: Options
) -> bytes:
    """Delete a pod, unless a disruption budget says no."""
    asked = read_options(body.get("deleteOptions"), {})
    options = options._replace(dry_run=options.dry_run or bool(asked.dry_run))

    def check(pod: Record) -> None:
        disruption_budgets.check(objects, pod)

    check(objects.get(kind, namespace, name))
    await delete(objects, kind, namespace, name, asked, options, check)
    return msgspec.json.encode(SUCCESS)


# -- scale


def scale(kind: Kind, record: Record) -> Content:
    """How many there are and should be."""
    paths = kind.scale or ScalePaths()
    content = record.object()
    meta = content["metadata"]
    shown = {
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
        "metadata": shown,
        "spec": {"replicas": int(read_field(content, paths.spec) or 0)},
        "status": status,
    }


def _selector(content: Content, path: str) -> str:
    """As text, whether it is a set of labels, a selector object, or text already."""
    found: Any = content if path else None
    for part in path.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    if isinstance(found, str) or not isinstance(found, dict):
        return found or ""
    labels = found["matchLabels"] if isinstance(found.get("matchLabels"), dict) else found
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()) if isinstance(value, str))


def rescaled(kind: Kind, content: Content, scaled: Any) -> Content:
    """An object with the number of replicas that a Scale wants, if it is still the version that this is about."""
    parts = [scaled.get(name) if isinstance(scaled, dict) else None for name in ("metadata", "spec")]
    meta, spec = (part if isinstance(part, dict) else {} for part in parts)
    replicas = spec.get("replicas", 0)
    content["metadata"]["resourceVersion"] = meta.get("resourceVersion") or ""
    if not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 0:
        problem = cause("spec.replicas", f"Invalid value: {replicas}: must be greater than or equal to 0")
        raise invalid_options("Scale", problem, "autoscaling", str(content["metadata"]["name"]))
    *path, last = (kind.scale or ScalePaths()).spec.split(".")
    place = content
    for part in path:
        place = place.setdefault(part, {})
    place[last] = replicas
    return content


# -- tokens


def token(tokens: Tokens, account: Record, body: Content) -> Content:
    """A token for a service account, as it was asked for."""
    spec = body.get("spec") or {}
    seconds, audiences = spec.get("expirationSeconds"), spec.get("audiences") or ()
    if seconds is not None and (not isinstance(seconds, int) or seconds < 600):
        raise bad_request(
            "TokenRequest: spec.expirationSeconds: Invalid value: may not be less than 10 minutes"
        )
    made, expires = tokens.issue(
        account.key.namespace,
        account.key.name,
        account.meta.uid,
        seconds or DEFAULT_LIFE,
        tuple(str(one) for one in audiences),
    )
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": account.key.name, "namespace": account.key.namespace},
        "spec": {"audiences": list(audiences), "expirationSeconds": seconds or DEFAULT_LIFE},
        "status": {"token": made, "expirationTimestamp": object_metadata.stamp(expires)},
    }
