"""Which manager owns which fields of an object, as far as anybody asked.

Objects that kubectl makes have such notes from the start, so that moving on to server-side apply goes as on a real API
server. An object that somebody else made and nobody applied has none, and a write to it costs nothing more. That is how
Kubernetes treats objects from before server-side apply: the first apply finds an owner called `before-first-apply`.
"""

from __future__ import annotations

from typing import Any

from stromboli.embedded.kinds import object_metadata, object_schemas
from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.patching.managed_fields import FieldManager
from stromboli.embedded.patching.server_side_apply import KUBECTL, SPEC, STATUS, track_update

Content = dict[str, Any]


def writer(kind: Kind, manager: str, part: str) -> FieldManager:
    """Who writes, and what they cannot write there."""
    if part == "status":
        ignored = SPEC
    else:
        ignored = STATUS if kind.has_status else {}
    return FieldManager(
        name=manager,
        api_version=kind.api_version,
        time=object_metadata.now(),
        subresource=part,
        ignored=ignored,
    )


def tracked(kind: Kind, content: Content, old: Content | None, manager: str, part: str) -> Content:
    """The same object with a note of who changed what, if there are such notes or should be."""
    known = manager.startswith(KUBECTL) if old is None else old["metadata"].get("managedFields")
    if not known and not content["metadata"].get("managedFields"):
        return content
    return track_update(old, content, object_schemas.schema(kind), writer(kind, manager, part))
