"""A kind that is served in several versions is stored in one; the others differ in name and schema alone."""

from __future__ import annotations

from typing import Any

import msgspec

from stromboli.embedded.kinds import object_schemas
from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.store.records import Record

Content = dict[str, Any]


def spoken(kind: Kind, record: Record) -> Record:
    """An object in the version of whoever asks; what that version does not have is left out."""
    if not kind.stored:
        return record
    content = {**record.object(), "apiVersion": kind.api_version}
    object_schemas.prune(kind, content)
    return Record(record.key, record.revision, msgspec.json.encode(content))


def written(kind: Kind, content: Content) -> Content:
    """An object in the version that is stored."""
    return {**content, "apiVersion": kind.stored} if kind.stored else content
