"""Decodes what an API server sends into our structs: pages of a list, and the events of a watch.

A page is decoded in one go as long as every object is valid. Otherwise its objects are decoded one by one, so that
the invalid one is reported and the others are used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from stromboli.api.decoding import DECODE_ERRORS
from stromboli.api.errors import BadObject
from stromboli.api.object_checks import check_object
from stromboli.api.object_reading import ObjectReader, countable_part, usable_part
from stromboli.api.types.kinds import describe
from stromboli.api.types.meta import Object, ObjectMeta
from stromboli.api.types.node import Node
from stromboli.api.types.pod import Pod
from stromboli.kube.request import Status

MAX_LINE_BYTES = 32 * 1024 * 1024
"""Of one line of a watch; no object may be that large."""


class PartialMetadata(msgspec.Struct, rename="camel", gc=False):
    """What identifies an object that could not be decoded."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _WithMetadata(msgspec.Struct, gc=False):
    metadata: PartialMetadata = msgspec.field(default_factory=PartialMetadata)


_read_metadata = msgspec.json.Decoder(_WithMetadata).decode


class DecodedObject(NamedTuple):
    """A decoded object, or its identity and what is wrong with it.

    A pod with an error that holds a node, has ended or is being deleted comes with the part that can be used, and so
    does a node with amounts that cannot be used.
    """

    metadata: PartialMetadata | ObjectMeta
    object: Object | None
    error: BadObject | None = None

    @property
    def key(self) -> str:
        namespace, name = self.metadata.namespace, self.metadata.name
        return f"{namespace}/{name}" if namespace else name


def _read_object(reader: ObjectReader, kind: type[Object], raw: msgspec.Raw) -> DecodedObject:
    try:
        object = reader.read(kind, raw)
    except BadObject as error:
        return DecodedObject(_metadata_of(raw), usable_part(kind, raw), error)
    return DecodedObject(object.metadata, object)


def _checked(object: Object, size: int) -> DecodedObject:
    try:
        check_object(object, size)
    except BadObject as error:
        part = countable_part(object) if isinstance(object, Node) else None
        return DecodedObject(object.metadata, part, error.of(describe(object)))
    return DecodedObject(object.metadata, object)


def _metadata_of(raw: msgspec.Raw) -> PartialMetadata:
    try:
        return _read_metadata(raw).metadata
    except DECODE_ERRORS:
        return PartialMetadata()


# -- a list


class _ListMeta(msgspec.Struct, rename="camel", gc=False):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _WithListMeta(msgspec.Struct, gc=False):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)


_read_list_meta = msgspec.json.Decoder(_WithListMeta).decode


class ListPage(NamedTuple):
    """Some objects of a list, its resource version, and the token for the next page."""

    objects: list[DecodedObject]
    resource_version: str
    continue_token: str
    size: int = 0
    """Bytes of the page."""


class ListDecoder:
    """Decodes pages of a list of one kind."""

    def __init__(self, kind: type[Object]) -> None:
        self._kind = kind
        self._reader = ObjectReader()
        fields: list[Any] = [("metadata", _ListMeta, msgspec.field(default_factory=_ListMeta))]
        typed = msgspec.defstruct("TypedPage", [*fields, ("items", list[kind] | None, None)], gc=False)  # type: ignore[valid-type]
        raw = msgspec.defstruct("RawPage", [*fields, ("items", list[msgspec.Raw] | None, None)], gc=False)
        self._decode_typed = msgspec.json.Decoder(typed).decode
        self._decode_raw = msgspec.json.Decoder(raw).decode

    def continue_token(self, body: bytes) -> str:
        """The token for the next page, at a tenth of the time that the page takes; `ValueError` if this is no list."""
        try:
            return _read_list_meta(body).metadata.continue_
        except DECODE_ERRORS as error:
            raise self._no_list(error) from None

    def decode(self, body: bytes) -> ListPage:
        """`ValueError` if this is no list."""
        page: Any
        try:
            if self._kind is Pod:  # one by one, as most share their specs
                page = self._decode_raw(body)
                objects = self._read_all(page.items)
            else:
                page = self._decode_typed(body)
                objects = [_checked(object, len(body)) for object in page.items or ()]
        except DECODE_ERRORS:
            try:
                page = self._decode_raw(body)
            except DECODE_ERRORS as error:
                raise self._no_list(error) from None
            objects = self._read_all(page.items)
        return ListPage(objects, page.metadata.resource_version, page.metadata.continue_, len(body))

    def _read_all(self, items: list[msgspec.Raw] | None) -> list[DecodedObject]:
        return [_read_object(self._reader, self._kind, raw) for raw in items or ()]

    def _no_list(self, error: Exception) -> ValueError:
        return ValueError(f"no list of {self._kind.__name__}: {error}")


# -- a watch


class WatchEvent(NamedTuple):
    """One event of a watch: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR."""

    type: str
    decoded: DecodedObject
    status: Status | None = None

    @property
    def resource_version(self) -> str:
        return self.decoded.metadata.resource_version


class _RawEvent(msgspec.Struct, gc=False):
    type: str = ""
    object: msgspec.Raw = msgspec.Raw(b"{}")


_read_raw_event = msgspec.json.Decoder(_RawEvent).decode
_read_status = msgspec.json.Decoder(Status).decode
_OBJECT_EVENTS = ("ADDED", "MODIFIED", "DELETED")


class WatchEventDecoder:
    """Decodes watch events of one kind."""

    def __init__(self, kind: type[Object]) -> None:
        self._kind = kind
        self._reader = ObjectReader()
        event = msgspec.defstruct("TypedEvent", [("type", str), ("object", kind)], gc=False)
        self._decode: Any = msgspec.json.Decoder(event).decode

    def decode(self, line: bytes) -> WatchEvent:
        """`ValueError` if this is no watch event: then the rest of the stream cannot be trusted either."""
        try:
            event = self._decode(line)
            if event.type in _OBJECT_EVENTS:
                decoded = _checked(event.object, len(line))
                if decoded.error is None or self._kind is not Pod:
                    return WatchEvent(event.type, decoded)
        except DECODE_ERRORS:
            pass
        return self._decode_parts(line)

    def _decode_parts(self, line: bytes) -> WatchEvent:
        try:
            raw = _read_raw_event(line)
            if raw.type == "ERROR":
                return WatchEvent(raw.type, DecodedObject(PartialMetadata(), None), _read_status(raw.object))
        except DECODE_ERRORS as error:
            raise ValueError(f"no event of a watch: {error}") from None
        if raw.type == "BOOKMARK":
            return WatchEvent(raw.type, DecodedObject(_metadata_of(raw.object), None))
        if raw.type not in _OBJECT_EVENTS:
            raise ValueError(f"no event of a watch: type {raw.type[:40]!r}")
        return WatchEvent(raw.type, _read_object(self._reader, self._kind, raw.object))


class LineSplitter:
    """Cuts a stream of bytes into lines, however it is chunked."""

    def __init__(self, max_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._rest: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The lines that this piece completes; `ValueError` if one grows too long."""
        head, newline, tail = piece.rpartition(b"\n")
        if newline:
            complete = b"".join((*self._rest, head)) if self._rest else head
            self._rest, self._size = [], 0
            yield from (line for line in complete.split(b"\n") if line and not line.isspace())
        if tail:
            self._rest.append(tail)
            self._size += len(tail)
            if self._size > self._max_bytes:
                raise ValueError(f"a line of more than {self._max_bytes} bytes")
