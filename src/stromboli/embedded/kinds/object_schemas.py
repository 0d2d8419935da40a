"""How an object of a kind must look: fields that exist, defaults, checks. The one place that asks for schemas."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.kinds.status_errors import Cause
from stromboli.embedded.schemas import builtin_schemas, kind_semantics, normalization
from stromboli.embedded.schemas.crd_schemas import from_crd
from stromboli.embedded.schemas.metadata_rules import label_problems, metadata_problems
from stromboli.embedded.schemas.normalization import ValidationResult
from stromboli.embedded.schemas.schema import Schema

Content = dict[str, Any]


@lru_cache(1024)
def schema(kind: Kind) -> Schema:
    if kind.definition is not None:
        return from_crd((kind.definition.get("schema") or {}).get("openAPIV3Schema"))
    return builtin_schemas.schema(kind.api_version, kind.kind) or builtin_schemas.any_object()


def shape(kind: Kind, content: Content) -> ValidationResult:
    """Take out, in place, what the kind does not have, set what was left open, and check the rest."""
    found = normalization.normalize(content, schema(kind))
    if kind.definition is None and not found.problems:
        kind_semantics.set_defaults(content, kind.kind)
    return found


def part_problems(api_version: str, kind: str, content: Content) -> list[Cause]:
    """What is wrong with what is sent to a part of an object, such as a Binding; labels that it brings along too."""
    described = builtin_schemas.schema(api_version, kind)
    if described is None:
        return []
    found = normalization.normalize(content, described).problems
    labels = (content.get("metadata") or {}).get("labels") if not found else None
    return [one.cause() for one in (*found, *label_problems(labels or {}, "metadata.labels"))]


def unknown(kind: Kind, content: Any) -> list[str]:
    """Paths of fields that the kind does not have; the object stays as it is."""
    return prune(kind, msgspec.json.decode(msgspec.json.encode(content)))


def prune(kind: Kind, content: Any) -> list[str]:
    """Take out, in place, what the kind does not have; the paths of that."""
    return normalization.prune(content, schema(kind))


def problems(kind: Kind, content: Content, old: Content | None) -> list[Cause]:
    """What is wrong with an object whose types are right."""
    if kind.definition is not None:
        found = metadata_problems(content["metadata"], kind.kind)
    else:
        found = kind_semantics.problems(content, kind.kind)
        if old is not None:
            found += kind_semantics.update_problems(old, content, kind.kind)
    return [one.cause() for one in found]
