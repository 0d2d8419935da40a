"""Conversion between served versions and the storage version: only apiVersion and schema differ."""

from __future__ import annotations

import msgspec

from stromboli.embedded.kinds import object_schemas
from stromboli.embedded.kinds.kind import Content, Kind
from stromboli.embedded.store.records import Record


def to_served_version(kind: Kind, record: Record) -> Record:
    """An object in the version of a request, pruned to its schema."""
    if not kind.storage_version:
        return record
    content = {**record.object(), "apiVersion": kind.api_version}
    object_schemas.prune(kind, content)
    return Record(record.key, record.revision, msgspec.json.encode(content))


def to_storage_version(kind: Kind, content: Content) -> Content:
    """An object as it is stored."""
    return {**content, "apiVersion": kind.storage_version} if kind.storage_version else content
