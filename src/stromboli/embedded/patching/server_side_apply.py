"""Server-side apply and field ownership (`metadata.managedFields`).

A manager that applies a configuration owns the fields in it. A field of another manager is not changed without
`force`, and a field that its only owner no longer applies is removed. Other writes (`Update`) never conflict: they take
over the fields that they change.
"""

from __future__ import annotations

from typing import Any

import msgspec

from stromboli.api.schemas.schema import Schema
from stromboli.api.schemas.schema_problems import Problem
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.patching.document_bounds import check_document
from stromboli.embedded.patching.field_sets import FieldSet, difference, intersection, paths, union
from stromboli.embedded.patching.managed_fields import (
    FieldManager,
    ManagedFields,
    ManagedFieldsEntry,
    ManagerKey,
    check_managers,
    decode_managed_fields,
    encode_managed_fields,
)
from stromboli.embedded.patching.typed_documents import (
    Comparison,
    check_field_count,
    compare,
    field_set_of,
    merge,
    remove_fields,
    with_named_fields,
)

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
BEFORE_FIRST_APPLY = "before-first-apply"
KUBECTL = "kubectl"
MAX_CONFLICTS = 50
"""Conflicts that a refusal lists."""

_META = (
    "creationTimestamp",
    "generation",
    "managedFields",
    "name",
    "namespace",
    "resourceVersion",
    "selfLink",
    "uid",
)
_NEVER_OWNED: FieldSet = {
    "f:apiVersion": {},
    "f:kind": {},
    "f:metadata": {".": {}, **{f"f:{name}": {} for name in _META}},
}
STATUS: FieldSet = {"f:status": {}}
"""Fields that a write to the object itself ignores, where there is a status subresource."""
SPEC: FieldSet = {"f:spec": {}, "f:metadata": {"f:deletionTimestamp": {}, "f:ownerReferences": {}}}
"""Fields that a write to the status ignores."""

Content = dict[str, Any]


def track_update(live: Content | None, new: Content, schema: Schema, manager: FieldManager) -> Content:
    """The new object with the `managedFields` of this create, update or patch; `live` is None for a create.

    An object without managed fields stays so until the first apply. Managed fields in the new object replace the stored
    ones (that is how kubectl migrates to server-side apply), except through a subresource; an empty list clears them.
    """
    managers = _previous_managers(live, new, manager)
    if live is not None and not managers:
        return _with_entries(new, managers)
    check_field_count(_visible(new, manager, schema), schema)
    change = compare(_visible(live or {}, manager, schema), _visible(new, manager, schema), schema)
    if any(change):
        managers = _updated(managers, change, manager.entry("Update"))
    return _with_entries(new, managers)


def apply(
    live: Content | None, config: Content, schema: Schema, manager: FieldManager, force: bool = False
) -> Content:
    """The object after this configuration was applied; `live` is None for a new object.

    StatusError with one cause per field if other managers own what would change. A result that equals `live` need not
    be stored.
    """
    _check_config(config, manager)
    applied = remove_fields(config, manager.ignored, schema)
    before = _visible(live or {}, manager, schema)
    for document in (applied, before):
        check_field_count(document, schema)
    managers = decode_managed_fields(_stored(live))
    if live is not None and not managers:
        first = msgspec.structs.replace(manager, name=BEFORE_FIRST_APPLY, subresource="").entry("Update")
        managers = _updated(managers, compare({}, before, schema), first)
    applier = manager.entry("Apply")
    last = managers.pop(applier.id, applier.with_fields({}))
    fields = field_set_of(applied, schema)
    after = _prune(merge(before, applied, schema), fields, managers, last.fields, schema)
    change = compare(before, after, schema)
    if not force:
        _check_conflicts(managers, change, live or {}, manager, schema)
    managers = _without_changed_fields(managers, change)
    if owned := difference(fields, _NEVER_OWNED):
        managers[applier.id] = applier.with_fields(owned) if any(change) or owned != last.fields else last
    check_managers(managers)
    result = _with_ignored(after, live or {}, manager)
    if manager.name == KUBECTL and not manager.subresource:
        result = _with_last_applied(result, config)
    return _with_entries(result, managers)


def _with_ignored(after: Content, live: Content, manager: FieldManager) -> Content:
    """The result with the ignored fields of the live object."""
    result = dict(after)
    for key, nested in manager.ignored.items():
        name = key[2:]
        if not nested and name in live:
            result[name] = live[name]
        elif nested and isinstance(live.get(name), dict):
            hidden = {key[2:]: live[name][key[2:]] for key in nested if key[2:] in live[name]}
            seen = result.get(name)
            result[name] = {**seen, **hidden} if isinstance(seen, dict) else hidden
    return result


def _prune(
    merged: Content, applied: FieldSet, managers: ManagedFields, last: FieldSet, schema: Schema
) -> Content:
    """Remove fields that were applied last time, are not applied now, and no other manager owns.

    First everything that was applied last time is removed with its children. Then fields with another owner are put
    back, and in the end children that were never applied, such as fields that the server set.
    """
    if not last:
        return merged
    everything = with_named_fields(field_set_of(merged, schema, unique=False), schema)
    pruned = remove_fields(merged, with_named_fields(last, schema), schema)
    left = with_named_fields(field_set_of(pruned, schema, unique=False), schema)
    owned = applied
    for entry in managers.values():
        owned = union(owned, entry.fields)
    removed = difference(difference(everything, left), with_named_fields(owned, schema))
    pruned = remove_fields(merged, removed, schema)
    left = with_named_fields(field_set_of(pruned, schema, unique=False), schema)
    removed = intersection(difference(everything, left), with_named_fields(last, schema))
    result: Content = remove_fields(merged, removed, schema)
    return result


# -- managers


def _previous_managers(live: Content | None, new: Content, manager: FieldManager) -> ManagedFields:
    stored = _stored(live)
    sent = _stored(new)
    if manager.subresource or sent is None or sent == stored:
        return decode_managed_fields(stored)
    if sent in ([], [{}]):
        return {}
    try:
        managers = decode_managed_fields(sent)
        check_managers(managers)
        return managers or decode_managed_fields(stored)
    except StatusError:
        return decode_managed_fields(stored)


def _updated(managers: ManagedFields, change: Comparison, owner: ManagedFieldsEntry) -> ManagedFields:
    known = managers.get(owner.id)
    owned = known.fields if known else {}
    result = _without_changed_fields({id: entry for id, entry in managers.items() if id != owner.id}, change)
    owned = union(union(difference(owned, change.removed), change.modified), change.added)
    owned = difference(owned, _NEVER_OWNED)
    if owned:
        result[owner.id] = owner.with_fields(owned)
    return result


def _without_changed_fields(managers: ManagedFields, change: Comparison) -> ManagedFields:
    """The entries without the fields that another manager just changed or removed."""
    lost = union(union(change.modified, change.added), change.removed)
    if lost:
        managers = {id: entry.with_fields(difference(entry.fields, lost)) for id, entry in managers.items()}
    return {id: entry for id, entry in managers.items() if entry.fields}


# -- conflicts


def _check_conflicts(
    managers: ManagedFields, change: Comparison, live: Content, manager: FieldManager, schema: Schema
) -> None:
    changed = union(change.modified, change.added)
    conflicts = {id: intersection(entry.fields, changed) for id, entry in managers.items()}
    if any(conflicts.values()) and manager.name == KUBECTL:
        allowed = _client_side(live, schema)
        conflicts = {id: difference(fields, allowed) for id, fields in conflicts.items()}
    _refuse([(managers[id], path) for id, fields in conflicts.items() for path in paths(fields)])


def _refuse(conflicts: list[tuple[ManagedFieldsEntry, str]]) -> None:
    if not conflicts:
        return
    conflicts.sort(key=lambda conflict: str(conflict[0]))
    listed = conflicts[:MAX_CONFLICTS]
    problems = [Problem(path, "FieldManagerConflict", f"conflict with {entry}") for entry, path in listed]
    details = {"causes": [problem.cause() for problem in problems]}
    if len(conflicts) == 1:
        (entry, path), *_ = conflicts
        raise StatusError(
            409, f"Apply failed with 1 conflict: conflict with {entry}: {path}", details=details
        )
    lines = [f"Apply failed with {len(conflicts)} conflicts: "]
    named = ""
    for entry, path in listed:
        if named != str(entry):
            named = str(entry)
            lines.append(f"conflicts with {named}:")
        lines.append(f"- {path}")
    if len(conflicts) > len(listed):
        lines.append(f"and {len(conflicts) - len(listed)} more")
    raise StatusError(409, lines[0] + "\n".join(lines[1:]), details=details)


def _client_side(live: Content, schema: Schema) -> FieldSet:
    """Fields that are as `kubectl apply` without --server-side left them: kubectl may take those over."""
    text = _annotations(live).get(LAST_APPLIED)
    if not isinstance(text, str):
        return {}
    try:
        applied = msgspec.json.decode(text)
        check_document(applied)
        change = compare(applied, live, schema)
        return difference(difference(field_set_of(applied, schema), change.modified), change.removed)
    except (StatusError, ValueError, AttributeError, RecursionError):
        return {}


def _with_last_applied(result: Content, config: Content) -> Content:
    """Update the last-applied annotation of client-side apply, so that going back to it is safe."""
    if not _annotations(result).get(LAST_APPLIED):
        return result
    metadata = _metadata(config)
    rest = {key: value for key, value in _annotations(config).items() if key != LAST_APPLIED}
    applied = (
        {**config, "metadata": {**metadata, "annotations": rest}} if "annotations" in metadata else config
    )
    text = msgspec.json.encode(applied).decode() + "\n"
    annotations = {**_annotations(result), LAST_APPLIED: text}
    return {**result, "metadata": {**_metadata(result), "annotations": annotations}}


# -- objects


def _check_config(config: Content, manager: FieldManager) -> None:
    check_document(config)
    if not isinstance(config, dict):
        raise StatusError(400, "an apply patch is an object")
    if not manager.name:
        raise StatusError(
            422,
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
        )
    if _stored(config) is not None:
        raise StatusError(400, "metadata.managedFields must be nil")
    version = config.get("apiVersion")
    if version != manager.api_version:
        message = f"Specified patch version: {version}, expected: {manager.api_version}"
        raise StatusError(400, f"Incorrect version specified in apply patch. {message}")


def _metadata(content: Content) -> Content:
    metadata = content.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _annotations(content: Content) -> Content:
    annotations = _metadata(content).get("annotations")
    return annotations if isinstance(annotations, dict) else {}


def _stored(content: Content | None) -> Any:
    return _metadata(content).get("managedFields") if content else None


def _visible(content: Content, manager: FieldManager, schema: Schema) -> Content:
    """The object without its managed fields, and without what this manager ignores."""
    metadata = content.get("metadata")
    if isinstance(metadata, dict) and "managedFields" in metadata:
        rest = {key: value for key, value in metadata.items() if key != "managedFields"}
        content = {**content, "metadata": rest}
    visible: Content = remove_fields(content, manager.ignored, schema)
    return visible


def _with_entries(content: Content, managers: dict[ManagerKey, ManagedFieldsEntry]) -> Content:
    metadata = {key: value for key, value in _metadata(content).items() if key != "managedFields"}
    if entries := encode_managed_fields(managers):
        metadata["managedFields"] = entries
    return {**content, "metadata": metadata}
