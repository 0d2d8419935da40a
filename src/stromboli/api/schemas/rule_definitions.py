"""Validation rules as a CRD defines them: refused if they cannot be compiled or refer to fields that do not exist."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stromboli.api.cel.expression import CelError, Expression
from stromboli.api.cel.syntax import BIND, CALL, IDENTIFIER, MACRO, SELECT, Node
from stromboli.api.patterns import PatternError, PatternSet
from stromboli.api.schemas.rule_values import identifiers, is_visible
from stromboli.api.schemas.schema import Rule, Schema
from stromboli.api.schemas.schema_problems import INVALID, Problem, forbidden, invalid, required, unsupported
from stromboli.api.schemas.validation_rules import REASONS, compiled

MAX_RULES = 5000
"""Rules of a CRD, all fields and versions together."""
MAX_RULE_BYTES = 16 * 1024
"""Bytes of the different rules of a CRD together: each is compiled, and counts for `_BYTES_OF_RULE` more."""
_BYTES_OF_RULE = 20

_STEP = re.compile(r"\.([^.\[\]]+)|\['([^']+)'\]")
_ROOT_METADATA = Schema(
    type="object", properties={"name": Schema(type="string"), "generateName": Schema(type="string")}
)


class RuleChecks:
    """The checks of all rules of a definition."""

    def __init__(self) -> None:
        self.patterns = PatternSet()
        self._texts: set[str] = set()
        self._bytes = 0
        self._rules = 0

    def problems(self, schema: Schema, path: str, uncorrelatable: str, is_root: bool) -> Iterator[Problem]:
        """What is wrong with the rules of a schema. Items of the list at `uncorrelatable` have no old values."""
        visible = _with_metadata(schema) if is_root or schema.embedded_resource else schema
        yield from self._problems(schema.rules, visible, path, uncorrelatable)
        for number, part in enumerate(schema.all_of):
            yield from self._problems(part.rules, visible, f"{path}.allOf[{number}]", uncorrelatable)

    def _problems(
        self, rules: tuple[Rule, ...], schema: Schema, path: str, uncorrelatable: str
    ) -> Iterator[Problem]:
        for index, rule in enumerate(rules):
            rule_path = f"{path}.x-kubernetes-validations[{index}]"
            if excess := self._excess(rule):
                yield forbidden(rule_path, excess)
                return
            shape = list(_shape_problems(rule, schema, rule_path))
            yield from shape or _expression_problems(rule, schema, rule_path, uncorrelatable, self.patterns)

    def _excess(self, rule: Rule) -> str:
        """Count a rule, and tell what is too much."""
        self._rules += 1
        for text in {rule.rule, rule.message_expression} - self._texts:
            self._texts.add(text)
            self._bytes += len(text.encode(errors="replace")) + _BYTES_OF_RULE
        if self._rules > MAX_RULES:
            return f"a definition may have at most {MAX_RULES} rules"
        if self._bytes > MAX_RULE_BYTES:
            return (
                f"the different rules of a definition may have at most {MAX_RULE_BYTES} bytes together, "
                f"each counted with {_BYTES_OF_RULE} more"
            )
        return self.patterns.excess


def _with_metadata(schema: Schema) -> Schema:
    text = Schema(type="string")
    always = {"apiVersion": text, "kind": text, "metadata": _ROOT_METADATA}
    return Schema(type="object", properties={**schema.properties, **always})


def _shape_problems(rule: Rule, schema: Schema, path: str) -> Iterator[Problem]:
    message = rule.message.strip()
    if not rule.rule.strip():
        yield required(f"{path}.rule", "rule is not specified")
    elif rule.message and not message:
        yield invalid(f"{path}.message", rule.message, "must be non-empty if specified")
    elif _has_lines(message):
        yield invalid(f"{path}.message", rule.message, "must not contain line breaks")
    elif _has_lines(rule.rule.strip()) and not message:
        yield required(f"{path}.message", "message must be specified if rule contains line breaks")
    if rule.message_expression and not rule.message_expression.strip():
        detail = "messageExpression must be non-empty if specified"
        yield required(f"{path}.messageExpression", detail)
    if rule.reason and rule.reason not in REASONS:
        yield unsupported(f"{path}.reason", rule.reason, tuple(sorted(REASONS)))
    if rule.field_path and not _is_path(rule.field_path, schema):
        yield invalid(f"{path}.fieldPath", rule.field_path, "must be a valid path")


def _has_lines(text: str) -> bool:
    return "\n" in text or "\r" in text


def _is_path(text: str, schema: Schema) -> bool:
    """Whether this is a path of fields, as `.spec.list['key']`, that exist."""
    position = 0
    while position < len(text):
        step = _STEP.match(text, position)
        if step is None:
            return False
        inner = (
            schema.properties.get(step[1] or step[2]) if schema.properties else schema.additional_properties
        )
        if inner is None:
            return False
        schema, position = inner, step.end()
    return True


def _expression_problems(
    rule: Rule, schema: Schema, path: str, uncorrelatable: str, patterns: PatternSet
) -> Iterator[Problem]:
    try:
        expression = _checked(rule.rule, "bool", schema, patterns)
    except CelError as error:
        yield _uncompiled(f"{path}.rule", rule.rule, error)
        return
    try:
        if rule.message_expression:
            _checked(rule.message_expression, "string", schema, patterns)
    except CelError as error:
        yield _uncompiled(f"{path}.messageExpression", rule.message_expression, error)
    yield from _old_problems(rule, expression, path, uncorrelatable)


def _checked(text: str, result: str, schema: Schema, patterns: PatternSet) -> Expression:
    expression = compiled(text, result)
    _check_fields(expression.tree, schema)
    try:
        for pattern in expression.patterns:
            patterns.add(pattern)
    except PatternError as error:
        raise CelError(str(error)) from None
    return expression


def _uncompiled(path: str, text: str, error: CelError) -> Problem:
    shown = text if len(text) <= 200 else f"{text[:200]}..."
    return Problem(path, INVALID, f'Invalid value: "{shown}": compilation failed: {error}')


def _old_problems(rule: Rule, expression: Expression, path: str, uncorrelatable: str) -> Iterator[Problem]:
    if not expression.uses("oldSelf"):
        if rule.optional_old_self is not None:
            detail = "may not be set if oldSelf is not used in rule"
            yield invalid(f"{path}.optionalOldSelf", rule.optional_old_self, detail)
    elif uncorrelatable:
        detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelatable}"
        yield invalid(f"{path}.rule", rule.rule, detail)


def _check_fields(tree: Node, schema: Schema) -> None:
    """Fields that are selected must exist: a misspelt one would be missing in all objects."""
    _schema_of(tree, {"self": schema, "oldSelf": schema})


def _schema_of(node: Node, scope: dict[str, Schema | None]) -> Schema | None:
    """The schema of what a node evaluates to, as far as it is known."""
    if node.kind == IDENTIFIER:
        return scope.get(node.name)
    if node.kind == MACRO:
        return _macro(node, scope)
    if node.kind == BIND:
        value, body = node.children
        return _schema_of(body, {**scope, node.name: _schema_of(value, scope)})
    schemas = [_schema_of(child, scope) for child in node.children]
    if node.kind == SELECT:
        return _field(schemas[0], node.name)
    if node.kind == CALL and node.name == "_?._":
        return _field(schemas[0], str(node.children[1].value))
    if node.kind == CALL and node.name in ("_[_]", "_[?_]"):
        return _element(schemas[0])
    if node.kind == CALL and node.name in ("value", "orValue"):
        return schemas[0]
    return None


def _macro(node: Node, scope: dict[str, Schema | None]) -> Schema | None:
    """The variables of a macro are the elements of a list, or keys and values."""
    target, *bodies = node.children
    schema = _schema_of(target, scope)
    is_list = schema is not None and schema.type == "array"
    if len(node.variables) == 2:
        inner = {node.variables[0]: None, node.variables[1]: _element(schema)}
    else:
        inner = {node.variables[0]: _element(schema) if is_list else None}
    for body in bodies:
        _schema_of(body, {**scope, **inner})
    return schema if node.name in ("filter", "sortBy") and is_list else None


def _field(schema: Schema | None, name: str) -> Schema | None:
    if schema is None or schema.int_or_string or schema.type != "object":
        return None
    if schema.additional_properties is not None:
        return schema.additional_properties
    for key, inner in schema.properties.items():
        if name in identifiers(key) and is_visible(inner):
            return _with_metadata(inner) if inner.embedded_resource else inner
    raise CelError(f"undefined field '{name}'")


def _element(schema: Schema | None) -> Schema | None:
    if schema is None:
        return None
    inner = schema.items if schema.type == "array" else schema.additional_properties
    return _with_metadata(inner) if inner is not None and inner.embedded_resource else inner
