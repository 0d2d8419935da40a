"""Containers of a pod: names, ports, environment, mounts, requests and limits."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

from stromboli.api.name_rules import dns_label_errors, port_name_errors, qualified_name_errors
from stromboli.api.resources.quantity import QuantityError, exact
from stromboli.api.resources.resource_names import (
    allows_overcommit,
    is_integer_resource,
    is_native,
)
from stromboli.api.schemas.pods.pod_claims_validation import used_claim_problems
from stromboli.api.schemas.schema_problems import Problem, duplicate, invalid, not_found, required

Content = dict[str, Any]

_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_ENV_NAME = "a valid environment variable name must consist only of printable ASCII characters other than '='"


_RESOURCE_NAMES = "cpu, memory, or a device such as nvidia.com/gpu"


class PodContext(NamedTuple):
    """What the rules of a container need to know of its pod."""

    names: set[str]
    """The names of the containers before it."""
    volumes: set[str]
    claims: set[str]
    """Of devices, by their names in the pod."""
    host_network: bool


def container_problems(container: Content, pod: PodContext, path: str) -> Iterator[Problem]:
    """What is wrong with a container whose types are right."""
    yield from name_problems(container.get("name") or "", pod.names, f"{path}.name")
    image = container.get("image")
    if not image:
        yield required(f"{path}.image")
    elif image != image.strip():
        yield invalid(f"{path}.image", image, "must not have leading or trailing whitespace")
    if resources := container.get("resources"):
        yield from _resources(resources, f"{path}.resources")
        if used := resources.get("claims"):
            yield from used_claim_problems(used, pod.claims, f"{path}.resources.claims")
    if ports := container.get("ports"):
        yield from _ports(ports, pod.host_network, f"{path}.ports")
    for index, variable in enumerate(container.get("env") or ()):
        yield from _variable(variable, f"{path}.env[{index}]")
    if mounts := container.get("volumeMounts"):
        yield from _mounts(mounts, pod.volumes, f"{path}.volumeMounts")


def name_problems(name: str, seen: set[str], path: str) -> Iterator[Problem]:
    """Problems of a name that must be a label and unique; one that is missing is left to the schema."""
    if not name:
        return
    for error in dns_label_errors(name):
        yield invalid(path, name, error)
    if name in seen:
        yield duplicate(path, name)
    seen.add(name)


def _ports(ports: list[Content], host_network: bool, path: str) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, port in enumerate(ports):
        if name := port.get("name"):
            for error in port_name_errors(name):
                yield invalid(f"{path}[{index}].name", name, error)
            if name in seen:
                yield duplicate(f"{path}[{index}].name", name)
            seen.add(name)
        if host_port := port.get("hostPort"):
            if not 1 <= host_port <= 65535:
                yield invalid(
                    f"{path}[{index}].hostPort", host_port, "must be between 1 and 65535, inclusive"
                )
            elif host_network and host_port != port.get("containerPort"):
                detail = "must match `containerPort` when `hostNetwork` is true"
                yield invalid(f"{path}[{index}].hostPort", host_port, detail)


def _variable(variable: Content, path: str) -> Iterator[Problem]:
    name = variable.get("name") or ""
    if "=" in name or not (name.isascii() and (not name or name.isprintable())):
        yield invalid(f"{path}.name", name, _ENV_NAME)
    if "valueFrom" not in variable:
        return
    count = sum(variable["valueFrom"].get(key) is not None for key in _SOURCES)
    if variable.get("value") and count:
        yield invalid(f"{path}.valueFrom", "", "may not be specified when `value` is not empty")
    elif not count:
        *some, last = (f"`{source}`" for source in _SOURCES)
        yield invalid(f"{path}.valueFrom", "", f"must specify one of: {', '.join(some)} or {last}")
    elif count > 1:
        yield invalid(f"{path}.valueFrom", "", "may not have more than one field specified at a time")


def _mounts(mounts: list[Content], volumes: set[str], path: str) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, mount in enumerate(mounts):
        name, mount_path = mount.get("name"), mount.get("mountPath")
        if name and name not in volumes:
            field = f"{path}[{index}].name"
            remedy = "add a volume of that name to the pod"
            yield not_found(field, name, remedy=remedy)
        if mount_path and mount_path in seen:
            yield invalid(f"{path}[{index}].mountPath", mount_path, "must be unique")
        seen.add(mount_path or "")


def _resources(resources: Content, path: str) -> Iterator[Problem]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    yield from amount_problems(limits, f"{path}.limits")
    yield from amount_problems(requests, f"{path}.requests")
    for name, request in requests.items():
        limit = limits.get(name)
        if limit is None:
            if not allows_overcommit(name):
                yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        elif limit != request:
            asked, most = _amount(request), _amount(limit)
            if asked != most and not allows_overcommit(name):
                yield invalid(f"{path}.requests", request, f"must be equal to {name} limit of {limit}")
            elif asked > most:
                detail = f"must be less than or equal to {name} limit of {limit}"
                yield invalid(f"{path}.requests", request, detail)


def amount_problems(amounts: Content, path: str) -> Iterator[Problem]:
    """Problems of a resource list: names, negative amounts, fractions of what comes in whole units."""
    for name, amount in amounts.items():
        if is_native(name):
            if str(amount).startswith("-") and _amount(amount) < 0:
                yield invalid(f"{path}[{name}]", amount, "must be greater than or equal to 0")
            continue
        yield from _unusual_amount(name, amount, f"{path}[{name}]")


def _unusual_amount(name: str, amount: Any, path: str) -> Iterator[Problem]:
    errors = list(qualified_name_errors(name))
    if "/" not in name:
        errors += [
            "must be a standard resource type or fully qualified",
            "must be a standard resource for containers",
        ]
    elif errors:
        errors.append("doesn't follow extended resource name standard")
    for error in errors:
        yield invalid(path, name, error)._replace(remedy=_RESOURCE_NAMES)
    value = _amount(amount)
    if value < 0:
        yield invalid(path, amount, "must be greater than or equal to 0")
    if is_integer_resource(name) and value.denominator != 1:
        yield invalid(path, amount, "must be an integer")


def _amount(amount: Any) -> Fraction:
    try:
        return exact(amount)
    except QuantityError:
        return Fraction(0)
