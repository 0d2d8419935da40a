"""ResourceClaims; those that ask for devices in use are for namespaces of administrators alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stromboli.api.schemas.devices import allocation_validation, claim_validation
from stromboli.api.schemas.schema_problems import Problem, forbidden
from stromboli.embedded.kinds.kind import STATUS, Content, Kind, builtin
from stromboli.embedded.kinds.status_errors import invalid
from stromboli.embedded.kinds.strategy import StoredObjects, Strategy, fixed_spec
from stromboli.embedded.tables.table_printer import cell_printer, nested_map

RESOURCE_CLAIMS = "resourceclaims.resource.k8s.io"
ADMIN_ACCESS = "resource.kubernetes.io/admin-access"
"""Label of namespaces whose claims may ask for access to devices that are in use."""


def _state(claim: Content) -> str:
    status = nested_map(claim, "status")
    states = ["deleted"] if nested_map(claim, "metadata").get("deletionTimestamp") else []
    if status.get("allocation") is not None:
        states.append("allocated")
        if status.get("reservedFor"):
            states.append("reserved")
    elif not states:
        states.append("pending")
    return ",".join(states)


class ResourceClaimStrategy(Strategy):
    status_alone = True
    printer = cell_printer("Name | State | Age", _state)

    def set_defaults(self, content: Content) -> None:
        claim_validation.set_claim_defaults(content)

    def problems(self, content: Content) -> Iterable[Problem]:
        return claim_validation.claim_problems(content)

    def update_problems(self, old: Content, new: Content) -> Iterable[Problem]:
        yield from fixed_spec(old, new)
        yield from allocation_validation.status_problems(old, new)

    def admit(self, store: StoredObjects, kind: Kind, namespace: str, content: Content) -> None:
        check_admin_access(store, kind, namespace, content, content["spec"])

    def restore(self, content: Content, old: Content, subresource: str) -> None:
        if subresource == "status":
            allocation_validation.drop_status_of_lost_devices(old, content)


def check_admin_access(
    store: StoredObjects, kind: Kind, namespace: str, content: Content, spec: Content
) -> None:
    problems = list(_admin_requests(spec))
    record = store.get("namespaces", "", namespace)
    if problems and (record is None or record.labels.get(ADMIN_ACCESS) != "true"):
        raise invalid(kind, str(content["metadata"].get("name", "")), problems)


def _admin_requests(spec: Content) -> Iterator[Problem]:
    detail = f"admin access to devices requires the `{ADMIN_ACCESS}: true` label on the containing namespace"
    for index, request in enumerate((spec.get("devices") or {}).get("requests") or ()):
        if (request.get("exactly") or {}).get("adminAccess"):
            yield forbidden(f"spec.devices.requests[{index}].adminAccess", detail)


KIND = builtin(
    "resource.k8s.io", "resourceclaims", "ResourceClaim", "", STATUS, strategy=ResourceClaimStrategy()
)
