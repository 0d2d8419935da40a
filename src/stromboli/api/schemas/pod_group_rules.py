"""What Kubernetes refuses in PodGroups and Workloads of `scheduling.k8s.io` beyond fields and their types."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from stromboli.api.name_rules import dns_label_errors, dns_subdomain_errors, qualified_name_errors
from stromboli.api.schemas.metadata_rules import path_errors
from stromboli.api.schemas.schema_problems import (
    Problem,
    duplicate,
    invalid,
    required,
    too_many,
    unsupported,
)

Content = dict[str, Any]

GROUP_FIELDS = (
    "disruptionMode",
    "podGroupTemplateRef",
    "priority",
    "priorityClassName",
    "resourceClaims",
    "schedulingConstraints",
    "schedulingPolicy",
)
WORKLOAD_FIELDS = ("controllerRef", "podGroupTemplates")
"""The fields of the specs. No update may change them."""
_MAX_PRIORITY = 1_000_000_000
_MAX_CLAIMS = 4
_MAX_CONSTRAINTS = 1
_MAX_TEMPLATES = 8
_REASON = re.compile("[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_REASON_ERROR = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric"
    " characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',"
    "  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is"
    " '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')"
)


def pod_group_problems(group: Content) -> Iterator[Problem]:
    spec, status = group["spec"], group.get("status") or {}
    yield from _scheduling_problems(spec, "spec")
    reference = spec.get("podGroupTemplateRef")
    if reference is not None:
        path = "spec.podGroupTemplateRef"
        yield from _union_problems(reference, ("workload",), path)
        workload, path = reference.get("workload") or {}, f"{path}.workload"
        yield from _name_problems(workload, "workloadName", dns_subdomain_errors, path)
        yield from _name_problems(workload, "podGroupTemplateName", dns_label_errors, path)
    yield from _condition_problems(status.get("conditions") or [])
    claims = {claim["name"] for claim in spec.get("resourceClaims") or ()}
    yield from _claim_status_problems(status.get("resourceClaimStatuses") or [], claims)


def workload_problems(workload: Content) -> Iterator[Problem]:
    spec = workload["spec"]
    reference, path = spec.get("controllerRef") or {}, "spec.controllerRef"
    if reference.get("apiGroup"):
        yield from _name_problems(reference, "apiGroup", dns_subdomain_errors, path)
    yield from _name_problems(reference, "kind", path_errors, path)
    yield from _name_problems(reference, "name", path_errors, path)
    templates, path = spec["podGroupTemplates"], "spec.podGroupTemplates"
    yield from _list_problems(templates, "name", _MAX_TEMPLATES, path)
    for index, template in enumerate(templates[:_MAX_TEMPLATES]):
        yield from _name_problems(template, "name", dns_label_errors, f"{path}[{index}]")
        yield from _scheduling_problems(template, f"{path}[{index}]")


def _scheduling_problems(spec: Content, path: str) -> Iterator[Problem]:
    """Of what a group and a template of groups have in common."""
    policy = spec["schedulingPolicy"]
    yield from _union_problems(policy, ("basic", "gang"), f"{path}.schedulingPolicy")
    if (gang := policy.get("gang")) is not None:
        yield from _minimum_problems(gang["minCount"], f"{path}.schedulingPolicy.gang.minCount")
    constraints = (spec.get("schedulingConstraints") or {}).get("topology") or []
    yield from _topology_problems(constraints, f"{path}.schedulingConstraints.topology")
    priority = spec.get("priority")
    if priority is not None and priority > _MAX_PRIORITY:
        yield invalid(f"{path}.priority", priority, f"must be less than or equal to {_MAX_PRIORITY}")
    if spec.get("priorityClassName"):
        yield from _name_problems(spec, "priorityClassName", dns_subdomain_errors, path)
    claims, path = spec.get("resourceClaims") or [], f"{path}.resourceClaims"
    yield from _list_problems(claims, "name", _MAX_CLAIMS, path)
    for index, claim in enumerate(claims[:_MAX_CLAIMS]):
        yield from _claim_problems(claim, f"{path}[{index}]")


def _minimum_problems(minimum: int, path: str) -> Iterator[Problem]:
    if minimum == 0:
        yield required(path)
    elif minimum < 0:
        yield invalid(path, minimum, "must be greater than or equal to 1")


def _topology_problems(constraints: list[Content], path: str) -> Iterator[Problem]:
    if len(constraints) > _MAX_CONSTRAINTS:
        yield too_many(path, len(constraints), _MAX_CONSTRAINTS)
        return
    for index, constraint in enumerate(constraints):
        yield from _name_problems(constraint, "key", qualified_name_errors, f"{path}[{index}]")


def _claim_problems(claim: Content, path: str) -> Iterator[Problem]:
    sources = ("resourceClaimName", "resourceClaimTemplateName")
    yield from _union_problems(claim, sources, path)
    yield from _name_problems(claim, "name", dns_label_errors, path)
    for source in sources:
        yield from _name_problems(claim, source, dns_subdomain_errors, path)


def _claim_status_problems(statuses: list[Content], claims: set[str]) -> Iterator[Problem]:
    path = "status.resourceClaimStatuses"
    yield from _list_problems(statuses, "name", len(statuses), path)
    for index, status in enumerate(statuses):
        if status["name"] not in claims:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            yield invalid(f"{path}[{index}].name", status["name"], detail)
        yield from _name_problems(status, "resourceClaimName", dns_subdomain_errors, f"{path}[{index}]")


def _condition_problems(conditions: list[Content]) -> Iterator[Problem]:
    types: set[str] = set()
    for index, condition in enumerate(conditions):
        path, type, status = f"status.conditions[{index}]", condition.get("type", ""), condition.get("status")
        if type in types:
            yield duplicate(f"{path}.type", type)
        types.add(type)
        if not type:
            yield required(f"{path}.type")
        else:
            yield from _name_problems(condition, "type", qualified_name_errors, path)
        if status not in ("True", "False", "Unknown"):
            yield unsupported(f"{path}.status", status or "", ("False", "True", "Unknown"))
        generation = condition.get("observedGeneration") or 0
        if generation < 0:
            yield invalid(f"{path}.observedGeneration", generation, "must be greater than or equal to zero")
        for field in ("lastTransitionTime", "reason"):
            if not condition.get(field):
                yield required(f"{path}.{field}")
        reason = condition.get("reason")
        if reason and not _REASON.fullmatch(reason):
            yield invalid(f"{path}.reason", reason, _REASON_ERROR)


def _union_problems(union: Content, members: tuple[str, ...], path: str) -> Iterator[Problem]:
    """Of an object in which exactly one of these fields must be set."""
    chosen = [member for member in members if union.get(member) is not None]
    names = ", ".join(f"`{member}`" for member in members)
    if not chosen:
        yield invalid(path, "", f"must specify one of: {names}")
    elif len(chosen) > 1:
        yield invalid(path, f"{{{', '.join(chosen)}}}", f"must specify exactly one of: {names}")


def _name_problems(
    content: Content, field: str, errors_of: Callable[[str], tuple[str, ...]], path: str
) -> Iterator[Problem]:
    if (name := content.get(field)) is not None:
        for error in errors_of(name):
            yield invalid(f"{path}.{field}", name, error)


def _list_problems(items: list[Content], key: str, limit: int, path: str) -> Iterator[Problem]:
    """Of a list with at most so many items, each of which has a key of its own."""
    if len(items) > limit:
        yield too_many(path, len(items), limit)
    names: set[str] = set()
    for index, item in enumerate(items[:limit]):
        if item[key] in names:
            yield duplicate(f"{path}[{index}]", item)
        names.add(item[key])
