"""Claims of devices in a pod: where they come from, and which of them its containers use."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Any

from stromboli.api.name_rules import dns_label_errors, dns_subdomain_errors
from stromboli.api.schemas.schema_problems import Problem, duplicate, forbidden, invalid, not_found

Content = dict[str, Any]

_SOURCES = ("resourceClaimName", "resourceClaimTemplateName")


def pod_claim_problems(claims: list[Content], path: str) -> Iterator[Problem]:
    """Problems of `spec.resourceClaims`."""
    names: set[str] = set()
    for index, claim in enumerate(claims):
        name = claim.get("name") or ""
        yield from _name_problems(name, names, f"{path}[{index}].name")
        names.add(name)
        yield from _source_problems(claim, f"{path}[{index}]")


def _name_problems(name: str, seen: Set[str], path: str) -> Iterator[Problem]:
    if name in seen:
        yield duplicate(path, name)
    elif name:  # one that is missing is left to the schema
        for error in dns_label_errors(name):
            yield invalid(path, name, error)


def _source_problems(claim: Content, path: str) -> Iterator[Problem]:
    chosen = [source for source in _SOURCES if claim.get(source) is not None]
    shown = {name[0].upper() + name[1:]: claim.get(name) for name in ("name", *_SOURCES)}
    if len(chosen) > 1:
        detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        yield invalid(path, shown, detail)
    elif not chosen:
        detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        yield invalid(path, shown, detail)
    for source in chosen:
        for error in dns_subdomain_errors(claim[source]):
            yield invalid(f"{path}.{source}", claim[source], error)


def used_claim_problems(used: list[Content], claims: Set[str], path: str) -> Iterator[Problem]:
    """Problems of `resources.claims` of a container of a pod with claims of these names."""
    requests: dict[str, set[str]] = {}
    """By claim; an empty one for the claim as a whole."""
    for index, use in enumerate(used):
        name, request = use.get("name") or "", use.get("request") or ""
        if not name:
            continue  # left to the schema
        before = requests.setdefault(name, set())
        if "" in before or (before and not request):
            yield duplicate(f"{path}[{index}]", name)
        elif request in before:
            yield duplicate(f"{path}[{index}]", f"{name}/{request}")
        before.add(request)
        if name not in claims:
            yield _not_found(name, claims, f"{path}[{index}]")
        for error in dns_label_errors(request) if request else ():
            yield invalid(f"{path}[{index}].request", request, error)


def _not_found(name: str, claims: Set[str], path: str) -> Problem:
    known = f": {', '.join(sorted(claims))}" if claims else " which is empty"
    detail = f"must be one of the names in pod.spec.resourceClaims{known}"
    return not_found(path, name, detail, "add a claim of that name to the pod")


def whole_pod_problems(used: list[Content], claims: Set[str], path: str) -> Iterator[Problem]:
    """Problems of `spec.resources.claims`: containers alone use claims."""
    if used:
        yield forbidden(path, "claims may not be set for Resources at pod-level")
        yield from used_claim_problems(used, claims, path)
