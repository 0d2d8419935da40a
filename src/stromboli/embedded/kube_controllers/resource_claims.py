"""ResourceClaims: made from templates for pods and groups, and released when nobody uses them any more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from stromboli.api.pods import FINISHED
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.kinds.builtin.pod_group import POD_GROUPS
from stromboli.embedded.kinds.builtin.resource_claim import RESOURCE_CLAIMS
from stromboli.embedded.kinds.builtin.resource_claim_template import CLAIM_TEMPLATES
from stromboli.embedded.kinds.kind import Content
from stromboli.embedded.kinds.object_metadata import remove_finalizer
from stromboli.embedded.kube_controllers.controller import ServerContext, StoreController
from stromboli.embedded.store.records import Change, Key, Record

FINALIZER = "resource.kubernetes.io/delete-protection"
"""Keeps a claim that has devices; set by the scheduler that allocates them."""
CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
"""Annotation of a claim from a template: the name of the claim in its pod or group."""
_MAX_CONSUMERS = 256
_MAX_BASE = 57
"""Characters before the random part of the name of a claim."""
_SOURCES = ("resourceClaimName", "resourceClaimTemplateName")
_POD_OWNER = ("v1", "Pod")
_GROUP_OWNER = ("scheduling.k8s.io/v1alpha2", "PodGroup")
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
        if change.after is None or (content["kind"] == "Pod" and is_done(content)):
            self._awaited.pop(change.key, None)
            for name in claims_of(content):
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
        made = claim_names(owner)
        statuses: dict[str, str] = {}
        for entry in owner["spec"].get("resourceClaims") or ():
            if not entry.get("resourceClaimTemplateName") or self._is_made(made[entry["name"]], owner, group):
                continue
            if is_group_claim(entry, group):
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
                if annotations.get(CLAIM_NAME) == name:
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
        content = claim_for(owner, entry["name"], template.object())
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
        if pod["kind"] != "Pod" or not pod["spec"].get("nodeName") or is_done(pod):
            return
        record = self._objects.store.get(*key)
        group = self._group_of(record) if record is not None else None
        names = claim_names(pod)
        for entry in pod["spec"].get("resourceClaims") or ():
            if not names[entry["name"]]:
                continue  # the pod comes again when it names the claim
            owner = group if group is not None and is_group_claim(entry, group) else pod
            claim_key = Key(RESOURCE_CLAIMS, key.namespace, names[entry["name"]])
            claim = self._objects.store.get(*claim_key)
            if claim is None or (claim.object().get("status") or {}).get("allocation") is None:
                self._awaited.setdefault(claim_key, set()).add(key)
            elif not claim.meta.deletion_timestamp:
                self._objects.system_update(claim, partial(reserve, owner=owner))

    async def _release(self, record: Record) -> None:
        claim = self._objects.system_update(
            record, lambda content: release(content, self._exists(record.key.namespace))
        )
        if claim is None or claim.meta.deletion_timestamp:
            return
        content = claim.object()
        if (content.get("status") or {}).get("reservedFor"):
            return
        for owner in content["metadata"].get("ownerReferences") or ():
            if owner.get("controller") and (owner.get("apiVersion"), owner.get("kind")) == ("v1", "Pod"):
                pod = self._objects.store.get("pods", record.key.namespace, owner["name"])
                if pod is not None and (pod.meta.uid != owner["uid"] or is_done(pod.object())):
                    await self._delete(claim)

    def _exists(self, namespace: str) -> Callable[[Content], bool]:
        def exists(consumer: Content) -> bool:
            key = consumer_key(consumer, namespace)
            record = self._objects.store.get(*key) if key is not None else None
            if key is None:
                return True
            if record is None or record.meta.uid != consumer["uid"]:
                return False
            return key.resource != "pods" or not is_done(record.object())

        return exists


def _has_claims(record: Record) -> bool:
    return any(mention in record.data for mention in _MENTIONS)


def _set_statuses(owner: Content, claims: dict[str, str]) -> None:
    status = owner.setdefault("status", {})
    kept = [entry for entry in status.get("resourceClaimStatuses") or () if entry.get("name") not in claims]
    made = [{"name": name, "resourceClaimName": claim} for name, claim in claims.items()]
    status["resourceClaimStatuses"] = sorted([*kept, *made], key=lambda entry: str(entry["name"]))


# -- consumers of claims


def is_done(pod: Content) -> bool:
    """Whether a pod will not run any more."""
    if (pod.get("status") or {}).get("phase") in FINISHED:
        return True
    return bool(pod["metadata"].get("deletionTimestamp")) and not pod["spec"].get("nodeName")


def consumer_key(consumer: Content, namespace: str) -> Key | None:
    """The pod or group that a claim is reserved for; None for those of others."""
    group, resource = consumer.get("apiGroup") or "", consumer.get("resource")
    if (group, resource) == ("", "pods"):
        return Key("pods", namespace, consumer["name"])
    if (group, resource) == ("scheduling.k8s.io", "podgroups"):
        return Key(POD_GROUPS, namespace, consumer["name"])
    return None


def release(claim: Content, exists: Callable[[Content], bool]) -> None:
    """Remove, in place, consumers that are gone; a claim without consumers gives its devices back."""
    status, meta = claim.get("status") or {}, claim["metadata"]
    reserved = status.get("reservedFor") or []
    remaining = [consumer for consumer in reserved if exists(consumer)]
    ours = FINALIZER in (meta.get("finalizers") or ())
    if len(remaining) < len(reserved):
        status["reservedFor"] = remaining
        if not remaining:
            del status["reservedFor"]
    elif not (ours and meta.get("deletionTimestamp")):
        return
    if not remaining and ours:
        status.pop("allocation", None)
        status.pop("devices", None)
        remove_finalizer(claim, FINALIZER)


def claims_of(owner: Content) -> Iterator[str]:
    """Names of all ResourceClaims of a pod or a group, as far as they are known."""
    spec, status = owner.get("spec") or {}, owner.get("status") or {}
    for entry in spec.get("resourceClaims") or ():
        if entry.get("resourceClaimName"):
            yield entry["resourceClaimName"]
    for entry in status.get("resourceClaimStatuses") or ():
        if entry.get("resourceClaimName"):
            yield entry["resourceClaimName"]
    if extended := (status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName"):
        yield extended


def claim_names(owner: Content) -> dict[str, str]:
    """ResourceClaims of a pod or a group, by their names in it."""
    spec, status = owner.get("spec") or {}, owner.get("status") or {}
    made = {
        entry["name"]: entry.get("resourceClaimName") or ""
        for entry in status.get("resourceClaimStatuses") or ()
    }
    return {
        entry["name"]: entry.get("resourceClaimName") or made.get(entry["name"], "")
        for entry in spec.get("resourceClaims") or ()
    }


def is_group_claim(entry: Content, group: Content | None) -> bool:
    """Whether a claim of a pod is one of its group."""
    entries = ((group or {}).get("spec") or {}).get("resourceClaims") or ()
    wanted = [entry.get(field) for field in ("name", *_SOURCES)]
    return any([known.get(field) for field in ("name", *_SOURCES)] == wanted for known in entries)


def claim_for(owner: Content, name: str, template: Content) -> Content:
    """The claim that is made from a template for a pod or a group."""
    meta, spec = template["spec"].get("metadata") or {}, template["spec"]["spec"]
    api_version, kind = _POD_OWNER if owner["kind"] == "Pod" else _GROUP_OWNER
    reference = {"apiVersion": api_version, "kind": kind, "controller": True}
    reference |= {field: owner["metadata"][field] for field in ("name", "uid")}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "generateName": _base_name(owner["metadata"]["name"], name),
            "annotations": {**(meta.get("annotations") or {}), CLAIM_NAME: name},
            **({"labels": meta["labels"]} if meta.get("labels") else {}),
            "ownerReferences": [reference],
        },
        "spec": spec,
    }


def _base_name(owner: str, claim: str) -> str:
    base = f"{owner}-{claim}-"
    if len(base) <= _MAX_BASE:
        return base
    share = _MAX_BASE / len(base)
    return f"{owner[: int(len(owner) * share)]}-{claim[: int(len(claim) * share)]}"


def consumer(owner: Content) -> Content:
    """A pod or a group as an entry of `reservedFor`."""
    meta = owner["metadata"]
    entry = {"name": meta["name"], "uid": meta["uid"]}
    if owner["kind"] == "Pod":
        return {"resource": "pods", **entry}
    return {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", **entry}


def reserve(claim: Content, owner: Content) -> None:
    """Reserve, in place, an allocated claim for a pod that was bound without a scheduler."""
    status = claim.get("status") or {}
    reserved = status.get("reservedFor") or []
    known = any(entry["uid"] == owner["metadata"]["uid"] for entry in reserved)
    if status.get("allocation") is not None and not known and len(reserved) < _MAX_CONSUMERS:
        status["reservedFor"] = [*reserved, consumer(owner)]
