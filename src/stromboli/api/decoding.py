"""One object from its JSON: the kind picks the type, and what does not fit it is explained."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from stromboli.api.errors import BadObject
from stromboli.api.meta import Object
from stromboli.api.objects import KINDS, kind_of

Raw = bytes | msgspec.Raw

_PLACE = re.compile(r"^(?P<problem>.*) - at `(?P<key>key in )?\$\.?(?P<field>.*)`$", re.DOTALL)
_FREE_MAPS = frozenset(
    {"labels", "annotations", "nodeSelector", "matchLabels", "selector", "parameters", "minTaskMember"}
    | {"requests", "limits", "overhead", "allocatable", "capacity", "allocatedResources", "minResources"}
    | {"capability", "deserved", "resource", "hard", "used"}
)
"""Maps with keys of the user's own choice: in them a null value is a mistake, elsewhere it means absent."""


class Heading(msgspec.Struct, rename="camel", gc=False):
    """Just enough of an object to know what it is."""

    kind: str = ""
    api_version: str = ""


_read_heading = msgspec.json.Decoder(Heading).decode
_readers = {kind: msgspec.json.Decoder(kind).decode for _, kind in KINDS.values()}


def decode(source: Raw | Mapping[str, Any]) -> Object | None:
    """The object, or None if it is of a kind that the scheduler does not read; BadObject if it is malformed."""
    raw = msgspec.json.encode(source) if isinstance(source, Mapping) else source
    kind = kind_in(raw)[1]
    return None if kind is None else decode_as(kind, raw)


def kind_in(raw: Raw) -> tuple[str, type[Object] | None]:
    """The kind an object says it is, and its type if that is a kind we read."""
    try:
        heading = _read_heading(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _explained(error, raw) from None
    if not heading.kind:
        raise BadObject("kind", "missing, so this is no Kubernetes object", _subject(raw))
    return heading.kind, kind_of(heading.api_version, heading.kind)


def decode_as(kind: type[Object], raw: Raw) -> Object:
    """The object, known to be of that kind."""
    try:
        return _readers[kind](raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decode_without_nulls(kind, raw)


def _decode_without_nulls(kind: type[Object], raw: Raw) -> Object:
    """Second look: an explicit null counts as absent, as for an API server."""
    try:
        return msgspec.convert(_without_nulls(msgspec.json.decode(raw)), kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _explained(error, raw) from None


def _without_nulls(value: Any, free: bool = False) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_nulls(part, key in _FREE_MAPS)
            for key, part in value.items()
            if part is not None or free
        }
    if isinstance(value, list):
        return [_without_nulls(part) for part in value]
    return value


def _explained(error: Exception, raw: Raw) -> BadObject:
    if isinstance(error, RecursionError):
        return BadObject("", "nested too deeply", _subject(raw))
    if isinstance(error, UnicodeDecodeError):
        return BadObject("", "not UTF-8 text", _subject(raw))
    found = _PLACE.match(str(error))
    if found is None:
        return BadObject("", _plain(str(error)), _subject(raw))
    problem = _plain(found["problem"]) + (" as a key" if found["key"] else "")
    return BadObject(found["field"], problem, _subject(raw))


def _plain(text: str) -> str:
    text = text.replace("`", "")
    return text[:1].lower() + text[1:]


def _subject(raw: Raw) -> str:
    """What a broken object calls itself, as far as that can be read."""
    try:
        content = msgspec.json.decode(raw)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(content, dict):
        return ""
    meta = content.get("metadata")
    path = [meta.get("namespace"), meta.get("name")] if isinstance(meta, dict) else []
    named = "/".join(part for part in path if isinstance(part, str) and part)
    return " ".join(part for part in (content.get("kind"), named) if isinstance(part, str) and part)[:600]
