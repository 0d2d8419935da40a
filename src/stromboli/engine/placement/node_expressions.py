"""Numbers of one node as expressions: what is computed from its columns, with the type and the range of each result.

Only operations are known whose result in plain Python is the same as in NumPy to the last bit, as far as types and
ranges tell. `node_program.py` compiles expressions; `symbolic_nodes.py` makes them of node functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from stromboli.model.node_columns import LARGEST_NUMBER

if TYPE_CHECKING:
    from stromboli.engine.placement.node_functions import Floats

EXACT = 2**53
"""Whole numbers up to this are the same as floats."""
MAX_EXPRESSIONS = 4096
"""How much is recorded, at most: what node functions compute beyond this takes longer to record than to do."""
BOOL, INT, FLOAT = "b", "i", "f"
_ORDER = (BOOL, INT, FLOAT)
_TYPES: dict[str, type] = {BOOL: np.bool_, INT: np.int64, FLOAT: np.float64}
Range = tuple[float, float]


class NotRecordable(Exception):
    """A node function does something that cannot be recorded."""


class Expression:
    """One number of a node: an operation and what it is done with."""

    __slots__ = ("kind", "operands", "operation", "range", "value")

    def __init__(self, operation: str, kind: str, range: Range, operands: tuple[Expression, ...], value: Any):
        self.operation = operation
        self.kind = kind
        """Whether it is a truth value, a whole number or a float."""
        self.range = range
        """What it is at least, and at most."""
        self.operands = operands
        self.value = value
        """Of a constant, its value; of a number of the node, its place; of a static score, all of its column."""

    @property
    def bound(self) -> float:
        """What it is at most, above or below zero."""
        return max(abs(self.range[0]), abs(self.range[1]))


class Recorder:
    """Makes expressions, each once, and remembers whether anything could not be recorded."""

    def __init__(self) -> None:
        self.failed = False
        self._known: dict[tuple[Any, ...], Expression] = {}

    def fail(self, why: str) -> NoReturn:
        """Give up; a node function that goes on all the same is not believed."""
        self.failed = True
        raise NotRecordable(why)

    def constant(self, value: bool | int | float) -> Expression:
        kind = BOOL if isinstance(value, bool) else INT if isinstance(value, int) else FLOAT
        if not abs(value) < (2**63 if kind == INT else np.inf):
            self.fail(f"the constant {value}")
        return self._make("constant", kind, (value, value), (), value, repr(value))

    def number(self, place: int) -> Expression:
        """One of the numbers of the node."""
        return self._make("number", INT, (-LARGEST_NUMBER, LARGEST_NUMBER), (), place, place)

    def static(self, column: Floats) -> Expression:
        """What a static score is for the node; a constant where that is the same for all nodes."""
        if len(column) and (column == column[0]).all():
            return self.constant(float(column[0]))
        most = float(np.abs(column).max(initial=0))
        return self._make("static", FLOAT, (-most, most), (), column, id(column))

    def apply(self, operation: str, *operands: Expression) -> Expression:
        """The result of an operation; of constants, a constant."""
        rule = _RULES.get(operation)
        if rule is None:
            self.fail(operation)
        kind, range = rule(self, *operands)
        if kind == INT and not -(2**63) < range[0] <= range[1] < 2**63:
            self.fail(f"{operation} of large numbers")
        if all(operand.operation == "constant" for operand in operands):
            return self._fold(operation, kind, operands)
        for neutral, other in (operands, operands[::-1]) if operation in _NEUTRAL else ():
            if (
                neutral.operation == "constant"
                and neutral.value == _NEUTRAL[operation]
                and other.kind == kind != FLOAT
            ):
                return other
        return self._make(operation, kind, range, operands, None, None)

    def as_float(self, operand: Expression) -> Expression:
        return operand if operand.kind == FLOAT else self.apply("float", operand)

    def _fold(self, operation: str, kind: str, operands: tuple[Expression, ...]) -> Expression:
        values: list[Any] = [np.array(operand.value, dtype=_TYPES[operand.kind]) for operand in operands]
        with np.errstate(all="ignore"):
            return self.constant(_TYPES[kind](_FUNCTIONS[operation](*values)).item())

    def _make(
        self, operation: str, kind: str, range: Range, operands: tuple[Expression, ...], value: Any, id_: Any
    ) -> Expression:
        key = (operation, kind, id_, *map(id, operands))
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MAX_EXPRESSIONS:
                self.fail(f"more than {MAX_EXPRESSIONS} operations")
            known = self._known[key] = Expression(operation, kind, range, operands, value)
        return known


# -- what operations result in: of which kind, and from where to where


Result = tuple[str, Range]
Rule = Callable[..., Result]
TRUTH: Result = (BOOL, (0, 1))


def _wider(recorder: Recorder, *operands: Expression) -> str:
    kind = max((operand.kind for operand in operands), key=_ORDER.index)
    if kind == BOOL:
        recorder.fail("arithmetic of truth values")
    return kind


def _sum(recorder: Recorder, a: Expression, b: Expression) -> Result:
    return _wider(recorder, a, b), (a.range[0] + b.range[0], a.range[1] + b.range[1])


def _difference(recorder: Recorder, a: Expression, b: Expression) -> Result:
    if BOOL in (a.kind, b.kind):
        recorder.fail("a difference of truth values")
    return _wider(recorder, a, b), (a.range[0] - b.range[1], a.range[1] - b.range[0])


def _product(recorder: Recorder, a: Expression, b: Expression) -> Result:
    ends = [x * y for x in a.range for y in b.range]
    finite = np.isfinite(a.bound) and np.isfinite(b.bound)
    return _wider(recorder, a, b), (min(ends), max(ends)) if finite else (-np.inf, np.inf)


def _quotient(recorder: Recorder, a: Expression, b: Expression) -> Result:
    if b.operation == "constant" and b.value:
        ends = [end / b.value for end in a.range]
        return FLOAT, (min(ends), max(ends))
    if b.kind == INT:
        return FLOAT, (-a.bound, a.bound)  # a division by zero raises
    return FLOAT, (-np.inf, np.inf)


def _floor_quotient(recorder: Recorder, a: Expression, b: Expression) -> Result:
    if _wider(recorder, a, b) == FLOAT or BOOL in (a.kind, b.kind):
        recorder.fail("floor division of floats or truth values")
    return INT, (-a.bound - 1, a.bound)


def _least(recorder: Recorder, a: Expression, b: Expression) -> Result:
    _check_comparable(recorder, a, b)
    return _wider(recorder, a, b), (min(a.range[0], b.range[0]), min(a.range[1], b.range[1]))


def _most(recorder: Recorder, a: Expression, b: Expression) -> Result:
    _check_comparable(recorder, a, b)
    return _wider(recorder, a, b), (max(a.range[0], b.range[0]), max(a.range[1], b.range[1]))


def _comparison(recorder: Recorder, a: Expression, b: Expression) -> Result:
    _check_comparable(recorder, a, b)
    return TRUTH


def _check_comparable(recorder: Recorder, *operands: Expression) -> None:
    """NumPy compares a whole number with a float as floats, and what is no number as it likes."""
    floats = any(operand.kind == FLOAT for operand in operands)
    for operand in operands:
        if not np.isfinite(operand.bound) or (floats and operand.kind == INT and operand.bound > EXACT):
            recorder.fail("a comparison that depends on how numbers are rounded")


def _logic(recorder: Recorder, *operands: Expression) -> Result:
    if any(operand.kind != BOOL for operand in operands):
        recorder.fail("bits of numbers")
    return TRUTH


def _choice(recorder: Recorder, condition: Expression, a: Expression, b: Expression) -> Result:
    if condition.kind != BOOL or (a.kind != b.kind and BOOL in (a.kind, b.kind)):
        recorder.fail("a choice between truth values and numbers")
    ends = (*a.range, *b.range)
    return max(a.kind, b.kind, key=_ORDER.index), (min(ends), max(ends))


def _size(recorder: Recorder, a: Expression) -> Result:
    return _wider(recorder, a), (0, a.bound)


def _negation(recorder: Recorder, a: Expression) -> Result:
    return _wider(recorder, a), (-a.range[1], -a.range[0])


def _root(recorder: Recorder, a: Expression) -> Result:
    return FLOAT, (0, max(a.range[1], 1))  # that of a number below zero raises


def _to_float(recorder: Recorder, a: Expression) -> Result:
    return FLOAT, a.range


def _to_int(recorder: Recorder, a: Expression) -> Result:
    return INT, a.range


_RULES: dict[str, Rule] = {
    "add": _sum,
    "subtract": _difference,
    "multiply": _product,
    "divide": _quotient,
    "floor_divide": _floor_quotient,
    "minimum": _least,
    "maximum": _most,
    "less": _comparison,
    "less_equal": _comparison,
    "greater": _comparison,
    "greater_equal": _comparison,
    "equal": _comparison,
    "not_equal": _comparison,
    "bitwise_and": _logic,
    "bitwise_or": _logic,
    "invert": _logic,
    "absolute": _size,
    "negative": _negation,
    "sqrt": _root,
    "where": _choice,
    "float": _to_float,
    "int": _to_int,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in _RULES if hasattr(np, name)},
    "float": np.float64,
    "int": np.int64,
}
_NEUTRAL = {"add": 0, "bitwise_and": True, "bitwise_or": False}
"""What changes nothing, of operations in which both operands are alike."""
