"""The form in which objects are shown: whole, as rows of a table, or their metadata alone, as `Accept` says."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from stromboli.embedded.errors import Refusal
from stromboli.embedded.kinds import Kind
from stromboli.embedded.listing import Page, encoded
from stromboli.embedded.records import Record

JSON = "application/json"


class Form(NamedTuple):
    """`as_` is empty for whole objects, Table, PartialObjectMetadata or PartialObjectMetadataList."""

    as_: str = ""
    version: str = "v1"
    include: str = "Metadata"


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
        if as_ in ("", "Table", "PartialObjectMetadata", "PartialObjectMetadataList"):
            return Form(as_, given.get("v", "v1"), include or "Metadata") if as_ else WHOLE
    raise Refusal(
        406, "only the following media types are accepted: application/json, application/json;stream=watch"
    )


def listed(kind: Kind, found: Page, form: Form) -> bytes:
    return encoded(kind, found)


def shown(kind: Kind, record: Record, form: Form, heads: bool = True) -> bytes:
    """One object."""
    return record.data


def encode(content: Any) -> bytes:
    return msgspec.json.encode(content)
