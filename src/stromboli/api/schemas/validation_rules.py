"""Validation rules of CRDs (`x-kubernetes-validations`): compiled once, and evaluated for objects.

As on a real API server: rules with `oldSelf` are transition rules, evaluated only where there is an old value; items of
lists have one if the list is a map by keys. A rule that does not hold for a value that an update leaves unchanged is no
problem. A rule that cannot be evaluated does not hold, and says why.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import msgspec

from stromboli.api.cel.expression import (
    CelError,
    CostBudget,
    CostExceeded,
    EvaluationError,
    Expression,
    ExpressionCache,
    Paths,
)
from stromboli.api.cel.values import ABSENT, Optional
from stromboli.api.schemas.rule_values import UnreadableValue, rule_value
from stromboli.api.schemas.schema import Rule, Schema
from stromboli.api.schemas.schema_problems import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    REQUIRED,
    Problem,
    format_value,
    invalid,
)
from stromboli.api.schemas.value_formats import json_equal

MAX_MESSAGE = 5 * 1024
"""Bytes of a message that a `messageExpression` makes."""

REASONS = {
    "FieldValueInvalid": (INVALID, "Invalid value"),
    "FieldValueForbidden": (FORBIDDEN, "Forbidden"),
    "FieldValueRequired": (REQUIRED, "Required value"),
    "FieldValueDuplicate": (DUPLICATE, "Duplicate value"),
}


@lru_cache(1)
def _cache() -> ExpressionCache:
    return ExpressionCache(("self", "oldSelf"))


def compiled(text: str, result: str = "bool") -> Expression:
    """An expression of a rule."""
    return _cache().compiled(text, result)


@dataclass(frozen=True, slots=True)
class RuleTree:
    """The rules of a schema and of those below it; schemas without rules are left out."""

    schema: Schema
    rules: tuple[Rule, ...]
    properties: dict[str, RuleTree]
    values: RuleTree | None
    items: RuleTree | None
    all_of: tuple[RuleTree, ...]


@lru_cache(1024)
def rule_tree(schema: Schema) -> RuleTree | None:
    """The rules of an object's schema; None if it has none."""
    return _tree(schema, schema)


def _tree(schema: Schema, structure: Schema) -> RuleTree | None:
    """The rules of a schema for values of a structure; below `allOf` these differ."""
    properties = {
        key: tree
        for key, inner in schema.properties.items()
        if key in structure.properties and (tree := _tree(inner, structure.properties[key]))
    }
    values = _tree_of(schema.additional_properties, structure.additional_properties)
    items = _tree_of(schema.items, structure.items)
    all_of = tuple(tree for part in schema.all_of if (tree := _tree(part, structure)))
    if not (schema.rules or properties or values or items or all_of):
        return None
    return RuleTree(structure, schema.rules, properties, values, items, all_of)


def _tree_of(schema: Schema | None, structure: Schema | None) -> RuleTree | None:
    return None if schema is None or structure is None else _tree(schema, structure)


def rule_problems(content: Any, old: Any, schema: Schema) -> Iterator[Problem]:
    """The rules of an object that do not hold; `old` is None for a create."""
    tree = rule_tree(schema)
    if tree is not None:
        yield from _Evaluation().check(tree, content, old, "", is_root=True)


class _Subject(NamedTuple):
    """A value that rules are about."""

    schema: Schema
    value: Any
    old: Any
    is_root: bool

    def variables(self, expression: Expression, optional_old: bool) -> dict[str, Any]:
        """The variables of an expression, with what it reads of them; with `optional_old`, `oldSelf` is optional."""
        values: dict[str, Any] = {}
        if "self" in expression.paths:
            values["self"] = self._read(self.value, expression.paths["self"])
        if "oldSelf" in expression.paths and self.old is not None:
            old = _in_order(self.old, self.value, self.schema)
            values["oldSelf"] = self._read(old, expression.paths["oldSelf"])
        if optional_old:
            values["oldSelf"] = Optional(True, values["oldSelf"]) if "oldSelf" in values else ABSENT
        return values

    def _read(self, value: Any, paths: Paths) -> Any:
        return rule_value(value, self.schema, paths, self.is_root)


class _Correlated:
    """A part of an object that has an old and a new value; whether they are equal is computed once."""

    def __init__(self, old: Any, new: Any) -> None:
        self._values = old, new

    @cached_property
    def is_unchanged(self) -> bool:
        return json_equal(*self._values)


class _Evaluation:
    """The evaluation of all rules of an object, which share a budget."""

    def __init__(self) -> None:
        self._budget = CostBudget()
        self._is_over = False

    def check(
        self,
        tree: RuleTree,
        value: Any,
        old: Any,
        path: str,
        correlated: _Correlated | None = None,
        is_root: bool = False,
    ) -> Iterator[Problem]:
        """`correlated` is the nearest part around that has an old and a new value."""
        if value is None or self._is_over:
            return
        if old is not None:
            correlated = _Correlated(old, value)
        yield from self._rules(tree, value, old, path, correlated, is_root)
        for part in tree.all_of:
            yield from self.check(part, value, old, path, correlated, is_root)
        if isinstance(value, dict):
            earlier = old if isinstance(old, dict) else {}
            for key, item in value.items():
                inner = tree.properties.get(key) or tree.values
                if inner is not None:
                    field = f"{path}[{key}]" if tree.values else f"{path}.{key}" if path else key
                    yield from self.check(inner, item, earlier.get(key), field, correlated)
        elif isinstance(value, list) and tree.items is not None:
            by_key = _items_by_key(old, tree.schema)
            for index, item in enumerate(value):
                earlier_item = by_key.get(_key(item, tree.schema)) if by_key else None
                yield from self.check(tree.items, item, earlier_item, f"{path}[{index}]", correlated)

    def _rules(
        self, tree: RuleTree, value: Any, old: Any, path: str, correlated: _Correlated | None, is_root: bool
    ) -> Iterator[Problem]:
        for rule in tree.rules:
            problem, is_final = self._rule(rule, _Subject(tree.schema, value, old, is_root), path)
            if problem is not None and (is_final or correlated is None or not correlated.is_unchanged):
                yield problem
            if self._is_over:
                return

    def _rule(self, rule: Rule, subject: _Subject, path: str) -> tuple[Problem | None, bool]:
        """What is wrong, if anything, and whether it is so for a value that did not change, too."""
        schema = subject.schema
        try:
            expression = compiled(rule.rule)
        except CelError as error:
            return _failed(schema, path, f"rule compile error: {error}"), True
        is_transition = expression.uses("oldSelf")
        if is_transition and subject.old is None and not rule.optional_old_self:
            return None, True
        try:
            variables = subject.variables(expression, bool(rule.optional_old_self))
            if expression.evaluate(variables, self._budget):
                return None, is_transition
        except CostExceeded as error:
            self._is_over = True
            why = (
                "validation failed due to running out of cost budget, no further validation rules will be run"
            )
            return _failed(schema, path, f"{why}: {error} (rule: {_description(rule)})"), True
        except (EvaluationError, UnreadableValue) as error:
            return _failed(schema, path, f"{error} evaluating rule: {_description(rule)}"), True
        return self._violation(rule, subject, path), is_transition

    def _violation(self, rule: Rule, subject: _Subject, path: str) -> Problem:
        detail = self._message(rule, subject) or rule.message.strip() or f"failed rule: {rule.rule.strip()}"
        reason, text = REASONS.get(rule.reason, REASONS["FieldValueInvalid"])
        field = f"{path}{rule.field_path}" if path else rule.field_path.removeprefix(".")
        if reason in (FORBIDDEN, REQUIRED):
            return Problem(field, reason, f"{text}: {detail}")
        shown = "" if subject.schema.type in ("object", "array") else f": {format_value(subject.value)}"
        return Problem(field, reason, f"{text}{shown}" + (f": {detail}" if reason == INVALID else ""))

    def _message(self, rule: Rule, subject: _Subject) -> str:
        """What the rule's `messageExpression` says; empty if it fails."""
        if not rule.message_expression:
            return ""
        try:
            expression = compiled(rule.message_expression, "string")
            variables = subject.variables(expression, bool(rule.optional_old_self))
            message = str(expression.evaluate(variables, self._budget)).strip()
        except (CelError, EvaluationError, UnreadableValue):
            return ""
        return "" if "\n" in message or len(message.encode()) > MAX_MESSAGE else message


def _in_order(old: Any, new: Any, schema: Schema) -> Any:
    """An old value with the items of its sets and maps in the order of the new one: rules do not see their order."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {key: _in_order(item, new.get(key), schema.child(key)) for key, item in old.items()}
    if not (isinstance(old, list) and isinstance(new, list)):
        return old
    if not schema.granular_list:
        return old
    rank = {_key(item, schema): index for index, item in enumerate(new)}
    new_items = {_key(item, schema): item for item in new}
    ordered = sorted(old, key=lambda item: rank.get(_key(item, schema), len(new)))
    return [_in_order(item, new_items.get(_key(item, schema)), schema.element) for item in ordered]


def _items_by_key(values: Any, schema: Schema) -> dict[str, Any]:
    if schema.list_type != "map" or not isinstance(values, list):
        return {}
    return {_key(item, schema): item for item in values}


def _key(item: Any, schema: Schema) -> str:
    """What identifies an item of a map by its keys, or of a set by its value."""
    if schema.list_map_keys and isinstance(item, dict):
        return _encoded([item.get(key) for key in schema.list_map_keys])
    return _encoded(item)


def _encoded(value: Any) -> str:
    return msgspec.json.encode(value, order="deterministic").decode()


def _failed(schema: Schema, path: str, detail: str) -> Problem:
    return invalid(path, schema.type, detail)


def _description(rule: Rule) -> str:
    return rule.message.strip() or rule.rule.strip()
