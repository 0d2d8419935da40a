"""One version of one object, encoded as it is sent, with the little that selectors and owners need at hand."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec


class Key(NamedTuple):
    """Where an object is: `resource` as in `pods` or `jobs.batch`; no namespace if its kind has none."""

    resource: str
    namespace: str
    name: str


class Owner(msgspec.Struct, rename="camel", gc=False):
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class Meta(msgspec.Struct, rename="camel", gc=False):
    """What every object says about itself."""

    uid: str = ""
    labels: dict[str, str] | None = None
    owner_references: tuple[Owner, ...] | None = None
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] | None = None


class _Head(msgspec.Struct, gc=False):
    metadata: Meta


_HEAD = msgspec.json.Decoder(_Head, strict=False)
_ANY = msgspec.json.Decoder()
_NO_LABELS: dict[str, str] = {}


class Record:
    """A version: never changed. `object()` is a fresh copy each time, so that its holder may change it."""

    __slots__ = ("_fields", "_meta", "data", "key", "revision")

    def __init__(self, key: Key, revision: int, data: bytes):
        self.key = key
        self.revision = revision
        self.data = data
        self._meta: Meta | None = None
        self._fields: dict[str, str] | None = None

    def object(self) -> dict[str, Any]:
        decoded: dict[str, Any] = _ANY.decode(self.data)
        return decoded

    @property
    def meta(self) -> Meta:
        if self._meta is None:
            self._meta = _HEAD.decode(self.data).metadata
        return self._meta

    @property
    def labels(self) -> dict[str, str]:
        return self.meta.labels or _NO_LABELS

    def field(self, path: str) -> str:
        """As a field selector sees it: text, and empty if missing."""
        if path == "metadata.name":
            return self.key.name
        if path == "metadata.namespace":
            return self.key.namespace
        if self._fields is None:
            self._fields = {}
        if path not in self._fields:
            self._fields[path] = read_field(self.object(), path)
        return self._fields[path]


def read_field(content: Any, path: str) -> str:
    for part in path.split("."):
        content = content.get(part) if isinstance(content, dict) else None
    if path == "source":  # of an event: its component
        content = content.get("component") if isinstance(content, dict) else None
    if isinstance(content, bool):
        return "true" if content else "false"
    return "" if content is None or isinstance(content, dict | list) else str(content)


class Change(NamedTuple):
    """One write: what was there before, and what is there now; `gone` is the last state of what was deleted."""

    revision: int
    key: Key
    before: Record | None
    after: Record | None
    gone: Record | None = None
