"""What is decided about an object before it is stored: by the server itself, and by webhooks that were registered."""

from __future__ import annotations

from typing import Any

from stromboli.embedded.admission import pod_admission
from stromboli.embedded.admission.resource_quota import Quotas
from stromboli.embedded.admission.volcano_admission import VolcanoRules
from stromboli.embedded.admission.webhooks import Question, Webhooks
from stromboli.embedded.auth.authorization import Access
from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.kinds.kind_registry import Registry
from stromboli.embedded.kinds.status_errors import cause, forbidden, not_found
from stromboli.embedded.rbac import User
from stromboli.embedded.store.object_store import Store

Content = dict[str, Any]


class Admission:
    """Rules that look at more than the object itself."""

    def __init__(self, store: Store, registry: Registry, access: Access, rules: VolcanoRules | None = None):
        self._store = store
        self._access = access
        self.quotas = Quotas(store)
        self.webhooks = Webhooks(store)
        self._rules = rules
        self._namespaces = registry.find("", "v1", "namespaces")

    def place(self, kind: Kind, namespace: str, name: str) -> None:
        """Nothing is created where there is no place, or none for long."""
        if not kind.namespaced or self._namespaces is None:
            return
        record = self._store.get("namespaces", "", namespace)
        if record is None:
            raise not_found(self._namespaces, namespace)
        if record.meta.deletion_timestamp:
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            message = f"namespace {namespace} is being terminated"
            raise forbidden(kind, name, why, [cause("metadata.namespace", message, "NamespaceTerminating")])

    def begin(self, kind: Kind, namespace: str, content: Content) -> None:
        """Complete a new object from what else is there."""
        if kind.id == "pods":
            pod_admission.complete(self._store, kind, namespace, content)

    def granted(self, kind: Kind, content: Content, user: User) -> None:
        """Refuse roles that give more than their author has."""
        self._access.check_grant(user, kind, content)

    def count(self, kind: Kind, namespace: str, content: Content) -> None:
        """Refuse what a quota has no room for."""
        self.quotas.check(kind, namespace, content)

    def recount(self, kind: Kind, content: Content, old: Content) -> None:
        """The same for a change."""
        self.quotas.check(kind, str(content["metadata"].get("namespace", "")), content, old)

    def asks(self, question: Question) -> bool:
        """Whether a webhook, or an admission that is built in, wants to hear of it."""
        return self._ruled(question) or self.webhooks.wanted(question)

    async def ask(
        self, question: Question, content: Content | None, old: Content | None
    ) -> tuple[Content, tuple[str, ...]]:
        """What they make of it."""
        if self._rules is not None and self._ruled(question):
            content = self._rules.apply(question, content, old)
        return await self.webhooks.ask(question, content, old)

    def _ruled(self, question: Question) -> bool:
        return self._rules is not None and self._rules.cover(question)
