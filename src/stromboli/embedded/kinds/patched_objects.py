"""What a patch may not do to an object: change its type or its identity."""

from __future__ import annotations

from collections.abc import Iterator

from stromboli.api.schemas.schema_problems import Problem, invalid
from stromboli.embedded.kinds import status_errors
from stromboli.embedded.kinds.kind import Content, Kind
from stromboli.embedded.kinds.status_errors import bad_request

_IMMUTABLE = ("uid", "deletionTimestamp")


def check_patched(kind: Kind, before: Content, after: Content) -> None:
    """Refuse a patch that leaves another type, no name, or another object."""
    name = before["metadata"]["name"]
    if problems := [*_type_problems(kind, after), *_metadata_problems(before, after)]:
        raise status_errors.invalid(kind, name, problems)
    if not (after.get("metadata") or {}).get("name") or not after.get("apiVersion"):
        raise bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )


def _type_problems(kind: Kind, after: Content) -> Iterator[Problem]:
    """Built-in kinds need not name their kind."""
    for field, expected in (("apiVersion", kind.api_version), ("kind", kind.kind)):
        stated = after.get(field)
        is_optional = field == "apiVersion" or kind.definition is None
        if stated != expected and not (is_optional and stated in (None, "")):
            yield invalid(field, stated, f"must be {expected}")


def _metadata_problems(before: Content, after: Content) -> Iterator[Problem]:
    metadata = after.get("metadata")
    if metadata is None:
        return
    if not isinstance(metadata, dict):
        yield invalid("metadata", metadata, "must be an object")
        return
    for field in ("name", "resourceVersion"):
        if not isinstance(metadata.get(field), str | None):
            yield invalid(f"metadata.{field}", metadata[field], "must be a string")
    for field in _IMMUTABLE:
        stated = metadata.get(field)
        if stated and stated != before["metadata"].get(field):
            yield invalid(f"metadata.{field}", stated, "field is immutable")
