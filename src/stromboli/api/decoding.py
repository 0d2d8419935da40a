"""Decodes one object from JSON into the type of its kind, and explains what does not fit."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

import msgspec

from stromboli.api.errors import BadObject
from stromboli.api.types.kinds import kind_of
from stromboli.api.types.meta import Object

Raw = bytes | msgspec.Raw
Kind = TypeVar("Kind", bound=Object)

DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises for bytes that are not what they should be."""

_LOCATION = re.compile(r"^(?P<problem>.*) - at `(?:key in )?\$\.?(?P<field>.*)`$", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`")
_GOT = re.compile(r"got (\w+)")
_STEP = re.compile(r"\[[0-9]+\]|[^.\[\]]+")
_MAX_VALUE_LENGTH = 60
_TYPES: dict[str, type] = {
    "null": type(None),
    "bool": bool,
    "int": int,
    "float": float,
    "str": str,
    "array": list,
    "object": dict,
}
_USER_MAPS = frozenset(
    {"labels", "annotations", "nodeSelector", "matchLabels", "selector", "parameters", "minTaskMember"}
    | {"requests", "limits", "overhead", "allocatable", "capacity", "allocatedResources", "minResources"}
    | {"capability", "deserved", "resource", "hard", "used"}
)
"""Maps with keys of the user's choice: a null value in them is a mistake, elsewhere it means absent."""


class TypeMeta(msgspec.Struct, rename="camel", gc=False):
    """Kind and API version of any object."""

    kind: str = ""
    api_version: str = ""

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]


class PartialObject(msgspec.Struct, gc=False):
    """What identifies an object, also where kind or metadata have the wrong types or the rest cannot be decoded."""

    kind: Any = None
    metadata: Any = None


_read_type_meta = msgspec.json.Decoder(TypeMeta).decode
_read_type_metas = msgspec.json.Decoder(TypeMeta).decode_lines
_split_lines = msgspec.json.Decoder(msgspec.Raw).decode_lines


def decode(source: Raw | Mapping[str, Any]) -> Object | None:
    """The object, or None if it is of a kind that the scheduler does not read; BadObject if it is malformed."""
    raw = msgspec.json.encode(source) if isinstance(source, Mapping) else source
    kind = kind_in(raw)[1]
    return None if kind is None else decode_as(kind, raw)


def kind_in(raw: Raw) -> tuple[str, type[Object] | None]:
    """The kind an object says it is, and its type if that is a kind we read."""
    type_meta = type_meta_in(raw)
    return type_meta.kind, kind_of(type_meta.api_version, type_meta.kind)


def type_meta_in(raw: Raw) -> TypeMeta:
    """The kind and the version that an object says it is of; BadObject if it names no kind."""
    try:
        type_meta = _read_type_meta(raw)
    except DECODE_ERRORS as error:
        raise _explained(error, raw) from None
    if not type_meta.kind:
        raise BadObject("kind", "missing, so this is no Kubernetes object", _subject(raw))
    return type_meta


def type_metas_in(raws: Sequence[Raw]) -> tuple[list[Raw], list[TypeMeta | None]]:
    """The same objects in memory of their own, and kind and version of each; None where it names no kind.

    Objects that were cut out of a large document hold on to all of it, these to one another alone.
    """
    joined = b"\n".join(raws)  # in one go: the memory of what is made on the way would not be given back
    copies: list[Raw] = [*_split_lines(joined)]
    try:
        return copies, [meta if meta.kind else None for meta in _read_type_metas(joined)]
    except DECODE_ERRORS:
        return copies, [_type_meta_or_none(raw) for raw in copies]


def _type_meta_or_none(raw: Raw) -> TypeMeta | None:
    try:
        return type_meta_in(raw)
    except BadObject:
        return None


def decode_as(kind: type[Kind], raw: Raw) -> Kind:
    """The object, known to be of that kind; BadObject if it is malformed."""
    decode_raw: Callable[[Raw], Kind] = _decoder(kind)
    try:
        return decode_raw(raw)
    except DECODE_ERRORS as error:
        if "got `null`" not in str(error):
            raise _explained(error, raw) from None
    try:
        return msgspec.convert(without_nulls(msgspec.json.decode(raw)), kind)
    except DECODE_ERRORS as error:
        raise _explained(error, raw) from None


@cache
def _decoder(kind: type[Kind]) -> Callable[[Raw], Kind]:
    return msgspec.json.Decoder(kind).decode


def explain(error: Exception, content: Any = None) -> tuple[str, str]:
    """The field and the problem of a decoding error."""
    if isinstance(error, RecursionError):
        return "", "nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return "", "not UTF-8 text"
    located = _LOCATION.match(str(error))
    field, problem = (located["field"], located["problem"]) if located else ("", str(error))
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


def without_nulls(value: Any, is_user_map: bool = False) -> Any:
    """An explicit null counts as absent, as for an API server, except in maps with the user's keys."""
    if isinstance(value, dict):
        present = {key: part for key, part in value.items() if part is not None or is_user_map}
        return {key: without_nulls(part, key in _USER_MAPS) for key, part in present.items()}
    if isinstance(value, list):
        return [without_nulls(part) for part in value]
    return value


def _with_value(field: str, problem: str, content: Any) -> str:
    """The problem with the value that is wrong, unless it is a large one or named already."""
    try:
        value = _value_at(field, content)
    except (LookupError, TypeError, ValueError):
        return problem
    if not problem.startswith("expected") or not isinstance(value, str | int | float):
        return problem
    text = msgspec.json.encode(value).decode()
    if len(text) > _MAX_VALUE_LENGTH:
        text = text[:_MAX_VALUE_LENGTH] + "..."
    return f"{problem} {text}" if _GOT.search(problem) else f"{problem}, got {text}"


def _with_key(field: str, problem: str, content: Any) -> str:
    """The field with the key of the bad map entry, where the error only says that there is one."""
    head, got = field.removesuffix("[...]"), _GOT.search(problem)
    if head == field or got is None:
        return field
    try:
        entries = _value_at(head, content).items()
        return next(f"{head}.{key}" for key, value in entries if type(value) is _TYPES[got[1]])
    except (LookupError, TypeError, ValueError, AttributeError, StopIteration):
        return field


def _value_at(field: str, content: Any) -> Any:
    for step in _STEP.findall(field):
        content = content[int(step[1:-1]) if step[0] == "[" else step]
    return content


def _content(raw: Raw) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (ValueError, RecursionError):
        return None


def _subject(raw: Raw) -> str:
    try:
        partial = msgspec.json.decode(raw, type=PartialObject)
    except (ValueError, RecursionError):
        return ""
    return subject_of(partial.kind, partial.metadata)


def subject_of(kind: Any, metadata: Any) -> str:
    """`Pod default/web`: kind and name of an object that may be broken, as far as they can be read."""
    path = [metadata.get("namespace"), metadata.get("name")] if isinstance(metadata, dict) else []
    parts = (kind, "/".join(part for part in path if isinstance(part, str) and part))
    return " ".join(part for part in parts if isinstance(part, str) and part)[:600]
