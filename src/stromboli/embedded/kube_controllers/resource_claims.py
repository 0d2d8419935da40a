"""ResourceClaims: made from templates for pods and groups, and released when nobody uses them any more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from stromboli.embedded.api_status import StatusError
from stromboli.embedded.kinds.builtin.pod_group import POD_GROUPS
from stromboli.embedded.kinds.builtin.resource_claim import RESOURCE_CLAIMS
from stromboli.embedded.kinds.builtin.resource_claim_template import CLAIM_TEMPLATES
from stromboli.embedded.kinds.kind import Content
from stromboli.embedded.kube_controllers import claim_consumers
from stromboli.embedded.kube_controllers.controller import ServerContext, StoreController
from stromboli.embedded.store.records import Change, Key, Record

_POD_GROUP = "spec.schedulingGroup.podGroupName"
_FAILED = "FailedResourceClaimCreation"
_MENTIONS = (b'"resourceClaims"', b'"extendedResourceClaimStatus"')


class ResourceClaimController(StoreController):
    """Claims of pods and of native PodGroups."""

    name = "resourceclaim-controller"
    component = "resource_claim"

    def __init__(self, context: ServerContext) -> None:
        super().__init__(context)
        self._owned: dict[str, set[Key]] = {}
        """Claims by the uid of their owner."""
        self._awaited: dict[Key, set[Key]] = {}
        """Pods that wait for a claim to have devices, by claim, or for a claim of their group, by group."""

    def initial_keys(self) -> Iterator[Key]:
        store = self._objects.store
        for record in store.list(RESOURCE_CLAIMS):
            self._index(record, None)
            yield record.key
        for resource in (POD_GROUPS, "pods"):
            yield from (record.key for record in store.list(resource) if _has_claims(record))

    def keys_for(self, change: Change) -> Iterable[Key]:
        resource, namespace = change.key.resource, change.key.namespace
        if resource == RESOURCE_CLAIMS:
            self._index(change.after, change.before)
            return self._keys_of_claim(change)
        if resource in ("pods", POD_GROUPS):
            latest = change.after or change.before
            return self._keys_of_consumer(change, latest) if latest and _has_claims(latest) else ()
        if resource == CLAIM_TEMPLATES and change.after is not None:
            records = (
                *self._objects.store.list("pods", namespace),
                *self._objects.store.list(POD_GROUPS, namespace),
            )
            return [record.key for record in records if _has_claims(record)]
        return ()

    def _index(self, after: Record | None, before: Record | None) -> None:
        if before is not None:
            for owner in before.meta.owner_references or ():
                self._owned.get(owner.uid, set()).discard(before.key)
                if not self._owned.get(owner.uid):
                    self._owned.pop(owner.uid, None)
        if after is not None:
            for owner in after.meta.owner_references or ():
                self._owned.setdefault(owner.uid, set()).add(after.key)

    def _keys_of_claim(self, change: Change) -> Iterator[Key]:
        yield change.key
        yield from self._awaited.pop(change.key, ())
        if change.before is not None and change.after is not None:
            return
        record = change.after or change.before
        claim = record.object() if record is not None else {"metadata": {}}
        for owner in claim["metadata"].get("ownerReferences") or ():
            if owner.get("kind") == "Pod":
                yield Key("pods", change.key.namespace, owner["name"])
            elif owner.get("kind") == "PodGroup":
                yield from self._keys_of_group(Key(POD_GROUPS, change.key.namespace, owner["name"]), change)

    def _keys_of_group(self, group: Key, change: Change) -> Iterator[Key]:
        """A group that got or lost a claim: its pods wait for the first, or are to name the next."""
        yield group
        yield from self._awaited.pop(group, ())
        if change.after is None and self._objects.store.get(*group) is not None:
            for record in self._objects.store.list("pods", group.namespace):
                if _has_claims(record) and record.field(_POD_GROUP) == group.name:
                    yield record.key

    def _keys_of_consumer(self, change: Change, latest: Record) -> Iterator[Key]:
        content, namespace = latest.object(), change.key.namespace
        yield change.key
        if change.after is None or (content["kind"] == "Pod" and claim_consumers.is_done(content)):
            self._awaited.pop(change.key, None)
            for name in claim_consumers.claims_of(content):
                claim = Key(RESOURCE_CLAIMS, namespace, name)
                self._awaited.get(claim, set()).discard(change.key)
                yield claim
            yield from tuple(self._owned.get(latest.meta.uid, ()))

    async def reconcile(self, key: Key) -> None:
        record = self._objects.store.get(*key)
        if record is None:
            return
        if key.resource == RESOURCE_CLAIMS:
            await self._release(record)
        elif key.resource in ("pods", POD_GROUPS) and _has_claims(record):
            owner = record.object()
            if not owner["metadata"].get("deletionTimestamp"):
                await self._make_claims(record, owner)
                self._reserve(record.key, owner)

    # -- claims from templates

    async def _make_claims(self, record: Record, owner: Content) -> None:
        group = self._group_of(record) if record.key.resource == "pods" else None
        made = claim_consumers.claim_names(owner)
        statuses: dict[str, str] = {}
        for entry in owner["spec"].get("resourceClaims") or ():
            if not entry.get("resourceClaimTemplateName") or self._is_made(made[entry["name"]], owner, group):
                continue
            if claim_consumers.is_group_claim(entry, group):
                assert group is not None
                name = self._claim_of(group["metadata"]["uid"], entry["name"])
                if not name:
                    group_key = Key(POD_GROUPS, record.key.namespace, group["metadata"]["name"])
                    self._awaited.setdefault(group_key, set()).add(record.key)
            else:
                name = self._claim_of(owner["metadata"]["uid"], entry["name"])
                name = name or await self._make(record.key, owner, entry)
            if name:
                statuses[entry["name"]] = name
        if statuses:
            self._objects.system_update(record, lambda content: _set_statuses(content, statuses))

    def _is_made(self, name: str, owner: Content, group: Content | None) -> bool:
        key = Key(RESOURCE_CLAIMS, owner["metadata"]["namespace"], name)
        owners = [each["metadata"]["uid"] for each in (owner, group) if each is not None]
        return bool(name) and any(key in self._owned.get(uid, ()) for uid in owners)

    def _claim_of(self, uid: str, name: str) -> str:
        """The claim that was made for an owner, under this name in it."""
        for key in self._owned.get(uid, ()):
            record = self._objects.store.get(*key)
            if record is not None:
                annotations = record.object()["metadata"].get("annotations") or {}
                if annotations.get(claim_consumers.CLAIM_NAME) == name:
                    return key.name
        return ""

    async def _make(self, key: Key, owner: Content, entry: Content) -> str:
        template_name = entry["resourceClaimTemplateName"]
        template = self._objects.store.get(CLAIM_TEMPLATES, key.namespace, template_name)
        prefix = "PodResourceClaim" if owner["kind"] == "Pod" else "PodGroupResourceClaim"
        if template is None:
            missing = f'resourceclaimtemplate.resource.k8s.io "{template_name}" not found'
            message = f'{prefix} {entry["name"]}: resource claim template "{template_name}": {missing}'
            self._record_event(owner, _FAILED, message)
            return ""
        content = claim_consumers.claim_for(owner, entry["name"], template.object())
        try:
            await self._create(RESOURCE_CLAIMS, key.namespace, content)
        except StatusError as error:
            self._record_event(owner, _FAILED, f"{prefix} {entry['name']}: create ResourceClaim: {error}")
            raise
        made = Key(RESOURCE_CLAIMS, key.namespace, content["metadata"]["name"])
        self._owned.setdefault(owner["metadata"]["uid"], set()).add(made)
        return made.name

    def _group_of(self, pod: Record) -> Content | None:
        name = pod.field(_POD_GROUP)
        record = self._objects.store.get(POD_GROUPS, pod.key.namespace, name) if name else None
        return None if record is None else record.object()

    # -- reservations

    def _reserve(self, key: Key, pod: Content) -> None:
        """Reserve the claims of a pod that came to its node without a scheduler."""
        if pod["kind"] != "Pod" or not pod["spec"].get("nodeName") or claim_consumers.is_done(pod):
            return
        record = self._objects.store.get(*key)
        group = self._group_of(record) if record is not None else None
        names = claim_consumers.claim_names(pod)
        for entry in pod["spec"].get("resourceClaims") or ():
            if not names[entry["name"]]:
                continue  # the pod comes again when it names the claim
            owner = group if group is not None and claim_consumers.is_group_claim(entry, group) else pod
            claim_key = Key(RESOURCE_CLAIMS, key.namespace, names[entry["name"]])
            claim = self._objects.store.get(*claim_key)
            if claim is None or (claim.object().get("status") or {}).get("allocation") is None:
                self._awaited.setdefault(claim_key, set()).add(key)
            elif not claim.meta.deletion_timestamp:
                self._objects.system_update(claim, partial(claim_consumers.reserve, owner=owner))

    async def _release(self, record: Record) -> None:
        claim = self._objects.system_update(
            record, lambda content: claim_consumers.release(content, self._exists(record.key.namespace))
        )
        if claim is None or claim.meta.deletion_timestamp:
            return
        content = claim.object()
        if (content.get("status") or {}).get("reservedFor"):
            return
        for owner in content["metadata"].get("ownerReferences") or ():
            if owner.get("controller") and (owner.get("apiVersion"), owner.get("kind")) == ("v1", "Pod"):
                pod = self._objects.store.get("pods", record.key.namespace, owner["name"])
                if pod is not None and (
                    pod.meta.uid != owner["uid"] or claim_consumers.is_done(pod.object())
                ):
                    await self._delete(claim)

    def _exists(self, namespace: str) -> Callable[[Content], bool]:
        def exists(consumer: Content) -> bool:
            key = claim_consumers.consumer_key(consumer, namespace)
            record = self._objects.store.get(*key) if key is not None else None
            if key is None:
                return True
            if record is None or record.meta.uid != consumer["uid"]:
                return False
            return key.resource != "pods" or not claim_consumers.is_done(record.object())

        return exists


def _has_claims(record: Record) -> bool:
    return any(mention in record.data for mention in _MENTIONS)


def _set_statuses(owner: Content, claims: dict[str, str]) -> None:
    status = owner.setdefault("status", {})
    kept = [entry for entry in status.get("resourceClaimStatuses") or () if entry.get("name") not in claims]
    made = [{"name": name, "resourceClaimName": claim} for name, claim in claims.items()]
    status["resourceClaimStatuses"] = sorted([*kept, *made], key=lambda entry: str(entry["name"]))
