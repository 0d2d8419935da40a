"""What a node function computes for one node, as an expression over that node's numbers.

A node function is called once with `SymbolicNodes`, whose columns record what is done with them instead of doing it. What it
returns is then an expression (`Expression`) which `node_program.py` compiles. Only operations are recorded whose result
in plain Python is the same as in NumPy to the last bit; at anything else, such as a branch on a number, recording
fails and the function goes on being called with arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from stromboli.model.node_columns import (
    ALLOCATABLE,
    AMOUNTS,
    IDLE,
    PIPELINED,
    RELEASING,
    USED,
    VIEW_ALLOCATABLE,
    VIEW_USED,
)
from stromboli.model.shape import VIEW_ROWS

if TYPE_CHECKING:
    from stromboli.engine.placement.node_functions import Floats

EXACT = 2**53
"""Whole numbers up to this are the same as floats."""
LARGEST_NUMBER = 2**52
"""Numbers of nodes up to this are compiled; nodes with larger ones are left to arrays, where they may wrap around."""
BOOL, INT, FLOAT = "b", "i", "f"
_ORDER = (BOOL, INT, FLOAT)
_KINDS = {np.dtype(np.bool_): BOOL, np.dtype(np.int64): INT, np.dtype(np.float64): FLOAT}
_TYPES: dict[str, type] = {BOOL: np.bool_, INT: np.int64, FLOAT: np.float64}
Cells = NDArray[Any]


class NotRecordable(Exception):
    """A node function does something that cannot be recorded."""


class Expression:
    """One number of a node: an operation and what it is done with."""

    __slots__ = ("bound", "kind", "operands", "operation", "value")

    def __init__(self, operation: str, kind: str, bound: float, operands: tuple[Expression, ...], value: Any):
        self.operation = operation
        self.kind = kind
        """Whether it is a truth value, a whole number or a float."""
        self.bound = bound
        """What it is at most, above or below zero."""
        self.operands = operands
        self.value = value
        """Of a constant, its value; of a number of the node, its place; of a static score, all of its column."""


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
        return self._make("constant", kind, abs(value), (), value, repr(value))

    def number(self, place: int) -> Expression:
        """One of the numbers of the node."""
        return self._make("number", INT, LARGEST_NUMBER, (), place, place)

    def static(self, column: Floats) -> Expression:
        """What a static score is for the node; a constant where that is the same for all nodes."""
        if len(column) and (column == column[0]).all():
            return self.constant(float(column[0]))
        return self._make("static", FLOAT, float(np.abs(column).max(initial=0)), (), column, id(column))

    def apply(self, operation: str, *operands: Expression) -> Expression:
        """The result of an operation; of constants, a constant."""
        rule = _RULES.get(operation)
        if rule is None:
            self.fail(operation)
        kind, bound = rule(self, *operands)
        if kind == INT and bound >= 2**63:
            self.fail(f"{operation} of large numbers")
        if all(operand.operation == "constant" for operand in operands):
            return self._fold(operation, kind, operands)
        for neutral, other in (operands, operands[::-1]) if operation in _NEUTRAL else ():
            if neutral.operation == "constant" and neutral.value == _NEUTRAL[operation] and other.kind == kind != FLOAT:
                return other
        return self._make(operation, kind, bound, operands, None, None)

    def as_float(self, operand: Expression) -> Expression:
        return operand if operand.kind == FLOAT else self.apply("float", operand)

    def _fold(self, operation: str, kind: str, operands: tuple[Expression, ...]) -> Expression:
        values = [np.array(operand.value, dtype=_TYPES[operand.kind]) for operand in operands]
        with np.errstate(all="ignore"):
            return self.constant(_TYPES[kind](_FUNCTIONS[operation](*values)).item())

    def _make(
        self, operation: str, kind: str, bound: float, operands: tuple[Expression, ...], value: Any, id_: Any
    ) -> Expression:
        key = (operation, kind, id_, *map(id, operands))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = Expression(operation, kind, bound, operands, value)
        return known


# -- what operations result in: of which kind, and how large at most


Rule = Callable[..., tuple[str, float]]


def _wider(recorder: Recorder, *operands: Expression) -> str:
    kind = max((operand.kind for operand in operands), key=_ORDER.index)
    if kind == BOOL:
        recorder.fail("arithmetic of truth values")
    return kind


def _sum(recorder: Recorder, a: Expression, b: Expression) -> tuple[str, float]:
    return _wider(recorder, a, b), a.bound + b.bound


def _product(recorder: Recorder, a: Expression, b: Expression) -> tuple[str, float]:
    return _wider(recorder, a, b), a.bound * b.bound


def _quotient(recorder: Recorder, a: Expression, b: Expression) -> tuple[str, float]:
    if b.operation == "constant" and b.value:
        return FLOAT, a.bound / abs(b.value)
    if b.kind == INT:
        return FLOAT, a.bound  # a division by zero raises
    return FLOAT, np.inf


def _floor_quotient(recorder: Recorder, a: Expression, b: Expression) -> tuple[str, float]:
    if _wider(recorder, a, b) == FLOAT:
        recorder.fail("floor division of floats")
    return INT, a.bound + 1


def _extreme(recorder: Recorder, a: Expression, b: Expression) -> tuple[str, float]:
    return _wider(recorder, *_comparable(recorder, a, b)), max(a.bound, b.bound)


def _comparison(recorder: Recorder, a: Expression, b: Expression) -> tuple[str, float]:
    _comparable(recorder, a, b)
    return BOOL, 1


def _comparable(recorder: Recorder, *operands: Expression) -> tuple[Expression, ...]:
    """NumPy compares a whole number with a float as floats, and what is no number as it likes."""
    floats = any(operand.kind == FLOAT for operand in operands)
    for operand in operands:
        if not np.isfinite(operand.bound) or (floats and operand.kind == INT and operand.bound > EXACT):
            recorder.fail("a comparison that depends on how numbers are rounded")
    return operands


def _logic(recorder: Recorder, *operands: Expression) -> tuple[str, float]:
    if any(operand.kind != BOOL for operand in operands):
        recorder.fail("bits of numbers")
    return BOOL, 1


def _choice(recorder: Recorder, condition: Expression, a: Expression, b: Expression) -> tuple[str, float]:
    return max(a.kind, b.kind, key=_ORDER.index), max(a.bound, b.bound)


def _same(recorder: Recorder, a: Expression) -> tuple[str, float]:
    return _wider(recorder, a), a.bound


def _root(recorder: Recorder, a: Expression) -> tuple[str, float]:
    return FLOAT, max(a.bound, 1)


def _to_float(recorder: Recorder, a: Expression) -> tuple[str, float]:
    return FLOAT, a.bound


def _to_int(recorder: Recorder, a: Expression) -> tuple[str, float]:
    return INT, a.bound


_RULES: dict[str, Rule] = {
    "add": _sum,
    "subtract": _sum,
    "multiply": _product,
    "divide": _quotient,
    "floor_divide": _floor_quotient,
    "minimum": _extreme,
    "maximum": _extreme,
    "less": _comparison,
    "less_equal": _comparison,
    "greater": _comparison,
    "greater_equal": _comparison,
    "equal": _comparison,
    "not_equal": _comparison,
    "bitwise_and": _logic,
    "bitwise_or": _logic,
    "invert": _logic,
    "absolute": _same,
    "negative": _same,
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
_SAME_KIND = ("minimum", "maximum", "where")
"""Operations whose result is one of the operands, as wide as the widest."""
_LOGICAL = {"logical_and": "bitwise_and", "logical_or": "bitwise_or", "logical_not": "invert"}


class SymbolicColumn(NDArrayOperatorsMixin):
    """An array whose cells are expressions; its last axis is the one node."""

    __array_priority__ = 1000

    def __init__(self, recorder: Recorder, cells: Cells):
        self._recorder = recorder
        self._cells = cells

    @property
    def shape(self) -> tuple[int, ...]:
        return self._cells.shape

    def __len__(self) -> int:
        return len(self._cells)

    def __getitem__(self, index: Any) -> SymbolicColumn:
        if isinstance(index, SymbolicColumn):
            self._recorder.fail("a choice of nodes")
        return self._with(self._cells[index])

    def __iter__(self) -> Iterator[SymbolicColumn]:
        return (self._with(cells) for cells in self._cells)

    def expressions(self) -> list[Expression]:
        return list(self._cells.flat)

    def astype(self, type: Any, **more: Any) -> SymbolicColumn:
        kind = _KINDS.get(np.dtype(type))
        if kind == INT:
            return self._each("int")
        return self._each("float") if kind == FLOAT else self._recorder.fail(f"astype({type})")

    def copy(self) -> SymbolicColumn:
        return self._with(self._cells.copy())

    def sum(self, axis: int | None = None, **more: Any) -> SymbolicColumn:
        """The number of true cells, such as how many resources a node has."""
        if axis != 0 or more or any(cell.kind != BOOL for cell in self._cells.flat):
            self._recorder.fail("sum")
        total = self._with(self._cells[0])._each("int")
        for cells in self._cells[1:]:
            total = total + self._with(cells)._each("int")
        return total

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> SymbolicColumn:
        out, where = options.pop("out", (None,))[0], options.pop("where", True)
        if method != "__call__" or options or (out is not None and not isinstance(out, SymbolicColumn)):
            self._recorder.fail(f"{ufunc.__name__}.{method}")
        if ufunc.__name__ == "power" and isinstance(inputs[1], int) and inputs[1] == 2:
            result = self._combined("multiply", inputs[0], inputs[0])
        else:
            result = self._combined(_LOGICAL.get(ufunc.__name__, ufunc.__name__), *inputs)
        if where is not True:
            result = self._combined("where", where, result, out if out is not None else self._undefined())
        if out is None:
            return result
        out._cells = np.broadcast_to(out._converted(result), out.shape)
        return out

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> SymbolicColumn:
        if function is np.where and len(args) == 3 and not kwargs:
            return self._combined("where", *args)
        if function is np.clip and len(args) == 3 and not kwargs:
            return self._combined("minimum", self._combined("maximum", args[0], args[1]), args[2])
        if function is np.stack and len(args) == 1 and not kwargs:
            return self._with(np.stack([self._cells_of(column) for column in args[0]]))
        if function is np.zeros_like and len(args) == 1 and not kwargs:
            return self._combined("multiply", self, 0)
        return self._recorder.fail(f"{function.__name__} of a column")

    def _undefined(self) -> NoReturn:
        self._recorder.fail("where without out")

    def _with(self, cells: Any) -> SymbolicColumn:
        return SymbolicColumn(self._recorder, np.asarray(cells, dtype=object))

    def _each(self, operation: str) -> SymbolicColumn:
        return self._combined(operation, self)

    def _converted(self, result: SymbolicColumn) -> Cells:
        """A result as the kind of the column that it is written to: a wider one cannot be."""
        for mine, new in zip(np.broadcast_to(self._cells, result.shape).flat, result._cells.flat, strict=True):
            if mine.kind != new.kind:
                self._recorder.fail("a result of another type than where it is written to")
        return result._cells

    def _combined(self, operation: str, *inputs: Any) -> SymbolicColumn:
        columns = np.broadcast_arrays(*map(self._cells_of, inputs))
        cells = np.empty(columns[0].shape, dtype=object)
        for place, operands in enumerate(zip(*(column.flat for column in columns), strict=True)):
            cells.flat[place] = self._applied(operation, operands)
        return self._with(cells)

    def _applied(self, operation: str, operands: tuple[Expression, ...]) -> Expression:
        recorder = self._recorder
        if operation in _SAME_KIND:
            values = operands[1:] if operation == "where" else operands
            if any(value.kind == FLOAT for value in values):
                operands = (*operands[: len(operands) - len(values)], *map(recorder.as_float, values))
        return recorder.apply(operation, *operands)

    def _cells_of(self, value: Any) -> Cells:
        if isinstance(value, SymbolicColumn):
            return value._cells
        array = np.asarray(value)
        if array.dtype not in _KINDS:
            self._recorder.fail(f"numbers of type {array.dtype}")
        cells = np.empty(array.shape, dtype=object)
        for place, each in enumerate(array.flat):
            cells.flat[place] = self._recorder.constant(each.item())
        return cells

    def _no_value(self, *_: Any, **__: Any) -> NoReturn:
        self._recorder.fail("a look at the numbers themselves")

    __array__ = __bool__ = __float__ = __int__ = __index__ = __contains__ = __setitem__ = _no_value  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._recorder.fail(f".{name} of a column")


class SymbolicNodes:
    """A view of one node whose numbers are expressions: what node functions see when they are recorded."""

    def __init__(self, recorder: Recorder, dimensions: int):
        self._recorder = recorder
        cells = np.empty((AMOUNTS * dimensions + 2 * VIEW_ROWS, 1), dtype=object)
        for place in range(len(cells)):
            cells[place, 0] = recorder.number(place)
        amounts = cells[: AMOUNTS * dimensions].reshape(AMOUNTS, dimensions, 1)
        views = cells[AMOUNTS * dimensions :].reshape(2, VIEW_ROWS, 1)
        self.allocatable = self._column(amounts[ALLOCATABLE])
        self.used = self._column(amounts[USED])
        self.idle = self._column(amounts[IDLE])
        self.releasing = self._column(amounts[RELEASING])
        self.pipelined = self._column(amounts[PIPELINED])
        self.view = self._column(views[VIEW_USED])
        self.view_allocatable = self._column(views[VIEW_ALLOCATABLE])

    def _column(self, cells: Cells) -> SymbolicColumn:
        return SymbolicColumn(self._recorder, cells)

    def __len__(self) -> int:
        return 1

    @property
    def future_idle(self) -> SymbolicColumn:
        future: SymbolicColumn = self.idle + self.releasing - self.pipelined
        return future

    def zeros(self) -> SymbolicColumn:
        return self.constant(0.0)

    def all(self) -> SymbolicColumn:
        return self.constant(True)

    def constant(self, value: bool | float) -> SymbolicColumn:
        return self.column(self._recorder.constant(value))

    def column(self, expression: Expression) -> SymbolicColumn:
        cells = np.empty(1, dtype=object)
        cells[0] = expression
        return self._column(cells)

    def __getattr__(self, name: str) -> Any:
        """Anything that is not a number of the node."""
        if name.startswith("__"):
            raise AttributeError(name)
        self._recorder.fail(f"nodes.{name}")
