"""The schemas of built-in kinds, from `kinds/*.txt`."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec

from stromboli.api.schemas.schema import Schema
from stromboli.api.schemas.schema_notation import Notation

_SHARED = ("core.txt", "meta.txt", "pod.txt")
"""Read first: elsewhere, a type name that several packages define is that of these files."""


@cache
def notation() -> Notation:
    """All schemas; a type is parsed when it is first used."""
    folder = files("stromboli.api.schemas") / "kinds"
    texts = {file.name: file for file in folder.iterdir() if file.name.endswith(".txt")}
    names = sorted(texts, key=lambda name: (name not in _SHARED, name))
    return Notation(texts[name].read_text(encoding="utf-8") for name in names)


def schema(api_version: str, kind: str) -> Schema | None:
    """The schema of a built-in kind, or None: `schema("batch/v1", "Job")`."""
    return notation().kind(api_version, kind)


@cache
def any_object() -> Schema:
    """The schema of an object of which only the metadata have one."""
    meta = notation().type("ObjectMeta")
    text = Schema(type="string")
    properties = {"apiVersion": text, "kind": text, "metadata": meta}
    return Schema(type="object", preserve_unknown_fields=True, properties=properties)


def with_metadata(schema: Schema) -> Schema:
    """The schema of a CRD, with the apiVersion, kind and metadata that all objects have."""
    common = any_object().properties
    declared = schema.properties.get("metadata")
    meta = common["metadata"]
    if declared is not None and "name" in declared.properties:
        properties = {**meta.properties, "name": declared.properties["name"]}
        meta = msgspec.structs.replace(meta, properties=properties, name="")
    return msgspec.structs.replace(schema, properties={**schema.properties, **common, "metadata": meta})


def named(name: str) -> Schema:
    """A shared type by its whole name, such as io.k8s.api.core.v1.PodSpec."""
    package, _, short = name.rpartition(".")
    return notation().type(short, package)
