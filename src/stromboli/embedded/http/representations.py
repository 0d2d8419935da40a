"""The form in which objects are shown: whole, as rows of a table, or their metadata alone, as `Accept` says."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import NamedTuple

import msgspec

from stromboli.embedded.http.list_pages import Page, encoded
from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.kinds.status_errors import Refusal
from stromboli.embedded.objects.kind_versions import spoken
from stromboli.embedded.store.records import Record
from stromboli.embedded.tables import (
    INCLUDE,
    TablePrinter,
    crd_printer,
    partial_list,
    partial_metadata,
    printer_for,
    table,
)

JSON = "application/json"
TABLE, METADATA = "Table", ("PartialObjectMetadata", "PartialObjectMetadataList")


class Form(NamedTuple):
    """`as_` is empty for whole objects, or Table, PartialObjectMetadata, PartialObjectMetadataList."""

    as_: str = ""
    version: str = "v1"
    include: str = INCLUDE[0]

    @property
    def api_version(self) -> str:
        return f"meta.k8s.io/{self.version}"


WHOLE = Form()


def accepted(accept: str, include: str = "") -> Form:
    """The first form in the list that we have."""
    if not accept or accept in (JSON, "*/*"):
        return WHOLE
    for choice in accept.split(","):
        media, *parameters = (part.strip() for part in choice.split(";"))
        if media not in (JSON, "*/*", "application/*"):
            continue
        given = dict(part.partition("=")[::2] for part in parameters)
        as_ = given.get("as", "")
        if as_ in ("", TABLE, *METADATA):
            version = given.get("v") if given.get("v") in ("v1", "v1beta1") else "v1"
            shown = include if include in INCLUDE else INCLUDE[0]
            return Form(as_, version or "v1", shown) if as_ else WHOLE
    raise Refusal(
        406, "only the following media types are accepted: application/json, application/json;stream=watch"
    )


@lru_cache(1024)
def _layout(kind: Kind) -> TablePrinter:
    if kind.definition is not None:
        return crd_printer(kind.definition.get("additionalPrinterColumns"))
    return printer_for(kind.group, kind.plural)


def listed(kind: Kind, found: Page, form: Form) -> bytes:
    """A list."""
    if form.as_ == TABLE:
        things = (record.object() for record in found.records)
        rows = table(_layout(kind), things, time.time(), form.include, found.meta, version=form.api_version)
        return msgspec.json.encode(rows)
    if form.as_ in METADATA:
        things = (record.object() for record in found.records)
        return msgspec.json.encode(partial_list(things, found.meta, form.api_version))
    return encoded(kind, found)


def shown(kind: Kind, record: Record, form: Form, heads: bool = True) -> bytes:
    """One object; a watch leaves out the heads of the columns after the first."""
    record = spoken(kind, record)
    if form.as_ == TABLE:
        thing = record.object()
        meta = {"resourceVersion": (thing.get("metadata") or {}).get("resourceVersion", "")}
        rows = table(_layout(kind), [thing], time.time(), form.include, meta, heads, form.api_version)
        return msgspec.json.encode(rows)
    if form.as_ in METADATA:
        return msgspec.json.encode(partial_metadata(record.object(), form.api_version))
    return record.data
