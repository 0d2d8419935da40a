"""Namespaces: each has a default service account and the CA bundle, and is deleted with all its objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain

from stromboli.embedded.kinds.kind import Content
from stromboli.embedded.kube_controllers.controller import ServerContext, StoreController
from stromboli.embedded.objects.deletion import Remainder, delete_all
from stromboli.embedded.objects.subresources import set_condition
from stromboli.embedded.store.records import Change, Key

NAMESPACES = "namespaces"
SERVICE_ACCOUNTS = "serviceaccounts"
CONFIG_MAPS, ROOT_CA = "configmaps", "kube-root-ca.crt"


_OK = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}
"""Reasons and messages of conditions that are False: nothing holds the namespace."""
MAX_LISTED = 50
"""Resources or finalizers that a condition lists."""


def _conditions(remainder: Remainder) -> Iterator[Content]:
    """The conditions of a namespace that is being deleted, as the namespace controller of Kubernetes words them."""
    problems: dict[str, tuple[str, str]] = {}
    if remainder.failure is not None:
        message = f"Failed to delete all resource types, 1 remaining: {remainder.failure.message[:1000]}"
        problems["NamespaceDeletionContentFailure"] = "ContentDeletionFailed", message
    if remainder.records:
        resources = Counter(record.key.resource for record in remainder.records)
        listed = _listed(
            f"{name if '.' in name else name + '.'} has {count} resource instances"
            for name, count in resources.items()
        )
        message = f"Some resources are remaining: {listed}"
        problems["NamespaceContentRemaining"] = "SomeResourcesRemain", message
    if finalizers := Counter(
        chain.from_iterable(record.meta.finalizers or () for record in remainder.records)
    ):
        listed = _listed(f"{name} in {count} resource instances" for name, count in finalizers.items())
        message = f"Some content in the namespace has finalizers remaining: {listed}"
        problems["NamespaceFinalizersRemaining"] = "SomeFinalizersRemain", message
    for type, ok in _OK.items():
        reason, message = problems.get(type, ok)
        yield {"type": type, "status": str(type in problems), "reason": reason, "message": message}


def _listed(entries: Iterable[str]) -> str:
    listed = sorted(entries)
    more = [f"and {len(listed) - MAX_LISTED} more"] if len(listed) > MAX_LISTED else []
    return ", ".join(listed[:MAX_LISTED] + more)


class NamespaceController(StoreController):
    name = "namespace-controller"

    def __init__(self, context: ServerContext) -> None:
        super().__init__(context)
        self._ca = context.ca
        self._terminating: set[str] = set()

    def initial_keys(self) -> Iterator[Key]:
        return (record.key for record in self._objects.store.list(NAMESPACES))

    def keys_for(self, change: Change) -> Iterator[Key]:
        key = change.key
        if key.resource == NAMESPACES:
            if change.before is None or not change.before.meta.deletion_timestamp:
                yield key
        elif (key.resource == CONFIG_MAPS and key.name == ROOT_CA) or (
            change.after is None and (key.resource == SERVICE_ACCOUNTS or key.namespace in self._terminating)
        ):
            yield Key(NAMESPACES, "", key.namespace)

    async def reconcile(self, key: Key) -> None:
        if key.resource != NAMESPACES or (record := self._objects.store.get(*key)) is None:
            return
        if not record.meta.deletion_timestamp:
            await self._ensure_service_account(key.name)
            await self._ensure_root_ca(key.name)
            return
        self._terminating.add(key.name)
        kinds = {kind.id: kind for kind in self._objects.registry if kind.namespaced}
        remainder = await delete_all(self._objects, kinds.values(), key.name)
        conditions = list(_conditions(remainder))

        def change(namespace: Content) -> None:
            for condition in conditions:
                set_condition(namespace, condition)
            if not remainder.records:
                namespace["spec"] = {}

        self._objects.system_update(record, change)
        if remainder.failure is not None:
            raise remainder.failure
        if not remainder.records:
            self._terminating.discard(key.name)

    async def _ensure_service_account(self, namespace: str) -> None:
        if self._objects.store.get(SERVICE_ACCOUNTS, namespace, "default") is None:
            await self._create(SERVICE_ACCOUNTS, namespace, {"metadata": {"name": "default"}})

    async def _ensure_root_ca(self, namespace: str) -> None:
        """Publish the CA bundle, as clients in pods expect it, and restore it after a change or a deletion."""
        data, record = {"ca.crt": self._ca}, self._objects.store.get(CONFIG_MAPS, namespace, ROOT_CA)
        if not self._ca:
            return
        if record is None:
            await self._create(CONFIG_MAPS, namespace, {"metadata": {"name": ROOT_CA}, "data": data})
        else:
            self._objects.system_update(record, lambda content: content.update(data=data))
