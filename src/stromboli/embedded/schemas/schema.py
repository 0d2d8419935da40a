"""One node of the description of an object: what may stand there, what is set if nothing does, and how it merges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

Json = Any
"""What JSON can say: dict, list, str, int, float, bool or None."""

NO_PROPERTIES: Mapping[str, Schema] = {}


class Rule(msgspec.Struct, frozen=True):
    """A condition in CEL (`x-kubernetes-validations`)."""

    rule: str
    message: str = ""


class Schema(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A node. Without a type anything may stand there; maps then merge key by key, and lists are replaced whole."""

    name: str = ""
    """Of a shared type, such as PodSpec; documents refer to it by this name."""
    type: str = ""
    """object, array, string, integer, number or boolean"""
    description: str = ""
    format: str = ""
    nullable: bool = False
    default: Json = msgspec.UNSET
    enum: tuple[Json, ...] = ()

    properties: Mapping[str, Schema] = NO_PROPERTIES
    required: tuple[str, ...] = ()
    additional: Schema | None = None
    """What the values of a map look like."""
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

    open: bool = False
    """Whether fields that nobody described are kept (x-kubernetes-preserve-unknown-fields)."""
    int_or_string: bool = False
    embedded: bool = False
    """Whether a whole object, with apiVersion, kind and metadata, stands here."""

    list_type: str = ""
    """atomic, set or map"""
    list_keys: tuple[str, ...] = ()
    """What tells the entries of a list of type `map` apart."""
    map_type: str = ""
    """granular or atomic"""
    merge_key: str = ""
    """What a strategic merge patch tells entries apart by."""
    strategies: tuple[str, ...] = ()
    """Of a strategic merge patch: merge, replace, retainKeys."""

    def child(self, key: str) -> Schema:
        """What stands under a key of an object or a map."""
        return self.properties.get(key) or self.additional or ANYTHING

    @property
    def element(self) -> Schema:
        """What stands in a list."""
        return self.items or ANYTHING

    @property
    def granular_list(self) -> bool:
        """Whether the entries of a list have owners of their own."""
        return self.list_type in ("set", "map")

    @property
    def separate(self) -> bool:
        """Whether the entries of a map have owners of their own."""
        return self.map_type != "atomic"


ANYTHING = Schema(open=True)
