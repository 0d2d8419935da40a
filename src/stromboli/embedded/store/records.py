"""One version of one object: encoded as it is sent, with the metadata that selectors and the garbage collector need."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec


class Key(NamedTuple):
    """`resource` is `pods` or `jobs.batch`; `namespace` is empty for cluster-scoped kinds."""

    resource: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.resource} {self.namespace}/{self.name}"


class OwnerReference(msgspec.Struct, rename="camel", gc=False):
    uid: str = ""
    block_owner_deletion: bool | None = None


class ObjectMeta(msgspec.Struct, rename="camel", gc=False):
    """The metadata that the server itself looks at."""

    uid: str = ""
    labels: dict[str, str] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] | None = None


class _MetadataOnly(msgspec.Struct, gc=False):
    metadata: ObjectMeta


class _CheckedMeta(ObjectMeta, rename="camel", gc=False):
    resource_version: str = ""


class _Checked(msgspec.Struct, gc=False):
    metadata: _CheckedMeta


_CHECKED_DECODER = msgspec.json.Decoder(_Checked, strict=False)
_METADATA_DECODER = msgspec.json.Decoder(_MetadataOnly, strict=False)
_OBJECT_DECODER = msgspec.json.Decoder()
_NO_LABELS: dict[str, str] = {}


class Record:
    """A version: immutable. `object()` decodes a fresh copy each time, which its holder may change."""

    __slots__ = ("_fields", "_meta", "_superseded", "data", "key", "revision")

    def __init__(self, key: Key, revision: int, data: bytes):
        self.key = key
        self.revision = revision
        self.data = data
        self._meta: ObjectMeta | None = None
        self._fields: dict[str, str] | None = None
        self._superseded = False

    def supersede(self) -> None:
        """Keep the encoded object alone from now on: history is counted in bytes of those."""
        self._superseded = True
        self._meta = self._fields = None

    def object(self) -> dict[str, Any]:
        decoded: dict[str, Any] = _OBJECT_DECODER.decode(self.data)
        return decoded

    @property
    def meta(self) -> ObjectMeta:
        if self._meta is not None:
            return self._meta
        meta = _METADATA_DECODER.decode(self.data).metadata
        if not self._superseded:
            self._meta = meta
        return meta

    def check(self) -> None:
        """`ValueError` unless this is an object of that revision, with metadata that can be read."""
        if _CHECKED_DECODER.decode(self.data).metadata.resource_version != str(self.revision):
            raise ValueError("its resourceVersion is another one")

    @property
    def labels(self) -> dict[str, str]:
        return self.meta.labels or _NO_LABELS

    def field(self, path: str) -> str:
        """The value that a field selector compares: text, empty if missing."""
        if path == "metadata.name":
            return self.key.name
        if path == "metadata.namespace":
            return self.key.namespace
        if self._fields is not None and path in self._fields:
            return self._fields[path]
        value = read_field(self.object(), path)
        if not self._superseded:
            self._fields = {**(self._fields or {}), path: value}
        return value


def read_field(content: Any, path: str) -> str:
    for step in path.split("."):
        content = content.get(step) if isinstance(content, dict) else None
    if isinstance(content, bool):
        return "true" if content else "false"
    return "" if content is None or isinstance(content, dict | list) else str(content)


class Change(NamedTuple):
    """One write: the versions before and after it; `tombstone` is the last state of a deleted object."""

    revision: int
    key: Key
    before: Record | None
    after: Record | None
    tombstone: Record | None = None
