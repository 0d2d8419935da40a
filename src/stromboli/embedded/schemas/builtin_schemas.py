"""The kinds that the server brings along, described in `kinds/*.txt`."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec

from stromboli.embedded.schemas.schema import Schema
from stromboli.embedded.schemas.schema_notation import Notation


@cache
def notation() -> Notation:
    """All descriptions; a type is parsed when somebody first asks for it."""
    folder = files("stromboli.embedded.schemas") / "kinds"
    texts = sorted((file for file in folder.iterdir() if file.name.endswith(".txt")), key=_rank)
    return Notation(file.read_text(encoding="utf-8") for file in texts)


def _rank(file: object) -> tuple[bool, str]:
    """Types of general use come first: where two packages have a name, theirs is meant by everybody else."""
    name: str = getattr(file, "name", "")
    return name not in ("meta.txt", "pod.txt", "core.txt"), name


def schema(api_version: str, kind: str) -> Schema | None:
    """The description of a built-in kind, or None: `schema("batch/v1", "Job")`."""
    return notation().kind(api_version, kind)


@cache
def any_object() -> Schema:
    """An object of which only the metadata are known."""
    meta = notation().type("ObjectMeta")
    text = Schema(type="string")
    return Schema(type="object", open=True, properties={"apiVersion": text, "kind": text, "metadata": meta})


def with_metadata(schema: Schema) -> Schema:
    """What a CRD describes, with what all objects have: apiVersion, kind and metadata."""
    head = any_object().properties
    stated = schema.properties.get("metadata")
    meta = head["metadata"]
    if stated is not None and "name" in stated.properties:
        named = {**meta.properties, "name": stated.properties["name"]}
        meta = msgspec.structs.replace(meta, properties=named, name="")
    return msgspec.structs.replace(schema, properties={**schema.properties, **head, "metadata": meta})


def named(name: str) -> Schema:
    """A shared type by its whole name, such as io.k8s.api.core.v1.PodSpec."""
    package, _, short = name.rpartition(".")
    return notation().type(short, package)
