"""Expressions over the numbers of a node, compiled into one Python function: for the few nodes that changed.

NumPy takes about a microsecond for each operation, however few nodes it is for. The same operation on plain numbers
takes a few hundredths of that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from stromboli.engine.placement.node_expressions import EXACT, INT, Expression

Program = Callable[[list[int], int], tuple[Any, ...]]
"""Given the numbers of a node (`Columns.numbers`) and its place: the values of the expressions."""

_INFIX = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "floor_divide": "//",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "equal": "==",
    "not_equal": "!=",
    "bitwise_and": "and",
    "bitwise_or": "or",
}
_PREFIX = {
    "invert": "not ",
    "negative": "-",
    "absolute": "abs",
    "sqrt": "sqrt",
    "float": "float",
    "int": "int",
}
_EXTREMES = {"minimum": "<", "maximum": ">"}


def compiled(results: Sequence[Expression]) -> Program:
    """A function that evaluates some expressions for a node; one that several need, it evaluates once."""
    writer = _Writer(results)
    returned = ", ".join([writer.code(result) for result in results])
    lines = ["def program(numbers, place):", *writer.lines, f" return {returned},"]
    namespace: dict[str, Any] = {"sqrt": math.sqrt, **writer.columns}
    exec("\n".join(lines), namespace)
    program: Program = namespace["program"]
    return program


class _Writer:
    """Writes expressions as Python, those that are needed more than once as assignments before the others."""

    def __init__(self, results: Sequence[Expression]):
        self.lines: list[str] = []
        self.columns: dict[str, Any] = {}
        self._names: dict[int, str] = {}
        self._uses: dict[int, int] = {}
        for result in results:
            self._count(result)

    def _count(self, expression: Expression) -> None:
        self._uses[id(expression)] = self._uses.get(id(expression), 0) + 1
        if self._uses[id(expression)] == 1:
            repeated = 2 if expression.operation in _EXTREMES else 1
            for operand in expression.operands:
                self._count(operand)
                self._uses[id(operand)] += repeated - 1

    def code(self, expression: Expression) -> str:
        """An expression as Python: its name if it has one."""
        if expression.operation == "constant":
            return f"({expression.value!r})"
        name = self._names.get(id(expression))
        if name is not None:
            return name
        text = self._text(expression)
        if self._uses[id(expression)] == 1:
            return text
        name = self._names[id(expression)] = f"x{len(self._names)}"
        self.lines.append(f" {name} = {text}")
        return name

    def _text(self, expression: Expression) -> str:
        operation = expression.operation
        if operation == "number":
            return f"numbers[{expression.value}]"
        if operation == "static":
            name = f"column{len(self.columns)}"
            self.columns[name] = memoryview(expression.value)
            return f"{name}[place]"
        operands = [self.code(operand) for operand in expression.operands]
        if operation == "divide" and _is_rounded(expression):
            operands[0] = f"float({operands[0]})"
        if operation in _INFIX:
            return f"({operands[0]} {_INFIX[operation]} {operands[1]})"
        if operation in _EXTREMES:
            a, b = operands
            return f"({a} if {a} {_EXTREMES[operation]} {b} else {b})"
        if operation == "where":
            condition, a, b = operands
            return f"({a} if {condition} else {b})"
        return f"({_PREFIX[operation]}({operands[0]}))"


def _is_rounded(division: Expression) -> bool:
    """Whether a division is of whole numbers that may be too large for floats: NumPy rounds before it divides."""
    a, b = division.operands
    return a.kind == b.kind == INT and max(a.bound, b.bound) > EXACT
