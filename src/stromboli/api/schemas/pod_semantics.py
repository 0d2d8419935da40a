"""Defaulting and validation of pods beyond their schema: unique names, requests within limits, immutable fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stromboli.api.name_rules import dns_label_errors, dns_subdomain_errors
from stromboli.api.resources.quantity import QuantityError, exact
from stromboli.api.resources.resource_lists import allows_overcommit
from stromboli.api.schemas.metadata_rules import label_problems
from stromboli.api.schemas.schema_problems import Problem, duplicate, forbidden, invalid, required

Spec = dict[str, Any]

_MUTABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_MAY_CHANGE = ("activeDeadlineSeconds", "ephemeralContainers", "terminationGracePeriodSeconds", "tolerations")
_LATEST = ("", "latest")


# -- defaults


def set_pod_defaults(spec: Spec) -> None:
    """Set defaults that depend on other fields: pull policies, requests, host ports."""
    network = spec.get("hostNetwork") is True
    for containers in (spec.get("containers"), spec.get("initContainers")):
        for container in containers or ():
            _set_container_defaults(container, network)
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
            port.setdefault("hostPort", port["containerPort"])


def _tag(image: str) -> str:
    last = image.rpartition("/")[2]
    if "@" in last:
        return last
    return last.partition(":")[2]


# -- problems


def pod_problems(spec: Spec, path: str = "spec") -> Iterator[Problem]:
    """What is wrong with the spec of a pod, or of a template, whose types are right."""
    volumes: set[str] = set()
    for index, volume in enumerate(spec.get("volumes") or ()):
        yield from _name(volume.get("name") or "", volumes, f"{path}.volumes[{index}].name")
    names: set[str] = set()
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or ()):
            yield from _container(container, names, volumes, f"{path}.{field}[{index}]")
    if selector := spec.get("nodeSelector"):
        yield from label_problems(selector, f"{path}.nodeSelector")
    for field in ("nodeName", "serviceAccountName"):
        if value := spec.get(field):
            for error in dns_subdomain_errors(value):
                yield invalid(f"{path}.{field}", value, error)
    yield from _amounts(spec.get("overhead") or {}, f"{path}.overhead")


def _container(container: Spec, names: set[str], volumes: set[str], path: str) -> Iterator[Problem]:
    yield from _name(container.get("name") or "", names, f"{path}.name")
    if not container.get("image"):
        yield required(f"{path}.image")
    if resources := container.get("resources"):
        yield from _resources(resources, f"{path}.resources")
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        if mount.get("name") not in volumes:
            name = mount.get("name") or ""
            field_path = f"{path}.volumeMounts[{index}].name"
            yield Problem(field_path, "FieldValueNotFound", f'Not found: "{name}"')


def _name(name: str, seen: set[str], path: str) -> Iterator[Problem]:
    for error in dns_label_errors(name) if name else ():
        yield invalid(path, name, error)
    if name in seen:
        yield duplicate(path, name)
    seen.add(name)


def _resources(resources: Spec, path: str) -> Iterator[Problem]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    yield from _amounts(limits, f"{path}.limits")
    yield from _amounts(requests, f"{path}.requests")
    for name, request in requests.items():
        limit = limits.get(name)
        if limit is None:
            if not allows_overcommit(name):
                yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        elif limit != request:
            yield from _limited(name, request, limit, f"{path}.requests")


def _limited(name: str, request: Any, limit: Any, path: str) -> Iterator[Problem]:
    """A request that is written differently from its limit."""
    amount, most = _amount(request), _amount(limit)
    if amount != most and not allows_overcommit(name):
        yield invalid(path, request, f"must be equal to {name} limit of {limit}")
    elif amount > most:
        yield invalid(path, request, f"must be less than or equal to {name} limit of {limit}")


def _amounts(amounts: Spec, path: str) -> Iterator[Problem]:
    for name, amount in amounts.items():
        if isinstance(amount, str) and not amount.startswith("-"):
            continue
        if _amount(amount) < 0:
            yield invalid(f"{path}[{name}]", amount, "must be greater than or equal to 0")


def _amount(amount: Any) -> Any:
    try:
        return exact(amount)
    except QuantityError:
        return 0


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
