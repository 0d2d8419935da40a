"""Create and update, with validation and admission; deletion and subresources are beside it.

A write reads, computes and stores without an `await` in between, so no other write can interfere; where a webhook is
called, or a large write pauses for others, the object is read again afterwards. Results are committed once
`store.wait_committed` returns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from stromboli.api.schemas import schema_problems
from stromboli.embedded.admission.admission_chain import AdmissionChain
from stromboli.embedded.admission.write_request import WriteRequest
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.kinds import object_metadata, object_schemas
from stromboli.embedded.kinds.builtin.custom_resource_definition import DEFINITIONS
from stromboli.embedded.kinds.field_managers import is_unchanged, with_managed_fields
from stromboli.embedded.kinds.kind import Content, Kind
from stromboli.embedded.kinds.kind_registry import KindRegistry
from stromboli.embedded.kinds.status_errors import (
    already_exists,
    bad_request,
    conflict,
    forbidden,
    invalid,
    no_such_resource,
    not_found,
    too_large_object,
    version_required,
)
from stromboli.embedded.objects.disruption_budgets import DisruptionBudgets
from stromboli.embedded.objects.kind_versions import to_served_version, to_storage_version
from stromboli.embedded.objects.service_addresses import ServiceAddresses
from stromboli.embedded.patching.document_bounds import check_document
from stromboli.embedded.store.object_store import ObjectTooLarge, Store
from stromboli.embedded.store.records import Key, Record
from stromboli.embedded.time_slices import LARGE, pause_if_large

ATTEMPTS = 5
"""How often an update is computed anew because the object changed while a webhook was called or a large one paused."""
MAX_UNKNOWN = 20
"""Unknown fields that a refusal or warnings list."""
MAX_PATH = 500
"""Characters of a field's path in a message."""

LARGEST_OBJECT = 1536 * 1024
"""Bytes of an object that somebody writes, as JSON: etcd's limit. The server's own marks and conditions come on top."""


class WriteResult(NamedTuple):
    """The object after a write, encoded, and warnings for its author."""

    data: bytes
    warnings: tuple[str, ...] = ()
    created: bool = False


class Objects:
    """Verbs on the store, for all kinds."""

    def __init__(
        self, store: Store, registry: KindRegistry, admission: AdmissionChain, workloads: bool = False
    ):
        """`workloads`: whether controllers make the pods of workloads; if not, who creates one is warned."""
        self.workloads = workloads
        self.store = store
        self.registry = registry
        self.admission = admission
        self.service_addresses = ServiceAddresses(store)
        self.budgets = DisruptionBudgets(store, registry)

    def get(self, kind: Kind, namespace: str, name: str) -> Record:
        record = self.store.get(kind.id, namespace, name)
        if record is None:
            raise not_found(kind, name)
        return record

    # -- create

    async def create(self, request: WriteRequest, content: Content) -> WriteResult:
        kind, namespace = request.kind, request.namespace
        meta = _checked_metadata(kind, namespace, content, request.name)
        if kind.strategy.refusal:
            raise forbidden(kind, str(meta.get("name") or ""), kind.strategy.refusal)
        definition = self._check_definition(kind)
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = self._generate_name(kind, namespace, str(meta["generateName"]))
        name = meta.get("name")
        name = name if isinstance(name, str) else ""
        warnings = _prune_and_default(request, content)
        if kind.strategy.needs_controller and not self.workloads:
            alone = (
                f"no controller here makes the pods of a {kind.kind}; `stromboli up` runs a cluster that does"
            )
            warnings = (*warnings, alone)
        await pause_if_large(request.size)
        if not name:
            raise invalid(
                kind, "", [schema_problems.required("metadata.name", "name or generateName is required")]
            )
        object_metadata.fill_system_fields(kind, namespace, meta)
        self.admission.check_namespace(kind, namespace, name)
        kind.strategy.prepare_for_create(kind, content)
        if not request.server_side_apply:
            content = with_managed_fields(kind, content, None, request.manager, "")
            meta = content["metadata"]
        kind.strategy.admit(self.store, kind, namespace, content)
        await pause_if_large(request.size)
        request = request._replace(name=name, operation="CREATE")
        if self.admission.intercepts(request):
            content, more = await self.admission.admit(request, content, None)
            warnings = (*warnings, *more)
            await pause_if_large(request.size)
            object_metadata.preserve_system_fields(_checked_metadata(kind, namespace, content, name), meta)
            _prune_and_default(request, content)
            kind.strategy.prepare_for_create(kind, content)
        kind.strategy.complete(content)
        kind.strategy.generate(content)
        await pause_if_large(request.size)
        self._check(kind, content, None)
        await pause_if_large(request.size)
        self.admission.check_namespace(kind, namespace, name)
        if self._check_definition(kind) != definition:
            raise no_such_resource()
        request = request._replace(kind=self._current(kind))
        self.admission.authorizer.check_escalation(request.user, kind, content)
        if self.store.get(kind.id, namespace, name) is not None:
            raise already_exists(kind, name)
        warnings = (*warnings, *kind.strategy.creation_warnings(content))
        self.admission.quotas.check(kind, content)
        if kind.strategy.allocates_addresses:
            self.service_addresses.allocate(kind, content, None)
        data = self.write(request, Key(kind.id, namespace, name), content)
        return WriteResult(data, warnings, True)

    def write(self, request: WriteRequest, key: Key, content: Content) -> bytes:
        """Store an object, or remove it if it may go now; the object as it is served. Too large ones are refused."""
        kind = request.kind
        if request.dry_run:
            data = msgspec.json.encode(content)
            if len(data) > LARGEST_OBJECT:
                raise too_large_object()
            return data
        stored = to_storage_version(kind, content)
        try:
            removable = is_removable(content)
            record = (
                self.store.remove(key, stored) if removable else self.store.put(key, stored, LARGEST_OBJECT)
            )
        except ObjectTooLarge:
            raise too_large_object() from None
        return to_served_version(kind, record).data

    def _current(self, kind: Kind) -> Kind:
        """The kind as its definition is now, which may have changed while a webhook was called."""
        current = self.registry.find(kind.group, kind.version, kind.plural)
        if current is None:
            raise no_such_resource()
        return current

    def _check_definition(self, kind: Kind) -> str:
        """Refuse new objects of a kind whose definition is deleted; the uid of the definition, if the kind has one."""
        if kind.definition is None:
            return ""
        record = self.store.get(DEFINITIONS, "", kind.id)
        if record is None:
            raise no_such_resource()
        if record.meta.deletion_timestamp:
            message = "create not allowed while custom resource definition is terminating"
            raise StatusError(405, message, details={"group": kind.group, "kind": kind.plural})
        return record.meta.uid

    def _generate_name(self, kind: Kind, namespace: str, base: str) -> str:
        for _ in range(8):
            name = object_metadata.generate_name(base)
            if self.store.get(kind.id, namespace, name) is None:
                return name
        raise already_exists(kind, name)

    # -- update

    async def update(self, request: WriteRequest, change: Callable[[Content], Content]) -> WriteResult:
        """Replace an object by `change(object)`, which is called again if the object changes meanwhile."""
        namespace, name = request.namespace, request.name
        for _ in range(ATTEMPTS):
            kind = self._current(request.kind)
            request = request._replace(operation="UPDATE", kind=kind)
            record = self.get(kind, namespace, name)
            current = to_served_version(kind, record)
            old = current.object()
            content = change(current.object())
            meta = _checked_metadata(kind, namespace, content, name)
            _check_preconditions(kind, meta, old["metadata"], record)
            size = request.size + len(record.data)
            if size > LARGE:
                check_document({**content, "metadata": {**meta, "managedFields": None}}, "object")
            await pause_if_large(size)
            warnings = _prepare_update(request, content, old)
            await pause_if_large(size)
            if not request.server_side_apply:
                content = with_managed_fields(kind, content, old, request.manager, request.subresource)
                await pause_if_large(size)
            if self.admission.intercepts(request):
                content, more = await self.admission.admit(request, content, old)
                warnings = (*warnings, *more)
                _checked_metadata(kind, namespace, content, name)
                _prepare_update(request, content, old)
                await pause_if_large(size)
            self._prepare_replacement(request, content, old)
            await pause_if_large(size)
            if self.store.get(kind.id, namespace, name) is record:
                return WriteResult(self._replace(request, record, content, old), warnings)
        raise conflict(kind, name)

    def _prepare_replacement(self, request: WriteRequest, content: Content, old: Content) -> None:
        """Set what the server sets in an object that changes, and check the rest."""
        kind, meta = request.kind, content["metadata"]
        meta["resourceVersion"] = old["metadata"]["resourceVersion"]
        kind.strategy.update_generation(kind, content, old, request.subresource)
        if not is_unchanged(content, old):
            self._check(kind, content, old)
            _check_finalizers(kind, meta, old["metadata"])

    def _replace(self, request: WriteRequest, record: Record, content: Content, old: Content) -> bytes:
        kind = request.kind
        if is_unchanged(content, old):
            return to_served_version(kind, record).data
        self.admission.authorizer.check_escalation(request.user, kind, content)
        kind.strategy.check_update(self.store, kind, content, old)
        self.admission.quotas.check(kind, content, old)
        if kind.strategy.allocates_addresses:
            self.service_addresses.allocate(kind, content, old)
        return self.write(request, record.key, content)

    def _check(self, kind: Kind, content: Content, old: Content | None) -> None:
        problems = schema_problems.first_problems(
            object_schemas.problems(kind, content, old), kind.strategy.stored_problems(content, old)
        )
        if problems:
            raise invalid(kind, str(content["metadata"].get("name", "")), problems)

    # -- writes by the server itself

    def system_update(self, record: Record, change: Callable[[Content], None]) -> Record | None:
        """Change an object without admission; it is removed if its last finalizer went."""
        current = self.store.get(*record.key)
        if current is None or current.meta.uid != record.meta.uid:  # gone, or another of its name
            return None
        content, old = current.object(), current.object()
        change(content)
        if content == old:
            return current
        if is_removable(content):
            self.store.remove(record.key, content)
            return None
        return self.store.put(record.key, content)


def is_removable(content: Content) -> bool:
    """Whether an object is being deleted, and neither finalizers nor a grace period hold it."""
    meta = content["metadata"]
    if "deletionTimestamp" not in meta or meta.get("finalizers"):
        return False
    if (content["apiVersion"], content["kind"]) == ("v1", "Namespace") and (content.get("spec") or {}).get(
        "finalizers"
    ):
        return False
    return int(meta.get("deletionGracePeriodSeconds") or 0) == 0


def _checked_metadata(kind: Kind, namespace: str, content: Content, name: str = "") -> Content:
    """The metadata of a request body, whose kind, namespace and name must be those of the URL."""
    if not isinstance(content, dict):
        raise bad_request("the body of the request must be an object")
    for field, expected in (("apiVersion", kind.api_version), ("kind", kind.kind)):
        sent = content.get(field) or expected
        if sent != expected:
            raise bad_request(
                f"{kind.kind} in version {kind.api_version!r} cannot be handled as a {str(sent)[:100]}:"
                f" the {field} in the data ({str(sent)[:100]}) does not match the expected one ({expected})"
            )
    meta = content.get("metadata")
    if meta is None:
        meta = {}
    if not isinstance(meta, dict):
        raise bad_request(f"{kind.kind}: metadata must be an object")
    rest = {key: value for key, value in content.items() if key not in ("apiVersion", "kind", "metadata")}
    content.clear()
    content.update({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, **rest})
    if kind.namespaced and meta.get("namespace") and meta["namespace"] != namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if name and meta.setdefault("name", name) != name:
        raise bad_request(
            f"the name of the object ({str(meta['name'])[:253]}) does not match the name on the URL ({name})"
        )
    return meta


def _prune_and_default(request: WriteRequest, content: Content) -> tuple[str, ...]:
    """Prune, set defaults and check types; returns warnings, about unknown fields as `fieldValidation` asks."""
    kind = request.kind
    result = object_schemas.normalize(kind, content)
    if result.problems and kind.strategy.replaces_status(kind, request.subresource, result.problems):
        content.pop("status", None)
        result = result._replace(problems=object_schemas.normalize(kind, content).problems)
    unknown = [f'unknown field "{path[:MAX_PATH]}"' for path in result.unknown[:MAX_UNKNOWN]]
    if unknown and request.validation == "Strict":
        more = len(result.unknown) - len(unknown)
        listed = ", ".join([*unknown, f"and {more} more"] if more else unknown)
        raise bad_request(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}:'
            f" strict decoding error: {listed}"
        )
    if result.problems:
        raise invalid(kind, str(content["metadata"].get("name", "")), result.problems)
    return (*(unknown if request.validation == "Warn" else ()), *kind.strategy.write_warnings(content))


def _prepare_update(request: WriteRequest, content: Content, old: Content) -> tuple[str, ...]:
    """Prune and default an update, and restore what it may not change."""
    warnings = _prune_and_default(request, content)
    object_metadata.preserve_system_fields(content["metadata"], old["metadata"])
    strategy = request.kind.strategy
    strategy.prepare_for_update(request.kind, content, old, request.subresource)
    return warnings


def _check_preconditions(kind: Kind, meta: Content, old: Content, record: Record) -> None:
    name, version, uid = record.key.name, meta.get("resourceVersion"), meta.get("uid")
    if version in (None, "", "0"):
        if kind.strategy.needs_version:
            raise version_required(kind, name)
    elif version != str(record.revision):
        raise conflict(kind, name)
    if uid and uid != old["uid"]:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old['uid']}"
        raise conflict(kind, name, why)


def _check_finalizers(kind: Kind, meta: Content, old: Content) -> None:
    """An object that is being deleted gets no new finalizers."""
    if "deletionTimestamp" not in old:
        return
    added = set(meta.get("finalizers") or ()) - set(old.get("finalizers") or ())
    if added:
        why = f"no new finalizers can be added if the object is being deleted, found new finalizers {sorted(added)}"
        problem = schema_problems.forbidden("metadata.finalizers", why)
        raise invalid(kind, str(meta.get("name")), [problem])
