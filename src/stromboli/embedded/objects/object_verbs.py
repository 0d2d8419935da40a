"""What may be done with stored objects: create, update, patch, delete. No HTTP here.

A write reads, computes and stores without waiting in between, so nothing can come between; where a webhook has to be
asked, the object is looked at again afterwards. What is returned is committed once `store.settled` says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from stromboli.embedded.admission.admission_chain import Admission
from stromboli.embedded.admission.webhooks import Question
from stromboli.embedded.kinds import kind_rules, object_metadata, object_schemas
from stromboli.embedded.kinds.field_managers import tracked
from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.kinds.kind_registry import Registry
from stromboli.embedded.kinds.status_errors import (
    already_exists,
    bad_request,
    cause,
    conflict,
    invalid,
    not_found,
    required,
)
from stromboli.embedded.objects.kind_versions import spoken, written
from stromboli.embedded.rbac import User
from stromboli.embedded.store.object_store import Store
from stromboli.embedded.store.records import Key, Record

ATTEMPTS = 5
"""How often a patch is computed anew because the object changed while a webhook was asked."""

Content = dict[str, Any]


class Options(NamedTuple):
    """How a write is meant."""

    user: User
    dry_run: bool = False
    manager: str = "unknown"
    validation: str = "Warn"
    applied: bool = False
    """Whether this is a server-side apply, which keeps its own notes of who owns what."""


class Outcome(NamedTuple):
    """An object as it is now, encoded; what its author should know; whether it is new."""

    data: bytes
    warnings: tuple[str, ...] = ()
    created: bool = False


class Objects:
    """The store, with the rules of each kind."""

    def __init__(self, store: Store, registry: Registry, admission: Admission):
        self.store = store
        self.registry = registry
        self.admission = admission

    def get(self, kind: Kind, namespace: str, name: str) -> Record:
        record = self.store.get(kind.id, namespace, name)
        if record is None:
            raise not_found(kind, name)
        return record

    # -- create

    async def create(self, kind: Kind, namespace: str, content: Content, options: Options) -> Outcome:
        meta = _checked_head(kind, namespace, content)
        given = meta.get("name")
        if not given and meta.get("generateName"):
            meta["name"] = self._free_name(kind, namespace, str(meta["generateName"]))
        name = meta.get("name")
        name = name if isinstance(name, str) else ""
        warnings = _shaped(kind, content, options)
        if not name:
            missing = required("metadata.name", "name or generateName is required")
            raise invalid(kind, "", [missing])
        object_metadata.born(kind, namespace, meta)
        self.admission.place(kind, namespace, name)
        kind_rules.begin(kind, content)
        self.admission.begin(kind, namespace, content)
        question = Question("CREATE", kind, namespace, name, "", options.user, options.dry_run)
        if self.admission.asks(question):
            content, more = await self.admission.ask(question, content, None)
            warnings = (*warnings, *more)
            object_metadata.kept(_checked_head(kind, namespace, content, name), meta)
            _shaped(kind, content, options)
            kind_rules.begin(kind, content)
            self.admission.place(kind, namespace, name)
        self._check(kind, content, None)
        self.admission.granted(kind, content, options.user)
        if self.store.get(kind.id, namespace, name) is not None:
            raise already_exists(kind, name)
        if not options.applied:
            content = tracked(kind, content, None, options.manager, "")
        self.admission.count(kind, namespace, content)
        if options.dry_run:
            return Outcome(msgspec.json.encode(content), warnings, True)
        record = self.store.put(Key(kind.id, namespace, name), written(kind, content))
        return Outcome(spoken(kind, record).data, warnings, True)

    def _free_name(self, kind: Kind, namespace: str, base: str) -> str:
        for _ in range(8):
            name = object_metadata.name_from(base)
            if self.store.get(kind.id, namespace, name) is None:
                return name
        raise already_exists(kind, name)

    # -- update

    async def update(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        change: Callable[[Content], Content],
        options: Options,
        part: str = "",
    ) -> Outcome:
        """Replace an object by what `change` makes of it; asked again if it changes meanwhile."""
        for _ in range(ATTEMPTS):
            record = self.get(kind, namespace, name)
            now = spoken(kind, record)
            old = now.object()
            content = change(now.object())
            meta = _checked_head(kind, namespace, content, name)
            self._check_versions(kind, name, meta, old["metadata"], record)
            warnings = _formed(kind, content, old, part, options)
            question = Question("UPDATE", kind, namespace, name, part, options.user, options.dry_run)
            if self.admission.asks(question):
                content, more = await self.admission.ask(question, content, old)
                warnings = (*warnings, *more)
                if self.store.get(kind.id, namespace, name) is not record:
                    continue
                _checked_head(kind, namespace, content, name)
                _formed(kind, content, old, part, options)
            return Outcome(self._replaced(kind, record, content, old, part, options), warnings)
        raise conflict(kind, name)

    def _replaced(
        self, kind: Kind, record: Record, content: Content, old: Content, part: str, options: Options
    ) -> bytes:
        meta = content["metadata"]
        meta["resourceVersion"] = old["metadata"]["resourceVersion"]
        kind_rules.count_generation(kind, content, old, part)
        if content == old:
            return spoken(kind, record).data
        self._check(kind, content, old)
        _check_finalizers(kind, meta, old["metadata"])
        self.admission.granted(kind, content, options.user)
        if not options.applied:
            content = tracked(kind, content, old, options.manager, part)
        self.admission.recount(kind, content, old)
        if options.dry_run:
            return msgspec.json.encode(content)
        if "deletionTimestamp" in meta and not meta.get("finalizers") and finished(kind, content):
            return spoken(kind, self.store.remove(record.key, written(kind, content))).data
        return spoken(kind, self.store.put(record.key, written(kind, content))).data

    @staticmethod
    def _check_versions(kind: Kind, name: str, meta: Content, old: Content, record: Record) -> None:
        version, uid = meta.get("resourceVersion"), meta.get("uid")
        if version not in (None, "", "0") and version != str(record.revision):
            raise conflict(kind, name)
        if uid and uid != old["uid"]:
            why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old['uid']}"
            raise conflict(kind, name, why)

    def _check(self, kind: Kind, content: Content, old: Content | None) -> None:
        causes = object_schemas.problems(kind, content, old)
        causes += kind_rules.problems(kind, content, old)
        if causes:
            raise invalid(kind, str(content["metadata"].get("name", "")), causes)

    # -- writes by the server itself

    def mend(self, record: Record, change: Callable[[Content], None]) -> Record | None:
        """Change an object as the server sees fit, without asking anybody; gone, if that was all that held it."""
        current = self.store.get(*record.key)
        if current is None:
            return None
        content, old = current.object(), current.object()
        change(content)
        if content == old:
            return current
        meta = content["metadata"]
        kind = self.registry.by_id(record.key.resource)
        if (
            "deletionTimestamp" in meta
            and not meta.get("finalizers")
            and (kind is None or finished(kind, content))
        ):
            self.store.remove(record.key, content)
            return None
        return self.store.put(record.key, content)


def finished(kind: Kind, content: Content) -> bool:
    """Whether an object that is to be deleted may go once its finalizers are gone: pods may have time left."""
    if kind.id == "namespaces" and (content.get("spec") or {}).get("finalizers"):
        return False
    return int(content["metadata"].get("deletionGracePeriodSeconds") or 0) == 0


def _checked_head(kind: Kind, namespace: str, content: Content, name: str = "") -> Content:
    """The metadata of what was sent, which is of this kind, in this place."""
    if not isinstance(content, dict):
        raise bad_request("the body of the request must be an object")
    for field, expected in (("apiVersion", kind.api_version), ("kind", kind.kind)):
        given = content.get(field) or expected
        if given != expected:
            raise bad_request(
                f"{kind.kind} in version {kind.api_version!r} cannot be handled as a {str(given)[:100]}:"
                f" the {field} in the data ({str(given)[:100]}) does not match the expected one ({expected})"
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


def _shaped(kind: Kind, content: Content, options: Options) -> tuple[str, ...]:
    """Prune, set defaults and check; what was pruned is refused, or told, or neither, as the author wishes."""
    found = object_schemas.shape(kind, content)
    if found.problems:
        causes = [one.cause() for one in found.problems]
        raise invalid(kind, str(content["metadata"].get("name", "")), causes)
    unknown = [f'unknown field "{path}"' for path in found.unknown]
    if unknown and options.validation == "Strict":
        raise bad_request(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}:'
            f" strict decoding error: {', '.join(unknown)}"
        )
    return tuple(unknown) if options.validation == "Warn" else ()


def _formed(kind: Kind, content: Content, old: Content, part: str, options: Options) -> tuple[str, ...]:
    """An update in its final form: what nobody may change, and what this path may not, is as it was."""
    warnings = _shaped(kind, content, options)
    object_metadata.kept(content["metadata"], old["metadata"])
    kind_rules.carry_over(kind, content, old, part)
    return warnings


def _check_finalizers(kind: Kind, meta: Content, old: Content) -> None:
    """Something that is being deleted is not held back by new finalizers."""
    if "deletionTimestamp" not in old:
        return
    added = set(meta.get("finalizers") or ()) - set(old.get("finalizers") or ())
    if added:
        why = f"no new finalizers can be added if the object is being deleted, found new finalizers {sorted(added)}"
        problem = cause("metadata.finalizers", f"Forbidden: {why}", "FieldValueForbidden")
        raise invalid(kind, str(meta.get("name")), [problem])
