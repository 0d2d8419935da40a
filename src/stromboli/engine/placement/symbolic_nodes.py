"""Nodes of which node functions see expressions instead of numbers, so that what they compute can be compiled.

A node function is called once with `SymbolicNodes`, whose columns record what is done with them instead of doing it.
At anything that cannot be recorded, such as a branch on a number, recording fails and the function goes on being
called with arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from stromboli.engine.placement.node_expressions import BOOL, FLOAT, INT, Expression, Recorder
from stromboli.model.node_columns import (
    ALLOCATABLE,
    AMOUNTS,
    IDLE,
    PIPELINED,
    RELEASING,
    USED,
    VIEW_ALLOCATABLE,
    VIEW_USED,
    VIEWS,
)
from stromboli.model.shape import VIEW_ROWS

Cells = NDArray[Any]
_KINDS = {np.dtype(np.bool_): BOOL, np.dtype(np.int64): INT, np.dtype(np.float64): FLOAT}
_SAME_KIND = ("minimum", "maximum", "where")
"""Operations whose result is one of the operands, as wide as the widest."""
_LOGICAL = {"logical_and": "bitwise_and", "logical_or": "bitwise_or", "logical_not": "invert"}


class SymbolicColumn(NDArrayOperatorsMixin):
    """An array whose cells are expressions; its last axis is the one node."""

    __array_priority__ = 1000

    def __init__(self, recorder: Recorder, cells: Cells, shared: bool = False):
        self._recorder = recorder
        self._cells = cells
        self._shared = shared
        """Whether others show some of the same cells, or they are numbers of the node: then it cannot be written to."""

    @property
    def shape(self) -> tuple[int, ...]:
        return self._cells.shape

    def __len__(self) -> int:
        return len(self._cells)

    def __getitem__(self, index: Any) -> SymbolicColumn:
        if isinstance(index, SymbolicColumn) or not _keeps_nodes(self.shape, index):
            self._recorder.fail("a choice of nodes")
        self._shared = True
        return SymbolicColumn(self._recorder, self._cells[index], shared=True)

    def __iter__(self) -> Iterator[SymbolicColumn]:
        return (self[place] for place in range(len(self)))

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
        if axis != 0 or len(self.shape) < 2 or more or any(cell.kind != BOOL for cell in self._cells.flat):
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
        """A result that is written to this column, of the same kind."""
        if self._shared:
            self._recorder.fail("writing to a part of a column")
        for mine, new in zip(
            np.broadcast_to(self._cells, result.shape).flat, result._cells.flat, strict=True
        ):
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

    __array__ = __bool__ = __float__ = __int__ = __index__ = __contains__ = __setitem__ = _no_value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._recorder.fail(f".{name} of a column")


def _keeps_nodes(shape: tuple[int, ...], index: Any) -> bool:
    """Whether an index into a column takes all nodes, in their order, however many there are."""
    nodes = np.arange(3)
    try:
        taken = np.broadcast_to(nodes, (*shape[:-1], 3))[index]
    except IndexError:
        return False
    return taken.shape[-1:] == nodes.shape and bool((taken == nodes).all())


class SymbolicNodes:
    """A view of one node whose numbers are expressions: what node functions see when they are recorded."""

    def __init__(self, recorder: Recorder, dimensions: int):
        self._recorder = recorder
        cells = np.empty((AMOUNTS * dimensions + VIEWS * VIEW_ROWS, 1), dtype=object)
        for place in range(len(cells)):
            cells[place, 0] = recorder.number(place)
        amounts = cells[: AMOUNTS * dimensions].reshape(AMOUNTS, dimensions, 1)
        views = cells[AMOUNTS * dimensions :].reshape(VIEWS, VIEW_ROWS, 1)
        self.allocatable = self._numbers(amounts[ALLOCATABLE])
        self.used = self._numbers(amounts[USED])
        self.idle = self._numbers(amounts[IDLE])
        self.releasing = self._numbers(amounts[RELEASING])
        self.pipelined = self._numbers(amounts[PIPELINED])
        self.view = self._numbers(views[VIEW_USED])
        self.view_allocatable = self._numbers(views[VIEW_ALLOCATABLE])

    def _numbers(self, cells: Cells) -> SymbolicColumn:
        return SymbolicColumn(self._recorder, cells, shared=True)

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

    def expression(self, column: Any) -> Expression:
        """The expression of a column that a node function returned; it may be an array of its own making."""
        if not isinstance(column, SymbolicColumn) or column.shape != (1,):
            self._recorder.fail(f"a {type(column).__name__}")
        return column.expressions()[0]

    def column(self, expression: Expression) -> SymbolicColumn:
        cells = np.empty(1, dtype=object)
        cells[0] = expression
        return SymbolicColumn(self._recorder, cells)

    def __getattr__(self, name: str) -> Any:
        """Anything that is not a number of the node."""
        if name.startswith("__"):
            raise AttributeError(name)
        self._recorder.fail(f"nodes.{name}")
