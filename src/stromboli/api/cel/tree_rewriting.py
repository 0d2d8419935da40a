"""Calls of functions that the library lacks, rewritten into what it has.

The library leaks the arguments of functions written in Python. So none is declared to it with an implementation: a call
becomes a look into a table, a variable of the expression, and whoever evaluates it fills the table (`FunctionTable`).
Comparisons of quantities and versions, and functions of lists become expressions.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stromboli.api.cel.extension_functions import FUNCTIONS, Function
from stromboli.api.cel.syntax_tree import CALL, COMPREHENSION, CONSTANT, IDENTIFIER, LIST, Node

if TYPE_CHECKING:
    from cel_expr_python import cel

TABLE = "@calls"
"""The variable with the results of calls, by key."""
MAX_TEXTS = 500
"""Texts of an object that are looked up in advance."""
MAX_TEXT = 64
"""Characters of such a text."""
_SEPARATOR = "\x1f"
_MISSING_KEY = re.compile(r"""Key not found in map : ((["']).*\2)""", re.DOTALL)
Spend = Callable[[int], None]
_BY_NAME = {(function.name, function.is_method, len(function.parameters)): function for function in FUNCTIONS}


def rewritten(node: Node) -> Node:
    """The tree with calls that the library can evaluate."""
    children = tuple(rewritten(child) for child in node.children)
    node = node if children == node.children else replace(node, children=children)
    if node.kind != CALL:
        return node
    if node.is_method and node.name in EXPRESSIONS:
        return EXPRESSIONS[node.name](*children)
    function = _BY_NAME.get((node.name, node.is_method, len(children)))
    return node if function is None else _lookup(function, children)


def _lookup(function: Function, arguments: tuple[Node, ...]) -> Node:
    key = _text(_prefix(function))
    for index, argument in enumerate(arguments):
        if index:
            key = _call("_+_", key, _text(_SEPARATOR))
        key = _call("_+_", key, _call("string", argument))
    return _call("_[_]", Node(IDENTIFIER, TABLE), key)


def _prefix(function: Function) -> str:
    return f"{'.' if function.is_method else ''}{function.name}/{len(function.parameters)}{_SEPARATOR}"


def _call(name: str, *arguments: Node) -> Node:
    return Node(CALL, name, arguments)


def _text(value: str) -> Node:
    return Node(CONSTANT, value=value)


def _number(value: int) -> Node:
    return Node(CONSTANT, value=value)


# -- functions that can be said in CEL


def _sort(values: Node) -> Node:
    return Node(CALL, "sort", (values,), is_method=True)


def _bind(name: str, value: Node, body: Node) -> Node:
    """A value that is evaluated once, however often the body names it: repeated, trees would grow exponentially."""
    variable = Node(IDENTIFIER, name)
    children = (Node(LIST), value, Node(CONSTANT, value=False), variable, body)
    return Node(COMPREHENSION, "@unused", children, accumulator=name)


_LEFT, _RIGHT, _VALUES = (Node(IDENTIFIER, name) for name in ("@left", "@right", "@values"))


def _compare(left: Node, right: Node) -> Node:
    otherwise = _call("_?_:_", _call("_>_", _LEFT, _RIGHT), _number(1), _number(0))
    compared = _call("_?_:_", _call("_<_", _LEFT, _RIGHT), _number(-1), otherwise)
    return _bind("@left", left, _bind("@right", right, compared))


def _includes(target: Node, item: Node) -> Node:
    """Whether a list has an item; what is no list is its own only item."""
    is_list = _call("_==_", _call("type", _LEFT), Node(IDENTIFIER, "list"))
    included = _call("_?_:_", is_list, _call("@in", _RIGHT, _LEFT), _call("_==_", _LEFT, _RIGHT))
    return _bind("@left", target, _bind("@right", item, included))


def _is_sorted(values: Node) -> Node:
    return _bind("@values", values, _call("_==_", _VALUES, _sort(_VALUES)))


def _largest(values: Node) -> Node:
    last = _call("_-_", _call("size", _VALUES), _number(1))
    return _bind("@values", values, _call("_[_]", _sort(_VALUES), last))


def _sum(values: Node) -> Node:
    """The first value and all others added to it, so that the type is theirs; of none, 0."""
    others = Node(CALL, "slice", (_VALUES, _number(1), _call("size", _VALUES)), is_method=True)
    total, item = Node(IDENTIFIER, "@total"), Node(IDENTIFIER, "@item")
    step = _if_number(item, _call("_+_", total, item))
    first = _call("_[_]", _VALUES, _number(0))
    loop = Node(
        COMPREHENSION,
        "@item",
        (others, _if_number(first, first), Node(CONSTANT, value=True), step, total),
        accumulator="@total",
    )
    is_empty = _call("_==_", _call("size", _VALUES), _number(0))
    return _bind("@values", values, _call("_?_:_", is_empty, _number(0), loop))


def _if_number(value: Node, result: Node) -> Node:
    """The result, or an error if the value cannot be subtracted: sums of texts and lists would grow without bound."""
    return _call("_[_]", Node(LIST, children=(_call("_-_", value, value), result)), _number(1))


EXPRESSIONS: dict[str, Callable[..., Node]] = {
    "isGreaterThan": lambda left, right: _call("_>_", left, right),
    "isLessThan": lambda left, right: _call("_<_", left, right),
    "compareTo": _compare,
    "includes": _includes,
    "isSorted": _is_sorted,
    "min": lambda values: _call("_[_]", _sort(values), _number(0)),
    "max": _largest,
    "sum": _sum,
}
"""Methods by name, for their target and arguments."""
_SIGNATURES = {
    "isGreaterThan": ("bool", ("dyn", "dyn")),
    "isLessThan": ("bool", ("dyn", "dyn")),
    "compareTo": ("int", ("dyn", "dyn")),
    "includes": ("bool", ("dyn", "dyn")),
    "isSorted": ("bool", ("dyn",)),
    "min": ("dyn", ("dyn",)),
    "max": ("dyn", ("dyn",)),
    "sum": ("dyn", ("dyn",)),
}


def declarations() -> list[cel.FunctionDecl]:
    """All these functions, for the type checker."""
    from cel_expr_python import cel

    types = {"bool": cel.Type.BOOL, "int": cel.Type.INT, "string": cel.Type.STRING, "dyn": cel.Type.DYN}
    methods = [Function(name, rewritten, *signature, True) for name, signature in _SIGNATURES.items()]
    overloads: dict[str, list[cel.Overload]] = {}
    for function in (*FUNCTIONS, *methods):
        parameters = [types[parameter] for parameter in function.parameters]
        overloads.setdefault(function.name, []).append(
            cel.Overload(_prefix(function), types[function.result], parameters, function.is_method)
        )
    return [cel.FunctionDecl(name, listed) for name, listed in overloads.items()]


# -- what is looked up


class FunctionTable:
    """The results of calls, for the evaluation of an expression."""

    def __init__(self, tree: Node) -> None:
        constants = [node.value for node in tree if node.kind == CONSTANT and isinstance(node.value, str)]
        prefixes = {text for text in constants if text.endswith(_SEPARATOR) and text != _SEPARATOR}
        self._functions = {
            _prefix(function): function for function in FUNCTIONS if _prefix(function) in prefixes
        }
        self._constants = [text for text in constants if _SEPARATOR not in text]

    @property
    def is_needed(self) -> bool:
        return bool(self._functions)

    def results(self, values: Any, spend: Spend) -> dict[str, Any]:
        """What is known in advance: calls for the texts of the expression and for short ones of the values."""
        known: dict[str, Any] = {}
        functions = [item for item in self._functions.items() if item[1].reads_any_text]
        texts = {*self._constants, *_texts(values)} if functions else set()
        for prefix, function in functions:
            for text in texts:
                spend(function.steps(text))
                try:
                    known[prefix + text] = function.implementation(text)
                except ValueError:
                    continue
        return known

    def call(self, message: str, spend: Spend) -> tuple[str, Any] | None:
        """The key and the result of the call that an error is about, if it is one; ValueError if it has no result."""
        missing = _MISSING_KEY.search(message)
        if missing is None:
            return None
        key = str(ast.literal_eval(missing[1]))
        name, *arguments = key.split(_SEPARATOR)
        function = self._functions.get(name + _SEPARATOR)
        if function is None:
            return None
        if len(arguments) != len(function.parameters):
            raise ValueError("a text with the control character U+001F cannot be evaluated")
        spend(function.steps(*arguments))
        return key, function.implementation(*arguments)


def _texts(value: Any) -> set[str]:
    found: set[str] = set()
    for text in _all_texts(value):
        if len(text) <= MAX_TEXT:
            found.add(text)
            if len(found) >= MAX_TEXTS:
                break
    return found


def _all_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _all_texts(item)
