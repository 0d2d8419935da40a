"""ResourceClaimTemplates."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.api.schemas.devices import claim_validation
from stromboli.api.schemas.schema_problems import Problem
from stromboli.embedded.kinds.builtin.resource_claim import check_admin_access
from stromboli.embedded.kinds.kind import Content, Kind, builtin
from stromboli.embedded.kinds.strategy import StoredObjects, Strategy, fixed_spec

CLAIM_TEMPLATES = "resourceclaimtemplates.resource.k8s.io"


class ResourceClaimTemplateStrategy(Strategy):
    def set_defaults(self, content: Content) -> None:
        claim_validation.set_template_defaults(content)

    def problems(self, content: Content) -> Iterable[Problem]:
        return claim_validation.template_problems(content)

    def update_problems(self, old: Content, new: Content) -> Iterable[Problem]:
        return fixed_spec(old, new)

    def admit(self, store: StoredObjects, kind: Kind, namespace: str, content: Content) -> None:
        check_admin_access(store, kind, namespace, content, content["spec"]["spec"])


KIND = builtin(
    "resource.k8s.io",
    "resourceclaimtemplates",
    "ResourceClaimTemplate",
    strategy=ResourceClaimTemplateStrategy(),
)
