"""A shape's filters and scores as one Python function of plain numbers, for the few nodes that changed.

NumPy takes about a microsecond per operation, however few the nodes. Plain Python takes a few hundredths of that. So
the node functions are called once for one node with columns that hold its numbers and record the operations on them.
Only operations with the same result in Python as in NumPy, to the last bit, are recorded. Any other use of a column,
such as printing it or branching on a number, does what it does with an array, and ends the recording: such functions
are always called with arrays.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from stromboli.engine.placement.node_functions import Floats, Nodes
from stromboli.model.node_columns import (
    ALLOCATABLE,
    AMOUNTS,
    IDLE,
    MAX_NUMBER,
    PIPELINED,
    RELEASING,
    USED,
    VIEW_ALLOCATABLE,
    VIEW_USED,
    Columns,
)
from stromboli.model.shape import VIEW_ROWS

if TYPE_CHECKING:
    from stromboli.model.node_columns import Ints

Program = Callable[[list[int], int], tuple[Any, ...]]
"""Given the numbers of a node (`Columns.numbers`) and its place: the values of the recorded columns."""
Cells = NDArray[Any]

EXACT = 2**53
"""Whole numbers up to this are the same as floats."""
MAX_OPERATIONS = 4096
"""Operations that are recorded at most: a program of more takes longer to record than it saves."""
MAX_NESTING = 20
"""Operations inside one another in one line of a program."""

_ARITHMETIC = {
    "add": "{0} + {1}",
    "subtract": "{0} - {1}",
    "multiply": "{0} * {1}",
    "divide": "{0} / {1}",
    "floor_divide": "{0} // {1}",
    "negative": "-{0}",
    "absolute": "abs({0})",
    "sqrt": "sqrt({0})",
    "int": "whole({0})",
    "float": "float({0})",
}
_EXTREMES = {"minimum": "{0} if {0} < {1} else {1}", "maximum": "{0} if {0} > {1} else {1}"}
_COMPARISONS = {
    "less": "{0} < {1}",
    "less_equal": "{0} <= {1}",
    "greater": "{0} > {1}",
    "greater_equal": "{0} >= {1}",
    "equal": "{0} == {1}",
    "not_equal": "{0} != {1}",
}
_LOGIC = {
    "logical_and": "{0} and {1}",
    "logical_or": "{0} or {1}",
    "logical_not": "not {0}",
    "bitwise_and": "{0} and {1}",
    "bitwise_or": "{0} or {1}",
    "invert": "not {0}",
}
_TEMPLATES = {**_ARITHMETIC, **_EXTREMES, **_COMPARISONS, **_LOGIC, "where": "{1} if {0} else {2}"}
"""Operations of NumPy as Python; every other operation ends the recording."""
_TYPES = {np.dtype(np.bool_), np.dtype(np.int64), np.dtype(np.float64)}


@dataclass(slots=True)
class Cell:
    """One number of a column: its source code, a bound of its absolute value and, of a constant, its value."""

    code: str
    bound: float
    value: bool | int | float | None = None


class Recorder:
    """The operations recorded so far, each once, and whether there was one that cannot be recorded."""

    def __init__(self) -> None:
        self.failed = False
        self._operations: dict[str, tuple[str, tuple[str, ...]]] = {}
        """Variables of the program: the template of the operation and its operands."""
        self._variables: dict[tuple[str, tuple[str, ...]], str] = {}
        self._static: dict[str, Any] = {}

    # -- columns to start from

    def numbers(self, values: Ints, first: int) -> RecordedColumn:
        """Some numbers of the node, from a place in `Columns.numbers` on."""
        codes = [self._variable(f"numbers[{place}]", ()) for place in range(first, first + len(values))]
        return RecordedColumn(self, values, np.array([[Cell(code, MAX_NUMBER)] for code in codes]))

    def static(self, scores: Floats, place: int) -> RecordedColumn:
        """The static score of the node; a constant where all nodes have the same."""
        value = scores[[place]]
        if (scores == value).all():
            return self.constant(value)
        name = f"static{len(self._static)}"
        self._static[name] = scores.data
        cell = Cell(self._variable(f"{name}[place]", ()), float(np.abs(scores).max()))
        return RecordedColumn(self, value, np.array([cell]))

    def constant(self, values: NDArray[Any]) -> RecordedColumn:
        return RecordedColumn(self, values, _each(self._constant, values))

    def _constant(self, value: bool | int | float) -> Cell:
        self.failed |= not math.isfinite(value)
        return Cell(f"({value!r})", abs(value), value)

    def _variable(self, template: str, operands: tuple[str, ...]) -> str:
        known = self._variables.get((template, operands))
        if known is None:
            known = self._variables[template, operands] = f"x{len(self._operations)}"
            self._operations[known] = (template, operands)
            self.failed |= len(self._operations) > MAX_OPERATIONS
        return known

    # -- operations

    def leave(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call a function with arrays; its result cannot be recorded."""
        self.failed = True
        return function(*_arrays(args), **_arrays(options))

    def apply(self, operation: str, function: Callable[..., Any], *inputs: Any) -> Any:
        """Call an element-wise function with arrays and record it; the result is an array if recording failed."""
        if self.failed or operation not in _TEMPLATES:
            return self.leave(function, *inputs)
        values = function(*_arrays(inputs))
        columns = [self.column(each) for each in inputs]
        if operation in _EXTREMES:
            columns = [each.converted(values.dtype) for each in columns]
        elif operation == "where":
            columns[1:] = [each.converted(values.dtype) for each in columns[1:]]
        kinds = "".join(column.dtype.kind for column in columns)
        self.failed |= values.dtype not in _TYPES or not _is_same_in_python(
            operation, values.dtype.kind, kinds
        )
        if self.failed:
            return values
        cells = _each(partial(self._applied, operation, kinds), values, *(column.cells for column in columns))
        return RecordedColumn(self, values, cells)

    def column(self, value: Any) -> RecordedColumn:
        """A recorded column as it is, and anything else as constants."""
        if isinstance(value, RecordedColumn):
            return value
        array = np.asarray(value)
        if array.dtype in _TYPES:
            return self.constant(array)
        self.failed = True
        return self.constant(np.zeros(array.shape))

    def _applied(self, operation: str, kinds: str, value: Any, *operands: Cell) -> Cell:
        if all(operand.value is not None for operand in operands):
            return self._constant(value)
        bound = _bound(operation, operands, kinds)
        if operation in _EXTREMES or operation in _COMPARISONS:
            self.failed |= not _are_comparable(operands, kinds)
        if "f" not in kinds:
            self.failed |= bound >= 2**63
        codes = [operand.code for operand in operands]
        if operation == "divide" and kinds == "ii" and max(operand.bound for operand in operands) > EXACT:
            codes[0] = self._variable(_TEMPLATES["float"], (codes[0],))  # NumPy rounds before it divides
        return Cell(self._variable(_TEMPLATES[operation], tuple(codes)), bound)

    # -- the program

    def program(self, results: Sequence[Any]) -> Program | None:
        """A function that evaluates recorded columns for one node; none if anything could not be recorded."""
        if self.failed or not all(_is_recorded(column) for column in results):
            return None
        codes = [column.cells[0].code for column in results]
        uses = self._uses(codes)
        lines: list[str] = []
        inlined: dict[str, str] = {}
        nesting: Counter[str] = Counter()
        for name, (template, operands) in self._operations.items():
            if not uses[name]:
                continue
            text = template.format(*(inlined.get(operand, operand) for operand in operands))
            depth = 1 + max((nesting[operand] for operand in operands), default=0)
            if uses[name] == 1 and depth < MAX_NESTING:
                inlined[name], nesting[name] = f"({text})", depth
            else:
                lines.append(f" {name} = {text}")
        returned = "".join(f"{inlined.get(code, code)}, " for code in codes)
        namespace: dict[str, Any] = {"sqrt": math.sqrt, "whole": _whole, **self._static}
        exec("\n".join(["def program(numbers, place):", *lines, f" return {returned}"]), namespace)
        program: Program = namespace["program"]
        return program

    def _uses(self, codes: Sequence[str]) -> Counter[str]:
        """How often the program reads each variable: a variable that is read once can be written in its place."""
        uses = Counter(codes)
        for name, (template, operands) in reversed(self._operations.items()):
            if uses[name]:
                for place, operand in enumerate(operands):
                    uses[operand] += template.count(f"{{{place}}}")
        return uses


def _whole(number: float) -> int:
    """A number without its fraction; an error is raised where NumPy's integers may overflow."""
    whole = int(number)
    if not -EXACT <= whole <= EXACT:
        raise OverflowError
    return whole


def _is_recorded(column: Any) -> bool:
    return isinstance(column, RecordedColumn) and column.shape == (1,)


def _is_same_in_python(operation: str, kind: str, kinds: str) -> bool:
    """Whether Python computes the same as NumPy, given the kinds of the result and the operands (b, i or f)."""
    if operation in _LOGIC:
        return set(kinds) == {"b"}
    if operation == "floor_divide":
        return kind == "i"
    if operation in _ARITHMETIC or operation in _EXTREMES:
        return kind != "b"
    return operation in _COMPARISONS or (operation == "where" and kinds[0] == "b")


def _are_comparable(operands: Sequence[Cell], kinds: str) -> bool:
    """Whether a comparison is independent of rounding: NumPy compares a whole number with a float as floats."""
    bounds = {kind: operand.bound for operand, kind in zip(operands, kinds, strict=True)}
    finite = all(math.isfinite(operand.bound) for operand in operands)
    return finite and not ("f" in bounds and bounds.get("i", 0) > EXACT)


def _bound(operation: str, operands: Sequence[Cell], kinds: str) -> float:
    """A bound of the absolute value of a result; infinite if the result may be no number."""
    bounds = [operand.bound for operand in operands]
    if operation in ("add", "subtract"):
        return sum(bounds)
    if operation == "multiply":
        return math.prod(bounds) if all(map(math.isfinite, bounds)) else math.inf
    if operation == "divide":
        divisor = operands[1].value
        if divisor:
            return bounds[0] / abs(divisor)
        return math.inf if kinds[1] == "f" else bounds[0]  # Python raises an error if a divisor is 0
    if operation == "floor_divide":
        return bounds[0] + 1
    if operation == "where":
        return max(bounds[1:])
    if operation == "int":
        return EXACT
    return 1 if operation in _COMPARISONS or operation in _LOGIC else max(1, *bounds)


def _arrays(value: Any) -> Any:
    """The same with arrays in the place of recorded columns."""
    if isinstance(value, RecordedColumn):
        return value.values
    if isinstance(value, tuple | list):
        return type(value)(map(_arrays, value))
    return {key: _arrays(each) for key, each in value.items()} if isinstance(value, dict) else value


def _each(function: Callable[..., Cell], *arrays: NDArray[Any]) -> Cells:
    """One cell for each place of some arrays."""
    return np.asarray(np.frompyfunc(function, len(arrays), 1)(*arrays), dtype=object)


def _keeps_nodes(shape: tuple[int, ...], index: Any) -> bool:
    """Whether an index into a column takes all nodes, in their order, however many there are."""
    nodes = np.arange(3)
    try:
        taken = np.broadcast_to(nodes, (*shape[:-1], 3))[index]
    except IndexError:
        return False
    return taken.shape[-1:] == nodes.shape and bool((taken == nodes).all())


class RecordedColumn(NDArrayOperatorsMixin):
    """An array of numbers of one node that records what is done with it. A part of it shares its cells, as in NumPy."""

    __array_priority__ = 1000

    def __init__(self, recorder: Recorder, values: NDArray[Any], cells: Cells):
        self._recorder = recorder
        self.values = values
        self.cells = cells

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return (self[place] for place in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, RecordedColumn) or not _keeps_nodes(self.shape, index):
            return self._recorder.leave(self.values.__getitem__, index)
        return RecordedColumn(self._recorder, self.values[index], self.cells[index])

    def copy(self) -> RecordedColumn:
        return RecordedColumn(self._recorder, self.values.copy(), self.cells.copy())

    def astype(self, dtype: Any, **options: Any) -> Any:
        if options or np.dtype(dtype) not in _TYPES:
            return self._recorder.leave(self.values.astype, dtype, **options)
        return self.converted(np.dtype(dtype)).copy()

    def converted(self, dtype: np.dtype[Any]) -> Any:
        """This column with numbers of another type."""
        if dtype == self.dtype:
            return self
        return self._recorder.apply(
            {"i": "int", "f": "float"}.get(dtype.kind, ""), partial(np.asarray, dtype=dtype), self
        )

    def sum(self, axis: int | None = None, **options: Any) -> Any:
        """Count true cells, such as how many resources a node has; no other sum is recorded."""
        if axis != 0 or self.values.ndim < 2 or options or self.dtype != np.bool_:
            return self._recorder.leave(self.values.sum, axis, **options)
        return reduce(operator.add, self, np.int64(0))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        recorder, name = self._recorder, ufunc.__name__
        out, where = options.get("out", (None,))[0], options.get("where")
        if (
            method != "__call__"
            or options.keys() - {"out", "where"}
            or not isinstance(out, RecordedColumn | None)
            or (where is not None and out is None)
        ):
            return recorder.leave(getattr(ufunc, method), *inputs, **options)
        if name == "power" and isinstance(inputs[1], int) and inputs[1] == 2:
            result = recorder.apply("multiply", np.multiply, inputs[0], inputs[0])
        else:
            result = recorder.apply(name, ufunc, *inputs)
        if where is not None:
            result = recorder.apply("where", np.where, where, result, out)
        return result if out is None else out.write(result)

    def write(self, result: Any) -> RecordedColumn:
        """Replace all numbers of this column; numbers of nodes are read-only."""
        np.copyto(self.values, _arrays(result), casting="same_kind")
        self.cells[...] = self._recorder.column(self._recorder.column(result).converted(self.dtype)).cells
        return self

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        recorder = self._recorder
        if function is np.where and len(args) == 3:
            return recorder.apply("where", np.where, *args)
        if function is np.clip and len(args) == 3 and not options:
            return np.minimum(np.maximum(args[0], args[1]), args[2])
        if function is np.stack and len(args) == 1 and not options:
            values = np.stack(_arrays(args[0]))
            columns = [recorder.column(each).converted(values.dtype) for each in args[0]]
            return (
                values
                if recorder.failed
                else RecordedColumn(recorder, values, np.stack([each.cells for each in columns]))
            )
        return recorder.leave(function, *args, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._recorder.leave(np.asarray, self), name)


def _looks_at_numbers(method: str) -> Callable[..., Any]:
    def look(self: RecordedColumn, *args: Any, **options: Any) -> Any:
        return self._recorder.leave(getattr(self.values, method), *args, **options)

    return look


for _method in ("array", "bool", "float", "int", "index", "contains", "setitem", "repr", "str", "format"):
    setattr(RecordedColumn, f"__{_method}__", _looks_at_numbers(f"__{_method}__"))


class RecordedNodes(Nodes):
    """One node whose columns record what is done with them."""

    def __init__(self, recorder: Recorder, columns: Columns, row: int):
        super().__init__(columns, np.array([row]))
        self._recorder = recorder
        view = AMOUNTS * len(self.idle)
        places = {
            "allocatable": ALLOCATABLE * len(self.idle),
            "used": USED * len(self.idle),
            "idle": IDLE * len(self.idle),
            "releasing": RELEASING * len(self.idle),
            "pipelined": PIPELINED * len(self.idle),
            "view": view + VIEW_USED * VIEW_ROWS,
            "view_allocatable": view + VIEW_ALLOCATABLE * VIEW_ROWS,
        }
        for name, place in places.items():
            setattr(self, name, recorder.numbers(getattr(self, name), place))

    def zeros(self) -> Any:
        return self._recorder.constant(super().zeros())

    def all(self) -> Any:
        return self._recorder.constant(super().all())

    @property
    def columns(self) -> Columns:
        """The columns of all nodes, and more than the numbers of this one."""
        self._recorder.failed = True
        return super().columns

    def pick(self, column: Any) -> Any:
        self._recorder.failed = True
        return super().pick(column)
