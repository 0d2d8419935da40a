"""DeviceClasses, ResourceClaims and ResourceClaimTemplates: what they ask for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stromboli.api.name_rules import qualified_name_errors
from stromboli.api.schemas.devices.device_fields import (
    Check,
    Content,
    SelectorChecks,
    class_problems,
    configuration_problems,
    full_attribute_problems,
    label_problems,
    list_problems,
    toleration_problems,
)
from stromboli.api.schemas.metadata_rules import annotation_problems
from stromboli.api.schemas.metadata_rules import label_problems as labels_problems
from stromboli.api.schemas.schema_problems import Problem, invalid, required

_MAX_REQUESTS = 32
_MAX_FIRST_AVAILABLE = 8
_MAX_TOLERATIONS = 16
_NO_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)


def set_claim_defaults(claim: Content) -> None:
    _set_spec(claim.get("spec") or {})


def set_template_defaults(template: Content) -> None:
    _set_spec((template.get("spec") or {}).get("spec") or {})


def _set_spec(spec: Content) -> None:
    for request in (spec.get("devices") or {}).get("requests") or ():
        for part in (request.get("exactly"), *(request.get("firstAvailable") or ())):
            if part is not None and part.setdefault("allocationMode", "ExactCount") == "ExactCount":
                part["count"] = part.get("count") or 1


def device_class_problems(device_class: Content) -> Iterator[Problem]:
    spec = device_class["spec"]
    yield from SelectorChecks()(spec.get("selectors"), "spec.selectors")
    yield from list_problems(spec.get("config") or [], _MAX_REQUESTS, configuration_problems, "spec.config")
    name = spec.get("extendedResourceName")
    if name is not None and not is_extended_resource(name):
        yield invalid("spec.extendedResourceName", name, "must be a valid extended resource name")


def is_extended_resource(name: str) -> bool:
    """Whether a resource of containers is of neither Kubernetes nor a quota."""
    native = "/" not in name or "kubernetes.io/" in name
    return not native and not name.startswith("requests.") and not qualified_name_errors(f"requests.{name}")


def claim_problems(claim: Content) -> Iterator[Problem]:
    yield from _spec_problems(claim["spec"], "spec")


def template_problems(template: Content) -> Iterator[Problem]:
    spec = template["spec"]
    meta = spec.get("metadata") or {}
    yield from labels_problems(meta.get("labels") or {}, "spec.metadata.labels")
    yield from annotation_problems(meta.get("annotations") or {}, "spec.metadata.annotations")
    yield from _spec_problems(spec["spec"], "spec.spec")


def _spec_problems(spec: Content, path: str) -> Iterator[Problem]:
    devices, path = spec.get("devices") or {}, f"{path}.devices"
    names = request_names(spec)
    requests, checks = devices.get("requests") or [], _RequestChecks()
    yield from list_problems(requests, _MAX_REQUESTS, checks.request, f"{path}.requests", key=_name)

    def constraint_problems(constraint: Content, path: str) -> Iterator[Problem]:
        yield from request_list_problems(constraint.get("requests"), names, path)
        matched, distinct = constraint.get("matchAttribute"), constraint.get("distinctAttribute")
        if matched is not None:
            yield from full_attribute_problems(matched, f"{path}.matchAttribute")
        elif distinct is not None:
            yield from full_attribute_problems(distinct, f"{path}.distinctAttribute")
        else:
            detail = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
            yield required(path, detail)

    def config_problems(configuration: Content, path: str) -> Iterator[Problem]:
        yield from request_list_problems(configuration.get("requests"), names, path)
        yield from configuration_problems(configuration, path)

    for field, check in (("constraints", constraint_problems), ("config", config_problems)):
        yield from list_problems(devices.get(field) or [], _MAX_REQUESTS, check, f"{path}.{field}")


class _RequestChecks:
    """The checks of all requests of a claim, with its selectors."""

    def __init__(self) -> None:
        self._selectors = SelectorChecks()

    def request(self, request: Content, path: str) -> Iterator[Problem]:
        yield from label_problems(request["name"], f"{path}.name")
        exactly, first = request.get("exactly"), request.get("firstAvailable") or []
        detail = "exactly one of `exactly` or `firstAvailable` is required"
        if exactly is None and not first:
            yield required(path, detail)
        elif exactly is not None and first:
            yield invalid(path, None, f"{detail}, but multiple fields are set")
        elif exactly is not None:
            yield from self._exactly(exactly, f"{path}.exactly")
        else:
            path = f"{path}.firstAvailable"
            yield from list_problems(first, _MAX_FIRST_AVAILABLE, self._alternative, path, key=_name)

    def _alternative(self, request: Content, path: str) -> Iterator[Problem]:
        yield from label_problems(request["name"], f"{path}.name")
        yield from self._exactly(request, path)

    def _exactly(self, request: Content, path: str) -> Iterator[Problem]:
        yield from class_problems(request["deviceClassName"], f"{path}.deviceClassName")
        yield from self._selectors(request.get("selectors"), f"{path}.selectors")
        count = request.get("count") or 0
        if request["allocationMode"] == "All" and count:
            yield invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'")
        elif request["allocationMode"] == "ExactCount" and count <= 0:
            yield invalid(f"{path}.count", count, "must be greater than zero")
        tolerations = request.get("tolerations") or []
        yield from list_problems(tolerations, _MAX_TOLERATIONS, toleration_problems, f"{path}.tolerations")


def request_names(spec: Content) -> dict[str, set[str]]:
    """The names of the requests of a claim, with those of their alternatives."""
    return {
        request["name"]: {part["name"] for part in request.get("firstAvailable") or ()}
        for request in (spec.get("devices") or {}).get("requests") or ()
    }


def reference_check(names: dict[str, set[str]]) -> Check:
    """A check that a text names a request of the claim, or one of its alternatives."""

    def check(text: str, path: str) -> Iterator[Problem]:
        parts = text.split("/")
        if len(parts) > 2:
            yield invalid(path, text, _NO_REQUEST)
            return
        for part in parts:
            yield from label_problems(part, path)
        if parts[0] not in names or (len(parts) == 2 and parts[1] not in names[parts[0]]):
            yield invalid(path, text, _NO_REQUEST)

    return check


def request_list_problems(
    requests: list[str] | None, names: dict[str, set[str]], path: str
) -> Iterator[Problem]:
    check = reference_check(names)
    yield from list_problems(requests or [], _MAX_REQUESTS, check, f"{path}.requests", key=lambda text: text)


def _name(request: Any) -> str:
    return str(request["name"])
