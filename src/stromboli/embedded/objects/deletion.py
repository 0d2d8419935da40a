"""Deletion: grace periods, finalizers, preconditions and propagation policies."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from stromboli.api.go_scalars import timestamp
from stromboli.api.pods import FINISHED
from stromboli.api.schemas.schema_problems import unsupported
from stromboli.embedded.admission.write_request import WriteRequest
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.auth.identity import APISERVER_USER
from stromboli.embedded.kinds.kind import Content, Kind
from stromboli.embedded.kinds.object_metadata import set_entries
from stromboli.embedded.kinds.status_errors import bad_request, forbidden, invalid_options, success
from stromboli.embedded.objects.kind_versions import to_served_version
from stromboli.embedded.objects.object_verbs import Objects, is_removable
from stromboli.embedded.store.records import Record
from stromboli.embedded.time_slices import TimeSlices

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
_POLICIES = ("Foreground", "Background", "Orphan")
LONGEST_GRACE = 7 * 24 * 3600
PROTECTED_NAMESPACES = ("default", "kube-system", "kube-public")


class Preconditions(msgspec.Struct, rename="camel"):
    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(msgspec.Struct, rename="camel"):
    """As in meta/v1."""

    grace_period_seconds: int | None = None
    propagation_policy: str | None = None
    orphan_dependents: bool | None = None
    preconditions: Preconditions | None = None
    dry_run: tuple[str, ...] | None = None

    @property
    def policy(self) -> str:
        if self.propagation_policy:
            return self.propagation_policy
        return "Orphan" if self.orphan_dependents else "Background"


def read_options(body: Any, query: Any) -> DeleteOptions:
    """From the body, and from the query where the body leaves a field open."""
    try:
        options = msgspec.convert(body or {}, DeleteOptions)
        if options.grace_period_seconds is None and "gracePeriodSeconds" in query:
            options.grace_period_seconds = int(query["gracePeriodSeconds"])
    except ValueError as error:
        raise bad_request(f"DeleteOptions: {error}") from None
    options.propagation_policy = options.propagation_policy or query.get("propagationPolicy")
    if options.dry_run is None and query.get("dryRun"):
        options.dry_run = (query["dryRun"],)
    if options.policy not in _POLICIES:
        problem = unsupported("propagationPolicy", options.policy[:100], (*_POLICIES, "nil"))
        raise invalid_options("DeleteOptions", problem)
    if not 0 <= (options.grace_period_seconds or 0) <= LONGEST_GRACE:
        raise bad_request(f"gracePeriodSeconds: must be between 0 and {LONGEST_GRACE}")
    return options


async def delete(
    objects: Objects,
    request: WriteRequest,
    delete_options: DeleteOptions,
    recheck: Callable[[Record], None] | None = None,
) -> bytes:
    """The response: the object while it is still there, otherwise a Status.

    `recheck` is called with the object as it is after webhooks were called.
    """
    kind, namespace, name = request.kind, request.namespace, request.name
    if kind.id == "namespaces" and name in PROTECTED_NAMESPACES:
        raise forbidden(kind, name, "this namespace may not be deleted")
    record = objects.get(kind, namespace, name)
    request = request._replace(operation="DELETE", subresource="")
    if objects.admission.intercepts(request):
        await objects.admission.admit(request, None, to_served_version(kind, record).object())
        record = objects.get(kind, namespace, name)
        if recheck is not None:
            recheck(record)
    _check_preconditions(kind, record, delete_options.preconditions)
    content, old = record.object(), record.object()
    _mark_deleted(kind, content, delete_options)
    if not is_removable(content):
        if request.dry_run:
            record = Record(record.key, record.revision, msgspec.json.encode(content))
            return to_served_version(kind, record).data
        if kind.id == "namespaces":
            content["status"] = {**(content.get("status") or {}), "phase": "Terminating"}
        if content != old:
            record = objects.store.put(record.key, content)
        return to_served_version(kind, record).data
    if not request.dry_run:
        objects.store.remove(record.key, content)
        if kind.id == "pods":  # kubectl shows what it deleted
            return msgspec.json.encode(content)
    return msgspec.json.encode(success(kind, name, content["metadata"]["uid"]))


class Remainder(NamedTuple):
    """What is left of objects that were to be deleted, and the last failure to delete one."""

    records: list[Record]
    failure: StatusError | None


async def delete_all(objects: Objects, kinds: Iterable[Kind], namespace: str = "") -> Remainder:
    """Delete all objects of some kinds."""
    left = list[Record]()
    failure: StatusError | None = None
    slices = TimeSlices()
    for kind in kinds:
        for record in objects.store.list(kind.id, namespace):
            if slices.due:
                await slices.pause()
            if not record.meta.deletion_timestamp:
                try:
                    request = WriteRequest(kind, *record.key[1:], APISERVER_USER)
                    await delete(objects, request, DeleteOptions())
                except StatusError as error:
                    failure = error if error.code != 404 else failure
            if (current := objects.store.get(*record.key)) is not None:
                left.append(current)
    return Remainder(left, failure)


def _check_preconditions(kind: Kind, record: Record, preconditions: Preconditions | None) -> None:
    if preconditions is None:
        return
    for field, required, current, event in (
        ("UID", preconditions.uid, record.meta.uid, "deleted and then recreated"),
        ("ResourceVersion", preconditions.resource_version, str(record.revision), "modified"),
    ):
        if required and required != current:
            raise StatusError(
                409,
                f'Operation cannot be fulfilled on {kind.kind} "{record.key.name}": the {field} in the precondition'
                f" ({required}) does not match the {field} in record ({current}). The object might have been {event}",
                details={"name": record.key.name, "kind": kind.kind},
            )


def _mark_deleted(kind: Kind, content: Content, delete_options: DeleteOptions) -> None:
    """Set deletionTimestamp, grace period and the finalizers of the propagation policy."""
    meta = content["metadata"]
    grace = _grace_period(kind, content, delete_options.grace_period_seconds)
    already = meta.get("deletionTimestamp")
    if not already or grace < int(meta.get("deletionGracePeriodSeconds") or 0):
        meta["deletionTimestamp"] = timestamp(time.time() + grace)
        meta["deletionGracePeriodSeconds"] = grace
        if kind.id == "namespaces":
            del meta["deletionGracePeriodSeconds"]
        if "generation" in meta and not already:
            meta["generation"] = int(meta["generation"]) + 1
    finalizers = [name for name in meta.get("finalizers") or () if name not in (FOREGROUND, ORPHAN)]
    finalizer = {"Foreground": FOREGROUND, "Orphan": ORPHAN}.get(delete_options.policy)
    if finalizer is None and already:
        return  # the policy of the first deletion stays
    if finalizer:
        finalizers.append(finalizer)
    set_entries(meta, "finalizers", finalizers)


def _grace_period(kind: Kind, content: Content, requested: int | None) -> int:
    """Only pods that may be running have one."""
    if kind.id != "pods":
        return 0
    spec, status = content.get("spec") or {}, content.get("status") or {}
    if not spec.get("nodeName") or status.get("phase") in FINISHED:
        return 0
    if requested is not None:
        return requested
    return max(int(spec.get("terminationGracePeriodSeconds", 30)), 0)
