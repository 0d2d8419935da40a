"""Defaults of pods that depend on other fields, and the fields that an update may not change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stromboli.api.schemas.schema_problems import Problem, forbidden

Spec = dict[str, Any]

_MUTABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_MAY_CHANGE = ("activeDeadlineSeconds", "ephemeralContainers", "terminationGracePeriodSeconds", "tolerations")
_LATEST = ("", "latest")
_NAME = frozenset({"name"})


# -- defaults


def set_pod_defaults(spec: Spec) -> None:
    """Set defaults that depend on other fields: pull policies, requests, host ports."""
    network = spec.get("hostNetwork") is True
    for containers in (spec.get("containers"), spec.get("initContainers")):
        for container in containers or ():
            _set_container_defaults(container, network)
    for volume in spec.get("volumes") or ():
        if volume.keys() <= _NAME:
            volume["emptyDir"] = {}
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account


def _set_container_defaults(container: Spec, network: bool) -> None:
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = (
            "Always" if _tag(container.get("image") or "") in _LATEST else "IfNotPresent"
        )
    resources = container.get("resources")
    if resources and (limits := resources.get("limits")):
        requests = resources.get("requests") or {}
        if not limits.keys() <= requests.keys():
            resources["requests"] = {**limits, **requests}
    if network:
        for port in container.get("ports") or ():
            if "containerPort" in port:
                port.setdefault("hostPort", port["containerPort"])


def _tag(image: str) -> str:
    last = image.rpartition("/")[2]
    if "@" in last:
        return last
    return last.partition(":")[2]


# -- updates


def pod_update_problems(old: Spec, new: Spec) -> Iterator[Problem]:
    """Immutable fields that an update changes. Binding and resizing are subresources."""
    before, after = _immutable(old), _immutable(new)
    if before == after:
        return
    gates = old.get("schedulingGates") or []
    if len(new.get("schedulingGates") or []) > len(gates):
        yield forbidden("spec.schedulingGates", "only deletion is allowed")
    if gates:
        mutable = ("schedulingGates", "nodeSelector", "affinity")
        before, after = (
            {key: value for key, value in some.items() if key not in mutable} for some in (before, after)
        )
    if before != after:
        changed = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
        fields = ", ".join(f"spec.{key}" for key in changed)
        yield forbidden("spec", f"{_MUTABLE}; this one changes {fields}")


def _immutable(spec: Spec) -> Spec:
    immutable = {
        key: value for key, value in spec.items() if key not in _MAY_CHANGE and value not in (None, [], {})
    }
    for field in ("containers", "initContainers"):
        if field in immutable:
            immutable[field] = [
                {key: value for key, value in container.items() if key != "image"}
                if isinstance(container, dict)
                else container
                for container in immutable[field]
            ]
    return immutable
