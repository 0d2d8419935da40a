"""One object from its JSON: the kind picks the type, and what does not fit it is explained."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from stromboli.api.errors import BadObject
from stromboli.api.types.kinds import GROUPS, kind_of
from stromboli.api.types.meta import Object

Raw = bytes | msgspec.Raw

_PLACE = re.compile(r"^(?P<problem>.*) - at `(?:key in )?\$\.?(?P<field>.*)`$", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`")
_GOT = re.compile(r"got (\w+)")
_STEP = re.compile(r"\[[0-9]+\]|[^.\[\]]+")
_LONGEST = 60
_TYPES: dict[str, type] = {
    "null": type(None),
    "bool": bool,
    "int": int,
    "float": float,
    "str": str,
    "array": list,
    "object": dict,
}
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


class Title(msgspec.Struct, gc=False):
    """What an object is called, even if neither kind nor metadata are what they should be."""

    kind: Any = None
    metadata: Any = None


_read_heading = msgspec.json.Decoder(Heading).decode
_readers: dict[type[Object], Callable[[Raw], Object]] = {
    kind: msgspec.json.Decoder(kind).decode for kinds in GROUPS.values() for kind in kinds
}


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
        return _reader(kind)(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if "got `null`" not in str(error):
            raise _explained(error, raw) from None
    try:
        return msgspec.convert(_without_nulls(msgspec.json.decode(raw)), kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _explained(error, raw) from None


def _reader(kind: type[Object]) -> Callable[[Raw], Object]:
    """Kinds that the scheduler does not read, but others do, are learnt at first sight."""
    found = _readers.get(kind)
    if found is None:
        found = _readers[kind] = msgspec.json.Decoder(kind).decode
    return found


def explain(error: Exception, content: Any = None) -> tuple[str, str]:
    """The field and the problem that a decoding error speaks of, in plain words."""
    if isinstance(error, RecursionError):
        return "", "nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return "", "not UTF-8 text"
    found = _PLACE.match(str(error))
    field, problem = (found["field"], found["problem"]) if found else ("", str(error))
    missing = _MISSING.fullmatch(problem)
    if missing is not None:
        return f"{field}.{missing[1]}".removeprefix("."), "is missing"
    problem = problem.replace("`", "")
    problem = problem[:1].lower() + problem[1:]
    return _with_key(field, problem, content), problem


def _explained(error: Exception, raw: Raw) -> BadObject:
    content = _content(raw)
    field, problem = explain(error, content)
    return BadObject(field, _with_value(field, problem, content), _subject(raw))


def _without_nulls(value: Any, free: bool = False) -> Any:
    """An explicit null counts as absent, as for an API server, except among the user's own keys."""
    if isinstance(value, dict):
        kept = {key: part for key, part in value.items() if part is not None or free}
        return {key: _without_nulls(part, key in _FREE_MAPS) for key, part in kept.items()}
    if isinstance(value, list):
        return [_without_nulls(part) for part in value]
    return value


def _with_value(field: str, problem: str, content: Any) -> str:
    """The problem with the value that is wrong, unless it is a large one or named already."""
    try:
        for step in _STEP.findall(field):
            content = content[int(step[1:-1]) if step[0] == "[" else step]
    except (LookupError, TypeError, ValueError):
        return problem
    if not problem.startswith("expected") or not isinstance(content, str | int | float):
        return problem
    value = msgspec.json.encode(content).decode()
    if len(value) > _LONGEST:
        value = value[:_LONGEST] + "..."
    return f"{problem} {value}" if _GOT.search(problem) else f"{problem}, got {value}"


def _with_key(field: str, problem: str, content: Any) -> str:
    """The field with the key of the map entry that is wrong, where the error only says that some entry is."""
    head, got = field.removesuffix("[...]"), _GOT.search(problem)
    if head == field or got is None:
        return field
    try:
        for step in _STEP.findall(head):
            content = content[int(step[1:-1]) if step[0] == "[" else step]
        return next(f"{head}.{key}" for key, value in content.items() if type(value) is _TYPES[got[1]])
    except (LookupError, TypeError, ValueError, AttributeError, StopIteration):
        return field


def _content(raw: Raw) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (ValueError, RecursionError):
        return None


def _subject(raw: Raw) -> str:
    """What a broken object calls itself, as far as that can be read."""
    try:
        title = msgspec.json.decode(raw, type=Title)
    except (ValueError, RecursionError):
        return ""
    meta = title.metadata if isinstance(title.metadata, dict) else {}
    path = "/".join(
        part for part in (meta.get("namespace"), meta.get("name")) if isinstance(part, str) and part
    )
    return " ".join(part for part in (title.kind, path) if isinstance(part, str) and part)[:600]
