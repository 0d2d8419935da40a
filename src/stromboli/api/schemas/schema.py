"""Structural schemas: the type of a value, its default, its validations, and how it merges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

Json = Any
"""A JSON value: dict, list, str, int, float, bool or None."""

NO_PROPERTIES: Mapping[str, Schema] = {}


class Rule(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A condition in CEL (`x-kubernetes-validations`)."""

    rule: str
    message: str = ""
    message_expression: str = ""
    reason: str = ""
    field_path: str = ""
    """Of the field that a problem is reported for, below the value; as in `.spec.replicas`."""
    optional_old_self: bool | None = None
    """Whether `oldSelf` is an optional value, and the rule evaluated without one too."""


class Schema(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """The schema of a value. Without a type any value is valid; maps then merge by key, and lists are atomic."""

    name: str = ""
    """Of a shared type, such as PodSpec; OpenAPI documents refer to it by this name."""
    type: str = ""
    """object, array, string, integer, number or boolean"""
    description: str = ""
    format: str = ""
    nullable: bool = False
    default: Json = msgspec.UNSET
    enum: tuple[Json, ...] = ()

    properties: Mapping[str, Schema] = NO_PROPERTIES
    required: tuple[str, ...] = ()
    additional_properties: Schema | None = None
    """The schema of the values of a map."""
    items: Schema | None = None

    pattern: str = ""
    minimum: float | None = None
    maximum: float | None = None
    exclusive_minimum: bool = False
    exclusive_maximum: bool = False
    multiple_of: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    unique_items: bool = False
    min_properties: int | None = None
    max_properties: int | None = None
    all_of: tuple[Schema, ...] = ()
    any_of: tuple[Schema, ...] = ()
    one_of: tuple[Schema, ...] = ()
    none_of: Schema | None = None
    rules: tuple[Rule, ...] = ()

    preserve_unknown_fields: bool = False
    """Whether fields without a schema are kept (x-kubernetes-preserve-unknown-fields)."""
    int_or_string: bool = False
    embedded_resource: bool = False
    """Whether the value is a whole object, with apiVersion, kind and metadata."""

    list_type: str = ""
    """atomic, set or map"""
    list_map_keys: tuple[str, ...] = ()
    """The keys that identify the items of a list of type `map`."""
    map_type: str = ""
    """granular or atomic"""
    merge_key: str = ""
    """The key that identifies items for a strategic merge patch."""
    patch_strategies: tuple[str, ...] = ()
    """Of a strategic merge patch: merge, replace, retainKeys."""

    def child(self, key: str) -> Schema:
        """The schema of a key of an object or a map."""
        return self.properties.get(key) or self.additional_properties or ANYTHING

    @property
    def element(self) -> Schema:
        """The schema of the items of a list."""
        return self.items or ANYTHING

    @property
    def granular_list(self) -> bool:
        """Whether the items of a list have owners of their own."""
        return self.list_type in ("set", "map")

    @property
    def granular_map(self) -> bool:
        """Whether the entries of a map have owners of their own."""
        return self.map_type != "atomic"


ANYTHING = Schema(preserve_unknown_fields=True)

KEYWORDS = {
    "format": "format",
    "pattern": "pattern",
    "minimum": "minimum",
    "maximum": "maximum",
    "multiple_of": "multipleOf",
    "min_length": "minLength",
    "max_length": "maxLength",
    "min_items": "minItems",
    "max_items": "maxItems",
    "min_properties": "minProperties",
    "max_properties": "maxProperties",
    "exclusive_minimum": "exclusiveMinimum",
    "exclusive_maximum": "exclusiveMaximum",
    "list_type": "x-kubernetes-list-type",
    "list_map_keys": "x-kubernetes-list-map-keys",
    "map_type": "x-kubernetes-map-type",
    "merge_key": "x-kubernetes-patch-merge-key",
    "preserve_unknown_fields": "x-kubernetes-preserve-unknown-fields",
    "embedded_resource": "x-kubernetes-embedded-resource",
}
"""OpenAPI keywords by field of `Schema`."""
