"""Entries of `metadata.managedFields`: field managers, their operations and the fields they own."""

from __future__ import annotations

from typing import Any

import msgspec

from stromboli.embedded.api_status import StatusError
from stromboli.embedded.patching.document_bounds import MAX_DEPTH
from stromboli.embedded.patching.field_sets import FieldSet, union

MAX_MANAGERS = 100
"""Managers that apply to an object; each apply compares the fields of all."""
MAX_OWNED = 20_000
"""Fields of all managers together."""
MAX_UPDATERS = 10
"""Updaters with an entry of their own; the oldest entries beyond them are merged."""
ANCIENT = "ancient-changes"
MAX_NAME = 128

ManagerKey = tuple[str, str, str, str]


class FieldManager(msgspec.Struct, frozen=True, kw_only=True):
    """The manager of a write, its API version, subresource and time."""

    name: str
    api_version: str
    time: str
    subresource: str = ""
    ignored: FieldSet = {}
    """Fields that this write cannot change, such as the status where that is a subresource."""

    def entry(self, operation: str) -> ManagedFieldsEntry:
        return ManagedFieldsEntry(
            manager=self.name,
            operation=operation,
            api_version=self.api_version,
            subresource=self.subresource,
            time=self.time,
        )


class ManagedFieldsEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A manager and the fields it owns."""

    manager: str
    operation: str
    api_version: str
    subresource: str = ""
    time: str = ""
    fields: FieldSet = {}

    @property
    def id(self) -> ManagerKey:
        """Identifies a manager; one that applies is the same in every version."""
        version = "" if self.operation == "Apply" else self.api_version
        return self.manager, self.operation, version, self.subresource

    def with_fields(self, fields: FieldSet) -> ManagedFieldsEntry:
        return msgspec.structs.replace(self, fields=fields)

    def __str__(self) -> str:
        part = f' with subresource "{self.subresource}"' if self.subresource else ""
        how = f" using {self.api_version}" if self.operation == "Update" else ""
        return f'"{self.manager}"{part}{how}'


ManagedFields = dict[ManagerKey, ManagedFieldsEntry]


def decode_managed_fields(raw: Any) -> ManagedFields:
    """Entries by manager. StatusError if they are malformed."""
    managers: ManagedFields = {}
    if raw is not None and not isinstance(raw, list):
        raise StatusError(400, "metadata.managedFields is a list")
    for item in raw or ():
        entry = _read(item)
        existing = managers.get(entry.id, entry)
        managers[entry.id] = existing.with_fields(union(existing.fields, entry.fields))
    return managers


def check_managers(managers: ManagedFields) -> None:
    """Refuse more managers or fields than later applies can compare in good time."""
    appliers = sum(entry.operation == "Apply" for entry in managers.values())
    owned = sum(_size(entry.fields) for entry in managers.values())
    for count, limit, what in ((appliers, MAX_MANAGERS, "appliers"), (owned, MAX_OWNED, "fields")):
        if count > limit:
            raise StatusError(
                413,
                f"metadata.managedFields would have {count} {what}, and {limit} are allowed: apply with fewer field"
                " managers, or clear metadata.managedFields by an update that sets it to [{}]",
            )


def _size(fields: FieldSet) -> int:
    return len(fields) + sum(_size(children) for children in fields.values() if children)


def _read(raw: Any) -> ManagedFieldsEntry:
    if not isinstance(raw, dict) or raw.get("operation") not in ("Apply", "Update"):
        raise StatusError(400, "an entry of metadata.managedFields has the operation Apply or Update")
    if raw.get("fieldsType") != "FieldsV1":
        raise StatusError(400, "an entry of metadata.managedFields has the fieldsType FieldsV1")
    fields = raw.get("fieldsV1") or {}
    _check(fields, 0)
    texts = [raw.get(name) or "" for name in ("manager", "apiVersion", "subresource", "time")]
    if not all(isinstance(text, str) for text in texts):
        raise StatusError(
            400, "manager, apiVersion, subresource and time of metadata.managedFields are texts"
        )
    manager, version, subresource, time = texts
    return ManagedFieldsEntry(
        manager=manager[:MAX_NAME],
        operation=raw["operation"],
        api_version=version,
        subresource=subresource,
        time=time,
        fields=fields,
    )


def _check(fields: Any, depth: int) -> None:
    if not isinstance(fields, dict) or depth > MAX_DEPTH:
        raise StatusError(400, "fieldsV1 of metadata.managedFields is a tree of objects")
    for key, children in fields.items():
        if key != "." and key[:2] not in ("f:", "k:", "v:", "i:"):
            raise StatusError(400, f"fieldsV1 of metadata.managedFields has no key {key[:64]!r}")
        _check(children, depth + 1)


def encode_managed_fields(managers: ManagedFields) -> list[dict[str, Any]]:
    """The list as it is stored: Apply before Update, then by time and name."""
    entries = _cap_updaters([entry for entry in managers.values() if entry.fields])
    entries.sort(
        key=lambda entry: (entry.operation, entry.time, entry.manager, entry.api_version, entry.subresource)
    )
    return [_write(entry) for entry in entries]


def _write(entry: ManagedFieldsEntry) -> dict[str, Any]:
    optional = {"time": entry.time, "subresource": entry.subresource}
    return {
        "manager": entry.manager,
        "operation": entry.operation,
        "apiVersion": entry.api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": entry.fields,
        **{name: text for name, text in optional.items() if text},
    }


def _cap_updaters(entries: list[ManagedFieldsEntry]) -> list[ManagedFieldsEntry]:
    updaters = [entry for entry in entries if entry.operation == "Update"]
    updaters.sort(key=lambda entry: (entry.time, entry.id))
    surplus = len(updaters) - MAX_UPDATERS
    if surplus <= 0:
        return entries
    old = updaters[: surplus + 1]
    merged_ids = {entry.id for entry in old}
    rest = [entry for entry in entries if entry.id not in merged_ids]
    merged: dict[str, ManagedFieldsEntry] = {}
    for entry in old:
        fields = union(merged.get(entry.api_version, entry).fields, entry.fields)
        merged[entry.api_version] = ManagedFieldsEntry(
            manager=ANCIENT, operation="Update", api_version=entry.api_version, time=entry.time, fields=fields
        )
    return rest + list(merged.values())
