"""What is particular to a kind when its objects are created or changed."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from stromboli.api.resources.qos import qos_class
from stromboli.api.types.pod import pod_resources
from stromboli.embedded.kinds import object_metadata
from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.kinds.kind_registry import definition_problems
from stromboli.embedded.kinds.status_errors import Cause, cause

Content = dict[str, Any]

COUNTED = frozenset(
    {
        "pods",
        "replicationcontrollers",
        "deployments.apps",
        "replicasets.apps",
        "statefulsets.apps",
        "daemonsets.apps",
        "jobs.batch",
        "cronjobs.batch",
        "poddisruptionbudgets.policy",
        "networkpolicies.networking.k8s.io",
        "ingresses.networking.k8s.io",
        "customresourcedefinitions.apiextensions.k8s.io",
        "priorityclasses.scheduling.k8s.io",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
    }
)
"""Built-in kinds whose objects have a generation."""
STATUS_FROM_THE_START = frozenset({"nodes"})
"""Kinds whose creator may say what their status is."""
_NOT_WANTED = ("apiVersion", "kind", "metadata", "status")


def begin(kind: Kind, content: Content) -> None:
    """The first state of a new object."""
    if kind.has_status and kind.id not in STATUS_FROM_THE_START:
        content.pop("status", None)
        if kind.definition is None:
            content["status"] = {}
    if kind.definition is not None or kind.id in COUNTED:
        content["metadata"]["generation"] = 1
    if first := _FIRST.get(kind.id):
        first(content)


def _pod(content: Content) -> None:
    content["status"] = {"phase": "Pending", "qosClass": qos_class(pod_resources(content))}


def _node(content: Content) -> None:
    """All that it has can be used, unless it says otherwise."""
    status = content.get("status")
    if isinstance(status, dict) and status.get("capacity"):
        status["allocatable"] = {**status["capacity"], **(status.get("allocatable") or {})}


def _namespace(content: Content) -> None:
    content["status"] = {"phase": "Active"}
    content["spec"] = {"finalizers": ["kubernetes"]}
    labels = content["metadata"].setdefault("labels", {}) or {}
    content["metadata"]["labels"] = {**labels, "kubernetes.io/metadata.name": content["metadata"]["name"]}


def _phase(phase: str) -> Callable[[Content], None]:
    def begin(content: Content) -> None:
        content["status"] = {"phase": phase}

    return begin


def _secret(content: Content) -> None:
    """`stringData` is a way to write, not a part of the object."""
    plain = content.pop("stringData", None)
    if isinstance(plain, dict) and plain:
        encoded = {name: base64.b64encode(str(text).encode()).decode() for name, text in plain.items()}
        content["data"] = {**(content.get("data") or {}), **encoded}
    content.setdefault("type", "Opaque")


def _definition(content: Content) -> None:
    """Names are accepted at once: there is nobody to wait for."""
    spec = content.get("spec") or {}
    names = spec.get("names") or {}
    if isinstance(names.get("kind"), str):
        names.setdefault("singular", names["kind"].lower())
        names.setdefault("listKind", f"{names['kind']}List")
    spec.setdefault("conversion", {"strategy": "None"})
    moment = object_metadata.now()
    content["status"] = {
        "conditions": [
            {
                "type": "NamesAccepted",
                "status": "True",
                "lastTransitionTime": moment,
                "reason": "NoConflicts",
                "message": "no conflicts found",
            },
            {
                "type": "Established",
                "status": "True",
                "lastTransitionTime": moment,
                "reason": "InitialNamesAccepted",
                "message": "the initial names have been accepted",
            },
        ],
        "acceptedNames": names,
        "storedVersions": [one.get("name") for one in spec.get("versions") or () if one.get("storage")],
    }
    finalizers = content["metadata"].setdefault("finalizers", [])
    if CLEANUP not in finalizers:
        finalizers.append(CLEANUP)


CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
_FIRST: dict[str, Callable[[Content], None]] = {
    "pods": _pod,
    "namespaces": _namespace,
    "nodes": _node,
    "secrets": _secret,
    "persistentvolumeclaims": _phase("Pending"),
    "persistentvolumes": _phase("Pending"),
    "customresourcedefinitions.apiextensions.k8s.io": _definition,
}


# -- updates


def carry_over(kind: Kind, content: Content, old: Content, part: str) -> None:
    """Of an update, only what this path may change: the status on its own, everything else without it."""
    if part == "status":
        meta, status = content["metadata"], content.get("status")
        kept = {
            name: meta[name]
            for name in ("labels", "annotations", "finalizers", "managedFields")
            if name in meta
        }
        content.clear()
        content.update(old)
        content["metadata"] = {**old["metadata"], **(kept if kind.definition is None else {})}
        if kind.definition is not None and "managedFields" in kept:
            content["metadata"]["managedFields"] = kept["managedFields"]
        content.pop("status", None)
        if status is not None:
            content["status"] = status
    elif kind.has_status and kind.id != "customresourcedefinitions.apiextensions.k8s.io":
        content.pop("status", None)
        if "status" in old:
            content["status"] = old["status"]
    elif kind.id == "customresourcedefinitions.apiextensions.k8s.io":
        _definition(content)
        if "status" in old:
            content["status"]["conditions"] = old["status"].get("conditions", [])
    if kind.id == "secrets":
        _secret(content)
    if kind.id == "namespaces" and part == "":
        content["spec"] = old.get("spec", {})


def count_generation(kind: Kind, content: Content, old: Content, part: str) -> None:
    """An object's generation rises when what is wanted of it changes."""
    if "generation" not in old["metadata"] or part == "status":
        return
    if kind.definition is not None:
        skipped = _NOT_WANTED if kind.has_status else _NOT_WANTED[:3]
        wanted = {name: value for name, value in content.items() if name not in skipped}
        before = {name: value for name, value in old.items() if name not in skipped}
    else:
        wanted, before = content.get("spec") or {}, old.get("spec") or {}
    if wanted != before:
        content["metadata"]["generation"] = int(old["metadata"]["generation"]) + 1


# -- what may not be

IMMUTABLE = "Forbidden: field is immutable when `immutable` is set"


def problems(kind: Kind, content: Content, old: Content | None) -> list[Cause]:
    if kind.id == "customresourcedefinitions.apiextensions.k8s.io":
        return definition_problems(content) + _scope_problems(content, old)
    if old is not None and kind.id in ("configmaps", "secrets") and old.get("immutable"):
        changed = any(content.get(name) != old.get(name) for name in ("data", "binaryData", "immutable"))
        return [cause("data", IMMUTABLE, "FieldValueForbidden")] if changed else []
    return []


def _scope_problems(content: Content, old: Content | None) -> list[Cause]:
    scope, before = ((one or {}).get("spec", {}).get("scope") for one in (content, old))
    if old is None or scope == before:
        return []
    return [cause("spec.scope", f'Invalid value: "{scope}": field is immutable')]
