"""Schemas by kind: pruning, defaults and validation of objects."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from stromboli.api.schemas import builtin_schemas, normalization
from stromboli.api.schemas.crd_schemas import from_crd
from stromboli.api.schemas.default_growth import MAX_GROWTH, exceeds_growth
from stromboli.api.schemas.metadata_rules import label_problems, metadata_problems
from stromboli.api.schemas.normalization import ValidationResult
from stromboli.api.schemas.schema import Schema
from stromboli.api.schemas.schema_problems import Problem, first_problems
from stromboli.api.schemas.validation_rules import rule_problems
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.kinds.kind import Content, Kind


@lru_cache(1024)
def schema(kind: Kind) -> Schema:
    if kind.definition is not None:
        return from_crd((kind.definition.get("schema") or {}).get("openAPIV3Schema"), check_rules=False)
    return builtin_schemas.schema(kind.api_version, kind.kind) or builtin_schemas.any_object()


def normalize(kind: Kind, content: Content) -> ValidationResult:
    """Prune unknown fields and set defaults, in place, and check the types of the rest."""
    if kind.definition is not None and exceeds_growth(content, schema(kind)):
        raise StatusError(
            413,
            f"the defaults of {kind.kind} would add more than {MAX_GROWTH} bytes to the object:"
            " send fewer list items, or make the defaults of its definition smaller",
        )
    result = normalization.normalize(content, schema(kind))
    if kind.definition is None and not result.problems:
        kind.strategy.set_defaults(content)
    return result


def subresource_problems(api_version: str, kind: str, content: Content) -> list[Problem]:
    """What is wrong with the body of a subresource, such as a Binding, and with the labels in it."""
    described = builtin_schemas.schema(api_version, kind)
    if described is None:
        return []
    problems = normalization.normalize(content, described).problems
    labels = (content.get("metadata") or {}).get("labels") if not problems else None
    return [*problems, *label_problems(labels or {}, "metadata.labels")]


def unknown_fields(kind: Kind, content: Any) -> list[str]:
    """Paths of fields that the schema does not have; the object is not changed."""
    return prune(kind, copy(content))


def copy(content: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(content))


def prune(kind: Kind, content: Any) -> list[str]:
    """Remove, in place, fields that the schema does not have; returns their paths."""
    return normalization.prune(content, schema(kind))


def problems(kind: Kind, content: Content, old: Content | None) -> list[Problem]:
    """What is wrong with an object whose types are valid."""
    if kind.definition is not None:
        return first_problems(
            metadata_problems(content["metadata"], kind.kind, builtin=False),
            rule_problems(content, old, schema(kind)),
        )
    problems = first_problems(
        metadata_problems(content.get("metadata") or {}, kind.kind), kind.strategy.problems(content)
    )
    if old is not None:
        problems += first_problems(kind.strategy.update_problems(old, content))
    return problems
