"""Claims of devices that others use: for namespaces of administrators alone."""

from __future__ import annotations

from collections.abc import Iterator

from stromboli.api.schemas.schema_problems import Problem, forbidden
from stromboli.embedded.kinds.kind import Content, Kind
from stromboli.embedded.kinds.status_errors import invalid
from stromboli.embedded.store.object_store import Store

CLAIM_TEMPLATES = "resourceclaimtemplates.resource.k8s.io"
ADMIN_ACCESS = "resource.kubernetes.io/admin-access"
"""Label of namespaces whose claims may ask for access to devices that are in use."""


def check_claim(store: Store, kind: Kind, namespace: str, claim: Content) -> None:
    _check(store, kind, namespace, claim, claim["spec"])


def check_template(store: Store, kind: Kind, namespace: str, template: Content) -> None:
    _check(store, kind, namespace, template, template["spec"]["spec"])


def _check(store: Store, kind: Kind, namespace: str, content: Content, spec: Content) -> None:
    problems = list(_admin_requests(spec))
    record = store.get("namespaces", "", namespace)
    if problems and (record is None or record.labels.get(ADMIN_ACCESS) != "true"):
        raise invalid(kind, str(content["metadata"].get("name", "")), problems)


def _admin_requests(spec: Content) -> Iterator[Problem]:
    detail = f"admin access to devices requires the `{ADMIN_ACCESS}: true` label on the containing namespace"
    for index, request in enumerate((spec.get("devices") or {}).get("requests") or ()):
        if (request.get("exactly") or {}).get("adminAccess"):
            yield forbidden(f"spec.devices.requests[{index}].adminAccess", detail)
