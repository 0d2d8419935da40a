"""Who uses a ResourceClaim, and what becomes of the claim: functions of objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stromboli.api.pods import FINISHED
from stromboli.embedded.kinds.builtin.pod_group import POD_GROUPS
from stromboli.embedded.kinds.kind import Content
from stromboli.embedded.kinds.object_metadata import remove_finalizer
from stromboli.embedded.store.records import Key

FINALIZER = "resource.kubernetes.io/delete-protection"
"""Keeps a claim that has devices; set by the scheduler that allocates them."""
CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
"""Annotation of a claim from a template: the name of the claim in its pod or group."""
_MOST_CONSUMERS = 256
_LONGEST_BASE = 57
"""Characters before the random part of the name of a claim."""
_SOURCES = ("resourceClaimName", "resourceClaimTemplateName")
_POD_OWNER = ("v1", "Pod")
_GROUP_OWNER = ("scheduling.k8s.io/v1alpha2", "PodGroup")


def is_done(pod: Content) -> bool:
    """Whether a pod will not run any more."""
    if (pod.get("status") or {}).get("phase") in FINISHED:
        return True
    return bool(pod["metadata"].get("deletionTimestamp")) and not pod["spec"].get("nodeName")


def consumer_key(consumer: Content, namespace: str) -> Key | None:
    """The pod or group that a claim is reserved for; None for those of others."""
    group, resource = consumer.get("apiGroup") or "", consumer.get("resource")
    if (group, resource) == ("", "pods"):
        return Key("pods", namespace, consumer["name"])
    if (group, resource) == ("scheduling.k8s.io", "podgroups"):
        return Key(POD_GROUPS, namespace, consumer["name"])
    return None


def release(claim: Content, exists: Callable[[Content], bool]) -> None:
    """Remove, in place, consumers that are gone; a claim that nobody uses any more gives its devices back."""
    status, meta = claim.get("status") or {}, claim["metadata"]
    reserved = status.get("reservedFor") or []
    remaining = [consumer for consumer in reserved if exists(consumer)]
    ours = FINALIZER in (meta.get("finalizers") or ())
    if len(remaining) < len(reserved):
        status["reservedFor"] = remaining
        if not remaining:
            del status["reservedFor"]
    elif not (ours and meta.get("deletionTimestamp")):
        return
    if not remaining and ours:
        status.pop("allocation", None)
        status.pop("devices", None)
        remove_finalizer(claim, FINALIZER)


def claims_of(owner: Content) -> Iterator[str]:
    """Names of all ResourceClaims of a pod or a group, as far as they are known."""
    spec, status = owner.get("spec") or {}, owner.get("status") or {}
    for entry in spec.get("resourceClaims") or ():
        if entry.get("resourceClaimName"):
            yield entry["resourceClaimName"]
    for entry in status.get("resourceClaimStatuses") or ():
        if entry.get("resourceClaimName"):
            yield entry["resourceClaimName"]
    if extended := (status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName"):
        yield extended


def claim_names(owner: Content) -> dict[str, str]:
    """ResourceClaims of a pod or a group, by their names in it."""
    spec, status = owner.get("spec") or {}, owner.get("status") or {}
    made = {
        entry["name"]: entry.get("resourceClaimName") or ""
        for entry in status.get("resourceClaimStatuses") or ()
    }
    return {
        entry["name"]: entry.get("resourceClaimName") or made.get(entry["name"], "")
        for entry in spec.get("resourceClaims") or ()
    }


def is_group_claim(entry: Content, group: Content | None) -> bool:
    """Whether a claim of a pod is one of its group."""
    entries = ((group or {}).get("spec") or {}).get("resourceClaims") or ()
    wanted = [entry.get(field) for field in ("name", *_SOURCES)]
    return any([known.get(field) for field in ("name", *_SOURCES)] == wanted for known in entries)


def claim_for(owner: Content, name: str, template: Content) -> Content:
    """The claim that is made from a template for a pod or a group."""
    meta, spec = template["spec"].get("metadata") or {}, template["spec"]["spec"]
    api_version, kind = _POD_OWNER if owner["kind"] == "Pod" else _GROUP_OWNER
    reference = {"apiVersion": api_version, "kind": kind, "controller": True}
    reference |= {field: owner["metadata"][field] for field in ("name", "uid")}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "generateName": _base_name(owner["metadata"]["name"], name),
            "annotations": {**(meta.get("annotations") or {}), CLAIM_NAME: name},
            **({"labels": meta["labels"]} if meta.get("labels") else {}),
            "ownerReferences": [reference],
        },
        "spec": spec,
    }


def _base_name(owner: str, claim: str) -> str:
    base = f"{owner}-{claim}-"
    if len(base) <= _LONGEST_BASE:
        return base
    share = _LONGEST_BASE / len(base)
    return f"{owner[: int(len(owner) * share)]}-{claim[: int(len(claim) * share)]}"


def consumer(owner: Content) -> Content:
    """A pod or a group as an entry of `reservedFor`."""
    meta = owner["metadata"]
    entry = {"name": meta["name"], "uid": meta["uid"]}
    if owner["kind"] == "Pod":
        return {"resource": "pods", **entry}
    return {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", **entry}


def reserve(claim: Content, owner: Content) -> None:
    """Reserve, in place, an allocated claim for a pod that was bound without a scheduler."""
    status = claim.get("status") or {}
    reserved = status.get("reservedFor") or []
    known = any(entry["uid"] == owner["metadata"]["uid"] for entry in reserved)
    if status.get("allocation") is not None and not known and len(reserved) < _MOST_CONSUMERS:
        status["reservedFor"] = [*reserved, consumer(owner)]
