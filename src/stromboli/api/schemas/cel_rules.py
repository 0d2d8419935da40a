"""Validation rules of CRDs in CEL (`x-kubernetes-validations`), as far as they are simple.

Supported: `self` and its fields, `has()`, `size()`, `in`, comparisons, `&& || !` and `a ? b : c`, literals, lists,
`startsWith`, `endsWith`, `contains`, and `all` and `exists` over lists and maps. A rule with anything else, such as
`oldSelf`, is not evaluated and always holds. As in CEL, a rule whose evaluation fails (a missing field) does not hold.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from stromboli.api.schemas.value_formats import json_equal

Value = Any
Scope = Mapping[str, Value]
Term = Callable[[Scope], Value]

MAX_RULE = 4096
MAX_STEPS = 10_000
_STEPS = ""
"""The key of the remaining steps in a scope."""
_TOKEN = re.compile(
    r"""\s*(?:(?P<number>\d+\.\d+|\d+)|(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
    r"""|(?P<name>[A-Za-z_]\w*)|(?P<sign>&&|\|\||[=!<>]=|[-<>!?:.,()\[\]]))"""
)
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
_LITERALS: dict[str, Value] = {"true": True, "false": False, "null": None}
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": json_equal,
    "!=": lambda left, right: not json_equal(left, right),
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda left, right: isinstance(right, list | dict) and left in right,
}
_METHODS: dict[str, Callable[[Any, Any], bool]] = {
    "startsWith": str.startswith,
    "endsWith": str.endswith,
    "contains": lambda text, part: isinstance(text, str) and part in text,
}


class UnsupportedRule(ValueError):
    """A rule that this evaluator does not support."""


class _EvaluationError(Exception):
    """An expression without a value: a missing field, a comparison of a number with a string."""


def holds(rule: str, value: Value) -> bool:
    """Whether a rule holds for a value; an unsupported one does."""
    term = compiled(rule)
    if term is None:
        return True
    try:
        return term({"self": value, _STEPS: [MAX_STEPS]}) is True
    except (_EvaluationError, TypeError, RecursionError):
        return False


@lru_cache(maxsize=1024)
def compiled(rule: str) -> Term | None:
    """A rule as a function; None if it is unsupported."""
    try:
        if len(rule) > MAX_RULE:
            raise UnsupportedRule("a rule of such length")
        parser = _Parser(rule)
        term = parser.conditional()
        parser.end()
    except (UnsupportedRule, RecursionError):
        return None
    return term


class _Parser:
    """A recursive descent parser; each method parses one level of precedence."""

    def __init__(self, rule: str) -> None:
        self._tokens = list(_tokens(rule))
        self._position = 0
        self._names = ["self"]

    def _peek(self) -> str:
        return self._tokens[self._position] if self._position < len(self._tokens) else ""

    def _take(self, expected: str = "") -> str:
        token = self._peek()
        if not token or (expected and token != expected):
            raise UnsupportedRule(f"{expected or 'something'} expected, {token or 'the end'} found")
        self._position += 1
        return token

    def _skip(self, token: str) -> bool:
        matches = self._peek() == token
        self._position += matches
        return matches

    def end(self) -> None:
        if self._peek():
            raise UnsupportedRule(f"nothing expected, {self._peek()} found")

    def conditional(self) -> Term:
        condition = self._or()
        if not self._skip("?"):
            return condition
        yes = self.conditional()
        self._take(":")
        no = self.conditional()
        return lambda scope: yes(scope) if _truth(condition(scope)) else no(scope)

    def _or(self) -> Term:
        terms = [self._and()]
        while self._skip("||"):
            terms.append(self._and())
        return terms[0] if len(terms) == 1 else lambda scope: any(_truth(term(scope)) for term in terms)

    def _and(self) -> Term:
        terms = [self._comparison()]
        while self._skip("&&"):
            terms.append(self._comparison())
        return terms[0] if len(terms) == 1 else lambda scope: all(_truth(term(scope)) for term in terms)

    def _comparison(self) -> Term:
        term = self._unary()
        if self._peek() in _COMPARE:
            term = _applied(_COMPARE[self._take()], term, self._unary())
        return term

    def _unary(self) -> Term:
        if self._skip("!"):
            term = self._unary()
            return lambda scope: not _truth(term(scope))
        if self._skip("-"):
            return _constant(-_number(self._take()))
        return self._path()

    def _path(self) -> Term:
        term = self._atom()
        while self._peek() in (".", "["):
            if self._skip("["):
                key = self.conditional()
                self._take("]")
                term = _applied(_item, term, key)
                continue
            self._take(".")
            name = self._take()
            term = self._call(term, name) if self._peek() == "(" else _applied(_item, term, _constant(name))
        return term

    def _call(self, term: Term, name: str) -> Term:
        self._take("(")
        if name in ("all", "exists"):
            return self._macro(term, all if name == "all" else any)
        if name == "size":
            self._take(")")
            return lambda scope: _size(term(scope))
        if name not in _METHODS:
            raise UnsupportedRule(name)
        argument = self.conditional()
        self._take(")")
        return _applied(_METHODS[name], term, argument)

    def _macro(self, term: Term, combine: Callable[[Any], bool]) -> Term:
        name = self._take()
        self._take(",")
        self._names.append(name)
        condition = self.conditional()
        self._names.pop()
        self._take(")")

        def evaluated(scope: Scope) -> bool:
            values = term(scope)
            if not isinstance(values, list | dict) or len(values) > scope[_STEPS][0]:
                raise _EvaluationError
            scope[_STEPS][0] -= len(values)
            return combine(_truth(condition({**scope, name: item})) for item in values)

        return evaluated

    def _atom(self) -> Term:
        token = self._take()
        if token == "(":
            term = self.conditional()
            self._take(")")
            return term
        if token == "[":
            return self._list()
        if token[0] in "\"'":
            return _constant(_ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), token[1:-1]))
        if token[0].isdigit():
            return _constant(_number(token))
        if token in _LITERALS:
            return _constant(_LITERALS[token])
        if token in ("has", "size") and self._skip("("):
            term = self.conditional()
            self._take(")")
            return _has(term) if token == "has" else lambda scope: _size(term(scope))
        if token not in self._names:
            raise UnsupportedRule(token)
        return lambda scope: scope[token]

    def _list(self) -> Term:
        terms: list[Term] = []
        while not self._skip("]"):
            terms.append(self.conditional())
            if self._peek() != "]":
                self._take(",")
        return lambda scope: [term(scope) for term in terms]


def _tokens(rule: str) -> list[str]:
    tokens, position, text = [], 0, rule.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise UnsupportedRule(text[position : position + 20])
        tokens.append(match[match.lastgroup or 0])
        position = match.end()
    return tokens


# -- values


def _constant(value: Value) -> Term:
    return lambda _: value


def _applied(function: Callable[[Any, Any], Any], left: Term, right: Term) -> Term:
    return lambda scope: function(left(scope), right(scope))


def _has(term: Term) -> Term:
    def evaluated(scope: Scope) -> bool:
        try:
            term(scope)
        except _EvaluationError:
            return False
        return True

    return evaluated


def _item(value: Value, key: Value) -> Value:
    if isinstance(value, dict) and key in value:
        return value[key]
    if isinstance(value, list) and isinstance(key, int) and 0 <= key < len(value):
        return value[key]
    raise _EvaluationError


def _truth(value: Value) -> bool:
    if not isinstance(value, bool):
        raise _EvaluationError
    return value


def _number(token: str) -> int | float:
    if not token[0].isdigit() or len(token) > 20:
        raise UnsupportedRule(token)
    return float(token) if "." in token else int(token)


def _size(value: Value) -> int:
    if not isinstance(value, str | list | dict):
        raise _EvaluationError
    return len(value)
