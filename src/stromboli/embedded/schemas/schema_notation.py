"""The notation in which built-in kinds are described, and how it becomes schemas.

    in io.k8s.api.batch.v1 of batch/v1

    kind Job -- Runs pods to completion.
      spec: JobSpec -- What to run, and how often.

    type JobSpec
      parallelism: int32 >= 0 -- How many pods may run at a time.
      suspend: bool = false -- Whether to hold the job back.
      template!: PodTemplateSpec -- What the pods look like.

A kind has apiVersion, kind and metadata besides what is listed. After a field's name, `!` says that it must be given.

Types: string, bool, int32, int64, number, time, microtime, bytes (base64), quantity, intstr (a number or a text), any,
object (an open one), `A|B|C` (one of these texts), `[T]` (list), `{T}` (map), or the name of a type, looked for in the
same section first.

Then: `by a,b` (a list whose entries are told apart by these keys, by apply and by strategic merge alike), `keyed a,b`
(by apply alone), `merged by a` (by strategic merge alone), `set`, `merge` (a list of texts that strategic merge joins),
`retain` and `replace` (strategies of strategic merge), `atomic` (a map that changes as a whole), `>= 0`, `<= 9`. Last
come `= default` and `-- description`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from stromboli.embedded.schemas.schema import Schema

_BLOCK = re.compile(r"^(in|kind|type) (.*(?:\n  .*)*)", re.MULTILINE)
_FIELD = re.compile(r"  ([\w$-]+)(!?): (\S+)(.*)")
_WORD = re.compile(r"(by|keyed|merged by|>=|<=) (\S+)|(set|merge|retain|replace|atomic)\b")

_SCALARS = {
    "any": Schema(open=True),
    "bool": Schema(type="boolean"),
    "bytes": Schema(type="string", format="byte"),
    "int32": Schema(type="integer", format="int32"),
    "int64": Schema(type="integer", format="int64"),
    "intstr": Schema(type="string", format="int-or-string", int_or_string=True),
    "microtime": Schema(type="string", format="date-time"),
    "number": Schema(type="number", format="double"),
    "object": Schema(type="object", open=True),
    "quantity": Schema(type="string", format="quantity"),
    "string": Schema(type="string"),
    "time": Schema(type="string", format="date-time"),
}


class Section(msgspec.Struct, frozen=True):
    """Types that belong together: the package of their names, and the version that serves their kinds."""

    package: str
    api_version: str


class Notation:
    """Descriptions, cut into blocks at once and read when they are asked for."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._blocks: dict[tuple[str, str], str] = {}
        """The text of each type, by package and name."""
        self._packages: dict[str, str] = {}
        """Where a name was defined first."""
        self.kinds: dict[tuple[str, str], str] = {}
        """The package of each kind, by version and name."""
        self._whole: set[tuple[str, str]] = set()
        """Types that are kinds."""
        self._read: dict[tuple[str, str], Schema] = {}
        for text in texts:
            self._cut(text)

    def _cut(self, text: str) -> None:
        section = Section("", "")
        for word, rest in _BLOCK.findall(text):
            if word == "in":
                package, _, version = rest.partition(" of ")
                section = Section(package, version)
                continue
            name = rest.split(maxsplit=1)[0]
            self._blocks[section.package, name] = rest
            self._packages.setdefault(name, section.package)
            if word == "kind":
                self.kinds[section.api_version, name] = section.package
                self._whole.add((section.package, name))

    def kind(self, api_version: str, kind: str) -> Schema | None:
        """A whole object, or None for a kind that is not described."""
        package = self.kinds.get((api_version, kind))
        return None if package is None else self.type(kind, package)

    def type(self, name: str, package: str = "") -> Schema:
        """A type by its name, from this package if it has it."""
        if (package, name) not in self._blocks:
            package = self._packages[name]
        known = self._read.get((package, name))
        if known is None:
            known = self._read[package, name] = self._parse(package, name)
        return known

    def _parse(self, package: str, name: str) -> Schema:
        head, *lines = self._blocks[package, name].split("\n")
        title, _, description = head.partition(" -- ")
        properties: dict[str, Schema] = {}
        required = []
        if (package, name) in self._whole:
            properties = dict(self._head())
        for line in lines:
            field, must, schema = self._field(package, line)
            properties[field] = schema
            if must:
                required.append(field)
        return Schema(
            name=f"{package}.{name}",
            type="object",
            description=description,
            properties=properties,
            required=tuple(required),
            map_type="atomic" if title.endswith(" atomic") else "",
        )

    def _head(self) -> Iterator[tuple[str, Schema]]:
        """What every object begins with."""
        yield (
            "apiVersion",
            Schema(type="string", description="Group and version of the kind, such as batch/v1."),
        )
        yield "kind", Schema(type="string", description="What sort of object this is.")
        meta = self.type("ObjectMeta")
        yield (
            "metadata",
            msgspec.structs.replace(meta, description="Name, labels and whatever else all objects have."),
        )

    def _field(self, package: str, line: str) -> tuple[str, bool, Schema]:
        match = _FIELD.fullmatch(line)
        if match is None:
            raise ValueError(f"{package}: cannot read the line {line!r}")
        field, must, kind, rest = match.groups()
        rest, _, description = rest.partition(" -- ")
        rest, _, default = rest.partition(" = ")
        changes: dict[str, Any] = {"description": description} if description else {}
        for word, argument, flag in _WORD.findall(rest):
            changes |= _change(word or flag, argument, changes)
        base = self._of(package, kind)
        if default:
            changes["default"] = _value(default, base)
        return field, bool(must), msgspec.structs.replace(base, **changes) if changes else base

    def _of(self, package: str, kind: str) -> Schema:
        if kind.startswith("["):
            return Schema(type="array", items=self._of(package, kind[1:-1]), list_type="atomic")
        if kind.startswith("{"):
            return Schema(type="object", additional=self._of(package, kind[1:-1]))
        if "|" in kind:
            return Schema(type="string", enum=tuple(kind.split("|")))
        return _SCALARS.get(kind) or self.type(kind, package)


def _change(word: str, argument: str, before: dict[str, Any]) -> dict[str, Any]:
    strategies = before.get("strategies", ())
    keys = tuple(argument.split(","))
    match word:
        case "by":
            merge = {"merge_key": keys[0], "strategies": (*strategies, "merge")}
            return {"list_type": "map", "list_keys": keys, **merge}
        case "keyed":
            return {"list_type": "map", "list_keys": keys}
        case "merged by":
            return {"merge_key": keys[0], "strategies": (*strategies, "merge")}
        case "set":
            return {"list_type": "set"}
        case "merge" | "replace":
            return {"strategies": (*strategies, word)}
        case "retain":
            return {"strategies": (*strategies, "retainKeys")}
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
