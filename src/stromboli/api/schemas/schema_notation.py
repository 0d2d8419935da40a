"""The notation of the schemas of built-in kinds, and its parser.

    in io.k8s.api.batch.v1 of batch/v1

    kind Job -- Runs pods to completion.
      spec: JobSpec -- What to run, and how often.

    type JobSpec
      parallelism: int32 >= 0 -- How many pods may run at a time.
      suspend: bool = false -- Whether to hold the job back.
      template!: PodTemplateSpec -- What the pods look like.

A kind has apiVersion, kind and metadata besides what is listed. After a field's name, `!` says that it is required.

Types: string, bool, int32, int64, number, time, microtime, bytes (base64), quantity, intstr (int or string), any,
object (one that preserves unknown fields), `A|B|C` (an enum), `[T]` (list), `{T}` (map), or the name of a type, looked
up in the same section first.

Then: `by a,b` (a list whose items are identified by these keys, for apply and for strategic merge), `keyed a,b` (for
apply alone), `merged by a` (for strategic merge alone), `set`, `merge` (a list of strings that strategic merge joins),
`retain` and `replace` (patch strategies), `atomic` (a map that changes as a whole), `>= 0`, `<= 9`. Last come
`= default` and `-- description`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from stromboli.api.schemas.schema import Schema

_BLOCK = re.compile(r"^(in|kind|type) (.*(?:\n  .*)*)", re.MULTILINE)
_FIELD = re.compile(r"  ([\w$-]+)(!?): (\S+)(.*)")
_MODIFIER = re.compile(r"(by|keyed|merged by|>=|<=) (\S+)|(set|merge|retain|replace|atomic)\b")

_SCALARS = {
    "any": Schema(preserve_unknown_fields=True),
    "bool": Schema(type="boolean"),
    "bytes": Schema(type="string", format="byte"),
    "int32": Schema(type="integer", format="int32"),
    "int64": Schema(type="integer", format="int64"),
    "intstr": Schema(type="string", format="int-or-string", int_or_string=True),
    "microtime": Schema(type="string", format="date-time"),
    "number": Schema(type="number", format="double"),
    "object": Schema(type="object", preserve_unknown_fields=True),
    "quantity": Schema(type="string", format="quantity"),
    "string": Schema(type="string"),
    "time": Schema(type="string", format="date-time"),
}


class Notation:
    """Schemas in the notation, split into blocks at once and parsed when they are used."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._blocks: dict[tuple[str, str], tuple[str, str]] = {}
        """The keyword (kind or type) and the text of each type, by package and name."""
        self._packages: dict[str, str] = {}
        """The package that defines a name first."""
        self.kinds: dict[tuple[str, str], str] = {}
        """The package of each kind, by version and name."""
        self._parsed: dict[tuple[str, str], Schema] = {}
        for text in texts:
            self._split(text)

    def _split(self, text: str) -> None:
        package = api_version = ""
        for keyword, rest in _BLOCK.findall(text):
            if keyword == "in":
                package, _, api_version = rest.partition(" of ")
                continue
            name = rest.split(maxsplit=1)[0]
            self._blocks[package, name] = keyword, rest
            self._packages.setdefault(name, package)
            if keyword == "kind":
                self.kinds[api_version, name] = package

    def kind(self, api_version: str, kind: str) -> Schema | None:
        """The schema of a kind, or None."""
        package = self.kinds.get((api_version, kind))
        return None if package is None else self.type(kind, package)

    def type(self, name: str, package: str = "") -> Schema:
        """The schema of a type, from this package if it has it."""
        if (package, name) not in self._blocks:
            package = self._packages[name]
        known = self._parsed.get((package, name))
        if known is None:
            known = self._parsed[package, name] = self._parse(package, name)
        return known

    def _parse(self, package: str, name: str) -> Schema:
        keyword, text = self._blocks[package, name]
        head, *lines = text.split("\n")
        title, _, description = head.partition(" -- ")
        properties = self._common_fields() if keyword == "kind" else {}
        required = []
        for line in lines:
            field, is_required, schema = self._field(package, line)
            properties[field] = schema
            if is_required:
                required.append(field)
        return Schema(
            name=f"{package}.{name}",
            type="object",
            description=description,
            properties=properties,
            required=tuple(required),
            map_type="atomic" if title.endswith(" atomic") else "",
        )

    def _common_fields(self) -> dict[str, Schema]:
        """The fields that every object has."""
        version = "Group and version of the kind, such as batch/v1."
        meta = "Name, labels and whatever else all objects have."
        return {
            "apiVersion": Schema(type="string", description=version),
            "kind": Schema(type="string", description="What sort of object this is."),
            "metadata": msgspec.structs.replace(self.type("ObjectMeta"), description=meta),
        }

    def _field(self, package: str, line: str) -> tuple[str, bool, Schema]:
        match = _FIELD.fullmatch(line)
        if match is None:
            raise ValueError(f"{package}: cannot read the line {line!r}")
        field, required_mark, kind, rest = match.groups()
        rest, _, description = rest.partition(" -- ")
        rest, _, default = rest.partition(" = ")
        changes: dict[str, Any] = {"description": description} if description else {}
        for keyword, argument, flag in _MODIFIER.findall(rest):
            changes |= _change(keyword or flag, argument, changes)
        base = self._type_schema(package, kind)
        if default:
            changes["default"] = _value(default, base)
        return field, bool(required_mark), msgspec.structs.replace(base, **changes) if changes else base

    def _type_schema(self, package: str, kind: str) -> Schema:
        if kind.startswith("["):
            return Schema(type="array", items=self._type_schema(package, kind[1:-1]), list_type="atomic")
        if kind.startswith("{"):
            return Schema(type="object", additional_properties=self._type_schema(package, kind[1:-1]))
        if "|" in kind:
            return Schema(type="string", enum=tuple(kind.split("|")))
        return _SCALARS.get(kind) or self.type(kind, package)


def _change(keyword: str, argument: str, before: dict[str, Any]) -> dict[str, Any]:
    strategies = before.get("patch_strategies", ())
    keys = tuple(argument.split(","))
    match keyword:
        case "by":
            merge = {"merge_key": keys[0], "patch_strategies": (*strategies, "merge")}
            return {"list_type": "map", "list_map_keys": keys, **merge}
        case "keyed":
            return {"list_type": "map", "list_map_keys": keys}
        case "merged by":
            return {"merge_key": keys[0], "patch_strategies": (*strategies, "merge")}
        case "set":
            return {"list_type": "set"}
        case "merge" | "replace":
            return {"patch_strategies": (*strategies, keyword)}
        case "retain":
            return {"patch_strategies": (*strategies, "retainKeys")}
        case "atomic":
            return {"map_type": "atomic"}
        case ">=":
            return {"minimum": int(argument)}
        case _:
            return {"maximum": int(argument)}


def _value(text: str, schema: Schema) -> Any:
    text = text.strip()
    if schema.type == "string" and not text.startswith('"') and not (schema.int_or_string and text.isdigit()):
        return text
    return msgspec.json.decode(text)
