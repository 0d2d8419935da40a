"""Field managers: `managedFields` of objects that need them.

Objects created by kubectl or Helm have managedFields from the start, so that they can migrate to server-side apply as
on a real API server, and admission can tell what a manifest names. Objects of other clients have none until the first
apply, which costs their writers nothing. Kubernetes treats objects from before server-side apply alike: the first apply
adds a manager called `before-first-apply`. As there, a write is recorded before admission changes it.
"""

from __future__ import annotations

from stromboli.api.schemas.value_formats import json_equal
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.kinds import object_metadata, object_schemas
from stromboli.embedded.kinds.kind import Content, Kind
from stromboli.embedded.patching.managed_fields import FieldManager
from stromboli.embedded.patching.server_side_apply import KUBECTL, SPEC, STATUS, track_update

MANIFEST_TOOLS = (KUBECTL, "helm")


def field_manager(kind: Kind, manager: str, subresource: str) -> FieldManager:
    """The manager of a write, and the fields that the endpoint ignores."""
    if subresource == "status":
        ignored = SPEC
    else:
        ignored = STATUS if kind.has_status else {}
    return FieldManager(
        name=manager,
        api_version=kind.api_version,
        time=object_metadata.now(),
        subresource=subresource,
        ignored=ignored,
    )


def with_managed_fields(
    kind: Kind, content: Content, old: Content | None, manager: str, subresource: str
) -> Content:
    """The object with the write recorded in its managedFields, if it has them or should."""
    managed = manager.startswith(MANIFEST_TOOLS) if old is None else old["metadata"].get("managedFields")
    if not managed and not content["metadata"].get("managedFields"):
        return content
    try:
        return track_update(
            old, content, object_schemas.schema(kind), field_manager(kind, manager, subresource)
        )
    except StatusError as error:
        if old is None and error.code == 413:  # so many fields have no managers
            return content
        raise


def is_unchanged(content: Content, old: Content) -> bool:
    """Whether a write changes nothing, or nothing but times of managers."""
    after, before = _without_times(content), _without_times(old)
    return after == before and json_equal(after, before)  # the quicker comparison first, to which 1 is True


def _without_times(content: Content) -> Content:
    metadata = content["metadata"]
    entries = [{**entry, "time": ""} for entry in metadata.get("managedFields") or ()]
    return {**content, "metadata": {**metadata, "managedFields": entries}}
