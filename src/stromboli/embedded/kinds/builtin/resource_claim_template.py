"""ResourceClaimTemplates."""

from __future__ import annotations

from stromboli.api.schemas.devices import claim_validation
from stromboli.embedded.kinds.builtin.resource_claim import check_admin_access
from stromboli.embedded.kinds.kind import Content, Kind, builtin
from stromboli.embedded.kinds.strategy import StoredObjects, Strategy, fixed_spec

CLAIM_TEMPLATES = "resourceclaimtemplates.resource.k8s.io"


def _admit(store: StoredObjects, kind: Kind, namespace: str, content: Content) -> None:
    check_admin_access(store, kind, namespace, content, content["spec"]["spec"])


KIND = builtin(
    "resource.k8s.io",
    "resourceclaimtemplates",
    "ResourceClaimTemplate",
    strategy=Strategy(
        set_defaults=claim_validation.set_template_defaults,
        problems=claim_validation.template_problems,
        update_problems=fixed_spec,
        admit=_admit,
    ),
)
