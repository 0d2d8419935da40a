"""Schemas of CustomResourceDefinitions: parsed, and refused where they are not structural."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from stromboli.api.patterns import PatternError
from stromboli.api.schemas.builtin_schemas import any_object, with_metadata
from stromboli.api.schemas.rule_definitions import RuleChecks
from stromboli.api.schemas.schema import ANYTHING, KEYWORDS, Rule, Schema
from stromboli.api.schemas.schema_problems import (
    Problem,
    duplicate,
    forbidden,
    invalid,
    required,
    unsupported,
)

MAX_DEPTH = 64
MAX_NODES = 10_000
_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_LIST_TYPES = ("atomic", "map", "set")
_MAP_TYPES = ("atomic", "granular")
_KEY_WITHOUT_DEFAULT = (
    "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
)
_TRIVIAL = [{"type": "integer"}, {"type": "string"}]

_KEYWORDS = {**KEYWORDS, "int_or_string": "x-kubernetes-int-or-string"}
_STRINGS = ("description", "format", "pattern")
_NUMBERS = ("minimum", "maximum", "multiple_of")
_COUNTS = ("min_length", "max_length", "min_items", "max_items", "min_properties", "max_properties")
_EXCLUSIVE = ("exclusive_minimum", "exclusive_maximum")
_FLAGS = ("nullable", *_EXCLUSIVE, "preserve_unknown_fields", "int_or_string", "embedded_resource")


class SchemaError(ValueError):
    """A schema that cannot be used, with all its problems."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__(", ".join(str(problem) for problem in problems))
        self.problems = problems


def from_crd(
    raw: Any, path: str = "openAPIV3Schema", check_rules: bool = True, rule_checks: RuleChecks | None = None
) -> Schema:
    """The schema of a version of a CRD, with the metadata that all objects have; `raw` is None without a schema.

    Without `check_rules` patterns and validation rules are not compiled: a wrong one, which an earlier version of
    the server took, refuses each object.
    Versions of a CRD share `rule_checks`.
    """
    if raw is None:
        return any_object()
    parser = _Parser((rule_checks or RuleChecks()) if check_rules else None)
    schema = parser.node(raw, path, 0)
    if not parser.problems and schema.type != "object":
        parser.problems.append(invalid(f"{path}.type", schema.type, "must be object at the root"))
    if parser.problems:
        raise SchemaError(parser.problems)
    return with_metadata(schema)


class _Parser:
    """Parses schemas and collects their problems."""

    def __init__(self, rule_checks: RuleChecks | None) -> None:
        self.problems: list[Problem] = []
        self._nodes = 0
        self._rule_checks = rule_checks
        self._alternatives = 0
        """How many `anyOf`, `oneOf` and `not` are around."""
        self._uncorrelatable = ""
        """The path of the outermost list around whose items have no old values."""

    def node(self, raw: Any, path: str, depth: int, structural: bool = True) -> Schema:
        """A schema; without `structural` one below allOf, anyOf, oneOf or not, which only validates."""
        self._nodes += 1
        if depth > MAX_DEPTH or self._nodes > MAX_NODES:
            limit = f"at most {MAX_DEPTH} levels and {MAX_NODES} fields are allowed"
            raise SchemaError(
                [Problem(path, "FieldValueTooLong", f"Too long: the schema is too large: {limit}")]
            )
        if not isinstance(raw, dict):
            self._add(invalid(path, raw, "must be an object"))
            return ANYTHING
        fields = self._keywords(raw, path) | self._combined(raw, path, depth)
        if structural:
            self._check_structure(raw, path)
            fields |= self._extensions(raw, path)
        rules = self._rules(raw, path)
        fields |= self._nested(raw, path, depth, structural)
        if fields.get("embedded_resource"):
            common = any_object().properties
            fields["properties"] = {**common, **fields.get("properties", {})}
        schema = Schema(**fields, rules=rules)
        if structural and self._rule_checks is not None and not self.problems:
            for problem in self._rule_checks.problems(schema, path, self._uncorrelatable, depth == 0):
                self._add(problem)
        return schema

    def _add(self, problem: Problem) -> None:
        if len(self.problems) < 50:
            self.problems.append(problem)

    # -- keywords

    def _keywords(self, raw: dict[str, Any], path: str) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        if raw.get("type"):
            fields["type"] = self._one_of(raw["type"], _TYPES, f"{path}.type")
        self._take(fields, raw, _STRINGS, lambda value: isinstance(value, str), path, "a text")
        self._take(fields, raw, _FLAGS, lambda value: isinstance(value, bool), path, "true or false")
        self._take(fields, raw, _NUMBERS, _is_number, path, "a number")
        self._take(fields, raw, _COUNTS, _is_count, path, "a number of at least 0")
        if "pattern" in fields and self._rule_checks:
            try:
                self._rule_checks.patterns.add(fields["pattern"])
            except PatternError as error:
                detail = f"must be a valid regular expression, but isn't: {error}"
                self._add(invalid(f"{path}.pattern", fields.pop("pattern"), detail))
        if raw.get("enum") is not None:
            fields["enum"] = tuple(self._list(raw["enum"], f"{path}.enum"))
        if raw.get("default") is not None:
            fields["default"] = raw["default"]
        if raw.get("required"):
            names = self._list(raw["required"], f"{path}.required")
            fields["required"] = tuple(name for name in names if isinstance(name, str))
        return fields

    def _take(
        self,
        fields: dict[str, Any],
        raw: dict[str, Any],
        keywords: tuple[str, ...],
        fits: Callable[[Any], bool],
        path: str,
        expected: str,
    ) -> None:
        for field in keywords:
            name = _KEYWORDS.get(field, field)
            value = raw.get(name)
            if value is None:
                continue
            if fits(value):
                fields[field] = value
            else:
                self._add(invalid(f"{path}.{name}", value, f"must be {expected}"))

    def _extensions(self, raw: dict[str, Any], path: str) -> dict[str, Any]:
        """List and map types."""
        fields: dict[str, Any] = {}
        if raw.get("x-kubernetes-list-type") is not None:
            kind = self._one_of(raw["x-kubernetes-list-type"], _LIST_TYPES, f"{path}.x-kubernetes-list-type")
            fields |= {"list_type": kind, "unique_items": kind in ("map", "set")}
        elif raw.get("type") == "array":
            fields["list_type"] = "atomic"
        if raw.get("x-kubernetes-map-type") is not None:
            key_path = f"{path}.x-kubernetes-map-type"
            fields["map_type"] = self._one_of(raw["x-kubernetes-map-type"], _MAP_TYPES, key_path)
        if fields.get("list_type") == "map":
            fields["list_map_keys"] = self._keys(raw, path)
        return fields

    def _rules(self, raw: dict[str, Any], path: str) -> tuple[Rule, ...]:
        rules = raw.get("x-kubernetes-validations")
        if not rules:
            return ()
        path = f"{path}.x-kubernetes-validations"
        if self._alternatives:
            self._add(forbidden(path, "must be empty to be structural"))
        parsed = []
        for index, rule in enumerate(self._list(rules, path)):
            try:
                parsed.append(msgspec.convert(rule, Rule))
            except msgspec.ValidationError as error:
                self._add(invalid(f"{path}[{index}]", rule, str(error)))
        return tuple(parsed)

    def _keys(self, raw: dict[str, Any], path: str) -> tuple[str, ...]:
        key_path = f"{path}.x-kubernetes-list-map-keys"
        keys = raw.get("x-kubernetes-list-map-keys")
        if not keys:
            self._add(required(key_path, "must not be empty if x-kubernetes-list-type is map"))
            return ()
        names = [key for key in self._list(keys, key_path) if isinstance(key, str)]
        items = raw.get("items")
        items = items if isinstance(items, dict) else {}
        known = items.get("properties")
        for index, name in enumerate(names):
            if not isinstance(known, dict) or name not in known:
                self._add(invalid(f"{key_path}[{index}]", name, "must be the name of a field of the items"))
            elif name in names[:index]:
                self._add(duplicate(f"{key_path}[{index}]", name))
            elif name not in (items.get("required") or ()) and not _has_default(known[name]):
                self._add(required(f"{path}.items.properties[{name}].default", _KEY_WITHOUT_DEFAULT))
        return tuple(names)

    def _check_structure(self, raw: dict[str, Any], path: str) -> None:
        free = raw.get("x-kubernetes-preserve-unknown-fields") or raw.get("x-kubernetes-int-or-string")
        if not raw.get("type") and not free:
            self._add(required(f"{path}.type", "must not be empty for specified object fields"))
        if raw.get("$ref"):
            self._add(forbidden(f"{path}.$ref", "$ref is not supported"))
        if raw.get("type") == "array" and raw.get("items") is None:
            self._add(required(f"{path}.items", "must be specified"))
        if raw.get("properties") and raw.get("additionalProperties") not in (None, False):
            detail = "additionalProperties and properties are mutual exclusive"
            self._add(forbidden(f"{path}.additionalProperties", detail))
        if raw.get("uniqueItems"):
            detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
            self._add(forbidden(f"{path}.uniqueItems", detail))

    # -- nested schemas

    def _nested(self, raw: dict[str, Any], path: str, depth: int, structural: bool) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        properties = raw.get("properties")
        if isinstance(properties, dict):
            fields["properties"] = {
                key: self.node(schema, f"{path}.properties[{key}]", depth + 1, structural)
                for key, schema in properties.items()
            }
        elif properties is not None:
            self._add(invalid(f"{path}.properties", properties, "must be an object"))
        if raw.get("items") is not None:
            outside = self._uncorrelatable
            if raw.get("x-kubernetes-list-type") != "map":
                self._uncorrelatable = outside or path
            fields["items"] = self.node(raw["items"], f"{path}.items", depth + 1, structural)
            self._uncorrelatable = outside
        additional = raw.get("additionalProperties")
        if additional is True:
            fields["additional_properties"] = ANYTHING
        elif isinstance(additional, dict):
            fields["additional_properties"] = self.node(
                additional, f"{path}.additionalProperties", depth + 1, structural
            )
        return fields

    def _combined(self, raw: dict[str, Any], path: str, depth: int) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for name, field in (("allOf", "all_of"), ("anyOf", "any_of"), ("oneOf", "one_of")):
            schemas = raw.get(name)
            if schemas is None or (raw.get("x-kubernetes-int-or-string") and schemas == _TRIVIAL):
                continue
            self._alternatives += name != "allOf"
            fields[field] = tuple(
                self.node(schema, f"{path}.{name}[{index}]", depth + 1, structural=False)
                for index, schema in enumerate(self._list(schemas, f"{path}.{name}"))
            )
            self._alternatives -= name != "allOf"
        if raw.get("not") is not None:
            self._alternatives += 1
            fields["none_of"] = self.node(raw["not"], f"{path}.not", depth + 1, structural=False)
            self._alternatives -= 1
        return fields

    # -- values

    def _list(self, value: Any, path: str) -> list[Any]:
        if isinstance(value, list):
            return value
        self._add(invalid(path, value, "must be a list"))
        return []

    def _one_of(self, value: Any, known: tuple[str, ...], path: str) -> str:
        if value in known:
            return str(value)
        self._add(unsupported(path, value, known))
        return ""


def _has_default(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("default") is not None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0
