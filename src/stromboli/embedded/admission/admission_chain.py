"""The admission chain: built-in admission plugins, Volcano's rules and webhooks."""

from __future__ import annotations

from stromboli.api.schemas.schema_problems import Problem
from stromboli.embedded.admission.resource_quota import Quotas
from stromboli.embedded.admission.volcano_admission import VolcanoAdmission
from stromboli.embedded.admission.webhooks import Webhooks
from stromboli.embedded.admission.write_request import WriteRequest
from stromboli.embedded.auth.authorization import RequestAuthorizer
from stromboli.embedded.kinds.builtin import namespace as namespaces
from stromboli.embedded.kinds.kind import Content, Kind
from stromboli.embedded.kinds.status_errors import forbidden, not_found
from stromboli.embedded.store.object_store import Store


class AdmissionChain:
    """Checks and changes of a write that depend on other objects."""

    def __init__(
        self,
        store: Store,
        authorizer: RequestAuthorizer,
        volcano: VolcanoAdmission | None = None,
    ):
        self._store = store
        self.authorizer = authorizer
        self.quotas = Quotas(store)
        self.webhooks = Webhooks(store)
        self._volcano = volcano

    def check_namespace(self, kind: Kind, namespace: str, name: str) -> None:
        """Refuse objects in a namespace that does not exist or is being deleted."""
        if not kind.namespaced:
            return
        record = self._store.get("namespaces", "", namespace)
        if record is None:
            raise not_found(namespaces.KIND, namespace)
        if record.meta.deletion_timestamp:
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            message = f"namespace {namespace} is being terminated"
            raise forbidden(kind, name, why, [Problem("metadata.namespace", "NamespaceTerminating", message)])

    def intercepts(self, request: WriteRequest) -> bool:
        """Whether Volcano's rules or a webhook cover a write."""
        volcano = self._volcano is not None and self._volcano.covers(request)
        return volcano or self.webhooks.intercept(request)

    async def admit(
        self, request: WriteRequest, content: Content | None, old: Content | None
    ) -> tuple[Content, tuple[str, ...]]:
        """The object after all changes, and warnings."""
        if self._volcano is not None and self._volcano.covers(request):
            content = self._volcano.admit(request, content, old)
        return await self.webhooks.admit(request, content, old)
