"""Deletion: at once, after some grace, when finalizers allow, and with or without what an object owns."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec

from stromboli.embedded.admission.webhooks import Question
from stromboli.embedded.kinds import object_metadata
from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.kinds.status_errors import (
    Refusal,
    bad_request,
    cause,
    forbidden,
    invalid_options,
    success,
)
from stromboli.embedded.objects.kind_versions import spoken
from stromboli.embedded.objects.object_verbs import Objects, Options
from stromboli.embedded.store.records import Record

Content = dict[str, Any]

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
_POLICIES = ("Foreground", "Background", "Orphan")
LONGEST_GRACE = 7 * 24 * 3600


class Preconditions(msgspec.Struct, rename="camel"):
    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(msgspec.Struct, rename="camel"):
    """What a client may say about a deletion."""

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
    """From the body, and from the query where the body is silent."""
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
        listed = ", ".join(f'"{one}"' for one in (*_POLICIES, "nil"))
        message = f'Unsupported value: "{options.policy[:100]}": supported values: {listed}'
        problem = cause("propagationPolicy", message, "FieldValueNotSupported")
        raise invalid_options("DeleteOptions", problem)
    if not 0 <= (options.grace_period_seconds or 0) <= LONGEST_GRACE:
        raise bad_request(f"gracePeriodSeconds: must be between 0 and {LONGEST_GRACE}")
    return options


async def delete(
    objects: Objects,
    kind: Kind,
    namespace: str,
    name: str,
    asked: DeleteOptions,
    options: Options,
    still: Callable[[Record], None] | None = None,
) -> bytes:
    """The answer: the object as long as it is still there, otherwise a Status.

    `still` refuses what may have become wrong while a webhook was asked.
    """
    refuse_protected(kind, name)
    record = objects.get(kind, namespace, name)
    question = Question("DELETE", kind, namespace, name, "", options.user, options.dry_run)
    if objects.admission.asks(question):
        await objects.admission.ask(question, None, spoken(kind, record).object())
        record = objects.get(kind, namespace, name)
        if still is not None:
            still(record)
    _check(kind, record, asked.preconditions)
    content, old = record.object(), record.object()
    meta = content["metadata"]
    _mark(kind, content, asked)
    stays = bool(meta.get("finalizers")) or bool(meta.get("deletionGracePeriodSeconds"))
    stays = stays or bool(kind.id == "namespaces" and (content.get("spec") or {}).get("finalizers"))
    if options.dry_run:
        if not stays:
            return msgspec.json.encode(success(kind, name, meta["uid"]))
        return spoken(kind, Record(record.key, record.revision, msgspec.json.encode(content))).data
    if stays:
        if kind.id == "namespaces":
            content["status"] = {**(content.get("status") or {}), "phase": "Terminating"}
        if content != old:
            record = objects.store.put(record.key, content)
        return spoken(kind, record).data
    objects.store.remove(record.key, content)
    if kind.id == "pods":  # kubectl shows what it deleted
        return msgspec.json.encode(content)
    return msgspec.json.encode(success(kind, name, meta["uid"]))


def _check(kind: Kind, record: Record, preconditions: Preconditions | None) -> None:
    if preconditions is None:
        return
    if preconditions.uid and preconditions.uid != record.meta.uid:
        why = (
            f"the UID in the precondition ({preconditions.uid}) does not match the UID in record"
            f" ({record.meta.uid}). The object might have been deleted and then recreated"
        )
        raise _changed(kind, record, why)
    if preconditions.resource_version and preconditions.resource_version != str(record.revision):
        why = (
            f"the ResourceVersion in the precondition ({preconditions.resource_version}) does not match the"
            f" ResourceVersion in record ({record.revision}). The object might have been modified"
        )
        raise _changed(kind, record, why)


def _changed(kind: Kind, record: Record, why: str) -> Refusal:
    name = record.key.name
    message = f'Operation cannot be fulfilled on {kind.kind} "{name}": {why}'
    return Refusal(409, message, details={"name": name, "kind": kind.kind})


def _mark(kind: Kind, content: Content, asked: DeleteOptions) -> None:
    """Write into an object that it is to go, and how."""
    meta = content["metadata"]
    grace = _grace(kind, content, asked.grace_period_seconds)
    already = meta.get("deletionTimestamp")
    if not already or grace < int(meta.get("deletionGracePeriodSeconds") or 0):
        meta["deletionTimestamp"] = object_metadata.stamp(time.time() + grace)
        meta["deletionGracePeriodSeconds"] = grace
        if kind.id == "namespaces":
            del meta["deletionGracePeriodSeconds"]
        if "generation" in meta and not already:
            meta["generation"] = int(meta["generation"]) + 1
    finalizers = [one for one in meta.get("finalizers") or () if one not in (FOREGROUND, ORPHAN)]
    held = {"Foreground": FOREGROUND, "Orphan": ORPHAN}.get(asked.policy)
    if held is None and already:
        return  # a deletion that was asked for before goes on as it was asked for
    if held:
        finalizers.append(held)
    if finalizers:
        meta["finalizers"] = finalizers
    else:
        meta.pop("finalizers", None)


def _grace(kind: Kind, content: Content, asked: int | None) -> int:
    """Only pods that may run somewhere are given time."""
    if kind.id != "pods":
        return 0
    spec, status = content.get("spec") or {}, content.get("status") or {}
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return 0
    if asked is not None:
        return asked
    return max(int(spec.get("terminationGracePeriodSeconds", 30)), 0)


PROTECTED = ("default", "kube-system", "kube-public")


def refuse_protected(kind: Kind, name: str) -> None:
    """What the server cannot do without."""
    if kind.id == "namespaces" and name in PROTECTED:
        raise forbidden(kind, name, "this namespace may not be deleted")
