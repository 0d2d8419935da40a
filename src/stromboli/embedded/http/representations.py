"""Content negotiation: whole objects, tables, or metadata alone, as `Accept` asks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import msgspec

from stromboli.embedded.api_status import StatusError
from stromboli.embedded.http.list_pages import Page
from stromboli.embedded.kinds.kind import Content, Kind
from stromboli.embedded.objects.kind_versions import to_served_version
from stromboli.embedded.store.records import Record
from stromboli.embedded.store.watch import encode_whole
from stromboli.embedded.store.watch_buffers import Encoder
from stromboli.embedded.tables.crd_printers import crd_printer
from stromboli.embedded.tables.table import INCLUDE, partial_list, partial_metadata, row, table
from stromboli.embedded.tables.table_printer import TablePrinter

JSON = "application/json"
TABLE, METADATA = "Table", ("PartialObjectMetadata", "PartialObjectMetadataList")


class Representation(NamedTuple):
    """`as_kind` is empty for whole objects, or Table, PartialObjectMetadata, PartialObjectMetadataList."""

    as_kind: str = ""
    version: str = "v1"
    include: str = INCLUDE[0]

    @property
    def api_version(self) -> str:
        return f"meta.k8s.io/{self.version}"


WHOLE = Representation()


def negotiate(accept: str, include: str = "") -> Representation:
    """The first representation in the `Accept` header that the server has."""
    if not accept or accept in (JSON, "*/*"):
        return WHOLE
    for choice in accept.split(","):
        media_type, *parameters = (parameter.strip() for parameter in choice.split(";"))
        if media_type not in (JSON, "*/*", "application/*"):
            continue
        values = dict(parameter.partition("=")[::2] for parameter in parameters)
        as_kind = values.get("as", "")
        if not as_kind:
            return WHOLE
        if as_kind in (TABLE, *METADATA):
            version = values["v"] if values.get("v") in ("v1", "v1beta1") else "v1"
            return Representation(as_kind, version, include if include in INCLUDE else INCLUDE[0])
    raise StatusError(
        406, "only the following media types are accepted: application/json, application/json;stream=watch"
    )


@lru_cache(1024)
def _layout(kind: Kind) -> TablePrinter:
    if kind.definition is not None:
        return crd_printer(kind.definition.get("additionalPrinterColumns"))
    return kind.strategy.printer


class ObjectEncoder(NamedTuple):
    """Encodes the objects of a kind in a representation, for watches."""

    kind: Kind
    representation: Representation

    def __call__(self, record: Record, first: bool) -> bytes:
        return encode_object(self.kind, record, self.representation, first)


def encoder_of(kind: Kind, representation: Representation) -> Encoder:
    if representation == WHOLE and not kind.storage_version:
        return encode_whole
    return ObjectEncoder(kind, representation)


def encode_object(kind: Kind, record: Record, representation: Representation, headers: bool = True) -> bytes:
    """One object; a watch sends column headers with its first event alone."""
    if representation.as_kind != TABLE:
        return _encode_item(kind, record, representation, 0.0)
    content = to_served_version(kind, record).object()
    meta = {"resourceVersion": (content.get("metadata") or {}).get("resourceVersion", "")}
    return _encode_table(kind, [content], meta, representation, headers)


def encode_list(kind: Kind, page: Page, representation: Representation) -> Iterator[bytes]:
    """A list in parts: its head, and each object when its turn comes; stored objects are not decoded for it."""
    if representation == WHOLE:
        head = {
            "kind": kind.list_kind_name,
            "apiVersion": kind.api_version,
            "metadata": page.meta,
            "items": [],
        }
        empty = msgspec.json.encode(head)
    elif representation.as_kind == TABLE:
        empty = _encode_table(kind, [], page.meta, representation)
    else:
        empty = msgspec.json.encode(partial_list([], page.meta, representation.api_version))
    yield empty.removesuffix(b"]}")
    now = time.time()
    for number, record in enumerate(page.records):
        if number:
            yield b","
        yield _encode_item(kind, record, representation, now)
    yield b"]}"


def _encode_item(kind: Kind, record: Record, representation: Representation, now: float) -> bytes:
    record = to_served_version(kind, record)
    if representation == WHOLE:
        return record.data
    content = record.object()
    if representation.as_kind == TABLE:
        return msgspec.json.encode(row(_layout(kind), content, now, representation.include))
    return msgspec.json.encode(partial_metadata(content, representation.api_version))


def _encode_table(
    kind: Kind, objects: list[Content], meta: Content, representation: Representation, headers: bool = True
) -> bytes:
    version, include = representation.api_version, representation.include
    return msgspec.json.encode(table(_layout(kind), objects, time.time(), include, meta, headers, version))
